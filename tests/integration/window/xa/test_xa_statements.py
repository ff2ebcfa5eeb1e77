"""XA transactions logged as statements: temporary tables, and tables without transactions, which no rollback undoes."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.errors import UnsupportedEventError, WindowOpenError
from binlane.model import Flavor
from binlane.orchestration.request import WindowRequest
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


def test_a_transaction_that_outlives_its_connection_is_refused_if_it_uses_its_tables(channel: Channel) -> None:
    made(channel)
    with session(channel) as run:
        run(*MAKE, "XA START 'x'", *by_way("1", "undone"), "XA END 'x'", "XA PREPARE 'x'")
    # the server drops the tables, and detaches the transaction afterwards
    last = time.monotonic() + 60
    while channel.source.query("SELECT COUNT(*) FROM information_schema.processlist")[0][0] > 1:
        assert time.monotonic() < last
        time.sleep(0.05)
    channel.source.query("XA COMMIT 'x'")
    with pytest.raises(UnsupportedEventError, match="a prepared XA transaction with a statement that depends on its"):
        channel.run()
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.undone") == [(0,)]


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
def test_changes_without_transactions_that_others_have_changed_since_are_refused(mixing: Channel) -> None:
    made(mixing)
    with session(mixing) as run:
        run("XA START 'x'", *fill("1", "undone", "kept"), "XA END 'x'", "XA PREPARE 'x'")
        mixing.source.query("UPDATE tenant_1.kept SET v = CONCAT(v, '+')")
        run("XA COMMIT 'x'")
    with pytest.raises(UnsupportedEventError, match=r"changed tenant_1\.kept, .* between its XA PREPARE and its end"):
        mixing.run()
    assert mixing.target.query("SELECT COUNT(*) FROM tenant_1.kept") == [(0,)]


def test_a_window_may_end_before_changes_without_transactions_whose_transaction_has_not_ended(channel: Channel) -> None:
    made(channel)
    channel.source.query("INSERT INTO tenant_2.t (v) VALUES ('before')")
    with session(channel) as run:
        run("XA START 'x'", *fill("1", "undone", "kept"), "XA END 'x'", "XA PREPARE 'x'")
        with pytest.raises(UnsupportedEventError, match="has not ended in this window") as refused:
            channel.run()
        found = re.search(r"`binlane run CHANNEL --until (\S+)`", str(refused.value))
        assert found is not None
        assert channel.run(WindowRequest(found[1])) is not None
        assert channel.target.query("SELECT v FROM tenant_2.t") == [("before",)]
        run("XA ROLLBACK 'x'")
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query("SELECT v FROM tenant_1.kept") == [("1",)]


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
