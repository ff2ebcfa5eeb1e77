"""MariaDB's old format of TIME, DATETIME and TIMESTAMP (``mysql56_temporal_format = OFF``) onto columns in today's."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from binlane.errors import BinlogError, PrecheckError, TableMismatchError
from tests.integration.window.conftest import CHANNEL, Channel, run_on

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


FRACTIONS = tuple(
    f"CREATE TABLE tenant_1.f{digits} (id INT PRIMARY KEY, at DATETIME({digits}), note VARCHAR(50), "
    f"lasts TIME({(digits + 2) % 7}), seen TIMESTAMP({(digits + 4) % 7}) NULL, n INT)"
    for digits in range(7)
)
WRITTEN = tuple(
    text.replace("tenant_1.f", f"tenant_1.f{digits}")
    for digits in range(7)
    for text in (
        "INSERT INTO tenant_1.f VALUES (1, '2016-02-15 12:50:06.123456', 'one', '12:50:06.654321', NULL, 1)",
        "INSERT INTO tenant_1.f VALUES (2, NULL, 'two', '-838:59:59', '2016-02-15 12:50:06.999999', 2), "
        "(3, '9999-12-31 23:59:59.999999', NULL, NULL, NULL, 3), (4, NULL, NULL, NULL, NULL, NULL)",
        "UPDATE tenant_1.f SET lasts = '00:00:00.5', n = n + 1 WHERE id < 4",
        "DELETE FROM tenant_1.f WHERE id = 2",
        "DELETE FROM tenant_1.f WHERE id = 4",
        "INSERT INTO tenant_1.f SELECT id + 10, at, note, lasts, seen, n FROM tenant_1.f",
    )
)


@pytest.fixture
def as_old(old: Channel) -> Iterator[Channel]:
    """Both servers make the old format."""
    run_on(old.target, OFF, log=False)
    yield old
    run_on(old.target, ON, log=False)


@pytest.mark.parametrize("reduce", ["off", "block", "window", "divided"])
def test_rows_with_fractions_in_the_old_format_are_read_by_a_target_with_that_format(
    as_old: Channel, reduce: str
) -> None:
    as_old.write_channel(blocks=f'reduce = "{reduce}"\n' if reduce != "divided" else "")
    if reduce == "divided":
        file = as_old.channels / f"{CHANNEL}.toml"
        file.write_text(file.read_text().replace("count = 3\n", 'count = 3\nallow_torn = true\ndivide = "key"\n'))
        as_old.write_shard_list("(divided)=tenant_1\n")
    plain = "CREATE TABLE tenant_1.plain (id INT PRIMARY KEY, n INT)"
    run_on(as_old.source, MADE[0], plain, *FRACTIONS, *WRITTEN, "INSERT INTO tenant_1.plain VALUES (1, 1), (2, 2)")
    assert as_old.run() is not None
    as_old.assert_equal()
    # tables that the window does not make, with a table that is folded
    anew = {"VALUES (1,": "VALUES (21,", "(2, N": "(22, N", "(3, '9": "(23, '9", "(4, N": "(24, N", "+ 10": "+ 30"}
    again = list(WRITTEN)
    for old_text, new_text in anew.items():
        again = [text.replace(old_text, new_text) for text in again]
    run_on(as_old.source, *again, "UPDATE tenant_1.plain SET n = 3", "DELETE FROM tenant_1.plain WHERE id = 1")
    assert as_old.run() is not None
    as_old.assert_equal()
    assert as_old.target.query("SELECT COUNT(*) > 3 FROM tenant_1.f3") == [(1,)]


def test_a_target_that_makes_the_format_of_today_is_named_before_anything_is_written(old: Channel) -> None:
    run_on(old.source, MADE[0], "CREATE TABLE tenant_1.f (id INT PRIMARY KEY, lasts TIME(3))")
    run_on(old.source, "INSERT INTO tenant_1.f VALUES (1, '12:34:56.789')")
    with pytest.raises(PrecheckError, match=r"tenant_1\.f: .*found mysql56_temporal_format = ON.*\[unlogged-lengths\]"):
        old.run()
    assert old.target.query("SHOW DATABASES LIKE 'tenant_1'") == []


@pytest.mark.parametrize("option", ['writer = "sql"', 'on_conflict = "overwrite"'])
def test_rows_with_fractions_that_binlane_would_have_to_read_are_refused(as_old: Channel, option: str) -> None:
    as_old.write_channel(f"{option}\n")
    run_on(as_old.source, MADE[0], "CREATE TABLE tenant_1.f (id INT PRIMARY KEY, lasts TIME(3))")
    run_on(as_old.source, "INSERT INTO tenant_1.f VALUES (1, '12:34:56.789')")
    with pytest.raises((PrecheckError, BinlogError), match=r"tenant_1\.f: "):
        as_old.run()
    assert as_old.target.query("SHOW DATABASES LIKE 'tenant_1'") == []


def test_another_precision_on_the_target_is_refused_before_anything_is_written(as_old: Channel) -> None:
    run_on(as_old.source, MADE[0], "CREATE TABLE tenant_1.f (id INT PRIMARY KEY, lasts TIME(3))")
    assert as_old.run() is not None
    run_on(as_old.target, "ALTER TABLE tenant_1.f MODIFY lasts TIME(5)", log=False)
    run_on(as_old.source, "INSERT INTO tenant_1.f VALUES (1, '12:34:56.789')")
    with pytest.raises(PrecheckError, match=r"tenant_1\.f\.lasts: type: expected time \(old format\)\(3\)"):
        as_old.run()
    assert as_old.target.query("SELECT COUNT(*) FROM tenant_1.f") == [(0,)]


@pytest.mark.parametrize("reduce", ["block", "window"])
def test_rows_whose_lengths_add_up_by_chance_are_not_folded_by_other_bytes_than_their_keys(
    old: Channel, reduce: str
) -> None:
    """TIMESTAMP(2) is a byte longer than the log says, DATETIME(5) a byte shorter. By the log, the two keys are the
    same: an insertion and a deletion of one row."""
    old.write_channel(blocks=f'reduce = "{reduce}"\n')
    run_on(old.target, OFF, log=False)
    try:
        table = "(seen TIMESTAMP(2) NOT NULL, id INT PRIMARY KEY, at DATETIME(5))"
        row = "INSERT INTO tenant_1.f VALUES ('2016-02-15 12:50:06.12', {}, '2016-02-15 12:50:06.12')"
        run_on(old.source, MADE[0], f"CREATE TABLE tenant_1.f {table}", row.format(1 + (1 << 24)))
        assert old.run() is not None
        run_on(old.source, row.format(1), "DELETE FROM tenant_1.f WHERE id > 1")
        assert old.run() is not None
        read = "SELECT id, CAST(seen AS CHAR), CAST(at AS CHAR) FROM tenant_1.f"
        expected = [(1, "2016-02-15 12:50:06.12", "2016-02-15 12:50:06.12000")]
        assert old.target.query(read) == old.source.query(read) == expected
    finally:
        run_on(old.target, ON, log=False)


def test_a_target_that_makes_the_old_format_keeps_binlane_s_state_in_it(channel: Channel) -> None:
    run_on(channel.target, OFF, "DROP DATABASE binlane", log=False)
    try:
        channel.init()
        run_on(channel.target, ON, log=False)
        run_on(channel.source, *MADE)
        assert channel.run() is not None
        ((old_columns,),) = channel.target.query(
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'binlane' "
            "AND column_type = 'datetime(6) /* mariadb-5.3 */'"
        )
        assert old_columns > 0
    finally:
        run_on(channel.target, ON, "DROP DATABASE binlane", log=False)


def test_a_target_that_makes_the_old_format_is_told_before_a_copy_and_before_a_window(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(channel.source, *MADE[:2], *CHANGES[:2])
    run_on(channel.target, OFF, "DROP DATABASE binlane", log=False)
    try:
        assert channel.cli("bootstrap", CHANNEL) == 1
        assert ON in capsys.readouterr().err
        run_on(channel.target, ON, log=False)
        assert channel.cli("bootstrap", CHANNEL) == 0
        # somebody has made the table anew: the statement alone would make the old format again
        run_on(channel.target, OFF, "ALTER TABLE tenant_1.t MODIFY lasts TIME NULL DEFAULT NULL, FORCE", log=False)
        run_on(channel.source, "INSERT INTO tenant_1.t (id, at) VALUES (9, '2024-01-01')")
        assert channel.cli("run", CHANNEL) == 1
        [mend] = re.findall(r"; on the target: (SET GLOBAL .*?) \[table-def", capsys.readouterr().err)
        run_on(channel.target, *mend.split("; "), log=False)
        assert channel.cli("run", CHANNEL) == 0
        run_on(channel.target, OFF, log=False)
        run_on(channel.source, "ALTER TABLE tenant_1.t ADD made DATETIME NULL", "UPDATE tenant_1.t SET made = at")
        assert channel.cli("run", CHANNEL) == 1
        said = capsys.readouterr().err
        assert "mysql56_temporal_format of the target: expected ON, as on the source" in said
        assert f"{ON} on the target" in said
        run_on(channel.target, ON, log=False)
        assert channel.cli("run", CHANNEL) == 0
    finally:
        run_on(channel.target, ON, log=False)
    channel.assert_equal()
