"""Where the tables of divided shards go: rows by primary key, or the whole table to one lane; each with its reason.

By key is right only if two changes of one row always have the same bytes in the primary key, and no change of another
row matters to them. So equal keys must be equal bytes on the target, no other unique key may exist, and every row
image of the window must hold the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from binlane.binlog.types.sql_types import sql_type
from binlane.binlog.types.sql_values import INTEGER
from binlane.choices import Divide
from binlane.model import TableKey
from binlane.plan.block.reducible_tables import Exclusions, why_not_folded
from binlane.plan.division import BY_NAME, Placement, table_lane
from binlane.plan.segment.logged_tables import LoggedTable
from binlane.plan.settings import PlanSettings
from binlane.plan.window.scanned import ScannedWindow
from binlane.schema.dependencies import SchemaFacts
from binlane.schema.model import Schema, Table

_BY_BYTES: Final = frozenset(
    {"decimal", "date", "time", "datetime", "timestamp", "year", "enum", "set", "bit", "binary", "varbinary"}
)
"""Types, besides integers, of which the servers compare the bytes that they log."""
_JOINS: Final = "foreign keys join other tables to it"
_BY_KEY: Final = "its primary key is compared as bytes, and it has no other unique key"
_WIDE: Final = frozenset({"mediumint", "int", "bigint"})
"""Integers that have many values."""
_MANY_BYTES: Final = 16 << 20
"""Of inserted rows: a table that grows by so much in a window has its new rows in many pages, so ranges of its key keep
all lanes busy."""


def placements(
    scans: Sequence[ScannedWindow], settings: PlanSettings, schema: Schema, facts: SchemaFacts, excluded: Exclusions
) -> tuple[dict[TableKey, Placement], dict[TableKey, int]]:
    """The tables that foreign keys join and, if rows go by key, each table of the window's row events; and
    ``Division.ranged``.

    ``facts``: the schema at any time of the window. Names as ``facts`` compares them.
    """
    found: dict[TableKey, Placement] = {}
    ranged: dict[TableKey, int] = {}
    for key, first in facts.table_groups.items():
        why = _JOINS if key == first else f"foreign keys join it to {first}"
        found[key] = Placement(table_lane(first, settings.lanes), why)
    if settings.divide != Divide.KEY:
        return found, ranged
    hides_rows = any(scan.hides_rows for scan in scans)
    for key, logged in _logged(scans).items():
        name = facts.letter_case.table(key)
        if name in found:
            continue
        reason = _HIDDEN if hides_rows else why_not_by_key(schema, excluded, key, logged)
        if reason is not None:
            found[name] = Placement(table_lane(name, settings.lanes), f"{BY_NAME}: {reason}")
            continue
        column = ranged_column(schema.tables[key], logged)
        if column is None:
            found[name] = Placement(None, _BY_KEY)
            continue
        ranged[name] = column
        of = schema.tables[key].columns[column].name
        found[name] = Placement(None, f"{_BY_KEY}; it has many new rows, so neighbouring values of {of} go together")
    return found, ranged


_HIDDEN: Final = "the window has compressed transactions that are read one by one"


def _logged(scans: Sequence[ScannedWindow]) -> Mapping[TableKey, LoggedTable]:
    found: dict[TableKey, LoggedTable] = {}
    for scan in scans:
        for key, logged in scan.tables.items():
            found[key] = found[key] | logged if key in found else logged
    return found


def why_not_by_key(schema: Schema, excluded: Exclusions, key: TableKey, logged: LoggedTable) -> str | None:
    """Why the rows of a table must not go by primary key; None if they may."""
    if key not in schema.tables:
        return "it is not in the target's schema"
    table = schema.tables[key]
    reason = why_not_folded(schema, excluded, key) or _keys_reason(table)
    if reason is not None:
        return reason
    if not logged.has_columns(len(table.columns)):
        return "the log has other columns than the target, or they change in the window"
    return None if logged.is_whole else "the log has rows that lack columns, or are compressed"


def ranged_column(table: Table, logged: LoggedTable) -> int | None:
    """The place of the column whose neighbouring values go to one lane (``Division.ranged``), of a table that goes by
    key; None: each key goes by itself."""
    primary = table.primary_key
    if primary is None or logged.inserted_bytes < _MANY_BYTES:
        return None
    last = primary.columns[-1].name
    for place, column in enumerate(table.columns):
        if last is not None and column.name.lower() == last.lower():
            return place if column.data_type in _WIDE else None
    return None


def _keys_reason(table: Table) -> str | None:
    other = next((key.name for key in table.keys if key.unique and not key.primary), None)
    if other is not None:
        return f"it has another unique key, {other}"
    columns = {column.name.lower(): column for column in table.columns}
    primary = table.primary_key
    for part in () if primary is None else primary.columns:
        column = columns.get((part.name or "").lower())
        if column is None or column.generated is not None:
            return "its primary key has a generated column"
        if part.prefix is not None:
            return f"its primary key has a prefix of {column.name}"
        is_integer = sql_type(column.data_type).values is INTEGER
        if column.charset is not None or not (is_integer or column.data_type in _BY_BYTES):
            return f"its primary key has {column.name}, of type {column.data_type}: equal values may differ in bytes"
    return None
