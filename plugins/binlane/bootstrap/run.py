"""The steps of a first copy: check, snapshot, definitions, rows, later definitions (triggers, views, events), and the
channel's watermark.

Every step can be killed. Objects are recorded before they are created on the target. The next attempt takes a new
snapshot, keeps the finished tables that the source's log does not change between the two, and drops all other recorded
objects, and nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from typing import Final, Protocol

from sqlalchemy import Engine, select

from binlane.apply.refusals import driver_errors
from binlane.binlog.types.literals import quoted
from binlane.bootstrap.accounts import Accounts, make_accounts, no_accounts, read_accounts
from binlane.bootstrap.checks import check_empty, check_tables, chosen_databases
from binlane.bootstrap.definitions import (
    Definitions,
    contents,
    drop,
    drop_database,
    make,
    make_behind_rows,
    make_database,
    read_definitions,
    set_sequence,
)
from binlane.bootstrap.rows import Copier
from binlane.bootstrap.sessions import Session, read_session, write_session
from binlane.bootstrap.snapshot import Snapshot, shared_snapshot
from binlane.config import ChannelConfig
from binlane.connections import Endpoint
from binlane.errors import MissingLogError, PrecheckError, SourceIdentityError, WindowBusyError
from binlane.model import SchemaObject, TableKey
from binlane.schema.model import Schema, Table
from binlane.servers.catalog import read_schema
from binlane.shards.selection import EVERYTHING, Extent, Selection
from binlane.source.identity import Start, verified
from binlane.source.protocol import EventSource
from binlane.source.server import translated
from binlane.source.start_position import begin
from binlane.state import tables
from binlane.state.channels import Watermark, create_channel
from binlane.state.leases import bootstrap_lease
from binlane.state.migrations.check import require_current
from binlane.state.migrations.run import create
from binlane.state.records import bootstraps
from binlane.state.records.bootstraps import DONE, TABLE, Bootstrap
from binlane.verify.changes import ChangeReader

_LEASE_SECONDS: Final = 10
"""Seconds to wait until a server has noticed that an earlier run was killed."""


class Progress(Protocol):
    """Receives the progress of the copy."""

    def begins(self, tables: int, rows: int) -> None:
        """The number of tables to copy, and the approximate number of rows."""

    def copied(self, rows: int) -> None:
        """The number of rows copied since the last call."""

    def finished(self, table: TableKey) -> None:
        """The table is complete."""


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of ``binlane bootstrap``."""

    databases: tuple[str, ...] = ("*",)
    """Names or patterns."""
    users: bool = False
    replace: bool = False
    jobs: int = 4
    chunk_rows: int = 20_000
    lock_seconds: int = 30
    order: str = ""
    """Identifies the request. With ``replace``, a later attempt of the same order continues and does not drop again; an
    empty order is never the same."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a finished copy."""

    channel: str
    databases: int
    tables: int
    kept: int
    """Tables of an earlier attempt that the source has not changed since."""
    rows: int
    others: int
    """Views, routines, triggers, events and sequences."""
    accounts: int
    notes: tuple[str, ...]
    attempts: int
    mark: Watermark


@dataclass(slots=True)
class FirstCopy:
    """One run of a first copy. ``engines``: the source's and the target's."""

    channel: ChannelConfig
    source: Endpoint
    target: Endpoint
    log_source: EventSource
    engines: tuple[Engine, Engine]
    options: Options
    progress: Progress
    selection: Selection = EVERYTHING
    """The channel's filter."""
    _rows: int = 0
    _notes: list[str] = field(default_factory=list)

    def run(self) -> Outcome:
        """Copy. Raises PrecheckError before anything is written, SourceError, TargetError, and the target's driver
        errors unchanged."""
        create(self.engines[1])
        with ExitStack() as stack:
            writer = stack.enter_context(contextlib.closing(write_session(self.target)))
            self._take_lease(writer)
            with self.engines[1].connect() as connection:
                # a newer binlane holds this lease while it migrates the tables
                require_current(connection)
            if (ended := self._ended()) is not None:
                return ended
            databases = self._checked()
            before = self._before(writer, databases)
            taken = shared_snapshot(self.source, self.options.jobs + 1, self.options.lock_seconds, self._while_locked)
            snapshot, accounts = stack.enter_context(taken)
            return self._copy(writer, databases, before, snapshot, accounts)

    def _take_lease(self, writer: Session) -> None:
        [(taken,)] = writer.texts(f"SELECT GET_LOCK('{bootstrap_lease(self.channel.name)}', {_LEASE_SECONDS})")
        if taken != "1":
            raise WindowBusyError(
                f"channel {self.channel.name}: another first copy of this channel is running; wait until it ends"
            )

    def _ended(self) -> Outcome | None:
        """The result of an earlier attempt that created the channel and was then killed, or that was of this order.
        Raises PrecheckError for any other existing channel."""
        name, options = self.channel.name, self.options
        with self.engines[1].begin() as connection:
            known = tables.channels.c.channel
            if connection.execute(select(known).where(known == name)).first() is None:
                return None
            copied = bootstraps.read_copied(connection, name)
            if copied is not None:
                same = copied.outcome.pop("asked") == _asked(options)
                if same and (copied.finished_for is None or "" != copied.finished_for == options.order):
                    bootstraps.finish_bootstrap(connection, name, options.order)
                    notes = tuple(copied.outcome.pop("notes"))
                    return Outcome(**copied.outcome, channel=name, notes=notes, mark=copied.snapshot)
        of = "" if copied is None else f" (its first copy, of {', '.join(copied.databases)}, is complete)"
        raise PrecheckError(
            f"channel {name}: expected a channel without a watermark for a first copy, found one on this "
            f"target{of}; run the channel, or see `Begin a channel again` in docs/recovery.md"
        )

    def _checked(self) -> tuple[str, ...]:
        with self._reading() as reader:
            present = [name for (name,) in reader.texts("SELECT schema_name FROM information_schema.schemata")]
        taken = [name for name in present if self.selection.database(name)[0] is not Extent.NONE]
        chosen = chosen_databases(taken, self.options.databases)
        if not chosen:
            raise PrecheckError(f"{self.source}: found no database to copy; use `binlane init`")
        return chosen

    def _before(self, writer: Session, databases: Sequence[str]) -> Bootstrap | None:
        """The unfinished attempt, if any. Raises PrecheckError if the target has objects that it did not create."""
        with self.engines[1].connect() as connection:
            before = bootstraps.read_bootstrap(connection, self.channel.name)
        order = self.options.order
        if self.options.replace and (before is None or order == "" or before.replaced_for != order):
            return None
        if before is not None and before.databases != tuple(databases):
            raise PrecheckError(
                f"channel {self.channel.name}: an unfinished first copy has the databases "
                f"{', '.join(before.databases)}, this one {', '.join(databases)}: use the same --databases, or "
                "--replace, which drops these databases on the target and starts from the beginning"
            )
        check_empty(contents(writer, databases), () if before is None else before.made, self.target)
        return before

    def _while_locked(self, lock: Session) -> Accounts:
        return read_accounts(lock) if self.options.users else no_accounts()

    def _copy(
        self,
        writer: Session,
        databases: Sequence[str],
        before: Bootstrap | None,
        snapshot: Snapshot,
        accounts: Accounts,
    ) -> Outcome:
        start = begin(self.log_source, str(snapshot.position))
        mark = Watermark(0, start.position, start.gtid_set, start.time, start.fingerprint)
        with translated(str(self.source)), driver_errors(), self.engines[0].connect() as asked:
            schema = read_schema(asked, databases)
        taken = {key: table for key, table in schema.tables.items() if self.selection.table(key) is None}
        schema = replace(schema, tables=taken)
        check_tables(schema, self.source)
        with self._reading() as reader:
            definitions = read_definitions(reader, databases, schema.tables)
            estimates = _estimates(reader, databases)
        kept = self._kept(before, schema)
        gone = set() if before is None else set(before.made) - kept
        with self.engines[1].begin() as connection:
            replaces = self.options.replace and before is None
            if replaces:
                for database in databases:
                    drop_database(writer, database)
                bootstraps.forget_bootstrap(connection, self.channel.name)
            attempts = bootstraps.save_snapshot(
                connection, self.channel.name, databases, start.identity, mark, kept,
                replaced_for=self.options.order if replaces else "",
            )  # fmt: skip
        for obj in sorted(gone, key=lambda one: one.kind == TABLE):
            drop(writer, obj)
        with self.engines[1].begin() as connection:
            bootstraps.plan_objects(connection, self.channel.name, definitions.objects - kept, gone)
        self._make_tables(writer, definitions, kept)
        left = _largest_first(schema, definitions, kept, estimates)
        self.progress.begins(len(left), sum(estimates.get(table.key, 0) for table in left))
        self._copy_rows(snapshot, left)
        with self._reading() as reader:
            for sequence in definitions.sequences:
                set_sequence(reader, writer, sequence)
        self._notes += make_accounts(writer, accounts)
        self._notes += make_behind_rows(writer, definitions.behind_rows)
        outcome = Outcome(
            channel=self.channel.name,
            databases=len(databases),
            tables=len(definitions.tables),
            kept=len(kept),
            rows=self._rows,
            others=len(definitions.behind_rows) + len(definitions.sequences),
            accounts=len(accounts.made),
            notes=tuple(self._notes),
            attempts=attempts,
            mark=mark,
        )
        self._end(outcome, start.identity)
        return outcome

    def _end(self, outcome: Outcome, identity: str) -> None:
        """Create the channel. If this run is killed after that, the next attempt finds the result in the state."""
        record = {
            one.name: getattr(outcome, one.name) for one in fields(outcome) if one.name not in ("channel", "mark")
        }
        with self.engines[1].begin() as connection:
            bootstraps.save_outcome(connection, outcome.channel, {**record, "asked": _asked(self.options)})
        made = create_channel(self.engines[1], outcome.channel, identity, outcome.mark, bootstraps.TABLES).watermark
        if (made.seqno, made.source) != (0, outcome.mark.source):
            raise PrecheckError(
                f"channel {outcome.channel}: was created by somebody else while its first copy ran, at seqno "
                f"{made.seqno}, {made.source}: expected {outcome.mark.source}, the place of the copied tables. "
                "Before it runs, see `Begin a channel again` in docs/recovery.md, with --start "
                f"{outcome.mark.source}"
            )
        with self.engines[1].begin() as connection:
            bootstraps.finish_bootstrap(connection, outcome.channel, self.options.order)

    def _make_tables(self, writer: Session, definitions: Definitions, kept: set[SchemaObject]) -> None:
        present = [name for (name,) in writer.texts("SELECT schema_name FROM information_schema.schemata")]
        for database in definitions.databases:
            make_database(writer, database, present)
        for definition in (*definitions.sequences, *definitions.tables):
            if definition.schema_object not in kept:
                make(writer, definition)

    def _copy_rows(self, snapshot: Snapshot, left: Sequence[Table]) -> None:
        def table_done(key: TableKey, rows: int) -> None:
            self._rows += rows
            with self.engines[1].begin() as connection:
                obj = SchemaObject(TABLE, key.database, key.table)
                bootstraps.set_state(connection, self.channel.name, obj, DONE, rows)
            self.progress.finished(key)

        with ExitStack() as stack:
            writers = [
                stack.enter_context(contextlib.closing(write_session(self.target))) for _ in range(self.options.jobs)
            ]
            Copier(snapshot.readers, writers, self.options.chunk_rows, table_done, self.progress.copied).copy(left)

    def _kept(self, before: Bootstrap | None, schema: Schema) -> set[SchemaObject]:
        """The earlier attempt's finished tables that the log does not change after its snapshot."""
        if before is None or not before.done:
            return set()
        mark = before.snapshot
        start = Start(0, mark.source, mark.gtid_set, mark.source_time, before.source_identity, mark.fingerprint)
        try:
            with contextlib.closing(verified(self.log_source, self.log_source.state(), start)) as chunks:
                next(chunks)
                next(chunks, None)
            changed = ChangeReader(schema, schema, {}).read_source(self.log_source, mark.source, mark.gtid_set)
        except (MissingLogError, SourceIdentityError) as exc:
            self._notes.append(f"no table of an earlier attempt was kept: {exc}")
            return set()
        return {
            obj
            for obj in before.done
            if (key := TableKey(obj.database, obj.name)) in schema.tables and not changed.covers_table(key)
        }

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Session]:
        with contextlib.closing(read_session(self.source)) as session:
            yield session


def _asked(options: Options) -> list[object]:
    """The arguments that distinguish one copy from another."""
    return [list(options.databases), options.users]


def _estimates(reader: Session, databases: Sequence[str]) -> dict[TableKey, int]:
    chosen = ", ".join(map(quoted, databases))
    rows = reader.texts(
        "SELECT table_schema, table_name, COALESCE(table_rows, 0) FROM information_schema.tables "
        f"WHERE table_schema IN ({chosen})"
    )
    return {TableKey(database, name): int(count) for database, name, count in rows}


def _largest_first(
    schema: Schema, definitions: Definitions, kept: set[SchemaObject], estimates: dict[TableKey, int]
) -> list[Table]:
    """Large tables first, so that the last one to finish is small."""
    keys = [TableKey(one.database, one.name) for one in definitions.tables if one.schema_object not in kept]
    return [schema.tables[key] for key in sorted(keys, key=lambda key: -estimates.get(key, 0))]
