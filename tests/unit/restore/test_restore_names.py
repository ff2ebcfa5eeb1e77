"""The names of restores."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import ConfigError
from binlane.orchestration.commands.copies.restore_plan import EndRequest, RestoreRequest, plan_restore


@pytest.mark.parametrize("name", [None, "restore_eu"], ids=["made from --as", "given"])
def test_a_restore_has_no_channel_s_name(name: str | None, tmp_path: Path) -> None:
    """Who asks for it could have the files of the channel's open window removed."""
    channels = tmp_path / "channels"
    channels.mkdir()
    (channels / "restore_eu.toml").write_text('[source]\nconnection = "a"\n[target]\nconnection = "b"\n')
    request = RestoreRequest(name, "log", "source", ("shop",), (), "eu", EndRequest("now", None), None, "target")

    with pytest.raises(ConfigError, match="restore restore_eu: expected a name that no channel has"):
        plan_restore(request, channels)
