"""The file of a new channel."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from binlane.config import load_channel
from binlane.errors import ConfigError
from binlane.orchestration.commands.setup.new import new


def test_the_file_is_a_channel_that_leaves_accounts_out_and_says_why(tmp_path: Path) -> None:
    said = new("shop", tmp_path, "db1", "db2", "spark_default")

    channel = load_channel(tmp_path / "shop.toml", {})
    assert (channel.source.connection, channel.target.connection) == ("db1", "db2")
    assert channel.filter.kinds == {"accounts": "ignore"}
    assert channel.verify.after_window == "window"
    assert channel.filter.exclude_databases == ("mysql", "sys")
    assert "accounts = " in (tmp_path / "shop.toml").read_text().split("# An old log begins with")[1]
    assert said.index("export AIRFLOW_CONN_DB1=") < said.index("export AIRFLOW_CONN_DB2=")
    assert said.index("export AIRFLOW_CONN_DB2=") < said.index("binlane doctor shop")


def test_a_file_that_is_there_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "shop.toml"
    file.write_text("mine")

    with pytest.raises(ConfigError, match="never overwritten"):
        new("shop", tmp_path, "db1", "db2", "spark_default")
    assert file.read_text() == "mine"


@pytest.mark.parametrize("name", ["../shop", "a/b", "", "a.b", "x" * 65, "shop\n"])
def test_only_a_channel_s_name_becomes_a_file(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "channels"

    with pytest.raises(ConfigError, match="the file's name is the channel's"):
        new(name, folder, "db1", "db2", "spark_default")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("hostile", ['a"b', "a\nb = 1\n[rename]", "\\", "a\x7f\x1b", "é𝄞", "{name}"])
def test_a_hostile_connection_name_stays_one_string_of_the_file(hostile: str, tmp_path: Path) -> None:
    said = new("shop", tmp_path, hostile, "db2", "spark_default")

    assert "a connection in Airflow" in said
    assert "export AIRFLOW_CONN_DB2=" in said
    assert len(said.splitlines()) == 6
    assert tomllib.loads((tmp_path / "shop.toml").read_text())["source"] == {"connection": hostile}


@pytest.mark.parametrize("wrong", ["", "\udcff"])
def test_an_invalid_connection_name_is_refused_before_a_file_is_written(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--target: expected the id of a connection"):
        new("shop", tmp_path / "channels", "db1", wrong, "spark_default")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_would_be_no_channel_s_is_not_left_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"source.connection: expected"):
        new("shop", tmp_path, " ", "db2", "spark_default")
    assert list(tmp_path.iterdir()) == []
    new("shop", tmp_path, "db1", "db2", "spark_default")
