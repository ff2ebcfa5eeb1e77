"""Channels and their windows: one open window a channel, guarded by compare-and-set on the target.

A window is opened with its end (docs/invariants.md, 7), gets its plan's digest before the first block, and is finished
by moving the watermark, once, when every lane stands at its last seqno and the accounts close (4, 5).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Engine, Row, ScalarSelect, insert, select, update

from binlane.errors import PlanError, PositionError, SourceIdentityError, WindowBusyError
from binlane.model import LogPosition, RowCounts
from binlane.plan.window_plan import WindowPlan
from binlane.state.positions import LanePosition, lane_positions, place_lanes
from binlane.state.tables import NOW, channels, windows

OPEN: Final = "open"
FINISHED: Final = "finished"


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far the target can be trusted: everything up to ``seqno`` is there, nothing of it is missing."""

    seqno: int
    source: LogPosition
    """Where the next transaction begins."""
    gtid_set: str
    source_time: float
    fingerprint: str
    """Of the last transaction; tells a rewritten log from the one that was read."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel's row."""

    name: str
    uuid: str
    source_identity: str
    watermark: Watermark
    windows: int
    """How many windows it has had."""


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """A window as extraction found it: what is stored, by compare-and-set, before anything is planned."""

    channel: str
    window_id: str
    source_identity: str
    first_seqno: int
    last_seqno: int
    end: LogPosition
    end_gtid_set: str
    end_time: float
    end_fingerprint: str
    work: str
    """URI of the window's folder."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window's row."""

    bounds: WindowBounds
    number: int
    state: str
    lanes: int | None
    plan_digest: str | None
    totals: RowCounts | None
    stop_at: int | None
    summary: str | None

    @property
    def is_finished(self) -> bool:
        """Whether the watermark has passed it."""
        return self.state == FINISHED


def create_channel(engine: Engine, name: str, source_identity: str, start: Watermark) -> Channel:
    """Create the channel's row; the one that is there is returned if it is of the same source, whatever its watermark.

    Raises SourceIdentityError if the channel exists and belongs to another source.
    """
    with engine.begin() as connection:
        row = connection.execute(select(channels).where(channels.c.channel == name).with_for_update()).one_or_none()
        if row is None:
            connection.execute(
                insert(channels).values(
                    channel=name,
                    uuid=str(uuid.uuid4()),
                    source_identity=source_identity,
                    **_watermark_values(start),
                    windows=0,
                    created_at=NOW,
                    updated_at=NOW,
                )
            )
        elif row.source_identity != source_identity:
            raise SourceIdentityError(
                f"channel {name}: belongs to source {row.source_identity}, got {source_identity}; a new source "
                "needs a new channel"
            )
        return read_channel(connection, name)


def read_channel(connection: Connection, name: str, *, for_update: bool = False) -> Channel:
    """Raises PositionError if there is no such channel on this target."""
    query = select(channels).where(channels.c.channel == name)
    row = connection.execute(query.with_for_update() if for_update else query).one_or_none()
    if row is None:
        raise PositionError(f"channel {name}: unknown on this target; run `binlane init` first")
    mark = Watermark(
        seqno=row.watermark_seqno,
        source=LogPosition(row.source_file, row.source_offset),
        gtid_set=row.gtid_set,
        source_time=row.source_time,
        fingerprint=row.fingerprint,
    )
    return Channel(row.channel, row.uuid, row.source_identity, mark, row.windows)


def open_window(engine: Engine, bounds: WindowBounds) -> Window:
    """Store a window's bounds as the channel's open window. The same window, open or finished, is returned as it
    stands.

    Raises WindowBusyError if another window is open or this one has other bounds, SourceIdentityError if the source is
    not the channel's, PositionError if the window does not begin behind the watermark.
    """
    with engine.begin() as connection:
        # the channel's row is the lock that makes one open window a channel certain
        channel = read_channel(connection, bounds.channel, for_update=True)
        found = read_window(connection, bounds.channel, bounds.window_id)
        if found is not None and found.is_finished:
            return found
        current = read_open_window(connection, bounds.channel)
        if current is not None:
            return _same_window(current, bounds)
        _check_begin(channel, bounds)
        connection.execute(
            insert(windows).values(**_bounds_values(bounds), number=channel.windows + 1, state=OPEN, created_at=NOW)
        )
        connection.execute(
            update(channels)
            .where(channels.c.channel == bounds.channel)
            .values(windows=channels.c.windows + 1, updated_at=NOW)
        )
        return _required_window(connection, bounds.channel, bounds.window_id)


def _same_window(current: Window, bounds: WindowBounds) -> Window:
    if _content(current.bounds) == _content(bounds):
        return current
    raise WindowBusyError(
        f"channel {bounds.channel}: window {current.bounds.window_id} (seqnos {current.bounds.first_seqno}.."
        f"{current.bounds.last_seqno}, end {current.bounds.end}) is open; got window {bounds.window_id} (seqnos "
        f"{bounds.first_seqno}..{bounds.last_seqno}, end {bounds.end}); finish the open window first"
    )


def _content(bounds: WindowBounds) -> tuple[object, ...]:
    return (
        bounds.window_id,
        bounds.source_identity,
        bounds.first_seqno,
        bounds.last_seqno,
        bounds.end,
        bounds.end_gtid_set,
        bounds.end_fingerprint,
    )


def _check_begin(channel: Channel, bounds: WindowBounds) -> None:
    if channel.source_identity != bounds.source_identity:
        raise SourceIdentityError(
            f"channel {channel.name}: its watermark belongs to source {channel.source_identity}, "
            f"the window was read from {bounds.source_identity}; nothing was stored"
        )
    if bounds.first_seqno != channel.watermark.seqno + 1 or bounds.last_seqno < bounds.first_seqno - 1:
        raise PositionError(
            f"channel {channel.name}: window {bounds.window_id} has seqnos {bounds.first_seqno}..{bounds.last_seqno}, "
            f"expected to begin at {channel.watermark.seqno + 1}, behind the watermark; extract the window again"
        )


def set_plan(engine: Engine, plan: WindowPlan) -> Window:
    """Store the plan's digest with the open window and put every lane before its first seqno. Again: a no-op.

    Raises PlanError if the window has another plan or other bounds, PositionError if it is not there.
    """
    with engine.begin() as connection:
        window = _required_window(connection, plan.channel, plan.window_id, for_update=True)
        if (window.bounds.first_seqno, window.bounds.last_seqno) != (plan.first_seqno, plan.last_seqno):
            raise PlanError(
                f"channel {plan.channel}, window {plan.window_id}: stored with seqnos {window.bounds.first_seqno}.."
                f"{window.bounds.last_seqno}, the plan has {plan.first_seqno}..{plan.last_seqno}; run the filter "
                "step again"
            )
        moved = connection.execute(
            update(windows)
            .where(
                windows.c.channel == plan.channel,
                windows.c.window_id == plan.window_id,
                windows.c.state == OPEN,
                windows.c.plan_digest.is_(None),
            )
            .values(plan_digest=plan.digest, lanes=plan.lanes, totals=_totals_text(plan.rows))
        )
        if moved.rowcount == 1:
            place_lanes(connection, plan)
        elif window.plan_digest != plan.digest:
            raise PlanError(
                f"channel {plan.channel}, window {plan.window_id}: has the plan {window.plan_digest}, got "
                f"{plan.digest}: a window "
                "keeps its plan until it is finished; undo the change of the shard list or settings, or finish "
                "the window first"
            )
        return _required_window(connection, plan.channel, plan.window_id)


def read_window(connection: Connection, channel: str, window_id: str, *, for_update: bool = False) -> Window | None:
    """A window's row, if there is one."""
    query = select(windows).where(windows.c.channel == channel, windows.c.window_id == window_id)
    row = connection.execute(query.with_for_update() if for_update else query).one_or_none()
    return None if row is None else _window(row)


def read_open_window(connection: Connection, channel: str) -> Window | None:
    """The channel's open window, if it has one; there is never a second one."""
    row = connection.execute(select(windows).where(windows.c.channel == channel, windows.c.state == OPEN)).one_or_none()
    return None if row is None else _window(row)


def finished_work(connection: Connection, channel: str, *, keep: int) -> tuple[str, ...]:
    """Work folders of the finished windows before the newest ``keep``, as far as they have not been removed."""
    rows = connection.execute(
        select(windows.c.work)
        .where(
            windows.c.channel == channel, windows.c.state == FINISHED, windows.c.number <= _windows_of(channel) - keep
        )
        .where(windows.c.work != "")
        .order_by(windows.c.number)
    )
    return tuple(row.work for row in rows)


def forget_work(connection: Connection, channel: str, work: str) -> None:
    """Note that a finished window's folder was removed."""
    connection.execute(
        update(windows)
        .where(windows.c.channel == channel, windows.c.state == FINISHED, windows.c.work == work)
        .values(work="")
    )


def _windows_of(channel: str) -> ScalarSelect[int]:
    return select(channels.c.windows).where(channels.c.channel == channel).scalar_subquery()


def request_stop(engine: Engine, channel: str, *, now: bool = False) -> int | None:
    """Ask the lanes of the open window to stop; the seqno they stop at, None if no window is open.

    Graceful: each lane goes on to the first block boundary at or above the highest position that any lane has now.
    ``now``: at its next block boundary.
    """
    with engine.begin() as connection:
        window = read_open_window(connection, channel)
        if window is None:
            return None
        reached = max((lane.seqno for lane in lane_positions(connection, channel)), default=0)
        stop_at = 0 if now else reached
        _set_stop(connection, window, stop_at)
        return stop_at


def clear_stop(engine: Engine, channel: str) -> None:
    """Take a stop request back, so that the next run goes on."""
    with engine.begin() as connection:
        window = read_open_window(connection, channel)
        if window is not None:
            _set_stop(connection, window, None)


def _set_stop(connection: Connection, window: Window, stop_at: int | None) -> None:
    connection.execute(
        update(windows)
        .where(windows.c.channel == window.bounds.channel, windows.c.window_id == window.bounds.window_id)
        .values(stop_at=stop_at)
    )


def finish_window(
    engine: Engine,
    channel: str,
    window_id: str,
    digest: str,
    summary: str | None = None,
    settle: Callable[[Connection], None] | None = None,
) -> Watermark:
    """Move the watermark to the window's end and close the window, in one transaction. Again: a no-op.

    ``settle`` is called in that transaction, once, if the watermark moves.

    Raises PositionError if a lane is missing or has not reached the last seqno, if the lanes' counters are not the
    plan's totals (invariant 5) or if the watermark is not where the window began; PlanError if the window has another
    plan.
    """
    with engine.begin() as connection:
        mark = read_channel(connection, channel, for_update=True)
        window = _required_window(connection, channel, window_id, for_update=True)
        if window.plan_digest != digest:
            raise PlanError(f"channel {channel}, window {window_id}: has the plan {window.plan_digest}, got {digest}")
        if window.is_finished:
            return mark.watermark
        where = f"channel {channel}, window {window_id}"
        _check_lanes(window, lane_positions(connection, channel, for_update=True), where)
        bounds = window.bounds
        reached = Watermark(bounds.last_seqno, bounds.end, bounds.end_gtid_set, bounds.end_time, bounds.end_fingerprint)
        moved = connection.execute(
            update(channels)
            .where(channels.c.channel == channel, channels.c.watermark_seqno == bounds.first_seqno - 1)
            .values(**_watermark_values(reached), updated_at=NOW)
        )
        if moved.rowcount != 1:
            raise PositionError(
                f"{where}: the watermark is {mark.watermark.seqno}, expected {bounds.first_seqno - 1}; it was "
                "moved by somebody else"
            )
        if settle is not None:
            settle(connection)
        connection.execute(
            update(windows)
            .where(windows.c.channel == channel, windows.c.window_id == window_id)
            .values(state=FINISHED, finished_at=NOW, stop_at=None, summary=summary)
        )
        return reached


def _check_lanes(window: Window, lanes: tuple[LanePosition, ...], where: str) -> None:
    assert window.lanes is not None, "a window with a digest has lanes"
    bounds = window.bounds
    expected = range(window.lanes + 1)
    if [lane.lane for lane in lanes] != list(expected):
        raise PositionError(f"{where}: positions of lanes {[lane.lane for lane in lanes]}, expected {list(expected)}")
    for lane in lanes:
        if (lane.window_id, lane.digest) != (bounds.window_id, window.plan_digest):
            raise PositionError(f"{where}: lane {lane.lane} belongs to window {lane.window_id}, plan {lane.digest}")
    behind = [f"lane {lane.lane} at {lane.seqno}" for lane in lanes if lane.seqno != bounds.last_seqno]
    if behind:
        raise PositionError(
            f"{where}: {', '.join(behind)}; expected every lane at {bounds.last_seqno}; run their apply tasks again"
        )
    written = sum((lane.rows for lane in lanes), RowCounts())
    if written != window.totals:
        raise PositionError(
            f"{where}: the accounts do not close: the plan writes {window.totals}, the target counted {written} "
            "(invariant 5)"
        )


def _required_window(connection: Connection, channel: str, window_id: str, *, for_update: bool = False) -> Window:
    window = read_window(connection, channel, window_id, for_update=for_update)
    if window is None:
        raise PositionError(f"channel {channel}: no window {window_id} on this target; run the extract step first")
    return window


def _window(row: Row[Any]) -> Window:
    bounds = WindowBounds(
        channel=row.channel,
        window_id=row.window_id,
        source_identity=row.source_identity,
        first_seqno=row.first_seqno,
        last_seqno=row.last_seqno,
        end=LogPosition(row.end_file, row.end_offset),
        end_gtid_set=row.end_gtid_set,
        end_time=row.end_time,
        end_fingerprint=row.end_fingerprint,
        work=row.work,
    )
    totals = None if row.totals is None else RowCounts(**json.loads(row.totals))
    return Window(bounds, row.number, row.state, row.lanes, row.plan_digest, totals, row.stop_at, row.summary)


def _totals_text(rows: RowCounts) -> str:
    return json.dumps({"inserts": rows.inserts, "updates": rows.updates, "deletes": rows.deletes})


def _bounds_values(bounds: WindowBounds) -> dict[str, object]:
    return {
        "channel": bounds.channel,
        "window_id": bounds.window_id,
        "source_identity": bounds.source_identity,
        "first_seqno": bounds.first_seqno,
        "last_seqno": bounds.last_seqno,
        "end_file": bounds.end.file,
        "end_offset": bounds.end.offset,
        "end_gtid_set": bounds.end_gtid_set,
        "end_time": bounds.end_time,
        "end_fingerprint": bounds.end_fingerprint,
        "work": bounds.work,
    }


def _watermark_values(mark: Watermark) -> dict[str, object]:
    return {
        "watermark_seqno": mark.seqno,
        "source_file": mark.source.file,
        "source_offset": mark.source.offset,
        "gtid_set": mark.gtid_set,
        "source_time": mark.source_time,
        "fingerprint": mark.fingerprint,
    }
