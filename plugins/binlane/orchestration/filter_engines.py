"""Engines of the filter job for the command line, by the word of ``--engine``. In Airflow a task of its own runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Final, Protocol

from binlane.choices import FilterEngine
from binlane.config import ChannelConfig
from binlane.errors import ConfigError
from binlane.orchestration.spark import (
    FILTER_JOB,
    WITH_DEFAULTS,
    properties_file,
    spark_properties,
    without_airflow,
    without_secrets,
)
from binlane.readiness.machine import spark_submit
from binlane.work.files import PLAN, WorkFolder
from binlane.work.filter.errors import error_of
from binlane.work.filter.job import LocalProcesses, run_filter
from binlane.work.plan_inputs import read_inputs

_LANES: Final = "binlane.orchestration.lane_processes"
"""Modules that the fork server imports, because lanes are forked later from the same server as the filter's
processes."""


def filter_here(channel: ChannelConfig, work: WorkFolder) -> None:
    """Run the filter job by processes on this machine."""
    run_filter(work, LocalProcesses(os.cpu_count() or 1, preload=_LANES))


def submit(channel: ChannelConfig, work: WorkFolder) -> None:
    """Submit the Spark job, as the DAG's task does. Raises PlanError with its output."""
    given = spark_properties(channel.spark.conf)
    program, path = spark_submit()
    if program is None:
        raise ConfigError(
            "--engine spark: expected spark-submit on PATH, found none; install Spark, or use --engine local"
        )
    environment = {"PYSPARK_PYTHON": sys.executable, **without_airflow(os.environ), "PATH": path}
    with properties_file(given) as file:
        command = [program, WITH_DEFAULTS, "--properties-file", file, str(FILTER_JOB), "--work", work.uri]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not work.child(read_inputs(work).key).exists(PLAN):
        # Spark redirects the driver's standard error to its own standard output
        told = without_secrets(f"{done.stdout}\n{done.stderr}", given)
        raise error_of(" ".join(command), done.returncode, told)


class FilterRunner(Protocol):
    """Runs the filter job of a window's folder; the plan is written when the call returns."""

    def __call__(self, channel: ChannelConfig, work: WorkFolder) -> None:
        """Raises the errors of ``work.filter.job.run_filter``."""


FILTER_ENGINES: Final[Mapping[str, FilterRunner]] = {
    FilterEngine.LOCAL: filter_here,
    FilterEngine.SPARK: submit,
}
"""Engines by the word of ``--engine``."""
