"""The GRANT statements for a channel's two accounts: ``binlane grants``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.config import ChannelConfig
from binlane.precheck.account.privileges import ALL, DDL, EVERYWHERE, Need, Order, Revocation, scope_of
from binlane.rename_rules import lower
from binlane.shards.renaming import Renaming
from binlane.shards.selection import split_pattern

_OWN: Final = ("mysql", "performance_schema", "sys")
OF_THE_CHANNEL: Final = frozenset({"*"})
"""Stands for the channel's databases in a ``Need``."""
_PATTERN: Final = re.compile(r"[*?_%\\]")
_LIKE: Final = {"*": "%", "?": "_", "_": r"\_", "%": r"\%", "\\": r"\\"}
_WILD: Final = re.compile(r"[*?\[]")


def scopes_of(
    channel: ChannelConfig, renaming: Renaming | None = None, *, has_patterns: bool = True
) -> tuple[str, ...]:
    """The databases that the channel takes, as GRANT names them; ``*.*`` where GRANT has no pattern for them.

    ``renaming``: for the target; ``has_patterns``: of the server (``Greeting.has_patterns``).
    """
    tables = (split_pattern(each)[0] for each in channel.filter.include_tables)
    patterns = channel.filter.include_databases or tuple(dict.fromkeys(tables))
    if not patterns or any("[" in each or each.strip("*") == "" for each in patterns):
        return (EVERYWHERE,)
    if (renaming or not has_patterns) and any(_WILD.search(each) for each in patterns):
        return (EVERYWHERE,)
    if renaming:
        patterns = tuple(map(renaming.target, patterns))
    if not has_patterns:
        return tuple(scope_of(each, has_wildcards=False) for each in patterns)
    return tuple(f"{identifier(_PATTERN.sub(lambda found: _LIKE[found[0]], each))}.*" for each in patterns)


def servers_own(channel: ChannelConfig) -> tuple[tuple[str, str], ...]:
    """The patterns of the filter that match databases of the servers themselves, each with such a database: what GRANT
    has for the pattern includes it, although the channel never takes it."""
    tables = (split_pattern(each)[0] for each in channel.filter.include_tables)
    patterns = channel.filter.include_databases or tuple(dict.fromkeys(tables))
    return tuple((each, own) for each in patterns for own in _OWN if fnmatchcase(own, lower(each)))


def orders(needs: Iterable[Need], scopes: Iterable[str], account: str) -> Iterator[tuple[Order, str]]:
    """A statement for each scope and reason, with the reason, in the order of ``needs``: those for everywhere first."""
    grouped: dict[tuple[str, str], list[str]] = {}
    everywhere: set[str] = set()
    for need in sorted(needs, key=lambda one: _places(one, scopes) != (EVERYWHERE,)):
        for scope in _places(need, scopes):
            if everywhere.isdisjoint((need.name, *need.substitutes)):
                grouped.setdefault((scope, need.why), []).append(need.name)
            if scope == EVERYWHERE:
                everywhere.add(need.name)
    for (scope, why), names in grouped.items():
        yield Order(tuple(dict.fromkeys(names)), scope, account), why


def taken_back(needs: Iterable[Need], database: str, account: str) -> Iterator[Revocation]:
    """What changes a database, of the privileges that ``needs`` gives on all: a partial revoke of MySQL."""
    names = tuple(dict.fromkeys(need.name for need in needs if need.databases == OF_THE_CHANNEL and need.name in DDL))
    if names:
        yield Revocation(names, scope_of(database), account)


def _places(need: Need, scopes: Iterable[str]) -> tuple[str, ...]:
    if need.databases == OF_THE_CHANNEL:
        return tuple(scopes)
    return (EVERYWHERE,) if need.databases is None else tuple(map(scope_of, sorted(need.databases)))


def merged(given: Iterable[Order | str]) -> Iterator[Order | str]:
    """The orders of one scope as one, without what an order for everywhere gives; other statements as they are, once
    each."""
    names: dict[tuple[str, str, bool], list[str]] = {}
    others: dict[str, None] = {}
    for each in given:
        if isinstance(each, Order):
            names.setdefault((each.scope, each.account, each.with_option), []).extend(each.names)
        else:
            others[each] = None
    for (scope, account, with_option), found in names.items():
        everywhere = () if scope == EVERYWHERE else names.get((EVERYWHERE, account, with_option), ())
        lacking = [] if ALL in everywhere else [each for each in found if each not in everywhere]
        every = [ALL] if ALL in lacking else lacking
        if every:
            yield Order(tuple(dict.fromkeys(every)), scope, account, with_option)
    yield from others
