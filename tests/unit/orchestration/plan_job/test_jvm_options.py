"""The options of Spark's JVM: the archive of its classes, whose it is, and what is left as it is without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from binlane.config import load_channel
from binlane.errors import BinlaneError, ConfigError
from binlane.orchestration.plan_job.engines import PLAN_ENGINES
from binlane.orchestration.plan_job.jvm_options import OPTIONS, with_jvm_options, write_class_archive
from binlane.work.files import WorkFolder
from tests.spark.spark_machine import spark_machine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """See ``spark_machine``."""
    spark_machine(tmp_path, monkeypatch)
    return tmp_path


def options() -> list[str]:
    """The options of the next submit's JVM."""
    environment = with_jvm_options(os.environ)
    assert {**environment, OPTIONS: ""} == {**os.environ, OPTIONS: "", "PYTHONSAFEPATH": "1"}
    return environment[OPTIONS].split()


WITHOUT_ARCHIVE = ["-XX:TieredStopAtLevel=1", "-Dmine=1"]
"""The site's own options are the last, so they win."""


def test_an_archive_is_read_from_the_next_submit_on_beside_the_options_that_are_given(machine: Path) -> None:
    assert options() == WITHOUT_ARCHIVE
    archive = write_class_archive()
    assert archive.parent == machine / "cache" / "binlane"
    given, last = options()[:2], options()[-1]
    assert (given, last) == (WITHOUT_ARCHIVE, f"-XX:SharedArchiveFile={archive}")


def test_the_command_line_submits_with_the_archive(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write_class_archive()
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setenv("ENDS", "7")
    file = machine / "dags" / "channels" / "shop.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[source]\nconnection = "a"\n[target]\nconnection = "b"\n')
    with pytest.raises(BinlaneError, match=f"-XX:SharedArchiveFile={archive}"):
        PLAN_ENGINES["spark"](load_channel(file, {}), WorkFolder(str(machine / "work")))


@pytest.mark.parametrize("replaced", ["spark/jars/a.jar", "java/lib/server/libjvm.so"])
def test_another_java_or_another_spark_has_an_archive_of_its_own(machine: Path, replaced: str) -> None:
    first = write_class_archive()
    (machine / replaced).write_text("another one")
    assert options() == WITHOUT_ARCHIVE
    os.utime(first, (0, 0))
    second = write_class_archive()
    assert sorted(second.parent.iterdir()) == [second]


def test_a_job_that_fails_leaves_no_archive(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENDS", "7")
    with pytest.raises(ConfigError, match=r"expected spark-submit to end with .*\.jsa\.\d+ written, it ended with 7"):
        write_class_archive()
    assert list((machine / "cache" / "binlane").iterdir()) == []


@pytest.mark.parametrize("missing", ["java/lib/server/libjvm.so", "spark/jars/a.jar", "bin/spark-submit"])
def test_what_is_missing_is_named_and_a_submit_goes_without(machine: Path, missing: str) -> None:
    (machine / missing).unlink()
    if missing.endswith(".jar"):
        (machine / missing).parent.rmdir()
    assert options() == WITHOUT_ARCHIVE
    with pytest.raises(ConfigError, match=r"^class archive: expected Java, spark-submit and a cache folder"):
        write_class_archive()
