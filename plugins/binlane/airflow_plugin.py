"""The Airflow plugin: the replication board in Airflow's UI, under "Replication" (docs/board.md).

Airflow loads this module in every service and task process, so the board itself is imported by its first request.
"""

from __future__ import annotations

import datetime as dt
import re
from math import inf
from typing import TYPE_CHECKING, Any, Final

from airflow.listeners import hookimpl
from airflow.plugins_manager import AirflowPlugin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from airflow.models.dagrun import DagRun
    from sqlalchemy.orm import Session

    from binlane.board.host import Host, TriggeredRun
    from binlane.connections import Endpoint
    from binlane.health.airflow_runs import AirflowRuns, Run

PREFIX: Final = "/binlane"
NOTE_LENGTH: Final = 1_000
"""Characters that Airflow keeps of a run's note."""
_BATCH: Final = 50
"""Runs that are read at once."""
_ACTIVE: Final = ("queued", "running")
_HEALTH: Final = re.compile(r"(?m)^health:.*\n*")
"""The line of the channel's health in a note; the run's last task writes it."""
_LIKE_HEALTH: Final = re.compile(r"(?mi)^(?=[^\w\n]*health\W)")
"""Begins a line of a text that looks like the note's last one: names and values may have line breaks."""


class Board:
    """An ASGI app that is built at its first request."""

    def __init__(self) -> None:
        self._app: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request to the board's app."""
        if self._app is None:
            from binlane.board.api import build_app

            self._app = build_app(_host())
        await self._app(scope, receive, send)


class RunNotes:
    """Writes the texts of a run's tasks into the run's note, because Airflow gives tasks no way to do so."""

    @hookimpl
    def on_dag_run_success(self, dag_run: DagRun) -> None:
        """Called in the scheduler's session; in the api-server's if a person marks the run."""
        _write_note(dag_run)

    @hookimpl
    def on_dag_run_failed(self, dag_run: DagRun) -> None:
        """As for a success: the window may have been applied before a later task failed."""
        _write_note(dag_run)


class BinlanePlugin(AirflowPlugin):
    """One page in the navigation, the app behind it, and the notes of runs."""

    name = "binlane"
    listeners = [RunNotes()]  # noqa: RUF012
    fastapi_apps = [{"app": Board(), "url_prefix": PREFIX, "name": "binlane board"}]  # noqa: RUF012 -- Airflow's shape
    external_views = [  # noqa: RUF012
        {
            "name": "Replication",
            "href": f"{PREFIX}/",
            "destination": "nav",
            "url_route": "replication",
        }
    ]


def _host() -> Host:
    from airflow.api_fastapi.core_api.security import get_user
    from sqlalchemy.exc import OperationalError

    from binlane.board.host import Host

    return Host(
        get_user=get_user,
        user_name=lambda user: str(user.get_name()),
        may=_may,
        resolve=_resolve,
        channels=_channels,
        runs=_runs,
        scheduler_silent=_scheduler_silent,
        trigger=_trigger,
        database_error=OperationalError,
    )


def _channels() -> Path:
    from binlane.orchestration.airflow.channels_folder import channels_folder

    return channels_folder()


def _may(user: Any, method: str, dag_id: str) -> bool:
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagDetails
    from airflow.models.dag import DagModel

    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
    return bool(get_auth_manager().is_authorized_dag(method=method, details=details, user=user))  # type: ignore[arg-type]


def _trigger(user: Any, dag_id: str, conf: Mapping[str, Any]) -> TriggeredRun:
    """Triggers a run as the trigger button does, if Airflow permits the user to trigger the DAG."""
    from airflow.api.common.trigger_dag import trigger_dag
    from airflow.api_fastapi.app import get_auth_manager
    from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
    from airflow.models.dag import DagModel
    from airflow.utils.types import DagRunTriggeredByType

    from binlane.board.host import TriggeredRun
    from binlane.errors import ConfigError

    details = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
    if not get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, details=details, user=user
    ):
        raise PermissionError(f"Airflow does not let you start runs of the DAG {dag_id}")
    known = DagModel.get_dagmodel(dag_id)
    if known is None or known.is_stale or known.has_import_errors:
        raise ConfigError(f"{dag_id}: Airflow has no such DAG, or its file has an import error")
    run = trigger_dag(
        dag_id=dag_id,
        conf=dict(conf),
        triggered_by=DagRunTriggeredByType.UI,
        triggering_user_name=str(user.get_name()),
    )
    return TriggeredRun(run_id="" if run is None else str(run.run_id), is_paused=bool(known.is_paused))


def _resolve(connection_id: str) -> Endpoint:
    from binlane.errors import ConfigError
    from binlane.orchestration.airflow.releases import AirflowNotFoundException
    from binlane.orchestration.airflow.task_errors import resolve_connection

    try:
        return resolve_connection(connection_id)
    except AirflowNotFoundException as exc:
        raise ConfigError(f"connection {connection_id!r}: Airflow has no connection of this name") from exc


def _runs(dag_id: str) -> AirflowRuns:
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    from binlane.health.airflow_runs import AirflowRuns

    with create_session() as session:
        ended: list[DagRun] = []
        active: list[DagRun] = []
        for run, has_read_nothing in _newest(session, dag_id):
            if run.state in _ACTIVE:
                active.append(run)
            elif _applies(run):
                if not has_read_nothing:
                    ended.append(run)
                    break
            # a dry run, and a verification that succeeds, hide no earlier failure
            elif run.state == "failed" and _only_verifies(run) and not ended:
                ended.append(run)
        first = next(filter(_applies, active), next(iter(active), None))
        return AirflowRuns(
            is_paused=bool(session.scalar(select(DagModel.is_paused).where(DagModel.dag_id == dag_id))),
            ended=tuple(_run(session, run) for run in ended),
            active=None if first is None else _run(session, first),
            silent=_silence(session, active),
            clock=dt.datetime.now(dt.UTC).timestamp(),
        )


def _newest(session: Session, dag_id: str) -> Iterator[tuple[DagRun, bool]]:
    """The DAG's runs, newest first, and whether each was skipped: the channel was stopped, or the watermark had passed
    its end."""
    from airflow.models.dagrun import DagRun
    from airflow.models.taskinstance import TaskInstance as Task
    from sqlalchemy import select

    from binlane.orchestration.airflow.dag_shape import Kind

    query, last = select(DagRun).where(DagRun.dag_id == dag_id).order_by(DagRun.id.desc()).limit(_BATCH), None
    while batch := session.scalars(query if last is None else query.where(DagRun.id < last)).all():
        # the task that decides the run's state, and that of windows back to back
        decides = Task.task_id.in_((Kind.CONFIRM.value, Kind.FOLLOW.value))
        ids = [run.run_id for run in batch]
        of_batch = select(Task.run_id).where(Task.dag_id == dag_id, Task.run_id.in_(ids))
        skipped = set(session.scalars(of_batch.where(decides, Task.state == "skipped")))
        for run in batch:
            yield run, run.state == "success" and run.run_id in skipped
        last = batch[-1].id


def _form(run: DagRun) -> Mapping[str, Any]:
    return run.conf if isinstance(run.conf, dict) else {}


def _only_verifies(run: DagRun) -> bool:
    return bool(_form(run).get("verify_only"))


def _applies(run: DagRun) -> bool:
    return not _only_verifies(run) and not _form(run).get("dry_run")


def _run(session: Session, run: DagRun) -> Run:
    from airflow.models.taskinstance import TaskInstance
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    from binlane.health.airflow_runs import Run
    from binlane.orchestration.airflow.dag_shape import ERROR_KEY, Kind

    failed = session.scalars(
        select(TaskInstance.task_id)
        .where(TaskInstance.dag_id == run.dag_id, TaskInstance.run_id == run.run_id, TaskInstance.state == "failed")
        .distinct()
    ).all()
    errors = session.scalars(
        select(XComModel.value)
        .where(XComModel.dag_run_id == run.id, XComModel.key == ERROR_KEY, XComModel.task_id.in_(failed))
        .order_by(XComModel.timestamp)
    ).all()
    return Run(
        run_id=run.run_id,
        state=str(run.state),
        started_at=None if run.start_date is None else run.start_date.timestamp(),
        ended_at=None if run.end_date is None else run.end_date.timestamp(),
        # the last task's failure only follows from another task's
        failed_tasks=tuple(sorted({*failed} - {Kind.CONFIRM.value} or failed)),
        applies=_applies(run),
        error=next((text for text in errors if isinstance(text, str)), ""),
    )


def _silence(session: Session, active: Sequence[DagRun]) -> float | None:
    """Seconds since one of these runs or their tasks has shown a sign of life."""
    from airflow.models.taskinstance import TaskInstance as Task
    from sqlalchemy import func, select

    if not active:
        return None
    signs = (Task.scheduled_dttm, Task.queued_dttm, Task.start_date, Task.last_heartbeat_at, Task.end_date)
    tasks = session.execute(
        select(*map(func.max, signs)).where(
            Task.dag_id == active[0].dag_id, Task.run_id.in_([run.run_id for run in active])
        )
    ).one()
    seen = [sign for run in active for sign in (run.queued_at, run.start_date, *tasks) if sign is not None]
    return _since(max(seen)) if seen else None


def _since(seen: dt.datetime) -> float:
    from binlane.health.airflow_runs import silence

    return silence(seen.timestamp(), dt.datetime.now(dt.UTC).timestamp())


def _scheduler_silent() -> float | None:
    from airflow.jobs.job import most_recent_job

    job = most_recent_job("SchedulerJob")
    # by Airflow's own limit, [scheduler] scheduler_health_check_threshold
    if job is not None and job.is_alive():
        return None
    beat = None if job is None else job.latest_heartbeat
    return inf if beat is None else _since(beat)


def _write_note(dag_run: DagRun) -> None:
    """Write the note in the session of the run, which commits it with the run's state; `airflow dags test` has no such
    session."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy.orm import object_session

    session = object_session(dag_run)
    if session is not None:
        with session.no_autoflush:
            _add_note(session, dag_run)
        return
    with create_session() as own:
        stored = own.get(DagRun, dag_run.id)
        if stored is not None:
            _add_note(own, stored)


def _add_note(session: Session, dag_run: DagRun) -> None:
    """Write the tasks' texts into the note."""
    from airflow.models.xcom import XComModel
    from sqlalchemy import select

    from binlane.orchestration.airflow.dag_shape import ERROR_KEY, HEALTH_KEY, LONGEST_NOTE, NOTE_KEY
    from binlane.safe_text import cut, markdown

    said = session.execute(
        select(XComModel.key, XComModel.value)
        .where(XComModel.dag_run_id == dag_run.id, XComModel.key.in_([ERROR_KEY, NOTE_KEY, HEALTH_KEY]))
        # errors first: a long result may fill the note
        .order_by(XComModel.key != ERROR_KEY, XComModel.timestamp)
    ).all()
    told = [(key, markdown(cut(text, LONGEST_NOTE))) for key, text in said if isinstance(text, str)]
    if told:
        health = [text for key, text in told if key == HEALTH_KEY]
        texts = [text for key, text in told if key != HEALTH_KEY]
        dag_run.note = _note(dag_run.note or "", texts, health[-1] if health else "")


def _note(before: str, texts: Sequence[str], found: str) -> str:
    """The note that was there, which a person may have written, then the texts that it lacks, and last the health that
    was ``found``, if any: it replaces that of an earlier end of the run, and is not cut for a long text."""
    from binlane.safe_text import cut_markdown

    health = f"health: {found}" if found else ""
    kept = _HEALTH.sub("", before).strip() if health else before
    new = [text for text in dict.fromkeys(_LIKE_HEALTH.sub("... ", text).strip() for text in texts) if text not in kept]
    end = f"\n\n{health}" if health else ""
    said = cut_markdown("\n\n".join(filter(None, (kept, *new))), max(0, NOTE_LENGTH - len(end)))
    return cut_markdown((said + end).strip(), NOTE_LENGTH)
