"""What ``--engine`` names, where it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.config import load_channel
from binlane.errors import ConfigError
from binlane.orchestration.commands.run import Call
from binlane.orchestration.filter_engines import FILTER_ENGINES
from binlane.work.files import WorkFolder


def test_spark_without_the_job_s_file_names_it_and_the_way_without_it(tmp_path: Path) -> None:
    file = tmp_path / "elsewhere" / "shop.toml"
    file.parent.mkdir()
    file.write_text('[source]\nconnection = "a"\n[target]\nconnection = "b"\n')
    channel = load_channel(file, {})
    script = channel.root / "spark_jobs" / "event_metadata_filter.py"
    with pytest.raises(ConfigError, match=rf"expected the job's file {script}, .*or use --engine local"):
        FILTER_ENGINES["spark"](channel, WorkFolder(str(tmp_path / "work")))


def test_an_engine_that_is_not_there_is_refused_with_the_others(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"^--engine: expected one of local, spark, or package\.module:Class; got 'flink'$"
    ):
        Call("shop", tmp_path, None, None, None, "flink")
