"""A DDL runs exactly once, whatever the target's server leaves of it that is killed inside it.

The seams of what ``chaos/test_killed_in_ddl.py`` has found by strace.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from binlane.apply.lane.runner import run_lane
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.connection import LaneSession
from binlane.errors import ApplyError, PositionError, UndecidableError
from binlane.model import Flavor, Item
from binlane.state.records.ddl_intents import ASKED, KEPT, TOGETHER, decide_ddl, write_intent
from binlane.state.records.journal import read_status
from lab.programs import other_programs
from lab.servers import PrivateServer, private_server
from tests.integration.apply.capture import Captured, Window, ddl_item
from tests.integration.apply.conftest import CREATED, DATABASE, QUICK, Pair, fresh_pair, positions, start_window
from tests.integration.apply.test_ddl import SWAP, CrashError, crash_before_ddl, ddl_window


def lost(monkeypatch: pytest.MonkeyPatch, leave: Callable[[LaneSession, Item], None]) -> None:
    """The server dies while it runs the statement, and ``leave`` makes what its recovery leaves."""

    def run(writer: BlockWriter, item: Item, _: object) -> None:
        leave(writer.session, item)
        raise CrashError

    monkeypatch.setattr("binlane.apply.rows.writers.BlockWriter.run", run)


def finished(session: LaneSession, item: Item) -> None:
    """MariaDB's recovery finishes ALTER TABLE and its like, and logs it under a GTID of its own."""
    session.execute("SET SESSION gtid_seq_no = 0, gtid_domain_id = 0")
    session.execute(f"USE {DATABASE}")
    session.send(item.payload)


def logged_alone(session: LaneSession, _: Item) -> None:
    """What MariaDB logs first: the channel's GTID is in its log, and the change is gone."""
    session.execute(f"CREATE TABLE {DATABASE}.logged (id INT)")
    session.execute("SET SESSION sql_log_bin = 0")
    session.execute(f"DROP TABLE {DATABASE}.logged")


Shown: TypeAlias = list[tuple[object, ...]]
_ONE = "CREATE TABLE t (a INT PRIMARY KEY, b INT, c INT)"


@pytest.mark.parametrize(
    ("setup", "statement", "shown"),
    [
        pytest.param([_ONE], "ALTER TABLE t ADD KEY (b)", "SHOW CREATE TABLE t", id="key without a name"),
        pytest.param(
            [_ONE], "ALTER TABLE t ADD INDEX IF NOT EXISTS i (b), ADD KEY (c)", "SHOW CREATE TABLE t", id="if"
        ),
        pytest.param(
            [_ONE, "INSERT INTO t VALUES (1, 2, 3)"],
            "ALTER TABLE t CHANGE b c INT, CHANGE c b INT",
            "SELECT a, b, c FROM t",
            id="columns that swap names",
        ),
        pytest.param(
            ["CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 4"],
            "ALTER TABLE t COALESCE PARTITION 1",
            "SHOW CREATE TABLE t",
            id="partitions",
        ),
        pytest.param([_ONE], "CREATE INDEX i ON t (b)", "SHOW CREATE TABLE t", id="index"),
    ],
)
def test_a_ddl_that_mariadb_s_recovery_has_finished_is_not_run_again(
    mariadb_pair: Pair, monkeypatch: pytest.MonkeyPatch, setup: list[str], statement: str, shown: str
) -> None:
    on_source, on_target = _run_through(mariadb_pair, monkeypatch, setup, statement, shown, finished)
    assert on_target == on_source


@pytest.mark.parametrize(
    ("setup", "statement", "shown"),
    [
        pytest.param([], "CREATE PROCEDURE p() SELECT 1", "SHOW PROCEDURE STATUS WHERE db = 'shop'", id="procedure"),
        pytest.param(
            ["CREATE PROCEDURE p() SELECT 1"], "DROP PROCEDURE p", "SHOW PROCEDURE STATUS WHERE db = 'shop'", id="drop"
        ),
        pytest.param([], "CREATE TABLE t (a INT PRIMARY KEY) SELECT 1 AS a", "SELECT * FROM t", id="select"),
        pytest.param(
            ["CREATE OR REPLACE USER granted@localhost"],
            "GRANT SELECT ON shop.* TO granted@localhost",
            "SHOW GRANTS FOR granted@localhost",
            id="grant",
        ),
        pytest.param(
            ["DROP USER IF EXISTS made@localhost, made_2@localhost"],
            "CREATE USER made@localhost, made_2@localhost",
            "SELECT user, host FROM mysql.user WHERE user LIKE 'made%' ORDER BY 1",
            id="accounts",
        ),
    ],
)
def test_a_ddl_that_mariadb_has_logged_and_lost_runs_again(
    mariadb_pair: Pair, monkeypatch: pytest.MonkeyPatch, setup: list[str], statement: str, shown: str
) -> None:
    on_source, on_target = _run_through(mariadb_pair, monkeypatch, setup, statement, shown, logged_alone)
    assert on_target == on_source


def _run_through(
    pair: Pair,
    monkeypatch: pytest.MonkeyPatch,
    setup: list[str],
    statement: str,
    shown: str,
    leave: Callable[[LaneSession, Item], None],
) -> tuple[Shown, Shown]:
    """What ``shown`` answers on the source and on the target when the lane has gone on."""
    pair.both(*setup)
    window = Window(pair.recorder("SET SESSION binlog_format = 'STATEMENT'").format)
    window.meet(2, (0, 1, 2), pair.recorder("SET SESSION binlog_format = 'STATEMENT'").ddl(statement))
    _killed(pair, monkeypatch, window, leave)
    assert read_status(pair.engine, "orders").undecided == (), "nobody is asked"
    run_lane(pair.engine, window.plan, 2, window.source, QUICK)

    def seen(server: PrivateServer) -> Shown:
        with server.connect(database=DATABASE) as connection, connection.cursor() as cursor:
            cursor.execute(shown)
            # without the times at which a routine was made
            return [tuple(value for value in row if not isinstance(value, datetime)) for row in cursor.fetchall()]

    assert pair.rows("SELECT * FROM binlane.ddl") == []
    return seen(pair.source), seen(pair.target)


_CHARSET: Final = (
    "SELECT default_character_set_name FROM information_schema.schemata "
    f"WHERE schema_name IN ('{DATABASE}', '{CREATED}') ORDER BY schema_name"
)


def bare_folder(session: LaneSession, _: Item) -> None:
    """A folder without its character set."""
    session.execute(f"CREATE DATABASE {CREATED}")


def whole_database(session: LaneSession, item: Item) -> None:
    """All of it."""
    session.send(item.payload)


@pytest.mark.parametrize("target", ["mariadb_target", "target_without_binlog"])
@pytest.mark.parametrize(
    "left",
    [
        pytest.param((bare_folder,), id="folder"),
        pytest.param((whole_database,), id="database"),
        pytest.param((bare_folder, bare_folder), id="folder twice"),
    ],
)
@pytest.mark.parametrize("condition", ["", "IF NOT EXISTS "])
@pytest.mark.paired
def test_a_database_that_a_killed_server_has_made_without_its_character_set(
    mariadb_source: PrivateServer,
    target: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    left: Sequence[Callable[[LaneSession, Item], None]],
    condition: str,
) -> None:
    statement = f"CREATE DATABASE {condition}{CREATED} CHARACTER SET latin1"
    with fresh_pair(mariadb_source, request.getfixturevalue(target)) as pair:
        _killed_in_turn(pair, monkeypatch, statement, left)
        assert pair.rows(_CHARSET) == pair.source.query(_CHARSET)


@pytest.mark.parametrize("target", ["mariadb_target", "target_without_binlog"])
def test_a_database_whose_character_set_a_killed_server_has_lost_gets_the_new_one(
    mariadb_source: PrivateServer, target: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MariaDB truncates the file before it writes it, and without it the server's own default is in force."""

    def truncated(session: LaneSession, _: Item) -> None:
        session.execute(f"ALTER DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")

    with fresh_pair(mariadb_source, request.getfixturevalue(target)) as pair:
        _killed_in_turn(pair, monkeypatch, f"ALTER DATABASE {DATABASE} CHARACTER SET latin1", (truncated,))
        assert pair.rows(_CHARSET) == pair.source.query(_CHARSET)


def _killed_in_turn(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, statement: str, left: Sequence[Callable[[LaneSession, Item], None]]
) -> None:
    """Apply the statement with a kill for each of ``left``, and then to its end."""

    def alone(leave: Callable[[LaneSession, Item], None]) -> Callable[[LaneSession, Item], None]:
        def run(session: LaneSession, item: Item) -> None:
            session.execute("SET SESSION gtid_seq_no = 0, gtid_domain_id = 0, sql_log_bin = 0")
            session.execute(f"DROP DATABASE IF EXISTS {CREATED}")
            leave(session, item)

        return run

    window = ddl_window(pair, statement)
    start_window(pair.engine, window.plan)
    for each in left:
        with monkeypatch.context() as patch:
            lost(patch, alone(each))
            with pytest.raises(CrashError):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
    run_lane(pair.engine, window.plan, 2, window.source, QUICK)
    assert positions(pair) == [1, 1, 1]


def test_a_table_that_a_killed_server_has_lost_is_an_error(mariadb_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its definition has changed, but not into what the statement makes."""
    mariadb_pair.both(_ONE)

    def leave(session: LaneSession, _: Item) -> None:
        session.execute("SET SESSION gtid_seq_no = 0, gtid_domain_id = 0")
        session.execute(f"DROP TABLE {DATABASE}.t")

    window = _killed(mariadb_pair, monkeypatch, "ALTER TABLE t ADD d INT", leave)
    for _ in range(2):
        with pytest.raises(ApplyError, match=r"1146 .*shop\.t"):
            run_lane(mariadb_pair.engine, window.plan, 2, window.source, QUICK)


def test_a_lane_s_ddl_does_not_pass_for_another_lane_s_on_a_table_of_the_same_name(
    any_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A migration of tenants: the same statement in each database, on as many lanes as there are."""
    any_pair.both(
        f"CREATE DATABASE IF NOT EXISTS {CREATED}",
        f"CREATE TABLE {CREATED}.t (a INT PRIMARY KEY)",
        "CREATE TABLE t (a INT PRIMARY KEY)",
    )
    window = Window(any_pair.recorder().format)
    window.add(0, any_pair.recorder().ddl("ALTER TABLE t ADD b INT"))
    window.add(1, any_pair.recorder().ddl(f"ALTER TABLE {CREATED}.t ADD b INT"))
    start_window(any_pair.engine, window.plan)
    with monkeypatch.context() as patch:
        crash_before_ddl(patch)
        with pytest.raises(CrashError):
            run_lane(any_pair.engine, window.plan, 0, window.source, QUICK)
    for lane in (1, 0):
        run_lane(any_pair.engine, window.plan, lane, window.source, QUICK)
    for database in (DATABASE, CREATED):
        query = f"SHOW CREATE TABLE {database}.t"
        assert any_pair.rows(query) == any_pair.source.query(query)


def test_a_note_that_is_no_fingerprint_proves_nothing(
    mariadb_source: PrivateServer, target_without_binlog: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh_pair(mariadb_source, target_without_binlog) as pair:
        pair.both(_ONE)
        window = _killed(pair, monkeypatch, "ALTER TABLE t ADD d INT", committed(pair))
        pair.target.query("UPDATE binlane.ddl SET fingerprint = SHA2('no fingerprint', 256)")
        with pytest.raises(UndecidableError, match="ALTER TABLE t ADD d"):
            run_lane(pair.engine, window.plan, 2, window.source, QUICK)


@pytest.mark.parametrize("target", ["mariadb_target", "target_without_binlog"])
@pytest.mark.parametrize("has_run", [True, False])
@pytest.mark.paired
def test_a_note_of_another_version_proves_nothing(
    mariadb_source: PrivateServer,
    target: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    has_run: bool,
) -> None:
    """A newer server may show the same definition in other words."""
    statement = "ALTER TABLE t ADD KEY (b)"
    with fresh_pair(mariadb_source, request.getfixturevalue(target)) as pair:
        pair.both(_ONE)
        window = _killed(pair, monkeypatch, statement, committed(pair, *[statement] * has_run))
        pair.target.query("UPDATE binlane.ddl SET fingerprint = CONCAT(fingerprint, ' of before')")
        for _ in range(2):
            with pytest.raises(UndecidableError, match=r"noted on a server of version .* of before, and this one is"):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        decide_ddl(pair.engine, "orders", 1, ran=has_run)
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        shown = f"SHOW CREATE TABLE {DATABASE}.t"
        assert pair.rows(shown) == pair.source.query(shown)


def test_a_note_is_read_in_another_time_zone_of_the_server(mariadb_pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    mariadb_pair.both("CREATE TABLE t (b INT, at TIMESTAMP NOT NULL DEFAULT '2026-01-02 03:04:05')")
    window = _killed(mariadb_pair, monkeypatch, "ALTER TABLE t ADD KEY (b)", committed(mariadb_pair))
    mariadb_pair.target.query("SET GLOBAL time_zone = '+05:00'")
    try:
        run_lane(mariadb_pair.engine, window.plan, 2, window.source, QUICK)
    finally:
        mariadb_pair.target.query("SET GLOBAL time_zone = 'SYSTEM'")
    assert mariadb_pair.rows(f"SHOW INDEX FROM {DATABASE}.t") != []


def test_no_answer_is_taken_while_a_statement_runs_of_which_was_asked_before(
    mariadb_source: PrivateServer, target_without_binlog: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with fresh_pair(mariadb_source, target_without_binlog) as pair:
        pair.both(_ONE)
        window = _killed(pair, monkeypatch, "ALTER TABLE t ADD d INT", committed(pair))
        [(stored,)] = pair.target.query("SELECT fingerprint FROM binlane.ddl")
        pair.target.query("UPDATE binlane.ddl SET fingerprint = SHA2('no fingerprint', 256)")
        with pytest.raises(UndecidableError):
            run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        assert [each.seqno for each in read_status(pair.engine, "orders").undecided] == [1]
        pair.target.query("UPDATE binlane.ddl SET fingerprint = %s", (stored,))
        asked: list[tuple[object, ...]] = []

        def leave(*_: object) -> None:
            asked.append(read_status(pair.engine, "orders").undecided)

        with monkeypatch.context() as patch:
            lost(patch, leave)
            with pytest.raises(CrashError):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        assert asked == [()]


_MYISAM: Final = (
    "CREATE TABLE a (id INT, n INT) ENGINE=MyISAM",
    "CREATE TABLE b (id INT, n INT) ENGINE=MyISAM",
    "CREATE TABLE i (id INT PRIMARY KEY, n INT) ENGINE=InnoDB",
    "INSERT INTO a VALUES (1, 1)",
    f"CREATE DATABASE IF NOT EXISTS {CREATED}",
    f"CREATE TABLE {CREATED}.a (id INT) ENGINE=MyISAM",
)


def committed(pair: Pair, *statements: str) -> Callable[[LaneSession, Item], None]:
    """What MySQL has committed of a DDL on tables that are not InnoDB's, before it logs the statement's GTID."""

    def run(_: LaneSession, __: Item) -> None:
        run_alone(pair.target, *statements)

    return run


def run_alone(server: PrivateServer, *statements: str) -> None:
    with server.connect(autocommit=True, database=DATABASE) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _killed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, of: str | Window, leave: Callable[[LaneSession, Item], None]
) -> Window:
    """The window, or the one of the statement, whose server has died inside it."""
    window = of if isinstance(of, Window) else ddl_window(pair, of)
    start_window(pair.engine, window.plan)
    with monkeypatch.context() as patch:
        lost(patch, leave)
        with pytest.raises(CrashError):
            run_lane(pair.engine, window.plan, 2, window.source, QUICK)
    return window


@pytest.mark.parametrize("target", ["mariadb_target", "target_without_binlog"])
@pytest.mark.parametrize("has_run", [True, False])
@pytest.mark.paired
def test_columns_that_swap_names_and_places_are_a_question(
    mariadb_source: PrivateServer,
    target: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    has_run: bool,
) -> None:
    """The definition is the same before and after it, and MariaDB need not make another table."""
    statement = "ALTER TABLE t CHANGE c b INT AFTER a, CHANGE b c INT"
    with fresh_pair(mariadb_source, request.getfixturevalue(target)) as pair:
        pair.both(_ONE, "INSERT INTO t VALUES (1, 2, 3)")
        window = _killed(pair, monkeypatch, statement, committed(pair, *[statement] * has_run))
        assert pair.source.query(f"SELECT a, b, c FROM {DATABASE}.t") == [(1, 3, 2)]
        with pytest.raises(UndecidableError, match="CHANGE c b"):
            run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        decide_ddl(pair.engine, "orders", 1, ran=has_run)
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        pair.assert_equal("t")


@pytest.fixture
def mysql_pair(mysql_source: PrivateServer, mysql_target: PrivateServer) -> Iterator[Pair]:
    with fresh_pair(mysql_source, mysql_target) as found:
        yield found


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        pytest.param("ALTER TABLE a ADD KEY (id)", ("ALTER TABLE a ADD KEY (id)",), id="all"),
        pytest.param("TRUNCATE TABLE a", (), id="nothing"),
        pytest.param("TRUNCATE TABLE a", ("TRUNCATE TABLE a",), id="truncated"),
        pytest.param("DROP TABLE a, b", ("DROP TABLE a",), id="a drop in part"),
        pytest.param(
            "ALTER TABLE i ADD KEY (n), ENGINE = MyISAM",
            ("ALTER TABLE i ADD KEY (n), ENGINE = MyISAM",),
            id="another engine",
        ),
        pytest.param("ALTER TABLE i ADD KEY (n), ENGINE = MyISAM", (), id="another engine, nothing"),
        pytest.param(
            "CREATE TABLE m (id INT) ENGINE = MyISAM", ("CREATE TABLE m (id INT) ENGINE = MyISAM",), id="a new table"
        ),
        pytest.param("CREATE TABLE m (id INT) ENGINE = MyISAM", (), id="a new table, nothing"),
        pytest.param(f"DROP DATABASE {CREATED}", (f"DROP DATABASE {CREATED}",), id="a database"),
        pytest.param(f"DROP DATABASE {CREATED}", (f"DROP TABLE {CREATED}.a",), id="a database in part"),
    ],
)
def test_a_ddl_on_tables_that_mysql_does_not_change_with_its_gtid_is_run_once(
    mysql_pair: Pair, monkeypatch: pytest.MonkeyPatch, statement: str, left: tuple[str, ...]
) -> None:
    mysql_pair.both(*_MYISAM)
    window = _killed(mysql_pair, monkeypatch, statement, committed(mysql_pair, *left))
    run_lane(mysql_pair.engine, window.plan, 2, window.source, QUICK)
    tables = mysql_pair.source.query(f"SHOW TABLES FROM {DATABASE}")
    assert mysql_pair.rows(f"SHOW TABLES FROM {DATABASE}") == tables
    for (table,) in tables:
        for query in (f"SHOW CREATE TABLE {DATABASE}.{table}", f"SELECT * FROM {DATABASE}.{table}"):
            assert mysql_pair.rows(query) == mysql_pair.source.query(query)
    assert mysql_pair.rows("SELECT * FROM binlane.ddl") == []


def test_a_table_whose_files_a_killed_mysql_has_not_finished_is_an_error(
    mysql_pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its definition is there, and no row can be read or written."""
    statement = "CREATE TABLE m (id INT PRIMARY KEY) ENGINE = MyISAM"

    def leave(*_: object) -> None:
        run_alone(mysql_pair.target, statement, "FLUSH TABLES m")
        (mysql_pair.target.datadir / DATABASE / "m.MYI").write_bytes(b"")

    window = _killed(mysql_pair, monkeypatch, statement, leave)
    with pytest.raises(ApplyError, match=r"130 Incorrect file format"):
        run_lane(mysql_pair.engine, window.plan, 2, window.source, QUICK)


@pytest.mark.parametrize(
    ("left", "rest"), [((), (SWAP,)), (("RENAME TABLE a TO x",), ("RENAME TABLE b TO a, x TO b",)), ((SWAP,), ())]
)
def test_a_swap_of_tables_that_mysql_does_not_change_with_its_gtid_is_a_question(
    mysql_pair: Pair, monkeypatch: pytest.MonkeyPatch, left: tuple[str, ...], rest: tuple[str, ...]
) -> None:
    """No definition shows it, and a part of it may have run."""
    mysql_pair.both(*_MYISAM)
    window = _killed(mysql_pair, monkeypatch, SWAP, committed(mysql_pair, *left))
    for _ in range(2):
        with pytest.raises(UndecidableError, match="RENAME TABLE a TO x"):
            run_lane(mysql_pair.engine, window.plan, 2, window.source, QUICK)
    run_alone(mysql_pair.target, *rest)
    decide_ddl(mysql_pair.engine, "orders", 1, ran=True)
    run_lane(mysql_pair.engine, window.plan, 2, window.source, QUICK)
    mysql_pair.assert_equal("a", "b")


@pytest.mark.parametrize("condition", ["", "IF NOT EXISTS "])
def test_a_table_that_mysql_has_filled_in_part_is_a_question(
    mysql_source: PrivateServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    options = ("--gtid-mode=OFF", "--enforce-gtid-consistency=OFF")
    with (
        private_server(tmp_path / "data", Flavor.MYSQL, options, name="no_gtids", durable=False) as target,
        fresh_pair(mysql_source, target) as pair,
    ):
        window = Window(pair.recorder().format)
        item = ddl_item(f"CREATE TABLE {condition}made ENGINE=MyISAM SELECT 1 AS id", DATABASE)
        window.meet(2, (0, 1, 2), Captured((item,), pair.recorder().run("DO 1").position))
        _killed(pair, monkeypatch, window, committed(pair, "CREATE TABLE made (id INT) ENGINE=MyISAM"))
        with pytest.raises(UndecidableError, match="made ENGINE=MyISAM"):
            run_lane(pair.engine, window.plan, 2, window.source, QUICK)


@pytest.mark.parametrize("log_bin", [True, False], ids=["with a binlog", "without"])
@pytest.mark.parametrize("condition", ["", "IF NOT EXISTS "])
@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM"])
def test_a_table_that_an_older_mariadb_has_not_filled_is_filled(
    mariadb_source: PrivateServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    condition: str,
    engine: str,
    log_bin: bool,
) -> None:
    """Before 10.6.1 its recovery keeps the table, and of the rows those of an engine without transactions."""
    program = other_programs().get("10.5")
    if program is None:
        pytest.skip("no MariaDB 10.5 to test with: lab/server_programs.sh")
    with (
        private_server(tmp_path / "old", name="old", log_bin=log_bin, durable=False, program=program) as target,
        fresh_pair(mariadb_source, target) as pair,
    ):
        pair.both("CREATE TABLE part (id INT)", "INSERT INTO part VALUES (1), (2)")
        window = Window(pair.recorder("SET SESSION binlog_format = 'STATEMENT'").format)
        statement = f"CREATE TABLE {condition}made (id INT) ENGINE={engine} SELECT id FROM part"
        window.meet(2, (0, 1, 2), pair.recorder("SET SESSION binlog_format = 'STATEMENT'").ddl(statement))
        _killed(pair, monkeypatch, window, committed(pair, f"CREATE TABLE made (id INT) ENGINE={engine}"))
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        pair.assert_equal("made")


def test_a_ddl_that_mysql_refuses_on_tables_that_are_not_innodb_s_leaves_no_question(mysql_pair: Pair) -> None:
    mysql_pair.both(*_MYISAM)
    window = Window(mysql_pair.recorder().format)
    item = ddl_item("ALTER TABLE a ADD KEY (missing)", DATABASE)
    window.meet(2, (0, 1, 2), Captured((item,), mysql_pair.recorder().run("DO 1").position))
    start_window(mysql_pair.engine, window.plan)
    for _ in range(2):
        with pytest.raises(ApplyError, match="1072"):
            run_lane(mysql_pair.engine, window.plan, 2, window.source, QUICK)
        assert mysql_pair.rows("SELECT * FROM binlane.ddl") == []


@pytest.mark.parametrize("was_logged", [True, False])
@pytest.mark.parametrize("has_run", [True, False])
@pytest.mark.paired
def test_a_note_from_before_the_target_s_log_was_switched_is_read_as_it_was_written(
    mariadb_source: PrivateServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    was_logged: bool,
    has_run: bool,
) -> None:
    """With a log it has no ids of tables."""
    with (
        private_server(tmp_path / "data", name="switched", log_bin=was_logged, durable=False) as target,
        fresh_pair(mariadb_source, target) as pair,
    ):
        pair.both(_ONE)

        def leave(session: LaneSession, item: Item) -> None:
            if has_run:
                finished(session, item)

        window = _killed(pair, monkeypatch, "ALTER TABLE t ADD KEY (b)", leave)
        other = "--skip-log-bin" if was_logged else "--log-bin=switched"
        target.restart((*target.options, other))
        if was_logged and not has_run:
            with pytest.raises(UndecidableError, match="ADD KEY"):
                run_lane(pair.engine, window.plan, 2, window.source, QUICK)
            return
        run_lane(pair.engine, window.plan, 2, window.source, QUICK)
        assert pair.rows(f"SHOW CREATE TABLE {DATABASE}.t") == pair.source.query(f"SHOW CREATE TABLE {DATABASE}.t")


def test_an_answer_from_before_the_target_had_a_log_is_obeyed(mariadb_pair: Pair) -> None:
    mariadb_pair.both(_ONE)
    window = ddl_window(mariadb_pair, "TRUNCATE TABLE t")
    start_window(mariadb_pair.engine, window.plan)
    mariadb_pair.both("INSERT INTO t VALUES (1, 2, 3)")
    with mariadb_pair.target.connect() as connection, connection.cursor() as cursor:
        write_intent(cursor, "orders", 1, 2, b"TRUNCATE TABLE t", "noted:1", ASKED)
        connection.commit()
    decide_ddl(mariadb_pair.engine, "orders", 1, ran=True)
    run_lane(mariadb_pair.engine, window.plan, 2, window.source, QUICK)
    mariadb_pair.assert_equal("t")


def test_what_makes_temporary_tables_by_running_does_not_count_as_run(mariadb_pair: Pair) -> None:
    with mariadb_pair.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        write_intent(cursor, "orders", 1, 2, b"a barrier", f"{KEPT}:{TOGETHER}:0:x", ASKED)
    with pytest.raises(PositionError, match="answer --not-ran"):
        decide_ddl(mariadb_pair.engine, "orders", 1, ran=True)
    decide_ddl(mariadb_pair.engine, "orders", 1, ran=False)


@pytest.mark.parametrize(
    ("setup", "statement", "obstacle", "remedy", "shown"),
    [
        pytest.param(
            ("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY)"),
            "DROP TABLE a, b",
            "CREATE TABLE c (id INT, FOREIGN KEY (id) REFERENCES b (id))",
            ("DROP TABLE c",),
            f"SHOW TABLES FROM {DATABASE}",
            id="tables",
        ),
        pytest.param(
            ("CREATE OR REPLACE USER one@localhost", "CREATE OR REPLACE USER two@localhost"),
            "DROP USER one@localhost, two@localhost",
            "DROP USER two@localhost",
            (),
            "SELECT user FROM mysql.user WHERE user IN ('one', 'two')",
            id="accounts",
        ),
        pytest.param(
            ("CREATE OR REPLACE USER one@localhost", "CREATE OR REPLACE USER two@localhost"),
            "RENAME USER one@localhost TO x@localhost, two@localhost TO y@localhost",
            "DROP USER two@localhost",
            ("RENAME USER x@localhost TO one@localhost", "CREATE USER two@localhost"),
            "SELECT user FROM mysql.user WHERE user IN ('one', 'two')",
            id="renamed accounts",
        ),
    ],
)
def test_a_ddl_of_which_mariadb_has_run_and_logged_a_part_before_it_refused_is_run_to_its_end(
    mariadb_pair: Pair, setup: tuple[str, ...], statement: str, obstacle: str, remedy: tuple[str, ...], shown: str
) -> None:
    """The part is logged under the channel's GTID."""
    mariadb_pair.both("DROP USER IF EXISTS x@localhost, y@localhost", *setup)
    window = ddl_window(mariadb_pair, statement)
    start_window(mariadb_pair.engine, window.plan)
    run_alone(mariadb_pair.target, obstacle)
    with pytest.raises(ApplyError, match=r"1451|1396"):
        run_lane(mariadb_pair.engine, window.plan, 2, window.source, QUICK)
    with contextlib.suppress(ApplyError):
        # again, before the obstacle is gone; of accounts, those that are there are left
        run_lane(mariadb_pair.engine, window.plan, 2, window.source, QUICK)
    run_alone(mariadb_pair.target, *remedy)
    run_lane(mariadb_pair.engine, window.plan, 2, window.source, QUICK)
    assert mariadb_pair.rows(shown) == mariadb_pair.source.query(shown) == []
    assert mariadb_pair.rows("SELECT * FROM binlane.ddl") == []
