"""``[rename]`` over the parts of a transaction: behind ``decode`` all names are the target's.

The filter has decided before, by the source's names. Row events get a new TABLE_MAP; ``rename_statement`` renames in
statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final

from binlane.binlog.rows_payload import with_body
from binlane.binlog.table_map import TableMap
from binlane.binlog.wire import HEADER
from binlane.model import Flavor, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.parts import FilteredPart, MapPart, Part, RowsPart, StatementPart
from binlane.plan.transaction.rename_statement import Read, Unsafe, renamed_statement
from binlane.schema.letter_case import lower
from binlane.schema.model import Schema
from binlane.shards.renaming import Names, Renaming
from binlane.shards.selection import Selection

__all__ = ["Unsafe", "renamed_parts"]

_NAME: Final = r"`(?:[^`]|``)+`"
_ALIAS: Final = re.compile(rf"(?:{_NAME}|\))\s+(?P<alias>{_NAME})")
"""Of a table in a printed query: ``from `d`.`t` `alias```; a column's stands behind AS."""
_IN_FRONT_OF_TABLE: Final = re.compile(r"\b(?:from|\w*join|references)[\s(]*\Z", re.IGNORECASE)
_OF_DATABASE: Final = re.compile(rf"\s*{_NAME}\s*[.(]")
"""Behind the dot: ``database.table.column``, or a call of a function."""
_NAME_AT = 8
"""Offset of the database's length in a TABLE_MAP's body, behind table id and flags."""


def renamed_parts(
    parts: Sequence[Part], renaming: Renaming, selection: Selection, flavor: Flavor, read: Read
) -> tuple[Part, ...]:
    """The parts of a transaction with the target's names. Raises Unsafe for a part that cannot be renamed exactly.

    Filtered parts keep the source's names, unless the channel takes the table and leaves out some of its rows only.
    """
    return tuple(_renamed(parts, renaming, selection, flavor, read)) if renaming else tuple(parts)


def _renamed(
    parts: Sequence[Part], renaming: Renaming, selection: Selection, flavor: Flavor, read: Read
) -> Iterator[Part]:
    maps: dict[int, MapPart] = {}
    for part in parts:
        match part:
            case MapPart():
                if (why := renaming.refusal(part.table.database)) is not None:
                    raise Unsafe(why)
                maps[id(part)] = _map(part, renaming)
                yield maps[id(part)]
            case RowsPart():
                known = maps.get(id(part.table))
                yield replace(part, table=_map(part.table, renaming) if known is None else known)
            case FilteredPart():
                taken = part.table is not None and selection.table(part.table) is None
                yield replace(part, table=renaming.table(part.table)) if part.table and taken else part
            case StatementPart():
                yield renamed_statement(part, renaming, flavor, read)


def _map(part: MapPart, renaming: Renaming) -> MapPart:
    table = renamed_table(part.table, renaming)
    if table is part.table:
        return part
    return replace(part, table=table, event=renamed_map(part.event, table.raw_database))


def renamed_table(table: TableMap, renaming: Renaming) -> TableMap:
    """A TABLE_MAP with the target's name of its database; the same object if the name stays."""
    name = renaming.target(table.database)
    return table if name == table.database else replace(table, database=name, raw_database=name.encode())


def renamed_map(event: bytes, name: bytes) -> bytes:
    """A TABLE_MAP event, checksum stripped, with another database name."""
    at = HEADER.size + _NAME_AT
    body = event[HEADER.size : at] + bytes([len(name)]) + name + event[at + 1 + event[at] :]
    return with_body(event, body)


def renamed_schema(schema: Schema, names: Names) -> Schema:
    """A server's schema with the other server's names, without objects for which ``names`` has none."""
    databases = {name: other for name in schema.databases if (other := names(name)) is not None}

    def of(key: TableKey) -> TableKey:
        other = databases.get(key.database) or names(key.database)
        return TableKey(key.database if other is None else other, key.table)

    def pairs(found: frozenset[tuple[str, str]]) -> frozenset[tuple[str, str]]:
        return frozenset((databases[name], rest) for name, rest in found if name in databases)

    tables = {
        of(key): replace(
            table,
            key=of(key),
            foreign_keys=tuple(replace(each, parent=of(each.parent)) for each in table.foreign_keys),
        )
        for key, table in schema.tables.items()
        if names(key.database) is not None
    }
    return replace(
        schema,
        databases=frozenset(databases.values()),
        tables=tables,
        views=frozenset(of(key) for key in schema.views if names(key.database) is not None),
        routines=pairs(schema.routines),
        events=pairs(schema.events),
        references=frozenset((of(child), of(parent)) for child, parent in schema.references),
    )


def name_of(renaming: Renaming, database: str) -> str | None:
    """The target's name of a source database; None if it has no valid name of its own there."""
    return renaming.target(database) if renaming.refusal(database) is None else None


def meant(renaming: Renaming, name: str, *, on_target: bool) -> str:
    """What a text that a server stores means by the name of a database, in the target's names.

    The target's own texts mean what they say: a rule is none for them. A name of the source's that another of its
    databases has on the target becomes one that no database has.
    """
    if on_target:
        return name
    found = name_of(renaming, name)
    return f"{name}, which has no name on the target" if found is None else found


def is_alias(text: str, qualifier: re.Match[str]) -> bool:
    """Whether the name in front of a dot is a table's alias there, in a query that a server prints: it names every
    database in front of its tables, and puts no comma between these."""
    name = qualifier[0].rstrip(". \t\n")
    if all(found["alias"] != name for found in _ALIAS.finditer(text)):
        return False
    is_database = _IN_FRONT_OF_TABLE.search(text[: qualifier.start()]) or _OF_DATABASE.match(text[qualifier.end() :])
    return is_database is None


def sources_of(renaming: Renaming, databases: Iterable[str]) -> frozenset[str]:
    """The source's names of the target's ``databases``."""
    return frozenset(name for each in databases if (name := renaming.source(each)) is not None)


def namesakes(renaming: Renaming, present: Iterable[str], databases: Set[str]) -> frozenset[str]:
    """Source databases that would get one of the names ``databases`` on the target; these may be in lower case if the
    target ignores case."""
    return frozenset(name for name in present if any(new in databases for new in _names_of(renaming, name)))


def without_own_name(renaming: Renaming, databases: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Source databases without a name of their own on the target, each with the reason."""
    taken: dict[str, str] = {}
    for name in sorted(databases) if renaming else ():
        if (why := renaming.refusal(name)) is not None:
            yield name, why
            continue
        new = _names_of(renaming, name)[-1]
        other = taken.setdefault(new, name)
        if other != name:
            yield (
                name,
                (f"the databases {other} and {name} would become one, {new}: the target ignores the case of names"),
            )


def _names_of(renaming: Renaming, name: str) -> tuple[str, ...]:
    new = renaming.target(name)
    return (new, lower(new)) if renaming.folds_names else (new,)


def renamed_alterations(altered: Alterations, renaming: Renaming) -> Alterations:
    """Alterations with the target's names."""
    if not renaming:
        return altered
    tables: Mapping[TableKey, tuple[int, ...]] = {renaming.table(key): seqnos for key, seqnos in altered.tables.items()}
    return Alterations(tables, altered.unread)
