"""The task of a continuous DAG: windows back to back, until the run's time is up."""

from __future__ import annotations

import logging
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binlane.choices import PlanEngine
from binlane.errors import BinlaneError
from binlane.model import plural
from binlane.orchestration.airflow.notify import measure, measure_health, tell_asset
from binlane.orchestration.airflow.releases import AirflowSkipException
from binlane.orchestration.airflow.run_outcome import failed_run, health_after
from binlane.orchestration.airflow.task_errors import note, resolve_connection
from binlane.orchestration.announcing.announce import announce, announce_missed
from binlane.orchestration.commands.channel import load
from binlane.orchestration.commands.windows_in_turn import LONGEST_PAUSE, FollowRequest, Pace, windows_in_turn
from binlane.orchestration.request import NOW, WindowRequest

if TYPE_CHECKING:
    import threading

    from airflow.sdk import Context

    from binlane.config import ChannelConfig
    from binlane.orchestration.run_forms import RunForm

log = logging.getLogger(__name__)
_PAUSE: float = 1.0
"""Seconds between the end of a window and the next look at the source."""


def follow_source(
    channel: ChannelConfig, form: RunForm, context: Context, interrupted: threading.Event
) -> dict[str, Any]:
    """Take windows for ``window.follow_seconds``, or until ``interrupted`` is set; the last window's summary.

    Each window sends its metrics, and what ``[announce]`` names; the run sends one asset event, of its last watermark.
    Raises AirflowSkipException if the channel was stopped all the time, and the errors of ``windows_in_turn``.
    """

    def applied(of: ChannelConfig, done: dict[str, Any]) -> None:
        measure(of.name, done, time.time())
        announce(of, done)

    following = FollowRequest(
        load=partial(load, channel.name, Path(channel.file).parent, resolve_connection),
        request=lambda: WindowRequest(NOW, None, False, form.lanes, form.block_size),
        # a window of seconds is over before a spark-submit has begun
        engine=PlanEngine.LOCAL,
        say=log.info,
        applied=applied,
        missed=announce_missed,
        resume="the channel to be resumed",
    )
    try:
        found = windows_in_turn(following, Pace(_PAUSE, channel.window.follow_seconds), interrupted)
    except BinlaneError:
        failed = failed_run(context["dag_run"].run_id, [context["ti"].task_id])
        measure_health(health_after(channel, resolve_connection, failed))
        # the next run begins as soon as this one has failed
        interrupted.wait(LONGEST_PAUSE)
        raise
    health = health_after(channel, resolve_connection, None)
    measure_health(health)
    if found.last is None:
        if found.is_stopped:
            note(context, "skipped: the channel is stopped", health.summary)
            raise AirflowSkipException("the channel is stopped")
        # Airflow sends an event for each outlet of a task that has succeeded
        context["task"].outlets.clear()
        note(context, "nothing to apply", health.summary)
        return {"windows": 0}
    tell_asset(channel.name, found.last, context)
    note(context, f"{plural(found.windows, 'window')}; the last: {found.last['note']}", health.summary)
    return {"windows": found.windows, **found.last}
