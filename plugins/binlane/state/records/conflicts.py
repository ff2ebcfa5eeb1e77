"""Conflicts: rows that differed from the log's before-image and were overwritten (``on_conflict = "overwrite"``).

A conflict is recorded in the transaction that overwrites the row and moves the position, so it is listed exactly once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, func, select

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.state.json_columns import optional_value_of, value_of
from binlane.state.tables import UTC_NOW, conflicts

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from binlane.state.positions import PlanKey

_ADD: Final = (
    "INSERT INTO binlane.conflicts (channel, window_id, lane, seqno, database_name, table_name, change_kind, kind, "
    f"row_key, found, at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, {UTC_NOW})"
)
Values = Mapping[str, str | None]
"""A row's values as text, by column; None is NULL, bytes are hexadecimal after 0x."""


class ConflictKind(StrEnum):
    """The row that a logged change found on the target."""

    OVERWRITTEN = "overwritten"
    """An insert, or an update to a new key, found a row with that primary key: the row was replaced."""
    DIFFERENT = "different"
    """The row with the primary key differed from the before-image: an update overwrote it, a delete removed it."""
    EXTRA = "extra"
    """A row with a different primary key had the same values in a unique key: it was removed."""
    MISSING = "missing"
    """There was no row with the primary key: an update inserted its row, a delete did nothing."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One conflict."""

    seqno: int
    table: TableKey
    change: str
    """insert, update or delete."""
    kind: ConflictKind
    key: Values
    """The primary key of the row that was found or missing."""
    found: Values | None
    """The row on the target before the change; None if there was none."""


@dataclass(frozen=True, slots=True)
class ConflictRow:
    """A recorded conflict."""

    conflict: Conflict
    window_id: str
    lane: int
    at: str
    """UTC, by the target's clock."""


def record_conflicts(cursor: Cursor, key: PlanKey, lane: int, found: Iterable[Conflict]) -> None:
    """Record conflicts, in the transaction that moves the position."""
    for one in found:
        place = (key.channel, key.window_id, lane, one.seqno, one.table.database, one.table.table)
        before = None if one.found is None else _text(one.found)
        cursor.execute(_ADD, (*place, one.change, one.kind.value, _text(one.key), before))


def count_conflicts(connection: Connection, channel: str, window_id: str | None = None) -> dict[str, int]:
    """Number of conflicts by kind, of the channel or of one window."""
    query = select(conflicts.c.kind, func.count()).where(conflicts.c.channel == channel).group_by(conflicts.c.kind)
    if window_id is not None:
        query = query.where(conflicts.c.window_id == window_id)
    return {str(kind): int(count) for kind, count in connection.execute(query.order_by(conflicts.c.kind))}


def read_conflicts(connection: Connection, channel: str, *, limit: int | None = None) -> tuple[ConflictRow, ...]:
    """The channel's conflicts, newest first."""
    query = select(conflicts).where(conflicts.c.channel == channel).order_by(conflicts.c.id.desc()).limit(limit)
    return tuple(
        ConflictRow(
            Conflict(
                row.seqno,
                TableKey(row.database_name, row.table_name),
                row.change_kind,
                ConflictKind(row.kind),
                value_of(dict[str, str | None], row.row_key, conflicts.c.row_key),
                optional_value_of(dict[str, str | None], row.found, conflicts.c.found),
            ),
            row.window_id,
            row.lane,
            str(row.at),
        )
        for row in connection.execute(query)
    )


def _text(values: Values) -> str:
    return json.dumps(dict(values), ensure_ascii=False)
