"""What a log continues and a copy of its source does not have, at each kind of a channel's beginning."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor, LogPosition
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.request import WindowRequest
from binlane.source.protocol import EVERY_SESSION
from lab.servers import PrivateServer
from tests.emptied import empty_target
from tests.integration.window.conftest import CHANNEL, Channel, drop_accounts, run_on
from tests.waiting import wait_until

TABLES: Final = (
    "CREATE DATABASE tenant_1",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE tenant_1.p (id INT PRIMARY KEY, v INT)",
    "CREATE TABLE tenant_1.by (id INT PRIMARY KEY, v INT)",
    "CREATE TRIGGER tenant_1.who BEFORE INSERT ON tenant_1.by FOR EACH ROW SET NEW.v = CONNECTION_ID() * 0 + 7",
    "INSERT INTO tenant_1.t VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO tenant_1.p VALUES (1, 1), (2, 2)",
)
OPENED: Final = ("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 100)")
LATER: Final = (
    "UPDATE t SET v = 0 WHERE id = 1",
    "DELETE FROM t",
    "INSERT INTO t VALUES (7, 7)",
    "BEGIN",
    "REPLACE INTO t VALUES (2, 9)",
    "INSERT INTO p VALUES (5, 5)",
    "COMMIT",
    "INSERT INTO t SELECT id + 50, v FROM p",
    "ALTER TABLE t ADD COLUMN more INT",
    "CREATE INDEX more ON t (more)",
    "TRUNCATE TABLE t",
)
_REPLICATES: Final = {
    Flavor.MARIADB: ("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_USER = 'nobody'", "RESET SLAVE ALL"),
    Flavor.MYSQL: (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_USER = 'nobody'",
        "RESET REPLICA ALL",
    ),
}


@pytest.fixture(params=list(Flavor))
def beginning(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> Channel:
    """Servers of one family with the tables on the source; the channel has not begun."""
    source, target = (request.getfixturevalue(f"{request.param}_{part}") for part in ("source", "target"))
    clean_servers(source)
    empty_target(target)
    drop_accounts(target)
    run_on(source, *TABLES)
    return Channel(source, target, tmp_path)


@contextlib.contextmanager
def session(channel: Channel, *statements: str) -> Iterator[Callable[..., None]]:
    """A connection of the source that logs statements."""
    word = "MIXED" if channel.source.flavor is Flavor.MARIADB else "STATEMENT"
    with contextlib.closing(channel.source.connect(autocommit=True, database="tenant_1")) as connection:

        def run(*texts: str) -> None:
            with connection.cursor() as cursor:
                for text in texts:
                    cursor.execute(text)

        run(f"SET SESSION binlog_format = {word}", *statements)
        yield run


def first_copy(channel: Channel) -> None:
    assert channel.cli("bootstrap", CHANNEL) == 0


def test_a_temporary_table_that_was_open_hides_its_statements_not_the_table_of_its_name(beginning: Channel) -> None:
    with session(beginning, *OPENED) as run:
        first_copy(beginning)
        assert_goes_on(beginning, run)


def test_a_drop_behind_the_windows_end_proves_what_the_table_was(beginning: Channel) -> None:
    with session(beginning, *OPENED) as run:
        first_copy(beginning)
        run(*LATER)
        file, size, *_ = beginning.source.query("SHOW BINARY LOGS")[-1]
    dropped = "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`"
    wait_until(lambda: any(dropped in str(row) for row in beginning.source.query(f"SHOW BINLOG EVENTS IN '{file}'")))
    assert beginning.run(WindowRequest(until_position=LogPosition(file, size))) is not None
    assert beginning.target.query("SELECT id FROM tenant_1.t ORDER BY id") == [(1,), (2,), (3,)]
    run_on(beginning.source, "INSERT INTO tenant_1.t VALUES (6, 6)")
    assert beginning.run() is not None
    beginning.assert_equal()


def assert_goes_on(channel: Channel, run: Callable[..., None]) -> None:
    """The session of the temporary table and another one write, and both servers end equal."""
    run(*LATER)
    run_on(channel.source, "INSERT INTO tenant_1.t VALUES (4, 4)")
    with pytest.raises(PrecheckError, match=r"what may be a temporary table of before .*tenant_1\.t.*run again when"):
        channel.run()
    # the session has another one, whose life the window has, then the table itself
    run("DROP TEMPORARY TABLE t")
    assert channel.run() is not None
    channel.assert_equal()
    run("INSERT INTO t VALUES (5, 5)")
    run(*OPENED, "UPDATE t SET v = v + 1", "INSERT INTO p SELECT id + 10, v FROM t", "DROP TEMPORARY TABLE t")
    assert channel.run() is not None
    channel.assert_equal()


def is_named(channel: Channel, *statements: str) -> None:
    """Statements that cannot be repeated are refused before the first write, and pass with ``allow_unsafe``."""
    with session(channel, *OPENED) as run:
        first_copy(channel)
        run(*statements)
    with pytest.raises(PrecheckError, match=r"temporary table of before the channel's beginning, .*tenant_1\.t"):
        channel.run()
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None


def test_a_table_that_the_target_has_lost_is_none_of_a_connection_that_is_older_than_the_channel(
    beginning: Channel,
) -> None:
    run_on(beginning.source, "CREATE TABLE tenant_1.audit (id INT PRIMARY KEY)")
    with session(beginning, "CREATE TEMPORARY TABLE own (id INT)") as run:
        first_copy(beginning)
        # neither server has a permanent one
        run("INSERT INTO own VALUES (1)")
        assert beginning.run() is not None
        beginning.assert_equal()
        run_on(beginning.target, "DROP TABLE tenant_1.audit", log=False)
        run("INSERT INTO audit VALUES (1 + 0 * CONNECTION_ID())")
        with pytest.raises(PrecheckError, match=r"a table that the target lacks, .*tenant_1\.audit.*binlane recopy"):
            beginning.run()
    assert beginning.cli("recopy", CHANNEL, "--table", "tenant_1.audit", "--yes") == 0
    beginning.assert_equal()


def test_what_is_read_from_one_into_another_table_is_named_before_the_first_write(beginning: Channel) -> None:
    is_named(beginning, "INSERT INTO p SELECT id + 100, v FROM t")


def test_the_statements_of_all_other_connections_are_what_they_were(beginning: Channel) -> None:
    """One without temporary tables, older than the channel; younger ones with tables of their own, and marked ones."""
    with session(beginning) as older:
        first_copy(beginning)
        older("UPDATE t SET v = v + 1", "INSERT INTO p SELECT id + 20, v FROM t WHERE id > 2 ORDER BY id")
        older(*OPENED, "UPDATE t SET v = 6", "INSERT INTO p SELECT id + 30, v FROM t ORDER BY id", "DROP TABLE t")
        with session(beginning, *OPENED) as younger:
            younger("INSERT INTO p SELECT id + 40, v FROM t ORDER BY id", "DROP TEMPORARY TABLE t")
            younger("INSERT INTO `by` (id) VALUES (1)", "INSERT INTO t VALUES (9, 0 * CONNECTION_ID())")
            younger("DELETE FROM l USING t l JOIN t r ON l.id = r.id WHERE l.id = 2", "CREATE TABLE made LIKE t")
        assert beginning.run() is not None
        beginning.assert_equal()


def test_a_replica_s_log_has_connections_of_another_server_with_other_numbers(beginning: Channel) -> None:
    source = source_of(beginning.config, beginning.endpoints)
    assert source.newest_session() < EVERY_SESSION
    begin, end = _REPLICATES[beginning.source.flavor]
    run_on(beginning.source, begin, log=False)
    try:
        assert source.newest_session() == EVERY_SESSION
    finally:
        run_on(beginning.source, end, log=False)


def test_what_a_procedure_writes_behind_its_own_temporary_table_is_not_left_out(beginning: Channel) -> None:
    """The server marks the statements of a procedure behind the first one of a temporary table, all of them."""
    run_on(
        beginning.source,
        "CREATE PROCEDURE tenant_1.fill() BEGIN CREATE TEMPORARY TABLE own (a INT); INSERT INTO own VALUES (1); "
        "DROP TEMPORARY TABLE own; INSERT INTO t VALUES (8, 8); UPDATE p SET v = 9; END",
    )
    with session(beginning) as older:
        first_copy(beginning)
        older("CALL fill()", "ALTER TABLE `by` RENAME TO other", "ALTER TABLE other RENAME TO `by`, ADD w INT")
    with pytest.raises(PrecheckError, match=r"what may be a temporary table of before .*tenant_1\.t"):
        beginning.run()
    beginning.write_channel("allow_unsafe = true\n")
    assert beginning.run() is not None
    beginning.assert_equal()


@pytest.mark.parametrize("beginning", [Flavor.MARIADB], indirect=True)
def test_a_change_that_a_copy_has_before_its_transaction_is_logged_is_named(beginning: Channel) -> None:
    """A table without transactions has it at once. MySQL with GTIDs refuses such a transaction."""
    table = "CREATE TABLE tenant_1.lasting (id INT PRIMARY KEY, v INT) ENGINE={}"
    changes = ("BEGIN", "UPDATE p SET v = v + 1", "UPDATE lasting SET v = v + 1")
    run_on(beginning.source, table.format("MyISAM"), "INSERT INTO tenant_1.lasting VALUES (1, 1)")
    with session(beginning, "SET SESSION binlog_format = STATEMENT", *changes) as older:
        run_on(beginning.target, *TABLES, table.format("InnoDB"), "INSERT INTO tenant_1.lasting VALUES (1, 2)")
        beginning.init("now")
        older("COMMIT")
    with pytest.raises(PrecheckError, match=r"a change of tenant_1\.lasting, .*from before.*\[open-transactions\]"):
        beginning.run()
    # a copy that was made when the transaction had ended
    run_on(beginning.target, "UPDATE tenant_1.p SET v = v + 1", "DELETE FROM binlane.channels")
    beginning.init("now")
    with session(beginning, "SET SESSION binlog_format = STATEMENT", *changes, "COMMIT"):
        assert beginning.run() is not None
    assert beginning.rows_of(beginning.source) == beginning.rows_of(beginning.target)


def test_what_a_running_event_writes_behind_its_temporary_table_is_not_left_out_in_silence(beginning: Channel) -> None:
    """The server marks each statement of the event behind the first one of the temporary table."""
    word = "MIXED" if beginning.source.flavor is Flavor.MARIADB else "STATEMENT"
    waits = "WHILE (SELECT COUNT(*) FROM tenant_1.going) = 0 DO SELECT SLEEP(0.1) INTO @slept; END WHILE; "
    body = (
        "BEGIN CREATE TEMPORARY TABLE tenant_1.own (a INT); INSERT INTO tenant_1.own VALUES (1); "
        f"INSERT INTO tenant_1.p VALUES (6, 6); {waits}INSERT INTO tenant_1.p VALUES (7, 7); END"
    )
    run_on(
        beginning.source,
        "CREATE TABLE tenant_1.going (id INT PRIMARY KEY)",
        f"SET GLOBAL binlog_format = {word}",
        "SET GLOBAL event_scheduler = ON",
        f"CREATE EVENT tenant_1.runs ON SCHEDULE AT NOW() ON COMPLETION PRESERVE DO {body}",
    )
    try:
        wait_until(lambda: len(beginning.source.query("SELECT * FROM tenant_1.p")) == 3)
        first_copy(beginning)
        run_on(beginning.source, "INSERT INTO tenant_1.going VALUES (1)")
        wait_until(lambda: len(beginning.source.query("SELECT * FROM tenant_1.p")) == 4)
    finally:
        run_on(beginning.source, "SET GLOBAL event_scheduler = OFF", "SET GLOBAL binlog_format = ROW", log=False)
    with pytest.raises(PrecheckError, match=r"what may be a temporary table of before .*tenant_1\.p.*allow_unsafe"):
        beginning.run()
    beginning.write_channel("allow_unsafe = true\n")
    assert beginning.run() is not None
    assert beginning.rows_of(beginning.source) == beginning.rows_of(beginning.target)


COMPOUNDS: Final = {
    "block": "BEGIN NOT ATOMIC {} END",
    "if": "IF 1 = 1 THEN {} END IF",
    "while": "BEGIN NOT ATOMIC DECLARE n INT DEFAULT 0; WHILE n < 1 DO {} SET n = n + 1; END WHILE; END",
    "for": "FOR n IN 1..1 DO {} END FOR",
    "immediate": "EXECUTE IMMEDIATE 'BEGIN NOT ATOMIC {} END'",
}
UNSEEN_OWN: Final = "INSERT INTO own VALUES (1);"
OWN_OF_THE_BODY: Final = (
    "CREATE TEMPORARY TABLE other (a INT); INSERT INTO other VALUES (1); DROP TEMPORARY TABLE other;"
)


COMPOUND_CASES: Final = [
    *(pytest.param(compound, UNSEEN_OWN, id=f"{kind}-older-table") for kind, compound in COMPOUNDS.items()),
    pytest.param(COMPOUNDS["block"], OWN_OF_THE_BODY, id="block-own-table"),
]


@pytest.mark.parametrize("beginning", [Flavor.MARIADB], indirect=True)
@pytest.mark.parametrize(("compound", "uses"), COMPOUND_CASES)
def test_what_a_compound_statement_writes_behind_a_temporary_table_is_not_left_out(
    beginning: Channel, compound: str, uses: str
) -> None:
    """The server marks each statement of the body behind the first one of the temporary table, and logs no body."""
    with session(beginning, "CREATE TEMPORARY TABLE own (a INT)") as older:
        first_copy(beginning)
        older(compound.format(f"{uses} INSERT INTO p VALUES (7, 7); DELETE FROM t WHERE id = 2;"))
        with pytest.raises(PrecheckError, match=r"what may be a temporary table of before .*tenant_1\.[pt].*body"):
            beginning.run()
    # the DROP of its connection's end names other tables
    with pytest.raises(PrecheckError, match=r"what may be a temporary table of before .*tenant_1\.[pt].*body"):
        beginning.run()
    beginning.write_channel("allow_unsafe = true\n")
    assert beginning.run() is not None
    beginning.assert_equal()


@pytest.mark.parametrize("beginning", [Flavor.MARIADB], indirect=True)
def test_what_a_dump_has_put_in_without_the_log_is_on_the_target_if_that_says_so(
    beginning: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """A backup of a place of the log may have been made before the dump was loaded."""
    servers = (beginning.source, beginning.target)
    try:
        run_on(beginning.source, "SET GLOBAL gtid_slave_pos = '5-77-1000'", log=False)
        assert beginning.cli("init", CHANNEL, "--start", "oldest") == 1
        said = " ".join(capsys.readouterr().err.split())
        assert "has the transactions 5-77-1000, " in said
        assert "source.unlogged_gtids" in said
        run_on(beginning.target, "SET GLOBAL gtid_slave_pos = '5-77-1000'", log=False)
        beginning.init("oldest")
    finally:
        for server in servers:
            run_on(server, "SET GLOBAL gtid_slave_pos = ''", log=False)
    assert "5-77-1000" in beginning.status.channel.watermark.gtid_set


@pytest.mark.parametrize("beginning", [Flavor.MARIADB], indirect=True)
@pytest.mark.parametrize("rotated", [False, True], ids=["goes-on", "rotates-first"])
def test_a_channel_that_begins_behind_what_a_dump_has_put_in_goes_on(beginning: Channel, *, rotated: bool) -> None:
    """What gtid_slave_pos says is in no log: neither the next head nor the log's state has it."""
    source = beginning.source
    [(logged,)] = source.query("SELECT @@GLOBAL.gtid_binlog_pos")
    number = int(logged.rpartition("-")[2]) + 1000
    try:
        run_on(source, f"SET GLOBAL gtid_slave_pos = '0-77-{number}'", log=False)
        first_copy(beginning)
        assert beginning.status.channel.watermark.gtid_set.startswith(f"0-77-{number},0-")
        # nothing to do, in a session that proves the server
        beginning.cli("run", CHANNEL)
        if rotated:
            run_on(source, "FLUSH BINARY LOGS", log=False)
        run_on(source, "INSERT INTO tenant_1.t (id, v) VALUES (901, 1)")
        assert beginning.run() is not None
        assert not beginning.status.channel.watermark.gtid_set.startswith("0-77")
        beginning.assert_equal()
        run_on(source, "INSERT INTO tenant_1.t (id, v) VALUES (902, 1)")
        assert beginning.run() is not None
    finally:
        run_on(source, "SET GLOBAL gtid_slave_pos = ''", log=False)
    beginning.assert_equal()
