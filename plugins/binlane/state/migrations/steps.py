"""The steps from each version of the schema ``binlane`` to the next, in order: a literal table.

A step reads the present state of the schema, so an interrupted step resumes with the statements that are still needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sqlalchemy import Column, Connection, Executable, Table, case, func, insert, select, text, update
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from binlane.model import LogPosition
from binlane.state import tables
from binlane.state.channels import Watermark, watermark_of
from binlane.state.consistent_view import CONSISTENT, CONSISTENT_COLUMNS, CONSISTENT_VIEW
from binlane.state.json_columns import text_of
from binlane.state.migrations.check import Found
from binlane.state.tables import SCHEMA
from binlane.state.windows import OPEN

_Statement = tuple[str, Executable]
"""The privilege on the schema that a statement needs, and the statement."""


class Action(Protocol):
    """A part of a step."""

    @property
    def names(self) -> Collection[str]:
        """The tables (``skips``) and columns (``skips.sha256``) that the action creates or changes."""

    def statements(self, connection: Connection, found: Found) -> Iterator[_Statement]:
        """The statements that are still needed, in order."""


_ROW_FORMAT: Final = "ROW_FORMAT=DYNAMIC"
"""The keys over names are longer than a server takes whose ``innodb_default_row_format`` is COMPACT."""


@dataclass(frozen=True, slots=True)
class AddTable:
    """Creates a table with its indexes."""

    table: Table

    @property
    def names(self) -> Collection[str]:
        """The table and its indexed columns: indexes are created after the table."""
        indexed = (column for index in self.table.indexes for column in index.columns)
        return (self.table.name, *(f"{self.table.name}.{column.name}" for column in indexed))

    def statements(self, connection: Connection, found: Found) -> Iterator[_Statement]:
        """See ``Action``."""
        is_there = self.table.name in found.engines
        if not is_there:
            made = str(CreateTable(self.table).compile(dialect=connection.dialect)).rstrip()
            yield "CREATE", text(f"{made} {_ROW_FORMAT}")
        for index in self.table.indexes:
            first = found.columns.get((self.table.name, next(iter(index.columns)).name))
            if first is None or first.key == "":
                yield "INDEX", CreateIndex(index)


@dataclass(frozen=True, slots=True)
class AddView:
    """Creates a view, or replaces one that has other columns."""

    name: str
    columns: Collection[str]
    definition: str

    @property
    def names(self) -> Collection[str]:
        """See ``Action``."""
        return (self.name,)

    def statements(self, connection: Connection, found: Found) -> Iterator[_Statement]:
        """See ``Action``."""
        if self.name not in found.views:
            yield "CREATE VIEW", text(f"CREATE {self.definition}")
        elif found.views[self.name] != tuple(self.columns):
            yield "CREATE VIEW", text(f"CREATE OR REPLACE {self.definition}")


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Adds a column. ``values`` sets the value in existing rows of a NOT NULL column."""

    column: Column[Any]
    values: Callable[[Connection], None] | None = None

    @property
    def names(self) -> Collection[str]:
        """See ``Action``."""
        return (f"{self.column.table.name}.{self.column.name}",)

    def statements(self, connection: Connection, found: Found) -> Iterator[_Statement]:
        """The column allows NULL until every row has its value, so that a resumed step finds the rows without one."""
        column, table = self.column, self.column.table.name
        has = found.columns.get((table, column.name))
        whole = str(CreateColumn(column).compile(dialect=connection.dialect)).strip()
        alter = f"ALTER TABLE {SCHEMA}.{table}"
        if self.values is None:
            if has is None:
                yield "ALTER", text(f"{alter} ADD COLUMN {whole}")
            return
        if has is None:
            kind = column.type.compile(dialect=connection.dialect)
            yield "ALTER", text(f"{alter} ADD COLUMN {column.name} {kind} NULL")
        if has is None or has.is_nullable:
            self.values(connection)
            yield "ALTER", text(f"{alter} MODIFY {whole}")


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Renames a column."""

    column: Column[Any]
    before: str

    @property
    def names(self) -> Collection[str]:
        """See ``Action``."""
        return tuple(f"{self.column.table.name}.{name}" for name in (self.before, self.column.name))

    def statements(self, connection: Connection, found: Found) -> Iterator[_Statement]:
        """CHANGE, which every supported server has, unlike RENAME COLUMN."""
        table = self.column.table.name
        if (table, self.before) in found.columns:
            whole = str(CreateColumn(self.column).compile(dialect=connection.dialect)).strip()
            yield "ALTER", text(f"ALTER TABLE {SCHEMA}.{table} CHANGE {self.before} {whole}")


@dataclass(frozen=True, slots=True)
class AddRows:
    """Adds rows to a table of this step: the values of all rows that it should have, the primary key first."""

    table: Table
    rows: Callable[[Connection], Iterable[dict[str, Any]]]

    @property
    def names(self) -> Collection[str]:
        """See ``Action``."""
        return (self.table.name,)

    def statements(self, connection: Connection, found: Found) -> Iterator[_Statement]:
        """One for each row that is not there."""
        [key] = self.table.primary_key.columns
        for row in self.rows(connection):
            if connection.execute(select(key).where(key == row[key.name])).first() is None:
                yield "INSERT", insert(self.table).values(**row)


@dataclass(frozen=True, slots=True)
class Step:
    """The actions from one version to the next; its number is its index in ``STEPS``."""

    name: str
    actions: tuple[Action, ...]


def _starts_of_windows(connection: Connection) -> None:
    """Before windows stored their beginning, the channel's watermark was the open window's beginning. Finished windows
    do not need it."""
    windows, channels = tables.windows, tables.channels
    asked = (windows.c.channel, windows.c.window_id, windows.c.first_seqno, windows.c.state)
    of = channels.c.channel == windows.c.channel
    # columns by name: the tables of that version have no others
    mark = [channels.c[name] for name in ("watermark_seqno", "source_file", "source_offset", "gtid_set")]
    mark += [channels.c.source_time, channels.c.fingerprint]
    old = connection.execute(select(*asked, *mark).join(channels, of, isouter=True).where(windows.c.start.is_(None)))
    for row in old.all():
        start = Watermark(row.first_seqno - 1, LogPosition("", 0), "", 0.0, "")
        if row.state == OPEN and row.watermark_seqno is not None:
            start = watermark_of(row)
        one = (windows.c.channel == row.channel, windows.c.window_id == row.window_id)
        connection.execute(update(windows).where(*one).values(start=text_of(start)))


def _reached_in_windows(connection: Connection) -> None:
    """Older versions could not stop inside a window."""
    windows = tables.windows
    for state_is, seqno in ((windows.c.state == OPEN, windows.c.first_seqno - 1),
                            (windows.c.state != OPEN, windows.c.last_seqno)):  # fmt: skip
        connection.execute(update(windows).where(windows.c.reached.is_(None), state_is).values(reached=seqno))


def _set_replaced_for(connection: Connection) -> None:
    bootstraps = tables.bootstraps
    connection.execute(update(bootstraps).where(bootstraps.c.replaced_for.is_(None)).values(replaced_for=""))


def _covered(connection: Connection) -> list[dict[str, Any]]:
    """Earlier versions counted every verification that found both servers equal for all changes before it."""
    of = tables.verifications.c
    query = select(
        of.channel,
        func.max(of.through_seqno).label("rows_through"),
        func.max(case((of.kind == "full", of.through_seqno))).label("full_through"),
        func.max(case((of.kind == "full", of.ended_at))).label("full_at"),
    )
    found = connection.execute(query.where(of.state == "clean").group_by(of.channel))
    return [{"rows_after": 0, **row._asdict()} for row in found]


VIEW: Final = AddView(CONSISTENT, CONSISTENT_COLUMNS, CONSISTENT_VIEW)
"""Also behind the steps, whatever the version: it holds no data, so one that was dropped by hand is created again."""
STEPS: Final = (
    Step(
        "channels, windows and lanes",
        tuple(
            AddTable(each)
            for each in (
                tables.channels,
                tables.windows,
                tables.positions,
                tables.heartbeats,
                tables.ddl,
                tables.errors,
            )
        ),
    ),
    Step("prepared XA transactions", (AddTable(tables.prepared), AddTable(tables.prepared_chunks))),
    Step(
        "stops inside a window, and skips",
        (
            AddColumn(tables.channels.c.stopped),
            AddColumn(tables.windows.c.start, _starts_of_windows),
            AddColumn(tables.windows.c.reached, _reached_in_windows),
            AddColumn(tables.positions.c.begun),
            AddTable(tables.splits),
            AddTable(tables.skips),
            AddTable(tables.skipped_events),
        ),
    ),
    Step("a window's facts", (AddColumn(tables.windows.c.facts),)),
    Step("a window's block size", (AddColumn(tables.windows.c.block_transactions),)),
    Step("conflicts", (AddTable(tables.conflicts),)),
    Step("verifications", (AddTable(tables.verifications), AddTable(tables.suspects))),
    Step("the time of a stop", (AddColumn(tables.channels.c.stopped_at),)),
    Step("first copies", (AddTable(tables.bootstraps), AddTable(tables.bootstrap_objects))),
    Step("repairs", (AddTable(tables.repairs),)),
    Step(
        "orders and outcomes of first copies",
        (
            AddColumn(tables.bootstraps.c.replaced_for, _set_replaced_for),
            AddColumn(tables.bootstraps.c.outcome),
            AddColumn(tables.bootstraps.c.finished_for),
        ),
    ),
    # the column was named blake3 in a version that could not skip yet, so no row has a BLAKE3 sum
    Step("the SHA-256 of a skip", (RenameColumn(tables.skips.c.sha256, "blake3"),)),
    Step("copies of temporary tables", (AddTable(tables.temporary),)),
    Step(
        "runs without work, and rows that have drifted once",
        (
            AddColumn(tables.channels.c.complete_at),
            AddColumn(tables.channels.c.complete_through),
            AddColumn(tables.suspects.c.drifted_seqno),
        ),
    ),
    Step("databases, and progress before the lanes", (AddTable(tables.databases), AddTable(tables.progress))),
    Step("definitions that a repair has corrected", (AddColumn(tables.repairs.c.definitions),)),
    Step(
        "first copies that continue inside a table",
        tuple(
            AddColumn(column)
            for column in (
                tables.bootstrap_objects.c.reached,
                tables.bootstrap_objects.c.reached_rows,
                tables.bootstrap_objects.c.source_rows,
                tables.bootstrap_objects.c.source_bytes,
                tables.bootstraps.c.attempt_at,
                tables.bootstraps.c.attempt_bytes,
            )
        ),
    ),
    Step(
        "what verifications have covered",
        (
            AddColumn(tables.verifications.c.progress_key),
            AddColumn(tables.verifications.c.scope),
            AddColumn(tables.verifications.c.equal_rows),
            AddColumn(tables.verifications.c.logged_rows),
            AddColumn(tables.verifications.c.expected_rows),
            AddColumn(tables.verifications.c.seconds),
            AddTable(tables.verified_tables),
            AddTable(tables.verified),
            AddRows(tables.verified, _covered),
            AddColumn(tables.suspects.c.since),
            AddColumn(tables.suspects.c.log_end),
        ),
    ),
    Step("epochs, and the snapshots that readers can trust", (AddTable(tables.epochs), VIEW)),
    Step("the key that a row which differs belongs to", (AddColumn(tables.suspects.c.key_shape),)),
    Step(
        "connections that may be older than the channel, and the rules of what is verified",
        (
            AddColumn(tables.channels.c.older_sessions),
            AddColumn(tables.verified.c.rules),
            AddColumn(tables.verified.c.uncovered_seqno),
            AddColumn(tables.verified.c.uncovered_at),
        ),
    ),
    Step("the digests of a window's files", (AddColumn(tables.windows.c.files),)),
)
