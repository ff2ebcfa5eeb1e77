"""A source that has no InnoDB: its windows and their verification."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.conftest import Started
from tests.integration.window.conftest import CHANNEL, fresh_channel, run_on


def test_a_source_without_innodb_is_read_as_any_other(
    started: Started,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    options = ("--innodb=OFF", "--default-storage-engine=MyISAM", "--default-tmp-storage-engine=MyISAM")
    source = started(Flavor.MARIADB, "mariadb_without_innodb", None, options)
    channel = fresh_channel(source, mariadb_target, tmp_path, clean_servers)
    channel.write_channel("allow_nontransactional = true\n")
    run_on(source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT) ENGINE=MyISAM")
    run_on(source, "INSERT INTO tenant_1.t VALUES (1, 0), (2, 2)", "UPDATE tenant_1.t SET n = n + 1")
    assert channel.cli("run", CHANNEL) == 0
    channel.assert_equal()
    assert channel.cli("verify", CHANNEL, "--full") == 0
