"""Writes rows by INSERT, UPDATE and DELETE, for servers where the account must not send BINLOG statements.

Blocks and positions are the same; the rows are decoded here. Statements fire triggers, so the precheck refuses tables
with triggers unless the channel names them. Every statement is verified by its affected rows (invariant 5): the
connection counts found rows (``CLIENT.FOUND_ROWS``), so an UPDATE that changes nothing counts as well. Where the order
of the changes allows it, a statement has many rows (``multi_row``).
"""

from __future__ import annotations

import re
import secrets
import struct
from calendar import isleap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, ClassVar, Final

import pymysql
from pymysql.constants import CLIENT

from binlane.apply.rows.computed_values import computed_otherwise
from binlane.apply.rows.multi_row import MultiRowChanges, MultiRowTable, stretches
from binlane.apply.rows.sequences import with_whole_sequences
from binlane.apply.rows.statements import MAX_BYTES, RowStatement, StatementBuilder
from binlane.apply.rows.table_guard import users_tables
from binlane.apply.session.held_table import hold_table
from binlane.apply.session.retry_verdicts import NO_GEOMETRY, Verdict, error_code, judge
from binlane.binlog.row_values import RowDecoder
from binlane.binlog.rows import RowsEvent, RowsFlag, RowsKind, checks_off
from binlane.binlog.rows_payload import DEFINITION, parse_rows, parse_table_map, rows_with_tables
from binlane.binlog.table_map import TableMap
from binlane.binlog.types.columns import Column
from binlane.binlog.vector.arrays import Bytes
from binlane.binlog.vector.column_literals import ColumnLiterals
from binlane.binlog.vector.frames import Frames, frame, index_rows
from binlane.binlog.wire import HEADER
from binlane.errors import ApplyError, DriftError, TableMismatchError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, RowCounts, SessionContext, TableKey, plural
from binlane.schema.binding import BoundTable, bind
from binlane.schema.model import Table
from binlane.schema.session_columns import computed
from binlane.sessions.pins import USUAL_MODE
from binlane.sql.sql_modes import INVALID_DATES, evaluated

if TYPE_CHECKING:
    from binlane.apply.rows.table_guard import TableGuard
    from binlane.apply.session.connection import LaneSession

_USUAL_DATES: Final = "NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION"
"""Zero is an AUTO_INCREMENT value, and zero dates are valid dates. For tables of which an expression would take 31
February for a date, too, which most sessions do not allow."""
_MODE: Final = f"{_USUAL_DATES},{INVALID_DATES}"
"""31 February is a valid date, as it may be in the log."""
_STRICT: Final = f"STRICT_ALL_TABLES,{_MODE}"
_ENTER: Final = f"time_zone = '+00:00', sql_mode = '{_STRICT}'"
_LEAVE: Final = "time_zone = DEFAULT, foreign_key_checks = 1, unique_checks = 1"
_CONSTRAINTS: Final = ", check_constraint_checks = "
"""MariaDB: the source has checked the constraints, or its session has switched them off."""
_NO_DAY: Final = re.compile(r"'(\d{4})-(?:02-(29|3[01])|(?:0[469]|11)-31)")
"""31 February, and 29 February of any year. Texts are hexadecimal, so only dates are found."""
_NULL_NOT_ALLOWED: Final = 1048
_NO_PRIVILEGE: Final = 1227
_TRUNCATED: Final = 1265
_NO_DEFAULT: Final = 1364
_CHECK_VIOLATED: Final = 3819
_NO_DATE: Final = 1292
_CHANGED: Final = frozenset({_NULL_NOT_ALLOWED, 1264, _TRUNCATED, _NO_DATE, _NO_DEFAULT, 1366, 1406})
"""Warnings that a value is not stored as given: errors in strict mode, which is off for an ENUM's number 0 and for
images without all columns."""
_BY_EVENTS: Final = 'let the channel write rows with BINLOG (apply.writer = "binlog"), then run it again'
_OR_CORRECT: Final = (
    "correct the target's rows by hand, as the source had them before this transaction, let the channel send row "
    'events (apply.writer = "binlog", apply.on_conflict = "stop"), then run it again'
)
_BY_HAND: Final = (
    "make the transaction's changes on the target by hand, with the source's values, and leave it out (binlane skip)"
)
_NAME: Final = "block"
_SAVEPOINT: Final = f"binlane_rows_{secrets.token_hex(16)}"
"""A name that no savepoint of the log's has."""


@dataclass(frozen=True, slots=True)
class KnownTable:
    """The table of a TABLE_MAP, bound to the target's table."""

    logged: TableMap
    bound: BoundTable
    decoder: RowDecoder
    target: Table
    many: MultiRowTable | None
    """How many of its rows are written by a statement; None for tables that are written event by event."""


@dataclass(slots=True)
class SqlRows:
    """Writes decoded rows."""

    many_rows: ClassVar[bool] = True
    """Whether rows of different events may share a statement."""
    session: LaneSession
    guard: TableGuard | None
    _known: dict[tuple[bytes, int], KnownTable] = field(default_factory=dict)
    """By TABLE_MAP without its table id, and the number of the table's definition in the window."""
    _literals: dict[tuple[Column, ...], ColumnLiterals] = field(default_factory=dict)
    """By columns: tables of tenants have the same."""
    _checks_off: int = -1
    """The checks that the session has switched off, as ``checks_off``; -1: not known."""
    _mode: str = ""
    """The session's ``sql_mode``, since ``enter``."""
    _sees_dates: dict[TableKey, bool] = field(default_factory=dict)
    """Whether an expression of a table may see ``INVALID_DATES``."""
    _allows_dates: bool = False
    """Whether the source's session has allowed such dates, as far as the log tells."""
    _same_values: set[tuple[int, int | None, str | None]] = field(default_factory=set)
    """Tables, by ``id`` in ``_known``, with the modes and the time zone of rows that statements write as the source
    has computed them."""
    _held: set[TableKey] = field(default_factory=set)
    """Tables that no other session can replace until the transaction's end."""

    def __post_init__(self) -> None:
        if self.guard is None:
            raise ApplyError("rows can be written by SQL only where the target's tables can be read")
        if not self.session.connection.client_flag & CLIENT.FOUND_ROWS:
            raise ApplyError("the connection counts changed rows, not found ones: connect with CLIENT.FOUND_ROWS")

    def prepare(self, format_event: bytes) -> None:
        """Allow old sql_modes; outside of a transaction, since MySQL refuses the setting inside one (1766)."""
        try:
            self.session.act_as_replica()
        except pymysql.err.OperationalError as exc:
            # then the window holds rows only: with statements, the precheck demands the privilege
            if error_code(exc) != _NO_PRIVILEGE:
                raise

    def forget_tables(self) -> None:
        """Read tables anew before their next row."""
        assert self.guard is not None
        self.guard.forget_tables()
        self._known.clear()
        self._same_values.clear()

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        """Write ROWS items; returns their row changes, which the affected rows must confirm.

        Raises DriftError for a missing row or a value that the target changes, TableMismatchError, ApplyError for
        values that no statement can write, and the driver's errors.
        """
        self.enter()
        written = RowCounts()
        for item in items:
            mode = None if item.context is None else item.context.sql_mode
            self._allows_dates = mode is not None and INVALID_DATES in evaluated(mode)
            payload = with_whole_sequences(self.session, item.payload)
            users_tables(payload, self.guard)
            assert self.guard is not None
            self.guard.check(payload, seqno)
            counted = self._item(payload, seqno, item.context)
            if counted != item.rows:
                raise DriftError(f"expected {item.rows} in an item of the block, decoded {counted}")
            written += counted
        self.leave()
        return written

    def enter(self) -> None:
        """Set the session up for statements that write logged rows."""
        self._checks_off, self._mode = -1, _STRICT
        self._held.clear()
        self.session.execute(f"SET SESSION {_ENTER}{f'{_CONSTRAINTS}0' if self._on_mariadb else ''}")

    def leave(self) -> None:
        """Undo ``enter``; not needed after an error, which ends the transaction and the attempt."""
        own = f"{_CONSTRAINTS}1" if self._on_mariadb else ""
        self.session.execute(f"SET SESSION {_LEAVE}{own}, sql_mode = '{USUAL_MODE[self.session.flavor]}'")

    @property
    def _on_mariadb(self) -> bool:
        return self.session.flavor is Flavor.MARIADB

    def _item(self, payload: bytes, seqno: int, context: SessionContext | None) -> RowCounts:
        frames = frame(payload, 0, 0)
        index = index_rows(frames, _NAME)
        tables = [self._table(_bytes_of(payload, frames, number), seqno) for number in index.first.tolist()]
        for table in tables:
            self._require_same_values(table, context, seqno)
        many = [table.many if self.many_rows else None for table in tables]
        counted = RowCounts()
        for part in stretches(frames, index, [table.logged for table in tables], many, self._room):
            if part.changes is not None and self._write_many(part.changes, frames.data):
                counted += part.changes.counts
                continue
            for number in part.events.tolist():
                event = _bytes_of(payload, frames, number)
                rows = parse_rows(event)
                self._set_checks(checks_off(rows.kind, rows.flags))
                table = tables[int(index.number[number])]
                counted += self.write_event(table, rows, HEADER.unpack_from(event)[0])
        return counted

    def _require_same_values(self, table: KnownTable, context: SessionContext | None, seqno: int) -> None:
        """Raises TableMismatchError for a table whose rows statements would write with other values."""
        guard = self.guard
        assert guard is not None
        modes = (None, None) if context is None else (context.sql_mode, context.time_zone)
        if (id(table), *modes) in self._same_values:
            return
        ours, unsafe = self.session.flavor, guard.allow_unsafe
        if (what := computed_otherwise(table.target, context, guard.source, ours, allow_unsafe=unsafe)) is not None:
            raise TableMismatchError(
                f"{table.target.key}: statements would give rows of seqno {seqno} other values than the source has: "
                f"{what}; none of the rows was written: {self._way_on(_OR_CORRECT)}"
            )
        self._same_values.add((id(table), *modes))

    def _write_many(self, changes: MultiRowChanges, data: Bytes) -> bool:
        """Write the changes with few statements; False, with nothing written, if they have to be written event by
        event, which finds the row that does not fit and says so."""
        try:
            statements = changes.statements(data)
        except (ValueError, struct.error):
            return False
        if any(map(self._is_mixed, statements)):
            return False
        self.session.execute(f"SAVEPOINT {_SAVEPOINT}")
        try:
            for statement in statements:
                self._set_checks(checks_off(statement.kind, changes.flags))
                self._run(statement, 0)
        except (ApplyError, DriftError, pymysql.err.MySQLError) as exc:
            if isinstance(exc, pymysql.err.MySQLError) and judge(exc) is Verdict.RETRY:
                raise
            self.session.execute(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
            return False
        return True

    def events(self, payload: bytes, seqno: int) -> Iterator[tuple[KnownTable, RowsEvent, int]]:
        """The rows events of a self-contained payload, each with its table and its time, Unix seconds.

        Raises TableMismatchError for a table that the target does not have.
        """
        for table, event in rows_with_tables(payload, lambda table_map: self._table(table_map, seqno)):
            yield table, parse_rows(event), HEADER.unpack_from(event)[0]

    def write_event(self, table: KnownTable, event: RowsEvent, timestamp: int) -> RowCounts:
        """Write one rows event of a table; returns its row changes. ``timestamp``: the event's, Unix seconds."""
        counted = RowCounts()
        self._check_triggers(table.target)
        if table.target.system_versioned:
            raise TableMismatchError(
                f"{table.target.key}: a DDL of this window has given it system versioning, and statements would write "
                f"another history than the source's; none of the rows was written: {self._way_on(_BY_EVENTS)}"
            )
        try:
            for statement in self._statements(table, event):
                self._run(statement, timestamp)
                counted += ROW_COUNTS[statement.kind](statement.rows)
        except ValueError as exc:
            raise no_expression(table, exc) from exc
        except pymysql.err.MySQLError as exc:
            if (why := never_by_statements(error_code(exc), table.target)) is None:
                raise
            raise TableMismatchError(
                f"{table.target.key}: {why}; none of the rows was written: {self._way_on(_BY_EVENTS)}"
            ) from exc
        return counted

    def _way_on(self, by_events: str) -> str:
        """What to do about rows that no statement can write. Between the families some columns have no events, whatever
        the channel's writer is (``FamilyRows``)."""
        assert self.guard is not None
        return by_events if self.guard.source is self.session.flavor else _BY_HAND

    def _statements(self, table: KnownTable, event: RowsEvent) -> Iterable[RowStatement]:
        builder = self.builder(table)
        statements = builder.statements(event.kind, table.decoder.changes(event))
        if not self._sees_dates[table.bound.key]:
            return statements
        found = tuple(statements)
        if not any(map(self._is_mixed, found)):
            return found
        return replace(builder, max_bytes=0).statements(event.kind, table.decoder.changes(event))

    def _is_mixed(self, statement: RowStatement) -> bool:
        """Whether a statement may have rows of several sessions, of which one has allowed invalid dates."""
        sees = self._sees_dates.get(statement.table, False) and not self._allows_dates
        return sees and statement.rows > 1 and _has_invalid_date(statement.sql)

    def _check_triggers(self, target: Table) -> None:
        """The precheck has seen the triggers from before the window; a DDL of the window may have created others."""
        assert self.guard is not None
        if target.triggers and str(target.key) not in self.guard.allow_triggers:
            names = ", ".join(trigger.name for trigger in target.triggers)
            raise TableMismatchError(
                f"{target.key}: its triggers would fire ({names}), although the log already contains their "
                "effects; none of the rows was written: drop them on the target, or name the table in "
                "apply.allow_triggers"
            )

    def builder(self, table: KnownTable) -> StatementBuilder:
        """The builder of the table's statements, each short enough for the target."""
        # of rows that refer to each other the log's order decides which one is deleted and which one is carried along
        carries = any(key.on_delete == "CASCADE" for key in table.target.foreign_keys)
        return StatementBuilder(table.bound, self.session.flavor, self._room, joins_deletes=not carries)

    @property
    def _room(self) -> int:
        """Usual bytes of a statement."""
        return min(MAX_BYTES, self.session.max_allowed_packet // 2)

    def _set_checks(self, off: int) -> None:
        if off == self._checks_off:
            return
        foreign = int(not off & RowsFlag.NO_FOREIGN_KEY_CHECKS)
        unique = int(not off & RowsFlag.RELAXED_UNIQUE_CHECKS)
        self.session.execute(f"SET SESSION foreign_key_checks = {foreign}, unique_checks = {unique}")
        self._checks_off = off

    def _run(self, statement: RowStatement, timestamp: int) -> None:
        affected = self.execute(statement, timestamp)
        if affected != statement.rows:
            raise miscounted(statement, affected)

    def execute(self, statement: RowStatement, timestamp: int) -> int:
        """Run one statement; returns the number of rows that it found. The session keeps its ``sql_mode`` for the next
        one: ``take_every_date`` in front of a condition of another kind.

        Raises the driver's errors, ApplyError for a statement that is too long, DriftError if the target changes a
        value.
        """
        longest = max(map(len, (statement.sql, *statement.first)))
        if longest + 1 > self.session.max_allowed_packet:
            raise ApplyError(
                f"{statement.table}: a row needs a statement of {longest:,} bytes, the target has "
                f"max_allowed_packet = {self.session.max_allowed_packet:,}: raise it"
            )
        if statement.by_default:
            self.session.at_time(timestamp)
        mode, allowed = self._mode_of(statement)
        self._set_mode(mode)
        self._between(statement.first)
        affected = self.session.execute(statement.sql)
        warnings = self.session.rows("SHOW WARNINGS") if self.session.cursor.warning_count else []
        bad = [str(text) for level, code, text in warnings if level != "Note" and int(code) in _CHANGED - allowed]
        if bad:
            raise miscounted(statement, affected, f"; the target warned: {'; '.join(bad[:3])}")
        return affected

    def take_every_date(self) -> None:
        """Let conditions have each date that a row may have."""
        self._set_mode(_STRICT)

    def _set_mode(self, mode: str) -> None:
        if mode != self._mode:
            self.session.execute(f"SET SESSION sql_mode = '{mode}'")
            self._mode = mode

    def _mode_of(self, statement: RowStatement) -> tuple[str, frozenset[int]]:
        """The ``sql_mode`` for a statement, and the warnings that it may cause."""
        allowed = _allowed(statement)
        if self._sees_dates.get(statement.table, False):
            allows = self._allows_dates or _has_invalid_date(statement.sql)
            # not strict: the source may have computed NULL of what is no date, with a warning
            return _MODE if allows else _USUAL_DATES, allowed | {_NO_DATE}
        return _MODE if allowed else _STRICT, allowed

    def _between(self, statements: Sequence[str]) -> None:
        """Run the first of these that the table's CHECKs let pass. Raises the driver's errors."""
        for statement in statements:
            try:
                self.session.execute(statement)
                return
            except pymysql.err.MySQLError as exc:
                if error_code(exc) != _CHECK_VIOLATED or statement == statements[-1]:
                    raise

    def _table(self, table_map: bytes, seqno: int) -> KnownTable:
        guard = self.guard
        assert guard is not None
        logged = parse_table_map(table_map, guard.source)
        key = TableKey(logged.database, logged.table)
        name = table_map[DEFINITION], guard.altered.before(key, seqno) if guard.altered else 0
        known = self._known.get(name)
        if known is None:
            target = guard.target(key)
            if target is None:
                raise TableMismatchError(f"{key}: rows of seqno {seqno} need a table that does not exist on the target")
            bound = bind(logged, guard.source, target)
            decoder = RowDecoder(logged, bound.columns, text=False, whole_documents=self._on_mariadb)
            many = self._many(logged, bound, decoder, target)
            self._sees_dates[bound.key] = computed(target, INVALID_DATES) is not None
            known = self._known[name] = KnownTable(logged, bound, decoder, target, many)
        if known.bound.key not in self._held:
            hold_table(self.session.execute, known.bound.key)
            self._held.add(known.bound.key)
        return known

    def _many(self, logged: TableMap, bound: BoundTable, decoder: RowDecoder, target: Table) -> MultiRowTable | None:
        if tuple(decoder.rules) != logged.column_length_spec():
            return None  # the arrays know the lengths that the log tells
        literals = self._literals.get(bound.columns)
        if literals is None:
            literals = ColumnLiterals.of(bound.columns, decoder.rules, self.session.flavor)
            self._literals[bound.columns] = literals
        return MultiRowTable.of(bound, target, literals, self.session.flavor, self.session.version)


def _allowed(statement: RowStatement) -> frozenset[int]:
    """The warnings that a statement may cause. In a mode that is not strict the source leaves columns without a default
    out of partial images, and they get the default of their type."""
    codes = ((_TRUNCATED, statement.lenient), (_NO_DEFAULT, statement.by_default))
    return frozenset(code for code, is_allowed in codes if is_allowed)


def _has_invalid_date(sql: str) -> bool:
    """Whether a row has a date that only a session with ``INVALID_DATES`` can have written."""
    # to servers year 0 has no 29 February (calc_days_in_year)
    return any(day[2] != "29" or day[1] == "0000" or not isleap(int(day[1])) for day in _NO_DAY.finditer(sql))


def _bytes_of(payload: bytes, frames: Frames, event: int) -> bytes:
    start = frames.begin(event)
    return payload[start : start + int(frames.size[event])]


def miscounted(statement: RowStatement, affected: int, said: str = "") -> DriftError:
    """The error of a statement that found another number of rows than it must, or whose values were changed."""
    return DriftError(
        f"{statement.table}: {statement.kind} of {plural(statement.rows, 'row')}, the target counted {affected}{said}; "
        f"the statement begins with {statement.sql[:300]}"
    )


def never_by_statements(code: int, table: Table) -> str | None:
    """Why no statement can write a row as the log has it, by the error of one that tried; None for another error."""
    if code == NO_GEOMETRY:
        # seen on MariaDB: INSERT IGNORE without a value for a geometry that is NOT NULL; on MySQL: LOAD XML .. IGNORE
        return (
            "a row has a geometry that is no geometry, such as an empty one: the source stores it under a sql_mode "
            "that is not strict, and statements cannot give a column such a value"
        )
    names = ", ".join(column.name for column in table.columns if column.generated is not None and not column.nullable)
    if code != _NULL_NOT_ALLOWED or not names:
        return None
    return (
        f"the expression of a generated column that is NOT NULL ({names}) is NULL for a row: the source stores another "
        "value under a sql_mode that is not strict, and statements cannot give a generated column its value"
    )


def no_expression(table: KnownTable, exc: ValueError) -> ApplyError:
    """The error of a value that no statement can write."""
    return ApplyError(f"{table.bound.key}: {exc}; write this channel with BINLOG statements")


ROW_COUNTS: Final = {
    RowsKind.INSERT: lambda rows: RowCounts(inserts=rows),
    RowsKind.UPDATE: lambda rows: RowCounts(updates=rows),
    RowsKind.DELETE: lambda rows: RowCounts(deletes=rows),
}
