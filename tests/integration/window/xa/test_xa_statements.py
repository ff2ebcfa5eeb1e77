"""XA transactions logged as statements: temporary tables, and tables without transactions, which no rollback undoes."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.errors import WindowOpenError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, fresh_channel, run_on

TABLES = (
    "CREATE DATABASE tenant_1",
    "CREATE DATABASE tenant_2",
    "CREATE TABLE tenant_1.undone (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80)) ENGINE=InnoDB",
    "CREATE TABLE tenant_1.kept (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80)) ENGINE=MyISAM",
    "CREATE TABLE tenant_2.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80)) ENGINE=InnoDB",
)
MAKE = (
    "CREATE TEMPORARY TABLE tmp_i (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80)) ENGINE=InnoDB",
    "CREATE TEMPORARY TABLE tmp_m (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80)) ENGINE=MyISAM",
)
DROP = ("DROP TEMPORARY TABLE tmp_i", "DROP TEMPORARY TABLE tmp_m")
Run = Callable[..., None]


def made(channel: Channel, *, known: bool = True) -> Channel:
    """Write to tables without transactions; ``known``: both servers have the tables before the log of the test."""
    channel.write_channel("allow_nontransactional = true\n")
    channel.write_shard_list("tenant_1=0\ntenant_2=1\n")
    if known:
        channel.on_both(*TABLES)
    else:
        run_on(channel.source, *TABLES)
    return channel


@contextlib.contextmanager
def session(channel: Channel, direct: str = "OFF", database: str = "tenant_1") -> Iterator[Run]:
    """A connection of the source that logs statements."""
    with contextlib.closing(channel.source.connect(autocommit=True, database=database)) as connection:

        def run(*statements: str) -> None:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)

        run("SET SESSION binlog_format = STATEMENT", f"SET SESSION binlog_direct_non_transactional_updates = {direct}")
        yield run


def fill(word: str, *tables: str) -> tuple[str, ...]:
    return tuple(f"INSERT INTO {table} (v) VALUES ('{word}')" for table in tables)


def by_way(word: str, *into: str) -> tuple[str, ...]:
    """Rows that go through the temporary tables; the last ones into the tables ``into``."""
    return (
        *fill(word, "tmp_i", "tmp_m"),
        "INSERT INTO undone (v) SELECT CONCAT(v, ' from i') FROM tmp_i ORDER BY id",
        *(f"INSERT INTO {table} (v) SELECT CONCAT(v, ' from m') FROM tmp_m ORDER BY id" for table in into),
    )


def groups(run: Run, xa: Callable[..., None], *into: str) -> None:
    """XA transactions with temporary tables that are made and dropped inside and outside of them."""
    run(*MAKE)
    xa(*fill("one", *into), *by_way("1", *into))
    xa(*by_way("2", *into), *fill("two", *into))
    # what the transactions have left in the tables
    run(*by_way("outside", *into), *DROP)
    xa(*fill("three", *into), *MAKE, *by_way("3", *into))
    run(*by_way("outside again", *into), *DROP)
    xa(*MAKE, *by_way("4", *into))
    xa(*by_way("5", *into), *DROP)
    xa(*MAKE, *by_way("6", *into), *DROP)
    xa("UPDATE undone SET v = 'none' WHERE id = -1")


@pytest.mark.parametrize("known", [True, False], ids=["tables known", "tables made in the window"])
@pytest.mark.parametrize("direct", ["OFF", "ON"])
@pytest.mark.paired
def test_temporary_and_other_tables_without_transactions_in_xa_transactions(
    channel: Channel, direct: str, known: bool
) -> None:
    made(channel, known=known)
    with session(channel, direct) as run:
        for end in ("COMMIT", "ROLLBACK"):

            def xa(*statements: str, end: str = end) -> None:
                run("XA START 'x'", *statements, "XA END 'x'", "XA PREPARE 'x'", f"XA {end} 'x'")

            # changes of tmp_m are logged in front of the transaction if they are logged directly
            groups(run, xa, *(("undone", "kept") if direct == "OFF" else ("kept",)))
        assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.kept WHERE v LIKE '% from m'")[0][0] > 10


@pytest.mark.parametrize(
    "between",
    [
        pytest.param("INSERT INTO tenant_2.t (v) VALUES ('between')", id="rows"),
        pytest.param("CREATE OR REPLACE TABLE tenant_2.other (id INT)", id="implicit commits"),
    ],
)
def test_other_transactions_stand_between_the_halves_of_those_with_temporary_tables(
    channel: Channel, between: str
) -> None:
    made(channel)
    with session(channel) as run:
        for end in ("COMMIT", "ROLLBACK"):

            def xa(*statements: str, end: str = end) -> None:
                run("XA START 'x'", *statements, "XA END 'x'", "XA PREPARE 'x'")
                channel.source.query(between)
                run(f"XA {end} 'x'")
                channel.source.query(between)

            groups(run, xa, "undone")
    assert channel.run() is not None
    channel.assert_equal()


@pytest.mark.trial
def test_runs_that_are_killed_lose_and_double_nothing(channel: Channel) -> None:
    chance = random.Random(11)
    made(channel)
    seconds = 0.0
    for round_ in range(4):
        with session(channel) as run:
            run(*MAKE)
            for number in range(30):
                run("XA START 'x'", *by_way(f"{round_} {number}", "undone"), "XA END 'x'", "XA PREPARE 'x'")
                channel.source.query(f"INSERT INTO tenant_2.t (v) VALUES ('{number}')")
                run(f"XA {'ROLLBACK' if number % 3 == 0 else 'COMMIT'} 'x'")
            run(*DROP)
        began = time.monotonic()
        if round_ > 0:
            channel.run_and_kill(chance.uniform(0.0, seconds))
            channel.run_and_kill(chance.uniform(0.0, seconds))
        channel.run()
        seconds = seconds or time.monotonic() - began
        channel.assert_equal()


@pytest.mark.parametrize("inside", [DROP, ()], ids=["dropped inside", "dropped outside"])
def test_a_window_ends_before_the_tables_of_a_transaction_that_has_not_ended(
    channel: Channel, inside: tuple[str, ...]
) -> None:
    made(channel)
    channel.source.query("INSERT INTO tenant_2.t (v) VALUES ('before')")
    with session(channel) as run:
        run(*MAKE, "XA START 'x'", *by_way("1", "undone"), *inside, "XA END 'x'", "XA PREPARE 'x'")
        channel.source.query("INSERT INTO tenant_2.t (v) VALUES ('between')")
        assert channel.run() is not None
        assert channel.target.query("SELECT v FROM tenant_2.t") == [("before",)]
        with pytest.raises(WindowOpenError, match=r"temporary table .*a window cannot end while this table exists"):
            channel.run()
        run("XA COMMIT 'x'", *([] if inside else DROP))
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.undone") == [(2,)]


def ended(channel: Channel) -> None:
    """Wait until the server has dropped the temporary tables of a closed connection, and detached its transaction."""
    last = time.monotonic() + 60
    while channel.source.query("SELECT COUNT(*) FROM information_schema.processlist")[0][0] > 1:
        assert time.monotonic() < last
        time.sleep(0.05)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_transaction_may_outlive_its_connection_and_its_temporary_tables(channel: Channel, end: str) -> None:
    made(channel)
    with session(channel) as run:
        run(*MAKE, "XA START 'x'", *by_way("1", "undone"), "XA END 'x'", "XA PREPARE 'x'")
    ended(channel)
    channel.source.query(f"XA {end} 'x'")
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.undone") == [(2 if end == "COMMIT" else 0,)]


BETWEEN = {
    "rows that it has read": "DELETE FROM tenant_1.read_by_it WHERE v = 'first'",
    "a trigger": (
        "CREATE TRIGGER tenant_1.late BEFORE INSERT ON tenant_1.undone FOR EACH ROW "
        "INSERT INTO tenant_1.seen (v) VALUES (NEW.v)"
    ),
    "a trigger that is dropped": "DROP TRIGGER tenant_1.early",
    "a definition that it has read": "ALTER TABLE tenant_1.read_by_it DROP COLUMN w, ADD COLUMN w INT DEFAULT 9 FIRST",
    "a table that it has read": "DROP TABLE tenant_1.read_by_it",
    "a routine": "CREATE OR REPLACE FUNCTION tenant_1.two() RETURNS INT DETERMINISTIC NO SQL RETURN 3",
}


@pytest.mark.parametrize("form", ["STATEMENT", "MIXED"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.paired
def test_others_change_what_a_prepared_transaction_has_read(channel: Channel, form: str, end: str) -> None:
    """MariaDB gives up the locks of what was only read at XA PREPARE, and those of definitions with the connection."""
    databases = {what: f"tenant_{number}" for number, what in enumerate(BETWEEN, 1)}
    if end == "ROLLBACK":
        # nobody can say any more which engine it had
        del databases["a table that it has read"]
    for database in databases.values():
        run_on(
            channel.source,
            f"CREATE DATABASE {database}",
            f"CREATE TABLE {database}.undone (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80), w INT)",
            f"CREATE TABLE {database}.seen (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80))",
            f"CREATE TABLE {database}.read_by_it (id INT PRIMARY KEY, v VARCHAR(80), w INT)",
            f"INSERT INTO {database}.read_by_it VALUES (1, 'first', 1), (2, 'second', 2)",
            f"CREATE FUNCTION {database}.two() RETURNS INT DETERMINISTIC NO SQL RETURN 2",
            f"CREATE TRIGGER {database}.early AFTER INSERT ON {database}.undone FOR EACH ROW "
            f"INSERT INTO {database}.seen VALUES (NEW.id, 'early')",
        )
    # programs of an earlier window are known
    assert channel.run() is not None
    for what, database in databases.items():
        reading = "INSERT INTO undone (id, v, w) SELECT id, v, w FROM read_by_it"
        calling = "INSERT INTO undone (id, w) VALUES (9, two())"
        with session(channel, database=database) as run:
            run(f"SET SESSION binlog_format = {form}")
            run("XA START 'x'", calling if what == "a routine" else reading, "XA END 'x'", "XA PREPARE 'x'")
        ended(channel)
        channel.source.query(BETWEEN[what].replace("tenant_1", database))
        channel.source.query(f"XA {end} 'x'")
    assert channel.run() is not None
    channel.assert_equal()
    rows = [channel.target.query(f"SELECT COUNT(*) FROM {each}.undone")[0][0] for each in databases.values()]
    assert rows == ([2, 2, 2, 2, 2, 1] if end == "COMMIT" else [0] * 5)


@pytest.fixture(params=list(Flavor))
def mixing(request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]) -> Channel:
    """A channel between servers that let a transaction change tables of both kinds."""
    if request.param is Flavor.MARIADB:
        found: Channel = request.getfixturevalue("channel")
        return found
    source, target = request.getfixturevalue("anonymous_mysql")
    return fresh_channel(source, target, tmp_path, clean_servers)


@requires_mysql
def test_rollbacks_with_and_without_prepare_leave_what_tables_without_transactions_keep(mixing: Channel) -> None:
    made(mixing)
    for direct in ("OFF", "ON"):
        with session(mixing, direct) as run:
            for number, middle in enumerate((["XA PREPARE 'x'"], [])):
                for what, tables in enumerate((("undone", "kept"), ("kept", "undone"), ("kept",), ("undone",))):
                    word = f"{direct} {number} {what}"
                    run("XA START 'x'", *fill(word, *tables), "XA END 'x'", *middle, "XA ROLLBACK 'x'")
                    one_phase = "" if middle else "ONE PHASE"
                    run("XA START 'x'", *fill(word, *tables), "XA END 'x'", *middle, f"XA COMMIT 'x' {one_phase}")
    assert mixing.run() is not None
    mixing.assert_equal()
    assert mixing.target.query("SELECT COUNT(*) FROM tenant_1.kept") == [(24,)]
    assert mixing.target.query("SELECT COUNT(*) FROM tenant_1.undone") == [(12,)]


@requires_mysql
@pytest.mark.parametrize("tables", [("undone", "kept"), ("undone",)], ids=["both kinds", "with transactions"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.paired
def test_a_window_ends_before_a_transaction_with_statements_that_has_not_ended(
    mixing: Channel, end: str, tables: tuple[str, ...]
) -> None:
    made(mixing)
    mixing.source.query("INSERT INTO tenant_2.t (v) VALUES ('before')")
    with session(mixing) as run:
        run("XA START 'x'", *fill("1", *tables), "XA END 'x'", "XA PREPARE 'x'")
        try:
            mixing.source.query("INSERT INTO tenant_2.t (v) VALUES ('between')")
            assert mixing.run() is not None
            assert mixing.target.query("SELECT v FROM tenant_2.t") == [("before",)]
            with pytest.raises(WindowOpenError, match=r"X'78',X'',1 is prepared here, with statements, .* XA RECOVER"):
                mixing.run()
        finally:
            # its locks would outlive the test
            run(f"XA {end} 'x'")
    assert mixing.run() is not None
    mixing.assert_equal()
    assert mixing.target.query("SELECT v FROM tenant_2.t") == [("before",), ("between",)]
    if "kept" in tables:
        assert mixing.target.query("SELECT v FROM tenant_1.kept") == [("1",)]


@requires_mysql
def test_what_the_filter_leaves_out_and_what_ends_at_once_hold_no_window(mixing: Channel) -> None:
    made(mixing)
    mixing.write_channel('allow_nontransactional = true\n[filter]\nexclude_databases = ["tenant_2"]\n')
    with session(mixing, database="tenant_2") as run:
        run("XA START 'x'", *fill("1", "t"), "XA END 'x'", "XA PREPARE 'x'")
        try:
            with session(mixing) as other:
                other("XA START 'y'", *fill("2", "undone"), "XA END 'y'", "XA COMMIT 'y' ONE PHASE")
                other("XA START 'z'", *fill("2", "undone"), "XA END 'z'", "XA ROLLBACK 'z'")
            assert mixing.run() is not None
        finally:
            run("XA COMMIT 'x'")
    assert mixing.target.query("SELECT v FROM tenant_1.undone") == [("2",)]
    assert mixing.target.query("SELECT COUNT(*) FROM tenant_2.t") == [(0,)]
    mixing.source.query("INSERT INTO tenant_1.undone (v) VALUES ('later')")
    assert mixing.run() is not None
    assert mixing.target.query("SELECT v FROM tenant_1.undone") == [("2",), ("later",)]


@requires_mysql
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_temporary_tables_in_xa_transactions_that_mysql_does_not_detach(
    anonymous_mysql: tuple[PrivateServer, PrivateServer],
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    end: str,
) -> None:
    """Only so does it take temporary tables in XA transactions; ``xa_detach_on_prepare`` is ON by default."""
    channel = made(fresh_channel(*anonymous_mysql, tmp_path, clean_servers))
    with session(channel) as run:
        run("SET SESSION xa_detach_on_prepare = OFF")

        def xa(*statements: str) -> None:
            run("XA START 'x'", *statements, "XA END 'x'", "XA PREPARE 'x'")
            channel.source.query("INSERT INTO tenant_2.t (v) VALUES ('between')")
            run(f"XA {end} 'x'")

        groups(run, xa, "undone")
    assert channel.run() is not None
    channel.assert_equal()
