"""The target's own parser about logged statements, on both families: what it refuses, and that nothing is run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pymysql
import pytest
import sqlalchemy

from binlane.model import Flavor, Item, ItemKind, SessionContext
from binlane.precheck.situation.parser import StatementJudge
from binlane.servers.engines import engine_at
from lab.servers import PrivateServer
from tests.integration.precheck.helpers import run
from tests.integration.precheck.test_server import USER, account

OBJECTS = (
    *("CREATE DATABASE IF NOT EXISTS binlane", "CREATE DATABASE judged"),
    *("CREATE TABLE judged.t (a INT PRIMARY KEY, b INT, KEY i (b))", "INSERT INTO judged.t VALUES (7, 7)"),
    *("CREATE VIEW judged.v AS SELECT 1 AS x", "CREATE USER judged_user"),
    *("CREATE TABLE judged.l (c VARCHAR(9) CHARACTER SET latin1)", "CREATE DATABASE judged_l CHARACTER SET latin1"),
    "CREATE PROCEDURE judged.p() INSERT INTO judged.t VALUES (1, 1)",
    "CREATE FUNCTION judged.f() RETURNS INT DETERMINISTIC BEGIN INSERT INTO judged.t VALUES (9, 9); RETURN 1; END",
    # MariaDB calls the function to make the view, too
    *("CREATE VIEW judged.`of f` AS SELECT ROUND(1.5, judged.f()) AS x", "DELETE FROM judged.t WHERE a = 9"),
    "CREATE TRIGGER judged.tr BEFORE INSERT ON judged.t FOR EACH ROW SET @fired = 1",
    "CREATE EVENT judged.e ON SCHEDULE EVERY 1 HOUR DISABLE DO SET @fired = 1",
)
EVERY_KIND = (
    *("CREATE DATABASE judged_2", "ALTER DATABASE judged CHARACTER SET latin1", "DROP DATABASE judged"),
    *("CREATE TABLE judged.n (a INT)", "CREATE TABLE judged.n AS SELECT judged.f() AS x FROM judged.t"),
    *(
        "CREATE TABLE judged.n LIKE judged.t",
        "CREATE TEMPORARY TABLE judged.n (a INT)",
        "ALTER TABLE judged.t ADD c INT",
    ),
    *("ALTER TABLE judged.t RENAME TO judged.u", "DROP TABLE judged.t", "RENAME TABLE judged.t TO judged.u"),
    *("TRUNCATE TABLE judged.t", "CREATE INDEX j ON judged.t (b)", "DROP INDEX i ON judged.t"),
    *("CREATE VIEW judged.w AS SELECT judged.f() AS x", "ALTER VIEW judged.v AS SELECT 2 AS x", "DROP VIEW judged.v"),
    *("CREATE PROCEDURE judged.q() SELECT 1", "ALTER PROCEDURE judged.p COMMENT 'x'", "DROP PROCEDURE judged.p"),
    *("CREATE FUNCTION judged.g() RETURNS INT DETERMINISTIC RETURN 1", "DROP FUNCTION judged.f"),
    *("ALTER FUNCTION judged.f COMMENT 'x'", "CREATE FUNCTION udf RETURNS STRING SONAME 'judged.so'"),
    "CREATE TRIGGER judged.ts BEFORE INSERT ON judged.t FOR EACH ROW SET @fired = 1",
    *("DROP TRIGGER judged.tr", "CREATE EVENT judged.d ON SCHEDULE EVERY 1 HOUR DO SET @fired = 1"),
    *(
        "ALTER EVENT judged.e ENABLE",
        "DROP EVENT judged.e",
        "CREATE USER judged_2",
        "ALTER USER judged_user ACCOUNT LOCK",
    ),
    *("DROP USER judged_user", "RENAME USER judged_user TO judged_2", "SET PASSWORD FOR judged_user = 'Made-up-1'"),
    *("CREATE ROLE judged_2", "GRANT ALL ON *.* TO judged_user", "REVOKE ALL, GRANT OPTION FROM judged_user"),
    *("FLUSH TABLES", "FLUSH PRIVILEGES", "ANALYZE TABLE judged.t", "OPTIMIZE TABLE judged.t", "REPAIR TABLE judged.t"),
    *("INSERT INTO judged.t VALUES (1, 1)", "INSERT INTO judged.t VALUES (judged.f(), GET_LOCK('judged', 0))"),
    *(
        "REPLACE INTO judged.t VALUES (1, 2)",
        "UPDATE judged.t SET a = a + 1 WHERE b = judged.f()",
        "DELETE FROM judged.t",
    ),
    *("INSERT INTO judged.t VALUES (ROUND(1.5, judged.f()), 1)", "INSERT INTO judged.t SELECT x, 1 FROM judged.`of f`"),
    *(
        "DELETE FROM judged.t WHERE 'x' LIKE 'y' ESCAPE judged.F()",
        "INSERT INTO judged.t VALUES (ROUND(1.5, judged.\u1e1f()), 1)",
        "SELECT SUBSTR('abc', judged . `f` ()) FROM judged.t",
    ),
    "CREATE TABLE judged.n AS SELECT TRUNCATE(1.1, judged.f()) AS x FROM judged.t",
    "CREATE VIEW judged.w AS SELECT ROUND(1.5, judged.f()) AS x",
    *("LOAD DATA LOCAL INFILE 'binlane' INTO TABLE judged.t", "CALL judged.p()", "DO judged.f(), SLEEP(3)"),
    *("SAVEPOINT s", "ROLLBACK TO s", "SET @fired = 2", "SET GLOBAL max_connections = 77"),
    *("CREATE SERVER judged FOREIGN DATA WRAPPER mysql OPTIONS (HOST 'h')", "DROP SERVER judged"),
    *("INSTALL PLUGIN judged SONAME 'judged.so'", "UNINSTALL PLUGIN judged", "BEGIN", "COMMIT", "KILL 1"),
)
OF_ONE_FAMILY = {
    Flavor.MARIADB: ("CREATE OR REPLACE TABLE judged.t (x INT)", "CREATE SEQUENCE judged.s"),
    Flavor.MYSQL: (
        *("CREATE TABLESPACE judged ADD DATAFILE 'judged.ibd'", "CREATE RESOURCE GROUP judged TYPE = USER"),
        *("SET PERSIST max_connections = 77", "ALTER INSTANCE ROTATE INNODB MASTER KEY", "SHUTDOWN", "RESTART"),
    ),
}
CREATED = "SELECT create_time FROM information_schema.tables WHERE table_schema = 'judged' AND table_name"
BOTH = dict.fromkeys(Flavor, 1064)
CASES: Sequence[tuple[str, dict[Flavor, int]]] = [
    ("ALTER TABLE t ALTER COLUMN b SET INVISIBLE", {Flavor.MARIADB: 1064}),
    ("ALTER TABLE t WAIT 5 ADD c INT", {Flavor.MYSQL: 1064}),
    ("CREATE TABLE n (a INT /*!80000 NOT NULL nonsense */)", {Flavor.MYSQL: 1064}),
    ("CREATE TABLE n (a INT /*M!100000 NOT NULL nonsense */)", {Flavor.MARIADB: 1064}),
    ("CREATE TABLE n (a VARCHAR(9) COLLATE utf8mb4_0900_ai_ci)", {Flavor.MARIADB: 1273}),
    ("CREATE TABLE n (a VARCHAR(9) COLLATE uca1400_ai_ci)", {Flavor.MYSQL: 1273}),
    ("CREATE TABLE n (a VARCHAR(9) CHARACTER SET gb18030)", {Flavor.MARIADB: 1115}),
    ("INSERT INTO t (a) SELECT 1 AS `x😀`", {Flavor.MARIADB: 1300}),
    ("INSERT INTO t (a) SELECT @`x😀`", {Flavor.MARIADB: 1300}),
    ("CREATE TABLE n (a VECTOR3)", {Flavor.MARIADB: 4161, Flavor.MYSQL: 1064}),
    ("CREATE TABLE n (a INT) ENGINE=Aria", {Flavor.MYSQL: 1286}),
    ("CREATE TABLE n (a TEXT DEFAULT 'x')", {Flavor.MYSQL: 1101}),
    ("CREATE TABLE n (a VARCHAR(9) DEFAULT (NATURAL_SORT_KEY('x')))", {Flavor.MYSQL: 3770}),
    ("INSERT INTO t VALUES (LENGTH(NATURAL_SORT_KEY('x')), 1)", {Flavor.MYSQL: 1305}),
    ("INSERT INTO t VALUES (LENGTH(UUID_TO_BIN(UUID())), 1)", {Flavor.MARIADB: 1305}),
    ("CREATE PROCEDURE q() BEGIN DECLARE x ROW (a INT); END", {Flavor.MYSQL: 1064}),
    ("CREATE PROCEDURE q() BEGIN SELECT 1 FROM; END", BOTH),
    ("CREATE PROCEDURE q() BEGIN RETURN 1; END", dict.fromkeys(Flavor, 1313)),
    ("CREATE TRIGGER ts BEFORE INSERT ON t FOR EACH ROW COMMIT", dict.fromkeys(Flavor, 1422)),
    ("CREATE EVENT d ON SCHEDULE EVERY 1 HOUR DO SET @fired =", BOTH),
    ("GRANT BINLOG_ADMIN ON *.* TO judged_user", {Flavor.MARIADB: 1064}),
    ("GRANT BINLOG REPLAY ON *.* TO judged_user", {Flavor.MYSQL: 1064}),
    ("INSERT INTO t VALUES (1, 1); DROP TABLE t", BOTH),
    # a function is looked for, also where a table is not there yet
    ("INSERT INTO nowhere.t (n) SELECT nowhere_function(a) FROM nowhere.s AS s", dict.fromkeys(Flavor, 1305)),
    ("CREATE VIEW w AS SELECT nowhere_function(a) FROM nowhere.t", dict.fromkeys(Flavor, 1305)),
    ("WITH c (a) AS (SELECT 1) SELECT ABS(a), nowhere.f(1) FROM c JOIN nowhere.t AS x", {Flavor.MARIADB: 1305}),
    # what its objects decide, and the window may make them
    ("INSERT INTO nowhere.t VALUES (1)", {}),
    ("INSERT INTO t (nothing) VALUES (1)", {}),
    ("INSERT INTO t VALUES (1, 2, 3)", {}),
    ("CREATE VIEW w AS SELECT * FROM nowhere.t", {}),
    ("ALTER TABLE t DROP COLUMN nothing", {}),
    ("DELETE FROM l WHERE c COLLATE utf8mb4_bin = 'x'", {}),
    ("CREATE TABLE n (c VARCHAR(60000))", {}),
]  # fmt: skip


@contextlib.contextmanager
def judging(server: PrivateServer) -> Iterator[StatementJudge]:
    engine = engine_at(server.url())
    judge = StatementJudge.open(engine)
    try:
        yield judge
    finally:
        judge.close()
        engine.dispose()


@pytest.fixture
def judge(server: PrivateServer) -> Iterator[StatementJudge]:
    """A server with one object of each kind, and a judge."""
    run(server, *OBJECTS)
    try:
        with judging(server) as judge:
            yield judge
    finally:
        run(server, "DROP USER judged_user")


def said(judge: StatementJudge, statement: str | bytes, context: SessionContext | None = None) -> int | None:
    sql = statement.encode() if isinstance(statement, str) else statement
    verdict = judge.judge(Item(ItemKind.DDL, sql, context=context or SessionContext(database="judged")))
    return None if verdict is None else verdict.code


def state(server: PrivateServer) -> list[Any]:
    """All that a statement could change here."""
    logged = "SHOW MASTER STATUS" if server.flavor is Flavor.MARIADB else "SHOW BINARY LOG STATUS"
    return [
        server.query(each)
        for each in (
            logged,
            "SELECT * FROM judged.t ORDER BY a",
            # names alone, and times by name: MariaDB looks into views for more, and calls their functions
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'judged' ORDER BY 1",
            f"{CREATED} = 'l'",
            f"{CREATED} = 't'",
            "SELECT schema_name, default_character_set_name FROM information_schema.schemata ORDER BY 1",
            "SELECT routine_name, routine_comment FROM information_schema.routines WHERE routine_schema = 'judged'",
            "SELECT event_name, status FROM information_schema.events WHERE event_schema = 'judged'",
            "SELECT user, host FROM mysql.user ORDER BY 1, 2",
            "SELECT @@GLOBAL.max_connections, IS_USED_LOCK('judged')",
        )
    ]


def test_a_prepared_statement_is_never_executed(server: PrivateServer, judge: StatementJudge) -> None:
    before = state(server)
    kinds = (*EVERY_KIND, *OF_ONE_FAMILY[server.flavor])
    assert {each: code for each in kinds if (code := said(judge, each)) is not None} == {}
    assert judge.session.rows("SELECT @fired") == [(None,)]
    assert state(server) == before
    # a temporary table would be this connection's alone; that no prepared statement is left is the server's own count
    assert judge.session.rows("SHOW TABLES FROM judged LIKE 'n'") == []
    assert int(judge.session.rows("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")[0][1]) == 0


def test_a_lost_connection_is_no_consent(server: PrivateServer, judge: StatementJudge) -> None:
    assert said(judge, "CREATE TABL judged.n (a INT)") == 1064
    server.query(f"KILL CONNECTION {judge.session.connection_id}")
    for _ in range(2):
        with pytest.raises(pymysql.err.MySQLError):
            said(judge, "CREATE TABL judged.n (a INT)")


def test_each_family_refuses_what_it_does_not_know_and_nothing_that_its_objects_decide(
    server: PrivateServer, judge: StatementJudge
) -> None:
    found = {statement: said(judge, statement) for statement, _ in CASES}
    assert found == {statement: expected.get(server.flavor) for statement, expected in CASES}


def test_a_statement_is_read_in_its_own_session(judge: StatementJudge) -> None:
    ansi = SessionContext(database="judged", sql_mode=4)
    assert said(judge, 'INSERT INTO "t" VALUES (1, 1)', ansi) is None
    assert said(judge, 'INSERT INTO "t" VALUES (1, 1)') == 1064
    no_escapes = SessionContext(database="judged", sql_mode=0x100000)
    assert said(judge, "INSERT INTO t VALUES ('\\', 1)", no_escapes) is None
    assert said(judge, "INSERT INTO t VALUES ('\\', 1)") == 1064
    # the second byte of that character is a backslash: in sjis it escapes nothing
    sjis = SessionContext(database="judged", charset_client=13, collation_connection=13, collation_server=8)
    assert said(judge, b"INSERT INTO t VALUES ('\x95\x5c', 1)", sjis) is None
    latin1 = SessionContext(database="judged", charset_client=8, collation_connection=8, collation_server=8)
    assert said(judge, b"INSERT INTO t VALUES ('\x95\x5c', 1)", latin1) == 1064
    # a database that the window makes, and an error that the source had as well
    assert said(judge, "CREATE TABLE x (a INT) NONSENSE", SessionContext(database="to_come")) == 1064
    assert said(judge, "CREATE TABLE x (a INT)", SessionContext(database="to_come")) is None
    assert said(judge, "DROP NONSENSE", SessionContext(database="judged", error_code=1064)) is None


def test_an_account_without_the_privileges_for_it_is_told_nothing(server: PrivateServer) -> None:
    """The precheck names what it lacks (``check_target``)."""
    with account(server):
        engine = engine_at(
            sqlalchemy.make_url(server.url()).set(username=USER), connect_args={"get_server_public_key": True}
        )
        judge = StatementJudge.open(engine)
        try:
            assert said(judge, "INSERT INTO t VALUES (1, 1) NONSENSE", SessionContext(thread_id=7)) is None
        finally:
            judge.close()
            engine.dispose()


def test_the_routine_that_is_not_there_is_named(judge: StatementJudge) -> None:
    verdict = judge.judge(Item(ItemKind.STATEMENT, b"DO judged.Later(1)", context=SessionContext()))
    assert verdict is not None
    assert (verdict.code, verdict.routine) == (1305, "later")


OPENED = {
    "INSERT INTO t VALUES (ROUND(1.5, judged.f()), 1); -- x": None,
    "INSERT INTO t VALUES (ROUND(1.5, judged.Later()), 1)": 1305,
    "INSERT INTO judged.t (a) SELECT later(a) FROM judged.`of f`": 1305,
    "INSERT INTO judged.t (a, b) VALUES (f(), 1)": None,
    # one that writes no table is not asked about, nor a view whose tables nobody knows
    "SELECT x FROM judged.`of f` WHERE NONSENSE FROM": None,
    "CREATE VIEW w AS SELECT ROUND(1.5, judged.f()) AS x FROM": None,
    "CREATE VIEW w AS SELECT later(x) AS x FROM judged.v": 1305,
    "CREATE VIEW w AS SELECT a FROM judged.t WITH CHECKED OPTION": None,
    "DO judged.Later(1)": 1305,
    "UPDATE judged.v SET x = 1 WHERE": 1064,
    "INSERT INTO t (a) WITH c (a) AS (SELECT 1) SELECT a FROM c": None,
    "CREATE OR REPLACE VIEW w AS SELECT ROUND(1.5, judged.f()) AS x": None,
    "ALTER VIEW judged.v AS SELECT 1 AS x": None,
    "CREATE TABLE n AS SELECT x FROM judged.`of f`": None,
    "CREATE TABLE n (a INT) AS SELECT later(1)": 1305,
    "REPLACE INTO t SET a = 1, b = (SELECT COUNT(*) FROM t AS x) /* y */": None,
    "INSERT INTO t SELECT SUM(a) OVER (ORDER BY a), VALUE(b), NEXTVAL(s) FROM t ON DUPLICATE KEY UPDATE b = VALUES(b)":
        None,
    "DELETE FROM t WHERE a IN (1, 2) AND MATCH (b) AGAINST ('x') AND EXISTS (SELECT 1)": None,
    "INSERT INTO t PARTITION (p) (a) VALUES (CAST(1 AS DECIMAL(5)))": None,
    "LOAD DATA INFILE 'x' INTO TABLE judged.v": None,
    "LOAD DATA INFILE 'x' INTO TABLE judged.t NONSENSE": 1064,
    "SET STATEMENT max_statement_time = 1 FOR INSERT INTO t VALUES (1, 1)": None,
    "GRANT SELECT ON judged.t TO judged_user": None,
    "FLUSH TABLES judged.v": None,
}  # fmt: skip


@pytest.mark.parametrize("mode", [0, 0xE20E], ids=["", "ORACLE"])
def test_what_mariadb_would_open_is_parsed_and_its_functions_are_looked_for(
    server: PrivateServer, judge: StatementJudge, mode: int
) -> None:
    if server.flavor is not Flavor.MARIADB:
        return
    before = state(server)
    context = SessionContext(database="judged", sql_mode=mode)
    found = {statement: said(judge, statement, context) for statement in OPENED}
    assert found == OPENED
    assert state(server) == before


def test_a_locked_table_makes_nobody_wait_for_long(server: PrivateServer, judge: StatementJudge) -> None:
    with contextlib.closing(server.connect()) as reader, contextlib.closing(server.connect()) as writer:
        reader.cursor().execute("SELECT * FROM judged.t")
        number = writer.thread_id()  # type: ignore[no-untyped-call]
        waiting = threading.Thread(target=writer.cursor().execute, args=("RENAME TABLE judged.t TO judged.u",))
        waiting.start()
        query = f"SELECT state FROM information_schema.processlist WHERE id = {number}"
        while "metadata lock" not in str(server.query(query)):
            assert waiting.is_alive()
        assert said(judge, "INSERT INTO t VALUES (1, 1)") is None
        # MariaDB opens no table
        waits = int(server.flavor is Flavor.MYSQL)
        assert judge._waits == waits
        # nor does anything else wait
        assert said(judge, "ALTER TABLE t ADD c INT") is None
        assert said(judge, "INSERT INTO t VALUES (1, 1) NONSENSE") == 1064
        assert (judge._waits, judge.is_blocked) == (waits, False)
        reader.rollback()
        waiting.join()
