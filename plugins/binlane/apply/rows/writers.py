"""Sends the items of a block's transaction to the target: rows by a row writer, statements in their own session."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Final, Protocol

import pymysql

from binlane.apply.rows.binlog import BinlogRows
from binlane.apply.rows.cross_family import FamilyRows
from binlane.apply.rows.load_data import Loads, load
from binlane.apply.rows.row_images import ShortImages
from binlane.apply.rows.sql import SqlRows
from binlane.apply.session.context import ContextSetter
from binlane.apply.session.retry_verdicts import error_code
from binlane.apply.session.unlogged_null import check_nulls, refused_null
from binlane.choices import Writer
from binlane.errors import ApplyError, PlanError
from binlane.extension import chosen
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, ItemKind, LogPosition, RowCounts, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.rename_rules import names_a_file
from binlane.schema.model import Table
from binlane.sql.charset import dialect_of, is_utf8_client
from binlane.sql.logged_statement import LoggedText
from binlane.sql.programs.reach import names_in
from binlane.sql.scheduled_event import disabled

if TYPE_CHECKING:
    from binlane.apply.rows.conflict_detect import RowComparison
    from binlane.apply.rows.named_objects import NamedObjects
    from binlane.apply.rows.table_guard import TableGuard
    from binlane.apply.session.connection import LaneSession


class RowWriter(Protocol):
    """Writes ROWS items inside the caller's transaction. A site's class that sends row events has ``sends_row_events =
    True``."""

    def prepare(self, format_event: bytes) -> None:
        """Prepare for a block whose events are in this format; outside of a transaction."""

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        """Write the items; returns the row changes counted by the target. Raises DriftError if a count differs."""
        ...

    def forget_tables(self) -> None:
        """Read tables anew, after a DDL."""


def _binlog_rows(session: LaneSession, guard: TableGuard | None) -> RowWriter:
    """BINLOG, but between families only for types that have the same bytes in both."""
    if guard is None or guard.source is session.flavor:
        shortens = guard is not None and guard.shortens_images
        return BinlogRows(session, guard, ShortImages(guard) if guard is not None and shortens else None)
    return FamilyRows(session, guard)


ROW_WRITERS: Final[Mapping[str, Callable[[LaneSession, TableGuard | None], RowWriter]]] = {
    Writer.BINLOG: _binlog_rows,
    Writer.SQL: SqlRows,
}
"""By the word of ``apply.writer``, once "auto" is decided (``precheck.account.row_writer``)."""


def sends_row_events(writer: str) -> bool:
    """Whether a writer sends row events, as BINLOG statements, which fire no trigger and need no privilege on a table.

    All others write by statements, for which the precheck looks at triggers, privileges and the sizes of rows. "auto"
    is not decided, and may turn out to be one of them. Raises ConfigError for a writer that there is not.
    """
    if writer == Writer.AUTO or writer in ROW_WRITERS:
        return writer == Writer.BINLOG
    return bool(getattr(chosen(ROW_WRITERS, writer, "apply.writer"), "sends_row_events", False))


_RUNS: Final = {ItemKind.FILE: ItemKind.LOAD}
"""Item kinds that belong to a run of another kind."""


def _may_set_documents(statement: bytes, table: Table) -> bool:
    documents = [column.name for column in table.columns if column.data_type == "json"]
    if not documents or table.triggers:
        return bool(documents)
    text = statement.lower()
    # other letters have other bytes in other character sets, and a quote is written twice
    return any(not name.isascii() or "`" in name or name.lower().encode() in text for name in documents)


def _names_in(item: Item, flavor: Flavor) -> frozenset[TableKey] | None:
    """All names in a statement that may be a table's, a view's or a routine's; None if they cannot be read."""
    text = LoggedText.of(0, LogPosition("", 0), item, flavor)
    database = "" if text is None else text.context.database or ""
    if text is None or names_a_file(database):
        return None
    names = frozenset(names_in(text.every_token, database))
    return None if any("\ufffd" in str(key) for key in names) else names


def _run_of(item: Item) -> tuple[ItemKind, SessionContext | None]:
    """What items have in common that are written together: rows also the modes in which columns are computed."""
    kind = _RUNS.get(item.kind, item.kind)
    return kind, item.context if kind is ItemKind.ROWS else None


_UNKNOWN_TABLE: Final = 1051
_UPDATE: Final = re.compile(rb"\s*(?:UPDATE|WITH)\b", re.I)
_DROPS_TEMPORARY: Final = re.compile(rb"\s*DROP\s+TEMPORARY\s+TABLE\b", re.I)
"""The table may come from a routine of an earlier window: it ended with that window's connection."""


@dataclass(slots=True)
class BlockWriter:
    """Sends a block's items inside the caller's transaction."""

    session: LaneSession
    context: ContextSetter
    guard: TableGuard | None = None
    """Checks tables that the window alters; None if nothing of the window is known."""
    writer: str = Writer.BINLOG
    """The row writer, by its word in ``ROW_WRITERS``."""
    allow_unsafe: bool = False
    """``apply.allow_unsafe``: a NULL whose meaning is not logged is what it is on the target."""
    named: NamedObjects | None = None
    """Compares what statements name with what the precheck has seen; None if nothing of the window is known."""
    comparison: RowComparison | None = None
    """Compares rows before they are written; None: nothing does."""
    rows: RowWriter = field(init=False)

    def __post_init__(self) -> None:
        self.rows = chosen(ROW_WRITERS, self.writer, "apply.writer")(self.session, self.guard)

    def with_rows(self, rows: RowWriter) -> BlockWriter:
        """A writer with the same session and context, whose rows ``rows`` writes without a comparison."""
        other = BlockWriter(self.session, self.context, self.guard, self.writer, self.allow_unsafe, self.named)
        other.rows = rows
        return other

    def begin_block(self, format_event: bytes) -> None:
        """Prepare for a block; outside of a transaction."""
        self.rows.prepare(format_event)

    def write(self, items: Iterable[Item], seqno: int) -> RowCounts:
        """Send all items of a block, in order; returns the row changes of its ROWS items, as counted by the target.

        ``seqno``: one of the block's seqnos, which shows the DDL before it. Raises the driver's errors, DriftError if a
        count differs, TableMismatchError, PlanError for a payload that must not be sent; after any of them the
        transaction must be rolled back.
        """
        written = RowCounts()
        self.context.expire()
        if self.named is not None:
            self.named.begin()
        for (kind, rows_context), run in groupby(items, key=_run_of):
            if kind is ItemKind.ROWS:
                written += self.write_rows(run, rows_context, seqno)
            elif kind is ItemKind.STATEMENT:
                self._statements(run)
            elif kind is ItemKind.LOAD:
                self._loads(run)
            else:
                raise PlanError(
                    "a block holds a DDL and other items, which it would commit half-way; run the plan job again"
                )
        self.context.leave()
        if self.named is not None:
            self.named.end()
        return written

    def write_rows(self, items: Iterator[Item], context: SessionContext | None, seqno: int) -> RowCounts:
        """Send ROWS items of one context, compared before if they are to be; as ``write``."""
        if self.comparison is None:
            self.context.enter_rows(context)
            return self.rows.write(items, seqno)
        written = RowCounts()
        self.context.leave()
        for item in items:
            # a comparison has a mode and a zone of its own, and leaves the usual ones
            self.comparison.compare(item, seqno)
            self.context.enter_rows(context)
            written += self.rows.write(iter((item,)), seqno)
        return written

    def prepare(self, item: Item) -> bytes:
        """Set the session up for a statement; returns the bytes to run on the target."""
        context = item.context if item.context is not None else SessionContext()
        self.context.enter(context, item.payload, reads_few=self._sets_documents(item.payload, context))
        return disabled(item.payload, self.context.client_charset(context), dialect_of(context, self.session.flavor))

    def _sets_documents(self, statement: bytes, context: SessionContext) -> bool:
        """Whether a statement of MySQL is an UPDATE that may set JSON columns: it names one, or fires a trigger, or
        what it changes may be a view.

        MySQL leaves a document as it is that equals the new one (1.0 and 1), if it has read the column.
        """
        guard = self.guard
        if guard is None or {guard.source, self.session.flavor} != {Flavor.MYSQL} or _UPDATE.match(statement) is None:
            return False
        tables = map(guard.target, statement_facts(statement, context, Flavor.MYSQL).written)
        return any(table is None or _may_set_documents(statement, table) for table in tables)

    def run(self, item: Item, text: bytes) -> None:
        """Run a prepared statement. An error that the source had as well is the expected result."""
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
            raise ApplyError(
                f"the statement ended with error {expected} on the source, and without an error on the target"
            )

    def forget_tables(self) -> None:
        """Read tables anew, after a DDL here or in another lane."""
        self.rows.forget_tables()
        if self.comparison is not None:
            self.comparison.forget_tables()
        self.context.expire()

    def _statements(self, items: Iterator[Item]) -> None:
        for item in items:
            text = self._prepare_held(item)
            try:
                self.run(item, text)
            except pymysql.err.MySQLError as exc:
                raise refused_null(exc, item, self.session) from exc
            self._check_nulls(item)

    def _prepare_held(self, item: Item) -> bytes:
        """``prepare`` for a statement of a block's transaction, which holds what the statement names."""
        if self.named is None:
            return self.prepare(item)
        context = item.context if item.context is not None else SessionContext()
        facts = statement_facts(item.payload, context, self.session.flavor)
        names = partial(_names_in, item, self.session.flavor)
        if is_utf8_client(context) or all(str(key).isascii() for key in facts.tables):
            # in the statement's session: it alone sees the temporary tables of its connection
            text = self.prepare(item)
            self.named.hold(self._in_its_session, facts, names)
            return text
        self.context.leave()
        self.named.hold(self.session.execute, facts, names)
        return self.prepare(item)

    def _in_its_session(self, hold: str) -> object:
        return self.session.cursor.execute(hold.encode())  # type: ignore[call-overload]

    def _loads(self, items: Iterator[Item]) -> None:
        loads = Loads(items)
        for item in loads:
            load(self.session, self._prepare_held(item), loads.pieces())
            self._check_nulls(item)

    def _check_nulls(self, item: Item) -> None:
        if not self.allow_unsafe and self.context.null_is_zero:
            check_nulls(item, self.session)
