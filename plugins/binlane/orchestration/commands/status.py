"""``binlane status``: the state of a channel as tables or as JSON, from one set of values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from binlane.choices import VerifyScope
from binlane.health.coverage import coverage_of
from binlane.health.health import Health
from binlane.health.unshown import told
from binlane.model import plural
from binlane.orchestration.report import conflicts_text, few, moment, open_xa_text
from binlane.orchestration.terminal import Grid, View
from binlane.safe_text import one_line, shown
from binlane.state.orders.orders import NOW
from binlane.state.records.drills import unproved_text
from binlane.state.records.history import Snapshot
from binlane.state.records.journal import WHOLE_WINDOW, ChannelStatus
from binlane.state.records.verifications import DRIFT, PENDING, without_key
from binlane.state.windows import Window


def lag(status: ChannelStatus, now: float) -> tuple[float | None, int]:
    """Seconds since the source committed the watermark's transaction (None before the first one), and the number of
    extracted transactions that are not applied yet. ``now``: seconds since the epoch."""
    mark = status.channel.watermark
    left = 0 if status.window is None else status.window.bounds.last_seqno - status.low_water
    return (now - mark.source_time if mark.source_time else None), left


def gap(status: ChannelStatus, seqno: int) -> tuple[int, int] | None:
    """The seqnos between a position and the foremost one, which the lane may lack; None if there are none."""
    return None if seqno >= status.high_water else (seqno + 1, status.high_water)


def status_json(snapshot: Snapshot, health: Health) -> View:
    """The whole state as one JSON object. Seqnos are inclusive, times seconds since the epoch or UTC text."""
    return json.dumps({**health_object(health), **state_object(snapshot)}, indent=1)


def health_object(health: Health) -> dict[str, Any]:
    """The channel's name and health, all that there is of a channel whose target cannot be read."""
    return {
        "channel": health.channel,
        "health": {
            "state": health.state,
            "severity": health.severity.name.lower(),
            "findings": [
                {"state": each.state, "text": each.text, "next_step": each.next_step} for each in health.findings
            ],
        },
        "progress": None if health.facts is None or health.facts.stage is None else asdict(health.facts.stage),
    }


def state_object(snapshot: Snapshot) -> dict[str, Any]:
    """What the target has of the channel."""
    status = snapshot.status
    mark = status.channel.watermark
    seconds, transactions = lag(status, snapshot.clock)
    return {
        "source": status.channel.source_identity,
        "watermark": {
            "seqno": mark.seqno,
            "file": mark.source.file,
            "offset": mark.source.offset,
            "gtid_set": mark.gtid_set,
            "source_time": mark.source_time,
        },
        "low_water": status.low_water,
        "high_water": status.high_water,
        "lag_seconds": seconds,
        "lag_transactions": transactions,
        "stopped": status.channel.stopped,
        "window": None if status.window is None else _window(status.window),
        "lanes": _lanes(status),
        "errors": [
            {
                "at": error.at,
                "window": error.window_id,
                "lane": None if error.lane == WHOLE_WINDOW else error.lane,
                "seqno": error.seqno,
                "gtid": error.gtid,
                "file": error.source.file,
                "offset": error.source.offset,
                "code": error.code,
                "text": error.text,
                "solved": error.id not in status.unsolved,
            }
            for error in status.errors
        ],
        "undecided_ddl": [
            {"seqno": intent.seqno, "lane": intent.lane, "statement": intent.text} for intent in status.undecided
        ],
        "to_skip": [{"seqno": skip.seqno, "gtid": skip.gtid, "reason": skip.reason} for skip in status.skips],
        "prepared_xa": [each.xid for each in status.prepared],
        "conflicts": dict(status.conflicts),
        "verified_through": {kind: status.verified.get(kind) for kind in (VerifyScope.FULL, VerifyScope.WINDOW)},
        "verified": {**_verified_json(status), "round": _round_json(snapshot)},
        "suspects": {state: status.suspects.get(state, 0) for state in (DRIFT, PENDING)},
    }


def _window(window: Window) -> dict[str, Any]:
    bounds = window.bounds
    return {
        "id": bounds.window_id,
        "first_seqno": bounds.first_seqno,
        "last_seqno": bounds.last_seqno,
        "file": bounds.end.file,
        "offset": bounds.end.offset,
        "end_time": bounds.end_time,
        "plan": window.plan_digest,
        "stop_at": window.stop_at,
        "work": bounds.work.uri,
    }


def _lanes(status: ChannelStatus) -> list[dict[str, Any]]:
    if status.window is None or status.window.plan_digest is None:
        return []
    beats = {beat.lane: beat for beat in status.heartbeats}
    return [
        {
            "lane": lane.lane,
            "seqno": lane.seqno,
            "gap": gap(status, lane.seqno),
            "transactions": lane.transactions,
            "rows": lane.rows.total,
            "held_by_connection": status.holders.get(lane.lane),
            "last_holder": None if lane.lane not in beats else beats[lane.lane].holder,
            "heartbeat": None if lane.lane not in beats else beats[lane.lane].beat_at,
        }
        for lane in status.positions
    ]


def status_view(snapshot: Snapshot, health: Health, *, solved: bool = False) -> View:
    """Health, progress, watermark, unfinished window, lanes and errors of a channel; ``solved``: past errors as
    well."""
    status = snapshot.status
    mark = status.channel.watermark
    seconds, transactions = lag(status, snapshot.clock)
    head = Grid.of_facts(f"channel {status.channel.name}")
    for each in health.findings:
        head.row("health" if each is health.findings[0] else "", f"{each.state}: {each.text}")
        if each.next_step:
            head.row("", each.next_step)
    if health.facts is not None and health.facts.stage is not None:
        head.row("progress", health.facts.stage.told)
    behind = "no transaction applied yet" if seconds is None else f"{seconds:,.0f} s behind now"
    head.row("watermark", f"seqno {mark.seqno:,}, {mark.source}, {moment(mark.source_time)} ({behind})")
    head.row("GTID set", mark.gtid_set or "-")
    head.row("source", status.channel.source_identity)
    if status.channel.stopped is not None:
        head.row("stopped", f"{status.channel.stopped}; `binlane resume {status.channel.name}` cancels this")
    for name, value in _window_rows(status, transactions):
        head.row(name, value)
    for proof in _proofs(snapshot):
        head.row(*proof)
    if status.prepared:
        head.row("prepared XA", few(open_xa_text(status.prepared)))
    if status.conflicts:
        told = f"{conflicts_text(status.conflicts)}; `binlane conflicts {status.channel.name}` lists them"
        head.row("conflicts", told)
    for intent in status.undecided:
        head.row("undecided DDL", f"seqno {intent.seqno:,}, lane {intent.lane}: {one_line(shown(intent.statement))}")
    for skip in status.skips:
        head.row("to skip", f"seqno {skip.seqno:,}, by {one_line(skip.by)}: {one_line(skip.reason)}")
    past = sum(error.id not in status.unsolved for error in status.errors)
    if past and not solved:
        head.row("errors", f"{past:,} solved; `binlane status {status.channel.name} --errors` lists them")
    return [head, *_positions(status), *_errors(status, solved=solved)]


def _verified_json(status: ChannelStatus) -> dict[str, Any]:
    covered = status.covered
    return {
        "through": min(covered.through, status.channel.watermark.seqno),
        "rows_after": covered.rows_after,
        "rows_through": covered.rows_through,
        "full_through": covered.full_through,
        "full_at": covered.full_at,
        "equal_rows": status.equal_rows,
        "pending": status.suspects.get(PENDING, 0),
        "pending_since": status.pending_since,
        "pending_without_key": without_key(status.unshown),
        "unshown": [asdict(each) for each in status.unshown],
    }


def _proofs(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What verifications and drills have proved."""
    yield "verified", _verified(snapshot.status)
    if (found := coverage_of(snapshot).round) is not None:
        yield "full round", found.told
    if (last := snapshot.drills) is not None:
        at = "never" if last.equal_at is None else f"at {last.equal_at.partition('.')[0]} UTC"
        some = f"; {unproved_text([*map(str, last.unproved)])}" if last.unproved else ""
        yield "drills", f"the last one {last.state}; restores proved {at}{some}"


def _round_json(snapshot: Snapshot) -> dict[str, Any] | None:
    found = coverage_of(snapshot).round
    return None if found is None else {**asdict(found), "share": found.share}


def _verified(status: ChannelStatus) -> str:
    """The seqno up to which the target is verified, and the differences of the last verification."""
    covered = status.covered
    if not covered.rows_through and covered.full_through is None:
        return "never"
    parts = [
        f"compared through seqno {min(covered.through, status.channel.watermark.seqno):,}, "
        f"{plural(status.equal_rows, 'row')} equal in the last verification"
    ]
    if covered.rows_through > covered.through:
        after, through = covered.rows_after, covered.rows_through
        parts.append(f"a window's rows from seqno {after + 1:,} to {through:,}; `--full` closes the gap before them")
    if covered.full_at is not None:
        at = covered.full_at.partition(".")[0]
        parts.append(f"all tables through seqno {covered.full_through or 0:,} at {at} UTC")
    if drift := status.suspects.get(DRIFT, 0):
        parts.append(f"{drift:,} drift")
    if pending := status.suspects.get(PENDING, 0):
        keyless = without_key(status.unshown)
        apart = f", {keyless:,} of them in tables without a primary key" if keyless else ""
        parts.append(f"{pending:,} pending{apart}, the oldest since {str(status.pending_since).partition('.')[0]} UTC")
    parts += told(status.unshown, status.channel.name)
    return "; ".join(parts)


def _window_rows(status: ChannelStatus, transactions: int) -> list[tuple[str, str]]:
    window = status.window
    if window is None:
        return [("window", "none open")]
    bounds, left = window.bounds, plural(transactions, "transaction")
    rows = [
        ("window", f"{bounds.window_id}, seqno {bounds.first_seqno:,} to {bounds.last_seqno:,}, unfinished"),
        ("plan", window.plan_digest or "none yet: run the channel again"),
        ("marks", f"low {status.low_water:,}, high {status.high_water:,}; {left} to its end"),
    ]
    if window.stop_at is not None:
        rows.append(("stops", "each lane at its position" if window.stop_at == NOW else f"at seqno {window.stop_at:,}"))
    return rows


def _positions(status: ChannelStatus) -> list[Grid]:
    lanes = _lanes(status)
    if not lanes:
        return []
    grid = Grid("lanes").columns("lane", "position", justify="right").columns("gap")
    grid.columns("transactions", "row changes", justify="right").columns("held by")
    for lane in lanes:
        missing = "-" if lane["gap"] is None else f"{lane['gap'][0]:,} to {lane['gap'][1]:,}"
        last = "" if lane["last_holder"] is None else f"{lane['last_holder']}, {lane['heartbeat']} UTC"
        held = lane["held_by_connection"]
        who = f"connection {held}: {last}" if held is not None else f"nobody{'; last: ' if last else ''}{last}"
        row = (f"{lane['seqno']:,}", missing, f"{lane['transactions']:,}", f"{lane['rows']:,}", who)
        grid.row(str(lane["lane"]), *row)
    return [grid]


def _errors(status: ChannelStatus, *, solved: bool) -> list[Grid]:
    shown = [error for error in status.errors if solved or error.id in status.unsolved]
    if not shown:
        return []
    # whole lines: a refusal has many, which a column of a table would break into more
    grid = Grid.of_facts("last errors" if solved else "errors")
    for error in shown:
        where = "" if error.lane == WHOLE_WINDOW else f"lane {error.lane}, "
        at = f"{where}seqno {error.seqno:,}: " if error.seqno else where
        grid.row(f"{error.at.partition('.')[0]} UTC", f"{at}{error.text}")
    return [grid]
