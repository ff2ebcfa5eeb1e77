"""The list of kinds that servers log, held against what they do log."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pymysql
import pytest

from binlane.errors import PrecheckError, UnsupportedEventError
from binlane.model import Flavor
from binlane.plan.transaction.own_state import REPLICA_STATE
from binlane.sql.logged_kinds import not_logged
from binlane.sql.parse.analyze import analyze
from binlane.sql.parse.lexer import Dialect
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, run_on

LOGGED = """
CREATE DATABASE kinds
CREATE TABLE kinds.t (a INT PRIMARY KEY)
INSERT INTO kinds.t VALUES (1), (2)
REPLACE INTO kinds.t VALUES (5)
UPDATE kinds.t SET a = a + 100
DELETE FROM kinds.t WHERE a = 101
CREATE TABLE kinds.u SELECT 1 AS a
CREATE FUNCTION kinds.f() RETURNS INT DETERMINISTIC BEGIN INSERT INTO kinds.u VALUES (1); RETURN 1; END
CREATE PROCEDURE kinds.p() INSERT INTO kinds.u VALUES (2)
SELECT kinds.f()
DO kinds.f()
CALL kinds.p()
CREATE VIEW kinds.v AS SELECT 1 AS x
ALTER VIEW kinds.v AS SELECT 2 AS x
CREATE TRIGGER kinds.g BEFORE INSERT ON kinds.t FOR EACH ROW SET @q = 1
DROP TRIGGER kinds.g
CREATE EVENT kinds.e ON SCHEDULE EVERY 1 DAY DISABLE DO DELETE FROM kinds.t
ALTER EVENT kinds.e COMMENT 'x'
DROP EVENT kinds.e
CREATE INDEX i ON kinds.t (a)
DROP INDEX i ON kinds.t
ALTER TABLE kinds.t ADD b INT
RENAME TABLE kinds.t TO kinds.w
TRUNCATE kinds.w
CREATE TEMPORARY TABLE kinds.tmp (a INT)
DROP TEMPORARY TABLE kinds.tmp
ANALYZE TABLE kinds.w
OPTIMIZE TABLE kinds.w
REPAIR TABLE kinds.w
FLUSH TABLES
FLUSH PRIVILEGES
FLUSH STATUS
FLUSH ERROR LOGS
CREATE USER test_kinds@localhost
ALTER USER test_kinds@localhost ACCOUNT LOCK
CREATE ROLE test_kinds_role
GRANT test_kinds_role TO test_kinds@localhost
GRANT SELECT ON kinds.* TO test_kinds@localhost
REVOKE SELECT ON kinds.* FROM test_kinds@localhost
DROP ROLE test_kinds_role
RENAME USER test_kinds@localhost TO test_kinds@'10.%'
DROP USER test_kinds@'10.%'
DROP TABLE kinds.w
DROP DATABASE kinds
""".strip("\n").splitlines()
NOT_LOGGED = """
SELECT 1 INTO OUTFILE '{folder}/o'
SELECT 1 INTO @x
SET GLOBAL long_query_time = 10
SET @@GLOBAL.long_query_time = 10
SET SESSION sort_buffer_size = 300000
FLUSH LOGS
FLUSH BINARY LOGS
FLUSH TABLES WITH READ LOCK
UNLOCK TABLES
LOCK TABLES mysql.db READ
UNLOCK TABLES
CHECK TABLE mysql.db
CREATE SERVER kinds FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h', DATABASE 'd', USER 'u')
DROP SERVER kinds
PREPARE s FROM 'SELECT 1'
EXECUTE s
DEALLOCATE PREPARE s
SHOW DATABASES
EXPLAIN SELECT 1
""".strip("\n").splitlines()
NOT_LOGGED_BY_MARIADB = ("FLUSH SLAVE", "FLUSH REPLICA", "FLUSH STATUS, SLAVE")
"""And FLUSH MASTER, which removes the server's logs."""
TIME_ZONE = (("INSERT INTO", "VALUES ('Test/Kinds', 1)"), ("DELETE FROM", "WHERE name = 'Test/Kinds'"))
SYSTEM = (
    r"changes the server's own tables \(SYSTEM TABLES\): .*who changed them.*allow_statements = \[\"SYSTEM TABLES\"\]"
)
_SHOWN = re.compile(r"^use `\w+`; |(?: /\* xid=\d+ \*/)$")


def log_files(cursor: pymysql.cursors.Cursor) -> list[str]:
    """The server's log files, oldest first."""
    cursor.execute("SHOW BINARY LOGS")
    return [str(row[0]) for row in cursor.fetchall()]


def logged(cursor: pymysql.cursors.Cursor, first: str) -> list[str]:
    """The statements of the server's logs from the file ``first`` on: earlier ones are of other tests."""
    found = []
    for name in (name for name in log_files(cursor) if name >= first):
        cursor.execute(f"SHOW BINLOG EVENTS IN '{name}'")
        found += [_SHOWN.sub("", row[5]) for row in cursor.fetchall() if row[2] == "Query"]
    return [text for text in found if text not in ("BEGIN", "COMMIT")]


@pytest.mark.parametrize("name", ["mariadb_source", pytest.param("mysql_source", marks=requires_mysql)])
def test_servers_log_the_kinds_of_the_list_and_no_others(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: PrivateServer = request.getfixturevalue(name)
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        first = log_files(cursor)[-1]
        before = logged(cursor, first)
        for statement in LOGGED:
            cursor.execute(statement)
            now = logged(cursor, first)
            assert len(now) > len(before), statement
            for text in now[len(before) :]:
                facts = analyze(text, database="kinds", flavor=server.flavor)
                assert not_logged(text, facts, Dialect(server.flavor), (10, 11, 0), None) is None, text
            before = now
        others = NOT_LOGGED_BY_MARIADB if server.flavor is Flavor.MARIADB else ()
        for statement in (*NOT_LOGGED, *others):
            text = statement.format(folder=tmp_path)
            cursor.execute(text)
            assert logged(cursor, first) == before, statement
            facts = analyze(text, database="kinds", flavor=server.flavor)
            assert not_logged(text, facts, Dialect(server.flavor), (10, 11, 0), None) is not None, statement


@pytest.mark.parametrize("row_format", [True, False])
def test_changes_of_the_servers_own_tables_are_refused(channel: Channel, row_format: bool) -> None:
    count = "SELECT COUNT(*) FROM mysql.time_zone_name"
    before = channel.target.query(count)
    add, remove = (f"{verb} mysql.time_zone_name {rest}" for verb, rest in TIME_ZONE)
    run_on(channel.source, f"SET SESSION binlog_format = '{'ROW' if row_format else 'STATEMENT'}'", add)
    run_on(channel.source, remove, log=False)
    missing = r"mysql\.time_zone_name: table: expected the table"
    error, said = (PrecheckError, missing) if row_format else (UnsupportedEventError, SYSTEM)
    with pytest.raises(error, match=said):
        channel.run()
    assert channel.target.query(count) == before
    if not row_format:
        channel.write_channel('[filter]\nallow_statements = ["SYSTEM TABLES"]\n')
        channel.run()
        assert channel.target.query(count) != before
        run_on(channel.target, remove, log=False)


def test_what_alters_a_mariadb_server_s_own_place_as_a_replica_is_left_out_and_counted(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = (
        "SELECT engine FROM information_schema.tables WHERE table_schema = 'mysql' AND table_name = 'gtid_slave_pos'"
    )
    [(now,)] = channel.source.query(engine)
    other = "Aria" if now == "InnoDB" else "InnoDB"
    before = channel.target.query(engine)
    alter = "ALTER TABLE mysql.gtid_slave_pos ENGINE = {}"
    run_on(channel.source, alter.format(other), "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT)")
    run_on(channel.source, alter.format(now), log=False)
    assert channel.cli("plan", CHANNEL) == 0
    assert REPLICA_STATE in " ".join(capsys.readouterr().out.split())
    assert channel.run() is not None
    channel.assert_equal()
    assert channel.target.query(engine) == before
