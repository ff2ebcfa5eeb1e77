"""XA transactions, temporary tables and LOAD DATA from one family to the other, whichever writer writes rows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.errors import PrecheckError, UnsupportedEventError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, fresh_channel, run_on
from tests.integration.window.statements.test_load_data import file, load
from tests.integration.window.statements.test_temporary import life, session
from tests.integration.window.xa.test_xa import end, prepare

ENDS = ("source", "target")
CASES = [
    pytest.param(families, writer, id=f"{families[0]}-to-{families[1]}-{writer}", marks=requires_mysql)
    for families in (("mariadb", "mysql"), ("mysql", "mariadb"))
    for writer in ("binlog", "sql")
] + [
    pytest.param((name, name), "sql", id=f"{name}-sql", marks=[] if name == "mariadb" else requires_mysql)
    for name in map(str, Flavor)
]
EVERYWHERE = pytest.mark.parametrize(("families", "writer"), CASES)
TENANT = "CREATE DATABASE {} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
TABLE = "CREATE TABLE {}.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80) CHARACTER SET latin1, n INT)"
ROWS = "INSERT INTO {}.t (v, n) VALUES ('one', 1), ('two', 2)"


@pytest.fixture
def across(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    families: tuple[str, str],
    writer: str,
) -> Iterator[Channel]:
    """A channel whose target takes files, with two tenants in lanes of their own."""
    source, target = (request.getfixturevalue(f"{name}_{part}") for name, part in zip(families, ENDS, strict=True))
    for server in (source, target):
        server.query("SET GLOBAL local_infile = ON")
    channel = fresh_channel(source, target, tmp_path, clean_servers)
    channel.write_channel(f'writer = "{writer}"\n')
    channel.write_shard_list("tenant_1=0\ntenant_2=1\n")
    for name in ("tenant_1", "tenant_2"):
        run_on(source, TENANT.format(name), TABLE.format(name), ROWS.format(name))
    assert channel.run() is not None
    yield channel
    for server in (source, target):
        for row in server.query("XA RECOVER"):
            with contextlib.suppress(Exception):
                server.query(f"XA ROLLBACK '{row[3]}'")


def assert_same(channel: Channel) -> None:
    assert channel.rows_of(channel.target) == channel.rows_of(channel.source)
    assert channel.target.query("XA RECOVER") in ([], ())


@EVERYWHERE
def test_xa_transactions_in_one_window_and_over_two(across: Channel) -> None:
    prepare(across, "'one'", "UPDATE tenant_1.t SET n = 10 WHERE id = 1", "INSERT INTO tenant_1.t VALUES (9, 'xa', 9)")
    across.source.query("INSERT INTO tenant_2.t (v, n) VALUES ('between', 3)")
    prepare(across, "'two'", "DELETE FROM tenant_2.t WHERE id = 2", "INSERT INTO tenant_1.t VALUES (20, 'both', 1)")
    prepare(across, "'undone'", "DELETE FROM tenant_1.t WHERE id = 2")
    end(across, "XA COMMIT 'one'")
    assert across.run() is not None
    assert across.target.query("SELECT n FROM tenant_1.t WHERE id IN (1, 9) ORDER BY id") == [(10,), (9,)]
    end(across, "XA ROLLBACK 'undone'")
    end(across, "XA COMMIT 'two'")
    across.source.query("UPDATE tenant_1.t SET n = 21 WHERE id = 20")

    assert across.run() is not None

    assert_same(across)


@EVERYWHERE
def test_temporary_tables_of_statement_logs(across: Channel) -> None:
    with session(across) as one, session(across, "tenant_2") as other:
        life(one, "one")
        across.source.query("UPDATE tenant_1.t SET v = CONCAT(v, '!') WHERE id = 2")
        life(other, "other")
        one("INSERT INTO t (v, n) SELECT v, id FROM tmp ORDER BY id", "DROP TEMPORARY TABLE tmp")
        other("DROP TEMPORARY TABLE tmp")

    assert across.run() is not None

    assert_same(across)


@EVERYWHERE
def test_files_that_statements_load(across: Channel, tmp_path: Path) -> None:
    plain = file(tmp_path, "plain.csv", "11,é'\\,ü,1\n12,\\N,2\n".encode("latin-1"))
    into = "INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY ','"
    load(
        across,
        f"LOAD DATA LOCAL INFILE '{plain}' {into}",
        f"LOAD DATA INFILE '{plain}' REPLACE {into} (id, @s, n) SET v = CONCAT(@s, '!')",
    )

    assert across.run() is not None

    assert_same(across)
    assert across.target.query("SELECT HEX(v) FROM tenant_1.t WHERE id = 11") == [("E9272CFC21",)]


@requires_mysql
def test_syntax_of_mariadb_is_translated_for_a_mysql_target(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mysql")
    run_on(
        channel.source,
        TENANT.format("tenant_1"),
        "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v VARCHAR(9), twice INT AS (id * 2) PERSISTENT)",
        "SET STATEMENT max_statement_time = 60 FOR CREATE TABLE tenant_1.said (id INT PRIMARY KEY, v VARCHAR(9))",
        "SET STATEMENT lock_wait_timeout = 9 FOR ALTER TABLE tenant_1.t ADD half INT AS (id) PERSISTENT",
        "SET SESSION binlog_format = STATEMENT",
        "SET STATEMENT time_zone = '+05:00' FOR INSERT INTO tenant_1.t (id, v) SELECT 1, HOUR(FROM_UNIXTIME(0))",
        "SET STATEMENT foreign_key_checks = 0, max_statement_time = 5 FOR INSERT INTO tenant_1.said (id) VALUES (1)",
    )

    assert channel.run() is not None

    assert_same(channel)
    assert channel.target.query("SELECT v, twice, half FROM tenant_1.t") == [("5", 2, 1)]


@requires_mysql
@pytest.mark.parametrize(
    "statement",
    [
        "SET STATEMENT default_storage_engine = 'MyISAM' FOR CREATE TABLE tenant_1.t (id INT PRIMARY KEY)",
        # its text was read with escapes, and a target would read it without
        "SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES' FOR CREATE TABLE tenant_1.t (v CHAR(9) DEFAULT '\\n')",
    ],
)
def test_a_variable_that_no_log_carries_stays_refused(channel_of: ChannelOf, statement: str) -> None:
    channel = channel_of("mariadb", "mysql")
    run_on(
        channel.source,
        TENANT.format("tenant_1"),
        statement,
    )
    with pytest.raises((PrecheckError, UnsupportedEventError), match="SET STATEMENT"):
        channel.run()
