"""A first copy that ends inside a table continues there; in the end all rows are of one state of the source."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable
from contextlib import closing
from multiprocessing import get_context
from typing import Final

import pytest

from binlane.bootstrap import broken_views, catch_up
from binlane.bootstrap import first_copy as run
from binlane.bootstrap import row_copy as rows
from binlane.model import TableKey
from binlane.servers.engines import engine_of
from binlane.state.leases import bootstrap_lease
from binlane.state.migrations.upgrade import create
from binlane.state.records.bootstraps import ObjectProgress, read_bootstrap
from tests.integration.bootstrap.test_bootstrap import bootstrap
from tests.integration.window.conftest import CHANNEL, Channel, run_on

pytestmark = pytest.mark.trial

ROWS: Final = 1_000
TABLES: Final = (
    "CREATE DATABASE shop CHARACTER SET utf8mb4",
    "USE shop",
    "CREATE TABLE big (a VARCHAR(20), b INT, u INT NOT NULL UNIQUE, n INT, x TEXT, PRIMARY KEY (a, b)) ENGINE=InnoDB",
    "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, n INT)",
    "CREATE TABLE bare (n INT)",
    "INSERT INTO bare VALUES (1), (1), (2)",
)
MEANWHILE: Final = (
    # a row moves to a key on the other side of the frontier and back, unique values are exchanged by three rows
    "UPDATE shop.big SET a = 'zz', b = b + 5000 WHERE a = 'k000' AND b < 20",
    "UPDATE shop.big SET a = 'aa' WHERE a = 'k009' AND b > 985",
    "UPDATE shop.big SET u = -1 WHERE u = 31",
    "UPDATE shop.big SET u = 31 WHERE u = 32",
    "UPDATE shop.big SET u = 32 WHERE u = 990",
    "UPDATE shop.big SET u = 990 WHERE u = -1",
    "DELETE FROM shop.big WHERE b IN (40, 41, 42, 995)",
    "INSERT INTO shop.big VALUES ('k000', -1, 100001, 1, 'new'), ('k009', 9999, 100002, 1, 'new')",
    "UPDATE shop.big SET n = n + 1 WHERE b BETWEEN 100 AND 160",
    "INSERT INTO shop.log (n) SELECT b FROM shop.big WHERE b < 30",
    "DELETE FROM shop.log ORDER BY id DESC LIMIT 1",
)


def fill(channel: Channel) -> None:
    values = ", ".join(f"('k{n // 100:03}', {n}, {n}, 0, REPEAT('x', {n % 50}))" for n in range(ROWS))
    run_on(channel.source, *TABLES, f"INSERT INTO big VALUES {values}", "INSERT INTO log (n) SELECT b FROM big")


def copy_until(
    channel: Channel, module: object, name: str, call: int, then: Callable[[], object], *options: str
) -> int | None:
    """A first copy in a process of its own, at a call of one of its functions ``then`` happens; its exit code."""

    def copied() -> None:
        real = getattr(module, name)
        calls: list[object] = []

        def once(*arguments: object, **named: object) -> object:
            calls.append(arguments)
            if len(calls) == call:
                then()
            return real(*arguments, **named)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, name, once)
            os._exit(bootstrap(channel, "--jobs", "2", "--chunk-rows", "50", *options))

    process = get_context("fork").Process(target=copied)
    process.start()
    process.join()
    return process.exitcode


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def state_of(channel: Channel, table: str) -> ObjectProgress:
    with engine_of(channel.endpoints.target).connect() as connection:
        found = read_bootstrap(connection, CHANNEL)
    assert found is not None
    return {TableKey(each.database, each.name): one for each, one in found.made.items()}[TableKey("shop", table)]


def test_kill_9_inside_a_table_and_inside_the_catching_up(
    either: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "_BATCH", 5)
    fill(either)
    assert copy_until(either, rows, "copy_chunk", 12, die) == -signal.SIGKILL
    reached = state_of(either, "big")
    assert reached.reached is not None
    assert 0 < reached.reached_rows <= reached.rows < ROWS
    for call, statements in ((2, MEANWHILE[:6]), (9, MEANWHILE[6:])):
        run_on(either.source, *statements)
        assert copy_until(either, catch_up, "count_rows", call, die) == -signal.SIGKILL
    assert copy_until(either, rows, "copy_chunk", 4, die) == -signal.SIGKILL
    assert state_of(either, "big").reached_rows > reached.reached_rows - 10
    run_on(
        either.source, "UPDATE shop.big SET n = n + 1 WHERE b BETWEEN 150 AND 300", "DELETE FROM shop.big WHERE b = 77"
    )
    assert bootstrap(either, "--jobs", "2", "--chunk-rows", "50") == 0
    assert "continued from an earlier attempt)" in capsys.readouterr().out
    either.assert_equal()
    run_on(either.source, "UPDATE shop.big SET n = 7 WHERE b = 1", "INSERT INTO shop.log (n) VALUES (1)")
    assert either.run() is not None
    either.assert_equal()


@pytest.mark.parametrize("last", ["DO 1", "DROP VIEW reports.v"])
def test_a_statement_through_a_view_of_a_database_that_is_not_copied_means_a_new_copy(
    mariadb: Channel, capsys: pytest.CaptureFixture[str], last: str
) -> None:
    fill(mariadb)
    run_on(mariadb.source, "CREATE DATABASE reports", "CREATE VIEW reports.v AS SELECT b, n FROM shop.big")
    only = "--databases", "shop"
    assert copy_until(mariadb, rows, "copy_chunk", 12, die, *only) == -signal.SIGKILL
    run_on(mariadb.source, "SET SESSION binlog_format = STATEMENT", "UPDATE reports.v SET n = 9 WHERE b < 30", last)
    assert bootstrap(mariadb, *only) == 0
    assert "continued" not in capsys.readouterr().out
    query = "SELECT a, b, n FROM shop.big ORDER BY a, b"
    assert mariadb.target.query(query) == mariadb.source.query(query)


def test_a_lost_source_connection_and_a_killed_target_lose_no_finished_range(
    either: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(either)

    def cut() -> None:
        with closing(either.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user = %s "
                "AND command <> 'Daemon'",
                (either.source.user,),
            )
            for (number,) in cursor.fetchall():
                cursor.execute(f"KILL {number}")

    assert copy_until(either, rows, "copy_chunk", 8, cut) == 1
    first = state_of(either, "big").reached
    assert first is not None
    run_on(either.source, *MEANWHILE)
    assert copy_until(either, rows, "copy_chunk", 8, lambda: os.kill(either.target.pid, signal.SIGKILL)) == 1
    either.target.restart()
    second = state_of(either, "big").reached
    assert second is not None
    assert int(second[1]) >= int(first[1]), "the attempt has not begun at the first row"
    run_on(either.source, "UPDATE shop.big SET n = n + 1")
    assert bootstrap(either) == 0
    assert "continued from an earlier attempt)" in capsys.readouterr().out
    either.assert_equal()


def test_rows_that_somebody_else_has_deleted_behind_the_frontier_mean_a_new_copy(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """As servers that order the keys in different ways would."""
    fill(mariadb)
    assert copy_until(mariadb, rows, "copy_chunk", 8, die) == -signal.SIGKILL
    run_on(mariadb.target, "DELETE FROM shop.big ORDER BY a DESC, b DESC LIMIT 1")
    assert bootstrap(mariadb) == 0
    assert "continued" not in capsys.readouterr().out
    mariadb.assert_equal()


def test_many_changes_are_read_again_in_rounds_and_a_ddl_means_a_new_copy(
    mariadb: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(mariadb)
    assert copy_until(mariadb, rows, "copy_chunk", 12, die) == -signal.SIGKILL
    monkeypatch.setattr("binlane.verify.log_reader._SPILLED", 3)
    monkeypatch.setattr("binlane.bootstrap.catch_up._BATCH", 2)
    run_on(mariadb.source, *MEANWHILE, "FLUSH BINARY LOGS", "UPDATE shop.big SET u = 2000000 - u", "FLUSH BINARY LOGS")
    assert copy_until(mariadb, rows, "copy_chunk", 4, die) == -signal.SIGKILL
    run_on(
        mariadb.source, "UPDATE shop.big SET n = 5 WHERE b < 9", "ALTER TABLE shop.big ADD COLUMN later INT DEFAULT 3"
    )
    assert bootstrap(mariadb) == 0
    assert "2 continued" not in capsys.readouterr().out
    mariadb.assert_equal()


def test_the_status_of_a_copy_that_begins_says_that_it_runs(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    mariadb.target.query("DROP DATABASE IF EXISTS binlane")
    assert mariadb.cli("status", CHANNEL) == 1
    assert f"`binlane bootstrap {CHANNEL}` or `binlane init {CHANNEL}` begins it" in capsys.readouterr().err
    create(engine_of(mariadb.endpoints.target))
    with closing(mariadb.target.connect()) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 1)", (bootstrap_lease(CHANNEL),))
        assert mariadb.cli("status", CHANNEL) == 0
        assert "first copy, running: connection" in capsys.readouterr().out
        assert mariadb.cli("status", CHANNEL, "--json") == 0
        assert json.loads(capsys.readouterr().out)["first_copy"] == {"attempt": 0, "running": True}
        assert mariadb.cli("status", "--all", "--json") == 0
        assert "first copy, running: connection" in capsys.readouterr().out


def test_a_look_at_a_copy_of_a_fleet_reads_no_list_of_its_objects(
    mariadb: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(mariadb)
    assert copy_until(mariadb, rows, "copy_chunk", 12, die) == -signal.SIGKILL
    run_on(
        mariadb.target,
        "INSERT INTO binlane.bootstrap_objects (channel, kind, object_schema, object_name, state, copied_rows, "
        f"source_rows, source_bytes) SELECT '{CHANNEL}', 'table', 'fleet', CONCAT('t', seq), 'planned', 0, 9, 1000 "
        "FROM shop.seq_1_to_5000",
    )
    capsys.readouterr()
    monkeypatch.setattr("binlane.driver.wire.LARGEST_LOOK", 1 << 20)
    assert mariadb.cli("status", "--all", "--json") == 0
    [listed] = json.loads(capsys.readouterr().out)
    [found] = listed["health"]["findings"]
    assert "of 5,003 tables" in found["text"]


def test_the_status_of_an_unfinished_copy_says_how_far_it_has_come(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(mariadb)
    run_on(mariadb.source, "ANALYZE TABLE shop.big")
    assert copy_until(mariadb, rows, "copy_chunk", 12, die) == -signal.SIGKILL
    capsys.readouterr()
    assert mariadb.cli("status", CHANNEL, "--json") == 0
    found = json.loads(capsys.readouterr().out)["first_copy"]
    copied = [state_of(mariadb, table) for table in ("big", "log", "bare")]
    assert (found["attempt"], found["running"], found["tables"], found["seconds_left"]) == (1, False, 3, None)
    assert (found["rows"], found["bytes"]) == (sum(one.rows for one in copied), sum(one.bytes for one in copied))
    assert 0 < found["bytes"] < found["all_bytes"]
    assert mariadb.cli("status", CHANNEL) == 0
    shown = capsys.readouterr().out
    shown = " ".join(shown.split())
    assert f"1, interrupted; `binlane bootstrap {CHANNEL}` with the same options continues" in shown
    assert f"shop.big: {copied[0].rows:,} of about" in shown
    assert mariadb.cli("status", "--all", "--json") == 0
    [listed] = json.loads(capsys.readouterr().out)
    assert listed["health"]["state"] == "new"
    [found] = listed["health"]["findings"]
    assert found["text"].startswith("first copy, attempt 1, interrupted: ")
    assert found["next_step"] == f"`binlane bootstrap {CHANNEL}` with the same options continues it."
    with mariadb.target.connect() as holder, holder.cursor() as cursor:
        cursor.execute("SELECT GET_LOCK(%s, 0)", (bootstrap_lease(CHANNEL),))
        assert mariadb.cli("check", CHANNEL) == 3
        told = capsys.readouterr().out
    assert re.search(r"first copy, attempt 1, running: \d of 3 tables, .* of .*/s, .* left$", told.strip())


def test_a_filled_table_is_finished_only_with_its_last_range(mariadb: Channel) -> None:
    fill(mariadb)
    assert copy_until(mariadb, rows, "copy_chunk", 22, die) == -signal.SIGKILL
    for table in ("big", "log"):
        found = state_of(mariadb, table)
        counted = mariadb.target.query(f"SELECT COUNT(*) FROM shop.{table}")[0][0]
        assert found.rows == counted, "rows are counted in the transactions that write them"


def test_secondary_keys_are_built_after_the_rows_and_stand_as_on_the_source(
    either: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("binlane.bootstrap.secondary_keys._LARGE", 1)
    fill(either)
    run_on(
        either.source,
        "ALTER TABLE shop.big ADD KEY by_n (n, b), ADD UNIQUE KEY `second ``one` (b, u), ADD KEY by_x (x(10))",
        "ANALYZE TABLE shop.big",
    )
    assert copy_until(either, rows, "copy_chunk", 12, die) == -signal.SIGKILL
    assert len(either.target.query("SHOW KEYS FROM shop.big")) == 2, "of the primary key"
    run_on(either.source, *MEANWHILE)
    assert copy_until(either, run, "build_keys", 1, die) == -signal.SIGKILL
    run_on(either.source, "UPDATE shop.big SET n = 3 WHERE b = 500")
    assert bootstrap(either) == 0
    either.assert_equal()


def test_no_channel_begins_over_an_unfinished_copy(mariadb: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    fill(mariadb)
    run_on(mariadb.source, "CREATE DATABASE other", "CREATE TABLE other.t (id INT PRIMARY KEY)")
    assert copy_until(mariadb, rows, "copy_chunk", 4, die) == -signal.SIGKILL
    found = state_of(mariadb, "big")
    assert found.rows < ROWS

    def refused(*arguments: str, says: str) -> None:
        capsys.readouterr()
        assert mariadb.cli(*arguments) != 0, arguments
        assert says in capsys.readouterr().err, arguments

    continues = f"an unfinished first copy, attempt 1, whose tables lack rows: `binlane bootstrap {CHANNEL}` with"
    refused("init", CHANNEL, says=f"expected no other beginning, found {continues}")
    refused("run", CHANNEL, says=f"unknown on this target; {continues}")
    # shop would stay as it is, without a record
    replaced = ("--replace", "--databases", "other")
    refused(
        "bootstrap", CHANNEL, *replaced, says="tables without their rows in shop on the target, which --replace would"
    )
    assert mariadb.cli("adopt-target", CHANNEL) == 0
    assert continues in capsys.readouterr().out
    assert state_of(mariadb, "big") == found
    run_on(mariadb.target, "DROP DATABASE shop", log=False)
    assert bootstrap(mariadb, *replaced) == 0
    assert mariadb.cli("status", CHANNEL) == 0


def test_a_copy_of_which_the_channel_is_left_begins_at_its_place_alone(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    fill(mariadb)
    assert copy_until(mariadb, run, "create_channel", 1, die) == -signal.SIGKILL
    run_on(mariadb.source, "UPDATE shop.big SET n = 7")
    assert mariadb.cli("init", CHANNEL) != 0
    [place] = re.findall(r"whose channel begins at (\S+): `binlane bootstrap", capsys.readouterr().err)
    assert mariadb.cli("init", CHANNEL, "--start", place) == 0
    assert mariadb.run() is not None
    mariadb.assert_equal()


def test_a_copy_that_was_given_up_hinders_no_beginning(mariadb: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    fill(mariadb)
    assert copy_until(mariadb, rows, "copy_chunk", 4, die) == -signal.SIGKILL
    assert mariadb.cli("init", CHANNEL) != 0
    [statement] = re.findall(r"DELETE FROM binlane\.bootstraps WHERE channel = '\w+'", capsys.readouterr().err)
    mariadb.target.query(statement)
    assert mariadb.cli("init", CHANNEL) == 0


@pytest.mark.parametrize("again", [("--users",), (), ("--users", "--replace")], ids=["users", "without", "replace"])
def test_an_account_that_an_attempt_has_made_is_named_when_nobody_copies_it_any_more(
    again: tuple[str, ...], either: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """It can log in on the target, with all that it was granted."""
    fill(either)
    run_on(either.source, "CREATE USER leaver IDENTIFIED BY 'x'", "CREATE USER stays IDENTIFIED BY 'x'")
    assert copy_until(either, run, "make_behind_rows", 1, die, "--users") == -signal.SIGKILL
    run_on(either.source, "DROP USER leaver")
    assert copy_until(either, run, "make_behind_rows", 1, die, *again) == -signal.SIGKILL
    assert bootstrap(either, *again[:1]) == 0
    said = capsys.readouterr().out
    assert "account 'leaver'@'%': an earlier attempt has made it" in said
    assert ("account 'stays'" in said) == ("--users" not in again)
    users = {name for (name,) in either.target.query("SELECT user FROM mysql.user")}
    assert {"leaver", "stays"} <= users
    run_on(either.source, "DROP USER stays", log=False)
    run_on(either.target, "DROP USER leaver, stays", log=False)


@pytest.mark.parametrize("view", ["stays", "dropped"])
@pytest.mark.parametrize("option", [(), ("--replace",)], ids=["", "replace"])
def test_what_was_made_for_a_broken_view_goes_with_the_next_attempt(
    option: tuple[str, ...], view: str, either: Channel
) -> None:
    """It is in databases that are not copied."""
    run_on(either.source, "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)", "CREATE DATABASE gone")
    run_on(either.source, "CREATE TABLE gone.t (id INT)", "CREATE VIEW shop.v AS SELECT id FROM gone.t")
    run_on(either.source, "DROP DATABASE gone")
    assert copy_until(either, broken_views, "make", 1, die) == -signal.SIGKILL
    databases = "SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'gone'"
    assert len(either.target.query(databases)) == 1
    # another channel's copy is using its own
    comment = "COMMENT 'binlane: stands in for what a view needs, for channel another'"
    run_on(either.target, "CREATE DATABASE used", f"CREATE TABLE used.t (id INT) {comment}")
    if view == "dropped":
        run_on(either.source, "DROP VIEW shop.v")
    assert bootstrap(either, *option) == 0
    assert either.target.query(databases) == []
    assert either.target.query("SHOW TABLES FROM used") == [("t",)]
    run_on(either.target, "DROP DATABASE used")
    views = "SELECT table_name FROM information_schema.views WHERE table_schema = 'shop'"
    assert either.target.query(views) == either.source.query(views)
