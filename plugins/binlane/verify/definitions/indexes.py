"""Indexes of servers of other versions or families: their columns, order (DESC), and whether statements use them.

Old servers parse DESC and keep none, and have no invisible (MySQL) or ignored (MariaDB) indexes. Where the other server
has one of these, the index is named as not compared in this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.model import Flavor
from binlane.schema.model import Key, Schema
from binlane.schema.normalize import comparable
from binlane.servers.variables import version_number
from binlane.verify.definitions.mend import nothing, one
from binlane.verify.definitions.parts import Part, listed

_DESC_SINCE: Final = {Flavor.MARIADB: (10, 8, 1), Flavor.MYSQL: (8, 0, 1)}
"""Older ones accept DESC in an index and keep an ascending one."""
_HIDDEN_SINCE: Final = {Flavor.MARIADB: (10, 6, 0), Flavor.MYSQL: (8, 0, 0)}
_HIDDEN: Final = {Flavor.MARIADB: "ignored = 'YES'", Flavor.MYSQL: "is_visible = 'NO'"}
_WORDS: Final[Mapping[Flavor, tuple[str, str]]] = {
    Flavor.MARIADB: ("NOT IGNORED", "IGNORED"),
    Flavor.MYSQL: ("VISIBLE", "INVISIBLE"),
}
_KINDS: Final = {"FULLTEXT": "FULLTEXT ", "SPATIAL": "SPATIAL ", "RTREE": "SPATIAL "}


@dataclass(slots=True)
class IndexFacts:
    """What ``Key`` does not have, of one table's indexes."""

    keeps_order: bool = False
    """Whether the server keeps DESC."""
    hidden: set[str] | None = None
    """Names, in lower case, of the indexes that statements do not use; None: the server has no such indexes."""

    def add_hidden(self, index: str) -> None:
        """Add an index that statements do not use."""
        self.hidden = {*(self.hidden or ()), index.lower()}


def kept_by(schema: Schema) -> IndexFacts:
    """What the server keeps; no index is hidden yet."""
    number = version_number(schema.version)
    hides = number >= _HIDDEN_SINCE[schema.flavor]
    return IndexFacts(number >= _DESC_SINCE[schema.flavor], set() if hides else None)


def hidden_indexes(schema: Schema) -> str:
    """The query for database, table and name of the indexes that statements do not use."""
    condition = "FALSE" if kept_by(schema).hidden is None else _HIDDEN[schema.flavor]
    return (
        "SELECT DISTINCT table_schema, table_name, index_name FROM information_schema.statistics "
        f"WHERE {condition} AND table_schema IN ({{databases}})"
    )


def differing_indexes(
    alter: str, keys: tuple[Sequence[Key], Sequence[Key]], facts: tuple[IndexFacts, IndexFacts], target: Flavor
) -> Iterator[Part]:
    """The indexes that differ between source and target. ``alter``: ALTER TABLE with the target's name of the table."""
    ordered = all(each.keeps_order for each in facts)
    source, theirs = keys if ordered else (tuple(map(_ascending, side)) for side in keys)
    yield from listed(alter, "index", source, theirs, _key_text, "INDEX", _key_left)
    if not ordered:
        yield from _orders(keys, facts)
    yield from _visibility(alter, keys, facts, target)


def _orders(keys: tuple[Sequence[Key], Sequence[Key]], facts: tuple[IndexFacts, IndexFacts]) -> Iterator[Part]:
    """Orders that the other server's version cannot have."""
    for at, side in enumerate(keys):
        other = ("source", "target")[1 - at]
        for key in side:
            if not facts[1 - at].keeps_order and any(part.descending for part in key.columns):
                texts = [_key_text(key, identifier(key.name)), None]
                undecided = f"the {other}'s version keeps no DESC"
                yield Part(f"order of index {identifier(key.name)}", texts[at], texts[1 - at], nothing(""), undecided)


def _visibility(
    alter: str, keys: tuple[Sequence[Key], Sequence[Key]], facts: tuple[IndexFacts, IndexFacts], target: Flavor
) -> Iterator[Part]:
    """Indexes of both servers that the statements of one alone use."""
    for ours, theirs in _of_one_shape(*keys):
        hidden = [
            None if each.hidden is None else key.name.lower() in each.hidden
            for each, key in zip(facts, (ours, theirs), strict=True)
        ]
        what = f"visibility of index {identifier(theirs.name)}"
        if None in hidden and any(hidden):
            side = "source" if hidden[0] is None else "target"
            yield Part(what, None, None, nothing(""), f"the {side}'s version has visible indexes only")
        elif None not in hidden and hidden[0] != hidden[1]:
            words = _WORDS[target]
            mend = one(f"{alter} ALTER INDEX {identifier(theirs.name)} {words[bool(hidden[0])]}")
            yield Part(what, words[bool(hidden[0])], words[bool(hidden[1])], mend)


def _of_one_shape(source: Sequence[Key], target: Sequence[Key]) -> Iterator[tuple[Key, Key]]:
    """The indexes of the source with the target's of the same columns; among several that with the same name."""
    for ours in source:
        same = [each for each in target if _shape(each) == _shape(ours)]
        named = [each for each in same if each.name.lower() == ours.name.lower()]
        if named or len(same) == 1:
            yield ours, (named or same)[0]


def _shape(key: Key) -> str:
    return _key_text(_ascending(key), "").lower()


def _ascending(key: Key) -> Key:
    return replace(key, columns=tuple(replace(part, descending=False) for part in key.columns))


def _key_text(key: Key, name: str) -> str:
    parts = []
    for part in key.columns:
        text = f"({comparable(part.expression or '')})" if part.name is None else identifier(part.name)
        text = text if part.prefix is None else f"{text}({part.prefix})"
        parts.append(f"{text} DESC" if part.descending else text)
    kind = "PRIMARY KEY" if key.primary else "UNIQUE KEY" if key.unique else f"{_KINDS.get(key.kind, '')}KEY"
    return f"{kind} {'' if key.primary else name} ({', '.join(parts)})".replace("  ", " ")


def _key_left(key: Key) -> str:
    if any(part.name is None for part in key.columns):
        return "the two servers print expressions differently"
    return (
        "it may refuse rows with duplicate values"
        if key.unique
        else "it may copy the table"
        if key.kind in _KINDS
        else ""
    )
