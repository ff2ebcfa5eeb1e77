"""Reads a channel's facts and gives its health. Whatever cannot be read is an answer, too, and never a good one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from binlane.apply.target_state import target_state
from binlane.connections import resolve_endpoints
from binlane.errors import BinlaneError, PositionError
from binlane.health.facts import LastRun, Limits, facts_of
from binlane.health.health import Health, State, health_of, unknown
from binlane.state.records.history import read_snapshot

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.connections import Resolver
    from binlane.state.records.history import Snapshot

TARGET_SECONDS: Final = 5
"""A target that does not answer must not hold whoever looks for longer."""
_WINDOWS: Final = 2
"""The open window and the last finished one."""


@dataclass(frozen=True, slots=True)
class Look:
    """A channel as somebody saw it."""

    health: Health
    snapshot: Snapshot | None
    """What it was computed from; None if the target could not be read."""


def look_at(
    channel: ChannelConfig,
    resolve: Resolver,
    *,
    run: LastRun | None = None,
    limits: Limits | None = None,
    last_windows: int = _WINDOWS,
) -> Look:
    """``run``: Airflow's last run, if Airflow is asked. ``limits``: instead of the channel's own."""
    try:
        target = resolve_endpoints(channel, resolve).target
        with target_state(target, timeout=TARGET_SECONDS) as engine:
            snapshot = read_snapshot(engine, channel.name, last_windows=last_windows)
    except PositionError as exc:
        return Look(unknown(channel.name, str(exc), State.NEW), None)
    except BinlaneError as exc:
        return Look(unknown(channel.name, f"{type(exc).__name__}: {exc}"), None)
    health = health_of(facts_of(snapshot, channel, run), Limits.of(channel) if limits is None else limits)
    return Look(health, snapshot)
