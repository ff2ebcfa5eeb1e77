"""A Spark application that has lost its executors for good: the job ends, and the task's next try submits it anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

from binlane.errors import ExecutorsLostError
from binlane.work.plan_job.errors import error_of
from lab.servers import free_port

pytestmark = pytest.mark.trial

PROJECT = Path(__file__).parents[2]
LOST_SECONDS = 4
SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
JOB = """
import sys, time
from pyspark.sql import SparkSession
from binlane.errors import BinlaneError
from binlane.spark_engine import SubmittedEngine
from binlane.work.plan_job.errors import as_line

def task(name):
    if name == "fails":
        raise RuntimeError("the task's own error")
    open(FOLDER + "/begun", "w").close()
    time.sleep(600)
    return b""

MASTER, FOLDER, NAME, LOST_SECONDS = sys.argv[1:]
spark = SparkSession.builder.master(MASTER).config("spark.ui.enabled", "false").getOrCreate()
open(FOLDER + "/submitted", "w").close()
try:
    list(SubmittedEngine(spark, lost_seconds=float(LOST_SECONDS)).run("map", task, [[NAME]]))
except BinlaneError as exc:
    print(as_line(exc))
finally:
    spark.stop()
"""


@contextmanager
def running(*command: str) -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "plugins"), "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def test_a_job_that_has_lost_its_executors_ends_with_an_error_to_be_tried_again(tmp_path: Path) -> None:
    port = str(free_port())
    master = f"spark://127.0.0.1:{port}"
    daemons = "org.apache.spark.deploy"
    (tmp_path / "job.py").write_text(JOB)
    with ExitStack() as stack:

        def start(*command: str) -> subprocess.Popen[str]:
            return stack.enter_context(running(*command))

        start(str(SPARK_CLASS), f"{daemons}.master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0")
        job = start(sys.executable, str(tmp_path / "job.py"), master, str(tmp_path), "one", str(LOST_SECONDS))
        # one that has had no executor yet waits for its turn, for longer than lost ones are waited for
        while not (tmp_path / "submitted").exists():
            assert job.poll() is None, job.communicate()[0]
            time.sleep(0.2)
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(3 * LOST_SECONDS)
        worker = start(
            str(SPARK_CLASS), f"{daemons}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1",
            "--memory", "1g", "--work-dir", str(tmp_path / "work"), master,
        )  # fmt: skip
        while not (tmp_path / "begun").exists():
            assert job.poll() is None, job.communicate()[0]
            time.sleep(0.2)
        # its executors end with it, and there is no other
        os.killpg(worker.pid, signal.SIGKILL)
        said, _ = job.communicate(timeout=300)
    found = error_of("job", job.returncode, said)
    assert isinstance(found, ExecutorsLostError), said
    assert found.retryable
    assert f"got none for {LOST_SECONDS} s" in str(found)


def test_another_error_of_a_job_is_not_taken_for_lost_executors(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    command = (sys.executable, str(tmp_path / "job.py"), "local[1]", str(tmp_path), "fails", str(LOST_SECONDS))
    with running(*command) as job:
        said, _ = job.communicate(timeout=300)
    assert job.returncode != 0
    assert "RuntimeError: the task's own error" in said
    assert not isinstance(error_of("job", job.returncode, said), ExecutorsLostError)
