"""The plan of ``binlane restore``: what would be restored, from where, up to which place of the log. Writes nothing."""

from __future__ import annotations

import contextlib
import functools
import json
import re
import shutil
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import Any, Final

from binlane.activity import doing
from binlane.apply.refusals import target_errors
from binlane.apply.target_state import knowing_target
from binlane.bootstrap.copy_checks import require_no_writer
from binlane.bootstrap.sessions import Session, definition_session, write_session
from binlane.choices import FROM_LOG
from binlane.config import ChannelConfig, DeclaredChannel, declared_channels, load_channel, require_channel_name
from binlane.config.kinds import place_of
from binlane.config.node import Node
from binlane.connections import Endpoint, Endpoints, Resolver, environment_resolver, resolve_endpoints
from binlane.errors import ConfigError, PrecheckError, WorkError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, plural, size_text
from binlane.orchestration.commands.copies.restore_digest import PlanFacts, digest_line, digest_of, plan_facts
from binlane.orchestration.commands.copies.restore_record import (
    base_line,
    believed_lines,
    replaces_line,
    table_patterns,
)
from binlane.orchestration.extraction.window_reading import source_of, start_of
from binlane.orchestration.readiness import require_ready_to_begin
from binlane.orchestration.report import moment
from binlane.orchestration.request import NOW, gtid_of, time_of
from binlane.orchestration.terminal import Grid
from binlane.rename_rules import LONGEST, NAMES_A_FILE, USERS_DATABASE, is_system, lower, names_a_file
from binlane.restore.definers import OWN_ACCOUNT
from binlane.restore.dump import Dump, dump_of
from binlane.restore.dump_file import DumpFile, DumpPlace
from binlane.restore.end import End, EndGtid, EndPosition, EndStatement, EndTime, LogEnd
from binlane.restore.final_names import ANOTHER_NAME, present_databases, read_final_programs, require_free
from binlane.restore.inexact_columns import InexactTable, inexact_notices
from binlane.restore.log_scan import LogScan, scan
from binlane.restore.logged_transactions import LoggedTransaction
from binlane.restore.replacement import kept_name, require_replaceable, stored_foreign_keys
from binlane.restore.restored_events import events_that_stop
from binlane.restore.routine_grants import lost_grants
from binlane.restore.ruled_out import RuledOut
from binlane.safe_text import shown
from binlane.servers.engines import engine_of
from binlane.source.copy_times import contradiction
from binlane.source.gtid_set import is_at
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from binlane.source.start_position import OLDEST, begin
from binlane.state.channels import Channel, has_channel
from binlane.state.records.restores import (
    COMPLETE,
    EXTENDING,
    Restore,
    RestoreDefinition,
    has_restore,
    names_of,
    restore_names,
    unfinished,
)
from binlane.work.files import WorkFolder

_FOLDER: Final = "restores"
_POSITION: Final = re.compile(r"([^:/\s]+\.\d{4,}):(\d{1,18})")
PATTERN: Final = frozenset("*?[]")
"""In --database: characters that stand for others."""
_OWN: Final = "%"
"""In --as: the database's own name."""
_SHOWN: Final = 80
_SHOWN_AS_VALUE: Final = 1000
"""Characters of a statement in a line, and in JSON."""
_LOAD_BYTES: Final = 10 << 20
_LOG_BYTES: Final = 60 << 20
_APPLIED_ROWS: Final = 20_000
"""A second, of a dump, of the log and of row changes: estimates of a small machine."""
_DEFINERS: Final = 1000
"""Accounts of a dump: who approves a plan has to see all of them."""
_TEMPLATE: Final = """\
# Written by `binlane restore`: the channel of the restore {name}. Commands on windows take it with --channels {folder}.
{base}
{replaces}
[source]
{source}

[target]
connection = {target}

[window]
schedule = "none"

[filter]
include_databases = {databases}
{tables}
[filter.kinds]
# accounts do not belong to a database
accounts = "ignore"

[rename]
{renames}
{busy}{work}"""


@dataclass(frozen=True, slots=True)
class EndRequest:
    """Where a restore ends: one of the two."""

    until: str | None
    """A time, a GTID, a place of the log, or ``now``."""
    before: str | None
    """A GTID or a statement."""


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """The arguments of ``binlane restore``."""

    name: str | None
    base: str
    """A dump's path, or ``log``."""
    log: str
    databases: tuple[str, ...]
    tables: tuple[str, ...]
    """Of the only database; empty: all."""
    final: str | None
    ends: EndRequest
    at: str | None
    """The place of the log that belongs to a dump that has not recorded it."""
    onto: str
    replaces: bool = False
    """Whether databases that are there are replaced."""
    work: str | None = None
    """The work folder, as the channel's file of the restore names it; None: as ``BINLANE_WORK`` says, or the usual
    one."""
    max_threads_running: int = 0
    """``apply.max_threads_running`` of the restore."""


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """A plan, and what it needs to be carried out."""

    name: str
    file: Path
    text: str
    """The channel's file."""
    channel: ChannelConfig
    endpoints: Endpoints
    definition: RestoreDefinition
    scan: LogScan
    dump: DumpPlace | None
    beliefs: tuple[str, ...] = ()
    """What the account cannot see, and the plan believes."""
    is_extension: bool = False
    """Of a complete restore, whose databases have their final names."""
    events: str = ""
    """What becomes of the events that run in the databases that are replaced."""
    grants: str = ""
    """What is said of the grants that go with routines of the databases that are replaced."""

    @property
    def facts(self) -> PlanFacts:
        """What the plan's digest covers."""
        return plan_facts(self.name, self.definition, self.scan, self.dump, self.endpoints)

    @property
    def digest(self) -> str:
        """Of the plan: `--digest` carries out this one, or none."""
        return digest_of(self.facts)

    @property
    def file_text(self) -> str:
        """The channel's file, with what the plan believes and its digest."""
        return f"{self.text}\n{believed_lines(self.beliefs)}{digest_line(self.digest)}\n"


def folder_of(channels: Path) -> Path:
    """Where the channel files of restores are: beside the folder of channels, so that no DAG is made of them."""
    return channels.parent / _FOLDER


def plan_restore(request: RestoreRequest, channels: Path, resolve: Resolver | None = None) -> RestorePlan:
    """Raises ConfigError, PrecheckError, PlanError and SourceError for everything that stands in the way."""
    end = _end(request.ends)
    for option, place in (("--from", request.base), ("--log", request.log)):
        place_of(option, place)
    dump = None if request.base == FROM_LOG else dump_of(Path(request.base), ())
    with doing("looking for the dump's place and databases"):
        recorded = None if dump is None else dump.place()
    names = _names(request, None if recorded is None else recorded.databases)
    _require_tables(request, names)
    if dump is not None and not isinstance(dump, DumpFile):
        # a folder's files of other databases are not read
        dump = dump_of(dump.path, {old for old, _ in names})
        recorded = dump.place()
    if recorded is not None and len(recorded.definers) > _DEFINERS:
        raise ConfigError(
            f"--from {request.base}: expected at most {_DEFINERS:,} accounts as definers, all of which a plan shows, "
            f"found {len(recorded.definers):,}; take a dump of fewer databases"
        )
    name = request.name or f"restore_{re.sub('[^A-Za-z0-9_-]', '_', names[0][1])[:50]}"
    file = folder_of(channels) / f"{name}.toml"
    require_channel_name(name, file)
    if file.exists():
        raise ConfigError(
            f"{file}: expected no restore of the name {name}, found one; `binlane restore --continue {name}` goes on "
            f"with it, `--drop {name}` removes it, or give another name"
        )
    hidden = [(old, unfinished(final)) for old, final in names]
    base = base_line(*_of_base(dump))

    def declared(replaced: tuple[tuple[str, str], ...]) -> tuple[str, ChannelConfig]:
        text = _file_text(
            name, folder_of(channels), base, request.log, request.onto, request.tables, hidden, replaced, request.work,
            request.max_threads_running,
        )  # fmt: skip
        node = Node(tomllib.loads(text), str(file.absolute()))
        return text, load_channel(DeclaredChannel(name, file, node=node))

    _, channel = declared(())
    _require_own_name(name, channels)
    resolver = environment_resolver() if resolve is None else resolve
    endpoints = knowing_target(resolve_endpoints(channel, resolver))
    source = source_of(channel, endpoints)
    replaced = _replaced(endpoints, names) if request.replaces else ()
    text, channel = declared(replaced)
    beliefs = _require_free(channel, endpoints, source, names, replaced)
    start = _start(source, request, recorded)
    beliefs += _belief(request, recorded, start)
    databases = frozenset(old for old, _ in names)
    if recorded is not None:
        recorded.contents.require_all_rows(request.base, databases, request.tables)
        beliefs += (*recorded.contents.beliefs(databases, request.tables), *recorded.beliefs)
    with doing("reading the log for the plan"):
        ruled_out = RuledOut(source, databases)
        begins = {"finds_begin": recorded is None, "was_absent": request.at is not None}
        found = scan(source, start, databases, end, **begins, ruled_out=ruled_out)
    beliefs += _of_replica(end, found)
    _require_room(channel, found)
    definition = RestoreDefinition(
        base=_of_base(dump)[0],
        log=request.log,
        databases=names,
        tables=request.tables,
        begin=str(found.begin),
        end_file=found.end.file,
        end_offset=found.end.offset,
        asked=end.text,
        replaced=replaced,
        digest=_of_base(dump)[1],
        definers=() if recorded is None else tuple(sorted(recorded.definers)),
    )
    events, grants = _stopped_and_lost(endpoints, replaced)
    return RestorePlan(
        name, file, text, channel, endpoints, definition, found, recorded, beliefs=beliefs, events=events, grants=grants
    )


def _require_own_name(name: str, channels: Path) -> None:
    """A restore's files are where a channel of its name has its own, and go with the restore. Raises ConfigError for
    the name of a channel; that of another site, which has the same work folder, is refused by its target's record."""
    if name in {each.name for each in declared_channels(channels)}:
        raise ConfigError(
            f"restore {name}: expected a name that no channel has, found a channel of that name in {channels}, whose "
            "files would be removed with the restore's; give the restore another name, or another --as, of which its "
            "name is made"
        )


def require_complete(found: Restore) -> None:
    """Raises ConfigError unless the restore may go on to a later end."""
    if found.stage not in (COMPLETE, EXTENDING):
        raise ConfigError(
            f"restore {found.name}: expected a complete one, found it {found.stage}; `binlane restore --continue "
            f"{found.name}` first"
        )


def plan_extension(
    found: Restore, state: Channel, ends: EndRequest, log: str | None, channel: ChannelConfig, resolve: Resolver | None
) -> RestorePlan:
    """The plan of going on with a complete restore (``require_complete``), ``log``: in another place of its log. Raises
    ConfigError, PlanError and SourceError."""
    name, definition = found.name, found.definition
    if definition.tables:
        raise ConfigError(
            f"restore {name}: expected a restore of whole databases, found one of {', '.join(definition.tables)}: "
            "routines and events were left behind; begin a restore with the later end, under another name"
        )
    end, file = _end(ends), Path(channel.file)
    # by the channel's file: the row on the target does not say what is fetched
    log = log or channel.source.connection or channel.source.archive or ""
    # the databases have their final names now
    base = base_line(definition.base, definition.digest)
    work = tomllib.loads(file.read_text("utf-8")).get("work", {}).get("uri")
    text = _file_text(
        name, file.parent, base, log, channel.target.connection, (), definition.databases, definition.replaced, work,
        channel.apply.max_threads_running,
    )  # fmt: skip
    later = load_channel(DeclaredChannel(name, file, node=Node(tomllib.loads(text), channel.file)))
    endpoints = knowing_target(resolve_endpoints(later, environment_resolver() if resolve is None else resolve))
    start = start_of(state.watermark, state.source_identity)
    with doing("reading the log for the plan"):
        source, databases = source_of(later, endpoints), frozenset(dict(definition.databases))
        ruled_out = RuledOut(source, databases)
        scanned = scan(source, start, databases, end, finds_begin=False, ruled_out=ruled_out)
    _require_room(later, scanned)
    extended = replace(
        definition, log=log, begin=str(state.watermark.source), end_file=scanned.end.file,
        end_offset=scanned.end.offset, asked=end.text,
    )  # fmt: skip
    beliefs = _of_replica(end, scanned)
    return RestorePlan(name, file, text, later, endpoints, extended, scanned, None, beliefs=beliefs, is_extension=True)


def _names(request: RestoreRequest, dumped: frozenset[str] | None) -> tuple[tuple[str, str], ...]:
    """The databases and their final names. ``dumped``: the databases of the dump."""
    if not request.databases:
        raise ConfigError("--database: expected the database to restore, found none")
    final = _OWN if request.final is None else request.final
    databases = sorted({name for given in request.databases for name in _matching(given, dumped, request.base)})
    if len(databases) > 1 and _OWN not in final:
        raise ConfigError(
            f"--as {final}: expected a name with {_OWN}, which stands for each database's own name, such as "
            f"'{_OWN}_{final}': {plural(len(databases), 'database is', 'databases are')} restored"
        )
    found = tuple((name, final.replace(_OWN, name)) for name in databases)
    for name in chain.from_iterable(found):
        if is_system(name) or not name:
            raise ConfigError(f"{name or '--database'}: expected {USERS_DATABASE}")
        if PATTERN & {*name}:
            raise ConfigError(f"{name}: expected a name without {' '.join(sorted(PATTERN))}, which stand for others")
    for _, name in found:
        if len(unfinished(name)) > LONGEST:
            raise ConfigError(
                f"{name}: expected a name of at most {LONGEST - len(unfinished(''))} characters, which leaves room for "
                f"{unfinished('')}; give a shorter one with --as"
            )
    hidden = {lower(unfinished(name)): name for _, name in found}
    for _, name in found:
        if lower(name) in hidden:
            raise ConfigError(
                f"{name}: expected another name: {hidden[lower(name)]} has it until its restore is complete; restore "
                f"the two one after the other, or with an ending such as --as '{_OWN}_back'"
            )
    return found


def _require_tables(request: RestoreRequest, names: tuple[tuple[str, str], ...]) -> None:
    for table in request.tables:
        if request.replaces:
            raise ConfigError(
                f"--table {table}, --replace: expected one of the two: the database would lose its other tables; give "
                "another name (--as)"
            )
        if len(names) > 1:
            raise ConfigError(f"--table {table}: expected one --database with it, found {len(names)}")
        if names_a_file(table):
            raise ConfigError(f"--table {table}: expected the name of a table, found {NAMES_A_FILE}")
        if PATTERN & {*table} or not table:
            raise ConfigError(
                f"--table {table}: expected the name of a table of {names[0][0]}, without {' '.join(sorted(PATTERN))}"
            )


def _matching(given: str, dumped: frozenset[str] | None, base: str) -> Collection[str]:
    """The databases of a name or pattern."""
    if dumped is None:
        if PATTERN & {*given}:
            raise ConfigError(
                f"--database {given}: expected a database's name with --from {FROM_LOG}, found a pattern: a dump tells "
                "which databases there are, a log does not; repeat --database"
            )
        return (given,)
    found = [name for name in dumped if fnmatchcase(name, given) and not is_system(name)]
    if not found and not is_system(given):
        raise ConfigError(f"--from {base}: expected database {given}, found {', '.join(sorted(dumped)[:20])}")
    return found or (given,)


def _end(request: EndRequest) -> End:
    if (request.until is None) == (request.before is None):
        raise ConfigError("--until, --before: expected one of the two: the moment up to which is restored")
    if request.before is not None:
        if (gtid := gtid_of(request.before)) is not None:
            return EndGtid(f"before {request.before}", gtid.lower(), inclusive=False)
        return EndStatement(request.before)
    assert request.until is not None
    if request.until == NOW:
        return LogEnd()
    if (gtid := gtid_of(request.until)) is not None:
        return EndGtid(request.until, gtid.lower(), inclusive=True)
    if (place := _POSITION.fullmatch(request.until)) is not None:
        return EndPosition(request.until, LogPosition(place[1], int(place[2])))
    time = time_of(request.until)
    if time is None:
        raise ConfigError(
            f"--until: expected a time such as 2026-01-31T12:00:00Z (UTC if it names no zone), a GTID, FILE:OFFSET or "
            f"now, got {request.until!r}"
        )
    return EndTime(request.until, time.timestamp())


def _of_base(dump: Dump | None) -> tuple[str, str]:
    """Its path and digest; empty for the log alone."""
    return ("", "") if dump is None else (str(dump.path.absolute()), dump.digest)


def _file_text(
    name: str, folder: Path, base: str, log: str, onto: str, tables: Collection[str],
    databases: Collection[tuple[str, str]], replaced: Collection[tuple[str, str]], work: str | None, busy: int,
) -> str:  # fmt: skip
    """The channel's file. ``tables``: of the source; ``databases``: their names there and on the target."""
    included = [_quoted(pattern) for old, _ in databases for pattern in table_patterns(old, tables)]
    return _TEMPLATE.format(
        name=name,
        folder=folder,
        base=base,
        replaces=replaces_line(replaced),
        source=f"archive = {_quoted(_absolute(log))}" if "/" in log else f"connection = {_quoted(log)}",
        target=_quoted(onto),
        databases=f"[{', '.join(_quoted(old) for old, _ in databases)}]",
        tables=f"include_tables = [{', '.join(included)}]\n" if included else "",
        renames="\n".join(f"{_quoted(old)} = {_quoted(new)}" for old, new in databases),
        busy=f"\n[apply]\nmax_threads_running = {busy}\n" if busy else "",
        work="" if work is None else f"\n[work]\nuri = {_quoted(work)}\n",
    )


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise ConfigError(f"{text!r}: expected a name or path without control characters")
    return json.dumps(text, ensure_ascii=False)


def _absolute(log: str) -> str:
    return log if "://" in log else str(Path(log).absolute())


def _replaced(endpoints: Endpoints, names: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The final names that the target has, and those under which their databases are kept."""
    target = endpoints.target
    with target_errors(str(target)), contextlib.closing(write_session(target)) as session:
        there = present_databases(session)
        with engine_of(target).connect() as connection:
            taken = there | restore_names(connection).keys() | names_of(names, ())
        found = tuple((final, kept_name(final, taken)) for _, final in names if final in there)
    for final, kept in found:
        if len(kept) > LONGEST:
            raise ConfigError(
                f"{final}: expected a name of at most {LONGEST - len(kept) + len(final)} characters, which leaves room "
                f"for {kept}; give a shorter one with --as"
            )
    return found


def _stopped_and_lost(endpoints: Endpoints, replaced: tuple[tuple[str, str], ...]) -> tuple[str, str]:
    """What becomes of the events of the databases that are replaced, and of the grants on their routines."""
    target = endpoints.target
    if not replaced:
        return "", ""
    with target_errors(str(target)), contextlib.closing(write_session(target)) as session:
        return events_that_stop(session, dict(replaced)), lost_grants(session, dict(replaced))


def require_replaceable_now(
    session: Session,
    target: Endpoint,
    name: str,
    replaced: Mapping[str, str],
    otherwise: str = ANOTHER_NAME,
    if_empty: str = f"drop it, {ANOTHER_NAME}",
) -> None:
    """Raises PrecheckError if a database cannot be replaced, or another channel of the target writes it, and PlanError
    for one of its programs that cannot be made under the kept name. ``otherwise``: what else can be done, or how the
    restore goes on; ``if_empty``: what can be done if there is nothing to keep."""
    with engine_of(target).connect() as connection:
        require_no_writer(connection, "target", name, replaced, "would meet the restored ones", otherwise)
    require_replaceable(session, replaced, otherwise, if_empty)
    todo = f"drop the object from the target, {otherwise}"
    read_final_programs(functools.partial(definition_session, target), replaced, only_triggers=False, todo=todo)


def require_no_other(
    target: Endpoint, names: tuple[tuple[str, str], ...], replaced: tuple[tuple[str, str], ...]
) -> None:
    """Raises PrecheckError if another restore of the target has one of the names: final, kept, or until it is
    complete. Each of the two would take the other's database for its own."""
    with engine_of(target).connect() as connection:
        others = restore_names(connection)
    for database in sorted(names_of(names, replaced) & others.keys()):
        restore = others[database]
        raise PrecheckError(
            f"target: database {database}: expected no other restore of this name, found {restore}, which may go on in "
            f"it (--continue, --extend); `binlane restore --drop {restore}` forgets that one, and keeps the database "
            "if it is complete; or give another name (--as)"
        )


def _require_free(
    channel: ChannelConfig, endpoints: Endpoints, source: EventSource, names: tuple[tuple[str, str], ...],
    replaced: tuple[tuple[str, str], ...],
) -> tuple[str, ...]:  # fmt: skip
    """Whether the target can take the restore; what is believed of it."""
    beliefs: tuple[str, ...] = ()
    with target_errors(str(endpoints.target)):
        with engine_of(endpoints.target).connect() as connection:
            if has_restore(connection, channel.name) or has_channel(connection, channel.name):
                raise PrecheckError(
                    f"{endpoints.target}: expected no restore or channel of the name {channel.name}, found one; give "
                    "another name"
                )
        require_no_other(endpoints.target, names, replaced)
        with contextlib.closing(write_session(endpoints.target)) as session:
            there = dict(replaced)
            require_free(session, {unfinished(final): final for _, final in names if final not in there})
            require_free(session, {final: unfinished(final) for _, final in names})
            require_free(session, dict(replaced))
            if replaced:
                require_replaceable_now(session, endpoints.target, channel.name, dict(replaced))
                if stored_foreign_keys(session) is None:
                    beliefs = (
                        f"no database that this account has no privilege on has a foreign key into "
                        f"{', '.join(dict(replaced))}: it would go on to the kept tables; GRANT PROCESS ON *.* shows "
                        "all",
                    )
            if (ours := session.flavor) is not (theirs := source.state().flavor):
                raise PrecheckError(
                    f"{endpoints.target}: expected a server of the log's family, {theirs}, found {ours}; restore onto "
                    "one of that family"
                )
    made = (*(name for _, final in names for name in (unfinished(final), final)), *dict(replaced).values())
    require_ready_to_begin(channel, endpoints, source, made=made, replaces=bool(replaced))
    return beliefs


def _require_room(channel: ChannelConfig, scanned: LogScan) -> None:
    """Raises WorkError if the work folder, on this machine, has no room for the stretch of log."""
    folder = WorkFolder(channel.work.uri)
    if folder.is_local and (room := shutil.disk_usage(folder.nearest()).free) < scanned.bytes:
        raise WorkError(
            f"{folder.uri}: expected {size_text(scanned.bytes)} free, for the log from {scanned.begin} to "
            f"{scanned.end}, found {size_text(room)}, and nothing was written; free as much, or name a larger place "
            "before the same command: export BINLANE_WORK=/FOLDER (each later command on the restore needs it, too)"
        )


def _start(source: EventSource, request: RestoreRequest, recorded: DumpPlace | None) -> Start:
    if recorded is None:
        return begin(source, request.at or OLDEST, None)
    otherwise = ", or give the place with --at FILE:OFFSET or --at GTIDS"
    place = request.at or recorded.begins(f"--from {request.base}", otherwise)
    # what the source has got without its log, a dump with GTIDs has by them; of others nobody can tell
    found = begin(source, place, recorded.gtid_set or None)
    theirs = recorded.gtid_set.strip()
    if request.at is None and theirs and found.gtid_set and not is_at(source.state().flavor, theirs, found.gtid_set):
        raise PrecheckError(
            f"--from {request.base}: expected the dump's GTIDs, {recorded.gtid_set}, at {found.position} of "
            f"{source.name}, found {found.gtid_set}: the dump is of another server, or of another log of it; give the "
            "log of the dump's server, or the place in this log with --at FILE:OFFSET"
        )
    if request.at is None and not theirs and (why := contradiction(source, found, recorded.times)):
        raise PrecheckError(
            f"--from {request.base}: expected the dump's place, {place}, in the log of its server, found another log "
            f"in {source.name}: {why}: the dump is of another server (a dump of a replica names the replica's own "
            "log), or the log was reset in between; give the log of the dump's server, or the place in this log with "
            "--at FILE:OFFSET"
        )
    return found


def _belief(request: RestoreRequest, recorded: DumpPlace | None, start: Start) -> tuple[str, ...]:
    """What nothing shows of a place that a dump has recorded."""
    if recorded is None or request.at is not None:
        return ()
    if recorded.gtid_set.strip():
        return (recorded.unproved,) if recorded.unproved else ()
    return (
        f"{start.position} is the dump's place in this log: the dump has no GTIDs that show it; dump with them "
        "(MariaDB: --gtid), or from the server whose log this is",
    )


def _of_replica(end: End, scanned: LogScan) -> tuple[str, ...]:
    """What a time means in the log of a replica."""
    if not isinstance(end, EndTime) or scanned.delay == 0:
        return ()
    return (
        f"{end.text} is a time of the server whose log this is, a replica: around the end it has committed up to "
        f"{abs(scanned.delay):.1f} seconds {'behind' if scanned.delay > 0 else 'before'} the clock of its own source; "
        "for a time of there, read the log of that server, or end with --until GTID",
    )


def plan_view(plan: RestorePlan) -> list[Grid]:
    """The plan, for people."""
    scanned, definition = plan.scan, plan.definition
    grid = Grid.of_facts(f"restore {plan.name}: nothing is written yet")
    for old, final in definition.databases:
        shown = "" if plan.is_extension else f"; {unfinished(final)} until it is complete"
        grid.row("database", f"{old} as {final} on {plan.endpoints.target}{shown}")
    for final, kept in () if plan.is_extension else definition.replaced:
        grid.row(
            "replaces",
            f"{final}: its tables, with all that is written to them until then, and its programs are kept as {kept} "
            f"until `binlane restore --drop-replaced {plan.name}`; all tables change places in one statement",
        )
    if plan.events:
        grid.row("events", plan.events)
    if plan.grants:
        grid.row("grants", plan.grants)
    for each in plan.beliefs:
        grid.row("believed", each)
    if definition.tables:
        grid.row(
            "tables", f"{', '.join(definition.tables)}, and their triggers; what is counted below is the database's"
        )
    size = "" if plan.dump is None else f", {size_text(plan.dump.size)} of statements"
    base = "the complete restore" if plan.is_extension else definition.base or "CREATE DATABASE in the log"
    grid.row("base", f"{base}{size}, at {definition.begin}")
    if plan.dump is not None and plan.dump.definers:
        grid.row("definers", definers_row(plan.dump.definers))
    for text in inexact_notices(_inexact(plan)):
        grid.row("not exact", text)
    read = [file for file in scanned.files if file not in scanned.ruled_out]
    files = plural(len(read), "file")
    grid.row("log", f"{definition.log}, {files}, {size_text(scanned.bytes)}; the windows' folder takes as much")
    if scanned.ruled_out:
        out, left_out = scanned.ruled_out, size_text(scanned.bytes_ruled_out)
        names = out[0] if len(out) == 1 else f"{out[0]} to {out[-1]}"
        grid.row(
            "ruled out",
            f"{plural(len(out), 'file')}, {left_out}: by the archive's index nothing of the databases is in {names}",
        )
    grid.row("end", f"{definition.asked}: {scanned.end}{_culprit(scanned)}")
    before, behind = scanned.same_second
    grid.row("same second", f"{plural(before, 'transaction')} of the end's second before it, {behind:,} behind it")
    grid.row(
        "to apply",
        f"{plural(scanned.transactions, 'transaction')}, {plural(scanned.rows, 'row change')} of "
        f"{plural(scanned.all_transactions, 'transaction')} in the log",
    )
    grid.row("estimate", _estimate(plan))
    grid.row("digest", plan.digest)
    around = Grid("around the end").columns("", "time").columns("GTID, or place", "statement or rows")
    for where, found in (("before", scanned.before), ("behind", scanned.after)):
        for one in found:
            around.row(where, moment(one.time), one.gtid or str(one.start), _said(one))
    return [grid, around]


def definers_row(accounts: Collection[str]) -> str:
    """Every account with whose privileges something of a dump would run, for people: the dump's writer decides which
    are many."""
    return f"{', '.join(_sorted(accounts))}: views and programs of the dump run with the privileges of these accounts"


def _sorted(accounts: Collection[str]) -> list[str]:
    """First binlane's own."""
    return sorted(accounts, key=lambda account: (account != OWN_ACCOUNT, account))


def _inexact(plan: RestorePlan) -> list[InexactTable]:
    """The restored tables with values that the dump's text does not preserve."""
    databases, tables = dict(plan.definition.databases), plan.definition.tables
    of_dump = () if plan.dump is None else plan.dump.inexact
    return [each for each in of_dump if each.database in databases and (not tables or each.table in tables)]


def _culprit(scanned: LogScan) -> str:
    one = scanned.culprit
    if one is None:
        return ", the log's end"
    return f", before {one.gtid or one.start} of {moment(one.time)}: {_said(one)}"


def _said(one: LoggedTransaction) -> str:
    rows = [f"{table} {count}" for table, count in one.rows]
    said = "; ".join([*(shown(each)[:_SHOWN] for each in one.statements), *rows])
    return said or "other databases"


def _estimate(plan: RestorePlan) -> str:
    load = 0 if plan.dump is None else plan.dump.size / _LOAD_BYTES
    log, apply = plan.scan.bytes / _LOG_BYTES, plan.scan.rows / _APPLIED_ROWS
    return (
        f"{load + log + apply + 2:,.0f} s: {load:,.0f} s of loading at {size_text(_LOAD_BYTES)} a second, "
        f"{log:,.0f} s of log at {size_text(_LOG_BYTES)}, {apply:,.0f} s of row changes at {_APPLIED_ROWS:,} a second"
    )


def plan_object(plan: RestorePlan) -> Mapping[str, Any]:
    """The plan as JSON values."""
    scanned, definition = plan.scan, plan.definition

    def one(each: LoggedTransaction) -> Mapping[str, Any]:
        return {
            "gtid": each.gtid, "place": str(each.start), "time": each.time, "rows": dict(each.rows),
            # the beginning: whoever keeps the output is no reader of the log, whose statements may have passwords
            "statements": [shown(sql, _SHOWN_AS_VALUE) for sql in each.statements],
        }  # fmt: skip

    return {
        "name": plan.name,
        "digest": plan.digest,
        "databases": {
            old: {"final": final, "until_complete": final if plan.is_extension else unfinished(final)}
            for old, final in definition.databases
        },
        "replaces": dict(definition.replaced),
        "events": plan.events or None,
        "grants": plan.grants or None,
        "believed": [*plan.beliefs],
        "tables": [*definition.tables] or None,
        "base": definition.base or None,
        "definers": [] if plan.dump is None else _sorted(plan.dump.definers),
        "not_exact": [str(each) for each in _inexact(plan)],
        "log": definition.log,
        "files": scanned.files,
        "ruled_out": scanned.ruled_out,
        "begin": definition.begin,
        "end": str(scanned.end),
        "transactions": scanned.transactions,
        "rows": scanned.rows,
        "same_second": {"before": scanned.same_second[0], "behind": scanned.same_second[1]},
        "first_behind": None if scanned.culprit is None else one(scanned.culprit),
        "before": [one(each) for each in scanned.before],
        "behind": [one(each) for each in scanned.after],
        "estimate": _estimate(plan),
        "next_steps": [f"the same command with --yes --digest {plan.digest}"],
    }
