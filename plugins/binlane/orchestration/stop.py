"""Stopping a channel at one seqno: the seqno of the stop, the lanes that have not reached it, and the watermark."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from binlane.errors import ConfigError
from binlane.orchestration.extraction.window_reading import start_of
from binlane.orchestration.request import gtid_of, time_of
from binlane.servers.engines import engine_of
from binlane.source.position_at import place_of
from binlane.state.channels import Channel, Watermark
from binlane.state.orders.orders import NOW
from binlane.state.orders.stops import settle_stop
from binlane.state.positions import LanePosition, lane_positions
from binlane.state.window_folders import WindowFolders
from binlane.state.windows import Window, raise_if_stopped
from binlane.work.lookup import find_gtid, last_before, read_manifest

if TYPE_CHECKING:
    from binlane.connections import Endpoints

log = logging.getLogger(__name__)
_DIGITS: Final = 18
"""Of a seqno, at most: Python itself raises an error for a number of thousands."""


def check_stopped(endpoints: Endpoints, state: Channel, window: Window | None) -> None:
    """Raises StopRequestedError if the channel is stopped and all lanes and the watermark are at the stop.

    Otherwise the run applies the lanes up to the stop, then moves the watermark; a window without a plan gets it first.
    """
    if state.stopped is None:
        return
    if window is not None and window.stop_at not in (None, NOW):
        assert window.stop_at is not None
        lanes: tuple[LanePosition, ...] = ()
        # without a plan the positions are those of the window before
        if window.plan_digest is not None:
            with engine_of(endpoints.target).connect() as connection:
                lanes = lane_positions(connection, state.name)
        if window.reached < window.stop_at or any(lane.seqno < window.stop_at for lane in lanes):
            log.info("channel %s: stopping at seqno %d: lanes below it continue to it", state.name, window.stop_at)
            return
    raise_if_stopped(state)


def is_stopped_inside(window: Window) -> bool:
    """Whether the window is to stop at a seqno before its end."""
    stop_at = window.stop_at
    return not window.is_finished and stop_at is not None and NOW < stop_at < window.bounds.last_seqno


def settle(endpoints: Endpoints, window: Window, folders: WindowFolders) -> dict[str, Any]:
    """Move the watermark to the stop inside the window, where all lanes are; the window stays open."""
    stop_at, bounds = window.stop_at, window.bounds
    assert stop_at is not None
    if stop_at > window.reached:
        folder = folders.of(bounds.window_id, bounds.work)
        start = start_of(window.start, bounds.source_identity)
        place = place_of(folder, read_manifest(folder), start, stop_at)
        mark = Watermark(place.seqno, place.position, place.gtid_set, place.time, place.fingerprint)
        settle_stop(engine_of(endpoints.target), window, mark)
    note = (
        f"stopped on request at seqno {stop_at:,}: the target holds everything up to this seqno and nothing "
        f"after it; seqno {stop_at + 1:,} to {bounds.last_seqno:,} of the window are left; to continue: `binlane "
        f"resume {bounds.channel}`, then run the channel again"
    )
    return {"window": bounds.window_id, "seqno": stop_at, "note": note, "is_open": True}


def seqno_of(window: Window, place: str, folders: WindowFolders) -> int:
    """The seqno to stop at. ``place``: a seqno or GTID to stop after, or a time to stop before.

    Raises ConfigError for any other text, PlanError if the place is not in the window.
    """
    if place.isdecimal() and len(place) <= _DIGITS:
        return int(place)
    folder = folders.of(window.bounds.window_id, window.bounds.work)
    if (gtid := gtid_of(place)) is not None:
        return find_gtid(folder, gtid)
    time = time_of(place)
    if time is None:
        raise ConfigError(
            f"stop: expected a seqno, a GTID (0-1-99, uuid:99) or a time such as 2026-01-31T12:00:00Z, got {place!r}"
        )
    return last_before(folder, time.timestamp())
