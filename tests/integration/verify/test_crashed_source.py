"""A source that crashed and has rows that its log has lost: all is not well before all rows have been compared."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lab.servers import PrivateServer, private_server
from tests.integration.window.conftest import CHANNEL, Channel, clean_servers, fresh_channel, run_on

__all__ = ["clean_servers"]


def test_a_log_that_may_lack_transactions_behind_a_crash_is_told_until_all_rows_are_compared(
    tmp_path: Path,
    mariadb_target: PrivateServer,
    clean_servers: Callable[[PrivateServer], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    # InnoDB writes each transaction to the disk, and the log is in memory alone: sync_binlog is 0
    options = ("--innodb-flush-log-at-trx-commit=1",)
    with private_server(tmp_path / "data", options=options, name="crashing", durable=False) as source:
        channel: Channel = fresh_channel(source, mariadb_target, tmp_path / "project", clean_servers)
        run_on(source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
        run_on(source, "INSERT INTO tenant_1.t VALUES (1)")
        assert channel.run() is not None
        assert channel.cli("verify", CHANNEL, "--full") == 0
        file, end = source.query("SHOW MASTER STATUS")[0][:2]
        run_on(source, "INSERT INTO tenant_1.t VALUES (2)")
        # with a log the commit itself is not synced: a restart would take back what its log does not name. A
        # transaction without one is, and with it all that was written before
        run_on(source, "INSERT INTO tenant_1.t VALUES (9)", "DELETE FROM tenant_1.t WHERE id = 9", log=False)
        source.kill()
        with (source.datadir / file).open("r+b") as log:
            log.truncate(end)
        source.restart()
        assert source.query("SELECT id FROM tenant_1.t") == [(1,), (2,)]
        # the usual consequence, and it says nothing of before
        run_on(source, "SET GLOBAL sync_binlog = 1")
        for number in (3, 4):
            run_on(source, f"INSERT INTO tenant_1.t VALUES ({number})")
            assert channel.run() is not None
            assert channel.cli("verify", CHANNEL) == 0, "it compares what the log names"
            capsys.readouterr()
            assert channel.cli("check", CHANNEL) == 1
            assert f"unverified: the source crashed in {file}" in capsys.readouterr().out
        assert channel.cli("verify", CHANNEL, "--full") != 0, "row 2 is missing on the target"
        run_on(mariadb_target, "INSERT INTO tenant_1.t VALUES (2)", log=False)
        assert channel.cli("verify", CHANNEL, "--full") == 0
        capsys.readouterr()
        assert channel.cli("check", CHANNEL) == 0, capsys.readouterr().out
        source.restart()
        run_on(source, "INSERT INTO tenant_1.t VALUES (5)")
        assert channel.run() is not None
        assert channel.cli("check", CHANNEL) == 0, "a shutdown loses nothing"
