"""The plan job as an Airflow task: the provider's operator, with properties in a file instead of arguments.

``conf`` of the provider's operator is a template field: its values are stored with the DAG, shown in the UI, written to
the task's log and passed to spark-submit as arguments. To the operator every job that has failed is one to be tried
again; the error that the job names in its last line decides.
"""

from __future__ import annotations

import functools
import os
import socket
from typing import TYPE_CHECKING, Any, Final

from airflow.providers.apache.spark.hooks.spark_connect import SparkConnectHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException
from airflow.sdk.log import mask_secret

from binlane.choices import PlanEngine
from binlane.orchestration.airflow.releases import AirflowFailException, AirflowNotFoundException
from binlane.orchestration.airflow.task_errors import airflow_errors
from binlane.orchestration.airflow.task_watch import WatchedTask
from binlane.orchestration.plan_job.jvm_options import with_jvm_options
from binlane.orchestration.plan_job.spark_submit import (
    WITH_DEFAULTS,
    JobOutput,
    properties_file,
    secrets_of,
    with_token,
    without_airflow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk import Context

    from binlane.config import ChannelConfig
    from binlane.orchestration.plan_job.window_engine import WindowEngine
    from binlane.work.files import WorkFolder


ENGINE_KEY: Final = "engine"
"""XCom key of the task: what ran the plan job, for people."""
MADE_KEY: Final = "made"
"""XCom key of the task: the digests of the files that the job has read and made."""
_SPARK_CONNECT: Final = "spark_connect"
"""The type of a Spark Connect server's connection."""


class SparkJob(SparkSubmitOperator):
    """Submits a job of binlane's own: the base of operators whose ``execute`` says what runs it."""

    def __init__(self, *, channel: ChannelConfig, properties: Mapping[str, str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._channel, self._given = channel, dict(properties)
        self._output = JobOutput()

    def submit(self, context: Context, arguments: list[str], given: Mapping[str, str]) -> None:
        """Run the job by spark-submit and wait for its end; its own error, if it names one, is raised."""
        self.application_args = arguments
        for value in secrets_of(given):
            mask_secret(value)
        with properties_file(given) as path:
            self.properties_file = path
            try:
                super().execute(context)
            except AirflowFailException:
                raise
            except AirflowException as exc:
                if self._output.error is None:
                    raise
                raise self._output.error from exc

    def on_kill(self) -> None:
        """Ends a spark-submit; the other engines' processes and sessions end with this one."""
        if self._hook is not None:
            super().on_kill()

    def _get_hook(self) -> SparkSubmitHook:
        hook = super()._get_hook()
        # the provider has no parameters for the command's options, the environment and what reads the output
        read = hook._process_spark_submit_log
        hook._process_spark_submit_log = lambda itr: read(self._output.listened(itr))  # type: ignore[method-assign]
        build = _with_defaults(hook._build_spark_submit_command)
        hook._build_spark_submit_command = build  # type: ignore[method-assign, assignment]
        hook.submit = functools.partial(hook.submit, env=with_jvm_options(without_airflow(os.environ)))  # type: ignore[method-assign]
        return hook


class _PlanJob(SparkJob):
    """Runs the plan job: by the window's engine, and on Spark as the connection's type says."""

    def __init__(
        self,
        *,
        engine_of: Callable[[Context], WindowEngine],
        folder_of: Callable[[Context], WorkFolder],
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self._engine_of, self._folder_of = engine_of, folder_of

    def execute(self, context: Context) -> Any:
        """Run the job and wait for its end."""
        engine = self._engine_of(context)
        with airflow_errors(self._channel.name):
            work = self._folder_of(context)
        by, run = self._way(engine.word, work)
        name = f"{engine}, {by}"
        self.log.info("plan job by %s", name)
        context["ti"].xcom_push(ENGINE_KEY, name)
        with airflow_errors(self._channel.name):
            run(context)
        # imported only if needed, as below
        from binlane.orchestration.plan_job import engines

        context["ti"].xcom_push(MADE_KEY, engines.made_of(work.uri))

    def _way(self, word: str, work: WorkFolder) -> tuple[str, Callable[[Context], object]]:
        """What runs the job, in words, and the call that runs it."""
        # imported only if needed: a DAG file is parsed in every task process
        from binlane.orchestration.plan_job import engines

        if word != PlanEngine.SPARK:
            return f"on {socket.gethostname()}", lambda _: engines.run_by(word, self._channel, work)
        if (remote := connect_url(str(self._conn_id))) is not None:
            return "Spark Connect", lambda _: engines.connect(self._channel, work, remote)
        return "spark-submit", lambda context: self._submit(context, work)

    def _submit(self, context: Context, work: WorkFolder) -> None:
        from binlane.orchestration.plan_job import engines

        given = with_token(self._given)
        self.submit(context, engines.job_arguments(work), given)
        engines.take_answer_of(work.uri, given)


class PlanJobOperator(WatchedTask, _PlanJob):
    """``properties``: Spark properties, which may be secrets; ``engine_of``, ``folder_of``: of a run's window, its
    engine and its folder."""


def connect_url(connection_id: str) -> str | None:
    """The URL of a Spark Connect server; None for the connection of a master, and for none."""
    try:
        if BaseHook.get_connection(connection_id).conn_type != _SPARK_CONNECT:
            return None
    except AirflowNotFoundException:
        return None
    url = SparkConnectHook(connection_id).get_connection_url()
    mask_secret(url)
    return url


def _with_defaults(build: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    def command(application: str) -> list[str]:
        program, *arguments = build(application)
        return [program, WITH_DEFAULTS, *arguments]

    return command
