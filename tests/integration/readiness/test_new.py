"""The first window of a channel that `binlane new` has written, from a log that begins with an installation."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.model import Flavor
from lab.servers import private_server
from tests.conftest import requires_mysql
from tests.integration.readiness.test_grants import grant
from tests.integration.window.conftest import CHANNEL, Channel, run_on

INSTALLATION = (
    "CREATE USER 'admin'@'10.0.0.%' IDENTIFIED BY 'Secret-4711'",
    "GRANT ALL ON *.* TO 'admin'@'10.0.0.%' WITH GRANT OPTION",
    "FLUSH PRIVILEGES",
    "INSERT INTO mysql.time_zone_name VALUES ('Here/There', 4711)",
    "DROP USER 'admin'@'10.0.0.%'",
    "CREATE DATABASE shop",
    "CREATE TABLE shop.t (id INT PRIMARY KEY)",
    "INSERT INTO shop.t VALUES (1), (2), (3)",
)


@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_the_first_window_survives_an_old_log(
    flavor: Flavor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        private_server(tmp_path / "source", flavor, ["--server-id=11"]) as source,
        private_server(tmp_path / "target", flavor, ["--server-id=12"]) as target,
    ):
        run_on(source, *INSTALLATION)
        channel = Channel(source, target, tmp_path / "project")
        (channel.channels / f"{CHANNEL}.toml").unlink()
        assert channel.cli("new", CHANNEL, "--source", "source_server", "--target", "target_server") == 0
        for part, server in (("source", source), ("target", target)):
            run_on(server, f"CREATE USER test_{part} IDENTIFIED BY '{server.password}'", log=False)
            channel.connect(f"{part}_server", server, f"test_{part}")
        grant(channel, capsys)
        assert channel.cli("init", CHANNEL, "--start", "oldest") == 0, capsys.readouterr().err
        assert channel.run() is not None
        assert target.query("SELECT id FROM shop.t ORDER BY id") == [(1,), (2,), (3,)]
        assert target.query("SELECT COUNT(*) FROM mysql.time_zone_name WHERE name = 'Here/There'") == [(0,)]
