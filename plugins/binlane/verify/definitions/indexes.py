"""Indexes of servers of other versions or families: their columns, order (DESC), comments, the parsers of FULLTEXT
ones, and whether statements use them.

Old servers parse DESC and keep none, and have no invisible (MySQL) or ignored (MariaDB) indexes; a parser is a plugin,
which a server may lack. Where the other server has one of these, the index is named as not compared in this.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Final

from binlane.binlog.types.literals import identifier, quoted
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.schema.model import Key, Schema
from binlane.schema.normalize import comparable
from binlane.servers.names import among
from binlane.servers.variables import version_number
from binlane.verify.definitions.mend import Mend, nothing, one, replaced
from binlane.verify.definitions.parts import Part, listed
from binlane.verify.definitions.table_mends import TableTexts

_DESC_SINCE: Final = {Flavor.MARIADB: (10, 8, 1), Flavor.MYSQL: (8, 0, 1)}
"""Older ones accept DESC in an index and keep an ascending one."""
_HIDDEN_SINCE: Final = {Flavor.MARIADB: (10, 6, 0), Flavor.MYSQL: (8, 0, 0)}
_HIDDEN: Final = {Flavor.MARIADB: "ignored = 'YES'", Flavor.MYSQL: "is_visible = 'NO'"}
_WORDS: Final[Mapping[Flavor, tuple[str, str]]] = {
    Flavor.MARIADB: ("NOT IGNORED", "IGNORED"),
    Flavor.MYSQL: ("VISIBLE", "INVISIBLE"),
}
_PARSER: Final = re.compile(
    r"FULLTEXT KEY `(?P<name>(?:[^`]|``)+)` .*? WITH PARSER `(?P<parser>(?:[^`]|``)+)`", re.DOTALL
)
_KINDS: Final = {"FULLTEXT": "FULLTEXT ", "SPATIAL": "SPATIAL ", "RTREE": "SPATIAL "}


@dataclass(slots=True)
class IndexFacts:
    """What ``Key`` does not have, of one table's indexes."""

    keeps_order: bool = False
    """Whether the server keeps DESC."""
    hidden: set[str] | None = None
    """Names, in lower case, of the indexes that statements do not use; None: the server has no such indexes."""

    comments: dict[str, str] = field(default_factory=dict)
    """By the index's name in lower case, if it has one."""
    parsers: frozenset[str] = frozenset()
    """The FULLTEXT parsers that the server has besides its own, in lower case."""

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
        f"WHERE {condition} AND {among('table_schema', '{databases}')}"
    )


INDEX_COMMENTS: Final = (
    "SELECT DISTINCT table_schema, table_name, index_name, index_comment FROM information_schema.statistics "
    f"WHERE index_comment <> '' AND {among('table_schema', '{databases}')}"
)
PARSERS: Final = (
    "SELECT LOWER(plugin_name) FROM information_schema.plugins WHERE plugin_type = 'FTPARSER' "
    "AND plugin_status = 'ACTIVE'"
)


def differing_indexes(
    alter: str,
    keys: tuple[Sequence[Key], Sequence[Key]],
    facts: tuple[IndexFacts, IndexFacts],
    target: Flavor,
    texts: TableTexts,
) -> Iterator[Part]:
    """The indexes that differ between source and target. ``alter``: ALTER TABLE with the target's name of the table."""
    ordered = all(each.keeps_order for each in facts)
    source, theirs = keys if ordered else (tuple(map(_ascending, side)) for side in keys)
    parsers = _parsers(keys, texts)
    told = {
        key: _told(each.comments.get(key.name.lower()), parser if parser in facts[1].parsers else None)
        for side, each, named in zip((theirs, source), facts[::-1], parsers[::-1], strict=True)
        for key in side
        for parser in [named.get(key.name.lower())]
    }

    def text(key: Key, name: str) -> str:
        return _key_text(key, name) + (told[key] if name else "")

    yield from listed(alter, "index", source, theirs, text, "INDEX", _key_left)
    if not ordered:
        yield from _orders(keys, facts)
    yield from _visibility(alter, keys, facts, target)
    yield from _details(alter, keys, facts, parsers, target)


def _parsers(keys: tuple[Sequence[Key], Sequence[Key]], texts: TableTexts) -> tuple[dict[str, str], dict[str, str]]:
    """The parsers of both servers' FULLTEXT indexes, by the index's name; in lower case. Only the text of a table has
    them."""
    if not any(key.kind == "FULLTEXT" for side in keys for key in side):
        return {}, {}
    ours, theirs = (
        {
            line["name"].replace("``", "`").lower(): line["parser"].replace("``", "`").lower()
            for line in filter(None, map(_PARSER.match, side.values()))
        }
        for side in texts.parts
    )
    return ours, theirs


def _told(comment: str | None, parser: str | None) -> str:
    return (f" WITH PARSER {identifier(parser)}" if parser else "") + (f" COMMENT {quoted(comment)}" if comment else "")


def _details(
    alter: str,
    keys: tuple[Sequence[Key], Sequence[Key]],
    facts: tuple[IndexFacts, IndexFacts],
    parsers: tuple[dict[str, str], dict[str, str]],
    target: Flavor,
) -> Iterator[Part]:
    """Comments and parsers of the indexes that both servers have."""
    for pair in _of_one_shape(*keys):
        ours, theirs = pair
        names = [key.name.lower() for key in pair]
        comments = [each.comments.get(name) for each, name in zip(facts, names, strict=True)]
        found = [each.get(name) for each, name in zip(parsers, names, strict=True)]
        what = "primary key" if theirs.primary else f"index {identifier(theirs.name)}"
        for at, parser in enumerate(found):
            if parser is not None and parser not in facts[1 - at].parsers:
                lacks = f"the {('source', 'target')[1 - at]} has no parser {parser}"
                yield Part(f"parser of {what}", parser, None, nothing(""), lacks)
                found = [found[1]] * 2
                break
        if comments[0] != comments[1] or found[0] != found[1]:
            spelled = [
                _key_text(key, identifier(theirs.name)) + _told(comment, parser)
                for key, comment, parser in zip(pair, comments, found, strict=True)
            ]
            # an index that is made anew is visible
            hides = names[0] in (facts[0].hidden or ()) and facts[1].hidden is not None
            dropped = "PRIMARY KEY" if theirs.primary else f"INDEX {identifier(theirs.name)}"
            made = f"{spelled[0]} {_WORDS[target][1]}" if hides else spelled[0]
            statements = replaced(alter, dropped, made, apart=found[0] != found[1])
            yield Part(what, spelled[0], spelled[1], Mend(statements, _key_left(ours)))


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
