"""The DAG that indexes an archive: one task, behind the uploader of the log, or by the schedule of ``[archive]``."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import DAG, Asset

from binlane.choices import PlanEngine
from binlane.errors import ConfigError, SourceError
from binlane.orchestration.airflow.dag_shape import RETRIES
from binlane.orchestration.airflow.releases import cron_timetable
from binlane.orchestration.airflow.spark_operator import SparkJob, connect_url
from binlane.orchestration.airflow.task_errors import airflow_errors, form_values, note
from binlane.orchestration.airflow.task_watch import WatchedTask
from binlane.orchestration.plan_job.spark_submit import INDEX_JOB, spark_properties
from binlane.orchestration.plan_job.window_engine import engine_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow.sdk import Context

    from binlane.config import ChannelConfig
    from binlane.orchestration.airflow.releases import CronDataIntervalTimetable
    from binlane.restore.indexing import Made

TASK: Final = "index_archive"
_DOC: Final = (
    "Writes beside each closed file of the archive what it holds. Files with an index are not read again; it fails "
    "where a file has a fault, behind indexing all the others."
)


def index_dag_id(channel: str) -> str:
    """The id of the DAG that indexes a channel's archive."""
    return f"index_{channel}"


def build_index_dag(channel: ChannelConfig) -> DAG:
    """The DAG of a channel with ``archive.uri``. Raises ConfigError if Airflow cannot read its schedule or asset."""
    with DAG(
        index_dag_id(channel.name),
        schedule=_schedule(channel),
        start_date=dt.datetime.combine(channel.window.start_date, dt.time(), dt.UTC),
        catchup=False,
        max_active_runs=1,
        default_args={"owner": channel.owner, "retry_delay": dt.timedelta(seconds=10)},
        owner_links={} if channel.owner_link is None else {channel.owner: channel.owner_link},
        tags=sorted({"binlane", "archive", *channel.tags}),
        description=f"Indexes the archive of channel {channel.name}",
        doc_md=_doc(channel),
        auto_register=False,
    ) as dag:
        _task(channel)
    return dag


def _schedule(channel: ChannelConfig) -> CronDataIntervalTimetable | list[Asset] | None:
    asked = channel.archive
    if asked.asset is not None:
        try:
            return [Asset(uri=asked.asset)]
        # Airflow's checks of URIs raise errors of several classes
        except Exception as exc:
            raise ConfigError(
                f"{channel.file}: archive.asset: expected the URI of an asset, found {asked.asset!r}: {exc}"
            ) from exc
    return None if asked.schedule is None else cron_timetable(asked.schedule, channel, "archive.schedule")


def _doc(channel: ChannelConfig) -> str:
    return f"""### Index of the archive of {channel.name}
Writes into `binlane_index` beside the files of `{channel.archive.uri}` what each of them holds, so that restores, and
searches of the log, read fewer of them. `docs/restore.md` has the rest.

Channel file: `{channel.file}`.
"""


def _task(channel: ChannelConfig) -> IndexOperator:
    return IndexOperator(
        task_id=TASK,
        channel=channel,
        application=str(INDEX_JOB),
        conn_id=channel.spark.connection,
        name=f"binlane index {channel.name}",
        properties=spark_properties(channel.spark.conf),
        retries=RETRIES,
        doc_md=_DOC,
    )


class _IndexJob(SparkJob):
    """Indexes the channel's archive: by the engine of its plan jobs, and on Spark as the connection's type says."""

    def execute(self, context: Context) -> Any:
        """Run the job and wait for its end."""
        from binlane.orchestration.commands.inspection.archive_index import told_of

        uri = self._channel.archive.uri
        assert uri is not None
        with airflow_errors(self._channel.name):
            form_values(context)
            text, faults = told_of(uri, self._made(context, uri))
            self.log.info("%s", text)
            note(context, text)
            if faults:
                raise SourceError("\n".join(faults))
        return {"note": text}

    def _made(self, context: Context, uri: str) -> Sequence[Made]:
        # imported only if needed: a DAG file is parsed in every task process
        from binlane.orchestration.plan_job.index_engines import index_arguments, index_on_server
        from binlane.restore.indexing import made_elsewhere, made_in, make_index, unindexed

        before = unindexed(uri)
        segments = -(-sum(before.values()) // self._channel.segments.bytes)
        if engine_for(self._channel, self._channel.spark.engine, segments).word != PlanEngine.SPARK or not before:
            # an engine of the site's own is one of plans
            return [*make_index(uri)]
        if (remote := connect_url(str(self._conn_id))) is not None:
            return index_on_server(uri, remote)
        self.submit(context, index_arguments(uri), self._given)
        told = filter(None, map(made_in, self._output.lines))
        return [*made_elsewhere(uri, before, told)]


class IndexOperator(WatchedTask, _IndexJob):
    """``properties``: Spark properties, which may be secrets."""
