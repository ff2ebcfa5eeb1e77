"""A first copy, and a channel that begins now, while a dump is being loaded into the source past its log."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.bootstrap import first_copy
from binlane.model import Flavor
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.bootstrap.test_bootstrap import bootstrap
from tests.integration.window.conftest import CHANNEL, Channel, run_on

PUT_IN = {
    Flavor.MYSQL: ("11111111-2222-3333-4444-555555555555:1-7", "SET GLOBAL gtid_purged = '+{}'"),
    Flavor.MARIADB: ("5-77-1000", "SET GLOBAL gtid_slave_pos = '{}'"),
}
"""A dump's transactions, and the statement of its head."""
TABLES = ("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "INSERT INTO shop.t VALUES (1), (2)")


@requires_mysql
def test_no_channel_begins_while_a_dump_is_loaded_whose_head_has_been_run(
    tmp_path: Path, mysql_target: PrivateServer, clean_servers: Callable[[PrivateServer], None],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    clean_servers(mysql_target)
    loaded, head = PUT_IN[Flavor.MYSQL]
    with private_server(tmp_path / "source", Flavor.MYSQL, durable=False) as source:
        channel = Channel(source, mysql_target, tmp_path)
        run_on(source, *TABLES)
        with contextlib.closing(source.connect(autocommit=True)) as loading, loading.cursor() as cursor:
            cursor.execute("SET SESSION sql_log_bin = 0")
            # a connection without the log alone is none of a dump
            assert channel.cli("init", CHANNEL, "--start", "now") == 0
            clean_servers(mysql_target)
            cursor.execute(head.format(loaded))
            cursor.execute("SELECT CONNECTION_ID()")
            [(number,)] = cursor.fetchall()
            for refused in (("init", CHANNEL, "--start", "now"), ("bootstrap", CHANNEL)):
                assert channel.cli(*refused) == 1
                said = " ".join(capsys.readouterr().err.split())
                assert f"transactions of a dump, {loaded} (gtid_purged), found connection {number}: " in said
            cursor.execute("INSERT INTO shop.t VALUES (3)")
        assert bootstrap(channel) == 0
        assert f"no file of the log has the transactions {loaded}" in capsys.readouterr().out
        run_on(source, "INSERT INTO shop.t VALUES (4)")
        assert channel.run() is not None
        channel.assert_equal()


@pytest.mark.parametrize(
    ("flavor", "step"),
    [
        # behind the snapshot the copy's lock holds the statement up
        (Flavor.MARIADB, "shared_snapshot"),
        pytest.param(Flavor.MYSQL, "make_behind_rows", marks=requires_mysql),
    ],
)
def test_a_copy_is_not_complete_if_a_dump_was_loaded_past_the_log_meanwhile(
    flavor: Flavor,
    step: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    clean_servers: Callable[[PrivateServer], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target: PrivateServer = request.getfixturevalue(f"{flavor}_target")
    clean_servers(target)
    loaded, head = PUT_IN[flavor]
    with private_server(tmp_path / "source", flavor, durable=False) as source:
        channel = Channel(source, target, tmp_path)
        run_on(source, *TABLES)

        before = getattr(first_copy, step)

        def meanwhile(*arguments: object, **named: object) -> object:
            waits = "SET SESSION lock_wait_timeout = 20"
            run_on(source, waits, "INSERT INTO shop.t VALUES (3)", head.format(loaded), log=False)
            return before(*arguments, **named)

        with monkeypatch.context() as patch:
            patch.setattr(first_copy, step, meanwhile)
            assert bootstrap(channel) == 1
        assert f"while its tables are copied, found {loaded} " in " ".join(capsys.readouterr().err.split())
        assert bootstrap(channel) == 0
        run_on(source, "INSERT INTO shop.t VALUES (4)")
        assert channel.run() is not None
        channel.assert_equal()
