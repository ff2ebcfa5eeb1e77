"""A target that comes back from an older backup of the whole server: its watermark is older, and goes on from there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.errors import TargetIdentityError
from lab.servers import PrivateServer, private_server
from tests.integration.window.conftest import CHANNEL, Channel, fresh_channel


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_windows_behind_the_restored_watermark_are_run_again_ddl_included(
    family: str, request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> None:
    source: PrivateServer = request.getfixturevalue(f"{family}_source")

    def clean_source(server: PrivateServer) -> None:
        # the target is new, and gone when the test ends
        if server is source:
            clean_servers(server)

    with private_server(tmp_path / "data", source.flavor, name="restored", durable=False) as target:
        channel: Channel = fresh_channel(source, target, tmp_path / "project", clean_source)
        channel.traffic(30)
        channel.run()
        before = channel.status.channel.watermark
        target.stop()
        shutil.copytree(tmp_path / "data", tmp_path / "backup")
        target.restart()
        channel.traffic(30, seed=2)
        channel.run()
        target.stop()
        shutil.rmtree(tmp_path / "data")
        shutil.copytree(tmp_path / "backup", tmp_path / "data")
        target.restart()
        assert channel.status.channel.watermark == before
        with pytest.raises(TargetIdentityError, match=r"expected a target that has reached seqno"):
            channel.run()
        assert channel.cli("adopt-target", CHANNEL, "--yes") == 0
        channel.run()
        channel.assert_equal()
