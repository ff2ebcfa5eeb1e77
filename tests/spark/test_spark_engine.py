"""What Spark makes of the plan job: stages with names, no shuffle, and a failed task that is tried again alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).parents[2]
JOB = """
import os, sys
from pathlib import Path
from pyspark.sql import SparkSession
from binlane import spark_engine
from binlane.plan.segment.map import ScanSummary
from binlane.spark_engine import SubmittedEngine
from binlane.work.plan_job.wire import from_wire, to_wire

FOLDER = sys.argv[1]

def task(name):
    if name == "c" and not os.path.exists(FOLDER + "/failed"):
        open(FOLDER + "/failed", "w").close()
        raise OSError("lost for once")
    return to_wire(ScanSummary, ScanSummary({name.upper(): 1}, (), ()))

def databases(results):
    return [database for result in results for database in from_wire(ScanSummary, result).databases]

settings = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": FOLDER, "spark.ui.enabled": "false",
    "spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
builder = SparkSession.builder.master("local[1,4]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
print(databases(SubmittedEngine(spark).run("scan", task, [["a", "b"], ["c", "d"], ["e"]])))
spark_engine.MOST_BATCHES = 2
long = SubmittedEngine(spark).run("scan", task, [["f", "g"], ["h"], ["i"], ["j"], ["k"]])
print(databases([next(long)]), databases(long))
spark.stop()
"""


@pytest.mark.skipif(shutil.which("java") is None, reason="no java on PATH: no Spark to test with")
def test_stages_have_names_and_no_shuffle_and_a_failed_task_is_tried_again_alone(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    ours = {"PYTHONPATH": str(PROJECT / "plugins"), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, str(tmp_path / "job.py"), str(tmp_path)],
        env={**os.environ, **ours},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-2:] == [
        "['A', 'B', 'C', 'D', 'E']",
        "['F'] ['G', 'H', 'I', 'J', 'K']",
    ], done.stderr[-3000:]
    (log,) = (path for path in tmp_path.iterdir() if path.name.startswith(("local-", "app-")))
    events = [json.loads(line) for line in log.read_text().splitlines()]
    jobs = of_kind(events, "JobStart")
    # a long window's results come to the driver in parts
    assert [(job["Properties"]["spark.job.description"], number_of_tasks(job)) for job in jobs] == [
        ("scan: files 5, tasks 3", 3),
        ("scan: files 6, tasks 5 from 1", 2),
        ("scan: files 6, tasks 5 from 3", 2),
        ("scan: files 6, tasks 5 from 5", 1),
    ]
    tasks = of_kind(events, "TaskEnd")
    ended = [task for task in tasks if task["Stage ID"] == 0]
    assert Counter(task["Task Info"]["Index"] for task in ended if task["Task End Reason"]["Reason"] == "Success") == {
        0: 1,
        1: 1,
        2: 1,
    }
    (failed,) = (task for task in ended if task["Task End Reason"]["Reason"] != "Success")
    assert (failed["Task Info"]["Index"], failed["Task Info"]["Attempt"]) == (1, 0)
    for task in tasks:
        written = task.get("Task Metrics", {}).get("Shuffle Write Metrics", {})
        assert written.get("Shuffle Bytes Written", 0) == 0


def number_of_tasks(job: dict[str, Any]) -> int:
    (stage,) = job["Stage Infos"]
    return int(stage["Number of Tasks"])


def of_kind(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["Event"] == f"SparkListener{kind}"]
