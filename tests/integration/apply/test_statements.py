"""Statements run in their source's session, which is gone when they have ended; scheduled events never run on a
target."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from binlane.apply.rows.named_objects import NamedObjects
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.cached_state import NEUTRAL_DATABASE
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.context import ContextSetter
from binlane.errors import ApplyError
from binlane.model import Flavor, Item, ItemKind, SessionContext
from binlane.sql.parse.lexer import Dialect
from binlane.sql.scheduled_event import disabled
from tests.integration.apply.conftest import QUICK, Pair


@pytest.fixture
def session(pair: Pair) -> Iterator[LaneSession]:
    opened = LaneSession.open(pair.engine, QUICK.limits)
    opened.use_format(pair.recorder().format)
    opened.connection.select_db("shop")
    yield opened
    opened.close()


def run(session: LaneSession, statement: str | bytes, context: SessionContext | None = None) -> BlockWriter:
    payload = statement.encode() if isinstance(statement, str) else statement
    # as a lane, which holds what a statement names in its session
    named = NamedObjects(lambda _: (), None, lambda *_: ())
    writer = BlockWriter(session, ContextSetter(session), named=named)
    writer.write([Item(ItemKind.STATEMENT, payload, context=context or SessionContext(database="shop"))], 1)
    return writer


_TEXT = "_utf8mb4 X'782573' COLLATE utf8mb4_general_ci"
CONTEXTS = [
    pytest.param(SessionContext(timestamp=1e9 + 0.25), "UNIX_TIMESTAMP(NOW(6))", "1000000000.250000", id="timestamp"),
    pytest.param(SessionContext(sql_mode=4), "@@sql_mode", "ANSI_QUOTES", id="sql_mode"),
    pytest.param(SessionContext(sql_mode=0), "@@sql_mode", "", id="sql_mode-0"),
    pytest.param(SessionContext(time_zone="+03:00"), "@@time_zone", "+03:00", id="time_zone"),
    pytest.param(SessionContext(foreign_key_checks=False), "@@foreign_key_checks + 0", "0", id="foreign_key_checks"),
    pytest.param(SessionContext(unique_checks=False), "@@unique_checks + 0", "0", id="unique_checks"),
    pytest.param(SessionContext(auto_increment_increment=7), "@@auto_increment_increment", "7", id="increment"),
    pytest.param(SessionContext(auto_increment_offset=3), "@@auto_increment_offset", "3", id="offset"),
    pytest.param(SessionContext(lc_time_names=4), "@@lc_time_names", "de_DE", id="lc_time_names"),
    pytest.param(SessionContext(charset_client=8), "@@character_set_client", "latin1", id="client"),
    pytest.param(SessionContext(collation_connection=47), "@@collation_connection", "latin1_bin", id="connection"),
    pytest.param(SessionContext(collation_server=63), "@@collation_server", "binary", id="server"),
    pytest.param(SessionContext(collation_database=46), "@@collation_database", "utf8mb4_bin", id="database"),
    pytest.param(SessionContext(last_insert_id=77), "LAST_INSERT_ID()", "77", id="last_insert_id"),
    pytest.param(SessionContext(rand_seeds=(1, 2)), "RAND() < 1e-8", "1", id="rand"),
    pytest.param(SessionContext(user_variables=(("it``s", _TEXT),)), "@`it````s`", "x%s", id="user-variable"),
    pytest.param(SessionContext(thread_id=4_242), "CONNECTION_ID()", "4242", id="thread"),
    pytest.param(SessionContext(auto_is_null=True), "@@sql_auto_is_null + 0", "1", id="auto_is_null"),
]  # fmt: skip


@pytest.mark.parametrize(("context", "expression", "expected"), CONTEXTS)
def test_a_statement_runs_in_its_source_s_session(
    pair: Pair, session: LaneSession, context: SessionContext, expression: str, expected: str
) -> None:
    # the default database of a statement without one; it decides collation_database
    session.select_database(NEUTRAL_DATABASE)
    usual = session.value(f"SELECT CAST({expression} AS CHAR)")
    run(session, f"CREATE TEMPORARY TABLE shop.seen AS SELECT CAST({expression} AS CHAR(80)) AS value", context)
    # a temporary table belongs to the pseudo thread that made it
    if context.thread_id is not None:
        session.execute(f"SET SESSION pseudo_thread_id = {context.thread_id}")
    assert session.value("SELECT value FROM shop.seen") == expected
    session.execute("DROP TEMPORARY TABLE shop.seen")
    if "NOW" in expression:
        assert float(session.value("SELECT UNIX_TIMESTAMP()")) > 1_700_000_000
    elif expression not in ("CONNECTION_ID()", "@`it````s`", "RAND() < 1e-8"):
        assert session.value(f"SELECT CAST({expression} AS CHAR)") == usual


def test_a_statements_session_variables_do_not_affect_the_next_statement(pair: Pair, session: LaneSession) -> None:
    pair.both("CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY, b VARCHAR(40))")
    run(session, "INSERT INTO t (b) VALUES ('x')", SessionContext(database="shop", insert_id=50, sql_mode=4))
    run(session, 'INSERT INTO t (b) VALUES ("y")', SessionContext(database="shop", sql_mode=0))
    run(session, "INSERT INTO t VALUES (90, 'z')", SessionContext(database="shop", insert_id=70))
    run(session, "INSERT INTO t (b) VALUES (@@sql_mode = @@global.sql_mode)")
    assert pair.rows("SELECT * FROM shop.t ORDER BY a") == [(50, "x"), (51, "y"), (90, "z"), (91, "1")]


def test_a_statement_s_bytes_are_sent_in_the_client_s_character_set(pair: Pair, session: LaneSession) -> None:
    pair.both("CREATE TABLE t (a VARCHAR(10)) CHARACTER SET utf8mb4")
    text = "é"
    run(
        session,
        b"INSERT INTO t VALUES ('" + text.encode("latin-1") + b"')",
        SessionContext(database="shop", charset_client=8),
    )
    run(session, b"INSERT INTO t VALUES ('" + text.encode() + b"')", SessionContext(database="shop", charset_client=45))
    assert pair.rows("SELECT a FROM shop.t") == [(text,), (text,)]


@pytest.mark.parametrize(("number", "flavor"), [(255, Flavor.MARIADB), (2304, Flavor.MYSQL)])
def test_the_other_family_s_default_collation_gets_its_substitute(
    pair: Pair, session: LaneSession, number: int, flavor: Flavor
) -> None:
    if session.flavor is not flavor or session.rows(f"SELECT 1 FROM information_schema.collations WHERE id = {number}"):
        pytest.skip("known to this server")
    context = SessionContext(collation_server=number)
    run(session, "CREATE TEMPORARY TABLE shop.seen AS SELECT @@collation_server AS c", context)
    found = session.value("SELECT c FROM shop.seen")
    assert found == {Flavor.MARIADB: "utf8mb4_uca1400_nopad_ai_ci", Flavor.MYSQL: "utf8mb4_0900_ai_ci"}[flavor]


def test_a_collation_of_no_server_is_refused_by_its_number(pair: Pair, session: LaneSession) -> None:
    with pytest.raises(ApplyError, match="collation 999"):
        run(session, "DO 1", SessionContext(collation_server=999))


@pytest.mark.parametrize("statement", ["CREATE DATABASE gone", "create or replace database gone", "CREATE SCHEMA gone"])
def test_a_database_is_created_from_inside_itself(pair: Pair, session: LaneSession, statement: str) -> None:
    if session.flavor is Flavor.MYSQL and "replace" in statement:
        pytest.skip("MariaDB's own syntax")
    run(session, statement, SessionContext(database="gone"))
    assert pair.rows("SELECT 1 FROM information_schema.schemata WHERE schema_name = 'gone'") != []


def test_a_statement_that_needs_a_missing_database_is_an_error(pair: Pair, session: LaneSession) -> None:
    with pytest.raises(pymysql.err.OperationalError, match="gone"):
        run(session, "CREATE TABLE t (a INT)", SessionContext(database="gone"))


def test_an_error_that_the_source_had_is_the_expected_outcome(pair: Pair, session: LaneSession) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (2)")
    statement = "INSERT INTO t VALUES (2)"
    with pytest.raises(pymysql.err.IntegrityError):
        run(session, statement, SessionContext(database="shop"))
    run(session, statement, SessionContext(database="shop", error_code=1062))
    with pytest.raises(ApplyError, match="error 1062 on the source, and without an error"):
        run(session, "INSERT INTO t VALUES (3)", SessionContext(database="shop", error_code=1062))


OFF = "DISABLE ON SLAVE"
EVENTS = [
    ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DO 1", f"CREATE EVENT e ON SCHEDULE EVERY 1 DAY  {OFF} DO DO 1"),
    (
        "create definer=`a`@`%` event if not exists `do`.`comment` on schedule at now() enable comment 'do' do "
        "begin do 1; end",
        f"create definer=`a`@`%` event if not exists `do`.`comment` on schedule at now()  {OFF}  comment 'do' do "
        "begin do 1; end",
    ),
    ("ALTER EVENT e ENABLE", f"ALTER EVENT e  {OFF} "),
    ("ALTER EVENT e DISABLE COMMENT 'x'", "ALTER EVENT e DISABLE COMMENT 'x'"),
    ("ALTER EVENT e DISABLE ON REPLICA COMMENT 'x'", f"ALTER EVENT e  {OFF}  COMMENT 'x'"),
    ("ALTER EVENT comment RENAME TO enable", f"ALTER EVENT comment RENAME TO enable {OFF} "),
    ("CREATE /*!50117 DEFINER=x@y */ EVENT e /* do */ ON SCHEDULE EVERY 1 DAY -- do\n DO SELECT ')'",
     f"CREATE /*!50117 DEFINER=x@y */ EVENT e /* do */ ON SCHEDULE EVERY 1 DAY -- do\n  {OFF} DO SELECT ')'"),
    ("CREATE DEFINER = comment@localhost EVENT e ON SCHEDULE AT (NOW() + INTERVAL 1 DAY) DO DO 1",
     f"CREATE DEFINER = comment@localhost EVENT e ON SCHEDULE AT (NOW() + INTERVAL 1 DAY)  {OFF} DO DO 1"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "expected"), EVENTS)
def test_an_event_statement_is_disabled_on_the_target(statement: str, expected: str) -> None:
    assert disabled(statement.encode(), "utf8mb4", Dialect(Flavor.MARIADB)).decode() == expected


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE event (enable INT)",
        "DROP EVENT e",
        "CREATE DEFINER=a@b PROCEDURE p() DO DO 1 -- EVENT",
        "INSERT INTO t VALUES ('create event e do 1')",
        "ALTER TABLE t ADD event INT",
    ],
)
def test_other_statements_stay_as_they_are(statement: str) -> None:
    assert disabled(statement.encode(), "utf8mb4", Dialect(Flavor.MYSQL)) == statement.encode()


def test_the_server_shows_replicated_events_as_disabled(pair: Pair, session: LaneSession) -> None:
    run(
        session,
        "CREATE EVENT e ON SCHEDULE EVERY 1 SECOND ON COMPLETION PRESERVE ENABLE COMMENT 'c' DO CREATE TABLE ran "
        "(a INT)",
    )
    run(session, "ALTER EVENT e ENABLE")
    run(session, "ALTER EVENT e RENAME TO f")
    shown = "SELECT event_name, status FROM information_schema.events WHERE event_schema = 'shop'"
    [(name, status)] = pair.rows(shown)
    assert name == "f"
    assert status in ("SLAVESIDE_DISABLED", "REPLICA_SIDE_DISABLED")
    # what did not run on the source can be told from what did
    run(session, "ALTER EVENT f DISABLE")
    assert pair.rows(shown) == [("f", "DISABLED")]
    run(session, "ALTER EVENT f ENABLE")
    assert pair.rows(shown) == [("f", status)]
