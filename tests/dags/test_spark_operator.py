"""The plan job's task: a failed job is tried again only where the error that it names is one to try again, and each
is submitted with the archive of classes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from binlane.config import load_channel
from binlane.errors import BinlaneError, UnsupportedEventError, WorkError
from binlane.orchestration.plan_job.jvm_options import write_class_archive
from binlane.work.plan_job.errors import as_line
from tests.spark.filter_task import Told, task
from tests.spark.spark_machine import spark_machine

ANSWERING = f"""#!{sys.executable}
import os, re, sys
from pathlib import Path
from binlane.work.files import WorkFolder
from binlane.work.plan_job.made import TOKEN, answer, note_made
work, properties = (sys.argv[sys.argv.index(name) + 1] for name in ("--work", "--properties-file"))
print(os.environ["SPARK_SUBMIT_OPTS"])
note_made(WorkFolder(work), WorkFolder(work), {{}}, {{}})
answer(work, re.search(re.escape(TOKEN) + "=(.*)", Path(properties).read_text())[1])
"""
"""A spark-submit that prints its JVM's options and leaves the answer of a job that has made nothing."""
NOISE = "26/11/22 09:41:37 INFO MemoryStore: MemoryStore cleared"


def submitted(folder: Path, monkeypatch: pytest.MonkeyPatch, *said: str) -> None:
    """The operator's task, with a program in the place of spark-submit that prints these lines and ends with 1."""
    program = folder / "spark-submit"
    program.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join((NOISE, *said, NOISE)) + "\nEND\nexit 1\n")
    program.chmod(0o700)
    submit(folder, folder, monkeypatch)


def submit(programs: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Execute the operator's task with the spark-submit of a folder."""
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AIRFLOW_CONN_MADE_UP_SPARK", "spark://local")
    file = folder / "channels" / "orders.toml"
    file.parent.mkdir()
    file.write_text('[source]\nconnection = "a"\n[target]\nconnection = "b"\n[spark]\nconnection = "made_up_spark"\n')
    task(load_channel(file, {}), str(folder)).execute(Told().context)


def test_a_job_s_own_error_that_trying_again_only_meets_again_fails_the_task_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = UnsupportedEventError("binlog.7:4: LOAD XML\nhint: ä")
    with pytest.raises(AirflowFailException, match=r"^UnsupportedEventError: binlog\.7:4: LOAD XML\nhint: ä$"):
        submitted(tmp_path, monkeypatch, as_line(error))


def test_a_job_s_own_error_that_may_pass_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BinlaneError, match="no route") as raised:
        submitted(tmp_path, monkeypatch, as_line(WorkError("no route")))
    assert raised.type is WorkError


def test_a_job_that_names_no_error_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AirflowException, match="Error code is: 1") as raised:
        submitted(tmp_path, monkeypatch, "java.lang.OutOfMemoryError: heap")
    assert raised.type is AirflowException


def test_the_task_submits_with_the_archive_of_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spark_machine(tmp_path, monkeypatch)
    archive = write_class_archive()
    (tmp_path / "bin" / "spark-submit").write_text(ANSWERING)
    submit(tmp_path / "bin", tmp_path, monkeypatch)
    said = capsys.readouterr().out
    assert "-Dmine=1 " in said
    assert f"-XX:SharedArchiveFile={archive} " in said
