"""What ``--engine`` names, where it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.config import load_channel
from binlane.errors import ConfigError
from binlane.orchestration.commands.run import Call
from binlane.orchestration.filter_engines import FILTER_ENGINES
from binlane.orchestration.spark import FILTER_JOB
from binlane.work.files import WorkFolder


def test_without_spark_submit_the_way_without_spark_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "elsewhere" / "shop.toml"
    file.parent.mkdir()
    file.write_text('[source]\nconnection = "a"\n[target]\nconnection = "b"\n')
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"expected spark-submit on PATH, found none; .*or use --engine local"):
        FILTER_ENGINES["spark"](load_channel(file, {}), WorkFolder(str(tmp_path / "work")))


def test_the_job_s_file_is_in_a_folder_that_hides_no_other_package_s_modules() -> None:
    """Spark puts that folder on the driver's path."""
    assert sorted(file.name for file in FILTER_JOB.parent.glob("*.py")) == ["__init__.py", FILTER_JOB.name]


def test_an_engine_that_is_not_there_is_refused_with_the_others(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^--engine: expected one of local, spark, or package\.module:Class; got 'flink'$"
    ):
        Call("shop", tmp_path, None, None, None, "flink")
