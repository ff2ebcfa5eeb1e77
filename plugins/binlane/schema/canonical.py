"""Canonical JSON: equal values give equal bytes, so a document can be part of a digest; one entry a line.

Written here because the standard library needs ten times as long for indented JSON, and a plan may have ten thousand
tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final


def canonical_json(document: Mapping[str, object]) -> bytes:
    """ASCII, keys sorted; one line for each member, and for each entry of a member that is a list or an object."""
    return b"".join(canonical_pieces(document))


def canonical_pieces(document: Mapping[str, object]) -> Iterator[bytes]:
    """The bytes of ``canonical_json``, entry by entry. A member may be an iterator: of the entries of a list."""
    members = (chain([f"{_text(name)}: "], _entries(value)) for name, value in sorted(document.items()))
    for piece in chain(_enclosed("{", members, "}"), ["\n"]):
        yield piece.encode()


def _entries(value: object) -> Iterable[str]:
    if isinstance(value, Mapping):
        return _enclosed("{", ([f"{_text(name)}: {_text(item)}"] for name, item in sorted(value.items())), "}")
    if isinstance(value, list | tuple | Iterator):
        return _enclosed("[", ([_text(item)] for item in value), "]")
    return [_text(value)]


def _enclosed(opening: str, lines: Iterable[Iterable[str]], closing: str) -> Iterator[str]:
    """``lines``: each in pieces."""
    yield opening
    between = "\n "
    for line in lines:
        yield between
        yield from line
        between = ",\n "
    yield closing if between == "\n " else f"\n{closing}"


_text: Final = json.JSONEncoder(sort_keys=True).encode
