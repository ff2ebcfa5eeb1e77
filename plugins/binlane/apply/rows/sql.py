"""Writes rows by INSERT, UPDATE and DELETE, for servers where the account must not send BINLOG statements.

Blocks and positions are the same; the rows are decoded here. Statements fire triggers, so the precheck refuses tables
with triggers unless the channel names them. Every statement is verified by its affected rows (invariant 5): the
connection counts found rows (``CLIENT.FOUND_ROWS``), so an UPDATE that changes nothing counts as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pymysql
from pymysql.constants import CLIENT

from binlane.apply.rows.statements import MAX_BYTES, RowStatement, StatementBuilder
from binlane.apply.session.retry_verdicts import error_code
from binlane.binlog.row_values import RowDecoder
from binlane.binlog.rows import RowsEvent, RowsFlag, RowsKind
from binlane.binlog.rows_payload import DEFINITION, check_self_contained, parse_rows, parse_table_map, rows_with_tables
from binlane.binlog.wire import HEADER
from binlane.errors import ApplyError, DriftError, TableMismatchError
from binlane.model import Flavor, Item, RowCounts, TableKey, plural
from binlane.schema.binding import BoundTable, bind
from binlane.schema.model import Table

if TYPE_CHECKING:
    from binlane.apply.rows.table_guard import TableGuard
    from binlane.apply.session.connection import LaneSession

_MODE: Final = "NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION"
"""Zero is an AUTO_INCREMENT value; zero dates and 31 February are valid dates."""
_STRICT: Final = f"STRICT_ALL_TABLES,{_MODE}"
_ENTER: Final = f"time_zone = '+00:00', sql_safe_updates = 0, sql_mode = '{_STRICT}'"
_LEAVE: Final = (
    "time_zone = DEFAULT, sql_safe_updates = @@global.sql_safe_updates, sql_mode = DEFAULT, "
    "foreign_key_checks = @@global.foreign_key_checks, unique_checks = @@global.unique_checks"
)
_CONSTRAINTS: Final = ", check_constraint_checks = "
"""MariaDB: the source has checked the constraints, or its session has switched them off."""
_NO_PRIVILEGE: Final = 1227
_TRUNCATED: Final = 1265
_CHANGED: Final = frozenset({1048, 1264, _TRUNCATED, 1292, 1364, 1366, 1406})
"""Warnings that a value is not stored as given: errors in strict mode, which is off for an ENUM's number 0."""
_POST_HEADER_FLAGS: Final = RowsFlag.NO_FOREIGN_KEY_CHECKS | RowsFlag.RELAXED_UNIQUE_CHECKS


@dataclass(frozen=True, slots=True)
class KnownTable:
    """The table of a TABLE_MAP, bound to the target's table."""

    bound: BoundTable
    decoder: RowDecoder
    target: Table


@dataclass(slots=True)
class SqlRows:
    """Writes decoded rows."""

    session: LaneSession
    guard: TableGuard | None
    _known: dict[tuple[bytes, int], KnownTable] = field(default_factory=dict)
    """By TABLE_MAP without its table id, and the number of the table's definition in the window."""

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
        self._known.clear()

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        """Write ROWS items; returns their row changes, which the affected rows must confirm.

        Raises DriftError for a missing row or a value that the target changes, TableMismatchError, ApplyError for
        values that no statement can write, and the driver's errors.
        """
        self.enter()
        written = RowCounts()
        for item in items:
            check_self_contained(item.payload)
            assert self.guard is not None
            self.guard.check(item.payload, seqno)
            counted = self._item(item.payload, seqno)
            if counted != item.rows:
                raise DriftError(f"expected {item.rows} in an item of the block, decoded {counted}")
            written += counted
        self.leave()
        return written

    def enter(self) -> None:
        """Set the session up for statements that write logged rows."""
        self.session.execute(f"SET SESSION {_ENTER}{f'{_CONSTRAINTS}0' if self._on_mariadb else ''}")

    def leave(self) -> None:
        """Undo ``enter``; not needed after an error, which ends the transaction and the attempt."""
        own = f"{_CONSTRAINTS}@@global.check_constraint_checks" if self._on_mariadb else ""
        self.session.execute(f"SET SESSION {_LEAVE}{own}")

    @property
    def _on_mariadb(self) -> bool:
        return self.session.flavor is Flavor.MARIADB

    def _item(self, payload: bytes, seqno: int) -> RowCounts:
        counted, flags = RowCounts(), -1
        for table, event, timestamp in self.events(payload, seqno):
            if event.flags & _POST_HEADER_FLAGS != flags:
                flags = event.flags & _POST_HEADER_FLAGS
                self._set_checks(flags)
            counted += self.write_event(table, event, timestamp)
        return counted

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
        try:
            for statement in self.builder(table).statements(event.kind, table.decoder.changes(event)):
                self._run(statement, timestamp, table.bound.key)
                counted += ROW_COUNTS[statement.kind](statement.rows)
        except ValueError as exc:
            raise no_expression(table, exc) from exc
        return counted

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
        room = min(MAX_BYTES, self.session.max_allowed_packet // 2)
        return StatementBuilder(table.bound, self.session.flavor, room)

    def _set_checks(self, flags: int) -> None:
        foreign = int(not flags & RowsFlag.NO_FOREIGN_KEY_CHECKS)
        unique = int(not flags & RowsFlag.RELAXED_UNIQUE_CHECKS)
        self.session.execute(f"SET SESSION foreign_key_checks = {foreign}, unique_checks = {unique}")

    def _run(self, statement: RowStatement, timestamp: int, key: TableKey) -> None:
        affected = self.execute(statement, timestamp, key)
        if affected != statement.rows:
            raise miscounted(statement, key, affected)

    def execute(self, statement: RowStatement, timestamp: int, key: TableKey) -> int:
        """Run one statement; returns the number of rows that it found.

        Raises the driver's errors, ApplyError for a statement that is too long, DriftError if the target changes a
        value.
        """
        if len(statement.sql) + 1 > self.session.max_allowed_packet:
            raise ApplyError(
                f"{key}: a row needs a statement of {len(statement.sql):,} bytes, the target has "
                f"max_allowed_packet = {self.session.max_allowed_packet:,}: raise it"
            )
        if statement.by_default:
            self.session.at_time(timestamp)
        if statement.lenient:
            self.session.execute(f"SET SESSION sql_mode = '{_MODE}'")
        try:
            affected = self.session.execute(statement.sql)
            warnings = self.session.rows("SHOW WARNINGS") if self.session.cursor.warning_count else []
        finally:
            if statement.lenient:
                self.session.execute(f"SET SESSION sql_mode = '{_STRICT}'")
        forbidden = _CHANGED - {_TRUNCATED} if statement.lenient else _CHANGED
        bad = [str(text) for level, code, text in warnings if level != "Note" and int(code) in forbidden]
        if bad:
            raise miscounted(statement, key, affected, f"; the target warned: {'; '.join(bad[:3])}")
        return affected

    def _table(self, table_map: bytes, seqno: int) -> KnownTable:
        guard = self.guard
        assert guard is not None
        logged = parse_table_map(table_map, guard.source)
        key = TableKey(logged.database, logged.table)
        name = table_map[DEFINITION], guard.altered.before(key, seqno) if guard.altered else 0
        known = self._known.get(name)
        if known is None:
            target = guard.read(key)
            if target is None:
                raise TableMismatchError(f"{key}: rows of seqno {seqno} need a table that does not exist on the target")
            bound = bind(logged, guard.source, target)
            decoder = RowDecoder(logged, bound.columns, text=False, whole_documents=self._on_mariadb)
            known = self._known[name] = KnownTable(bound, decoder, target)
        return known


def miscounted(statement: RowStatement, key: TableKey, affected: int, said: str = "") -> DriftError:
    """The error of a statement that found another number of rows than it must, or whose values were changed."""
    return DriftError(
        f"{key}: {statement.kind} of {plural(statement.rows, 'row')}, the target counted {affected}{said}; "
        f"the statement begins with {statement.sql[:300]}"
    )


def no_expression(table: KnownTable, exc: ValueError) -> ApplyError:
    """The error of a value that no statement can write."""
    return ApplyError(f"{table.bound.key}: {exc}; write this channel with BINLOG statements")


ROW_COUNTS: Final = {
    RowsKind.INSERT: lambda rows: RowCounts(inserts=rows),
    RowsKind.UPDATE: lambda rows: RowCounts(updates=rows),
    RowsKind.DELETE: lambda rows: RowCounts(deletes=rows),
}
