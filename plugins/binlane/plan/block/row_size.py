"""Rows of a window as statements: the widest ones, which the precheck compares with the target's
``max_allowed_packet``, and JSON documents that need more than JSON text, or that no statement gives.

A rows event goes into a BINLOG statement as 4/3 of its bytes, which the filter knows (``blocks.check_fits``). Where
statements stand for rows, a value is longer there than in the log: two digits a byte, and MySQL's binary JSON becomes
text of up to sixteen times its length. So rows events that could come near the limit are measured value by value, and
no other: those take well under half of it, however they are spelled. Documents are looked into only where an event has
the byte that stands for a value without a JSON type.

From 11.5 on MariaDB has TIMESTAMPs up to 2106 (MDEV-32188). For a target that ends in 2038 each is looked at: MariaDB
10.11 refuses one of them in a BINLOG statement (1030, 173), 10.5 shows another time without a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from binlane.binlog.format_description import FormatDescription, split_version
from binlane.binlog.row_values import Absent, Image, RowDecoder
from binlane.binlog.rows import RowsEvent, rows_length
from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.types.json_binary import Json, JsonDiffs, JsonDocument
from binlane.binlog.types.json_sql import needs_json_table
from binlane.binlog.types.literals import literal
from binlane.binlog.types.readers import Value
from binlane.binlog.types.type_codes import ColumnType
from binlane.errors import BinlogError
from binlane.model import Flavor
from binlane.sql.requirements import JSON_TABLE, LATE_TIMESTAMP, UNSPELLED, Demand

_SHARE: Final = 8
"""Of max_allowed_packet, one in so many bytes: a smaller event takes a quarter of it, as two digits a byte."""
_JSON_SHARE: Final = 48
"""With JSON: the 125 bytes of a subquery (``json_sql``) stand for the 5 bytes of an empty BLOB, 25 for each."""
_COLUMN: Final = 320
"""More than a column takes besides its value's bytes: its name twice, a comparison of bytes."""
_VALUE: Final = 40
"""More than stands around the digits of a string: its character set, ``X''`` and a comma."""
_OPAQUE: Final = b"\x0f"
"""``JSONB_TYPE_OPAQUE``, which stands in the document of every such value."""
_LAST: Final = "2038-01-19 03:14:07.999999"
_TIMESTAMPS: Final = (ColumnType.TIMESTAMP, ColumnType.TIMESTAMP2)
_ENDS_IN_2106: Final = (11, 5, 1)
_NONE_SO_LONG: Final = 1 << 62
_COMPRESSED: Final = (ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED)


@dataclass(frozen=True, slots=True)
class Widest:
    """Bytes of SQL that values of a table's widest rows take, each with the first seqno of such a row."""

    stored: int
    """Of an after-image: what a statement holds that finds its row by a key."""
    stored_seqno: int
    found: int
    """Of all images of a row: what it holds if the row is found by all its columns."""
    found_seqno: int

    def __or__(self, other: Widest) -> Widest:
        """The wider of each."""
        stored = max((self.stored, -self.stored_seqno), (other.stored, -other.stored_seqno))
        found = max((self.found, -self.found_seqno), (other.found, -other.found_seqno))
        return Widest(stored[0], -stored[1], found[0], -found[1])


@dataclass(frozen=True, slots=True)
class RowMeter:
    """Measures the rows of a ``source`` server for statements to a ``target`` of one ``packet``, its longest one."""

    source: Flavor
    target: Flavor
    packet: int
    writes: bool = True
    """Statements will stand for rows, of some tables at least."""
    ends_earlier: bool = False
    """The target's TIMESTAMP ends in 2038, the source's does not."""

    def limit(self, table: TableMap) -> int:
        """Bytes of a rows event of the table from which it is looked at."""
        if self._may_be_late(table):
            return 0
        if not self.writes:
            return _NONE_SO_LONG
        if table.width * _COLUMN > self.packet // _SHARE or any(code in table.column_types for code in _COMPRESSED):
            return 0
        return self.packet // (_JSON_SHARE if table.json_columns else _SHARE)

    def measure(self, table: TableMap, type_code: int, body: memoryview, seqno: int) -> Widest | None:
        """The widest rows of an event's body; None if it is too short for any that counts."""
        length = rows_length(type_code, body)
        if not self.writes or length <= self.limit(table):
            return None
        columns = columns_of(table, self.source)
        stored = found = 0

        def size(image: Image | None) -> int:
            given = zip(columns, image or (), strict=False)
            return sum(
                2 * len(value) + _VALUE if isinstance(value, bytes) else len(literal(column, value, self.target))
                for column, value in given
                if not isinstance(value, Absent)
            )

        try:
            decoder = RowDecoder(table, columns, text=False)
            for change in decoder.changes(RowsEvent.parse(type_code, body)):
                after = size(change.after)
                stored, found = max(stored, after), max(found, after + size(change.before))
        except (BinlogError, ValueError):  # a value that has no spelling: its writer names it, and BINLOG needs none
            stored = found = 2 * length
        return Widest(stored, seqno, found, seqno)

    def asked(self, table: TableMap, type_code: int, body: memoryview) -> frozenset[Demand]:
        """What the values of an event's body ask of a target beyond their types."""
        return self._late(table, type_code, body) | self._of_documents(table, type_code, body)

    def _may_be_late(self, table: TableMap) -> bool:
        return self.ends_earlier and not set(_TIMESTAMPS).isdisjoint(table.column_types)

    def _late(self, table: TableMap, type_code: int, body: memoryview) -> frozenset[Demand]:
        if not self._may_be_late(table):
            return frozenset()
        columns = columns_of(table, self.source)
        found = {
            column.label
            for change in RowDecoder(table, columns, text=False).changes(RowsEvent.parse(type_code, body))
            for image in (change.before, change.after)
            for code, column, value in zip(table.column_types, columns, image or (), strict=False)
            if code in _TIMESTAMPS and isinstance(value, str) and value > _LAST
        }
        return frozenset(Demand(LATE_TIMESTAMP, f"{table.database}.{table.table}.{label}") for label in found)

    def _of_documents(self, table: TableMap, type_code: int, body: memoryview) -> frozenset[Demand]:
        """What JSON documents ask of a MySQL target beyond JSON text."""
        if not self.writes or not table.json_columns or self.target is not Flavor.MYSQL or _OPAQUE not in bytes(body):
            return frozenset()
        columns = columns_of(table, self.source)
        name = f"{table.database}.{table.table}"
        found: set[Demand] = set()
        try:
            for change in RowDecoder(table, columns, text=False).changes(RowsEvent.parse(type_code, body)):
                for image in (change.before, change.after):
                    for column, value in zip(columns, image or (), strict=False):
                        found.update(_asked(f"{name}.{column.label}", value))
        except BinlogError as exc:
            found.add(Demand(UNSPELLED, f"{name}.", str(exc)))
        return frozenset(found)


def ends_earlier(source: FormatDescription, target: Flavor, target_version: str) -> bool:
    """Whether the source has TIMESTAMPs beyond 2038 and the target has not."""
    if source.flavor is not Flavor.MARIADB or source.version < _ENDS_IN_2106:
        return False
    return target is Flavor.MYSQL or split_version(target_version) < _ENDS_IN_2106


def _asked(subject: str, value: Value | Absent) -> Iterator[Demand]:
    for document in _documents(value):
        try:
            if needs_json_table(document):
                yield Demand(JSON_TABLE, subject)
        except ValueError as exc:
            yield Demand(UNSPELLED, subject, str(exc))


def _documents(value: Value | Absent) -> Iterator[Json]:
    match value:
        case JsonDocument():
            yield value.root
        case JsonDiffs():
            yield from (diff.value.root for diff in value.diffs if isinstance(diff.value, JsonDocument))
