"""``on_conflict = "overwrite"``: a row that is there with other values is listed, and none that is as it should be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from binlane.errors import DriftError
from binlane.model import Flavor
from binlane.servers.engines import engine_of
from binlane.state.records.conflicts import Conflict, read_conflicts
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.values.types import SCHEMA_TYPES, TYPES, Type
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, fresh_channel, run_on
from tests.integration.window.control.test_stop import channel
from tests.integration.window.rows.test_overwrite import OVERWRITE

__all__ = ["channel"]

DATABASE = "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4"
SESSION = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"


def listed(channel: Channel) -> list[Conflict]:
    """In the order in which they were recorded."""
    with engine_of(channel.endpoints.target).connect() as connection:
        return [each.conflict for each in read_conflicts(connection, CHANNEL)][::-1]


@pytest.mark.parametrize(("writer", "reduce"), [("binlog", "block"), ("sql", "off")])
def test_rows_with_other_values_are_listed_with_their_transaction(channel: Channel, reduce: str, writer: str) -> None:
    channel.write_channel(f'{OVERWRITE}writer = "{writer}"\n', f'reduce = "{reduce}"\n')
    tables = (
        DATABASE,
        "CREATE TABLE tenant_1.t (id VARCHAR(9) PRIMARY KEY, n INT, said VARCHAR(9), twice INT AS (n * 2) STORED)",
        "INSERT INTO tenant_1.t (id, n) VALUES " + ", ".join(f"('k{n}', {n})" for n in range(10)),
        "CREATE TABLE tenant_1.part (id INT PRIMARY KEY, n INT, said VARCHAR(9))",
        "INSERT INTO tenant_1.part VALUES (1, 1, 'a')",
    )
    for server in (channel.source, channel.target):
        run_on(server, *tables, log=False)
    changes = (
        "UPDATE tenant_1.t SET n = 100 WHERE id = 'k0'",  # as it should be
        "UPDATE tenant_1.t SET n = 101 WHERE id = 'k1'",  # other values, and again in the next transaction
        "UPDATE tenant_1.t SET n = 201 WHERE id = 'k1'",
        "DELETE FROM tenant_1.t WHERE id = 'k2'",  # other values
        "UPDATE tenant_1.t SET id = 'moved' WHERE id = 'k3'",  # NULL on the source
        "UPDATE tenant_1.t SET n = 104 WHERE id = 'k4'",  # its key differs by case
        "INSERT INTO tenant_1.t (id, n) VALUES ('new', 1)",  # nothing is there before
        "UPDATE tenant_1.t SET n = 2 WHERE id = 'new'",
        "DELETE FROM tenant_1.t WHERE id = 'k5'",  # as it should be
        "INSERT INTO tenant_1.t (id, n) VALUES ('k5', 55)",
        "UPDATE tenant_1.t SET said = 'all'",  # k6 has other values; all others are what was written before
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "UPDATE tenant_1.part SET n = 2 WHERE id = 1",  # the log has the key alone
    )
    drift = (
        "UPDATE tenant_1.t SET n = -1 WHERE id = 'k1'",
        "UPDATE tenant_1.t SET n = -2 WHERE id = 'k2'",
        "UPDATE tenant_1.t SET said = '' WHERE id = 'k3'",
        "UPDATE tenant_1.t SET id = 'K4' WHERE id = 'k4'",
        "UPDATE tenant_1.t SET n = NULL WHERE id = 'k6'",
        "UPDATE tenant_1.part SET n = -1",
    )
    run_on(channel.target, *drift, log=False)
    before = watermark(channel)
    run_on(channel.source, *changes)

    done = channel.run()

    assert done is not None
    # CHECKSUM TABLE of MariaDB has two answers for a table with a stored column
    assert channel.rows_of(channel.source) == channel.rows_of(channel.target)
    assert done["conflicts"] == {"different": 5}
    # the seqno is that of the first change of the row, in whatever block it was applied
    found = [
        (each.seqno - before, each.change, each.key["id"], each.found and each.found["n"]) for each in listed(channel)
    ]
    assert sorted(found, key=str) == sorted(
        [
            (2, "update", "k1", "-1"),
            (4, "delete", "k2", "-2"),
            (5, "delete" if reduce == "block" else "update", "k3", "3"),
            (6, "update", "K4", "4"),
            (11, "update", "k6", None),
        ],
        key=str,
    )


def watermark(channel: Channel) -> int:
    rows = channel.target.query("SELECT watermark_seqno FROM binlane.channels WHERE channel = %s", (CHANNEL,))
    return int(rows[0][0])


def kinds_of(flavor: Flavor) -> list[Type]:
    return [one for one in (*TYPES, *SCHEMA_TYPES) if flavor in one.servers]


def another(one: Type, flavor: Flavor) -> str:
    """A value that is not the first; of DOUBLE, on MySQL, the other zero: MariaDB does not tell them apart."""
    return "NULL" if len(one.values) == 1 else one.values[1 if flavor is Flavor.MYSQL else -1]


def test_a_conflict_is_recorded_only_for_a_different_value_of_each_type(channel: Channel) -> None:
    channel.write_channel(OVERWRITE)
    kinds = kinds_of(channel.source.flavor)
    columns = ", ".join(f"c{number} {one.definition} NULL" for number, one in enumerate(kinds))
    values = [", ".join(one.values[row % len(one.values)] for one in kinds) for row in range(9)]
    base = ", ".join(one.values[0] for one in kinds)
    rows = [*(f"({row}, 0, {each})" for row, each in enumerate(values)), f"(99, 0{', NULL' * len(kinds)})"]
    rows += [f"({100 + number}, 0, {base})" for number in range(len(kinds))]
    for server in (channel.source, channel.target):
        run_on(
            server, DATABASE, SESSION, f"CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT, {columns})",
            *(f"INSERT INTO tenant_1.t VALUES {row}" for row in rows), log=False,
        )  # fmt: skip
    # a row for each type, which has another value in that column alone
    differing = (
        f"UPDATE tenant_1.t SET c{n} = {another(one, channel.source.flavor)} WHERE id = {100 + n}"
        for n, one in enumerate(kinds)
    )
    run_on(channel.target, SESSION, *differing, log=False)
    run_on(channel.source, SESSION, "UPDATE tenant_1.t SET n = id", "DELETE FROM tenant_1.t WHERE id < 5")

    assert channel.run() is not None

    found = {int(each.key["id"] or 0) - 100 for each in listed(channel)}
    assert {kinds[number].definition for number in set(range(len(kinds))) - found} == set(), "not listed"
    assert found == set(range(len(kinds))), "listed, and equal"
    channel.assert_equal()


DOCUMENTS = ('{"b": [1, 2.5, -3, 1e100, true, null], "aa": "ß", "a": {"": "x"}}', "[]", '"text"', "12.50", "null")


@requires_mysql
@pytest.mark.parametrize("source", [Flavor.MARIADB, Flavor.MYSQL])
def test_json_of_the_other_family_is_compared_by_value(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None], source: Flavor
) -> None:
    target = Flavor.MYSQL if source is Flavor.MARIADB else Flavor.MARIADB
    servers = request.getfixturevalue(f"{source}_source"), request.getfixturevalue(f"{target}_target")
    between = fresh_channel(*servers, tmp_path, clean_servers)
    between.write_channel(OVERWRITE)
    rows: list[Any] = [f"INSERT INTO tenant_1.t VALUES ({n}, 0, '{text}')" for n, text in enumerate(DOCUMENTS)]
    for server in (between.source, between.target):
        run_on(
            server, f"{DATABASE} COLLATE utf8mb4_general_ci",
            "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT, j JSON)", *rows,
            "INSERT INTO tenant_1.t VALUES (8, 0, '[1]'), (9, 0, NULL)", log=False,
        )  # fmt: skip
    run_on(between.target, "UPDATE tenant_1.t SET j = '[2]' WHERE id >= 8", log=False)
    run_on(between.source, "UPDATE tenant_1.t SET n = 1", "DELETE FROM tenant_1.t WHERE id = 0")

    assert between.run() is not None

    assert [(each.key["id"], each.found and each.found["j"]) for each in listed(between)] == [
        ("8", "[2]"),
        ("9", "[2]"),
    ]


@requires_mysql
def test_a_part_of_a_row_is_written_on_the_row_that_the_log_has(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    channel.write_channel(OVERWRITE)
    document = f'{{"a": 1, "b": "{"x" * 300}", "c": 3}}'
    for server in (channel.source, channel.target):
        run_on(
            server, DATABASE, "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, j JSON)",
            f"INSERT INTO tenant_1.t VALUES (1, '{document}'), (2, '{document}'), (3, '{document}')", log=False,
        )  # fmt: skip
    run_on(
        channel.target, "UPDATE tenant_1.t SET j = '{}' WHERE id = 2", "DELETE FROM tenant_1.t WHERE id = 3", log=False
    )
    run_on(
        channel.source,
        "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
        "UPDATE tenant_1.t SET j = JSON_REPLACE(j, '$.a', 2)",
    )

    assert channel.run() is not None

    channel.assert_equal()
    assert [(each.kind.value, each.key["id"], each.found and each.found["j"]) for each in listed(channel)] == [
        ("different", "2", "{}"),
        ("missing", "3", None),
    ]


def test_a_table_without_primary_key_is_not_overwritten_through_a_unique_key(channel: Channel) -> None:
    channel.write_channel(OVERWRITE)
    for server in (channel.source, channel.target):
        run_on(
            server, DATABASE, "CREATE TABLE tenant_1.t (id INT NOT NULL UNIQUE, n INT)",
            "INSERT INTO tenant_1.t VALUES (1, 1), (2, 2)", log=False,
        )  # fmt: skip
    run_on(channel.source, "UPDATE tenant_1.t SET n = 10 WHERE id = 1")
    assert channel.run() is not None
    channel.assert_equal()
    run_on(channel.target, "UPDATE tenant_1.t SET n = -2 WHERE id = 2", log=False)
    run_on(channel.source, "UPDATE tenant_1.t SET n = 20 WHERE id = 2")
    with pytest.raises(DriftError, match="without a primary key"):
        channel.run()
    assert channel.target.query("SELECT n FROM tenant_1.t WHERE id = 2")[0][0] == -2
    assert listed(channel) == []
