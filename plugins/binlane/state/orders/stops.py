"""Stopping a channel: the order to its lanes, and the move of the watermark to the seqno where they stop.

The order is written with all position rows locked, and every block reads it after its compare-and-set: the highest
position at that moment is where all lanes stop (docs/invariants.md, 11).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, Update, func, select, text, update

from binlane.errors import PositionError
from binlane.lazy_dataclass import dataclass
from binlane.state.channels import Watermark, read_channel
from binlane.state.orders.giving import giving_order
from binlane.state.orders.orders import NOW as STOP_NOW
from binlane.state.positions import lane_positions
from binlane.state.tables import NOW, UTC_NOW, channels, windows
from binlane.state.windows import Window, check_lanes, move_watermark, read_open_window, required_window

if TYPE_CHECKING:
    import datetime as dt


@dataclass(frozen=True, slots=True)
class StopRequest:
    """The state of a stop request."""

    seqno: int
    """The seqno where the lanes will stop; with ``now``, the highest position of any lane."""
    now: bool
    window: Window | None
    """The open window; None: the channel is at its watermark."""
    is_reached: bool
    """Whether every lane has stopped already."""


def request_stop(
    engine: Engine,
    channel: str,
    *,
    by: str = "somebody",
    now: bool = False,
    at: int | None = None,
    window_id: str | None = None,
) -> StopRequest:
    """Ask the channel to stop until it is resumed. By default all lanes stop at the highest position of any lane.

    ``now``: each lane stops at its next block boundary. ``at``: all lanes stop at this seqno of the open window.
    ``window_id``: only inside this window. Raises PositionError if ``at`` is after the window or before a position, if
    that window is not open, or if there is no such channel; and as ``giving_order``.
    """
    with giving_order(engine, channel) as connection:
        state = read_channel(connection, channel, for_update=True)
        window = read_open_window(connection, channel, for_update=True)
        if window_id is not None and (window is None or window.bounds.window_id != window_id):
            raise PositionError(
                f"channel {channel}: expected window {window_id} to be open, to stop inside it, found "
                f"{'none' if window is None else window.bounds.window_id}; nothing was stopped. To stop the channel: "
                f"`binlane stop {channel}`"
            )
        seqno, is_reached = state.watermark.seqno, True
        if window is not None:
            lowest, reached = _marks(connection, channel, window)
            seqno = reached if at is None else at
            _check_place(channel, window, reached, seqno)
            is_reached = lowest >= seqno
            connection.execute(_of(window).values(stop_at=STOP_NOW if now else seqno))
        elif at is not None and at != seqno:
            raise PositionError(
                f"channel {channel}: no window is open and the watermark is at seqno {seqno}, so there is no seqno "
                f"{at} to stop at; end the next window with --until instead"
            )
        how = "now" if now else f"at seqno {seqno}"
        said = func.concat(f"{how}, by {by} at ", text(f"CAST({UTC_NOW} AS DATETIME)"), " UTC")
        connection.execute(
            update(channels).where(channels.c.channel == channel).values(stopped=said, stopped_at=NOW, updated_at=NOW)
        )
        return StopRequest(seqno, now, window, is_reached)


def _marks(connection: Connection, channel: str, window: Window) -> tuple[int, int]:
    """The lowest and the highest position of the window; a running DDL counts as reached."""
    lanes = lane_positions(connection, channel, for_update=True)
    if window.plan_digest is None or not lanes:
        return window.reached, window.reached
    return min(lane.seqno for lane in lanes), max(max(lane.seqno, lane.begun) for lane in lanes)


def _check_place(channel: str, window: Window, reached: int, seqno: int) -> None:
    last = window.bounds.last_seqno
    if not reached <= seqno <= last:
        raise PositionError(
            f"channel {channel}: cannot stop at seqno {seqno}: a lane stands at {reached} already, and the open window "
            f"ends at {last}; expected a seqno from {reached} to {last}"
        )


def clear_stop(engine: Engine, channel: str, given_before: dt.datetime | None = None) -> None:
    """Cancel a stop request, so that the next run resumes.

    ``given_before``: only a request older than this moment, by the clock of this machine. It and the target's clock
    may differ, so ages are compared; a request of the same moment stays. Raises as ``giving_order``.
    """
    with giving_order(engine, channel) as connection:
        read_channel(connection, channel, for_update=True)
        if given_before is not None:
            age = text(f"TIMESTAMPDIFF(MICROSECOND, stopped_at, {UTC_NOW})")
            stop_age = connection.execute(select(age).where(channels.c.channel == channel)).scalar_one()
            # read afterwards: a slow answer keeps a stop rather than cancelling a younger one
            order_age = time.time() - given_before.timestamp()
            if stop_age is not None and stop_age / 1e6 <= order_age:
                return
        window = read_open_window(connection, channel, for_update=True)
        if window is not None:
            connection.execute(_of(window).values(stop_at=None))
        connection.execute(
            update(channels).where(channels.c.channel == channel).values(stopped=None, stopped_at=None, updated_at=NOW)
        )


def settle_stop(engine: Engine, window: Window, mark: Watermark) -> Watermark:
    """Move the watermark to the seqno of the stop, inside the open window. Repeated: a no-op.

    Raises PositionError if a lane is not at that seqno, or if the channel's watermark is not the window's.
    """
    bounds = window.bounds
    with engine.begin() as connection:
        channel = read_channel(connection, bounds.channel, for_update=True)
        current = required_window(connection, bounds.channel, bounds.window_id, for_update=True)
        if current.is_finished or current.reached >= mark.seqno:
            return channel.watermark
        where = f"channel {bounds.channel}, window {bounds.window_id}"
        check_lanes(current, lane_positions(connection, bounds.channel, for_update=True), mark.seqno, where)
        move_watermark(connection, current, channel.watermark, mark)
        return mark


def _of(window: Window) -> Update:
    return update(windows).where(
        windows.c.channel == window.bounds.channel, windows.c.window_id == window.bounds.window_id
    )
