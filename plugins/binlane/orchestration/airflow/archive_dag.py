"""The DAG that indexes an archive: one task, behind the uploader of the log, or by the schedule of ``[archive]``."""

from __future__ import annotations

import datetime as dt
import logging
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import DAG, Asset, get_current_context

from binlane.errors import ConfigError, SourceError
from binlane.orchestration.airflow.dag_shape import RETRIES
from binlane.orchestration.airflow.releases import cron_timetable
from binlane.orchestration.airflow.task_errors import airflow_errors, form_values, note
from binlane.orchestration.airflow.task_watch import StepOperator

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.orchestration.airflow.releases import CronDataIntervalTimetable

TASK: Final = "index_archive"
_DOC: Final = (
    "Writes beside each closed file of the archive what it holds. Files with an index are not read again; it fails "
    "where a file has a fault, behind indexing all the others."
)

log = logging.getLogger(__name__)


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


def _task(channel: ChannelConfig) -> StepOperator:
    uri = channel.archive.uri
    assert uri is not None

    def index_archive() -> dict[str, Any]:
        from binlane.orchestration.commands.inspection.archive_index import index_new

        context = get_current_context()
        with airflow_errors(channel.name):
            form_values(context)
            text, faults = index_new(uri)
            log.info("%s", text)
            note(context, text)
            if faults:
                raise SourceError("\n".join(faults))
        return {"note": text}

    return StepOperator(task_id=TASK, python_callable=index_archive, retries=RETRIES, doc_md=_DOC)
