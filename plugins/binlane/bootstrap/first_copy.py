"""The steps of a first copy: check, snapshot, definitions, rows, later definitions (triggers, views, events), and the
channel's watermark.

Every step can be killed. Objects are recorded before they are created on the target. The next attempt takes a new
snapshot, brings the rows of the earlier one to it (``catch_up``), continues behind them, and drops all other recorded
objects, and nothing else.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field, replace
from typing import Final
from uuid import uuid4

from sqlalchemy import Engine

from binlane.apply.refusals import driver_errors
from binlane.bootstrap.account_copy import Accounts, drop_accounts, make_accounts, names_of, no_accounts, read_accounts
from binlane.bootstrap.broken_views import drop_stand_ins, make_broken_views
from binlane.bootstrap.catch_up import CatchUp, EarlierAttempt
from binlane.bootstrap.copy_checks import (
    check_empty,
    check_engines,
    check_functions,
    check_tables,
    chosen_databases,
    parents_left_out,
    require_no_writer,
)
from binlane.bootstrap.copy_progress import Meter, Progress
from binlane.bootstrap.definition_copy import (
    Definition,
    Definitions,
    contents,
    drop,
    drop_database,
    make,
    make_behind_rows,
    make_database,
    read_definitions,
    rehearse_programs,
    set_auto_increment,
    set_sequence,
)
from binlane.bootstrap.kept_sessions import kept_open, take_lease
from binlane.bootstrap.row_copy import Copier, RemainingTable
from binlane.bootstrap.secondary_keys import build_keys, can_wait, drop_keys
from binlane.bootstrap.sessions import Session, read_session, write_session
from binlane.bootstrap.snapshot import Snapshot, shared_snapshot
from binlane.bootstrap.throttle import NO_LIMITS, Limits, Throttle
from binlane.choices import Compressed
from binlane.config import ChannelConfig
from binlane.connections import Endpoint
from binlane.errors import PrecheckError, SourceIdentityError, WindowBusyError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, SchemaObject, TableKey
from binlane.schema.model import Schema
from binlane.servers.catalog import read_databases, read_schema
from binlane.servers.names import among, literals
from binlane.sessions.server_proof import ServerProof
from binlane.shards.selection import EVERYTHING, Extent, Selection
from binlane.source.loaded_dumps import begin_copy, check_no_dump_since, loaded_dumps
from binlane.source.older_sessions import highest_older_session
from binlane.source.protocol import EventSource
from binlane.source.server import translated
from binlane.state.channels import Channel, Watermark, create_channel, has_channel, read_channel
from binlane.state.leases import bootstrap_lease
from binlane.state.migrations.check import require_current
from binlane.state.migrations.upgrade import create
from binlane.state.records import bootstraps
from binlane.state.records.bootstraps import TABLE, Bootstrap, CopyResult, Key, Size
from binlane.state.stored_values import unexpected
from binlane.state.target_record import record_target

_LEASE_SECONDS: Final = 10
"""Seconds to wait until a server has noticed that an earlier run was killed."""
_OF_ANOTHER: Final = (
    "would be dropped, and its next ones would meet the copied ones",
    "or leave it out by --databases",
)


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
    limits: Limits = NO_LIMITS
    compress: Compressed = Compressed.NONE
    """Of the connections that carry rows."""
    order: str = ""
    """Identifies the request. With ``replace``, a later attempt of the same order continues and does not drop again; an
    empty order is never the same."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a finished copy."""

    channel: str
    mark: Watermark
    result: CopyResult


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
    _notes: list[str] = field(default_factory=list)
    _left: frozenset[SchemaObject] = frozenset()
    """Accounts of an interrupted attempt that stay, and stay recorded."""

    def run(self) -> Outcome:
        """Copy. Raises PrecheckError before anything is written, SourceError, TargetError, and the target's driver
        errors unchanged."""
        create(self.engines[1], self.channel.work.uri)
        with ExitStack() as stack:
            writer = stack.enter_context(contextlib.closing(write_session(self.target)))
            self._take_lease(writer)
            stack.enter_context(kept_open(writer))
            with self.engines[1].connect() as connection:
                # a newer binlane holds this lease while it migrates the tables
                require_current(connection)
            if (ended := self._ended()) is not None:
                return ended
            self.progress.phase("checks")
            databases = self._checked()
            before = self._before(writer, databases)
            self.progress.phase("the snapshot of the source")
            # before the snapshot: a dump that sets these later is not in the copy, or not whole
            had = self._had()
            # one for the chunks, one for the numbers of rows
            readers, compresses = self.options.jobs + 2, self.options.compress.includes(Compressed.SOURCE)
            taken = shared_snapshot(
                self.source, readers, self.options.lock_seconds, self._while_locked, compresses=compresses
            )
            snapshot, accounts = stack.enter_context(taken)
            return self._copy(writer, databases, before, snapshot, accounts, had)

    def _take_lease(self, writer: Session) -> None:
        busy = f"channel {self.channel.name}: another first copy of this channel is running"
        take_lease(writer, bootstrap_lease(self.channel.name), _LEASE_SECONDS, busy)

    def _require_lease(self, writer: Session) -> None:
        """Raises WindowBusyError if the lease was lost while other sessions copied: another copy may have begun."""
        if not writer.holds(bootstrap_lease(self.channel.name)):
            raise _lost_lease(self.channel.name)

    def _ended(self) -> Outcome | None:
        """The result of an earlier attempt that created the channel and was then killed, or that was of this order.
        Raises PrecheckError for any other existing channel."""
        name, options = self.channel.name, self.options
        with self.engines[1].begin() as connection:
            if not has_channel(connection, name):
                return None
            copied = bootstraps.read_copied(connection, name)
            if copied is not None:
                same = copied.result.asked == _asked(options)
                if copied.finished_for is None:
                    made = read_channel(connection, name)
                    self._require_own(made, copied.result.channel_uuid, copied.snapshot)
                if same and (copied.finished_for is None or "" != copied.finished_for == options.order):
                    bootstraps.finish_bootstrap(connection, name, options.order)
                    return Outcome(name, copied.snapshot, copied.result)
        of = "" if copied is None else f" (its first copy, of {', '.join(copied.databases)}, is complete)"
        raise PrecheckError(
            f"channel {name}: expected a channel without a watermark for a first copy, found one on this "
            f"target{of}; run the channel, or see `Begin a channel again` in docs/recovery.md"
        )

    def _require_own(self, made: Channel, uuid: str, copied: Watermark) -> None:
        """Raise PrecheckError unless the channel's row is the one that the copy has made."""
        if made.uuid != uuid:
            raise PrecheckError(
                f"channel {self.channel.name}: was created by somebody else while its first copy ran: expected seqno "
                f"0, {copied.source}, the place of the copied tables, found seqno {made.watermark.seqno}, "
                f"{made.watermark.source}; see `Begin a channel again` in docs/recovery.md, before it runs, with "
                f"--start {copied.source}"
            )

    def _checked(self) -> tuple[str, ...]:
        with translated(str(self.source)), driver_errors(), self.engines[0].connect() as asked:
            present = read_databases(asked)
        taken = [name for name in present if self.selection.database(name)[0] is not Extent.NONE]
        chosen = chosen_databases(taken, self.options.databases)
        if not chosen:
            raise PrecheckError(f"{self.source}: found no database to copy; use `binlane init CHANNEL`")
        return chosen

    def _before(self, writer: Session, databases: Sequence[str]) -> Bootstrap | None:
        """The unfinished attempt, if any. Raises PrecheckError if the target has objects that it did not create."""
        with self.engines[1].connect() as connection:
            before = bootstraps.read_bootstrap(connection, self.channel.name)
        order = self.options.order
        if self.options.replace and (before is None or order == "" or before.replaced_for != order):
            self._require_all_replaced(writer, before, databases)
            return None
        if before is not None and before.databases != tuple(databases):
            raise PrecheckError(
                f"channel {self.channel.name}: an unfinished first copy has the databases "
                f"{', '.join(before.databases)}, this one {', '.join(databases)}: use the same --databases, or "
                "--replace, which drops these databases on the target and starts from the beginning"
            )
        if before is not None and (others := sorted({obj.database for obj in before.objects} - {*databases})):
            # what is recorded there is dropped
            raise unexpected("binlane.bootstrap_objects.object_schema", f"one of {', '.join(databases)}", others[0])
        if before is not None:
            self._require_same_source(before)
        # those of an interrupted attempt may be in databases of views that are gone by now
        drop_stand_ins(writer, self.channel.name, databases, () if before is None else None)
        check_empty(contents(writer, databases), () if before is None else before.objects, self.target)
        return before

    def _require_all_replaced(self, writer: Session, before: Bootstrap | None, databases: Sequence[str]) -> None:
        """Raises PrecheckError if databases of the unfinished attempt would stay, half copied, without a record, or if
        another channel writes one that is dropped."""
        there = {name for (name,) in writer.texts("SELECT schema_name FROM information_schema.schemata")}
        others = () if before is None else sorted(there.intersection(before.databases).difference(databases))
        if others:
            raise PrecheckError(
                f"channel {self.channel.name}: an unfinished first copy has left tables without their rows in "
                f"{', '.join(others)} on the target, which --replace would not drop: expected them among --databases, "
                f"found {', '.join(databases)}; add them, or drop them on {self.target} first"
            )
        with self.engines[1].connect() as connection:
            require_no_writer(connection, str(self.target), self.channel.name, databases, *_OF_ANOTHER)

    def _require_same_source(self, before: Bootstrap) -> None:
        mark = before.snapshot
        try:
            with self._reading() as reader:
                reader.prove_as(ServerProof(before.source_identity, mark.gtid_set, mark.source))
        except SourceIdentityError as exc:
            raise SourceIdentityError(
                f"channel {self.channel.name}: an unfinished first copy is of another source: {exc}. If this is the "
                "channel's source from now on: --replace drops the databases on the target and starts from the "
                "beginning"
            ) from exc

    def _had(self) -> str:
        """GTIDs of what the source has, logged or not, and the copy will have. Raises PrecheckError while a dump is
        being loaded past the log."""
        state = self.log_source.state()
        loaded = loaded_dumps(self.log_source, state)
        if loaded:
            self._notes.append(
                f"{self.source}: no file of the log has the transactions {loaded}, which a dump or a backup has "
                "brought: they count as copied; if it was being loaded during this copy, copy again"
            )
        return state.unlogged

    def _while_locked(self, lock: Session) -> Accounts:
        return read_accounts(lock) if self.options.users else no_accounts()

    def _copy(
        self,
        writer: Session,
        databases: Sequence[str],
        before: Bootstrap | None,
        snapshot: Snapshot,
        accounts: Accounts,
        had: str,
    ) -> Outcome:
        self.progress.phase("definitions")
        start = begin_copy(self.log_source, snapshot.position, had)
        mark = Watermark(0, start.position, start.gtid_set, start.time, start.fingerprint)
        schema = self._schema(databases)
        check_tables(schema, self.source)
        self._notes += parents_left_out(schema.tables.values(), self.selection)
        with self._reading() as reader:
            definitions = read_definitions(reader, databases, schema.tables)
            check_engines(definitions.tables, schema, reader)
            sizes = _sizes(reader, databases)
            source_flavor = reader.flavor
        if writer.flavor is Flavor.MARIADB:
            there = {name for (name,) in writer.texts("SELECT schema_name FROM information_schema.schemata")}
            check_functions(definitions.behind_rows, there.difference(databases), self.target, source_flavor)
        if self.options.replace and before is None:
            self._drop_all(writer, databases, accounts)
        with ExitStack() as stack:
            compresses = self.options.compress.includes(Compressed.TARGET)
            writers = [
                stack.enter_context(contextlib.closing(write_session(self.target, compresses=compresses)))
                for _ in range(self.options.jobs)
            ]
            stack.enter_context(kept_open(*writers))
            kept = self._catch_up(writer, before, schema, snapshot, writers, accounts)
            attempts = self._plan(databases, before, (start.identity, mark), definitions, sizes, kept)
            broken = self._make_tables(writer, definitions, kept.tables, schema, sizes)
            programs = [
                each
                for each in definitions.behind_rows
                if each.kind != "VIEW" or _key(each.schema_object) not in broken
            ]
            rehearse_programs(writer, programs)
            rows = self._copy_rows(snapshot, writer, writers, schema, definitions, sizes, kept)
        self.progress.phase("sequences, accounts, views, routines, triggers and events")
        with self._reading() as reader:
            for sequence in definitions.sequences:
                set_sequence(reader, writer, sequence)
        self._notes += make_accounts(writer, accounts, self._plan_accounts)
        self._notes += make_behind_rows(writer, programs)
        result = CopyResult(
            databases=len(databases),
            tables=len(definitions.tables),
            kept=len(kept.finished),
            resumed=len(kept.partial),
            rows=kept.rows + rows,
            others=len(definitions.behind_rows) + len(definitions.sequences),
            accounts=len(accounts.made),
            notes=bootstraps.bounded_notes(self._notes),
            attempts=attempts,
            asked=_asked(self.options),
            channel_uuid=str(uuid4()),
        )
        outcome = Outcome(self.channel.name, mark, result)
        snapshot.require_held()
        # a dump that was loaded past the log meanwhile: no window would tell
        check_no_dump_since(self.log_source, mark.gtid_set)
        self._require_lease(writer)
        self._end(outcome, start.identity)
        return outcome

    def _drop_all(self, writer: Session, databases: Sequence[str], accounts: Accounts) -> None:
        """Drop the databases, the accounts of an interrupted attempt, and its record."""
        with self.engines[1].connect() as connection:
            interrupted = bootstraps.read_bootstrap(connection, self.channel.name)
        for database in databases:
            drop_database(writer, database)
        if interrupted is not None:
            drop_stand_ins(writer, self.channel.name, (), None)
        self._drop_accounts(writer, interrupted, accounts)
        with self.engines[1].begin() as connection:
            bootstraps.forget_bootstrap(connection, self.channel.name)

    def _drop_accounts(self, writer: Session, before: Bootstrap | None, accounts: Accounts) -> None:
        """Drop the accounts of an interrupted attempt that this one makes again, and name the others; without any, the
        account need not be allowed to."""
        if before is not None and before.objects != before.made.keys():
            # the record alone decides nothing: it could be changed on the target
            copied = {name for name, _ in accounts.made}
            drop_accounts(writer, lambda name: name in copied and before.has_account(name))
            there = names_of(writer.texts("SELECT user, host FROM mysql.user"))
            left = sorted(name for name in there if before.has_account(name))
            self._left = frozenset(map(bootstraps.account_object, left))
            why = "the source does not have it any more" if self.options.users else "this one copies no accounts"
            self._notes += [
                f"account {name}: an earlier attempt has made it, and {why}: it stays, with what it was granted; drop "
                "it if nobody needs it"
                for name in left
            ]

    def _plan_accounts(self, names: Collection[str]) -> None:
        with self.engines[1].begin() as connection:
            bootstraps.plan_objects(connection, self.channel.name, map(bootstraps.account_object, names), {})

    def _schema(self, databases: Sequence[str]) -> Schema:
        """The source's tables to copy."""
        with translated(str(self.source)), driver_errors(), self.engines[0].connect() as asked:
            schema = read_schema(asked, databases)
        return replace(schema, tables={key: one for key, one in schema.tables.items() if not self.selection.table(key)})

    def _catch_up(
        self,
        writer: Session,
        before: Bootstrap | None,
        schema: Schema,
        snapshot: Snapshot,
        writers: Sequence[Session],
        accounts: Accounts,
    ) -> EarlierAttempt:
        """Drop what the earlier attempt has created, except tables whose rows can be brought to the snapshot."""
        if before is None:
            return EarlierAttempt()
        self.progress.phase("rows of the earlier attempt")
        # triggers would fire for the rows that are written again
        self._drop_accounts(writer, before, accounts)
        for obj in before.objects:
            if obj.kind != TABLE:
                drop(writer, obj)
        with self.engines[1].connect() as connection:
            schemas = schema, read_schema(connection, before.databases)
        with translated(str(self.source)), driver_errors(), self.engines[0].connect() as asked:
            everything = read_schema(asked)
        catch_up = CatchUp(self.channel.name, before, schemas, everything, snapshot.readers, writers)
        kept = catch_up.run(self.log_source)
        self._notes += kept.notes
        gone = [obj for obj in before.made if obj.kind == TABLE and _key(obj) not in kept.tables]
        with self.engines[1].begin() as connection:
            bootstraps.unplan_rows(connection, self.channel.name, gone)
        for obj in gone:
            drop(writer, obj)
        return kept

    def _plan(
        self,
        databases: Sequence[str],
        before: Bootstrap | None,
        start: tuple[str, Watermark],
        definitions: Definitions,
        sizes: Mapping[TableKey, Size],
        kept: EarlierAttempt,
    ) -> int:
        """Record the snapshot and the objects to create; the attempt's number."""
        stays = {_object(key) for key in kept.tables}
        gone = () if before is None else before.made.keys() - stays - self._left
        order = self.options.order if self.options.replace and before is None else ""
        with self.engines[1].begin() as connection:
            attempts = bootstraps.save_snapshot(connection, self.channel.name, databases, *start, replaced_for=order)
            if before is None:
                bootstraps.plan_objects(connection, self.channel.name, self._left, {})
            bootstraps.forget_objects(connection, self.channel.name, gone)
            of_objects = {_object(key): size for key, size in sizes.items()}
            bootstraps.plan_objects(connection, self.channel.name, definitions.objects - stays, of_objects)
        return attempts

    def _end(self, outcome: Outcome, identity: str) -> None:
        """Create the channel. If this run is killed after that, the next attempt finds the result in the state."""
        with self.engines[1].begin() as connection:
            bootstraps.save_result(connection, outcome.channel, outcome.result)
        older = highest_older_session(self.log_source, outcome.mark.source)
        state = create_channel(
            self.engines[1], outcome.channel, identity, outcome.mark, bootstraps.TABLES, older_sessions=older,
            uuid=outcome.result.channel_uuid,
        )  # fmt: skip
        record_target(self.channel.work.uri, state)
        self._require_own(state, outcome.result.channel_uuid, outcome.mark)
        with self.engines[1].begin() as connection:
            bootstraps.finish_bootstrap(connection, outcome.channel, self.options.order)

    def _make_tables(
        self,
        writer: Session,
        definitions: Definitions,
        kept: Collection[TableKey],
        schema: Schema,
        sizes: Mapping[TableKey, Size],
    ) -> frozenset[TableKey]:
        """All of them, empty, and before them the views that need more than them; these views' names."""
        present = [name for (name,) in writer.texts("SELECT schema_name FROM information_schema.schemata")]
        for database in definitions.databases:
            make_database(writer, database, present)
        views = [each for each in definitions.behind_rows if each.kind == "VIEW"]
        broken = make_broken_views(writer, self.channel.name, views, schema.tables)
        self._notes += broken.notes
        for definition in (*definitions.sequences, *definitions.tables):
            if _key(definition.schema_object) not in kept:
                make(writer, definition)
        parents = {parent for _, parent in schema.references}
        for definition in definitions.tables:
            key = _key(definition.schema_object)
            if key not in kept and can_wait(schema.tables[key], sizes.get(key, Size(0, 0)), definition, parents):
                drop_keys(writer, definition)
        for definition in definitions.tables:
            if _key(definition.schema_object) in kept:
                set_auto_increment(writer, definition)
        return broken.names

    def _copy_rows(
        self,
        snapshot: Snapshot,
        writer: Session,
        writers: Sequence[Session],
        schema: Schema,
        definitions: Definitions,
        sizes: Mapping[TableKey, Size],
        kept: EarlierAttempt,
    ) -> int:
        """Copy the rows that are left, large tables first, so that the last one to finish is small; their number."""
        with self.engines[1].connect() as connection:
            recorded = bootstraps.read_bootstrap(connection, self.channel.name)
        assert recorded is not None
        made = {_key(obj): one for obj, one in recorded.made.items() if obj.kind == TABLE}
        keys = [_key(definition.schema_object) for definition in definitions.tables]
        rows = {key: made[key].rows for key in keys}
        meter = Meter({key: sizes.get(key, Size(0, 0)) for key in keys}, rows, kept.finished, self.progress)
        left = [
            RemainingTable(
                schema.tables[key], kept.partial.get(key), made[key].reached_rows if key in kept.partial else 0
            )
            for key in sorted(keys, key=meter.bytes_left, reverse=True)
            if key not in kept.finished
        ]
        left += [
            RemainingTable(schema.tables[key], rows=made[key].rows, is_complete=True)
            for key in keys
            if key in kept.finished
        ]
        by_key = {_key(definition.schema_object): definition for definition in definitions.tables}
        diary = _Diary(self.channel.name, self.engines[1], meter, by_key, writer.connection.thread_id())
        limits = self.options.limits
        with self._reading() if limits.ask_source else contextlib.nullcontext() as asked:
            failed = threading.Event()
            throttle = Throttle(limits, asked, meter.wait, failed)
            with contextlib.closing(write_session(self.target)) as counter, kept_open(counter):
                *readers, ours = snapshot.readers
                copier = Copier(
                    readers, writers, (ours, counter), self.options.chunk_rows, diary, throttle.wait, failed
                )
                copier.copy(left)
        return meter.new_rows

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Session]:
        with contextlib.closing(read_session(self.source)) as session:
            yield session


@dataclass(frozen=True, slots=True)
class _Diary:
    """Writes how far the copy has come to the state and to the meter."""

    channel: str
    engine: Engine
    meter: Meter
    definitions: Mapping[TableKey, Definition]
    holder: int
    """The connection of the target that holds the lease of this copy."""

    def written(self, writer: Session, table: TableKey, rows: int, frontier: tuple[Key, int] | None) -> None:
        """See ``rows.Diary``. Raises WindowBusyError if the lease was lost: while this machine stood still, another
        copy may have begun, and has made the table anew."""
        [(held,)] = writer.texts(f"SELECT IS_USED_LOCK('{bootstrap_lease(self.channel)}')")
        if held != str(self.holder):
            raise _lost_lease(self.channel)
        bootstraps.count_rows(writer.execute, self.channel, _object(table), rows, reached=frontier)

    def committed(self, table: TableKey, rows: int) -> None:
        """See ``rows.Diary``."""
        self.meter.copied(table, rows)

    def emptied(self, table: TableKey) -> None:
        """See ``rows.Diary``."""
        with self.engine.begin() as connection:
            bootstraps.unplan_rows(connection, self.channel, [_object(table)])
        self.meter.empty(table)

    def finished(self, writer: Session, table: TableKey) -> None:
        """See ``rows.Diary``."""
        build_keys(writer, self.definitions[table])
        with self.engine.begin() as connection:
            bootstraps.finish_table(connection, self.channel, _object(table))
        self.meter.finish(table)


def _lost_lease(channel: str) -> WindowBusyError:
    return WindowBusyError(
        f"channel {channel}: lost the lease of its first copy, and another one may have begun since: `binlane status "
        f"{channel}`, then the same command again"
    )


def _object(table: TableKey) -> SchemaObject:
    return SchemaObject(TABLE, table.database, table.table)


def _key(obj: SchemaObject) -> TableKey:
    return TableKey(obj.database, obj.name)


def _asked(options: Options) -> tuple[tuple[str, ...], bool]:
    """The arguments that distinguish one copy from another."""
    return options.databases, options.users


def _sizes(reader: Session, databases: Sequence[str]) -> dict[TableKey, Size]:
    rows = reader.texts(
        "SELECT table_schema, table_name, COALESCE(table_rows, 0), COALESCE(data_length, 0) "
        f"FROM information_schema.tables WHERE {among('table_schema', literals(databases))}"
    )
    return {TableKey(database, name): Size(int(count), int(size)) for database, name, count, size in rows}
