"""The DAG of a channel's first copy: one task, no schedule; its form has the options of ``binlane bootstrap``."""

from __future__ import annotations

import datetime as dt
import logging
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import DAG, Param, get_current_context

from binlane.orchestration.airflow.dag_shape import RETRIES, bootstrap_dag_id, dag_id
from binlane.orchestration.airflow.notify import asset_of, tell_asset
from binlane.orchestration.airflow.task_errors import airflow_errors, author_of, endpoints_of, form_values, note
from binlane.orchestration.airflow.task_watch import StepOperator
from binlane.orchestration.run_forms import BootstrapForm

if TYPE_CHECKING:
    from airflow.sdk import Context

    from binlane.bootstrap.first_copy import Options
    from binlane.config import ChannelConfig

TASK: Final = "copy_databases"
_DOC: Final = (
    "Copies the databases in one snapshot of the source and creates the channel at the snapshot's place in the "
    "log. A retry, or a run after the task was cleared, keeps the finished tables that the source's log has not "
    "changed since."
)

log = logging.getLogger(__name__)


def build_bootstrap_dag(channel: ChannelConfig) -> DAG:
    """The DAG of the first copy of a channel that reads a live source."""
    with DAG(
        bootstrap_dag_id(channel.name),
        schedule=None,
        catchup=False,
        max_active_runs=1,
        # not paused: it runs only when triggered, and then at once
        is_paused_upon_creation=False,
        default_args={"owner": channel.owner, "retry_delay": dt.timedelta(seconds=10)},
        owner_links={} if channel.owner_link is None else {channel.owner: channel.owner_link},
        tags=sorted({"binlane", "bootstrap", *channel.tags}),
        description=f"First copy of channel {channel.name}, triggered by hand, once",
        doc_md=_doc(channel),
        params={name: Param(**values) for name, values in BootstrapForm.params(channel).items()},
        auto_register=False,
    ) as dag:
        _task(channel)
    return dag


def _doc(channel: ChannelConfig) -> str:
    return f"""### The first copy of {channel.name}
Copies databases from `{channel.source.connection}` to `{channel.target.connection}` in one snapshot, and creates the
channel at exactly that place of the log: `{dag_id(channel.name)}` continues from there. It is triggered by hand, once;
a channel that has a watermark already, and databases of the target that are not empty, are refused before the first
write.

Running it again after a failure is safe: finished tables that the source has not changed since are kept.
`docs/bootstrap.md` describes its effect on the source and the objects that it copies.

Channel file: `{channel.file}`.
"""


def _task(channel: ChannelConfig) -> StepOperator:
    def copy_databases() -> dict[str, Any]:
        from binlane.orchestration.commands.copies import bootstrap

        context = get_current_context()
        with airflow_errors(channel.name):
            outcome = bootstrap.first_copy(
                channel, endpoints_of(channel), options_of(context), bootstrap.LogLines(), by=author_of(context)
            )
        text = bootstrap.outcome_text(outcome)
        log.info("%s", text)
        note(context, text)
        summary = bootstrap.summary_of(outcome)
        tell_asset(channel.name, summary, context)
        return summary

    return StepOperator(
        task_id=TASK,
        python_callable=copy_databases,
        retries=RETRIES,
        doc_md=_DOC,
        outlets=[asset_of(channel.name)],
    )


def options_of(context: Context) -> Options:
    """The options in the run's form. All tries of a task count as one order, so --replace drops databases once."""
    from binlane.bootstrap.first_copy import Options
    from binlane.bootstrap.throttle import Limits
    from binlane.orchestration.commands.copies.bootstrap import patterns_of

    form, run = BootstrapForm.of(form_values(context)), context["dag_run"]
    return Options(
        databases=patterns_of(form.databases),
        users=form.users,
        replace=form.replace,
        jobs=form.jobs,
        chunk_rows=form.chunk_rows,
        lock_seconds=form.lock_seconds,
        limits=Limits(form.rows_per_second, form.mib_per_second, form.max_threads_running, form.max_source_lag),
        compress=form.compress,
        order=f"{run.dag_id} {run.run_id}",
    )
