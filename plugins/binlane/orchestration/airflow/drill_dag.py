"""The DAG of a channel's drills: one task, by the schedule of ``[drill]``."""

from __future__ import annotations

import datetime as dt
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import DAG, Param, get_current_context

from binlane.errors import DriftError
from binlane.orchestration.airflow.dag_shape import RETRIES
from binlane.orchestration.airflow.releases import cron_timetable
from binlane.orchestration.airflow.task_errors import airflow_errors, form_values, note, resolve_connection
from binlane.orchestration.airflow.task_watch import StepOperator

if TYPE_CHECKING:
    from binlane.config import ChannelConfig

TASK: Final = "drill_restores"
_DOC: Final = (
    "Restores random databases to random moments, compares them with the live copy, and removes them. It fails where "
    "something differs, or could not be restored; a try that was killed is cleaned up by the next one."
)

log = logging.getLogger(__name__)


def drill_dag_id(channel: str) -> str:
    """The id of the DAG of a channel's drills."""
    return f"drill_{channel}"


def build_drill_dag(channel: ChannelConfig) -> DAG:
    """The DAG of a channel with ``drill.base``. Raises ConfigError if Airflow cannot read its schedule."""
    cron = channel.drill.schedule
    with DAG(
        drill_dag_id(channel.name),
        schedule=None if cron is None else cron_timetable(cron, channel, "drill.schedule"),
        start_date=dt.datetime.combine(channel.window.start_date, dt.time(), dt.UTC),
        catchup=False,
        max_active_runs=1,
        default_args={"owner": channel.owner, "retry_delay": dt.timedelta(seconds=10)},
        owner_links={} if channel.owner_link is None else {channel.owner: channel.owner_link},
        tags=sorted({"binlane", "drill", *channel.tags}),
        description=f"Proves that databases of channel {channel.name} can be restored",
        doc_md=_doc(channel),
        params={
            "tenants": Param(
                channel.drill.tenants, type="integer", minimum=1, title="Databases",
                description="How many random databases are restored.",
            ),
            "seed": Param(
                None, type=["null", "integer"], minimum=0, title="Seed",
                description="The random choice of an earlier drill again.",
            ),
        },
        auto_register=False,
    ) as dag:  # fmt: skip
        _task(channel)
    return dag


def _doc(channel: ChannelConfig) -> str:
    return f"""### Drills of {channel.name}
Restores random databases from `{channel.drill.base}` and the log `{channel.drill.log}` to random moments, each under a
name of its own, brings them to the watermark, compares every row and definition with the live copy on
`{channel.target.connection}`, and removes them. `docs/restore.md` has the rest.

Channel file: `{channel.file}`.
"""


def _task(channel: ChannelConfig) -> StepOperator:
    def drill_restores() -> dict[str, Any]:
        from binlane.orchestration.commands.copies import drill
        from binlane.orchestration.terminal import Terminal, as_text

        context = get_current_context()
        with airflow_errors(channel.name):
            form = form_values(context)
            request = drill.DrillRequest(form["tenants"], seed=form["seed"])
            view, is_good = drill.drill(
                channel.name, request, Path(channel.file).parent, Terminal(), as_json=False, resolve=resolve_connection
            )
            text = as_text(view)
            if not is_good:
                raise DriftError(text)
        log.info("%s", text)
        note(context, text)
        return {"note": text}

    return StepOperator(task_id=TASK, python_callable=drill_restores, retries=RETRIES, doc_md=_DOC)
