"""``binlane drill``: proves that restores work, by restoring random databases and comparing them with the live copy.

Each database is restored by `binlane restore` to a random moment of the log under a name of its own, then extended to
the channel's watermark, and compared there. What a drill makes is recorded in a file before it is made, and removed by
that record, also by the next drill after a kill. It never writes to the channel's own databases.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import random
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any, Final

from binlane.activity import doing
from binlane.apply.target_state import target_state
from binlane.binlog.wire import HEADER
from binlane.bootstrap.definition_copy import drop_database
from binlane.bootstrap.kept_sessions import kept_open, take_lease
from binlane.bootstrap.sessions import write_session
from binlane.choices import FilterPolicy
from binlane.config import ChannelConfig
from binlane.config.kinds import place_of
from binlane.connections import Endpoints, Resolver, environment_resolver, resolve_endpoints
from binlane.errors import (
    AbsentDatabaseError,
    BinlaneError,
    ConfigError,
    EndNotReachedError,
    PrecheckError,
)
from binlane.lazy_dataclass import dataclass
from binlane.model import plural, size_text
from binlane.orchestration.audited import audited, whoami
from binlane.orchestration.commands.channel import load
from binlane.orchestration.commands.channel_files import make_folder, replace_text
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.commands.copies.drill_comparison import Comparison, compare_restored
from binlane.orchestration.commands.copies.restore_plan import PATTERN, EndRequest, RestoreRequest, folder_of
from binlane.orchestration.commands.copies.restore_record import recorded
from binlane.orchestration.effective_rules import rules_of
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.report import moment
from binlane.orchestration.request import NOW
from binlane.orchestration.terminal import Grid, Terminal, View
from binlane.rename_rules import is_system
from binlane.restore.dump import dump_of
from binlane.safe_text import one_line
from binlane.servers.catalog import read_databases, read_schema
from binlane.servers.engines import engine_of
from binlane.shards.selection import Extent
from binlane.source.archive import ArchiveSource
from binlane.source.archive_check import check_archive
from binlane.source.protocol import first_bytes
from binlane.source.start_position import begin
from binlane.state.channels import read_channel
from binlane.state.leases import bootstrap_lease
from binlane.state.records.drills import (
    EQUAL,
    FAILED,
    INCOMPLETE,
    NOTHING_KNOWN,
    RUNNING,
    Drill,
    DrillMemory,
    TenantResult,
    begin_drill,
    drill_memory,
    drilled_databases,
    read_drills,
    save_drill,
    worst,
)
from binlane.state.records.restores import COMPLETE, EXTENDING, MOVING, Restore
from binlane.work.files import WorkFolder

_LEASE_SECONDS: Final = 10
_MOMENTS: Final = 20
"""Moments that are drawn for a database until it is there at one."""
_COMPARISONS: Final = 3
_LISTED: Final = 30
_SEEDS: Final = 1 << 31


@dataclass(frozen=True, slots=True)
class DrillRequest:
    """The arguments of ``binlane drill``; None: as the channel's file has it, or the default."""

    tenants: int | None = None
    base: str | None = None
    log: str | None = None
    seed: int | None = None


def drill(
    name: str, request: DrillRequest, channels: Path, console: Terminal, *, as_json: bool,
    resolve: Resolver | None = None,
) -> tuple[View, bool]:  # fmt: skip
    """Restore, compare, record, remove; the result, and whether everything was equal.

    Raises ConfigError and PrecheckError for a drill that cannot begin, WindowBusyError for one that is running. A fault
    of the archive, and a database that cannot be restored, are results.
    """
    channel, endpoints = load(name, channels, resolve)
    base, log = request.base or channel.drill.base, request.log or channel.drill.log
    if not base or not log:
        lacks = " and ".join(option for option, value in (("--from", base), ("--log", log)) if not value)
        raise ConfigError(
            f"{lacks}: expected where the restores of the drill begin; give it, or write base and log below [drill] in "
            f"{channel.file}"
        )
    # stored for ever, and shown to whoever reads the drills
    base, log = place_of("--from", base), place_of("--log", log)
    seed = random.SystemRandom().randrange(_SEEDS) if request.seed is None else request.seed
    with _lease(endpoints, name):
        run = _Run(channel, endpoints, channels, console, resolve, base, log, random.Random(seed))
        run.clean()
        with engine_of(endpoints.target).connect() as connection:
            run.memory = drill_memory(connection, name)
            again = () if request.seed is None else drilled_databases(connection, name, seed)
        # a seed that no drill had is a choice of its own
        unproved = frozenset[str]() if again is None else {each.database for each in run.memory.unproved}
        tenants = channel.drill.tenants if request.tenants is None else request.tenants
        chosen = run.chosen(tenants, again or (), unproved)
        with engine_of(endpoints.target).begin() as connection:
            run.number = begin_drill(connection, name, seed, base, log, whoami(), run.memory)
        try:
            run.restore_all(chosen)
            state, error = worst([each.state for each in run.results]), ""
        except BinlaneError as exc:
            state, error = FAILED, f"{type(exc).__name__}: {exc}"
        run.clean()
        run.save(state, error)
        [found] = run.read(1)
    return (json.dumps(_object(found), indent=1) if as_json else _view(found, run.left_out)), state == EQUAL


def clean(name: str, channels: Path, console: Terminal, resolve: Resolver | None = None) -> str:
    """Remove what a drill that was killed has left."""
    channel, endpoints = load(name, channels, resolve)
    with _lease(endpoints, name):
        run = _Run(channel, endpoints, channels, console, resolve, "", "", random.Random(0))
        removed = run.clean()
    return f"channel {name}: {plural(removed, 'restored database')} of a drill removed"


def drills(name: str, channels: Path, *, as_json: bool, resolve: Resolver | None = None) -> View:
    """The newest drills of a channel."""
    _, endpoints = load(name, channels, resolve)
    with target_state(endpoints.target) as engine, engine.connect() as connection:
        read_channel(connection, name)
        found = read_drills(connection, name, _LISTED)
    if as_json:
        return json.dumps([_object(each) for each in found], indent=1)
    grid = Grid(f"channel {name}: {plural(len(found), 'drill')}").columns("drill", "begun (UTC)", "result")
    grid.columns("databases", "log", "seed")
    for each in found:
        equal = sum(one.state == EQUAL for one in each.tenants)
        databases = f"{equal:,} of {len(each.tenants):,} equal"
        grid.row(str(each.id), each.started_at[:19], each.state, databases, size_text(each.log_bytes), str(each.seed))
    return grid


@contextlib.contextmanager
def _lease(endpoints: Endpoints, name: str) -> Iterator[None]:
    """One drill of a channel at a time."""
    with target_state(endpoints.target), contextlib.closing(write_session(endpoints.target)) as session:
        take_lease(session, bootstrap_lease(f"drill/{name}"), _LEASE_SECONDS, f"channel {name}: a drill is running")
        with kept_open(session):
            yield


@dataclass(slots=True)
class _Run:
    """One drill."""

    channel: ChannelConfig
    endpoints: Endpoints
    channels: Path
    console: Terminal
    resolve: Resolver | None
    base: str
    log: str
    random: random.Random
    number: int = 0
    log_bytes: int = 0
    results: list[TenantResult] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    memory: DrillMemory = NOTHING_KNOWN
    """What the drills before have found."""

    @property
    def record(self) -> Path:
        """The file that names the restores which this channel's drill has begun: they, and no others, are removed."""
        # channels of sibling folders can have one name
        return folder_of(self.channels) / f"{self.channels.absolute().name}.{self.channel.name}.drill"

    def chosen(self, count: int, first: Sequence[str], unproved: Set[str]) -> list[str]:
        """Random databases, by the source's names, behind those of ``first`` and most of ``unproved`` that can be
        restored; the memory forgets databases that the channel has no more. Raises ConfigError and PrecheckError if
        there is none."""
        channel = self.channel
        refused = [kind for kind, policy in channel.filter.kinds.items() if policy == FilterPolicy.IGNORE]
        if refused := [kind for kind in refused if kind != "accounts"]:
            raise ConfigError(
                f"{channel.file}: filter.kinds.{refused[0]}: the channel leaves out what the log has, so the live copy "
                "is not what a restore brings back, and a drill cannot compare them"
            )
        if channel.collations:
            raise ConfigError(
                f"{channel.file}: [collations]: the live copy has other collations than the log, so it is not what a "
                "restore brings back, and a drill cannot compare them"
            )
        with doing("looking for the base's databases"):
            dumped = dump_of(Path(self.base), ()).place().databases
        with engine_of(self.endpoints.target).connect() as connection:
            there = read_databases(connection)
            rules = rules_of(channel, read_schema(connection, ()))

        def excuse(database: str) -> str:
            """Why a database cannot be drilled; empty: it can."""
            if PATTERN & {*database}:
                return f"a restore takes no name with {' '.join(sorted(PATTERN))}"
            if rules.renaming.changes(database):
                return "the channel renames it"
            return "" if database in there else "the live copy does not have it"

        def is_taken(database: str) -> bool:
            return not is_system(database) and rules.selection.database(database)[0] is not Extent.NONE

        taken = {database: excuse(database) for database in sorted(dumped) if is_taken(database)}
        found = [database for database, why in taken.items() if not why]
        self.left_out += [f"{database}: {why}" for database, why in taken.items() if why]
        left = [each for each in self.memory.unproved if is_taken(each.database) and not excuse(each.database)]
        self.left_out += [f"{each}: the base does not have it" for each in left if each.database not in dumped]
        if not found:
            reasons = f"; {'; '.join(self.left_out)}" if self.left_out else ""
            raise PrecheckError(
                f"{self.base}: expected a database that the channel {channel.name} has on the target under the same "
                f"name, found none{reasons}; give another base with --from"
            )
        # of all, so that the moments that are drawn behind it do not go by the number
        drawn = self.random.sample(found, len(found))
        # one of the others at least: some databases can never be equal (a FLOAT in a dump's text)
        known = [database for database in drawn if database in unproved][: max(count - 1, 1)]
        others = (database for database in drawn if database not in unproved)
        ranks = {database: rank for rank, database in enumerate(dict.fromkeys((*first, *known, *others)))}
        drawn.sort(key=lambda database: ranks.get(database, len(ranks)))
        is_partial = min(count, len(found)) < min(self.channel.drill.tenants, len(found))
        self.memory = replace(self.memory, unproved=tuple(left), is_partial=is_partial)
        return drawn[:count]

    def restore_all(self, chosen: Sequence[str]) -> None:
        """Raises SourceError for a fault of the archive."""
        ends = self._require_whole()
        with engine_of(self.endpoints.target).connect() as connection:
            mark = read_channel(connection, self.channel.name).watermark
        if ends:
            ends = min(ends, mark.source_time)
        begins = self._begins()
        ends = ends or mark.source_time
        if ends <= begins:
            raise ConfigError(
                f"{self.base}: expected a base of a time before the end of {self.log} and before the watermark "
                f"({moment(ends)}), found {moment(begins)}; take an older base, or add the log behind it"
            )
        for count, database in enumerate(chosen):
            with doing(f"{database}; databases") as activity:
                activity.total, activity.done = len(chosen), count
                # each target numbers its drills, and channels of many targets have their restores in one folder
                name = f"drill_{self.number}_{count + 1}_{uuid.uuid4().hex[:8]}"
                self.results.append(self._tenant(database, name, begins, ends))
            self.save(RUNNING)

    def _require_whole(self) -> float:
        """Read the archive to its end; the time of its last transaction. 0: a live server's log."""
        if "/" not in self.log:
            return 0.0
        source = ArchiveSource(self.log if "://" in self.log else str(Path(self.log).absolute()))
        with doing(f"reading {self.log}"):
            files = list(check_archive(source))
        self.log_bytes = sum(file.bytes for file in files)
        if faults := [fault for file in files for fault in file.faults]:
            raise PrecheckError(
                f"{self.log}: {plural(len(faults), 'fault')} of the archive; nothing was restored: {'; '.join(faults)}"
            )
        return max(file.last for file in files)

    def _begins(self) -> float:
        at = dump_of(Path(self.base), ()).place().begins(self.base)
        source = source_of(*self._reading())
        start = begin(source, at, None)
        # before the first transaction of its file a place has no time but the file's own
        return start.time or float(HEADER.unpack_from(first_bytes(source, start.position.file))[0])

    def _reading(self) -> tuple[ChannelConfig, Endpoints]:
        """A channel as this one whose source is the drill's log."""
        is_archive = "/" in self.log
        log = self.log if "://" in self.log or not is_archive else str(Path(self.log).absolute())
        own = replace(self.channel.source, connection=None if is_archive else log, archive=log if is_archive else None)
        reading = replace(self.channel, source=own)
        resolve = environment_resolver() if self.resolve is None else self.resolve
        return reading, Endpoints(resolve_endpoints(reading, resolve).source, self.endpoints.target)

    def _tenant(self, database: str, name: str, begins: float, ends: float) -> TenantResult:
        """Restore a database, extend it, compare it. An error is its result."""
        began, final, asked, place = time.monotonic(), f"binlane_{name}", "", ""
        result = TenantResult(database, final, "", "", "", 0, 0, 0, 0.0, FAILED, (), "")
        try:
            self._note(name)
            for draw in range(_MOMENTS):
                at = dt.datetime.fromtimestamp(self.random.uniform(begins, ends), dt.UTC)
                asked = at.isoformat(timespec="microseconds")
                try:
                    self._restore(database, name, final, asked)
                    break
                except AbsentDatabaseError:
                    if draw + 1 == _MOMENTS:
                        raise
            restored = load(name, folder_of(self.channels), self.resolve)
            place = str(self._read_restore(restored).definition.end)
            found = self._compared(name, database, final)
            with engine_of(self.endpoints.target).connect() as connection:
                reached = str(read_channel(connection, name).watermark.source)
            result = replace(
                result, compared_at=reached, rows=found.rows, tables=found.tables, definitions=found.definitions,
                state=found.state, differences=found.differences,
            )  # fmt: skip
        except BinlaneError as exc:
            result = replace(result, error=f"{type(exc).__name__}: {exc}")
        # databases of a drill do not add up
        self._remove(name)
        return replace(result, moment=asked, place=place, seconds=round(time.monotonic() - began, 3))

    def _compared(self, name: str, database: str, final: str) -> Comparison:
        """At the watermark; at a later one, if the live copy has changed since in a way that the log does not show."""
        for _ in range(_COMPARISONS):
            self._extend(name)
            restored = load(name, folder_of(self.channels), self.resolve)
            found = compare_restored((self.channel, self.endpoints), restored, database, final)
            if found.state != INCOMPLETE:
                break
        return found

    def _restore(self, database: str, name: str, final: str, until: str) -> None:
        request = RestoreRequest(
            name, self.base, self.log, (database,), (), final, EndRequest(until, None), None,
            self.channel.target.connection, work=self._work(),
        )  # fmt: skip
        restoring.restore(request, self.channels, self.console, carries_out=True, as_json=True, resolve=self.resolve)

    def _work(self) -> str:
        """The channel's work folder, wherever the drill is cleaned up."""
        folder = WorkFolder(self.channel.work.uri)
        return folder.path("").rstrip("/") if folder.is_local else folder.uri

    def _extend(self, name: str) -> None:
        """To the watermark: in the drill's log, and where that ends before it, in the channel's own source."""
        with engine_of(self.endpoints.target).connect() as connection:
            mark = str(read_channel(connection, self.channel.name).watermark.source)
        own = self.channel.source.connection or self.channel.source.archive or ""
        try:
            self._extend_to(name, mark, None)
        except EndNotReachedError:
            # no transaction of this log is at the watermark or behind it
            self._extend_to(name, NOW, None)
            with contextlib.suppress(EndNotReachedError):
                self._extend_to(name, mark, own)

    def _extend_to(self, name: str, until: str, log: str | None) -> None:
        restoring.extend(
            name, EndRequest(until, None), log, self.channels, self.console, carries_out=True, as_json=True,
            resolve=self.resolve,
        )  # fmt: skip

    def _read_restore(self, restored: tuple[ChannelConfig, Endpoints]) -> Restore:
        found = recorded(restored[1].target, restored[0])
        assert found is not None, "it has been restored a moment ago"
        return found

    def _note(self, name: str) -> None:
        """Record a restore before it writes anything, so that it can be removed after a kill."""
        make_folder(self.record.parent)
        self._write([*self._noted(), name])

    def _noted(self) -> list[str]:
        try:
            return json.loads(self.record.read_text("utf-8")) if self.record.exists() else []
        except ValueError as exc:
            raise ConfigError(
                f"{self.record}: expected the names of restores of a drill, found {exc}; `binlane restore --list`, "
                "`--drop` those of drills, then remove this file"
            ) from exc

    def _write(self, names: Sequence[str]) -> None:
        if not names:
            self.record.unlink(missing_ok=True)
            return
        replace_text(self.record, json.dumps(names))

    def clean(self) -> int:
        """Remove every restore that is recorded; how many there were."""
        names = self._noted()
        for name in names:
            self._remove(name)
        return len(names)

    def _remove(self, name: str) -> None:
        """Remove a restore of a drill, with its databases, by the restore's own record on the target."""
        if (folder_of(self.channels) / f"{name}.toml").exists():
            restored = load(name, folder_of(self.channels), self.resolve)
            found = recorded(restored[1].target, restored[0])
            if found is not None and found.stage == MOVING:
                # its names are between two states for seconds
                restoring.proceed(name, self.channels, self.console, as_json=True, resolve=self.resolve)
                found = self._read_restore(restored)
            if found is not None and found.stage in (COMPLETE, EXTENDING):
                finals = [final for _, final in found.definition.databases]
                # the channel's file may name another target since
                own = restored[1].target
                with (
                    audited(own, name, "drill", {"dropped": ", ".join(finals)}),
                    contextlib.closing(write_session(own)) as session,
                ):
                    for final in finals:
                        drop_database(session, final)
            restoring.drop_restore(name, self.channels, self.console, resolve=self.resolve)
        self._write([each for each in self._noted() if each != name])

    def save(self, state: str, error: str = "") -> None:
        """Store what is known so far."""
        with engine_of(self.endpoints.target).begin() as connection:
            save_drill(connection, self.number, self.log_bytes, self.results, state, error, self.memory)

    def read(self, limit: int) -> Sequence[Drill]:
        """The newest drills."""
        with engine_of(self.endpoints.target).connect() as connection:
            return read_drills(connection, self.channel.name, limit)


def _view(found: Drill, left_out: Sequence[str]) -> View:
    equal = sum(one.state == EQUAL for one in found.tenants)
    grid = Grid(
        f"channel {found.channel}: drill {found.id}: {found.state}: "
        + (
            f"{equal:,} of {plural(len(found.tenants), 'restored database')} equal to the live copy"
            if found.tenants
            else "nothing was restored"
        )
    )
    if found.tenants:
        grid.columns("database", "moment").columns("restored to", "compared at", "rows", "definitions", "seconds")
        grid.columns("result")
    for one in found.tenants:
        grid.row(
            one.database, one.moment[:19], one.place or "-", one.compared_at or "-", f"{one.rows:,}",
            f"{one.definitions:,}", f"{one.seconds:,.1f}", one.state,
        )  # fmt: skip
    lines = [
        f"{one.database}: {line}" for one in found.tenants for line in (*one.differences, *filter(None, [one.error]))
    ]
    lines += filter(None, [found.error])
    lines += [f"left out: {each}" for each in left_out]
    log = f"{size_text(found.log_bytes)} of log read and whole; " if found.log_bytes and not found.error else ""
    again = f"{log}the same choice again, from the same base and log: binlane drill {found.channel} --seed {found.seed}"
    return [grid, *(Grid(one_line(line)) for line in lines), Grid(again)]


def _object(found: Drill) -> Mapping[str, Any]:
    again = f"binlane drill {found.channel} --seed {found.seed}"
    return {
        "id": found.id, "channel": found.channel, "state": found.state, "seed": found.seed, "base": found.base,
        "log": found.log, "log_bytes": found.log_bytes, "by": found.by, "started_at": found.started_at,
        "ended_at": found.ended_at or None, "error": found.error or None,
        "databases": [asdict(one) for one in found.tenants],
        "next_steps": [] if found.state in (EQUAL, RUNNING) else [again],
    }  # fmt: skip
