"""``binlane status`` shows the errors that stop a window, and those that are solved only if it is asked for them."""

from __future__ import annotations

import json
import re
from typing import Final

import pytest

from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, channel_of, clean_servers, run_on

__all__ = ["channel_of", "clean_servers"]

ERROR: Final = re.compile(r"\b1062\b.{1,40}?Duplicate")
"""With the table's frame in it, if the terminal is narrow."""
BOTH: Final = pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])


@BOTH
def test_an_error_is_shown_until_its_lane_has_gone_on_and_then_only_if_it_is_asked_for(
    family: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    channel.init()

    def status(*options: str) -> str:
        capsys.readouterr()
        assert channel.cli("status", CHANNEL, *options) == 0
        return " ".join(capsys.readouterr().out.split())

    def solved() -> list[bool]:
        return [error["solved"] for error in json.loads(status("--json"))["errors"]]

    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY)")
    assert channel.cli("run", CHANNEL) == 0
    assert ("errors" in status("--errors"), solved()) == (False, [])
    run_on(channel.target, "INSERT INTO app.t VALUES (1)", log=False)
    run_on(channel.source, "INSERT INTO app.t VALUES (1)")
    assert channel.cli("run", CHANNEL) == 1
    stopped = status()
    assert len(ERROR.findall(stopped)) == 2, stopped  # health, and the table
    assert "--errors" not in stopped
    assert solved() == [False]
    run_on(channel.target, "DELETE FROM app.t", log=False)
    assert channel.cli("run", CHANNEL) == 0
    assert solved() == [True]
    done = status()
    assert ERROR.findall(done) == []
    assert f"1 solved; `binlane status {CHANNEL} --errors` lists them" in done
    assert len(ERROR.findall(status("--errors"))) == 1
    assert channel.cli("status", "--all", "--errors") == 2
    assert "`binlane status CHANNEL --errors`" in capsys.readouterr().err
