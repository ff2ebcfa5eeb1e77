"""The plan of ``binlane restore``: what would be restored, from where, up to which place of the log. Writes nothing."""

from __future__ import annotations

import contextlib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from binlane.activity import doing
from binlane.apply.refusals import target_errors
from binlane.apply.target_state import knowing_target
from binlane.bootstrap.sessions import write_session
from binlane.config import ChannelConfig, DeclaredChannel, load_channel, require_channel_name
from binlane.config.node import Node
from binlane.connections import Endpoints, Resolver, environment_resolver, resolve_endpoints
from binlane.errors import ConfigError, PrecheckError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, plural, size_text
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.readiness import require_ready_to_begin
from binlane.orchestration.report import moment
from binlane.orchestration.request import NOW, gtid_of, time_of
from binlane.orchestration.terminal import Grid
from binlane.rename_rules import LONGEST, SYSTEM
from binlane.restore.dump_file import DumpFile, DumpPlace
from binlane.restore.final_names import require_free
from binlane.restore.log_scan import (
    End,
    EndGtid,
    EndPosition,
    EndStatement,
    EndTime,
    LogEnd,
    LoggedTransaction,
    LogScan,
    scan,
)
from binlane.servers.engines import engine_of
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from binlane.source.start_position import OLDEST, begin
from binlane.state.channels import has_channel
from binlane.state.records.restores import RestoreDefinition, has_restore

FROM_LOG: Final = "log"
_UNFINISHED: Final = "_unfinished"
_FOLDER: Final = "restores"
_POSITION: Final = re.compile(r"([^:/\s]+\.\d{4,}):(\d+)")
_PATTERN: Final = frozenset("*?[]%")
_SHOWN: Final = 80
_LOAD_BYTES: Final = 10 << 20
_APPLIED_ROWS: Final = 20_000
"""A second, of a dump and of row changes: estimates of a small machine."""
_TEMPLATE: Final = """\
# Written by `binlane restore`: the channel of the restore {name}. Commands on windows take it with --channels {folder}.

[source]
{source}

[target]
connection = {target}

[window]
schedule = "none"

[filter]
include_databases = {databases}

[filter.kinds]
# accounts do not belong to a database
accounts = "ignore"

[rename]
{renames}
"""


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """The arguments of ``binlane restore``."""

    name: str | None
    base: str
    """A dump's path, or ``log``."""
    log: str
    databases: tuple[str, ...]
    final: str | None
    until: str | None
    before: str | None
    at: str | None
    """The place of the log that belongs to a dump that has not recorded it."""
    onto: str


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


def folder_of(channels: Path) -> Path:
    """Where the channel files of restores are: beside the folder of channels, so that no DAG is made of them."""
    return channels.parent / _FOLDER


def unfinished(final: str) -> str:
    """A database's name until the restore is complete."""
    return final + _UNFINISHED


def plan_restore(request: RestoreRequest, channels: Path, resolve: Resolver | None = None) -> RestorePlan:
    """Raises ConfigError, PrecheckError, PlanError and SourceError for everything that stands in the way."""
    names = _names(request)
    end = _end(request)
    name = request.name or f"restore_{re.sub('[^A-Za-z0-9_-]', '_', names[0][1])[:50]}"
    file = folder_of(channels) / f"{name}.toml"
    require_channel_name(name, file)
    if file.exists():
        raise ConfigError(
            f"{file}: expected no restore of the name {name}, found one; `binlane restore --continue {name}` goes on "
            f"with it, `--drop {name}` removes it, or give another name"
        )
    text = _file_text(name, folder_of(channels), request, names)
    node = Node(tomllib.loads(text), str(file.absolute()))
    channel = load_channel(DeclaredChannel(name, file, node=node))
    resolver = environment_resolver() if resolve is None else resolve
    endpoints = knowing_target(resolve_endpoints(channel, resolver))
    dump = None if request.base == FROM_LOG else DumpFile(Path(request.base))
    with doing("looking for the dump's place and databases"):
        recorded = None if dump is None else dump.place()
    if recorded is not None and (lacks := sorted({old for old, _ in names} - recorded.databases)):
        raise ConfigError(
            f"--from {request.base}: expected database {lacks[0]}, found {', '.join(sorted(recorded.databases)[:20])}"
        )
    source = source_of(channel, endpoints)
    _require_free(channel, endpoints, source, names)
    start = _start(source, request, recorded)
    databases = frozenset(old for old, _ in names)
    with doing("reading the log for the plan"):
        found = scan(source, start, databases, end, finds_begin=recorded is None)
    definition = RestoreDefinition(
        base="" if dump is None else str(dump.path.absolute()),
        log=request.log,
        databases=names,
        begin=str(found.begin),
        end_file=found.end.file,
        end_offset=found.end.offset,
        asked=end.text,
        digest="" if dump is None else dump.digest,
    )
    return RestorePlan(name, file, text, channel, endpoints, definition, found, recorded)


def _names(request: RestoreRequest) -> tuple[tuple[str, str], ...]:
    if not request.databases:
        raise ConfigError("--database: expected the database to restore, found none")
    for name in (*request.databases, *([] if request.final is None else [request.final])):
        if _PATTERN & {*name}:
            raise ConfigError(f"{name}: expected one database's name; patterns are not there yet: repeat --database")
        if name.lower() in SYSTEM or not name:
            raise ConfigError(
                f"{name or '--database'}: expected a database that is neither the server's own nor binlane's"
            )
    if request.final is not None and len(request.databases) > 1:
        raise ConfigError("--as: expected one --database with it; restore them one by one, or under their own names")
    found = tuple((name, request.final or name) for name in dict.fromkeys(request.databases))
    for _, final in found:
        if len(unfinished(final)) > LONGEST:
            raise ConfigError(
                f"{final}: expected a name of at most {LONGEST - len(_UNFINISHED)} characters, which leaves room for "
                f"{_UNFINISHED}; give a shorter one with --as"
            )
    return found


def _end(request: RestoreRequest) -> End:
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


def _file_text(name: str, folder: Path, request: RestoreRequest, names: tuple[tuple[str, str], ...]) -> str:
    is_archive = "/" in request.log
    return _TEMPLATE.format(
        name=name,
        folder=folder,
        source=f"archive = {_quoted(_absolute(request.log))}" if is_archive else f"connection = {_quoted(request.log)}",
        target=_quoted(request.onto),
        databases=f"[{', '.join(_quoted(old) for old, _ in names)}]",
        renames="\n".join(f"{_quoted(old)} = {_quoted(unfinished(final))}" for old, final in names),
    )


def _quoted(text: str) -> str:
    if not text.isprintable():
        raise ConfigError(f"{text!r}: expected a name or path without control characters")
    return json.dumps(text, ensure_ascii=False)


def _absolute(log: str) -> str:
    return log if "://" in log else str(Path(log).absolute())


def _require_free(
    channel: ChannelConfig, endpoints: Endpoints, source: EventSource, names: tuple[tuple[str, str], ...]
) -> None:
    """Whether the target can take the restore."""
    with target_errors(str(endpoints.target)):
        with engine_of(endpoints.target).connect() as connection:
            if has_restore(connection, channel.name) or has_channel(connection, channel.name):
                raise PrecheckError(
                    f"{endpoints.target}: expected no restore or channel of the name {channel.name}, found one; give "
                    "another name"
                )
        with contextlib.closing(write_session(endpoints.target)) as session:
            require_free(session, {unfinished(final): final for _, final in names})
            require_free(session, {final: unfinished(final) for _, final in names})
            if (ours := session.flavor) is not (theirs := source.state().flavor):
                raise PrecheckError(
                    f"{endpoints.target}: expected a server of the log's family, {theirs}, found {ours}; restore onto "
                    "one of that family"
                )
    require_ready_to_begin(channel, endpoints, source, has_end=True)


def _start(source: EventSource, request: RestoreRequest, recorded: DumpPlace | None) -> Start:
    if recorded is None:
        return begin(source, OLDEST)
    place = request.at or recorded.position or recorded.gtid_set
    if not place:
        raise ConfigError(
            f"--from {request.base}: expected the place in the log that belongs to the dump, found none; dump with "
            "--source-data=2 (MariaDB: --master-data=2), or give the place with --at FILE:OFFSET"
        )
    found = begin(source, place)
    if request.at is None and recorded.gtid_set and found.gtid_set and recorded.gtid_set != found.gtid_set:
        raise PrecheckError(
            f"--from {request.base}: expected the dump's GTIDs, {recorded.gtid_set}, at {found.position} of "
            f"{source.name}, found {found.gtid_set}: the dump is of another server, or of another log of it; give the "
            "log of the dump's server, or the place in this log with --at FILE:OFFSET"
        )
    return found


def plan_view(plan: RestorePlan) -> list[Grid]:
    """The plan, for people."""
    scanned, definition = plan.scan, plan.definition
    grid = Grid.of_facts(f"restore {plan.name}: nothing is written yet").columns("", "", fold=True)
    for old, final in definition.databases:
        grid.row("database", f"{old} as {final} on {plan.endpoints.target}; {unfinished(final)} until it is complete")
    size = "" if plan.dump is None else f", {size_text(plan.dump.size)} of statements"
    grid.row("base", f"{definition.base or 'CREATE DATABASE in the log'}{size}, at {definition.begin}")
    files = plural(len(scanned.files), "file")
    grid.row("log", f"{definition.log}, {files}, {size_text(scanned.bytes)}; the windows' folder takes as much")
    grid.row("end", f"{definition.asked}: {scanned.end}{_culprit(scanned)}")
    before, behind = scanned.same_second
    grid.row("same second", f"{plural(before, 'transaction')} of the end's second before it, {behind:,} behind it")
    grid.row(
        "to apply",
        f"{plural(scanned.transactions, 'transaction')}, {plural(scanned.rows, 'row change')} of "
        f"{plural(scanned.all_transactions, 'transaction')} in the log",
    )
    grid.row("estimate", _estimate(plan))
    around = Grid("around the end").columns("", "time").columns("GTID, or place", "statement or rows", fold=True)
    for where, found in (("before", scanned.before), ("behind", scanned.after)):
        for one in found:
            around.row(where, moment(one.time), one.gtid or str(one.start), _said(one))
    return [grid, around]


def _culprit(scanned: LogScan) -> str:
    one = scanned.culprit
    if one is None:
        return ", the log's end"
    return f", before {one.gtid or one.start} of {moment(one.time)}: {_said(one)}"


def _said(one: LoggedTransaction) -> str:
    rows = [f"{table} {count}" for table, count in one.rows]
    said = "; ".join([*(" ".join(each.split())[:_SHOWN] for each in one.statements), *rows])
    return said or "other databases"


def _estimate(plan: RestorePlan) -> str:
    load = 0 if plan.dump is None else plan.dump.size / _LOAD_BYTES
    apply = plan.scan.rows / _APPLIED_ROWS
    return (
        f"{load + apply + 2:,.0f} s: {load:,.0f} s of loading at {size_text(_LOAD_BYTES)} a second, {apply:,.0f} s of "
        f"row changes at {_APPLIED_ROWS:,} a second"
    )


def plan_object(plan: RestorePlan) -> Mapping[str, Any]:
    """The plan as JSON values."""
    scanned, definition = plan.scan, plan.definition

    def one(each: LoggedTransaction) -> Mapping[str, Any]:
        return {
            "gtid": each.gtid, "place": str(each.start), "time": each.time, "rows": dict(each.rows),
            "statements": list(each.statements),
        }  # fmt: skip

    return {
        "name": plan.name,
        "databases": {
            old: {"final": final, "until_complete": unfinished(final)} for old, final in definition.databases
        },
        "base": definition.base or None,
        "log": definition.log,
        "files": scanned.files,
        "begin": definition.begin,
        "end": str(scanned.end),
        "transactions": scanned.transactions,
        "rows": scanned.rows,
        "same_second": {"before": scanned.same_second[0], "behind": scanned.same_second[1]},
        "first_behind": None if scanned.culprit is None else one(scanned.culprit),
        "before": [one(each) for each in scanned.before],
        "behind": [one(each) for each in scanned.after],
        "estimate": _estimate(plan),
        "next_steps": ["the same command with --yes"],
    }
