"""The DAG of a channel's windows. The bodies of its tasks are in ``steps``, which does not import Airflow.

Modules that load drivers, Parquet or parsers are imported inside the tasks, because a DAG file is parsed in every task
process.
"""

from __future__ import annotations

import datetime as dt
import logging
import threading
from typing import TYPE_CHECKING, Any, Final

from airflow.sdk import DAG, Param, XComArg, get_current_context

from binlane.choices import VerifyScope
from binlane.config import declared_channels, load_channel
from binlane.errors import ConfigError, StopRequestedError
from binlane.model import plural
from binlane.orchestration.airflow.bootstrap_dag import build_bootstrap_dag
from binlane.orchestration.airflow.channels_folder import channels_folder
from binlane.orchestration.airflow.dag_shape import Kind, Step, bootstrap_dag_id, dag_id, describe, restore_dag_id
from binlane.orchestration.airflow.notify import announce, asset_of, measure_health
from binlane.orchestration.airflow.releases import (
    BACKOFF,
    AirflowFailException,
    AirflowSkipException,
    cron_timetable,
    deadline_alert,
)
from binlane.orchestration.airflow.restore_dag import build_restore_dag
from binlane.orchestration.airflow.spark_operator import ENGINE_KEY, MADE_KEY, PlanJobOperator
from binlane.orchestration.airflow.task_errors import (
    airflow_errors,
    author_of,
    endpoints_of,
    form_values,
    note,
    resolve_connection,
)
from binlane.orchestration.airflow.task_watch import ShortCircuitStepOperator, StepOperator
from binlane.orchestration.commands.copies.restore_form import has_form
from binlane.orchestration.plan_job.spark_submit import PLAN_JOB, spark_properties
from binlane.orchestration.plan_job.window_engine import engine_for
from binlane.orchestration.run_forms import RunForm, run_params

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from airflow.sdk import Context
    from airflow.sdk.bases.operator import BaseOperator
    from airflow.sdk.definitions._internal.node import DAGNode
    from airflow.sdk.definitions.deadline import DeadlineAlert
    from airflow.sdk.definitions.mappedoperator import MappedOperator
    from airflow.sdk.types import DagRunProtocol, RuntimeTaskInstanceProtocol

    from binlane.config import ChannelConfig
    from binlane.orchestration.airflow.releases import CronDataIntervalTimetable
    from binlane.orchestration.plan_job.window_engine import WindowEngine
    from binlane.orchestration.request import WindowRequest
    from binlane.work.files import WorkFolder

    Node = BaseOperator | MappedOperator
    Nodes = Mapping[Kind, Node]

log = logging.getLogger(__name__)

WINDOW_KEY: Final = "window"
"""XCom key of extract_segments: its result, also for a skipped window; empty if the run reads no log."""
PLAN_KEY: Final = "plan"
"""XCom key of adopt_plan: the plan's URI."""
_OF_INTERVALS: Final = frozenset({"scheduled", "backfill"})
"""The types of runs that are of a data interval. All others (manual, operator_triggered, asset_materialization ..) are
somebody's wish for now."""
_STOPPED: Final = "the channel is stopped: the run is skipped"
_PASSED: Final = "the watermark had passed the end of this run before: nothing was read"
_VERIFIES: Final = "this run only verifies: no log is read and no window is applied"
_RESUMED: Final = "this window was open before the run: what the log has behind it comes with the next run"
_FINISHED_ELSEWHERE: Final = "nothing is left to do: another run has read this window anew and finished it"
_INTERRUPTED: Final = threading.Event()
"""Set when this process's task is to end."""


def build_dags(folder: Path | None = None) -> dict[str, DAG]:
    """The DAGs of every channel of ``folder``, by id: its windows, from a live source its first copy, and
    its restores where its file has ``[restore]``, its drills and the index of its archive where it has these.

    ``folder``: None for the one that Airflow's configuration names. A wrong channel has no DAG: it is a warning here,
    and an import error where ``require_right_channels`` is called.
    """
    dags, problems = _dags_and_problems(folder)
    for problem in problems:
        log.warning("no DAG for this channel: %s", problem)
    return dags


def require_right_channels(folder: Path | None = None) -> None:
    """Raises ConfigError that names every channel without a DAG, for a DAG file of its own: Airflow ends the schedules
    of all DAGs of a file that has an import error, also of those that it has read."""
    _, problems = _dags_and_problems(folder)
    if problems:
        raise ConfigError("\n".join((f"{plural(len(problems), 'channel')} without a DAG:", *problems)))


def _dags_and_problems(folder: Path | None) -> tuple[dict[str, DAG], list[str]]:
    dags, problems = dict[str, DAG](), list[str]()
    for each in declared_channels(channels_folder() if folder is None else folder):
        try:
            channel = load_channel(each)
            dags[dag_id(each.name)] = build_dag(channel)
            if channel.drill.base is not None:
                # a folder without drills loads nothing for them
                from binlane.orchestration.airflow.drill_dag import build_drill_dag, drill_dag_id

                dags[drill_dag_id(each.name)] = build_drill_dag(channel)
            if channel.archive.uri is not None:
                from binlane.orchestration.airflow.archive_dag import build_index_dag, index_dag_id

                dags[index_dag_id(each.name)] = build_index_dag(channel)
            if channel.source.connection is not None:
                dags[bootstrap_dag_id(each.name)] = build_bootstrap_dag(channel)
            if has_form(channel):
                dags[restore_dag_id(each.name)] = build_restore_dag(channel)
        except ConfigError as exc:
            problems.append(str(exc))
        # a DAG that Airflow refuses must not cost the others theirs
        except Exception as exc:
            problems.append(f"{each.file}: channel {each.name}: {type(exc).__name__}: {exc}")
    return dags, problems


def build_dag(channel: ChannelConfig) -> DAG:
    """The DAG of one channel; raises ConfigError if Airflow cannot read its schedule."""
    with DAG(
        dag_id(channel.name),
        schedule=_timetable(channel),
        start_date=dt.datetime.combine(channel.window.start_date, dt.time(), dt.UTC),
        catchup=False,
        max_active_runs=1,
        default_args={"owner": channel.owner, "retry_delay": dt.timedelta(seconds=10)},
        owner_links={} if channel.owner_link is None else {channel.owner: channel.owner_link},
        deadline=_deadline(channel),
        tags=sorted({"binlane", *channel.tags}),
        description=channel.description,
        doc_md=_doc(channel),
        params={name: Param(**values) for name, values in run_params(channel).items()},
        render_template_as_native_obj=False,
        # the file that gets the DAG from ``build_dags`` has it; a file that only checks the channels has none
        auto_register=False,
    ) as dag:
        nodes: dict[Kind, Node] = {}
        for step in describe(channel):
            node = nodes[step.kind] = BUILDERS[step.kind](channel, step, nodes)
            node.set_upstream([nodes[kind] for kind in step.after if kind.value not in node.upstream_task_ids])
    return dag


def _deadline(channel: ChannelConfig) -> DeadlineAlert | None:
    """The lag alert. The scheduler checks it, so it also covers runs whose tasks hang, wait for slots or fail."""
    seconds = channel.alert.lag_seconds
    if not seconds:
        return None
    told = {"channel": channel.name, "lag_seconds": seconds}
    return deadline_alert(channel.file, seconds, channel.alert.callback, told)


def _timetable(channel: ChannelConfig) -> CronDataIntervalTimetable | str | None:
    if channel.window.schedule is None:
        return None
    if channel.window.is_continuous:
        return "@continuous"
    return cron_timetable(channel.window.schedule, channel, "window.schedule")


def _doc(channel: ChannelConfig) -> str:
    source = channel.source.connection or channel.source.archive
    lanes = plural(channel.lanes.count, "lane")
    return f"""### {channel.name}
{channel.description}

Rolls `{source}` forward onto `{channel.target.connection}` over {lanes} and the serialized lane.
A scheduled run applies the source's log from the watermark to the end of the run's interval; a triggered run, to now or
to the end in its form. Every task can be cleared and run again: applied changes are not applied twice.

Each committed watermark is an event of the asset `binlane_{channel.name}`. The page *Replication* shows the channel's
state.

Channel file: `{channel.file}`. Shard list: `{channel.lanes.shard_list}`.
"""


def _request(context: Context) -> WindowRequest:
    from binlane.orchestration.request import request_of

    run = context["dag_run"]
    # a triggered run has the last interval that is over
    interval_end = run.data_interval_end if run.run_type in _OF_INTERVALS else None
    return request_of(_form(context), interval_end, _triggered_at(run), author_of(context))


def _triggered_at(run: DagRunProtocol) -> dt.datetime:
    """When the run was triggered, or a moment before: Airflow does not say it.

    ``run_after`` is the end of an interval before it, where Airflow 3.1 triggers with a logical date, which is the
    moment then; a client may give both, of the future, too, but not when the run begins.
    """
    named = max(run.run_after, run.logical_date or run.run_after)
    return min(named, run.start_date or named)


def _extract(channel: ChannelConfig, step: Step, _: Nodes) -> BaseOperator:
    def extract_segments() -> bool:
        from binlane.orchestration import steps

        context = get_current_context()
        if _verifies_only(_form(context)):
            log.info(_VERIFIES)
            context["ti"].xcom_push(WINDOW_KEY, {})
            return False
        with airflow_errors(channel.name):
            try:
                window = steps.extract(channel, endpoints_of(channel), _request(context))
            except StopRequestedError as exc:
                log.warning("%s", exc)
                note(context, f"skipped: {exc}")
                context["ti"].xcom_push(WINDOW_KEY, {})
                raise AirflowSkipException(_STOPPED) from exc
        context["ti"].xcom_push(WINDOW_KEY, window)
        log.info("window: %s", window)
        if nothing := window["empty"] or window["finished"]:
            note(context, f"nothing to apply: the watermark is at seqno {window['watermark']:,}")
        return not nothing

    return ExtractOperator(**_arguments(step), python_callable=extract_segments)


class ExtractOperator(ShortCircuitStepOperator):
    """Skips the downstream tasks if there is nothing to apply, except a full verification, which needs no new
    window, and a verification that was requested alone."""

    def skip(self, ti: RuntimeTaskInstanceProtocol, tasks: Iterable[DAGNode]) -> None:
        """As SkipMixin's, except for the verification."""
        context = get_current_context()
        window, form = ti.xcom_pull(task_ids=self.task_id, key=WINDOW_KEY), _form(context)
        # a run of a stopped channel has no window
        verified = _verifies_only(form) or (bool(window) and form.verify in (VerifyScope.FULL, VerifyScope.SLICE))
        kept = {Kind.VERIFY.value} if verified else set()
        super().skip(ti, [task for task in tasks if task.node_id not in kept])


def _filter(channel: ChannelConfig, step: Step, _: Nodes) -> BaseOperator:
    """The plan job. Spark's settings come only from the connection and ``[spark.conf]``."""

    def skip_if_planned(context: Context) -> None:
        window = _window(context)
        if window["plan"] is not None:
            raise AirflowSkipException(f"window {window['window']} has a plan: {window['plan']}")

    def engine_of(context: Context) -> WindowEngine:
        return engine_for(channel, _form(context).engine, _window(context)["segments"])

    def folder_of(context: Context) -> WorkFolder:
        from binlane.orchestration import steps

        return steps.inputs_folder(channel, endpoints_of(channel), _window(context))

    return PlanJobOperator(
        **_arguments(step),
        channel=channel,
        engine_of=engine_of,
        folder_of=folder_of,
        application=str(PLAN_JOB),
        conn_id=channel.spark.connection,
        name=f"binlane {channel.name}",
        properties=spark_properties(channel.spark.conf),
        pre_execute=skip_if_planned,
    )


def _adopt(channel: ChannelConfig, step: Step, _: Nodes) -> BaseOperator:
    def adopt_plan() -> list[dict[str, Any]]:
        from binlane.orchestration import steps

        context = get_current_context()
        if _is_of_stopped_channel(context):
            raise AirflowSkipException(_STOPPED)
        with airflow_errors(channel.name):
            work, stop_at = _window(context)["work"], _form(context).stop_at
            # empty if the window had its plan already
            engine = context["ti"].xcom_pull(task_ids=Kind.FILTER.value, key=ENGINE_KEY) or ""
            made = context["ti"].xcom_pull(task_ids=Kind.FILTER.value, key=MADE_KEY)
            adopted = steps.adopt_plan(channel, endpoints_of(channel), work, stop_at, engine, made, author_of(context))
        context["ti"].xcom_push(PLAN_KEY, adopted["plan"])
        if adopted["plan"] is None:
            is_dry = _form(context).dry_run
            note(context, f"a dry run: the plan is in the log of {step.task_id}" if is_dry else _FINISHED_ELSEWHERE)
        return [{"lane": lane["lane"], "name": lane["name"], "plan": adopted["plan"]} for lane in adopted["lanes"]]

    return StepOperator(**_arguments(step), python_callable=adopt_plan)


def _apply(channel: ChannelConfig, step: Step, nodes: Nodes) -> MappedOperator:
    def apply_lane(lane: int, name: str, plan: str) -> dict[str, Any]:
        from binlane.orchestration import steps

        log.info("%s", name)
        with airflow_errors(channel.name):
            applied: dict[str, Any] = steps.apply_lane(channel, endpoints_of(channel), plan, lane, _INTERRUPTED)
        return applied

    return LaneOperator.partial(
        **_arguments(step),
        python_callable=apply_lane,
        map_index_template="{{ task.op_kwargs['name'] }}",
        retry_exponential_backoff=BACKOFF,
        max_retry_delay=dt.timedelta(minutes=5),
    ).expand(op_kwargs=XComArg(nodes[Kind.ADOPT]))


class LaneOperator(StepOperator):
    """One lane, or windows back to back. Marked failed or ended by a signal, a lane stops at its next block boundary,
    and no other window begins."""

    def on_kill(self) -> None:
        """Called in the task's own process, which has a few seconds to end."""
        _INTERRUPTED.set()


def _advance(channel: ChannelConfig, step: Step, _: Nodes) -> BaseOperator:
    def advance_watermark() -> dict[str, Any]:
        from binlane.orchestration import steps

        context = get_current_context()
        plan = context["ti"].xcom_pull(task_ids=Kind.ADOPT.value, key=PLAN_KEY)
        with airflow_errors(channel.name):
            summary: dict[str, Any] = steps.advance(channel, endpoints_of(channel), plan)
        log.info("%s", summary["note"])
        note(context, f"{summary['note']}\n{_RESUMED}" if _window(context).get("resumed") else summary["note"])
        announce(channel.name, summary, context)
        return summary

    return StepOperator(**_arguments(step), python_callable=advance_watermark, outlets=[asset_of(channel.name)])


def _verify(channel: ChannelConfig, step: Step, _: Nodes) -> BaseOperator:
    def verify_target() -> dict[str, Any]:
        context = get_current_context()
        form, advanced = _form(context), context["ti"].xcom_pull(task_ids=Kind.ADVANCE.value)
        if form.verify is VerifyScope.NONE:
            raise AirflowSkipException("verify is none: no verification was requested")
        if form.dry_run and not _verifies_only(form):
            raise AirflowSkipException("a dry run applies nothing")
        if _is_of_stopped_channel(context):
            raise AirflowSkipException(_STOPPED)
        if advanced is not None and advanced.get("is_open"):
            raise AirflowSkipException(f"the window is unfinished: {advanced['note']}")
        # imported only if needed
        from binlane.orchestration.commands import verify

        with airflow_errors(channel.name):
            found: dict[str, Any] = verify.verify_after(
                channel, endpoints_of(channel), form.verify, accounts=form.verify_accounts
            )
        note(context, found["note"])
        return found

    return StepOperator(**_arguments(step), python_callable=verify_target)


def _confirm(channel: ChannelConfig, step: Step, _: Nodes) -> BaseOperator:
    """A teardown task: Airflow does not skip it with other tasks, nor mark it when a person marks the run."""

    def confirm_window() -> None:
        # imported only if needed
        from binlane.orchestration.airflow import run_outcome

        context = get_current_context()
        run, ti, form = context["dag_run"], context["ti"], _form(context)
        outcome = run_outcome.RunOutcome(
            states=ti.get_task_states(dag_id=run.dag_id, run_ids=[run.run_id]).get(run.run_id, {}),
            window=_window(context),
            advanced=ti.xcom_pull(task_ids=Kind.ADVANCE.value),
            dry_run=form.dry_run,
            verification=form.verify,
            verifies_only=form.verify_only,
        )
        problem = outcome.problem()
        if problem is None and outcome.undecided is not None:
            with airflow_errors(channel.name):
                problem = run_outcome.open_window(channel.name, endpoints_of(channel), outcome.undecided)
        failed = None if problem is None else run_outcome.failed_run(run.run_id, outcome.first_failed())
        health = run_outcome.health_after(channel, resolve_connection, failed)
        measure_health(health)
        # a failed task has logged its reason
        note(context, problem if problem is not None and not outcome.failed() else "", health.summary)
        if problem is not None:
            raise AirflowFailException(problem)
        # the task's state says later which runs the channel's health does not go by
        if outcome.is_of_stopped_channel:
            raise AirflowSkipException(_STOPPED)
        if outcome.is_passed:
            raise AirflowSkipException(_PASSED)

    operator = StepOperator(**_arguments(step), python_callable=confirm_window)
    operator.as_teardown(on_failure_fail_dagrun=True)
    return operator


def _follow(channel: ChannelConfig, step: Step, _: Nodes) -> BaseOperator:
    def follow_source() -> dict[str, Any]:
        # imported only if needed
        from binlane.orchestration.airflow import follow_task

        context = get_current_context()
        form = _form(context)
        if _verifies_only(form):
            log.info(_VERIFIES)
            # Airflow sends an event for each outlet of a task that has succeeded
            context["task"].outlets.clear()
            return {"windows": 0}
        # it has tried again itself, and the next run begins at once: another try would only hide that this one failed
        with airflow_errors(channel.name, may_retry=False):
            return follow_task.follow_source(channel, form, context, _INTERRUPTED)

    return LaneOperator(**_arguments(step), python_callable=follow_source, outlets=[asset_of(channel.name)])


def _form(context: Context) -> RunForm:
    with airflow_errors():
        return RunForm.of(form_values(context))


def _verifies_only(form: RunForm) -> bool:
    """Whether the run only verifies. Raises AirflowFailException if it does not verify either."""
    if form.verify_only and form.verify is VerifyScope.NONE:
        raise AirflowFailException(
            f"verify_only: expected verify to be {VerifyScope.WINDOW!r}, {VerifyScope.SLICE!r} or "
            f"{VerifyScope.FULL!r}, found "
            f"{form.verify!r}: the run has nothing to do"
        )
    return form.verify_only


def _is_of_stopped_channel(context: Context) -> bool:
    """Whether extract_segments has found the channel stopped."""
    return _window(context) == {} and not _verifies_only(_form(context))


def _window(context: Context) -> dict[str, Any]:
    """The return value of extract_segments."""
    window: dict[str, Any] = context["ti"].xcom_pull(task_ids=Kind.EXTRACT.value, key=WINDOW_KEY)
    return window


def _arguments(step: Step) -> dict[str, Any]:
    """The arguments of every operator of a step."""
    rule = "none_failed" if step.runs_after_skip else "all_success"
    timeout = dt.timedelta(seconds=step.timeout) if step.timeout else None
    return {
        "task_id": step.task_id,
        "retries": step.retries,
        "trigger_rule": rule,
        "execution_timeout": timeout,
        "doc_md": step.doc,
    }


BUILDERS: Final[Mapping[Kind, Callable[[ChannelConfig, Step, Nodes], Node]]] = {
    Kind.EXTRACT: _extract,
    Kind.FILTER: _filter,
    Kind.ADOPT: _adopt,
    Kind.APPLY: _apply,
    Kind.ADVANCE: _advance,
    Kind.VERIFY: _verify,
    Kind.CONFIRM: _confirm,
    Kind.FOLLOW: _follow,
}
