"""Geometries of zero bytes in row events: MySQL writes such rows from BINLOG, and then answers with an error.

A server stores such a value where a row has none for a geometry that is NOT NULL (LOAD XML .. IGNORE). Its replica
writes the row events and goes on; BINLOG writes them all and answers 1416, once for each such value that it has read.
(Tried on MySQL 9.7 with insertions, updates and deletions, several events in a statement, and tables with and without
keys.) Both families store no other value that this check refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pymysql

from binlane.apply.session.retry_verdicts import NO_GEOMETRY
from binlane.binlog.row_values import Image, RowDecoder
from binlane.binlog.rows import COMPRESSED_ROWS
from binlane.binlog.rows_payload import parse_rows, parse_table_map, rows_with_tables
from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.types.columns import Column
from binlane.binlog.types.type_codes import ColumnType
from binlane.model import Flavor

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_TYPE_AT: Final = 4
_STOPPED: Final = 1105
"""What BINLOG adds to the error of an event that it could not write."""
_MOST_READS: Final = 2
"""How often a server reads an image before a change: twice where it finds the row without a unique key."""


def explains_error(session: LaneSession, payload: bytes, source: Flavor) -> bool:
    """Whether the errors of the BINLOG statement that has just ended with ``NO_GEOMETRY`` are those of empty geometries
    and of nothing else. Then it has written its rows.

    Raises an error of another kind that is behind them, which has stopped the statement. The Handler counters do not
    show that: they count a row that was refused, too.
    """
    # in this order: the query for their number empties the list
    listed = [(int(code), str(text)) for _, code, text in session.rows("SHOW ERRORS")]
    errors = int(session.value("SELECT @@session.error_count"))
    for code, text in listed:
        if code not in (NO_GEOMETRY, _STOPPED):
            raise pymysql.err.OperationalError(code, text)
    # the list ends at max_error_count
    if len(listed) != errors or any(code != NO_GEOMETRY for code, _ in listed):
        return False
    before, after = _empty(payload, source)
    return 0 < before + after <= errors <= _MOST_READS * before + after


def _empty(payload: bytes, source: Flavor) -> tuple[int, int]:
    """The number of empty geometries in the images before and after the changes of a self-contained payload."""
    before = after = 0
    for (table, columns), event in rows_with_tables(payload, lambda event: _table(event, source)):
        geometries = [number for number, column in enumerate(columns) if column.type_code == ColumnType.GEOMETRY]
        if not geometries or event[_TYPE_AT] in COMPRESSED_ROWS:
            continue
        for change in RowDecoder(table, columns).changes(parse_rows(event)):
            before += _count(change.before, geometries)
            after += _count(change.after, geometries)
    return before, after


def _table(event: bytes, source: Flavor) -> tuple[TableMap, tuple[Column, ...]]:
    table = parse_table_map(event, source)
    return table, columns_of(table, source)


def _count(image: Image | None, geometries: Sequence[int]) -> int:
    return 0 if image is None else sum(image[number] == b"" for number in geometries)
