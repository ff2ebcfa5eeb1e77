"""A target that takes names in capitals and small letters for one (lower_case_table_names = 1)."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.servers import private_server
from tests.integration.restore.scene import contents, scene_of
from tests.integration.window.conftest import Channel, channel, channel_of, clean_servers, run_on

__all__ = ["channel", "channel_of", "clean_servers"]


def test_a_name_that_is_another_one_s_there_is_refused_and_drops_nothing(
    channel: Channel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel)
    with private_server(tmp_path / "folding", options=["--lower-case-table-names=1"], durable=False) as target:
        channel.connect("target_server", target)
        run_on(target, "CREATE DATABASE back_unfinished", "CREATE TABLE back_unfinished.victim (a INT)")
        assert scene.restore("--yes", "--as", "BACK", base="one.sql") != 0
        assert "give it in small letters: --as back" in " ".join(capsys.readouterr().err.split())
        assert target.query("SHOW TABLES IN back_unfinished") == [("victim",)]
        run_on(target, "DROP DATABASE back_unfinished")
        assert scene.restore("--yes", base="one.sql") == 0, capsys.readouterr().err
        assert contents(target, "back")["rows of a"] == scene.expected["rows of a"]
