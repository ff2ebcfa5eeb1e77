"""Sends each watermark to Airflow: an asset event, which other DAGs can wait for, and metrics.

Each metric has two names: one with the channel as a tag, and one that ends in the channel's name, for StatsD without
tags. A metric that cannot be sent is a warning in the task's log: it fails no task, whose work is done by then.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import Asset

from binlane.orchestration.airflow.releases import Stats
from binlane.orchestration.announcing.announce import asset_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow.sdk import Context

    from binlane.health.health import Health

EXTRA: Final = ("seqno", "gtid", "time", "window")
"""Keys of an asset event's ``extra``."""
GAUGES: Final = ("lag_seconds", "reduction_ratio", "watermark_seqno", "window_seconds")
COUNTERS: Final = {"transactions": "transactions", "rows": "rows", "row_changes": "read"}
"""Key of the summary by metric."""
LAG_ALERTS: Final = "lag_alerts"

log = logging.getLogger(__name__)


def asset_of(channel: str) -> Asset:
    """The asset that stands for the target's data up to the channel's watermark."""
    return Asset(name=asset_name(channel), uri=f"binlane://watermark/{channel}", group="binlane")


def announce(channel: str, summary: Mapping[str, Any], context: Context) -> None:
    """Send event and metrics of a watermark that has just moved; ``summary`` is the result of ``steps.advance``."""
    tell_asset(channel, summary, context)
    start = context["dag_run"].start_date
    measure(channel, summary, time.time(), None if start is None else start.timestamp())


def tell_asset(channel: str, summary: Mapping[str, Any], context: Context) -> None:
    """Send the asset event of a watermark, of a window or of the first copy; the latter has no window."""
    context["outlet_events"][asset_of(channel)].extra = {name: summary.get(name) for name in EXTRA}


def measure(channel: str, summary: Mapping[str, Any], now: float, start: float | None = None) -> None:
    """Send the window's metrics. ``now``, and ``start`` of the run: seconds since the epoch."""
    source_time = summary.get("time")
    values = {
        "lag_seconds": max(0.0, now - source_time) if source_time else None,
        "reduction_ratio": summary["read"] / summary["rows"] if summary.get("rows") else None,
        "watermark_seqno": summary.get("seqno"),
        "window_seconds": None if start is None else max(0.0, now - start),
    }
    for name in GAUGES:
        if (value := values[name]) is not None:
            _gauge(channel, name, value)
    for name, key in COUNTERS.items():
        if (count := summary.get(key)) is not None:
            _count(channel, name, count)


def measure_health(health: Health) -> None:
    """Send a channel's severity, and what it was computed from if that could be read."""
    _gauge(health.channel, "health", health.severity.value)
    if health.facts is not None:
        _gauge(health.channel, "drifted", health.facts.drifted)
        _gauge(health.channel, "unverified_seconds", health.facts.unverified)


def lagging(channel: str, lag_seconds: int, context: Mapping[str, Any]) -> None:
    """The default callback of lag alerts; ``context`` has ``dag_run`` and ``deadline``."""
    run = context["dag_run"]
    log.error(
        "channel %s: run %s was queued at %s and had not succeeded %s seconds later: the target is falling "
        "behind; `binlane status %s` shows the positions of its lanes",
        *(channel, run["dag_run_id"], run["queued_at"], lag_seconds, channel),
    )
    _count(channel, LAG_ALERTS, 1)


def _gauge(channel: str, name: str, value: float) -> None:
    _send(Stats.gauge, channel, name, value)


def _count(channel: str, name: str, count: int) -> None:
    _send(Stats.incr, channel, name, count)


def _send(send: Callable[..., None], channel: str, name: str, value: float) -> None:
    try:
        send(f"binlane.{name}", value, tags={"channel": channel})
        # a channel's name has only characters that StatsD allows
        send(f"binlane.{name}.{channel}", value)
    # whatever a site has configured as its metrics' client may raise
    except Exception as exc:
        log.warning("the metric binlane.%s was not sent: %s: %s", name, type(exc).__name__, exc)
