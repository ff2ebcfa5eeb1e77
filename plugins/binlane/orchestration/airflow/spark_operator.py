"""The filter job as an Airflow task: the provider's operator, with properties in a file instead of arguments.

``conf`` of the provider's operator is a template field: its values are stored with the DAG, shown in the UI, written to
the task's log and passed to spark-submit as arguments. To the operator every job that has failed is one to be tried
again; the error that the job names in its last line decides.
"""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.sdk.log import mask_secret

from binlane.orchestration.airflow.task_errors import airflow_errors
from binlane.orchestration.airflow.task_watch import Watched
from binlane.orchestration.spark import WITH_DEFAULTS, JobOutput, properties_file, secrets_of, without_airflow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
    from airflow.sdk import Context


class FilterJobOperator(Watched, SparkSubmitOperator):
    """``properties``: Spark properties, which may be secrets."""

    def __init__(self, *, properties: Mapping[str, str], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._given = dict(properties)
        self._output = JobOutput()

    def execute(self, context: Context) -> Any:
        """Submit the job and wait for it."""
        for value in secrets_of(self._given):
            mask_secret(value)
        with properties_file(self._given) as path, airflow_errors():
            self.properties_file = path
            try:
                return super().execute(context)
            except AirflowFailException:
                raise
            except AirflowException as exc:
                if self._output.error is None:
                    raise
                raise self._output.error from exc

    def _get_hook(self) -> SparkSubmitHook:
        hook = super()._get_hook()
        # the provider has no parameters for the command's options, the environment and what reads the output
        read = hook._process_spark_submit_log
        hook._process_spark_submit_log = lambda itr: read(self._output.listened(itr))  # type: ignore[method-assign]
        build = _with_defaults(hook._build_spark_submit_command)
        hook._build_spark_submit_command = build  # type: ignore[method-assign, assignment]
        hook.submit = functools.partial(hook.submit, env=without_airflow(os.environ))  # type: ignore[method-assign]
        return hook


def _with_defaults(build: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    def command(application: str) -> list[str]:
        program, *arguments = build(application)
        return [program, WITH_DEFAULTS, *arguments]

    return command
