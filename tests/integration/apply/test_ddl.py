"""A DDL runs exactly once, whatever happens between it and its position."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from unittest.mock import Mock

import pymysql
import pytest
from pymysql.cursors import Cursor

from binlane.apply import block as block_module
from binlane.apply.ddl.run import gtid_uuid, run_ddl
from binlane.apply.lane.runner import run_lane
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.connection import LaneSession
from binlane.binlog.types.literals import identifier
from binlane.errors import ApplyError, PositionError, TargetUnavailableError, UndecidableError
from binlane.model import Flavor, SessionContext
from binlane.state.positions import move_position
from binlane.state.records.ddl_intents import decide_ddl
from binlane.state.records.journal import read_status
from binlane.state.windows import finish_window
from lab.servers import PrivateServer, private_server
from tests.conftest import requires_mysql
from tests.integration.apply.capture import Captured, Window, ddl_item
from tests.integration.apply.conftest import DATABASE, QUICK, Pair, fresh_pair, positions, start_window

SWAP = "RENAME TABLE a TO x, b TO a, x TO b"


class CrashError(Exception):
    """The process ends here."""


def ddl_window(pair: Pair, *statements: str) -> Window:
    window = Window(pair.recorder().format)
    for statement in statements:
        window.meet(2, (0, 1, 2), pair.recorder().ddl(statement))
    return window


def crash_after_ddl(monkeypatch: pytest.MonkeyPatch) -> None:
    """End the runner between the DDL and the transaction that moves the position."""

    def run_and_crash(*arguments: Any) -> None:
        run_ddl(*arguments)
        raise CrashError

    monkeypatch.setattr(block_module, "run_ddl", run_and_crash)


def crash_before_ddl(monkeypatch: pytest.MonkeyPatch) -> None:
    """End the runner right before the statement is sent."""

    def crash(*_: object) -> None:
        raise CrashError

    monkeypatch.setattr("binlane.apply.rows.writers.BlockWriter.run", crash)


def two_tables(pair: Pair) -> None:
    pair.both(
        "CREATE TABLE a (id INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE b (id INT PRIMARY KEY) ENGINE=InnoDB",
        "INSERT INTO a VALUES (1)",
        "INSERT INTO b VALUES (2)",
    )


@pytest.mark.parametrize(
    ("crash", "swap"),
    [
        (crash_after_ddl, SWAP),
        (crash_before_ddl, SWAP),
        # tools that change a table by a copy send comments
        (crash_after_ddl, "rename /* the tool's; a to b */ table a TO x, b TO a, x TO b"),
        (crash_after_ddl, "/* 7; */ -- 8\nRENAME TABLES a TO `x;y`, b TO a, `x;y` TO b"),
        (crash_before_ddl, f"# 7\n/* 8 */ {SWAP}"),
    ],
)
def test_a_swap_of_equal_tables_happens_once_through_a_crash(
    any_pair: Pair, monkeypatch: pytest.MonkeyPatch, crash: Callable[[pytest.MonkeyPatch], None], swap: str
) -> None:
    """Run twice, it undoes itself, and no definition shows it."""
    two_tables(any_pair)
    window = ddl_window(any_pair, swap)
    start_window(any_pair.engine, window.plan)
    with monkeypatch.context() as patch:
        crash(patch)
        with pytest.raises(CrashError):
            run_lane(any_pair.engine, window.plan, 2, window.source, QUICK)
    assert positions(any_pair) == [0, 0, 0]
    for lane in window.plan.all_lanes:
        run_lane(any_pair.engine, window.plan, lane, window.source, QUICK)
    any_pair.assert_equal("a", "b")
    assert read_status(any_pair.engine, "orders").undecided == ()
    finish_window(any_pair.engine, "orders", "w1", "d1")


_LATIN1: Final = SessionContext(database=DATABASE, sql_mode=0, charset_client=8)
_ANSI_QUOTES: Final = SessionContext(database=DATABASE, sql_mode=4)


@pytest.mark.parametrize(
    ("names", "swap", "context"),
    [
        pytest.param(("é", "ü"), "RENAME TABLE é TO x, ü TO é, x TO ü".encode(), None, id="letters"),
        pytest.param(("é", "ü"), "RENAME TABLE é TO x, ü TO é, x TO ü".encode("latin-1"), _LATIN1, id="latin1"),
        pytest.param(("日", "本-"), "RENAME TABLE 日 TO x, `本-` TO 日, x TO `本-`".encode(), None, id="other letters"),
        pytest.param(
            ("ผู้ใช้", "preis€"),
            "RENAME TABLE ผู้ใช้ TO x, preis€ TO ผู้ใช้, x TO preis€".encode(),
            None,
            id="accents and symbols",
        ),
        pytest.param(
            ("a b", 'c"d'), b'RENAME TABLE "a b" TO x, "c""d" TO "a b", x TO "c""d"', _ANSI_QUOTES, id="quotes"
        ),
        pytest.param(("a", "b"), b"RENAME /* it's `odd */ TABLE a TO x, b TO a, x TO b", None, id="odd comment"),
    ],
)
def test_a_swap_of_tables_with_any_names_happens_once_through_a_crash(
    mariadb_source: PrivateServer,
    target_without_binlog: PrivateServer,
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, str],
    swap: bytes,
    context: SessionContext | None,
) -> None:
    """Of a table that is not found by its name no id tells that it has been moved."""
    with fresh_pair(mariadb_source, target_without_binlog) as pair:
        for number, name in enumerate(names):
            pair.both(
                f"CREATE TABLE {identifier(name)} (id INT PRIMARY KEY)",
                f"INSERT INTO {identifier(name)} VALUES ({number})",
            )
        window = Window(pair.recorder().format)
        item = replace(ddl_item("", DATABASE, context), payload=swap)
        window.meet(2, (0, 1, 2), Captured((item,), pair.recorder().run("DO 1").position))
        start_window(pair.engine, window.plan)
        with monkeypatch.context() as patch:
            crash_after_ddl(patch)
            with pytest.raises(CrashError):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        for number, name in enumerate(reversed(names)):
            assert pair.rows(f"SELECT id FROM {DATABASE}.{identifier(name)}") == [(number,)]


@pytest.mark.parametrize(
    ("setup", "statement", "tables"),
    [
        (["CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"], "TRUNCATE TABLE t", ["t"]),
        (["CREATE TABLE t (a INT PRIMARY KEY)"], "ALTER TABLE t ADD b INT NOT NULL DEFAULT 3", ["t"]),
        (["CREATE TABLE t (a INT PRIMARY KEY)"], "CREATE TABLE u LIKE t", ["t", "u"]),
        (["CREATE TABLE t (a INT PRIMARY KEY)", "CREATE TABLE u (a INT)"], "DROP TABLE u", ["t"]),
        (
            [
                "CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 2",
                "CREATE TABLE u (a INT PRIMARY KEY)",
                "INSERT INTO t VALUES (2)",
                "INSERT INTO u VALUES (4)",
            ],
            "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u",
            ["t", "u"],
        ),
        (["CREATE TABLE t (a INT PRIMARY KEY)"], "CREATE VIEW v AS SELECT a FROM t", ["v"]),
    ],
)
def test_a_ddl_happens_once_through_a_crash(
    any_pair: Pair, monkeypatch: pytest.MonkeyPatch, setup: list[str], statement: str, tables: list[str]
) -> None:
    any_pair.both(*setup)
    window = ddl_window(any_pair, statement)
    start_window(any_pair.engine, window.plan)
    with monkeypatch.context() as patch:
        crash_after_ddl(patch)
        with pytest.raises(CrashError):
            run_lane(any_pair.engine, window.plan, 2, window.source, QUICK)
    run_lane(any_pair.engine, window.plan, 2, window.source, QUICK)
    for table in tables:
        if any_pair.source.query(f"SELECT COUNT(*) FROM {DATABASE}.{table}") != [(0,)]:
            any_pair.assert_equal(table)
        else:
            assert any_pair.rows(f"SELECT COUNT(*) FROM {DATABASE}.{table}") == [(0,)]


@pytest.mark.parametrize(
    ("setup", "statement"),
    [
        (["GRANT SELECT ON {0}.* TO test_r1@localhost, test_r2@localhost"], "SELECT ON {0}.*"),
        (["CREATE TABLE t (a INT)", "GRANT SELECT, UPDATE (a) ON {0}.t TO test_r1@localhost"], "UPDATE (a) ON {0}.t"),
        (["CREATE TABLE t (a INT)", "GRANT SELECT ON {0}.t TO test_r1@localhost"], "SELECT ON {0}.t"),
        (
            ["CREATE PROCEDURE p() DO 1", "GRANT EXECUTE ON PROCEDURE {0}.p TO test_r1@localhost"],
            "EXECUTE ON PROCEDURE {0}.p",
        ),
        (["CREATE ROLE test_role", "GRANT test_role TO test_r1@localhost"], "test_role"),
    ],
)
def test_a_revoke_happens_once_through_a_crash(
    mariadb_pair: Pair,
    monkeypatch: pytest.MonkeyPatch,
    setup: list[str],
    statement: str,
) -> None:
    """Run again, it finds no grant, and no definition shows it."""
    pair, accounts = mariadb_pair, "test_r1@localhost, test_r2@localhost"
    grants = f"REVOKE {statement.format(DATABASE)} FROM test_r1@localhost"
    grants += ", test_r2@localhost" if "test_r2" in setup[0] else ""
    try:
        pair.both(f"CREATE USER {accounts}", *(each.format(DATABASE) for each in setup))
        window = ddl_window(pair, grants)
        start_window(pair.engine, window.plan)
        with monkeypatch.context() as patch:
            crash_after_ddl(patch)
            with pytest.raises(CrashError):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        for account in accounts.split(", "):
            found = pair.target.query(f"SHOW GRANTS FOR {account}")
            assert sorted(found) == sorted(pair.source.query(f"SHOW GRANTS FOR {account}"))
    finally:
        pair.both(f"DROP USER IF EXISTS {accounts}", "DROP ROLE IF EXISTS test_role")


def test_a_revoke_of_what_the_target_has_not_granted_stops_each_time(mariadb_pair: Pair) -> None:
    pair, grant = mariadb_pair, f"SELECT ON {DATABASE}.*"
    try:
        pair.both("CREATE USER test_r1@localhost")
        pair.source.query(f"GRANT {grant} TO test_r1@localhost")
        window = ddl_window(pair, f"REVOKE {grant} FROM test_r1@localhost")
        start_window(pair.engine, window.plan)
        for _ in range(2):
            with pytest.raises(ApplyError, match="1141 There is no such grant"):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
    finally:
        pair.both("DROP USER IF EXISTS test_r1@localhost")


def test_lanes_run_their_ddl_out_of_seqno_order(any_pair: Pair) -> None:
    two_tables(any_pair)
    window = Window(any_pair.recorder().format)
    window.add(0, any_pair.recorder().ddl("ALTER TABLE a ADD c INT"))
    window.add(1, any_pair.recorder().ddl("ALTER TABLE b ADD c INT"))
    window.add(0, any_pair.recorder().ddl("ALTER TABLE a ADD d INT"))
    start_window(any_pair.engine, window.plan)
    for lane in (1, 0):
        run_lane(any_pair.engine, window.plan, lane, window.source, QUICK)
    any_pair.assert_equal("a", "b")


def test_a_statement_that_cannot_be_decided_asks_and_goes_by_the_answer(
    mariadb_source: PrivateServer,
    target_without_binlog: PrivateServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with fresh_pair(mariadb_source, target_without_binlog) as pair:
        # no InnoDB table ids: a swap does not show
        pair.both(
            "CREATE TABLE a (id INT) ENGINE=MyISAM", "CREATE TABLE b (id INT) ENGINE=MyISAM", "INSERT INTO a VALUES (1)"
        )
        window = ddl_window(pair, SWAP)
        start_window(pair.engine, window.plan)
        with monkeypatch.context() as patch:
            crash_after_ddl(patch)
            with pytest.raises(CrashError):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        assert read_status(pair.engine, "orders").undecided == (), "it may run still"
        for ran in (True, False):
            with pytest.raises(PositionError, match=r"no undecided DDL with seqno 1; .* run it first"):
                decide_ddl(pair.engine, "orders", 1, ran=ran)
        with pytest.raises(UndecidableError, match="RENAME TABLE a TO x"):
            run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        [intent] = read_status(pair.engine, "orders").undecided
        assert (intent.seqno, intent.statement) == (1, SWAP)
        decide_ddl(pair.engine, "orders", 1, ran=True)
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        pair.assert_equal("a", "b")


@pytest.mark.parametrize("target", ["mariadb_target", "target_without_binlog"])
def test_a_drop_that_the_server_s_crash_left_half_done_is_finished(
    target: str, mariadb_source: PrivateServer, request: pytest.FixtureRequest
) -> None:
    with fresh_pair(mariadb_source, request.getfixturevalue(target)) as pair:
        two_tables(pair)
        window = ddl_window(pair, "DROP TABLE a, b")
        start_window(pair.engine, window.plan)
        # as MariaDB's recovery leaves it: dropped, and in its log under a GTID of its own
        pair.target.query(f"DROP TABLE {DATABASE}.a")
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        assert pair.target.query(f"SHOW TABLES FROM {DATABASE}") == []


def test_a_ddl_that_the_server_refuses_leaves_no_question_behind(any_pair: Pair) -> None:
    two_tables(any_pair)
    window = Window(any_pair.recorder().format)
    statement = "CREATE TABLE a (id INT)"
    window.meet(2, (0, 1, 2), Captured((ddl_item(statement, DATABASE),), any_pair.recorder().run("DO 1").position))
    start_window(any_pair.engine, window.plan)
    for _ in range(2):
        with pytest.raises(ApplyError, match="1050"):
            run_lane(any_pair.engine, window.plan, 2, window.source, QUICK)
    any_pair.target.query(f"DROP TABLE {DATABASE}.a")
    run_lane(any_pair.engine, window.plan, 2, window.source, QUICK)
    assert any_pair.rows(f"SELECT COUNT(*) FROM {DATABASE}.a") == [(0,)]


@pytest.mark.parametrize("error", [ApplyError("collation 9999"), pymysql.err.OperationalError(1193, "collation 9999")])
def test_a_ddl_whose_session_the_target_cannot_have_leaves_nothing_begun(
    any_pair: Pair, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Nothing was sent, so an order may stop in front of it, or skip it."""
    window = ddl_window(any_pair, "CREATE TABLE a (id INT)")
    start_window(any_pair.engine, window.plan)

    def refuse(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("binlane.apply.session.context.ContextSetter.enter", refuse)
        with pytest.raises(ApplyError, match="collation 9999"):
            run_lane(any_pair.engine, window.plan, 2, window.source, QUICK)
    assert any_pair.target.query("SELECT begun FROM binlane.positions GROUP BY begun") == [(0,)]
    assert any_pair.target.query("SELECT * FROM binlane.ddl") == []
    run_lane(any_pair.engine, window.plan, 2, window.source, QUICK)
    assert any_pair.rows(f"SELECT COUNT(*) FROM {DATABASE}.a") == [(0,)]


@pytest.mark.parametrize("target", ["mariadb_target", "target_without_binlog"])
def test_a_table_that_was_made_is_not_made_again_when_its_rows_are_rolled_back(
    mariadb_source: PrivateServer, target: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CREATE TABLE ... SELECT into a table without transactions: the note of its rows has taken the DDL's place."""
    made = "CREATE TABLE a (id INT) ENGINE=MyISAM"
    with fresh_pair(mariadb_source, request.getfixturevalue(target)) as pair:
        window = Window(pair.recorder().format)
        pair.source.query(f"CREATE TABLE {DATABASE}.a (id INT) ENGINE=MyISAM")
        rows = pair.recorder().run("INSERT INTO a VALUES (1), (2)")
        window.meet(2, (0, 1, 2), Captured((ddl_item(made, DATABASE), *rows.items), rows.position))
        start_window(pair.engine, window.plan)
        failed = list[str]()

        def fail(cursor: Cursor, *arguments: Any) -> bool:
            cursor.execute("SELECT fingerprint FROM binlane.ddl WHERE fingerprint LIKE 'kept:%%'")
            if not failed and (noted := cursor.fetchone()) is not None:
                failed.append(str(noted[0]))
                # one that rolls nothing back: for the others the warnings of a server tell what has stayed
                raise pymysql.err.OperationalError(1047, "WSREP has not yet prepared node for application use")
            return move_position(cursor, *arguments)

        monkeypatch.setattr("binlane.apply.block.move_position", fail)
        run_lane(pair.engine, window.plan, 2, window.source, replace(QUICK, allow_nontransactional=True))
        assert failed != []
        assert pair.rows(f"SELECT id FROM {DATABASE}.a ORDER BY id") == [(1,), (2,)]
        assert pair.rows("SELECT * FROM binlane.ddl") == []


@pytest.mark.parametrize("target", ["mariadb_target", "target_without_binlog"])
def test_an_option_that_mariadb_does_not_know_is_kept_as_its_replicas_keep_it(
    mariadb_source: PrivateServer, target: str, request: pytest.FixtureRequest
) -> None:
    """Only the source has the engine of the option, and the target makes the table in its own."""
    with fresh_pair(mariadb_source, request.getfixturevalue(target)) as pair:
        window = Window(pair.recorder().format)
        context = SessionContext(database=DATABASE, sql_mode=0x200000)
        for statement in ("CREATE TABLE a (id INT NOT NULL) ull=12340", "ALTER TABLE a ull=12350"):
            item = ddl_item(statement, DATABASE, context)
            window.meet(2, (0, 1, 2), Captured((item,), pair.recorder().run("DO 1").position))
        start_window(pair.engine, window.plan)
        for lane in window.plan.all_lanes:
            run_lane(pair.engine, window.plan, lane, window.source, QUICK)
        assert positions(pair) == [2, 2, 2]
        ((_, definition),) = pair.target.query(f"SHOW CREATE TABLE {DATABASE}.a")
    assert "`ull`=12350" in definition


def test_a_ddl_that_waits_for_a_table_lock_names_the_blocker_and_tries_again(any_pair: Pair) -> None:
    two_tables(any_pair)
    window = ddl_window(any_pair, "ALTER TABLE a ADD c INT")
    start_window(any_pair.engine, window.plan)
    options = replace(QUICK, ddl_lock_wait_timeout=1, retries=1)
    with any_pair.target.connect(database=DATABASE) as blocker, blocker.cursor() as cursor:
        cursor.execute("SELECT * FROM a FOR UPDATE")
        number = blocker.thread_id()  # type: ignore[no-untyped-call]
        with pytest.raises(TargetUnavailableError, match=rf"1205 .*connection {number} since"):
            run_lane(any_pair.engine, window.plan, 2, window.source, options)
        blocker.rollback()
    run_lane(any_pair.engine, window.plan, 2, window.source, options)
    any_pair.assert_equal("a")


def test_two_runners_of_one_ddl_without_a_lease_run_it_once_on_mysql(
    mysql_source: PrivateServer, mysql_target: PrivateServer
) -> None:
    from binlane.apply.block import BlockPlace, apply_block
    from binlane.apply.session.context import ContextSetter
    from binlane.state.positions import PlanKey

    with fresh_pair(mysql_source, mysql_target) as pair:
        two_tables(pair)
        window = ddl_window(pair, SWAP)
        start_window(pair.engine, window.plan)
        uuid = str(pair.rows("SELECT uuid FROM binlane.channels")[0][0])
        place = BlockPlace(PlanKey("orders", "w1", "d1"), uuid, 2, (0, 1, 2), 0)

        def apply(_: int) -> object:
            session = LaneSession.open(pair.engine, QUICK.limits)
            try:
                block = next(window.source.blocks(2, 0))
                return apply_block(session, BlockWriter(session, ContextSetter(session)), place, block, lambda: 1)
            finally:
                session.close()

        with ThreadPoolExecutor(3) as pool:
            done = [found for found in pool.map(apply, range(3)) if found is not None]
        assert len(done) == 1
        pair.assert_equal("a", "b")


@requires_mysql
@pytest.mark.parametrize("crash", [crash_after_ddl, crash_before_ddl])
def test_a_ddl_that_has_begun_is_a_question_on_mysql_that_has_forgotten_its_gtids(
    mysql_source: PrivateServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    crash: Callable[[pytest.MonkeyPatch], None],
) -> None:
    """RESET BINARY LOGS AND GTIDS: that the GTID is missing proves nothing then."""
    has_run = crash is crash_after_ddl
    with (
        private_server(tmp_path / "target", Flavor.MYSQL, durable=False) as target,
        fresh_pair(mysql_source, target) as pair,
    ):
        two_tables(pair)
        window = ddl_window(pair, SWAP, "ALTER TABLE a ADD c INT")
        start_window(pair.engine, window.plan)
        with monkeypatch.context() as patch:
            crash(patch)
            with pytest.raises(CrashError):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        target.query("RESET BINARY LOGS AND GTIDS")
        for _ in range(2):
            with pytest.raises(UndecidableError, match="were not noted, which proves neither outcome"):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        decide_ddl(pair.engine, "orders", 1, ran=has_run)
        # forgotten between two statements: nothing has begun
        target.query("RESET BINARY LOGS AND GTIDS")
        if has_run:
            for lane in window.plan.all_lanes:
                run_lane(pair.engine, window.plan, lane, window.source, QUICK)
            pair.assert_equal("a", "b")


@requires_mysql
def test_a_ddl_that_has_run_by_its_gtid_has_run_when_gtid_mode_is_off(
    mysql_source: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        private_server(tmp_path / "target", Flavor.MYSQL, durable=False) as target,
        fresh_pair(mysql_source, target) as pair,
    ):
        two_tables(pair)
        window = ddl_window(pair, SWAP)
        start_window(pair.engine, window.plan)
        with monkeypatch.context() as patch:
            crash_after_ddl(patch)
            with pytest.raises(CrashError):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        for mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF"):
            target.query(f"SET GLOBAL gtid_mode = {mode}")
        for lane in window.plan.all_lanes:
            run_lane(pair.engine, window.plan, lane, window.source, QUICK)
        pair.assert_equal("a", "b")


def test_session_and_gtid_variables_are_back_after_a_ddl(any_pair: Pair) -> None:
    two_tables(any_pair)
    window = Window(any_pair.recorder().format)
    context = SessionContext(database=DATABASE, timestamp=1_000_000_000.0, sql_mode=4)
    window.add(0, any_pair.recorder().ddl("ALTER TABLE a ADD c INT", context))
    window.add(0, any_pair.recorder().run("INSERT INTO a VALUES (5, 5)"))
    start_window(any_pair.engine, window.plan)
    run_lane(any_pair.engine, window.plan, 0, window.source, QUICK)
    any_pair.assert_equal("a")
    fresh = "SELECT ABS(TIMESTAMPDIFF(SECOND, updated_at, UTC_TIMESTAMP())) < 60 FROM binlane.positions WHERE lane = 0"
    assert any_pair.rows(fresh) == [(1,)]
    uuid = str(any_pair.rows("SELECT uuid FROM binlane.channels")[0][0])
    if any_pair.target.flavor is Flavor.MYSQL:
        assert f"{gtid_uuid(uuid)}:1" in str(any_pair.rows("SELECT @@global.gtid_executed")[0][0]).split(",\n")
    elif any_pair.rows("SELECT @@log_bin") == [(1,)]:
        ((state, usual),) = any_pair.rows("SELECT @@global.gtid_binlog_state, @@global.gtid_domain_id")
        domains = {gtid.partition("-")[0] for gtid in str(state).split(",")}
        assert domains == {str(usual)}, "replicas may apply a DDL of another domain before or after its rows"


def test_an_error_is_judged_after_the_position_and_another_runner_s_work_is_success(
    mariadb_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = ddl_window(mariadb_pair, "CREATE TABLE t (a INT)")
    start_window(mariadb_pair.engine, window.plan)

    def be_faster(*arguments: Any) -> None:
        mariadb_pair.target.query(f"CREATE TABLE {DATABASE}.t (a INT)")
        mariadb_pair.target.query("UPDATE binlane.positions SET seqno = 1")
        run_ddl(*arguments)

    monkeypatch.setattr(block_module, "run_ddl", be_faster)
    result = run_lane(mariadb_pair.engine, window.plan, 2, window.source, QUICK)
    assert (result.retries, result.blocks) == (1, 0)
    assert read_status(mariadb_pair.engine, "orders").errors == ()


@pytest.mark.parametrize("writer", ["binlog", "sql"])
def test_a_ddl_under_modes_of_mysql_5_7_may_be_the_first_thing_of_a_session(
    mysql_source: PrivateServer, mysql_target: PrivateServer, writer: str
) -> None:
    """NO_AUTO_CREATE_USER and its like are gone since 8.0: whoever does not act as a replica gets 3899 for them."""
    context = SessionContext(database=DATABASE, sql_mode=0x10000000 | 0x4000 | 0x200000)
    with fresh_pair(mysql_source, mysql_target) as pair:
        window = Window(pair.recorder().format)
        window.meet(2, (0, 1, 2), pair.recorder().ddl("CREATE TABLE of_5_7 (id INT PRIMARY KEY)", context))
        start_window(pair.engine, window.plan)
        for lane in window.plan.all_lanes:
            run_lane(pair.engine, window.plan, lane, window.source, replace(QUICK, writer=writer))
        pair.assert_equal("of_5_7")
        assert positions(pair) == [1, 1, 1]


@pytest.mark.parametrize("target", ["mariadb_target", "target_without_binlog"])
def test_a_ddl_whose_log_could_not_be_written_is_not_run_again(
    target: str, mariadb_source: PrivateServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB has changed the table by then, and its error says nothing of that."""
    run = BlockWriter.run

    def unlogged(*arguments: Any) -> None:
        run(*arguments)
        raise pymysql.err.OperationalError(1026, "Error writing file 'binlog' (errno: 27 \"File too large\")")

    with fresh_pair(mariadb_source, request.getfixturevalue(target)) as pair:
        pair.both("CREATE TABLE a (id INT PRIMARY KEY, x INT, y INT) ENGINE=InnoDB")
        moved = "ALTER TABLE a CHANGE y x INT AFTER id, CHANGE x y INT"
        window = ddl_window(pair, "ALTER TABLE a ADD COLUMN n INT", moved)
        start_window(pair.engine, window.plan)
        pair.target.query(f"INSERT INTO {DATABASE}.a VALUES (1, 10, 20)")
        for _ in range(2):
            with monkeypatch.context() as patch:
                patch.setattr(BlockWriter, "run", unlogged)
                with pytest.raises(ApplyError, match="1026"):
                    run_lane(pair.engine, window.plan, 2, window.source, QUICK)
            # neither a stop nor a skip takes it for one that has not run
            noted = pair.target.query("SELECT seqno FROM binlane.ddl")
            assert pair.target.query("SELECT MAX(begun) FROM binlane.positions") == noted
        with pytest.raises(UndecidableError):
            run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        assert pair.target.query(f"SELECT x, y, n FROM {DATABASE}.a") == [(20, 10, None)]
        decide_ddl(pair.engine, "orders", 2, ran=True)
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)


@requires_mysql
@pytest.mark.parametrize("is_killed", [False, True], ids=["noted", "killed in front of the note"])
def test_a_drop_that_fails_half_way_is_not_left_out_by_its_gtid(
    mysql_source: PrivateServer, mysql_target: PrivateServer, monkeypatch: pytest.MonkeyPatch, *, is_killed: bool
) -> None:
    """MySQL logs the part of a failed DROP that has run, under the GTID of the whole statement."""
    with fresh_pair(mysql_source, mysql_target) as pair:
        pair.both("CREATE TABLE a (id INT) ENGINE=MyISAM", "CREATE TABLE b (id INT NOT NULL) ENGINE=CSV")
        window = ddl_window(pair, "DROP TABLE a, b")
        start_window(pair.engine, window.plan)
        rows = pair.target.datadir / DATABASE / "b.CSV"
        kept = rows.read_bytes()
        rows.unlink()
        rows.mkdir()
        (rows / "file").touch()
        with monkeypatch.context() as patch:
            if is_killed:
                patch.setattr("binlane.apply.ddl.run._note_part", Mock(side_effect=CrashError))
            with pytest.raises(CrashError if is_killed else ApplyError):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        with pytest.raises(ApplyError):
            run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        assert pair.target.query(f"SHOW TABLES FROM {DATABASE}") == [("b",)]
        (rows / "file").unlink()
        rows.rmdir()
        rows.write_bytes(kept)
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        assert pair.target.query(f"SHOW TABLES FROM {DATABASE}") == []
        assert read_status(pair.engine, "orders").undecided == ()
