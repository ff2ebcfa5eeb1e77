"""Names that Airflow 3.1 has in other modules or does not have; docs/install.md has the table of tried releases."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from airflow import __version__
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from binlane.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from binlane.config import ChannelConfig

RELEASE: Final = tuple(int(part) for part in __version__.split(".")[:2])

if RELEASE >= (3, 2):
    from airflow.sdk import CronDataIntervalTimetable
    from airflow.sdk.definitions.callback import SyncCallback
    from airflow.sdk.exceptions import (
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
    )
    from airflow.sdk.observability.stats import Stats

    BACKOFF: Final = 2.0
    """The factor by which the waits between a lane's tries grow."""
else:
    from airflow.exceptions import (  # type: ignore[no-redef,attr-defined]
        AirflowException,
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSkipException,
    )
    from airflow.stats import Stats
    from airflow.timetables.interval import CronDataIntervalTimetable  # type: ignore[assignment]

    BACKOFF = True  # type: ignore[misc]  # the factor is 2

__all__ = [
    "BACKOFF",
    "AirflowException",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSkipException",
    "CronDataIntervalTimetable",
    "Stats",
    "cron_timetable",
    "deadline_alert",
]


def cron_timetable(cron: str, channel: ChannelConfig, name: str) -> CronDataIntervalTimetable:
    """Intervals that end as a cron expression says, in the channel's time zone. Raises ConfigError, with the key's
    ``name``, for an expression that Airflow cannot read."""
    try:
        timetable = CronDataIntervalTimetable(cron, timezone=channel.window.timezone)
        timetable.validate()
    except Exception as exc:  # Airflow's error classes are not public
        raise ConfigError(f"{channel.file}: {name}: expected a cron expression: {exc}") from exc
    return timetable


def deadline_alert(file: str, seconds: int, callback: str, arguments: Mapping[str, Any]) -> DeadlineAlert:
    """An alert of the scheduler for a run that has not ended ``seconds`` after it was queued.

    Raises ConfigError, with the channel's ``file``, on releases where only the triggerer can run callbacks.
    """
    if RELEASE < (3, 2):
        raise ConfigError(
            f"{file}: alert.lag_seconds: expected Airflow 3.2 or newer, found {__version__}; set the key to 0, or "
            "upgrade Airflow"
        )
    named = {"name": "lag"} if RELEASE >= (3, 3) else {}
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=dt.timedelta(seconds=seconds),
        callback=SyncCallback(callback, dict(arguments)),
        **named,
    )
