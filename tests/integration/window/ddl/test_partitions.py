"""Statements that take rows by the name of a partition: the target's partition must have the source's rows."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from binlane.orchestration.request import WindowRequest
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, clean_servers, last_gtid, run_on

__all__ = ["clean_servers"]

ROWS = ", ".join(f"({number}, '{chr(97 + number % 26)}{number}', '{2020 + number % 6}-05-01')" for number in range(60))
COLUMNS = "id INT, s VARCHAR(20) COLLATE utf8mb4_unicode_ci, d DATE, PRIMARY KEY (id, s, d)"
DIVIDED = {
    "hash": "HASH (id) PARTITIONS 4",
    "linear": "LINEAR HASH (YEAR(d)) PARTITIONS 3",
    "keyed": "KEY (id) PARTITIONS 4",
    "keyed_by_text": "LINEAR KEY (s, id) PARTITIONS 4",
    "ranged": "RANGE (YEAR(d)) (PARTITION p0 VALUES LESS THAN (2021), PARTITION p1 VALUES LESS THAN (2023), "
    "PARTITION p2 VALUES LESS THAN MAXVALUE)",
    "listed": "LIST (id MOD 3) (PARTITION p0 VALUES IN (0), PARTITION p1 VALUES IN (1, 2))",
    "texts": "RANGE COLUMNS (s) (PARTITION p0 VALUES LESS THAN ('k'), PARTITION p1 VALUES LESS THAN (MAXVALUE))",
    "nested": "RANGE (id) SUBPARTITION BY HASH (TO_DAYS(d)) SUBPARTITIONS 2 (PARTITION p0 VALUES LESS THAN (30), "
    "PARTITION p1 VALUES LESS THAN MAXVALUE)",
}


def _tables(**divided: str) -> list[str]:
    made = [f"CREATE TABLE app.{name} ({COLUMNS}) PARTITION BY {how}" for name, how in divided.items()]
    return [*made, *(f"INSERT INTO app.{name} VALUES {ROWS}" for name in divided)]


def _rows(server: PrivateServer, table: str) -> list[tuple[object, ...]]:
    return server.query(f"SELECT * FROM app.{table} ORDER BY id")


def _refused(channel: Channel) -> str:
    with pytest.raises(PrecheckError) as error:
        channel.run()
    return str(error.value)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_partitions_of_other_rows_on_the_target_are_named_before_one_is_emptied(
    channel_of: ChannelOf, family: str
) -> None:
    channel = channel_of(family, family)
    divided = {name: DIVIDED[name] for name in ("hash", "ranged")}
    channel.on_both("CREATE DATABASE app", *_tables(**divided))
    drift = (
        "ALTER TABLE app.hash ADD PARTITION PARTITIONS 4",
        "ALTER TABLE app.ranged REORGANIZE PARTITION p0, p1 INTO (PARTITION p0 VALUES LESS THAN (2022), "
        "PARTITION p1 VALUES LESS THAN (2023))",
    )
    run_on(channel.target, *drift, log=False)
    # rows find their partition
    run_on(channel.source, "INSERT INTO app.hash VALUES (99, 'x', '2024-01-01')", "DELETE FROM app.ranged WHERE id = 1")
    assert channel.run() is not None
    run_on(
        channel.source,
        "ALTER TABLE app.hash TRUNCATE PARTITION p0",
        "SET SESSION binlog_format = STATEMENT",
        "DELETE FROM app.ranged PARTITION (p0)",
    )
    said = _refused(channel)
    assert "ALTER TABLE app.hash TRUNCATE PARTITION p0: partitions of app.hash: expected 4 partitions by HASH" in said
    assert "found 8 partitions by HASH" in said
    assert "DELETE FROM app.ranged PARTITION (p0): partitions of app.ranged: expected 3 partitions by RANGE" in said
    assert "p0 of 2021 from the lowest value on, found 3 partitions by RANGE" in said
    assert len(_rows(channel.target, "hash")) == 61
    # the way on that the message names
    run_on(channel.target, *(f"ALTER TABLE app.{name} PARTITION BY {how}" for name, how in divided.items()), log=False)
    assert channel.run() is not None
    channel.assert_equal()


def test_partitions_that_come_and_go_each_month_are_applied(channel_of: ChannelOf) -> None:
    """Also where the source has gone on with it since the window's end."""
    channel = channel_of("mariadb", "mariadb")
    channel.on_both(
        "CREATE DATABASE app",
        "CREATE TABLE app.t (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p1 VALUES LESS THAN (10), "
        "PARTITION p2 VALUES LESS THAN (20), PARTITION p3 VALUES LESS THAN (30))",
        "INSERT INTO app.t VALUES (5), (15), (25)",
    )
    for at in (1, 2, 3):
        run_on(
            channel.source,
            f"ALTER TABLE app.t ADD PARTITION (PARTITION p{at + 3} VALUES LESS THAN ({at * 10 + 30}))",
            f"ALTER TABLE app.t DROP PARTITION p{at}",
            f"INSERT INTO app.t VALUES ({at * 10 + 25})",
        )
        assert channel.run() is not None
        channel.assert_equal()


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_partitions_that_the_channel_keeps_stand_against_none_that_is_emptied(
    channel_of: ChannelOf, family: str
) -> None:
    """And statements that find the rows in them are refused, others are not."""
    channel = channel_of(family, family)
    parts = ", ".join(f"PARTITION p{at} VALUES IN ({at})" for at in (1, 2, 3))
    channel.on_both(
        "CREATE DATABASE app",
        f"CREATE TABLE app.t (id INT PRIMARY KEY) PARTITION BY LIST (id) ({parts})",
        "CREATE TABLE app.sums (n INT PRIMARY KEY)",
        "CREATE TABLE app.plain (n INT PRIMARY KEY)",
        "INSERT INTO app.t VALUES (1), (2), (3)",
        "INSERT INTO app.plain VALUES (7)",
    )
    channel.write_channel('[filter.kinds]\nalter = "ignore"\ndrop = "ignore"\n')
    run_on(channel.source, "ALTER TABLE app.t DROP PARTITION p1")
    assert channel.run() is not None
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "DELETE FROM app.t PARTITION (p2, p3)",
        "INSERT INTO app.sums SELECT n FROM app.plain",
    )
    assert channel.run() is not None
    assert (_rows(channel.target, "t"), _rows(channel.source, "t")) == ([(1,)], [])
    assert channel.target.query("SELECT n FROM app.sums") == [(7,)]
    run_on(channel.source, "SET SESSION binlog_format = STATEMENT", "INSERT INTO app.sums SELECT COUNT(*) FROM app.t")
    assert "where rows may be kept" in _refused(channel)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_partitions_whose_number_or_columns_the_log_changes_are_applied(channel_of: ChannelOf, family: str) -> None:
    """In the window, and behind its end."""
    channel = channel_of(family, family)
    divided = {name: DIVIDED[name] for name in ("hash", "keyed_by_text")}
    channel.on_both("CREATE DATABASE app", *_tables(**divided))
    run_on(
        channel.source,
        "ALTER TABLE app.hash ADD PARTITION PARTITIONS 4",
        "ALTER TABLE app.hash TRUNCATE PARTITION p6",
        "ALTER TABLE app.keyed_by_text TRUNCATE PARTITION p1",
    )
    end = last_gtid(channel.source)
    run_on(
        channel.source,
        "ALTER TABLE app.keyed_by_text CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        "ALTER TABLE app.hash COALESCE PARTITION 3",
        "ALTER TABLE app.hash TRUNCATE PARTITION p0",
    )
    assert channel.run(WindowRequest(end)) is not None
    assert channel.run() is not None
    channel.assert_equal()


@requires_mysql
@pytest.mark.parametrize("families", [("mariadb", "mysql"), ("mysql", "mariadb")], ids=lambda each: "-to-".join(each))
def test_partitions_have_the_same_rows_in_both_families_but_for_the_hash_of_a_date(
    channel_of: ChannelOf, families: tuple[str, str]
) -> None:
    channel = channel_of(*families)
    channel.on_both("CREATE DATABASE app", *_tables(**DIVIDED, dated="KEY (d) PARTITIONS 4"))
    for name in DIVIDED:
        assert _rows(channel.target, f"{name} PARTITION (p0)") == _rows(channel.source, f"{name} PARTITION (p0)") != []
    run_on(
        channel.source,
        *(f"ALTER TABLE app.{name} TRUNCATE PARTITION p1" for name in DIVIDED),
        "SET SESSION binlog_format = STATEMENT",
        *(f"DELETE FROM app.{name} PARTITION (p0) WHERE id > 7" for name in DIVIDED),
    )
    assert channel.run() is not None
    for name in DIVIDED:
        assert _rows(channel.target, name) == _rows(channel.source, name)
    run_on(channel.source, "ALTER TABLE app.dated TRUNCATE PARTITION p0")
    said = _refused(channel)
    assert "partitions of app.dated" in said
    assert "of a DATE, which each family hashes in its own way" in said
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
