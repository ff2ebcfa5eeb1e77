"""What Spark's Python workers are forked from."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from binlane.orchestration.plan_job.spark_submit import spark_properties

pytestmark = pytest.mark.trial

PROJECT = Path(__file__).parents[2]
DAEMON = "spark.python.daemon.module"


@pytest.mark.parametrize("of_spark", [False, True], ids=["ours", "Spark's"])
def test_a_worker_begins_with_what_its_tasks_need(of_spark: bool) -> None:
    """As Spark does it: the daemon says where it listens, and who connects gets a worker and its pid."""
    module = "pyspark.daemon" if of_spark else spark_properties({})[DAEMON]
    with daemon(module) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as worker:
        pid = number(worker.makefile("rb"))
        loaded = Path(f"/proc/{pid}/maps").read_text("utf-8")
    assert [("binlane/kernels" in loaded), ("pyarrow" in loaded)] == [not of_spark] * 2


def test_a_channel_has_the_last_word() -> None:
    given = {DAEMON: "pyspark.daemon", "spark.ui.enabled": "true", "spark.executor.cores": "4"}
    assert spark_properties(given) == given


def test_where_tasks_alone_find_binlane_the_daemon_is_spark_s_own() -> None:
    assert DAEMON not in spark_properties({"spark.submit.pyFiles": "binlane.zip"})


@contextmanager
def daemon(module: str) -> Iterator[int]:
    """The daemon's port."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(PROJECT / "plugins"),
        "PYTHON_WORKER_FACTORY_SECRET": "made up",
    }
    command = [sys.executable, "-m", module, "pyspark.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as running:
        assert running.stdout is not None
        try:
            yield number(running.stdout)
        finally:
            # the end of its input tells it to go, with its workers
            running.communicate(timeout=60)


def number(stream: IO[bytes]) -> int:
    return int.from_bytes(stream.read(4), "big")
