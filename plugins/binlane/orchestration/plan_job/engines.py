"""Engines of the plan job, by the word of ``spark.engine`` and ``--engine``. Airflow submits the Spark job itself."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from binlane.choices import PlanEngine
from binlane.config import ChannelConfig
from binlane.errors import ConfigError
from binlane.extension import chosen
from binlane.orchestration.plan_job.jvm_options import with_jvm_options
from binlane.orchestration.plan_job.spark_submit import (
    PLAN_JOB,
    WITH_DEFAULTS,
    properties_file,
    spark_properties,
    with_token,
    without_airflow,
    without_secrets,
)
from binlane.plan.window_plan import WindowPlan
from binlane.work.files import PLAN, Digests, WorkFolder
from binlane.work.plan_inputs import INPUTS, read_inputs
from binlane.work.plan_job.early_scans import EarlyScans
from binlane.work.plan_job.errors import error_of
from binlane.work.plan_job.fork_server import LANES, PLANNING, fork_server_here
from binlane.work.plan_job.job import LocalProcesses, Scanned, run_plan_job
from binlane.work.plan_job.made import TOKEN, made_here, take_answer

log = logging.getLogger(__name__)

REMOTE: Final = "SPARK_REMOTE"
"""Environment variable with the URL of a Spark Connect server, as Spark itself reads it."""


def begin_processes(word: str) -> None:
    """Start what an engine on this machine needs, before a command has connections and threads. ``word``: may be
    "auto", which takes this machine for all but large windows."""
    if word != PlanEngine.SPARK:
        fork_server_here(*LANES, shared=PLANNING)


def plan_here(channel: ChannelConfig, work: WorkFolder, scanned: Scanned | None = None) -> WindowPlan:
    """Run the plan job by processes on this machine. ``scanned``: results of ``EarlyScans``."""
    return run_plan_job(work, LocalProcesses(os.cpu_count() or 1), scanned)


def early_scans(word: str, channel: ChannelConfig) -> EarlyScans:
    """Scans while the log is read, of as many segments as an engine on this machine gets; of none for Spark."""
    # "auto" gives longer windows to Spark
    longest: dict[str, int | None] = {PlanEngine.LOCAL: None, PlanEngine.AUTO: channel.spark.min_segments - 1}
    # one core is the reader's
    return EarlyScans((os.cpu_count() or 1) - 1, longest.get(word, 0))


def connect(channel: ChannelConfig, work: WorkFolder, remote: str) -> None:
    """Run the plan job of a window's folder on a Spark Connect server (``sc://host:15002``), without a JVM of its
    own."""
    if channel.spark.conf:
        log.info("not used: [spark.conf], which is for spark-submit; a Spark Connect server has properties of its own")
    # imported only if needed: pyspark is an extra of the package
    from binlane.spark_engine import plan_on_server

    plan_on_server(remote, work, channel.name)


def submit(channel: ChannelConfig, work: WorkFolder) -> None:
    """Run the plan job on Spark, as the DAG's task does: on the server that SPARK_REMOTE names, else by spark-submit.

    Raises PlanError with the output of spark-submit.
    """
    if remote := os.environ.get(REMOTE):
        connect(channel, work, remote)
        return
    given = with_token(spark_properties(channel.spark.conf))
    command, code, told = run_submit(PLAN_JOB, job_arguments(work), given)
    if code != 0 or not work.plans(read_inputs(work).key).exists(PLAN):
        raise error_of(command, code, told)
    take_answer_of(work.uri, given)


def run_submit(job: Path, arguments: Sequence[str], given: Mapping[str, str]) -> tuple[str, int, str]:
    """Run a job's file by spark-submit with these properties: the command, its exit code and its output, without
    secrets. Raises ConfigError where there is no spark-submit."""
    from binlane.readiness.machine import spark_submit

    program, path = spark_submit()
    if program is None:
        raise ConfigError(
            "--engine spark: expected spark-submit on PATH, found none; install Spark, or use --engine local"
        )
    environment = with_jvm_options({"PYSPARK_PYTHON": sys.executable, **without_airflow(os.environ), "PATH": path})
    with properties_file(given) as file:
        command = [program, WITH_DEFAULTS, "--properties-file", file, str(job), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    # Spark redirects the driver's standard error to its own standard output
    return " ".join(command), done.returncode, without_secrets(f"{done.stdout}\n{done.stderr}", given)


def job_arguments(work: WorkFolder) -> list[str]:
    """The arguments of the plan job's file, for a window's folder and the digests of its inputs, if they are known."""
    if work.digests is None:
        return ["--work", work.uri]
    digests = {name: work.digests[name] for name in INPUTS if name in work.digests}
    return ["--work", work.uri, "--digests", json.dumps(digests)]


class PlanRunner(Protocol):
    """Runs the plan job of a window's folder; the plan is written when the call returns, and this process knows what
    was made (``work.plan_job.made``): ``run_plan_job`` notes it, where it is called. The plan is the answer of an
    engine that has it."""

    def __call__(self, channel: ChannelConfig, work: WorkFolder) -> WindowPlan | None:
        """Raises the errors of ``work.plan_job.job.run_plan_job``."""


PLAN_ENGINES: Final[Mapping[str, PlanRunner]] = {
    PlanEngine.LOCAL: plan_here,
    PlanEngine.SPARK: submit,
}
"""Engines by the word of ``spark.engine`` and ``--engine``; ``engine_for`` gives the one that "auto" means."""


def made_of(work: str) -> Digests | None:
    """The digests of what the plan job of the folder ``work`` (a URI) has read and made, for the step behind it."""
    return made_here(work)


def take_answer_of(work: str, given: Mapping[str, str]) -> None:
    """Take what a submitted job has told of its files. ``given``: its properties. Raises PlanError for another's."""
    take_answer(work, given[TOKEN])


def runner_of(word: str, key: str) -> PlanRunner:
    """The engine of a word that is not "auto". ``key``: for the errors of ``extension.chosen``."""
    return chosen(PLAN_ENGINES, word, key)


def run_by(word: str, channel: ChannelConfig, work: WorkFolder) -> None:
    """Run the plan job of a window's folder by an engine."""
    runner_of(word, "spark.engine")(channel, work)


def require_engine(word: str, key: str) -> None:
    """Raises ConfigError for a word that no engine has."""
    if word != PlanEngine.AUTO:
        runner_of(word, key)
