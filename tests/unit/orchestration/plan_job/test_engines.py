"""What ``--engine`` names, where it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.config import ChannelConfig, load_channel
from binlane.errors import ConfigError
from binlane.orchestration.commands.run import Call
from binlane.orchestration.plan_job.engines import PLAN_ENGINES
from binlane.orchestration.plan_job.jvm_options import LOADING_JOB
from binlane.orchestration.plan_job.spark_submit import INDEX_JOB, PLAN_JOB
from binlane.orchestration.plan_job.window_engine import engine_for
from binlane.work.files import WorkFolder


def test_without_spark_submit_the_way_without_spark_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"expected spark-submit on PATH, found none; .*or use --engine local"):
        PLAN_ENGINES["spark"](channel(tmp_path), WorkFolder(str(tmp_path / "work")))


def test_the_job_s_file_is_in_a_folder_that_hides_no_other_package_s_modules() -> None:
    """Spark puts that folder on the driver's path."""
    assert sorted(file.name for file in PLAN_JOB.parent.glob("*.py")) == [
        "__init__.py",
        INDEX_JOB.name,
        PLAN_JOB.name,
        LOADING_JOB.name,
    ]


def test_an_engine_that_is_not_there_is_refused_with_the_others(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^--engine: expected one of local, spark, or package\.module:Class; got 'flink'$"
    ):
        Call("shop", tmp_path, None, None, None, "flink")


@pytest.mark.parametrize(
    ("word", "segments", "told"),
    [
        ("auto", 1, "local (auto: 1 segment, fewer than 8)"),
        ("auto", 7, "local (auto: 7 segments, fewer than 8)"),
        ("auto", 8, "spark (auto: 8 segments, not fewer than 8)"),
        ("spark", 1, "spark"),
        ("local", 1000, "local"),
        ("package.module:function", 1, "package.module:function"),
    ],
)
def test_auto_takes_spark_from_min_segments_on(word: str, segments: int, told: str, tmp_path: Path) -> None:
    engine = engine_for(channel(tmp_path), word, segments)
    assert (str(engine), engine.word) == (told, told.partition(" ")[0])


def channel(folder: Path) -> ChannelConfig:
    """A channel with its required keys."""
    file = folder / "channels" / "shop.toml"
    file.parent.mkdir()
    file.write_text('[source]\nconnection = "a"\n[target]\nconnection = "b"\n')
    return load_channel(file, {})
