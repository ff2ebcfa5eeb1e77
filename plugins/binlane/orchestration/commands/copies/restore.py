"""``binlane restore``: databases at a moment of the log, as a channel with a base, an end and names of its own.

Each stage can be killed and begins again where that is exact: the load from its beginning, windows from their lanes'
positions, the final names at the first one that is missing.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from binlane.activity import doing
from binlane.apply.refusals import target_errors
from binlane.bootstrap.definition_copy import drop_database
from binlane.bootstrap.sessions import Session, answering, write_session
from binlane.config import ChannelConfig
from binlane.connections import Endpoints, Resolver
from binlane.errors import BinlaneError, ConfigError, PositionError, StopRequestedError, WindowBusyError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, plural
from binlane.orchestration.commands.channel import load
from binlane.orchestration.commands.copies.restore_plan import (
    RestorePlan,
    RestoreRequest,
    folder_of,
    plan_object,
    plan_restore,
    plan_view,
    unfinished,
)
from binlane.orchestration.commands.run import apply_window
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.lane_processes import LaneProcesses
from binlane.orchestration.report import moment
from binlane.orchestration.request import WindowRequest
from binlane.orchestration.terminal import Grid, Terminal, View
from binlane.restore.dump_file import DumpFile
from binlane.restore.dump_load import DumpLoad
from binlane.restore.final_names import move, read_final_programs, require_free
from binlane.servers.engines import engine_of
from binlane.source.older_sessions import highest_older_session
from binlane.source.start_position import begin
from binlane.state import tables
from binlane.state.channels import Watermark, create_channel, has_channel, read_channel
from binlane.state.leases import bootstrap_lease
from binlane.state.migrations.upgrade import create
from binlane.state.records.restores import (
    COMPLETE,
    LOADING,
    MOVING,
    ROLLING,
    Restore,
    create_restore,
    forget_restore,
    has_restore,
    read_restore,
    set_stage,
)
from binlane.state.target_record import record_target
from binlane.work.files import WorkFolder

_LEASE_SECONDS: Final = 10


def restore(
    request: RestoreRequest, channels: Path, console: Terminal, *, carries_out: bool, as_json: bool,
    resolve: Resolver | None = None,
) -> View:  # fmt: skip
    """Plan a restore, and with ``carries_out`` do it. Raises everything that ``plan_restore`` and a window raise."""
    plan = plan_restore(request, channels, resolve)
    if not carries_out:
        if as_json:
            return json.dumps(plan_object(plan), indent=1)
        return [*plan_view(plan), Grid("to restore: the same command with --yes")]
    if not as_json:
        console.print(plan_view(plan))
    _begin(plan)
    return proceed(plan.name, channels, console, as_json=as_json, resolve=resolve)


def _begin(plan: RestorePlan) -> None:
    """Write the channel's file, and the restore's row: from now on the unfinished databases are its own."""
    plan.file.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(plan.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise ConfigError(f"{plan.file}: expected no such file, found one: another restore has begun") from None
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(plan.text)
    engine = engine_of(plan.endpoints.target)
    with target_errors(str(plan.endpoints.target)):
        create(engine, plan.channel.work.uri)
        with engine.begin() as connection:
            create_restore(connection, plan.name, plan.definition)


def proceed(
    name: str, channels: Path, console: Terminal, *, as_json: bool = False, resolve: Resolver | None = None
) -> View:
    """Go on with a restore to its end."""
    running = _Running.of(name, channels, console, resolve)
    with (
        target_errors(str(running.endpoints.target)),
        contextlib.closing(write_session(running.endpoints.target)) as session,
    ):
        _take_lease(session, name)
        found = running.read()
        while found.stage != COMPLETE:
            with doing(f"restore {name}: {found.stage}"):
                _STAGES[found.stage](running, found, session)
            found = running.read()
        notes = running.notes
        with engine_of(running.endpoints.target).connect() as connection:
            mark = read_channel(connection, name).watermark
    databases = ", ".join(f"{final} (from {old})" for old, final in found.definition.databases)
    if as_json:
        steps = [f"binlane restore --drop {name}"]
        values = {"name": name, "stage": found.stage, "databases": dict(found.definition.databases),
                  "end": str(mark.source), "time": mark.source_time, "notes": notes, "next_steps": steps}  # fmt: skip
        return json.dumps(values, indent=1)
    lines = [
        f"restore {name}: complete: {databases}; everything up to {mark.source} ({moment(mark.source_time)}), "
        f"{plural(mark.seqno, 'transaction')} of the log",
        *notes,
        f"look at it; then `binlane restore --drop {name}` forgets the restore and keeps the databases",
    ]
    return "\n".join(lines)


@dataclass(slots=True)
class _Running:
    name: str
    channel: ChannelConfig
    endpoints: Endpoints
    console: Terminal
    notes: list[str]

    @classmethod
    def of(cls, name: str, channels: Path, console: Terminal, resolve: Resolver | None) -> _Running:
        channel, endpoints = load(name, folder_of(channels), resolve)
        if endpoints.source is not None:
            endpoints = Endpoints(answering(endpoints.source), endpoints.target)
        return cls(name, channel, endpoints, console, [])

    def read(self) -> Restore:
        with engine_of(self.endpoints.target).connect() as connection:
            found = read_restore(connection, self.name) if has_restore(connection, self.name) else None
        if found is None:
            raise PositionError(
                f"restore {self.name}: {self.endpoints.target} does not have it: it was killed before it wrote "
                f"anything; `binlane restore --drop {self.name}`, then begin it again"
            )
        return found

    def names(self, found: Restore) -> Mapping[str, str]:
        """The databases' names until the restore is complete, and their final ones."""
        return {unfinished(final): final for _, final in found.definition.databases}

    def set_stage(self, stage: str) -> None:
        with engine_of(self.endpoints.target).begin() as connection:
            set_stage(connection, self.name, stage)


def _take_lease(session: Session, name: str) -> None:
    [(taken,)] = session.texts(f"SELECT GET_LOCK('{bootstrap_lease(name)}', {_LEASE_SECONDS})")
    if taken != "1":
        raise WindowBusyError(f"restore {name}: another process works on it; wait until it ends")


def _load(running: _Running, found: Restore, session: Session) -> None:
    """The base, from its beginning: what an earlier attempt has loaded is dropped. The channel's row is its end."""
    engine, definition = engine_of(running.endpoints.target), found.definition
    with engine.connect() as connection:
        is_loaded = has_channel(connection, running.name)
    if not is_loaded:
        source = source_of(running.channel, running.endpoints)
        start = begin(source, definition.begin)
        for database in running.names(found):
            drop_database(session, database)
        if definition.base:
            _load_dump(running, found, session)
        older = highest_older_session(source, start.position)
        mark = Watermark(0, start.position, start.gtid_set, start.time, start.fingerprint)
        create_channel(engine, running.name, start.identity, mark, (tables.restores,), older_sessions=older)
    with engine.connect() as connection:
        record_target(running.channel.work.uri, read_channel(connection, running.name))
    running.set_stage(ROLLING)


def _load_dump(running: _Running, found: Restore, session: Session) -> None:
    definition = found.definition
    dump = DumpFile(Path(definition.base))
    if dump.digest != definition.digest:
        raise ConfigError(
            f"{definition.base}: expected the dump with which the restore {running.name} was planned, found another "
            f"one; put that one back and `binlane restore --continue {running.name}`, or --drop it and begin again"
        )
    loading = DumpLoad(session, definition.base, {old: unfinished(final) for old, final in definition.databases})
    # the session that holds the lease gets the dump's variables: a session of its own for each load
    with contextlib.closing(write_session(running.endpoints.target)) as own:
        loading.session = own
        loading.run(dump.statements())
    running.notes += loading.notes
    running.console.line(("✓", "green"), (f" base, {plural(loading.size, 'byte')}", ""))


def _roll(running: _Running, found: Restore, session: Session) -> None:
    """Windows up to the end, then the programs as they are there."""
    end, engine = found.definition.end, engine_of(running.endpoints.target)

    def reached() -> LogPosition:
        with engine.connect() as connection:
            return read_channel(connection, running.name).watermark.source

    with LaneProcesses() as lanes:
        while reached() != end:
            request = WindowRequest(until_position=end)
            done = apply_window(running.channel, running.endpoints, request, "local", running.console, {}, lanes)
            if done.get("is_open"):
                raise StopRequestedError(
                    f"restore {running.name}: was stopped; `binlane resume {running.name} --channels "
                    f"{running.channel.file.rpartition('/')[0]}`, then `binlane restore --continue {running.name}`"
                )
            if "note" not in done:
                break
    require_free(session, running.names(found))
    programs = read_final_programs(session, running.names(found))
    with engine.begin() as connection:
        set_stage(connection, running.name, MOVING, programs)


def _move(running: _Running, found: Restore, session: Session) -> None:
    running.notes += move(session, running.names(found), found.programs)
    running.set_stage(COMPLETE)


_STAGES: Final[Mapping[str, Callable[[_Running, Restore, Session], None]]] = {
    LOADING: _load,
    ROLLING: _roll,
    MOVING: _move,
}


def drop_restore(name: str, channels: Path, console: Terminal, resolve: Resolver | None = None) -> str:
    """Remove an unfinished restore with its databases, or forget a complete one and keep its databases."""
    running = _Running.of(name, channels, console, resolve)
    engine = engine_of(running.endpoints.target)
    said = "nothing of it was on the target"
    with (
        target_errors(str(running.endpoints.target)),
        contextlib.closing(write_session(running.endpoints.target)) as session,
    ):
        _take_lease(session, name)
        with engine.connect() as connection:
            found = read_restore(connection, name) if has_restore(connection, name) else None
        if found is not None:
            said = "its databases stay"
            if found.stage == MOVING:
                raise PositionError(
                    f"restore {name}: its databases are getting their final names; `binlane restore --continue {name}` "
                    "ends that in seconds, then drop the databases that you do not want"
                )
            if found.stage != COMPLETE:
                for database in running.names(found):
                    drop_database(session, database)
                said = f"{', '.join(running.names(found))} dropped"
            with engine.begin() as connection:
                forget_restore(connection, name)
    channel = running.channel
    folder = WorkFolder(channel.work.uri)
    folder.child(name).remove()
    folder.remove_file(f"{name}.target.json")
    (folder_of(channels) / f"{name}.toml").unlink(missing_ok=True)
    return f"restore {name}: forgotten; {said}"


def restores(channels: Path, *, as_json: bool, resolve: Resolver | None = None) -> View:
    """All restores that have a file, with their progress."""
    rows = [_standing(file.stem, channels, resolve) for file in sorted(folder_of(channels).glob("*.toml"))]
    if as_json:
        return json.dumps([_standing_object(each) for each in rows], indent=1)
    grid = Grid(plural(len(rows), "restore")).columns("restore", "databases", fold=True)
    grid.columns("stage", "reached", "end", fold=True)
    for each in rows:
        found, reached = each.found, "-" if each.reached is None else str(each.reached)
        if found is None:
            grid.row(each.name, each.problem, "not begun", "-", "-")
            continue
        databases = ", ".join(f"{old} as {final}" for old, final in found.definition.databases)
        grid.row(each.name, databases, found.stage, reached, str(found.definition.end))
    return grid


@dataclass(frozen=True, slots=True)
class _Standing:
    """How far a restore is."""

    name: str
    found: Restore | None
    reached: LogPosition | None
    problem: str = ""
    """Why its target could not be asked."""


def _standing(name: str, channels: Path, resolve: Resolver | None) -> _Standing:
    try:
        _, endpoints = load(name, folder_of(channels), resolve)
        with target_errors(str(endpoints.target)), engine_of(endpoints.target).connect() as connection:
            found = read_restore(connection, name) if has_restore(connection, name) else None
            if found is None or not has_channel(connection, name):
                return _Standing(name, found, None)
            return _Standing(name, found, read_channel(connection, name).watermark.source)
    except BinlaneError as exc:
        # one target that does not answer hides no other restore
        return _Standing(name, None, None, f"{type(exc).__name__}: {exc}")


def _standing_object(each: _Standing) -> Mapping[str, Any]:
    found = each.found
    if found is None:
        steps = [] if each.problem else [f"binlane restore --drop {each.name}"]
        return {"name": each.name, "stage": None, "problem": each.problem, "next_steps": steps}
    step = "drop" if found.stage == COMPLETE else "continue"
    return {
        "name": each.name,
        "stage": found.stage,
        "databases": dict(found.definition.databases),
        "end": str(found.definition.end),
        "reached": None if each.reached is None else str(each.reached),
        "next_steps": [f"binlane restore --{step} {each.name}"],
    }
