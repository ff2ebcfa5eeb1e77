"""Secondary keys of large tables are built after the rows: sorted, in one pass, instead of row by row."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from binlane.binlog.types.literals import identifier, quoted
from binlane.bootstrap.definition_copy import Definition
from binlane.bootstrap.row_copy import name_of
from binlane.bootstrap.sessions import Session
from binlane.model import TableKey
from binlane.schema.model import Table
from binlane.state.records.bootstraps import Size

_LARGE: Final = 8 << 20
"""Bytes of a table from which on two ALTER TABLE are cheaper."""
_LINE: Final = re.compile(rb"^  ((?:UNIQUE )?KEY `((?:[^`]|``)+)` .*?),?$", re.MULTILINE)


def key_clauses(definition: Definition) -> dict[str, bytes]:
    """The clauses of a table's secondary keys in SHOW CREATE TABLE, by name, in its order."""
    return {found[2].decode().replace("``", "`"): found[1] for found in _LINE.finditer(definition.statement)}


def can_wait(table: Table, size: Size, definition: Definition, parents: Collection[TableKey]) -> bool:
    """Whether all secondary keys can be built after the rows, so that SHOW CREATE TABLE has them in the same order.

    Keys that a foreign key or AUTO_INCREMENT needs have to be there from the beginning. ``parents``: tables to which
    foreign keys refer.
    """
    keys = [key for key in table.keys if not key.primary]
    primary = table.primary_key
    first = None if primary is None else primary.columns[0].name
    return (
        size.bytes >= _LARGE
        and bool(keys)
        and not table.foreign_keys
        and table.key not in parents
        and not table.without_overlaps
        and all(key.kind == "BTREE" and all(part.name is not None for part in key.columns) for key in keys)
        and all(column.name == first for column in table.columns if column.auto_increment)
        and key_clauses(definition).keys() == {key.name for key in keys}
    )


def drop_keys(writer: Session, definition: Definition) -> None:
    """Drop all secondary keys of a table that was just created."""
    clauses = ", ".join(f"DROP KEY {identifier(name)}" for name in key_clauses(definition))
    writer.execute(f"ALTER TABLE {name_of(TableKey(definition.database, definition.name))} {clauses}")


def build_keys(writer: Session, definition: Definition) -> None:
    """Build the secondary keys that the table does not have."""
    place = f"table_schema = {quoted(definition.database)} AND table_name = {quoted(definition.name)}"
    present = {name for (name,) in writer.texts(f"SELECT index_name FROM information_schema.statistics WHERE {place}")}
    clauses = [b"ADD " + clause for name, clause in key_clauses(definition).items() if name not in present]
    if clauses:
        table = name_of(TableKey(definition.database, definition.name)).encode()
        writer.execute(b"ALTER TABLE " + table + b" " + b", ".join(clauses))
