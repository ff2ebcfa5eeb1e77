"""kill -9 anywhere in a first copy, changes on the source, and again: in the end both servers are equal."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Sequence
from importlib import import_module
from multiprocessing import get_context
from typing import Any, Final

import pymysql
import pytest
from sqlalchemy import select, update

from binlane.bootstrap import account_copy as accounts
from binlane.bootstrap.definition_copy import make_behind_rows, rehearse_programs
from binlane.bootstrap.first_copy import Options, Outcome
from binlane.bootstrap.sessions import Session, read_session
from binlane.bootstrap.snapshot import shared_snapshot
from binlane.errors import PrecheckError, TargetUnavailableError
from binlane.orchestration.commands.copies.bootstrap import LogLines, first_copy
from binlane.servers.engines import engine_of
from binlane.state.channels import read_channel
from binlane.state.records import bootstraps as bootstraps_of
from binlane.state.records.bootstraps import read_bootstrap
from binlane.state.tables import bootstraps
from lab.servers import PrivateServer
from tests.integration.bootstrap.test_bootstrap import bootstrap, make_objects
from tests.integration.window.conftest import CHANNEL, Channel, run_on

pytestmark = pytest.mark.trial

STORY: Final[tuple[tuple[str, str, int, bool, list[str]], ...]] = (
    # module, name, which call, behind it; then what the source does
    ("first_copy", "make", 3, False, ["INSERT INTO shop.parent (name) VALUES ('k1')"]),
    ("row_copy", "copy_chunk", 3, False, ["UPDATE shop.gen SET a = 11 WHERE id = 1"]),
    (
        "row_copy", "copy_chunk", 5, True,
        ["ALTER TABLE shop.bare ADD c INT", "INSERT INTO shop.bare VALUES (5, 'k', 6)"],
    ),
    ("first_copy", "drop", 2, True, ["RENAME TABLE shop.parts TO shop.x, shop.bare TO shop.parts"]),
    ("first_copy", "make_behind_rows", 1, False, ["DELETE FROM shop.child WHERE id = 1"]),
    ("first_copy", "make_behind_rows", 1, True, ["INSERT INTO shop.parent (name) VALUES ('k2')"]),
    ("first_copy", "create_channel", 1, False, []),
)  # fmt: skip


def kill_at(channel: Channel, module: str, name: str, call: int, behind: bool) -> None:
    """A first copy in a process of its own, which kills itself at, or behind, a call of one of its functions."""
    process = get_context("fork").Process(target=killed, args=(channel, module, name, call, behind))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def killed(channel: Channel, module: str, name: str, call: int, behind: bool) -> None:
    real = getattr(import_module(f"binlane.bootstrap.{module}"), name)
    calls: list[object] = []

    def once(*arguments: object, **named: object) -> object:
        calls.append(arguments)
        if len(calls) == call and not behind:
            os.kill(os.getpid(), signal.SIGKILL)
        found = real(*arguments, **named)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"binlane.bootstrap.{module}.{name}", once)
        code = bootstrap(channel, "--jobs", "1", "--chunk-rows", "2")
    os._exit(code)  # it was not killed


@pytest.mark.parametrize("call", [1, 3])
def test_a_copy_whose_machine_stood_still_holds_nothing_and_writes_nothing_into_a_later_one(
    either: Channel, call: int
) -> None:
    """It says nothing to its servers and closes no connection, and wakes up behind its successor."""
    make_objects(either)
    process = get_context("fork").Process(target=paused, args=(either, call))
    process.start()
    assert process.pid is not None
    # it stops itself, in an open transaction of its rows
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    try:
        run_on(either.source, "SET SESSION lock_wait_timeout = 30", "ALTER TABLE shop.parent COMMENT 'by a DDL'")
        assert bootstrap(either, "--jobs", "1", "--chunk-rows", "2") == 0
        either.assert_equal()
    finally:
        os.kill(process.pid, signal.SIGCONT)
    process.join(60)
    assert process.exitcode not in (None, 0)
    either.assert_equal()
    run_on(either.source, "UPDATE shop.child SET n = 98")
    assert either.run() is not None
    either.assert_equal()


def paused(channel: Channel, call: int) -> None:
    """A first copy that stops itself in front of a chunk's COMMIT."""
    calls: list[object] = []
    real = bootstraps_of.count_rows

    def once(*arguments: Any, **named: Any) -> None:
        real(*arguments, **named)
        calls.append(arguments)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGSTOP)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("ALONE_SECONDS", "STREAMING_SECONDS"):
            patch.setattr(f"binlane.bootstrap.kept_sessions.{name}", 2)
        patch.setattr("binlane.bootstrap.kept_sessions._PAUSE", 0.3)
        patch.setattr(bootstraps_of, "count_rows", once)
        code = bootstrap(channel, "--jobs", "1", "--chunk-rows", "2")
    os._exit(code)


def test_kill_9_at_every_stage_with_changes_on_the_source_in_between(
    either: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(either)
    for module, name, call, behind, statements in STORY:
        kill_at(either, module, name, call, behind)
        run_on(either.source, *statements)
    assert bootstrap(either) == 0
    # nothing was changed behind the last attempts, so no table was copied twice
    assert "7 tables (7 kept from an earlier attempt), 0 rows" in capsys.readouterr().out
    either.assert_equal()
    run_on(either.source, "UPDATE shop.child SET n = 99")
    assert either.run() is not None
    either.assert_equal()


def test_an_attempt_that_was_killed_behind_the_channel_s_row_is_ended_by_the_next_one(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(mariadb)
    kill_at(mariadb, "first_copy", "create_channel", 1, True)
    with engine_of(mariadb.endpoints.target).connect() as connection:
        unfinished = read_bootstrap(connection, CHANNEL)
        mark = read_channel(connection, CHANNEL).watermark
    assert unfinished is not None
    run_on(mariadb.source, "INSERT INTO shop.parent (name) VALUES ('meanwhile')")
    assert bootstrap(mariadb, "--users") == 1, "another copy than the one that was ended"
    assert "its first copy, of od-d, shop, is complete" in capsys.readouterr().err
    # a schedule has run it since
    assert mariadb.run() is not None
    assert bootstrap(mariadb) == 0
    said = capsys.readouterr().out
    assert "2 databases, 7 tables, 22 rows" in said
    assert f"watermark at seqno 0, {mark.source}" in said
    with engine_of(mariadb.endpoints.target).connect() as connection:
        assert read_bootstrap(connection, CHANNEL) is None
    mariadb.assert_equal()
    # finished: whoever asks again is told so, and with --replace nothing is dropped
    for options in ((), ("--replace",)):
        assert bootstrap(mariadb, *options) == 1
        assert "found one on this target (its first copy, of od-d, shop" in capsys.readouterr().err
    mariadb.assert_equal()
    # the channel is forgotten, and what was copied is not taken for an attempt's
    run_on(mariadb.target, f"DELETE FROM binlane.channels WHERE channel = '{CHANNEL}'")
    assert bootstrap(mariadb) == 1
    assert "objects that no first copy of this channel has created" in capsys.readouterr().err
    assert bootstrap(mariadb, "--replace") == 0
    mariadb.assert_equal()


def test_of_finished_tables_the_changed_rows_are_read_again_and_without_a_key_the_table(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(mariadb)
    kill_at(mariadb, "first_copy", "create_channel", 1, False)
    run_on(mariadb.source, "UPDATE shop.gen SET a = 12 WHERE id = 1", "DELETE FROM shop.bare WHERE a IS NULL")
    assert bootstrap(mariadb) == 0
    # the row of gen is read again; bare has no primary key
    assert "7 tables (6 kept from an earlier attempt), 3 rows" in capsys.readouterr().out
    mariadb.assert_equal()


def test_an_attempt_is_the_same_one_only_with_the_same_databases(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(mariadb)
    kill_at(mariadb, "row_copy", "copy_chunk", 3, False)
    assert bootstrap(mariadb, "--databases", "shop") == 1
    assert "an unfinished first copy has the databases od-d, shop" in capsys.readouterr().err
    run_on(mariadb.target, "CREATE VIEW shop.mine AS SELECT 1")
    assert bootstrap(mariadb) == 1
    assert "view shop.mine" in capsys.readouterr().err
    assert bootstrap(mariadb, "--replace") == 0
    mariadb.assert_equal()
    with engine_of(mariadb.endpoints.target).connect() as connection:
        assert read_bootstrap(connection, CHANNEL) is None


def test_an_attempt_goes_on_from_its_own_source_alone(either: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    make_objects(either)
    kill_at(either, "first_copy", "create_channel", 1, False)
    copied = either.target.query("SELECT * FROM shop.parent")
    with engine_of(either.endpoints.target).begin() as connection:
        identity = connection.execute(select(bootstraps.c.source_identity)).scalar_one()
        connection.execute(update(bootstraps).values(source_identity=f"{identity}0"))
    assert bootstrap(either) == 1
    said = capsys.readouterr().err
    assert f"an unfinished first copy is of another source: binlane@127.0.0.1:{either.source.port}" in said
    assert f"expected the channel's server, {identity}0" in said
    assert "--replace" in said
    assert either.target.query("SELECT * FROM shop.parent") == copied
    assert bootstrap(either, "--replace") == 0
    either.assert_equal()


def test_a_lost_log_means_that_every_table_is_copied_again(
    mariadb: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    make_objects(mariadb)
    kill_at(mariadb, "first_copy", "create_channel", 1, False)
    newest = mariadb.source.query("FLUSH BINARY LOGS") or mariadb.source.query("SHOW BINARY LOGS")[-1][0]
    # a server keeps files that a reader is in, and one whose process was killed is still known to it for a while
    while len(mariadb.source.query("SHOW BINARY LOGS")) > 1:
        mariadb.source.query(f"PURGE BINARY LOGS TO '{newest}'")
        time.sleep(0.1)
    assert bootstrap(mariadb) == 0
    said = capsys.readouterr().out
    assert "7 tables, 22 rows" in said
    assert "no table of an earlier attempt was kept" in said
    mariadb.assert_equal()


def test_one_first_copy_of_a_channel_runs_at_a_time(
    mariadb: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_objects(mariadb)

    def again(*arguments: object) -> list[str]:
        monkeypatch.setattr("binlane.bootstrap.first_copy._LEASE_SECONDS", 1)
        assert bootstrap(mariadb) == 1
        assert "another first copy of this channel is running" in capsys.readouterr().err
        return make_behind_rows(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("binlane.bootstrap.first_copy.make_behind_rows", again)
    assert bootstrap(mariadb) == 0


def without_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `binlane init` begin a channel whose first copy runs, as before it took the lease."""
    monkeypatch.setattr("binlane.orchestration.commands.run.beginning", lambda *_: contextlib.nullcontext())


def test_a_channel_created_during_a_first_copy_is_not_taken_for_its_own(
    mariadb: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would begin elsewhere, and what the source has changed in between would never arrive."""
    without_lease(monkeypatch)
    make_objects(mariadb)

    def meanwhile(*arguments: object) -> list[str]:
        run_on(mariadb.source, "INSERT INTO shop.parent (name) VALUES ('between')")
        # as somebody does who believes that it is given up
        run_on(mariadb.target, f"DELETE FROM binlane.bootstraps WHERE channel = '{CHANNEL}'")
        mariadb.init()
        return make_behind_rows(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("binlane.bootstrap.first_copy.make_behind_rows", meanwhile)
    assert bootstrap(mariadb) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "was created by somebody else while its first copy ran" in said
    [place] = re.findall(r"with --start (\S+)", said)
    run_on(mariadb.target, f"DELETE FROM binlane.channels WHERE channel = '{CHANNEL}'")
    mariadb.init(place)
    assert mariadb.run() is not None
    mariadb.assert_equal()


def test_a_first_copy_beside_another_s_channel_fails_each_time(
    mariadb: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The channel is there before the copy is recorded, so its record stays and is complete in the end."""
    without_lease(monkeypatch)
    make_objects(mariadb)

    def behind_init(*arguments: Any, **named: Any) -> object:
        mariadb.init()
        run_on(mariadb.source, "INSERT INTO shop.parent (name) VALUES ('between')")
        return shared_snapshot(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr("binlane.bootstrap.first_copy.shared_snapshot", behind_init)
        assert bootstrap(mariadb) == 1
    for _ in range(2):
        said = " ".join(capsys.readouterr().err.split())
        assert "was created by somebody else while its first copy ran" in said
        assert bootstrap(mariadb) == 1
    [place] = re.findall(r"with --start (\S+)", said)
    run_on(mariadb.target, f"DELETE FROM binlane.channels WHERE channel = '{CHANNEL}'")
    mariadb.init(place)
    run_on(mariadb.source, "INSERT INTO shop.parent (name) VALUES ('later')")
    assert mariadb.run() is not None
    mariadb.assert_equal()


def test_no_channel_begins_elsewhere_while_its_first_copy_runs(
    mariadb: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make_objects(mariadb)

    def meanwhile(*arguments: object) -> list[str]:
        assert mariadb.cli("init", CHANNEL) == 1
        assert "expected no first copy of this channel, found one that is running" in capsys.readouterr().err
        return make_behind_rows(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("binlane.bootstrap.first_copy.make_behind_rows", meanwhile)
    assert bootstrap(mariadb) == 0
    assert mariadb.cli("init", CHANNEL) == 0, "of a channel that exists it changes nothing"


def test_a_copy_whose_lock_against_ddl_was_lost_is_not_complete(
    either: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables that exchange their names before they are read fail no session that reads their snapshot."""
    make_objects(either)
    run_on(
        either.source,
        *(f"CREATE TABLE shop.swap_{name} (id INT PRIMARY KEY, n INT)" for name in "ab"),
        *(f"INSERT INTO shop.swap_{name} VALUES ({n}, {n})" for n, name in enumerate("ab")),
    )
    opened = list[Session]()

    def recorded(*arguments: Any, **named: Any) -> Session:
        opened.append(read_session(*arguments, **named))
        return opened[-1]

    def exchanged(*arguments: Any) -> None:
        exchange = "RENAME TABLE shop.swap_a TO shop.x, shop.swap_b TO shop.swap_a, shop.x TO shop.swap_b"
        run_on(either.source, f"KILL {opened[0].connection.thread_id()}", exchange)
        rehearse_programs(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr("binlane.bootstrap.snapshot.read_session", recorded)
        patch.setattr("binlane.bootstrap.first_copy.rehearse_programs", exchanged)
        assert bootstrap(either) == 1
    assert "expected the lock against DDL" in " ".join(capsys.readouterr().err.split())
    assert bootstrap(either) == 0
    either.assert_equal()


def test_a_replacing_order_drops_once_and_its_next_attempt_goes_on(mariadb: Channel) -> None:
    """As the tries of a DAG's task."""

    def attempt(order: str) -> Outcome:
        options = Options(replace=True, order=order)
        return first_copy(mariadb.config, mariadb.endpoints, options, LogLines())

    def broken_off(*_: object, **__: object) -> None:
        raise TargetUnavailableError("gone")

    make_objects(mariadb)
    run_on(mariadb.target, "CREATE DATABASE shop", "CREATE TABLE shop.mine (id INT)")
    for order in ("first", "second"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("binlane.bootstrap.first_copy.create_channel", broken_off)
            with pytest.raises(TargetUnavailableError):
                attempt(order)
        with engine_of(mariadb.endpoints.target).connect() as connection:
            unfinished = read_bootstrap(connection, CHANNEL)
        assert unfinished is not None
        assert (unfinished.replaced_for, unfinished.attempts) == (order, 1)
    done = attempt("second")
    assert (done.result.kept, done.result.rows, done.result.attempts) == (7, 0, 2)
    # a task that was killed before it could tell: its next try is told what is done, another run's is refused
    assert attempt("second") == done
    with pytest.raises(PrecheckError, match="its first copy, of od-d, shop, is complete"):
        attempt("third")
    mariadb.assert_equal()


_ACCOUNTS: Final = (
    "CREATE USER 'o''ne'@'%' IDENTIFIED BY 'x'",
    "GRANT SELECT, INSERT ON shop.* TO 'o''ne'@'%'",
    "CREATE ROLE readers",
    "GRANT SELECT ON shop.parent TO readers",
)


@pytest.mark.parametrize("options", [(), ("--replace",)])
def test_accounts_of_a_killed_attempt_have_their_privileges_in_the_end(
    either: Channel, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """They were there already, as those that the operator has made, and without them."""
    make_objects(either)
    run_on(either.source, *_ACCOUNTS)
    run_on(either.target, "CREATE USER mine@localhost")
    run_on(either.source, "CREATE USER mine@localhost", "GRANT SELECT ON shop.* TO mine@localhost")

    def lost(session: Session, left: Sequence[tuple[str, bytes]]) -> None:
        real(session, left)
        raise pymysql.err.OperationalError(2013, "lost")

    real = accounts._make
    with monkeypatch.context() as patch:
        patch.setattr(accounts, "_make", lost)
        assert bootstrap(either, "--users") != 0
    assert len(_grants(either.target, "'o''ne'@'%'")) == 1, "created, and without its privilege"
    run_on(either.source, "GRANT UPDATE ON shop.parent TO readers")
    assert bootstrap(either, "--users", *options) == 0
    for name in ("'o''ne'@'%'", "readers"):
        assert _grants(either.target, name) == _grants(either.source, name)
    assert len(_grants(either.target, "mine@localhost")) == 1
    for server in (either.source, either.target):
        run_on(server, "DROP USER mine@localhost")
    either.assert_equal()
    for server in (either.source, either.target):
        run_on(server, "DROP USER 'o''ne'@'%'", "DROP ROLE readers")


def _grants(server: PrivateServer, name: str) -> list[str]:
    return sorted(str(grant) for (grant,) in server.query(f"SHOW GRANTS FOR {name}"))
