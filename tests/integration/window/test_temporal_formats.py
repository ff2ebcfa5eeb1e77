"""MariaDB's old format of TIME, DATETIME and TIMESTAMP (``mysql56_temporal_format = OFF``) onto columns in today's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from binlane.errors import BinlogError, TableMismatchError
from tests.integration.window.conftest import Channel, run_on

OFF, ON = (f"SET GLOBAL mysql56_temporal_format = {value}" for value in ("OFF", "ON"))
TABLE = "(id INT, at DATETIME NOT NULL, seen TIMESTAMP NULL, lasts TIME NULL, PRIMARY KEY (at, id), KEY (seen))"
MADE = ("CREATE DATABASE tenant_1", f"CREATE TABLE tenant_1.t {TABLE}", f"CREATE TABLE tenant_1.u {TABLE}")
CHANGES = (
    "SET time_zone = 'SYSTEM', sql_mode = ''",
    "INSERT INTO tenant_1.t VALUES (1, '2010-10-31 02:30:00', '2010-10-30 21:25:26', '12:34:56'),"
    " (2, '0000-00-00', '0000-00-00', '-838:59:59'), (3, '9999-12-31 23:59:59', '2038-01-19 03:14:07', '838:59:59'),"
    " (4, '2024-00-00', NULL, NULL), (5, '1000-01-01', '1970-01-01 10:00:01', '-00:00:01')",
    "INSERT INTO tenant_1.u SELECT * FROM tenant_1.t",
    "UPDATE tenant_1.t SET lasts = '00:00:00', seen = '2011-03-27 03:00:00' WHERE id IN (1, 2)",
    "UPDATE tenant_1.t SET at = '2001-02-03 04:05:06' WHERE id = 4",
    "DELETE FROM tenant_1.t WHERE at = '9999-12-31 23:59:59'",
    "DELETE FROM tenant_1.u WHERE at = '0000-00-00'",
)
READ = "SELECT id, CAST(at AS CHAR), CAST(seen AS CHAR), UNIX_TIMESTAMP(seen), CAST(lasts AS CHAR) FROM tenant_1.{}"


@pytest.fixture
def old(channel: Channel) -> Iterator[Channel]:
    run_on(channel.source, OFF, log=False)
    yield channel
    run_on(channel.source, ON, log=False)


def read(channel: Channel) -> list[list[tuple[object, ...]]]:
    """The rows of the target; the same are on the source."""
    found = [
        [server.query(f"{READ.format(table)} ORDER BY id") for table in ("t", "u")]
        for server in (channel.source, channel.target)
    ]
    assert found[0] == found[1]
    return found[1]


@pytest.mark.parametrize("writer", ["binlog", "sql"])
@pytest.mark.parametrize("reduce", ["off", "block", "window"])
def test_rows_of_tables_that_the_window_makes_are_converted(old: Channel, writer: str, reduce: str) -> None:
    old.write_channel(f'writer = "{writer}"\n', blocks=f'reduce = "{reduce}"\n')
    run_on(old.source, *MADE, *CHANGES)
    assert old.run() is not None
    assert [len(rows) for rows in read(old)] == [4, 4]
    # and of tables that are there, whose definitions differ now
    run_on(
        old.source,
        "UPDATE tenant_1.u SET seen = '2012-01-01', lasts = '-01:00:00' WHERE id < 4",
        "DELETE FROM tenant_1.t WHERE id = 5",
        "INSERT INTO tenant_1.t VALUES (7, '2026-11-25 22:45:00', '2026-11-25 22:45:00', '22:45:00')",
    )
    assert old.run() is not None
    assert [len(rows) for rows in read(old)] == [4, 4]


def test_a_column_with_fractions_on_the_target_is_none_of_today_s_form(old: Channel) -> None:
    run_on(old.source, *MADE[:2], log=True)
    assert old.run() is not None
    run_on(old.target, "ALTER TABLE tenant_1.t MODIFY lasts TIME(3)", log=False)
    run_on(old.source, "ALTER TABLE tenant_1.t ADD x INT", "INSERT INTO tenant_1.t VALUES (1, NOW(), NOW(), 1, 1)")
    with pytest.raises(TableMismatchError, match=r"tenant_1\.t\.lasts: logged type: "):
        old.run()


def test_columns_with_fractions_in_the_old_format_are_named_before_anything_is_written(old: Channel) -> None:
    run_on(old.source, MADE[0], "CREATE TABLE tenant_1.f (id INT PRIMARY KEY, lasts TIME(3))")
    run_on(old.source, "INSERT INTO tenant_1.f VALUES (1, '12:34:56.789')")
    with pytest.raises(BinlogError, match=r"tenant_1\.f: a row image .* MariaDB 5\.3 columns"):
        old.run()
    assert old.target.query("SHOW DATABASES LIKE 'tenant_1'") == []


def test_a_target_that_makes_the_old_format_keeps_binlane_s_state_in_it(channel: Channel) -> None:
    run_on(channel.target, OFF, "DROP DATABASE binlane", log=False)
    try:
        channel.init()
        run_on(channel.source, *MADE)
        assert channel.run() is not None
        ((old_columns,),) = channel.target.query(
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'binlane' "
            "AND column_type = 'datetime(6) /* mariadb-5.3 */'"
        )
        assert old_columns > 0
    finally:
        run_on(channel.target, ON, "DROP DATABASE binlane", log=False)
