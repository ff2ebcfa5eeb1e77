"""System-versioned tables feel where a statement of the source ends: a server chooses the partition of history, and
the time at which cascades end a version, once for each statement."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.integration.window.control.test_stop import apply_all, planned

HALF_A_DAY = 43_200
BEGIN = 1_790_000_000
TABLE = "tenant_1.t"
CREATE = f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, a INT UNIQUE) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME {{}}"
KINDS = ("LIMIT 3 PARTITIONS 5", "LIMIT 3 AUTO", "INTERVAL 1 DAY PARTITIONS 8", "INTERVAL 1 DAY AUTO")


def updates(first: int, last: int, table: str = TABLE, columns: str = "a") -> Iterable[str]:
    """Two rows, each updated in transactions of its own, the fourth of them with two statements."""
    for number in range(first, last):
        for key in (1, 2):
            yield f"SET timestamp = {BEGIN + number * HALF_A_DAY + key}"
            yield "BEGIN"
            yield f"UPDATE {table} SET {columns} = {10 * number + key} WHERE id = {key}"
            if number % 4 == 3:
                yield f"UPDATE {table} SET {columns} = {10 * number + 5 + key} WHERE id = {key}"
            yield "COMMIT"


def assert_same_history(channel: Channel, table: str = TABLE) -> None:
    """The same rows in the same partitions on both servers."""
    database, _, name = table.partition(".")
    query = (
        "SELECT partition_name FROM information_schema.partitions WHERE partition_name IS NOT NULL "
        f"AND table_schema = '{database}' AND table_name = '{name}' ORDER BY partition_ordinal_position"
    )
    held = []
    for server in (channel.source, channel.target):
        names = [str(found) for (found,) in server.query(query)]
        rows = {each: server.query(f"SELECT *, ROW_START, ROW_END FROM {table} PARTITION ({each})") for each in names}
        held.append({each: sorted(found, key=repr) for each, found in rows.items()})
    assert held[0] == held[1]
    assert len(held[0]) > 1


@pytest.mark.parametrize("reduce", ["off", "window"])
@pytest.mark.parametrize("by", KINDS)
def test_history_lies_in_the_partitions_of_the_source(channel: Channel, by: str, reduce: str) -> None:
    channel.write_channel(blocks=f'reduce = "{reduce}"\n')
    made = (f"SET timestamp = {BEGIN}", "CREATE DATABASE tenant_1", CREATE.format(by))
    channel.on_both(*made, f"INSERT INTO {TABLE} VALUES (1, 1), (2, 2)")
    run_on(channel.source, *updates(0, 6))
    assert channel.run() is not None
    assert_same_history(channel)
    run_on(channel.source, f"ALTER TABLE {TABLE} DROP PARTITION p0")
    assert channel.run() is not None
    assert_same_history(channel)


@pytest.mark.parametrize("by", KINDS[1::2])
def test_a_partition_that_a_block_adds_is_read_by_its_later_transactions(channel: Channel, by: str) -> None:
    """A server refuses a table whose definition is newer than the transaction's first read (1412)."""
    made = (
        f"SET timestamp = {BEGIN}",
        "CREATE DATABASE tenant_1",
        CREATE.format(by).replace("PRIMARY KEY", "NOT NULL"),
    )
    channel.on_both(*made, f"INSERT INTO {TABLE} VALUES (1, 1), (2, 2)")
    run_on(channel.source, *updates(0, 6), *(f"UPDATE {TABLE} SET a = a + 100" for _ in range(4)))
    assert channel.run() is not None
    rows = f"SELECT *, ROW_START, ROW_END FROM {TABLE} FOR SYSTEM_TIME ALL ORDER BY id, ROW_START"
    assert channel.target.query(rows) == channel.source.query(rows)


@pytest.mark.parametrize("by", KINDS[1::2])
def test_a_table_that_gets_its_partitions_in_the_window(channel: Channel, by: str) -> None:
    made = (f"SET timestamp = {BEGIN}", "CREATE DATABASE tenant_1", f"CREATE TABLE {TABLE} (id INT PRIMARY KEY, a INT)")
    altered = f"ALTER TABLE {TABLE} ADD SYSTEM VERSIONING PARTITION BY SYSTEM_TIME {by}"
    alike = f"CREATE TABLE tenant_1.alike LIKE {TABLE}"
    rows = (f"INSERT INTO {table} VALUES (1, 1), (2, 2)" for table in (TABLE, "tenant_1.alike"))
    run_on(channel.source, *made, altered, alike, *rows, *updates(0, 6), *updates(0, 6, "tenant_1.alike"))
    assert channel.run() is not None
    assert_same_history(channel)
    assert_same_history(channel, "tenant_1.alike")


@pytest.mark.parametrize("is_made_in_the_window", [False, True])
def test_cascades_onto_one_row_of_a_versioned_table(channel: Channel, is_made_in_the_window: bool) -> None:
    key = "FOREIGN KEY ({0}) REFERENCES {1} ({0}) ON UPDATE CASCADE"
    made = (
        "CREATE DATABASE tenant_1",
        "CREATE TABLE tenant_1.grandparent (id INT PRIMARY KEY, a INT UNIQUE, b INT UNIQUE)",
        "CREATE TABLE tenant_1.parent (id INT PRIMARY KEY, a INT UNIQUE, b INT UNIQUE, "
        f"{key.format('a', 'tenant_1.grandparent')}, {key.format('b', 'tenant_1.grandparent')})",
        "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, a INT, b INT, "
        f"{key.format('a', 'tenant_1.parent')}, {key.format('b', 'tenant_1.parent')}) WITH SYSTEM VERSIONING",
        *(f"INSERT INTO tenant_1.{table} VALUES (1, 0, 0)" for table in ("grandparent", "parent", "child")),
    )
    changes = [
        statement
        for number in range(1, 7)
        for column in ("a", "b")
        for statement in (
            f"SET timestamp = {BEGIN} + {2 * number + (column == 'b')} / 100",
            f"UPDATE tenant_1.grandparent SET {column} = {number}",
        )
    ]
    run_on(channel.source, *made)
    if not is_made_in_the_window:
        assert channel.run() is not None
    run_on(channel.source, *changes)
    assert channel.run() is not None
    versions = "SELECT a, b FROM tenant_1.child FOR SYSTEM_TIME ALL ORDER BY ROW_END"
    assert channel.target.query(versions) == channel.source.query(versions)
    assert len(channel.target.query(versions)) > 1


def test_a_skipped_transaction_with_two_statements_is_replayed_statement_by_statement(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    made = (f"SET timestamp = {BEGIN}", "CREATE DATABASE tenant_1", CREATE.format("LIMIT 1 PARTITIONS 5"))
    channel.on_both(*made, f"INSERT INTO {TABLE} VALUES (1, 1), (2, 2)")
    run_on(channel.source, *updates(3, 4))
    adopted = planned(channel)
    first = read_plan(adopted["plan"]).first_seqno
    for seqno in (first, first + 1):
        assert channel.cli("skip", CHANNEL, "--seqno", str(seqno), "--reason", "test") == 0
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    for seqno in (first, first + 1):
        assert channel.cli("replay-skipped", CHANNEL, str(seqno)) == 0, capsys.readouterr().err
    assert_same_history(channel)
