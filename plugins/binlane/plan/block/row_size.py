"""Rows of a window as SQL statements: lengths for the precheck, and values that the target may not be able to store.

The precheck compares the longest rows with the target's ``max_allowed_packet``. A rows event in a BINLOG statement
takes 4/3 of its bytes, which the plan job checks itself (``builder.check_fits``). As SQL a value is longer than in
the log: two digits a byte, and MySQL's binary JSON becomes text of up to sixteen times its length. So rows events that
could come near the limit are measured value by value; all others take well under half of it in any spelling. JSON
documents are decoded only if the event holds the byte that marks a value without a JSON type.

From 11.5 on MariaDB has TIMESTAMPs up to 2106 (MDEV-32188). If the target's end in 2038, each value is checked: MariaDB
10.11 refuses a later one in a BINLOG statement (error 1030, engine error 173), and 10.5 silently shows another time.
"""

from __future__ import annotations

from collections.abc import Iterator
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
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.sql.requirements import JSON_TABLE, LATE_TIMESTAMP, UNSPELLED, Requirement

_SHARE: Final = 8
"""A rows event of 1/8 of max_allowed_packet or less is not measured: as two digits a byte it takes 1/4."""
_JSON_SHARE: Final = 48
"""The same with JSON, 1/48: a subquery of 125 bytes (``json_sql``) stands for an empty BLOB of 5, 25 for each byte."""
_COLUMN: Final = 320
"""Upper bound of a column's SQL besides its value: its name twice, a comparison of bytes."""
_VALUE: Final = 40
"""Upper bound of the SQL around a string's digits: its character set, ``X''`` and a comma."""
_OPAQUE: Final = b"\x0f"
"""``JSONB_TYPE_OPAQUE``: a document with a value without a JSON type contains this byte."""
_LAST: Final = "2038-01-19 03:14:07.999999"
_TIMESTAMPS: Final = (ColumnType.TIMESTAMP, ColumnType.TIMESTAMP2)
_ENDS_IN_2106: Final = (11, 5, 1)
_NONE_SO_LONG: Final = 1 << 62
_COMPRESSED: Final = (ColumnType.BLOB_COMPRESSED, ColumnType.VARCHAR_COMPRESSED)


@dataclass(frozen=True, slots=True)
class Widest:
    """Bytes of SQL of the values of a table's longest rows, each with the first seqno of such a row."""

    stored: int
    """Of an after-image: the values in a statement that finds its row by a key."""
    stored_seqno: int
    found: int
    """Of all images of a row: the values in a statement that finds its row by all columns."""
    found_seqno: int

    def __or__(self, other: Widest) -> Widest:
        """The larger of each."""
        stored = max((self.stored, -self.stored_seqno), (other.stored, -other.stored_seqno))
        found = max((self.found, -self.found_seqno), (other.found, -other.found_seqno))
        return Widest(stored[0], -stored[1], found[0], -found[1])


@dataclass(frozen=True, slots=True)
class RowMeter:
    """Measures rows of a ``source`` server as statements for a ``target`` whose max_allowed_packet is ``packet``."""

    source: Flavor
    target: Flavor
    packet: int
    writes: bool = True
    """Rows of some tables are sent as statements."""
    ends_earlier: bool = False
    """TIMESTAMP ends in 2038 on the target and later on the source."""

    def limit(self, table: TableMap) -> int:
        """Rows events of the table with more bytes than this are decoded."""
        if self._may_be_late(table):
            return 0
        if not self.writes:
            return _NONE_SO_LONG
        if table.width * _COLUMN > self.packet // _SHARE or any(code in table.column_types for code in _COMPRESSED):
            return 0
        return self.packet // (_JSON_SHARE if table.json_columns else _SHARE)

    def measure(self, table: TableMap, type_code: int, body: memoryview, seqno: int) -> Widest | None:
        """The longest rows of an event's body; None if the event is too short to matter."""
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
        except (BinlogError, ValueError):  # no SQL literal for a value: the row writer reports it, BINLOG needs none
            stored = found = 2 * length
        return Widest(stored, seqno, found, seqno)

    def asked(self, table: TableMap, type_code: int, body: memoryview) -> frozenset[Requirement]:
        """Features that the values of an event's body need on the target, beyond their column types."""
        return self._late(table, type_code, body) | self._of_documents(table, type_code, body)

    def _may_be_late(self, table: TableMap) -> bool:
        return self.ends_earlier and not set(_TIMESTAMPS).isdisjoint(table.column_types)

    def _late(self, table: TableMap, type_code: int, body: memoryview) -> frozenset[Requirement]:
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
        return frozenset(Requirement(LATE_TIMESTAMP, f"{table.database}.{table.table}.{label}") for label in found)

    def _of_documents(self, table: TableMap, type_code: int, body: memoryview) -> frozenset[Requirement]:
        """Features that JSON documents need on a MySQL target, beyond JSON text."""
        if not self.writes or not table.json_columns or self.target is not Flavor.MYSQL or _OPAQUE not in bytes(body):
            return frozenset()
        columns = columns_of(table, self.source)
        name = f"{table.database}.{table.table}"
        found: set[Requirement] = set()
        try:
            for change in RowDecoder(table, columns, text=False).changes(RowsEvent.parse(type_code, body)):
                for image in (change.before, change.after):
                    for column, value in zip(columns, image or (), strict=False):
                        found.update(_asked(f"{name}.{column.label}", value))
        except BinlogError as exc:
            found.add(Requirement(UNSPELLED, f"{name}.", str(exc)))
        return frozenset(found)


def ends_earlier(source: FormatDescription, target: Flavor, target_version: str) -> bool:
    """Whether TIMESTAMP ends in 2038 on the target and later on the source."""
    if source.flavor is not Flavor.MARIADB or source.version < _ENDS_IN_2106:
        return False
    return target is Flavor.MYSQL or split_version(target_version) < _ENDS_IN_2106


def _asked(subject: str, value: Value | Absent) -> Iterator[Requirement]:
    for document in _documents(value):
        try:
            if needs_json_table(document):
                yield Requirement(JSON_TABLE, subject)
        except ValueError as exc:
            yield Requirement(UNSPELLED, subject, str(exc))


def _documents(value: Value | Absent) -> Iterator[Json]:
    match value:
        case JsonDocument():
            yield value.root
        case JsonDiffs():
            yield from (diff.value.root for diff in value.diffs if isinstance(diff.value, JsonDocument))
