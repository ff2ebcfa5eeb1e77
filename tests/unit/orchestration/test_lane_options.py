"""A channel file's times, as lanes use them."""

from pathlib import Path

import pytest

from binlane.config import load_channel
from binlane.orchestration.lane_options import apply_options


@pytest.mark.parametrize("lease", [5, 60, 86_400])
def test_a_lane_s_heartbeat_comes_several_times_in_its_lease(tmp_path: Path, lease: int) -> None:
    file = tmp_path / "shop.toml"
    servers = '[source]\nconnection = "a"\n[target]\nconnection = "b"\n'
    file.write_text(f"{servers}[lanes]\ncount = 2\n[apply]\nlease_seconds = {lease}\n")
    options = apply_options(load_channel(file, {}))
    assert options.lease_time == lease
    assert options.heartbeat_interval * 5 <= lease
