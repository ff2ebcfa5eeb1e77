"""Stopping a channel: an order to its lanes, and the watermark where they have followed it.

The order is given with the rows of all positions locked, and every block reads it behind its compare-and-set: the
highest position of that moment is where all lanes stand in the end (docs/invariants.md, 11).
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, Update, func, select, text, update

from binlane.errors import PositionError
from binlane.state.channels import Watermark, read_channel
from binlane.state.orders.orders import NOW as STOP_NOW
from binlane.state.positions import lane_positions
from binlane.state.tables import NOW, channels, positions, windows
from binlane.state.windows import Window, check_lanes, move_watermark, read_open_window, required_window


@dataclass(frozen=True, slots=True)
class StopRequest:
    """What a stop has come to."""

    seqno: int
    """Where the lanes will stand; with ``now``, the highest position that any of them had."""
    now: bool
    window: Window | None
    """The open window; without one the channel stands at its watermark."""
    is_reached: bool
    """Every lane stands there already."""


def request_stop(
    engine: Engine, channel: str, *, by: str = "somebody", now: bool = False, at: int | None = None
) -> StopRequest:
    """Ask the channel to stop, until it is resumed. Its lanes end at the highest position that any of them has.

    ``now``: at their next block boundary, wherever they stand. ``at``: all of them at this seqno of the open window.
    Raises PositionError if ``at`` is behind the window or before a position, or if there is no such channel.
    """
    with engine.begin() as connection:
        state = read_channel(connection, channel, for_update=True)
        window = read_open_window(connection, channel, for_update=True)
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
        said = func.concat(f"{how}, by {by} at ", text("UTC_TIMESTAMP()"), " UTC")
        connection.execute(
            update(channels).where(channels.c.channel == channel).values(stopped=said, stopped_at=NOW, updated_at=NOW)
        )
        return StopRequest(seqno, now, window, is_reached)


def _marks(connection: Connection, channel: str, window: Window) -> tuple[int, int]:
    """The lowest and the highest position of the window, a DDL under way counted as reached."""
    lanes = [lane.seqno for lane in lane_positions(connection, channel, for_update=True)]
    if window.plan_digest is None or not lanes:
        return window.reached, window.reached
    begun = connection.execute(select(func.max(positions.c.begun)).where(positions.c.channel == channel)).scalar_one()
    return min(lanes), max(*lanes, int(begun or 0))


def _check_place(channel: str, window: Window, reached: int, seqno: int) -> None:
    last = window.bounds.last_seqno
    if not reached <= seqno <= last:
        raise PositionError(
            f"channel {channel}: cannot stop at seqno {seqno}: a lane stands at {reached} already, and the open window "
            f"ends at {last}; expected a seqno from {reached} to {last}"
        )


def clear_stop(engine: Engine, channel: str, given_before: dt.datetime | None = None) -> None:
    """Take a stop request back, so that the next run goes on.

    ``given_before``: only one that is older than this moment, in UTC by the target's clock.
    """
    with engine.begin() as connection:
        read_channel(connection, channel, for_update=True)
        if given_before is not None:
            moment = given_before.astimezone(dt.UTC).replace(tzinfo=None)
            younger = select(channels.c.channel).where(channels.c.channel == channel, channels.c.stopped_at > moment)
            if connection.execute(younger).first() is not None:
                return
        window = read_open_window(connection, channel, for_update=True)
        if window is not None:
            connection.execute(_of(window).values(stop_at=None))
        connection.execute(
            update(channels).where(channels.c.channel == channel).values(stopped=None, stopped_at=None, updated_at=NOW)
        )


def settle_stop(engine: Engine, window: Window, mark: Watermark) -> Watermark:
    """Move the watermark to where the lanes were asked to stop, inside the open window. Again: a no-op.

    Raises PositionError if a lane does not stand there, or if the watermark is not where the window has it.
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
