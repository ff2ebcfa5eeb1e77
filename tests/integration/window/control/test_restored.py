"""A target that comes back from an older backup of the whole server: its watermark is older, and goes on from there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.apply.ddl.run import gtid_uuid
from binlane.errors import TargetIdentityError
from binlane.orchestration.retention import remove_folders
from binlane.servers.engines import engine_of
from binlane.state.channels import Channel as State
from binlane.state.records.coverage import CoverageRow, read_covered
from lab.servers import PrivateServer, private_server
from tests.integration.window.conftest import CHANNEL, Channel, fresh_channel


def execute_ddl_beyond(target: PrivateServer, channel: State) -> None:
    """Execute the GTID of a DDL behind the watermark."""
    with target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET gtid_next = '{gtid_uuid(channel.uuid)}:{channel.watermark.seqno + 1}'")
        cursor.execute("BEGIN")
        cursor.execute("COMMIT")


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_windows_behind_the_restored_watermark_are_run_again_ddl_included(
    family: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    source: PrivateServer = request.getfixturevalue(f"{family}_source")

    def clean_source(server: PrivateServer) -> None:
        # the target is new, and gone when the test ends
        if server is source:
            clean_servers(server)

    with private_server(tmp_path / "data", source.flavor, name="restored", durable=False) as target:
        channel: Channel = fresh_channel(source, target, tmp_path / "project", clean_source)
        channel.write_channel("[work]\nkeep_windows = 1\n")
        # of which the target that comes back says that their folders are there
        for seed in range(3):
            channel.traffic(30, seed=10 + seed)
            channel.run()
        assert channel.cli("verify", CHANNEL, "--full") == 0
        assert channel.status.verified != {}
        before = channel.status.channel.watermark
        target.stop()
        shutil.copytree(tmp_path / "data", tmp_path / "backup")
        target.restart()
        for seed in range(2):
            channel.traffic(30, seed=2 + seed)
            channel.run()
        remove_folders(channel.config, channel.endpoints)
        target.stop()
        shutil.rmtree(tmp_path / "data")
        shutil.copytree(tmp_path / "backup", tmp_path / "data")
        target.restart()
        assert channel.status.channel.watermark == before
        with pytest.raises(TargetIdentityError, match=r"reached seqno .*: a server that was killed has lost commits"):
            channel.run()
        if family == "mysql":
            # as if a dump had been loaded into a server that keeps its GTIDs; then the way out of the message
            execute_ddl_beyond(target, channel.status.channel)
            assert channel.cli("adopt-target", CHANNEL, "--yes") == 1
            said = " ".join(capsys.readouterr().err.split())
            assert f"{gtid_uuid(channel.status.channel.uuid)}:{before.seqno + 1} executed" in said
            target.query("RESET BINARY LOGS AND GTIDS")
        assert channel.cli("adopt-target", CHANNEL, "--yes") == 0
        # another server was compared
        assert channel.status.verified == {}
        with engine_of(channel.endpoints.target).connect() as connection:
            assert read_covered(connection, CHANNEL) == CoverageRow()
        # the last window's rows are in a folder that the lost timeline has removed
        assert channel.cli("verify", CHANNEL) == 1
        assert "verify with --full" in " ".join(capsys.readouterr().err.split())
        channel.run()
        channel.assert_equal()
        for options in ((), ("--full",)):
            assert channel.cli("verify", CHANNEL, *options) == 0, capsys.readouterr().err
