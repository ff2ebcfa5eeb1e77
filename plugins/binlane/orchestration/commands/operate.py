"""The commands that operate a channel: stop, resume, decide, xa, status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from binlane.apply.refusals import lacks_state
from binlane.apply.target_state import target_state
from binlane.config import DeclaredChannel
from binlane.config.rules_digest import rules_digest
from binlane.connections import Endpoint, Resolver
from binlane.errors import ConfigError, PositionError, TargetError
from binlane.health.channel_facts import Limits, facts_of
from binlane.health.first_copy import beginning_copy, read_first_copy
from binlane.health.health import health_of
from binlane.model import plural
from binlane.orchestration import report
from binlane.orchestration.audited import audited, whoami
from binlane.orchestration.commands.channel import load, read_channel_status
from binlane.orchestration.commands.copy_status import copy_json, copy_view
from binlane.orchestration.commands.status import status_json, status_view
from binlane.orchestration.terminal import View
from binlane.safe_text import one_line
from binlane.servers.engines import engine_of
from binlane.state.carried.prepared import decide_xa
from binlane.state.channels import has_channel
from binlane.state.orders.stops import clear_stop, request_stop
from binlane.state.records.ddl_intents import decide_ddl
from binlane.state.records.history import read_snapshot
from binlane.state.records.restores import has_restore
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import read_open_window


def stop(
    named: str | DeclaredChannel,
    folder: Path,
    *,
    now: bool,
    places: Mapping[str, str | None],
    by: str | None = None,
    resolve: Resolver | None = None,
) -> str:
    """Ask the channel to stop. Returns a message with the seqno of the stop. ``places``: the options that name a place,
    at most one with a value. ``by``: the author, if not the account of this process; ``resolve``: resolves connections,
    if not from the environment.

    Raises ConfigError for several places, PositionError or PlanError for a place that is not ahead in the open window.
    """
    # imported only here: it reads logs, for which `status` and `resume` would wait
    from binlane.orchestration.stop import seqno_of, settle

    given = {option: place for option, place in places.items() if place is not None}
    if len(given) + now > 1:
        raise ConfigError(f"stop: expected one of {', '.join((*places, '--now'))} at most, got {len(given) + now}")
    channel, endpoints = load(named, folder, resolve, waits=False)
    name = channel.name
    with (
        target_state(endpoints.target, waits=False) as engine,
        audited(endpoints.target, name, "stop", {"--now": now, **given}, by),
    ):
        with engine.connect() as connection:
            window = read_open_window(connection, name)
        at = None
        for place in given.values():
            if window is None:
                raise PositionError(
                    f"channel {name}: no window is open, so the channel cannot stop at {place}; end the next "
                    "window with --until instead"
                )
            at = seqno_of(window, place, WindowFolders(channel.work.uri, name))
        asked = request_stop(engine, name, by=whoami() if by is None else by, now=now, at=at)
        back = f"to continue: `binlane resume {name}`, then run the channel again"
        if asked.window is None:
            return (
                f"channel {name}: is stopped at seqno {asked.seqno:,}; runs open no window until it is resumed; {back}"
            )
        if now:
            return f"channel {name}: its lanes stop at their next block; {back}"
        if not asked.is_reached:
            return (
                f"channel {name}: all its lanes stop at seqno {asked.seqno:,}, and the watermark moves there; if "
                f"no run is active, {_going_on(endpoints.target, name)} brings the lanes there; {back}"
            )
        with engine.connect() as connection:
            window = read_open_window(connection, name)
        # somebody may have resumed it
        if window is not None and window.plan_digest is not None and window.stop_at is not None:
            settle(endpoints, window, WindowFolders(channel.work.uri, name))
        return f"channel {name}: is stopped at seqno {asked.seqno:,}; {back}"


def resume(
    named: str | DeclaredChannel, folder: Path, *, by: str | None = None, resolve: Resolver | None = None
) -> str:
    """Cancel a stop request."""
    channel, endpoints = load(named, folder, resolve, waits=False)
    name = channel.name
    with (
        target_state(endpoints.target, waits=False) as engine,
        audited(endpoints.target, name, "resume", by=by),
    ):
        clear_stop(engine, name)
        goes_on = _going_on(endpoints.target, name)
    return f"channel {name}: is resumed; {goes_on}, or the next run in Airflow, continues from the lanes' positions"


def _going_on(target: Endpoint, name: str) -> str:
    """The command that applies a channel's windows: of a restore, `binlane run` does not."""
    with engine_of(target).connect() as connection:
        command = "restore --continue" if has_restore(connection, name) else "run"
    return f"`binlane {command} {name}`"


def decide(
    name: str, folder: Path, seqno: int, *, ran: bool, by: str | None = None, resolve: Resolver | None = None
) -> str:
    """Record an operator's answer to UndecidableError."""
    _, endpoints = load(name, folder, resolve)
    answered = "--ran" if ran else "--not-ran"
    with (
        target_state(endpoints.target) as engine,
        audited(endpoints.target, name, "decide", {"seqno": seqno, "answer": answered}, by),
    ):
        decide_ddl(engine, name, seqno, ran=ran)
    answer = "is recorded as done" if ran else "will be executed again"
    return f"channel {name}: the DDL of seqno {seqno:,} {answer}; run the channel again"


def xa(name: str, folder: Path, *, done: str | None, forget: str | None) -> str:
    """List the prepared XA transactions, or record an operator's decision on one."""
    _, endpoints = load(name, folder)
    if done is not None and forget is not None:
        raise ConfigError("--done and --forget: expected only one of them, got both")
    xid = done if done is not None else forget
    if xid is not None:
        option = "--forget" if done is None else "--done"
        with target_state(endpoints.target) as engine, audited(endpoints.target, name, f"xa {option}", {"XID": xid}):
            decide_xa(engine, name, xid, done=done is not None)
    lines = report.open_xa_text(read_channel_status(endpoints, name).prepared)
    return "\n".join(
        (f"channel {name}: {plural(len(lines), 'prepared XA transaction')} at its watermark", *map(one_line, lines))
    )


def status(name: str, folder: Path, *, as_json: bool, errors: bool = False, resolve: Resolver | None = None) -> View:
    """Health and state of the channel, or how far its first copy has come, from the target alone. ``errors``: solved
    errors as well, which JSON always has."""
    channel, endpoints = load(name, folder, resolve, waits=False)
    try:
        with target_state(endpoints.target, waits=False) as engine:
            with engine.connect() as connection:
                if not has_channel(connection, name) and (copy := _first_copy(connection, name, as_json=as_json)):
                    return copy
            snapshot = read_snapshot(engine, name, last_windows=2, rules=rules_digest(channel))
    except TargetError as exc:
        if not lacks_state(exc):
            raise
        # a first copy that has just begun makes the tables
        raise PositionError(
            f"channel {name}: unknown on this target, which has no schema binlane yet; `binlane bootstrap {name}` or "
            f"`binlane init {name}` begins it (if the schema was lost: docs/recovery.md, The schema binlane is lost)"
        ) from exc
    health = health_of(facts_of(snapshot, channel, None), Limits.of(channel))
    return status_json(snapshot, health) if as_json else status_view(snapshot, health, solved=errors)


def _first_copy(connection: Any, name: str, *, as_json: bool) -> View | None:
    """An unfinished first copy; None if there is none."""
    if (copy := read_first_copy(connection, name)) is not None:
        return (copy_json if as_json else copy_view)(name, copy)
    if (told := beginning_copy(connection, name)) is None:
        return None
    first_copy = {"attempt": 0, "running": True}
    return json.dumps({"channel": name, "first_copy": first_copy}, indent=1) if as_json else f"channel {name}: {told}"
