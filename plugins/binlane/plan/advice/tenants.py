"""Tenants with several databases, found by the transactions that change more than one: a ``(pattern)`` for them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

_SEPARATORS: Final = "_-."
_RARE: Final = 0.05
"""A part of the names that less than this share of the transactions has is left out of the pattern."""


class _Parts(NamedTuple):
    """Names of one tenant, ``acme_main`` and ``acme_audit``: what follows ``acme`` and the separator in each."""

    separator: str
    parts: frozenset[str]


def pattern_of(common: Mapping[frozenset[str], int]) -> str | None:
    """A pattern under which most of the transactions over several databases are of one shard; None if their databases'
    names do not begin alike.

    ``common``: sets of databases, by the source's names, with the number of transactions that change all of them.
    """
    separators: Counter[str] = Counter()
    parts: dict[str, Counter[str]] = {separator: Counter() for separator in _SEPARATORS}
    for names, transactions in common.items():
        found = _parts_of(names)
        if found is not None:
            separators[found.separator] += transactions
            parts[found.separator].update(dict.fromkeys(found.parts, transactions))
    if 2 * separators.total() <= sum(common.values()):
        return None
    [(separator, transactions)] = separators.most_common(1)
    often = sorted(name for name, count in parts[separator].items() if count >= _RARE * transactions)
    return f"^(?<shard>.+){re.escape(separator)}({'|'.join(map(re.escape, often))})$"


def _parts_of(names: frozenset[str]) -> _Parts | None:
    """How the names differ behind the longest beginning that they share up to a separator. A name may be the beginning
    itself: ``acme`` and ``acme_audit``."""
    shortest = min(names, key=lambda name: (len(name), name))
    ends = [at for at, letter in enumerate(shortest) if letter in _SEPARATORS]
    for end in (len(shortest), *reversed(ends)):
        tenant, rest = shortest[:end], [name[end:] for name in names if name != shortest[:end]]
        heads = {part[:1] for part in rest}
        if tenant and all(name.startswith(tenant) for name in names) and len(heads) == 1 and heads <= set(_SEPARATORS):
            parts = frozenset(part[1:] for part in rest)
            return _Parts(heads.pop(), parts) if "" not in parts else None
    return None
