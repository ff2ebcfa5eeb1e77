"""A server's counts of statements tell of every change of a definition, whoever makes it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from binlane.schema.statement_counts import StatementCounts
from binlane.servers.statement_counts import may_be_changing, read_statement_counts
from lab.servers import PrivateServer, private_server
from tests.integration.precheck.helpers import connected, run, schema_of
from tests.waiting import wait_until

SHOP = (
    "CREATE DATABASE shop",
    "CREATE TABLE shop.parent (id INT PRIMARY KEY) ENGINE = InnoDB",
    "CREATE TABLE shop.t (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY a (a)) ENGINE = InnoDB",
    "CREATE TRIGGER shop.there BEFORE INSERT ON shop.t FOR EACH ROW SET NEW.a = 1",
    "CREATE PROCEDURE shop.alters() ALTER TABLE shop.t ADD z INT",
    "CREATE VIEW shop.v AS SELECT 1 AS one",
    "CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
)
CHANGES = [
    "CREATE DATABASE shop_2",
    "DROP DATABASE shop",
    "CREATE TABLE shop.u (a INT)",
    "CREATE TABLE shop.u LIKE shop.t",
    "CREATE TABLE shop.u AS SELECT 1 AS one",
    "DROP TABLE shop.t",
    "ALTER TABLE shop.t ADD c INT",
    "ALTER TABLE shop.t DROP b",
    "ALTER TABLE shop.t RENAME COLUMN a TO aa",
    "ALTER TABLE shop.t ALTER a SET DEFAULT 7",
    "ALTER TABLE shop.t MODIFY b VARCHAR(20)",
    "ALTER TABLE shop.t ADD v INT GENERATED ALWAYS AS (a + 1) VIRTUAL",
    "ALTER TABLE shop.t ADD UNIQUE KEY u (a)",
    "ALTER TABLE shop.t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES shop.parent (id)",
    "ALTER TABLE shop.t ENGINE = MyISAM",
    "CREATE INDEX i ON shop.t (b)",
    "DROP INDEX a ON shop.t",
    "RENAME TABLE shop.t TO shop.u",
    "RENAME TABLE shop.t TO shop.u, shop.parent TO shop.t, shop.u TO shop.parent",
    "CREATE TRIGGER shop.new BEFORE UPDATE ON shop.t FOR EACH ROW SET NEW.a = 1",
    "DROP TRIGGER shop.there",
    "CREATE VIEW shop.w AS SELECT 1 AS one",
    "DROP VIEW shop.v",
    "CREATE FUNCTION shop.f() RETURNS INT DETERMINISTIC RETURN 1",
    "DROP PROCEDURE shop.alters",
    "ALTER EVENT shop.e ENABLE",
    "CALL shop.alters()",
]
OF_MARIADB = [
    "CREATE SEQUENCE shop.numbers",
    "CREATE OR REPLACE TABLE shop.t (a INT)",
    "ALTER TABLE shop.t ADD SYSTEM VERSIONING",
    "SET STATEMENT max_statement_time = 100 FOR ALTER TABLE shop.t ADD c INT",
    "EXECUTE IMMEDIATE 'ALTER TABLE shop.t ADD c INT'",
    "BEGIN NOT ATOMIC ALTER TABLE shop.t ADD c INT; END",
]


@pytest.fixture
def shop(server: PrivateServer) -> PrivateServer:
    wait_until(lambda: counts_without_a_break(server))
    run(server, "SET SESSION sql_log_bin = 0", *SHOP)
    return server


def counted(server: PrivateServer) -> StatementCounts:
    with connected(server) as connection:
        found = read_statement_counts(connection)
    assert found is not None
    return found


def counts_without_a_break(server: PrivateServer) -> bool:
    """Known for whole seconds only, by two clocks: a server that has just started may have started again."""
    found = counted(server)
    return found.since + 1 < found.at


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_of_what_is_read_is_counted(shop: PrivateServer, change: str) -> None:
    assert_changed(shop, change)


@pytest.mark.parametrize("change", OF_MARIADB)
def test_mariadb_counts_its_own_forms_of_a_change(
    mariadb_target: PrivateServer, clean_databases: Callable[[PrivateServer], None], change: str
) -> None:
    clean_databases(mariadb_target)
    wait_until(lambda: counts_without_a_break(mariadb_target))
    run(mariadb_target, "SET SESSION sql_log_bin = 0", *SHOP)
    assert_changed(mariadb_target, change)


def assert_changed(shop: PrivateServer, *statements: str) -> None:
    """The statements change what is read, and the counts, although nothing is logged."""
    before, definitions = counted(shop), schema_of(shop)
    # what has read them is no change
    assert before.hold_until(counted(shop))
    run(shop, "SET SESSION sql_log_bin = 0", *statements)
    assert not before.hold_until(counted(shop))
    assert schema_of(shop) != definitions


def test_prepared_statements_are_counted_as_what_they_are(shop: PrivateServer) -> None:
    assert_changed(shop, "PREPARE alters FROM 'ALTER TABLE shop.t ADD c INT'", "EXECUTE alters")


def test_what_changes_no_definition_is_no_change(shop: PrivateServer) -> None:
    before = counted(shop)
    run(
        shop,
        *("BEGIN", "INSERT INTO shop.parent VALUES (1)", "UPDATE shop.parent SET id = 2", "SAVEPOINT s", "COMMIT"),
        *(
            "SELECT * FROM shop.t",
            "SHOW TABLES FROM shop",
            "SET @a = 1",
            "DO 1",
            "DELETE FROM shop.parent",
            "XA RECOVER",
        ),
        *("LOCK TABLES shop.t WRITE", "UNLOCK TABLES", "PREPARE p FROM 'SELECT 1'", "EXECUTE p", "USE shop"),
    )
    assert before.hold_until(counted(shop))


def test_a_change_that_has_begun_before_is_seen_running(shop: PrivateServer) -> None:
    """It was counted when it began, and changes the definition when a transaction lets go of the table."""
    with connected(shop) as asked:
        assert not may_be_changing(asked)
        with altering(shop, "/* a comment */ ALTER TABLE shop.t ADD c INT"):
            while not may_be_changing(asked):
                time.sleep(0.01)
            begun, definitions = counted(shop), schema_of(shop)
        # the client has its answer before the server shows the session as idle
        wait_until(lambda: not may_be_changing(asked))
    # the counts alone would not tell
    assert begun.hold_until(counted(shop))
    assert schema_of(shop) != definitions


def test_a_running_query_is_no_change(shop: PrivateServer) -> None:
    with connected(shop) as asked, altering(shop, "/* a comment */ SELECT * FROM shop.t FOR UPDATE"):
        shown = [str(row[7]) for row in shop.query("SHOW FULL PROCESSLIST")]
        while not any("FOR UPDATE" in each for each in shown):
            shown = [str(row[7]) for row in shop.query("SHOW FULL PROCESSLIST")]
        assert not may_be_changing(asked)


@contextlib.contextmanager
def altering(server: PrivateServer, statement: str) -> Iterator[None]:
    """The statement runs, and waits for a lock until the end of the block; it has ended behind it."""
    with contextlib.closing(server.connect()) as holder, ThreadPoolExecutor(1) as pool:
        holder.query("INSERT INTO shop.t VALUES (1, 1, '')")
        running = pool.submit(run, server, statement)
        try:
            yield
        finally:
            holder.rollback()
            running.result()


def test_a_server_that_starts_again_does_not_go_on_counting(tmp_path: Path) -> None:
    """What was altered before the second start is in no count."""
    with private_server(tmp_path / "server", durable=False) as server:
        run(server, *SHOP)
        server.restart()
        time.sleep(2)  # the counts are known to have no break only for whole seconds
        before = counted(server)
        assert before.hold_until(counted(server))
        run(server, "ALTER TABLE shop.t ADD c INT")
        server.restart()
        assert counted(server).counts == before.counts
        assert not before.hold_until(counted(server))
