"""Who indexes an archive: processes of this machine, or Spark, as for a plan job."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from binlane.choices import PlanEngine
from binlane.errors import ConfigError
from binlane.orchestration.plan_job.engines import REMOTE, run_submit
from binlane.orchestration.plan_job.spark_submit import INDEX_JOB, spark_properties
from binlane.restore.indexing import Made, made_elsewhere, made_in, make_index, unindexed
from binlane.work.plan_job.errors import error_of


def make_index_by(word: str, uri: str, conf: Mapping[str, str]) -> Iterator[Made]:
    """``make_index`` by an engine: "local", or "spark" (the server that SPARK_REMOTE names, else spark-submit).

    ``conf``: properties of a spark-submit. Raises ConfigError for another word, and PlanError with the output of a
    spark-submit that fails.
    """
    if word == PlanEngine.LOCAL:
        return make_index(uri)
    if word != PlanEngine.SPARK:
        raise ConfigError(f"--engine: expected local or spark to index an archive, got {word!r}")
    if remote := os.environ.get(REMOTE):
        return iter(index_on_server(uri, remote))
    return _submitted(uri, conf)


def index_on_server(uri: str, remote: str) -> list[Made]:
    """Index an archive on a Spark Connect server, whose executors must reach it. Raises as ``make_index``, and
    SparkServerError."""
    # imported only if needed: pyspark is an extra of the package
    from binlane.spark_engine import on_server

    return on_server(remote, "archive index", "index", lambda engine: [*make_index(uri, engine)])


def index_arguments(uri: str) -> list[str]:
    """The arguments of the job's file."""
    return ["--archive", uri]


def _submitted(uri: str, conf: Mapping[str, str]) -> Iterator[Made]:
    before = unindexed(uri)
    if not before:
        return iter(())
    command, code, told = run_submit(INDEX_JOB, index_arguments(uri), spark_properties(conf))
    if code != 0:
        raise error_of(command, code, told)
    return made_elsewhere(uri, before, [made for line in told.splitlines() if (made := made_in(line)) is not None])
