"""The index of an archive on a real Spark: the files that processes of this machine make, byte for byte."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from binlane.errors import BinlaneError, ConfigError
from binlane.orchestration.plan_job.index_engines import make_index_by
from binlane.restore.archive_index import folder_of
from binlane.restore.indexing import Made, make_index
from tests.spark.test_event_metadata_filter import PROJECT
from tests.unit.source.archives import archive, log_file

FILES = 4
LOCAL = {"spark.master": "local[2]", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def site(folder: Path) -> Path:
    """An archive whose third file is damaged."""
    files = [
        log_file(number, range(10 * number, 10 * number + 9), before=[(7, 10 * number - 2)])
        for number in range(1, FILES + 1)
    ]
    files[2] = files[2][:-60] + bytes(10) + files[2][-50:]
    archive(folder, *files)
    return folder


def index_of(folder: Path) -> dict[str, bytes]:
    return {name: folder_of(str(folder)).read(name) for name in folder_of(str(folder)).names()}


@pytest.mark.skipif(shutil.which("java") is None, reason="no java on PATH: no Spark to test with")
def test_spark_makes_the_same_index_and_tells_the_same_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "plugins"))
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    here, there = site(tmp_path / "here"), site(tmp_path / "there")
    expected = [*make_index(str(here))]
    found = [*make_index_by("spark", str(there), LOCAL)]
    assert [bool(each.fault) for each in expected] == [False, False, True]
    assert found == [Made(each.file, each.log_bytes, each.index_bytes, _of(there, each.fault)) for each in expected]
    assert index_of(there) == index_of(here)
    with pytest.raises(BinlaneError, match="expected a folder of binlog files, found no such folder"):
        [*make_index_by("spark", str(tmp_path / "nothing"), LOCAL)]


def _of(folder: Path, fault: str) -> str:
    return fault.replace(str(folder.with_name("here")), str(folder))


@pytest.mark.parametrize("word", ["auto", "flink", "package.module:function"])
def test_another_engine_is_refused(word: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"--engine: expected local or spark to index an archive, got '{word}'"):
        make_index_by(word, str(tmp_path), {})
