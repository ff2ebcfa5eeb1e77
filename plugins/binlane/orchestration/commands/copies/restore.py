"""``binlane restore``: databases at a moment of the log, as a channel with a base, an end and names of its own.

Each stage can be killed and begins again where that is exact: the load from its beginning, windows from their lanes'
positions, the final names at the first one that is missing.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from binlane.activity import doing
from binlane.apply.refusals import target_errors
from binlane.bootstrap.definition_copy import contents, drop_database
from binlane.bootstrap.kept_sessions import kept_open, take_lease
from binlane.bootstrap.row_copy import count_rows
from binlane.bootstrap.sessions import Session, answering, definition_session, write_session
from binlane.choices import FROM_LOG
from binlane.config import ChannelConfig, load_channel, require_channel_name
from binlane.connections import Endpoints, Resolver, environment_resolver
from binlane.errors import ConfigError, PositionError, TableMismatchError, WindowBusyError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey, plural
from binlane.orchestration.announcing.redaction import redacted
from binlane.orchestration.audited import audited
from binlane.orchestration.commands.channel import load
from binlane.orchestration.commands.channel_files import make_folder, replace_text, write_new
from binlane.orchestration.commands.copies.restore_digest import (
    END,
    NAME,
    PlanFacts,
    digest_line,
    digest_of,
    require_approved,
)
from binlane.orchestration.commands.copies.restore_plan import (
    EndRequest,
    RestorePlan,
    RestoreRequest,
    folder_of,
    plan_extension,
    plan_object,
    plan_restore,
    plan_view,
    require_complete,
    require_no_other,
    require_replaceable_now,
)
from binlane.orchestration.commands.copies.restore_record import believed_in, recorded
from binlane.orchestration.commands.copies.restore_windows import apply_windows
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.report import moment
from binlane.orchestration.request import NOW
from binlane.orchestration.step_progress import told_load
from binlane.orchestration.target_load import TargetLoad, paced
from binlane.orchestration.terminal import Grid, Terminal, View
from binlane.restore.dump import Dump, dump_of
from binlane.restore.dump_load import DumpLoad
from binlane.restore.final_names import (
    is_moved,
    later,
    move,
    moved_before,
    present_databases,
    programs_elsewhere,
    read_final_programs,
    require_free,
    waits,
)
from binlane.restore.inexact_columns import inexact_notices
from binlane.restore.moved_tables import require_movable
from binlane.restore.replacement import change_places, have_changed_places, put_back, require_places
from binlane.restore.restored_events import event_notes
from binlane.restore.routine_grants import lost_grants
from binlane.safe_text import one_line
from binlane.servers.engines import engine_of
from binlane.servers.variables import version_number
from binlane.source.older_sessions import highest_older_session
from binlane.source.start_position import begin
from binlane.state import tables
from binlane.state.channels import Channel, Watermark, create_channel, has_channel, read_channel
from binlane.state.leases import bootstrap_lease, load_lease, restores_lease
from binlane.state.migrations.upgrade import create
from binlane.state.records.progress import RunStep, begin_step
from binlane.state.records.restores import (
    COMPLETE,
    EXTENDING,
    LOADING,
    MOVING,
    REPLACING,
    ROLLING,
    ProgramText,
    Restore,
    RestoreDefinition,
    RestorePrograms,
    create_restore,
    extend_restore,
    forget_replaced,
    forget_restore,
    has_restore,
    read_restore,
    set_stage,
    unfinished,
)
from binlane.state.target_record import record_target
from binlane.state.windows import Window, drop_unplanned, read_open_window
from binlane.work.files import WorkFolder

_LEASE_SECONDS: Final = 10


def restore(
    request: RestoreRequest, channels: Path, console: Terminal, *, carries_out: bool, as_json: bool,
    digest: str | None = None, by: str | None = None, resolve: Resolver | None = None,
) -> View:  # fmt: skip
    """Plan a restore, and with ``carries_out`` do it. ``digest``: of the plan that may be carried out; None: any.
    ``by``: the author, if not the account of this process. Raises PlanError for another plan, and everything that
    ``plan_restore`` and a window raise."""
    plan = plan_restore(request, channels, resolve)
    if digest is not None:
        require_approved(plan.facts, digest)
    if not carries_out:
        if as_json:
            return json.dumps(plan_object(plan), indent=1)
        return [*plan_view(plan), Grid("to restore: the same command with --yes")]
    if not as_json:
        console.print(plan_view(plan))
    return _carry_out(plan, channels, console, by, resolve, as_json=as_json)


def _carry_out(
    plan: RestorePlan, channels: Path, console: Terminal, by: str | None, resolve: Resolver | None, *, as_json: bool
) -> View:
    target = plan.endpoints.target
    with target_errors(str(target)):
        create(engine_of(target), plan.channel.work.uri)
        with audited(target, plan.name, "restore", _arguments(plan), by, digest=plan.digest):
            _begin(plan)
            return _to_the_end(_Running.of(plan.name, channels, console, resolve), as_json=as_json)


def _arguments(plan: RestorePlan) -> Mapping[str, object]:
    """What the audit has: the end as a place, for a statement may have values of rows."""
    definition = plan.definition
    databases = ", ".join(f"{old} as {final}" for old, final in definition.databases)
    return {
        "--from": definition.base or FROM_LOG, "--log": redacted(definition.log), "databases": databases,
        "tables": ", ".join(definition.tables), "begin": definition.begin, "end": definition.end,
    }  # fmt: skip


def restore_approved(
    request: RestoreRequest, approved: PlanFacts, channels: Path, console: Terminal, *,
    require_allowed: Callable[[RestoreDefinition], None], by: str | None = None, resolve: Resolver | None = None,
) -> View:  # fmt: skip
    """Carry out the plan with these facts, or go on with it where an earlier attempt of the same plan has begun.
    ``require_allowed`` raises for what may not be restored any more. Raises PlanError that says what has changed since,
    and as ``restore``."""
    name, digest = approved[NAME], digest_of(approved)
    file = folder_of(channels) / f"{name}.toml"
    require_channel_name(name, file)
    if file.exists() and digest_line(digest) in file.read_text("utf-8").splitlines():
        running = _Running.of(name, channels, console, resolve)
        with target_errors(str(running.endpoints.target)):
            found = recorded(running.endpoints.target, running.channel)
        if found is not None:
            require_allowed(found.definition)
            return proceed(name, channels, console, by=by, resolve=resolve)
        # killed before it wrote anything to the target
        drop_restore(name, channels, console, by=by, resolve=resolve)
    if request.ends.until == NOW:
        request = replace(request, ends=EndRequest(approved[END], None))
    plan = plan_restore(request, channels, resolve)
    require_approved(plan.facts, digest, approved)
    require_allowed(plan.definition)
    return _carry_out(plan, channels, console, by, resolve, as_json=False)


def _begin(plan: RestorePlan) -> None:
    """Write the channel's file, and the restore's row: from now on the unfinished databases are its own. Raises
    PrecheckError if somebody has made one of the databases, or has begun a restore of one, since the plan."""
    target, names = plan.endpoints.target, {final: unfinished(final) for _, final in plan.definition.databases}
    replaced = dict(plan.definition.replaced)
    with target_errors(str(target)), contextlib.closing(write_session(target)) as session:
        # until the row is there no other restore of the target looks for one
        busy = f"{target}: another restore is beginning there; nothing was written"
        take_lease(session, restores_lease(), _LEASE_SECONDS, busy)
        require_free(session, names)
        require_free(session, {hidden: final for final, hidden in names.items() if final not in replaced})
        require_free(session, replaced)
        require_no_other(target, plan.definition.databases, plan.definition.replaced)
        make_folder(plan.file.parent)
        try:
            write_new(plan.file, plan.file_text)
        except FileExistsError:
            raise ConfigError(f"{plan.file}: expected no such file, found one: another restore has begun") from None
        with engine_of(target).begin() as connection:
            create_restore(connection, plan.name, plan.definition)
        if plan.dump is not None:
            begin_step(engine_of(target), plan.name, RunStep.LOAD, RunStep.LOAD, total=plan.dump.size)


def extend(
    name: str, ends: EndRequest, log: str | None, channels: Path, console: Terminal, *, carries_out: bool,
    as_json: bool, digest: str | None = None, by: str | None = None, resolve: Resolver | None = None,
) -> View:  # fmt: skip
    """Plan a later end of a complete restore, and with ``carries_out`` go on to it. ``log``: another place of the same
    log; ``digest``: as in ``restore``. Raises as ``restore``."""
    running = _Running.of(name, channels, console, resolve)
    plan = _later_end(running, ends, log, resolve)
    if digest is not None:
        require_approved(plan.facts, digest)
    if not carries_out:
        if as_json:
            return json.dumps(plan_object(plan), indent=1)
        return [*plan_view(plan), Grid("to go on: the same command with --yes")]
    if not as_json:
        console.print(plan_view(plan))
    return _carry_out_extension(running, plan, channels, by, resolve, as_json=as_json)


def plan_later_end(
    name: str, ends: EndRequest, log: str | None, channels: Path, resolve: Resolver | None = None
) -> RestorePlan:
    """The plan of ``extend``. Raises as it does."""
    return _later_end(_Running.of(name, channels, Terminal(), resolve), ends, log, resolve)


def _later_end(running: _Running, ends: EndRequest, log: str | None, resolve: Resolver | None) -> RestorePlan:
    with target_errors(str(running.endpoints.target)):
        found = running.read()
        require_complete(found)
        plan = plan_extension(found, running.state(), ends, log, running.channel, resolve)
        _open_window(running, plan)
    return plan


def _carry_out_extension(
    running: _Running, plan: RestorePlan, channels: Path, by: str | None, resolve: Resolver | None, *, as_json: bool
) -> View:
    target, name = running.endpoints.target, running.name
    with (
        target_errors(str(target)),
        audited(target, name, "restore --extend", _arguments(plan), by, digest=plan.digest),
    ):
        _begin_extension(running, plan)
        return _to_the_end(_Running.of(name, channels, running.console, resolve), as_json=as_json)


def extend_approved(
    name: str, ends: EndRequest, log: str | None, approved: PlanFacts, channels: Path, console: Terminal, *,
    require_allowed: Callable[[RestoreDefinition], None], by: str | None = None, resolve: Resolver | None = None,
) -> View:  # fmt: skip
    """Carry out the plan of a later end with these facts, or go on with it; as ``restore_approved``."""
    running = _Running.of(name, channels, console, resolve)
    with target_errors(str(running.endpoints.target)):
        found = running.read()
    require_allowed(found.definition)
    # an attempt writes the file in front of the row
    has_begun = str(found.definition.end) == approved[END]
    if has_begun and digest_line(digest_of(approved)) in Path(running.channel.file).read_text("utf-8").splitlines():
        return proceed(name, channels, console, by=by, resolve=resolve)
    if ends.until == NOW:
        ends = EndRequest(approved[END], None)
    plan = _later_end(running, ends, log, resolve)
    require_approved(plan.facts, digest_of(approved), approved)
    return _carry_out_extension(running, plan, channels, by, resolve, as_json=False)


def _begin_extension(running: _Running, plan: RestorePlan) -> None:
    name = running.name
    with (
        target_errors(str(running.endpoints.target)),
        contextlib.closing(write_session(running.endpoints.target)) as session,
    ):
        _take_lease(session, name)
        engine, window = engine_of(running.endpoints.target), _open_window(running, plan)
        # the channel now works on the final names; a kill in between leaves a complete restore
        replace_text(plan.file, plan.file_text)
        if window is not None:
            drop_unplanned(engine, window)
        with engine.begin() as connection:
            extend_restore(connection, name, plan.definition)


def _open_window(running: _Running, plan: RestorePlan) -> Window | None:
    """The window of an earlier extension that goes beyond the planned end and has changed nothing. Raises ConfigError
    for one that may have changed something."""
    with engine_of(running.endpoints.target).connect() as connection:
        window = read_open_window(connection, running.name)
    end = plan.definition.end
    if window is None or window.bounds.end == end or end.is_behind(window.bounds.end):
        return None
    if window.plan_digest is not None:
        raise ConfigError(
            f"restore {running.name}: expected an end at {window.bounds.end} or behind it, found "
            f"{plan.definition.end}: an earlier --extend has begun to apply the log up to there; `binlane restore "
            f"--continue {running.name}` ends that; for an earlier moment begin another restore, under another name"
        )
    return window


def proceed(
    name: str, channels: Path, console: Terminal, *, as_json: bool = False, by: str | None = None,
    resolve: Resolver | None = None,
) -> View:  # fmt: skip
    """Go on with a restore to its end."""
    running = _Running.of(name, channels, console, resolve)
    target = running.endpoints.target
    with target_errors(str(target)):
        running.read()
        with audited(target, name, "restore --continue", by=by):
            return _to_the_end(running, as_json=as_json)


def _to_the_end(running: _Running, *, as_json: bool) -> View:
    name = running.name
    with (
        target_errors(str(running.endpoints.target)),
        contextlib.closing(write_session(running.endpoints.target)) as session,
        kept_open(session),
    ):
        _take_lease(session, name)
        found = running.read()
        while found.stage != COMPLETE:
            with doing(f"restore {name}: {found.stage}"):
                _STAGES[found.stage](running, found, session)
            found = running.read()
        finals = {final for _, final in found.definition.databases}
        notes = [*running.notes, *event_notes(session, finals, dict(found.definition.replaced))]
        believed = believed_in(Path(running.channel.file))
        with engine_of(running.endpoints.target).connect() as connection:
            mark = read_channel(connection, name).watermark
    databases = ", ".join(f"{final} (from {old})" for old, final in found.definition.databases)
    if as_json:
        steps = [f"binlane restore --drop {name}"]
        if found.definition.replaced:
            steps.insert(0, f"binlane restore --drop-replaced {name}")
        values = {"name": name, "stage": found.stage, "databases": dict(found.definition.databases),
                  "replaced": dict(found.definition.replaced),
                  "end": str(mark.source), "time": mark.source_time, "believed": believed,
                  "notes": notes, "next_steps": steps}  # fmt: skip
        return json.dumps(values, indent=1)
    lines = [
        f"restore {name}: complete: {databases}; everything up to {mark.source} ({moment(mark.source_time)}), "
        f"{plural(mark.seqno, 'transaction')} of the log read",
        *(f"believed: {each}" for each in believed),
        *notes,
        *(f"what was there as {final} is kept as {kept}" for final, kept in found.definition.replaced),
        *([f"`binlane restore --drop-replaced {name}` drops it"] if found.definition.replaced else []),
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
        folder = folder_of(channels)
        lost = (
            f"if the file of this restore was lost, `binlane restore --drop {name} --onto CONNECTION` forgets it on "
            "that target"
        )
        file = folder / f"{name}.toml"
        if not file.exists():
            raise ConfigError(
                f"{folder}: expected the file of a restore {name}, found none; `binlane restore --list` shows those of "
                f"this machine; {lost}"
            )
        if (damage := _damage(file)) is not None:
            raise ConfigError(f"{damage}; {lost}") from damage
        channel, endpoints = load(name, folder, resolve)
        return cls(name, channel, endpoints, console, [])

    def ask_log(self) -> None:
        """For a stage that reads the log: from now on a live one is that of the server that answers now. The other
        stages, and who drops a restore, need none: the usual reason for a restore is a server that is gone."""
        source = self.endpoints.source
        if source is not None and source.proof is None:
            self.endpoints = Endpoints(answering(source), self.endpoints.target)

    def read(self) -> Restore:
        found = recorded(self.endpoints.target, self.channel)
        if found is None:
            raise PositionError(
                f"restore {self.name}: {self.endpoints.target} does not have it: it was killed before it wrote "
                f"anything; `binlane restore --drop {self.name}`, then begin it again"
            )
        return found

    def names(self, found: Restore) -> Mapping[str, str]:
        """The databases' names until the restore is complete, and their final ones."""
        return {unfinished(final): final for _, final in found.definition.databases}

    def state(self) -> Channel:
        """The channel's row, with the place of the log up to which everything is applied."""
        with engine_of(self.endpoints.target).connect() as connection:
            return read_channel(connection, self.name)

    def reader(self) -> Session:
        """A session for the definitions of the target."""
        return definition_session(self.endpoints.target)

    def tell(self, reason: str) -> None:
        """Why the load waits; empty: it goes on."""
        self.console.line(("·", ""), (f" the load {reason or 'goes on'}", ""))

    def enter(self, found: Restore, stage: str, programs: RestorePrograms | None = None) -> None:
        with engine_of(self.endpoints.target).begin() as connection:
            set_stage(connection, found, stage, programs)


def _damage(file: Path) -> ConfigError | None:
    """Why the channel file of a restore cannot be read; None if it can. Its connections are not asked for: what this
    shell does not know of them says nothing about the file."""
    try:
        load_channel(file)
    except ConfigError as exc:
        return exc
    return None


def _take_lease(session: Session, name: str, lease: str | None = None) -> None:
    busy = f"restore {name}: another process works on it"
    take_lease(session, lease or bootstrap_lease(name), _LEASE_SECONDS, busy)


def _load(running: _Running, found: Restore, session: Session) -> None:
    """The base, from its beginning: what an earlier attempt has loaded is dropped. The channel's row is its end."""
    engine, definition = engine_of(running.endpoints.target), found.definition
    # the session that holds the lease does not get the dump's variables. This one has a lease of its own: the other
    # one says nothing for hours, and if it is gone, the next attempt has to know that nobody loads any more
    with contextlib.closing(write_session(running.endpoints.target)) as own, kept_open(own):
        _take_lease(own, running.name, load_lease(running.name))
        with engine.connect() as connection:
            is_loaded = has_channel(connection, running.name)
        if not is_loaded:
            running.ask_log()
            source = source_of(running.channel, running.endpoints)
            start = begin(source, definition.begin, None)
            for database in running.names(found):
                drop_database(own, database)
            if definition.base:
                _load_dump(running, found, own, session)
            older = highest_older_session(source, start.position)
            mark = Watermark(0, start.position, start.gtid_set, start.time, start.fingerprint)
            _require_held(own, running.name)
            create_channel(engine, running.name, start.identity, mark, (tables.restores,), older_sessions=older)
    with engine.connect() as connection:
        record_target(running.channel.work.uri, read_channel(connection, running.name))
    running.enter(found, ROLLING)


def _require_held(own: Session, name: str) -> None:
    """Raises WindowBusyError if the session has lost the lease of the load: what it has loaded may be dropped by now.
    Raises driver errors if it was ended."""
    if not own.holds(load_lease(name)):
        raise WindowBusyError(
            f"restore {name}: lost the lease of its load, and another process may have begun it again: `binlane "
            f"restore --list`, then `binlane restore --continue {name}`"
        )


def _load_dump(running: _Running, found: Restore, own: Session, session: Session) -> None:
    definition = found.definition
    dump = dump_of(Path(definition.base), {old for old, _ in definition.databases})
    if dump.digest != definition.digest:
        raise ConfigError(
            f"{definition.base}: expected the dump with which the restore {running.name} was planned, found another "
            f"one; put that one back and `binlane restore --continue {running.name}`, or --drop it and begin again"
        )
    [(version, usual_mode)] = session.texts("SELECT VERSION(), @@global.sql_mode")
    names = {old: unfinished(final) for old, final in definition.databases}
    loading = DumpLoad(own, version_number(version), definition.base, names, definition.definers, catalogue=session)
    loading.tables = frozenset(definition.tables)
    loading.server = dump.server()
    target, busy = running.endpoints.target, running.channel.apply.max_threads_running
    statements = told_load(target, running.name, dump.statements(usual_mode))
    loading.run(paced(TargetLoad(target, busy, running.tell), statements))
    _require_counts(session, dump, names, definition.tables)
    running.notes += [*loading.notes, *inexact_notices(loading.inexact)]
    running.console.line(("✓", "green"), (f" base, {plural(loading.size, 'byte')}", ""))


def _require_counts(session: Session, dump: Dump, names: Mapping[str, str], tables: Collection[str]) -> None:
    """Raises ConfigError if a table has another number of rows than the dump has recorded: a file of it is gone; and
    if it is a view."""
    for (database, table), rows in dump.row_counts().items():
        if tables and table not in tables:
            continue
        try:
            found = count_rows(session, TableKey(names[database], table))
        except TableMismatchError as exc:
            raise ConfigError(
                f"--from {dump.path}: expected a table {database}.{table}, of which its {dump.counted_in} has rows, "
                "found a view, which nothing was read from; --drop the restore, and begin it with a dump as its "
                "program has written it"
            ) from exc
        if found != rows:
            raise ConfigError(
                f"--from {dump.path}: expected {plural(rows, 'row')} of {database}.{table}, as its {dump.counted_in} "
                f"says, found {found:,}: files of rows are missing or of another dump; --drop the restore, and begin "
                "it with a whole dump"
            )


def _roll(running: _Running, found: Restore, session: Session) -> None:
    """Windows up to the end, then the programs as they are there."""
    running.ask_log()
    apply_windows(running.channel, running.endpoints, found.definition, running.console)
    _require_databases(running, found, session)
    _require_tables(running, found, session)
    names, replaced = running.names(found), dict(found.definition.replaced)
    on = later(running.name)
    free = f"drop or rename it, {on}"
    require_free(session, {hidden: final for hidden, final in names.items() if final not in replaced}, free)
    require_movable(session, names, on)
    texts = read_final_programs(running.reader, names, only_triggers=bool(found.definition.tables))
    former, grants = tuple[ProgramText, ...](), ""
    if replaced:
        require_free(session, replaced, free)
        require_places(session, names, replaced, f"`binlane restore --drop {running.name}`")
        require_replaceable_now(session, running.endpoints.target, running.name, replaced, on, _anew(running.name))
        require_movable(session, replaced, on)
        former = read_final_programs(running.reader, replaced, only_triggers=False)
        grants = lost_grants(session, replaced)
        for note in _lost_kinds(former, texts, replaced):
            running.console.line(("!", "bold"), (f" {note}", ""))
            running.notes.append(note)
    moving = tuple((names[each.database], each.name) for each in contents(session, names) if is_moved(each))
    running.enter(found, REPLACING if replaced else MOVING, RestorePrograms(texts, former, moving, grants))


def _lost_kinds(
    former: Collection[ProgramText], restored: Collection[ProgramText], replaced: Mapping[str, str]
) -> list[str]:
    """Kinds of programs that a former database has, and the restored one has not: a dump may have left them out."""
    there = {(each.database, each.kind) for each in restored}
    found = list[str]()
    for final, kept in replaced.items():
        kinds = Counter(each.kind for each in former if each.database == kept)
        if lacks := [plural(count, kind.lower()) for kind, count in kinds.items() if (final, kind) not in there]:
            found.append(
                f"{final}: what was there has {', '.join(lacks)}, and what is restored has none of that kind: unless "
                f"the log has dropped them, the dump has left them out; their definitions are kept in {kept}"
            )
    return found


def _extend(running: _Running, found: Restore, session: Session) -> None:
    running.ask_log()
    apply_windows(running.channel, running.endpoints, found.definition, running.console)
    running.enter(found, COMPLETE)


def _require_databases(running: _Running, found: Restore, session: Session) -> None:
    """Raises ConfigError if one of the databases that are restored is not there, before anything gets its name."""
    present = present_databases(session)
    for hidden, final in running.names(found).items():
        if hidden not in present:
            raise ConfigError(
                f"restore {running.name}: expected database {hidden} at {found.definition.end}, found none: the log, "
                f"or somebody on the target, has dropped it; nothing was done to {final}; `binlane restore --drop "
                f"{running.name}`, then begin it again, with an end before the DROP DATABASE"
            )


def _require_tables(running: _Running, found: Restore, session: Session) -> None:
    """Raises ConfigError if one of the tables that are restored is not there at the end."""
    for database, final in running.names(found).items():
        there = {each.name for each in contents(session, [database])}
        if lacks := [table for table in found.definition.tables if table not in there]:
            raise ConfigError(
                f"restore {running.name}: expected table {lacks[0]} at {found.definition.end}, found none: neither the "
                f"base nor the log up to there makes it, or the log has dropped it; `binlane restore --drop "
                f"{running.name}`, then begin it with another --table or an earlier end for {final}"
            )


def _anew(name: str) -> str:
    """What leads out where the database that was to be kept has nothing any more."""
    return f"`binlane restore --drop {name}`, drop the database, then begin the restore again"


def _replace(running: _Running, found: Restore, session: Session) -> None:
    replaced, former = dict(found.definition.replaced), found.programs.former
    # a RENAME that waits for a reader has everybody wait behind it
    session.execute(f"SET SESSION lock_wait_timeout = {running.channel.apply.lock_wait_timeout}")
    names, on = running.names(found), f"then `binlane restore --continue {running.name}`"
    if not have_changed_places(session, names, replaced):
        # an earlier attempt may have been killed long ago
        _require_databases(running, found, session)
        require_places(session, names, replaced, on)
        require_movable(session, replaced, on)
        require_replaceable_now(session, running.endpoints.target, running.name, replaced, on, _anew(running.name))
        former = _put_back(running, found, session)
        grants = lost_grants(session, replaced)
        running.enter(found, REPLACING, replace(found.programs, former=former, grants=grants))
    writer = functools.partial(write_session, running.endpoints.target)
    running.notes += change_places(session, running.reader, writer, names, replaced, former, on)
    running.enter(found, MOVING)


def _move(running: _Running, found: Restore, session: Session) -> None:
    names = running.names(found)
    on = f"then `binlane restore --continue {running.name}`"
    others = present_databases(session).difference(names, names.values())
    running.notes += programs_elsewhere(found.programs.texts, names.values(), others, session.flavor)
    running.notes += move(session, running.reader, names, dict(found.definition.replaced), found.programs, on)
    running.notes += filter(None, [found.programs.grants])
    if lost := sorted({*names.values()} - present_databases(session)):
        raise ConfigError(
            f"restore {running.name}: expected database {lost[0]} on the target, found none: somebody has dropped it "
            f"while it got its name; `binlane restore --drop {running.name}` forgets this restore, then begin it again "
            "under another name (--as)"
        )
    running.enter(found, COMPLETE)


_STAGES: Final[Mapping[str, Callable[[_Running, Restore, Session], None]]] = {
    LOADING: _load,
    ROLLING: _roll,
    REPLACING: _replace,
    MOVING: _move,
    EXTENDING: _extend,
}


def plan_drop(name: str, channels: Path, resolve: Resolver | None = None) -> tuple[PlanFacts, Restore | None]:
    """What ``drop_restore`` would drop, as the facts of a plan; the restore, if the target has it."""
    running = _Running.of(name, channels, Terminal(), resolve)
    with target_errors(str(running.endpoints.target)):
        found = recorded(running.endpoints.target, running.channel)
    return _drop_facts(running, found), found


def _drop_facts(running: _Running, found: Restore | None) -> PlanFacts:
    facts = {NAME: running.name, "action": "drop", "target": str(running.endpoints.target)}
    if found is None:
        return {**facts, "stage": "not begun", "drops": "", "keeps": ""}
    definition, is_final = found.definition, found.stage in (COMPLETE, EXTENDING)
    kept = [kept for _, kept in definition.replaced]
    return {
        **facts,
        "stage": found.stage,
        "drops": "" if is_final else ", ".join(running.names(found)),
        "keeps": ", ".join([*(final for _, final in definition.databases), *kept] if is_final else []),
    }


def drop_restore(
    name: str, channels: Path, console: Terminal, *, approved: PlanFacts | None = None, by: str | None = None,
    resolve: Resolver | None = None,
) -> str:  # fmt: skip
    """Remove an unfinished restore with its databases, or forget a complete one and keep its databases. ``approved``:
    the facts of ``plan_drop`` for which alone this may be done; None: whatever it drops. Raises PlanError for others.
    """
    running = _Running.of(name, channels, console, resolve)
    engine = engine_of(running.endpoints.target)
    said = "nothing of it was on the target"
    with (
        target_errors(str(running.endpoints.target)),
        contextlib.closing(write_session(running.endpoints.target)) as session,
    ):
        _take_lease(session, name)
        # its databases are dropped: nobody loads into them any more
        _take_lease(session, name, load_lease(name))
        found = recorded(running.endpoints.target, running.channel)
        if found is not None:
            if approved is not None:
                # an earlier attempt may have forgotten it, and not its files
                require_approved(_drop_facts(running, found), digest_of(approved), approved)
            said = "its databases stay"
            kept = f"; so does what they have replaced: {_kept(found)}" if found.definition.replaced else ""
            said += kept
            if _gets_names(session, running, found):
                raise PositionError(
                    f"restore {name}: its databases are getting their final names; `binlane restore --continue {name}` "
                    "ends that in seconds, then drop the databases that you do not want"
                )
            if found.stage == EXTENDING:
                said = f"{_between(found, running)}{kept}"
            digest = "" if approved is None else digest_of(approved)
            with audited(running.endpoints.target, name, "restore --drop", {"stage": found.stage}, by, digest=digest):
                if found.stage == REPLACING:
                    _put_back(running, found, session)
                has_moved = found.stage == MOVING and present_databases(session).isdisjoint(running.names(found))
                if found.stage not in (COMPLETE, EXTENDING) and not has_moved:
                    made = dict(found.definition.replaced).values() if found.stage == REPLACING else ()
                    for database in (*running.names(found), *(each for each in made if not contents(session, [each]))):
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


def forget_lost(name: str, onto: str, channels: Path, *, by: str | None = None, resolve: Resolver | None = None) -> str:
    """Forget a restore whose channel file is lost or cannot be read, on the target ``onto``. All databases stay: its
    row alone does not prove which ones are its own. Raises ConfigError for one whose file can be read, and for a file
    of which the target has nothing."""
    file = folder_of(channels) / f"{name}.toml"
    require_channel_name(name, file)
    if file.exists() and _damage(file) is None:
        raise ConfigError(
            f"restore {name}: its file {file} says all that is needed: `binlane restore --drop {name}`, without --onto"
        )
    target = (environment_resolver() if resolve is None else resolve)(onto)
    said = f"{target} had nothing of it"
    with target_errors(str(target)), contextlib.closing(write_session(target)) as session:
        _take_lease(session, name)
        _take_lease(session, name, load_lease(name))
        engine = engine_of(target)
        with engine.connect() as connection:
            found = read_restore(connection, name) if has_restore(connection, name) else None
        if found is not None:
            there = sorted(found.names & present_databases(session))
            given = {"stage": found.stage, "file": "lost"}
            with audited(target, name, "restore --drop", given, by), engine.begin() as connection:
                forget_restore(connection, name)
            stay = f"these databases stay, drop those that you do not want: {', '.join(there)}" if there else ""
            said = one_line(f"it was {found.stage}; {stay or 'none of its databases is there'}")
        elif file.exists():
            raise ConfigError(
                f"restore {name}: expected it on {target}, found nothing of it: its file {file} stays, because another "
                f"target may have the restore; name that one with --onto, or delete the file if none has it"
            )
    file.unlink(missing_ok=True)
    return f"restore {name}: forgotten on {target}; {said}"


def _gets_names(session: Session, running: _Running, found: Restore) -> bool:
    """Whether some of what gets a new name has it, and some has not."""
    names = running.names(found)
    if found.stage == REPLACING:
        return have_changed_places(session, names, dict(found.definition.replaced))
    # until the tables move, nothing has a final name but what was replaced
    is_whole = waits(session, names) and not moved_before(session, names, found.programs.tables)
    may_go = not found.definition.replaced and is_whole
    return found.stage == MOVING and not may_go and not present_databases(session).isdisjoint(names)


def _between(found: Restore, running: _Running) -> str:
    """What becomes of the databases of an extension that is forgotten before its end."""
    with engine_of(running.endpoints.target).connect() as connection:
        window = read_open_window(connection, found.name)
    reached = running.state().watermark.source
    if window is None or window.plan_digest is None:
        return f"its databases stay, at {reached}, in front of the end of its extension, {found.definition.end}"
    return (
        f"its databases stay, and are at no moment of the log: a part of them may be at {reached}, others on the way "
        f"to {window.bounds.end}, because the extension to {found.definition.end} was interrupted; `binlane restore "
        f"--continue {found.name}` would have ended it, and now nothing can: restore them again"
    )


def _put_back(running: _Running, found: Restore, session: Session) -> tuple[ProgramText, ...]:
    """The former databases have all programs again, if an attempt was killed in front of the change of places; these
    programs, with their kept names."""
    replaced, former = dict(found.definition.replaced), found.programs.former
    read = functools.partial(read_final_programs, running.reader, replaced, only_triggers=False)
    for note in put_back(session, replaced, former, read()):
        running.console.line(("!", "bold"), (f" {note}", ""))
    return read()


def drop_replaced(
    name: str, channels: Path, console: Terminal, *, by: str | None = None, resolve: Resolver | None = None
) -> str:
    """Drop the databases that a complete restore has replaced."""
    running = _Running.of(name, channels, console, resolve)
    target = running.endpoints.target
    with target_errors(str(target)), contextlib.closing(write_session(target)) as session:
        _take_lease(session, name)
        found = running.read()
        require_complete(found)
        if not found.definition.replaced:
            raise ConfigError(f"restore {name}: expected one that has replaced a database (--replace), found none kept")
        with audited(target, name, "restore --drop-replaced", {"databases": _kept(found)}, by):
            for _, kept in found.definition.replaced:
                drop_database(session, kept)
            # a database that somebody else makes of that name is none of the restore's
            with engine_of(target).begin() as connection:
                forget_replaced(connection, found)
    return f"restore {name}: {_kept(found)} dropped; `binlane restore --drop {name}` forgets the restore"


def _kept(found: Restore) -> str:
    return ", ".join(kept for _, kept in found.definition.replaced)
