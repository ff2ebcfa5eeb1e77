"""Reads a channel's facts and gives its health. Whatever cannot be read is an answer, too, and never a good one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from binlane.apply.refusals import lacks_state
from binlane.apply.target_state import SchemaChecks, require_recorded, target_state
from binlane.config import DeclaredChannel, load_channel
from binlane.config.rules_digest import rules_digest
from binlane.connections import resolve_endpoints
from binlane.errors import BinlaneError, ConfigError, PositionError, TargetError, TargetIdentityError
from binlane.health.airflow_runs import AirflowRuns
from binlane.health.channel_facts import Limits, facts_of
from binlane.health.first_copy import beginning_copy, read_first_copy
from binlane.health.health import Health, State, health_of, unknown
from binlane.lazy_dataclass import dataclass
from binlane.state.records.history import read_snapshot

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.connections import Endpoint, Resolver
    from binlane.state.records.history import Snapshot

TARGET_SECONDS: Final = 5
"""A target that does not answer must not hold whoever looks for longer."""
LAST_WINDOWS: Final = 2
"""The open window and the last finished one."""
_THREADS: Final = 16
"""Targets that are asked at the same time."""

_BEGIN: Final = (
    "`binlane bootstrap {0}` copies the databases; `binlane init {0}` begins at a backup that the target has."
)

_ENDS: Final = "The channel begins when the copy ends."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Look:
    """A channel as somebody saw it."""

    health: Health
    snapshot: Snapshot | None
    """What it was computed from; None if the target could not be read."""
    channel: ChannelConfig | None = None
    """None if its file is wrong."""
    runs: AirflowRuns | None = None
    """If Airflow was asked."""


def look_at(
    channel: ChannelConfig,
    resolve: Resolver,
    *,
    runs: AirflowRuns | None = None,
    limits: Limits | None = None,
    last_windows: int = LAST_WINDOWS,
    checks: SchemaChecks | None = None,
) -> Look:
    """An error is an answer, too. ``runs``: if Airflow is asked. ``limits``: instead of the channel's own.
    ``checks``: as for ``target_state``."""
    try:
        target = resolve_endpoints(channel, resolve).target
        with target_state(target, timeout=TARGET_SECONDS, checks=checks) as engine:
            try:
                snapshot = read_snapshot(engine, channel.name, last_windows=last_windows, rules=rules_digest(channel))
            except PositionError as exc:
                return Look(_without_channel(engine, channel.name, target, str(exc)), None, channel, runs)
        health = health_of(facts_of(snapshot, channel, runs), Limits.of(channel) if limits is None else limits)
    except Exception as exc:
        if isinstance(exc, TargetError) and lacks_state(exc):
            lost = " If the schema was lost: docs/recovery.md, The schema binlane is lost."
            problem = "the target has no schema binlane"
            return Look(_not_begun(channel.name, target, problem, lost), None, channel, runs)
        if not isinstance(exc, BinlaneError):
            log.error("channel %s cannot be read", channel.name, exc_info=exc)
        return Look(unknown(channel.name, error=exc), None, channel, runs)
    return Look(health, snapshot, channel, runs)


def _without_channel(engine: Any, name: str, target: Endpoint, problem: str) -> Health:
    """Of a channel that is not on the target: its first copy may be."""
    with engine.connect() as connection:
        copy = read_first_copy(connection, name)
        beginning = None if copy is not None else beginning_copy(connection, name)
    if beginning is not None:
        return unknown(name, beginning, State.NEW, _ENDS)
    if copy is None:
        return _not_begun(name, target, problem)
    step = f"`binlane bootstrap {name}` with the same options continues it."
    if copy.connection is not None:
        step = _ENDS
    return unknown(name, copy.told, State.NEW, step)


def _not_begun(name: str, target: Endpoint, problem: str, lost: str = "") -> Health:
    """Of a channel of which the server has nothing: it is new, unless a run has recorded another server."""
    try:
        require_recorded(target, timeout=TARGET_SECONDS)
    except TargetIdentityError as exc:
        return unknown(name, problem, error=exc)
    return unknown(name, problem, State.NEW, _BEGIN.format(name) + lost)


def look_at_all(
    declared: Sequence[DeclaredChannel],
    resolve: Resolver,
    *,
    runs_of: Callable[[str], AirflowRuns | None] = lambda _: None,
    last_windows: int = LAST_WINDOWS,
) -> list[Look]:
    """Every channel, several at the same time; no error of one channel costs the answer about the others.

    ``runs_of``: Airflow's runs of a channel; an error of Airflow's own database is raised, for it is no channel's.
    """

    checks = SchemaChecks()

    def look(one: DeclaredChannel) -> Look:
        runs = runs_of(one.name)
        try:
            channel = load_channel(one)
        except ConfigError as exc:
            return Look(unknown(one.name, error=exc), None, runs=runs)
        return look_at(channel, resolve, runs=runs, last_windows=last_windows, checks=checks)

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(look, declared))
