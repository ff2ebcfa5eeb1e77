"""Definitions that depend on the source's own files and on the order of its rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from lab.servers import private_server
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

FAMILIES = pytest.mark.parametrize("family", list(Flavor))


@FAMILIES
def test_a_tablespace_is_not_thrown_away_and_its_table_is_left_out_and_copied(
    channel_of: ChannelOf, family: Flavor
) -> None:
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    run_on(channel.source, "CREATE TABLE tenant_1.u (id INT PRIMARY KEY)", "INSERT INTO tenant_1.t VALUES (1), (2)")
    assert channel.run() is not None
    run_on(channel.source, "ALTER TABLE tenant_1.t DISCARD TABLESPACE", "INSERT INTO tenant_1.u VALUES (1)")
    for text in ("", "allow_unsafe = true\n"):
        channel.write_channel(text)
        with pytest.raises(PrecheckError, match=r"found DISCARD TABLESPACE; .*filter\.exclude_tables"):
            channel.run()
    assert channel.target.query("SELECT id FROM tenant_1.t ORDER BY id") == [(1,), (2,)]
    run_on(channel.source, "DROP TABLE tenant_1.t", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY)")
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (7)")
    channel.write_channel('[filter]\nexclude_tables = ["tenant_1.t"]\n')
    assert channel.run() is not None
    channel.write_channel()
    assert channel.cli("recopy", CHANNEL, "--table", "tenant_1.t", "--yes") == 0
    channel.assert_equal()


@FAMILIES
def test_folders_of_the_source_s_machine_are_none_of_the_target_s(tmp_path: Path, family: Flavor) -> None:
    """Both servers are of one machine: the target would take the source's files for its own."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    known = [f"--innodb-directories={place}"] if family is Flavor.MYSQL else []
    with private_server(tmp_path / "s", family, known) as source, private_server(tmp_path / "t", family) as target:
        run_on(source, "CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.c (id INT) DATA DIRECTORY = '{place}'")
        channel = Channel(source, target, tmp_path / "project")
        assert channel.cli("bootstrap", CHANNEL) == 0
        run_on(
            source,
            f"CREATE TABLE tenant_1.t (id INT PRIMARY KEY) DATA DIRECTORY = '{place}'",
            f"CREATE TABLE tenant_1.p (id INT PRIMARY KEY) PARTITION BY HASH (id) "
            f"(PARTITION p0 DATA DIRECTORY = '{place}', PARTITION p1)",
            "INSERT INTO tenant_1.t VALUES (1)",
            "INSERT INTO tenant_1.p VALUES (1), (2)",
            "INSERT INTO tenant_1.c VALUES (1)",
        )
        assert channel.run() is not None
        for table in "tpc":
            rows = f"SELECT id FROM tenant_1.{table} ORDER BY id"
            assert channel.target.query(rows) == channel.source.query(rows) != []
        assert channel.cli("verify", CHANNEL, "--full") == 0


@FAMILIES
def test_rows_are_numbered_in_the_order_of_a_primary_key_alone(channel_of: ChannelOf, family: Flavor) -> None:
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (v INT)")
    run_on(channel.source, "CREATE TABLE tenant_1.u (v INT PRIMARY KEY)")
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (3), (1)", "INSERT INTO tenant_1.u VALUES (3), (1)")
    assert channel.run() is not None
    run_on(channel.source, "ALTER TABLE tenant_1.u ADD id INT AUTO_INCREMENT UNIQUE")
    assert channel.run() is not None
    channel.assert_equal()
    run_on(channel.source, "ALTER TABLE tenant_1.t ADD id INT AUTO_INCREMENT PRIMARY KEY")
    with pytest.raises(PrecheckError, match=r"found AUTO_INCREMENT for the rows there are of tenant_1\.t; .*recopy"):
        channel.run()
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    assert channel.cli("recopy", CHANNEL, "--table", "tenant_1.t", "--yes") == 0
    channel.assert_equal()


@FAMILIES
def test_rows_of_a_query_are_numbered_in_the_order_of_the_text_alone(channel_of: ChannelOf, family: Flavor) -> None:
    channel = channel_of(family, family)
    run_on(channel.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.k (v INT)")
    run_on(channel.source, "CREATE TABLE tenant_1.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")
    run_on(channel.source, "INSERT INTO tenant_1.k VALUES (3), (1)")
    assert channel.run() is not None
    logged = "SET binlog_format = STATEMENT"
    into = "INSERT INTO tenant_1.t (v)"
    run_on(channel.source, logged, f"{into} SELECT v FROM tenant_1.k ORDER BY v", f"{into} VALUES (5), (6)")
    run_on(
        channel.source, logged, f"{into} SELECT MAX(v) FROM tenant_1.k", "CREATE TABLE tenant_1.made LIKE tenant_1.t"
    )
    assert channel.run() is not None
    channel.assert_equal()
    run_on(channel.source, logged, f"{into} SELECT v FROM tenant_1.k")
    with pytest.raises(PrecheckError, match=r"found an AUTO_INCREMENT of tenant_1\.t for the rows .* \[row-order\]"):
        channel.run()
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
