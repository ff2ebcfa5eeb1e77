"""What a block's transaction holds, sent to the target: rows by one of two writers, statements in their own session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol

import pymysql

from binlane.apply.rows.binlog import BinlogRows
from binlane.apply.rows.cross_family import FamilyRows
from binlane.apply.rows.load_data import Loads, load
from binlane.apply.rows.sql import SqlRows
from binlane.apply.session.context import ContextSetter
from binlane.apply.session.retry_verdicts import error_code
from binlane.choices import Writer
from binlane.errors import ApplyError, PlanError
from binlane.extension import chosen
from binlane.model import Item, ItemKind, RowCounts, SessionContext
from binlane.sql.scheduled_event import disabled

if TYPE_CHECKING:
    from binlane.apply.rows.table_guard import TableGuard
    from binlane.apply.session.connection import LaneSession


class RowWriter(Protocol):
    """A way to write ROWS items inside the transaction that the caller owns."""

    def prepare(self, format_event: bytes) -> None:
        """Get ready for a block whose events are in this format; outside a transaction."""

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        """Write the items; the row changes, as the target has counted them. Raises DriftError if a count differs."""
        ...

    def forget_tables(self) -> None:
        """Look at tables anew: a DDL has been."""


def _binlog_rows(session: LaneSession, guard: TableGuard | None) -> RowWriter:
    """BINLOG as far as it goes: not all types are the same bytes in both families."""
    if guard is None or guard.source is session.flavor:
        return BinlogRows(session, guard)
    return FamilyRows(session, guard)


ROW_WRITERS: Final[Mapping[str, Callable[[LaneSession, TableGuard | None], RowWriter]]] = {
    Writer.BINLOG: _binlog_rows,
    Writer.SQL: SqlRows,
}
"""By the word of ``apply.writer``, once "auto" is decided (``precheck.row_writer``). Every writer but "binlog" writes
by statements, and so does a site's own class: the precheck looks for triggers, privileges and row sizes accordingly."""


_RUNS: Final = {ItemKind.FILE: ItemKind.LOAD}
"""Items of several kinds that are one run."""


_UNKNOWN_TABLE: Final = 1051
_DROPS_TEMPORARY: Final = re.compile(rb"\s*DROP\s+TEMPORARY\s+TABLE\b", re.I)
"""A routine of an earlier window may have made it: it ended with that window's connection."""


@dataclass(slots=True)
class BlockWriter:
    """Sends a block's items inside the transaction that its caller owns."""

    session: LaneSession
    context: ContextSetter
    guard: TableGuard | None = None
    """Looks at the tables that the window alters; None where nothing of the window is known."""
    writer: str = "binlog"
    """Which of ``ROW_WRITERS``."""
    rows: RowWriter = field(init=False)

    def __post_init__(self) -> None:
        self.rows = chosen(ROW_WRITERS, self.writer, "apply.writer")(self.session, self.guard)

    def with_rows(self, rows: RowWriter) -> BlockWriter:
        """The same session and context, rows written by ``rows``."""
        other = BlockWriter(self.session, self.context, self.guard, self.writer)
        other.rows = rows
        return other

    def begin_block(self, format_event: bytes) -> None:
        """Get ready for a block; outside a transaction."""
        self.rows.prepare(format_event)

    def write(self, items: Iterable[Item], seqno: int) -> RowCounts:
        """Send all items of a block, in order; the row changes of its ROWS items, as the target has counted them.

        ``seqno``: one of the block's, which tells what DDL is behind it. Raises the driver's errors, DriftError if a
        count differs, TableMismatchError, PlanError for a payload that must not be sent; after any of them the
        transaction has to be rolled back.
        """
        written = RowCounts()
        self.context.expire()
        for kind, run in groupby(items, key=lambda item: _RUNS.get(item.kind, item.kind)):
            if kind is ItemKind.ROWS:
                self.context.leave()
                written += self.rows.write(run, seqno)
            elif kind is ItemKind.STATEMENT:
                self._statements(run)
            elif kind is ItemKind.LOAD:
                self._loads(run)
            else:
                raise PlanError("a block holds a DDL beside other items: it would commit half of the block")
        self.context.leave()
        return written

    def prepare(self, item: Item) -> bytes:
        """Set the session up for a statement; the statement's bytes as the target shall run them."""
        context = item.context if item.context is not None else SessionContext()
        self.context.enter(context, item.payload)
        return disabled(item.payload, self.context.client_charset(context), self.session.flavor)

    def run(self, item: Item, text: bytes) -> None:
        """Run a prepared statement. An error that the source had as well is the expected outcome."""
        expected = 0 if item.context is None else item.context.error_code
        try:
            self.session.send(text)
        except pymysql.err.MySQLError as exc:
            code = error_code(exc)
            is_gone = code == _UNKNOWN_TABLE and _DROPS_TEMPORARY.match(text) is not None
            if not is_gone and (expected == 0 or code != expected):
                raise
            return
        if expected != 0:
            raise ApplyError(f"the statement ended with error {expected} on the source, and with none on the target")

    def forget_tables(self) -> None:
        """Look at tables anew: a DDL has been, here or in another lane."""
        self.rows.forget_tables()
        self.context.expire()

    def _statements(self, items: Iterator[Item]) -> None:
        for item in items:
            self.run(item, self.prepare(item))

    def _loads(self, items: Iterator[Item]) -> None:
        loads = Loads(items)
        for item in loads:
            load(self.session, self.prepare(item), loads.pieces())
