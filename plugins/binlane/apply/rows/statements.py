"""Decoded row changes as SQL statements, each with the number of rows that it must find.

Values are literals, not parameters: strings are hexadecimal with their character set in front, so nothing depends on
the connection's character set, on ``sql_mode`` or on quoting. Rows are found by the primary key; without one by all
columns, strings compared as bytes, one row a statement.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from binlane.binlog.row_values import Absent, Change, Image
from binlane.binlog.rows import RowsKind
from binlane.binlog.types.column_types import AS_BYTES, AS_DIGITS, AS_NUMBER, LOGGED_TYPES
from binlane.binlog.types.columns import Column
from binlane.binlog.types.json_binary import JsonDiffs, JsonDocument, json_text
from binlane.binlog.types.literals import Document, identifier, literal, other_documents
from binlane.binlog.types.readers import Value
from binlane.binlog.types.type_codes import ColumnType
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.schema.binding import BoundTable

MAX_ROWS: Final = 500
"""Most rows in a statement; keeps a DELETE's list below the size at which MySQL's range optimizer scans the table."""
MAX_BYTES: Final = 1 << 20
LARGEST_SET: Final = (1 << 53) - 1
"""Larger numbers of a SET are not compared exactly: without an index as doubles, and those beyond all signed integers
are not even found by a key."""


def exact_set(name: str) -> str:
    """A SET column, to be compared with a number beyond ``LARGEST_SET``. All rows are read for it."""
    return AS_NUMBER.format(name)


@dataclass(frozen=True, slots=True)
class RowStatement:
    """One statement of one table."""

    table: TableKey
    sql: str
    kind: RowsKind
    rows: int
    lenient: bool = False
    """Stores an ENUM's number 0, which strict mode refuses."""
    by_default: bool = False
    """Leaves columns that the source filled in to the target's defaults: the session's clock must be the source's."""
    first: tuple[str, ...] = ()
    """What runs before it, and finds a row where this one would change nothing: statements in the place of one another,
    of which the first that the table's CHECKs let pass is enough."""


@dataclass(frozen=True, slots=True)
class StatementBuilder:
    """Builds the statements of one table for a target's flavor."""

    table: BoundTable
    flavor: Flavor
    max_bytes: int = MAX_BYTES
    joins_deletes: bool = True
    """Whether a statement may delete several rows: not where a row that it deletes may carry another one with it."""

    def statements(self, kind: RowsKind, changes: Iterable[Change]) -> Iterator[RowStatement]:
        """Statements for one event's changes, in an order that has the same effect. Raises ValueError for a value
        without an SQL expression."""
        yield from _BUILDERS[kind](self, changes)

    def _inserts(self, changes: Iterable[Change]) -> Iterator[RowStatement]:
        tuples, names, lenient, defaults = [], "", False, False
        for change in changes:
            assert change.after is not None
            pairs = self._written(change.after)
            # all images of an event hold the same columns
            names = ", ".join(identifier(column.label) for column, _ in pairs)
            defaults = len(pairs) < len(self.table.written)
            lenient = lenient or _is_lenient(pairs)
            tuples.append(f"({', '.join(self.literal(column, value) for column, value in pairs)})")
        head = f"INSERT INTO {self.name} ({names}) VALUES "
        for group in chunks(tuples, self.max_bytes):
            yield RowStatement(self.table.key, head + ", ".join(group), RowsKind.INSERT, len(group), lenient, defaults)

    def _deletes(self, changes: Iterable[Change]) -> Iterator[RowStatement]:
        head = f"DELETE FROM {self.name} WHERE "
        keys = []
        for change in changes:
            assert change.before is not None
            condition, by_key = self.condition(change.before)
            if not by_key:
                yield RowStatement(self.table.key, f"{head}{condition} LIMIT 1", RowsKind.DELETE, 1)
                continue
            keys.append(f"({condition})")
        groups = chunks(keys, self.max_bytes) if self.joins_deletes else ([key] for key in keys)
        for group in groups:
            yield RowStatement(self.table.key, head + " OR ".join(group), RowsKind.DELETE, len(group))

    def _updates(self, changes: Iterable[Change]) -> Iterator[RowStatement]:
        for change in changes:
            assert change.before is not None
            assert change.after is not None
            pairs = self._written(change.after)
            condition, by_key = self.condition(change.before)
            sets = [f"{identifier(column.label)} = {self.literal(column, value)}" for column, value in pairs]
            present = {column.number - 1 for column, _ in pairs}
            kept = self.table.renewed - present
            if not sets and not kept:  # generated columns only: nothing to set, but the row must exist
                kept = frozenset({min(self.table.written)})
            sets += [f"{name} = {name}" for number in sorted(kept) for name in [self._column_name(number)]]
            limit = "" if by_key else " LIMIT 1"
            sql = f"UPDATE {self.name} SET {', '.join(sets)} WHERE {condition}{limit}"
            first = self._first(pairs, condition) if by_key and self.flavor is Flavor.MYSQL else ()
            yield RowStatement(self.table.key, sql, RowsKind.UPDATE, 1, _is_lenient(pairs), first=first)

    def _first(self, pairs: Iterable[tuple[Column, Value]], condition: str) -> tuple[str, ...]:
        documents = [
            Document(identifier(column.label), self.literal(column, value), column.nullable)
            for column, value in pairs
            if column.data_type == "json" and value is not None and not isinstance(value, JsonDiffs)
        ]
        if not documents:
            return ()
        lists, where = other_documents(documents)
        kept = "".join(f", {name} = {name}" for name in map(self._column_name, sorted(self.table.renewed)))
        return tuple(f"UPDATE {self.name} SET {sets}{kept} WHERE {condition} AND {where}" for sets in lists)

    @property
    def name(self) -> str:
        """The table's name, quoted for a statement."""
        return self.table.name

    def _column_name(self, number: int) -> str:
        return identifier(self.table.columns[number].label)

    def _written(self, image: Image) -> list[tuple[Column, Value]]:
        return [
            (self.table.columns[number], value)
            for number, value in enumerate(image)
            if number in self.table.written and not isinstance(value, Absent)
        ]

    def condition(self, image: Image) -> tuple[str, bool]:
        """A condition that finds the row, and whether it uses the primary key."""
        key = [(self.table.columns[number], image[number]) for number in self.table.primary_key]
        pairs = [(column, value) for column, value in key if not isinstance(value, Absent)]
        if key and len(pairs) == len(key):
            return " AND ".join(f"{self._found(c, v)} = {self.literal(c, v)}" for c, v in pairs), True
        return " AND ".join(self.same(column, value) for column, value in self._written(image)), False

    def _found(self, column: Column, value: Value) -> str:
        """A column of the key as its value is looked for."""
        is_beyond = isinstance(value, int) and value > LARGEST_SET and column.type_code == ColumnType.SET
        return exact_set(identifier(column.label)) if is_beyond else identifier(column.label)

    def same(self, column: Column, value: Value) -> str:
        """A condition for exactly this value: collations treat different strings as equal, MySQL different numbers of
        JSON documents (1 and 1.0), and zeros with and without a sign. It may be NULL for another value."""
        name = identifier(column.label)
        if value is None:
            return f"{name} IS NULL"  # <=> is not defined for every type
        if column.data_type == "json" and self.flavor is Flavor.MYSQL and isinstance(value, bytes):
            # MySQL stores the value, not its text: compare both in the server's spelling
            spelled = f"CAST({self.literal(column, value)} AS JSON)"
            return f"CAST(CAST({name} AS CHAR) AS BINARY) <=> CAST(CAST({spelled} AS CHAR) AS BINARY)"
        if isinstance(value, JsonDocument) and self.flavor is Flavor.MYSQL:
            # a date and its text look alike
            return f"{same_document(column, value)} AND {name} = {self.literal(column, value)}"
        if isinstance(value, float) and value == 0 and self.flavor is Flavor.MYSQL:
            # MySQL shows the sign of a zero, MariaDB shows and writes both alike
            sign = "" if math.copysign(1, value) < 0 else "NOT "
            return f"{name} <=> {self.literal(column, value)} AND {name} * 1e0 {sign}LIKE '-%'"
        compared = LOGGED_TYPES[column.type_code].compared
        if isinstance(value, bytes) and compared == AS_DIGITS:
            return f"{compared.format(name)} = '{value.hex().upper()}'"
        if isinstance(value, bytes) and compared == AS_BYTES:
            return f"{compared.format(name)} <=> X'{value.hex()}'"
        return f"{compared.format(name) if compared == AS_NUMBER else name} <=> {self.literal(column, value)}"

    def literal(self, column: Column, value: Value) -> str:
        """The value as an SQL expression."""
        return literal(column, value, self.flavor)


_BUILDERS: Final[Mapping[RowsKind, Callable[[StatementBuilder, Iterable[Change]], Iterator[RowStatement]]]] = {
    RowsKind.INSERT: StatementBuilder._inserts,
    RowsKind.UPDATE: StatementBuilder._updates,
    RowsKind.DELETE: StatementBuilder._deletes,
}


def same_document(column: Column, value: JsonDocument) -> str:
    """A condition: MySQL spells the column's document as this one."""
    return hashed(f"CAST({identifier(column.label)} AS CHAR CHARACTER SET utf8mb4)", json_text(value.root).encode())


def hashed(value: str, wanted: bytes) -> str:
    """A condition: an expression has these bytes, of which the statement has the length and the SHA-256."""
    return f"LENGTH({value}) = {len(wanted)} AND SHA2({value}, 256) = '{hashlib.sha256(wanted).hexdigest()}'"


def _is_lenient(pairs: Iterable[tuple[Column, Value]]) -> bool:
    return any(column.type_code == ColumnType.ENUM and value == 0 for column, value in pairs)


def chunks(parts: Iterable[str], max_bytes: int, max_rows: int = MAX_ROWS) -> Iterator[list[str]]:
    """Parts of statements in groups of ``max_rows`` and ``max_bytes`` at most, or of one part."""
    group: list[str] = []
    size = 0
    for part in parts:
        if group and (len(group) == max_rows or size + len(part) > max_bytes):
            yield group
            group, size = [], 0
        group.append(part)
        size += len(part) + 4
    if group:
        yield group
