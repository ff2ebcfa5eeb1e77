"""A lane's connection: set up before the first block, and again for another format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pymysql
import pytest
import sqlalchemy
from pymysql.constants import SERVER_STATUS
from sqlalchemy.exc import OperationalError, PendingRollbackError, ProgrammingError

from binlane.apply.refusals import target_errors
from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.context import ContextSetter
from binlane.apply.session.retry_verdicts import TRANSIENT, Verdict, judge
from binlane.errors import TargetUnavailableError
from binlane.model import Flavor, SessionContext
from binlane.servers.variables import session_variable
from tests.integration.apply.conftest import Pair

LIMITS = SessionLimits(wait_timeout=33, lock_wait_timeout=22, innodb_lock_wait_timeout=11)


@pytest.fixture
def session(pair: Pair) -> Iterator[LaneSession]:
    opened = LaneSession.open(pair.engine, LIMITS)
    yield opened
    opened.close()


def test_waits_are_bounded_from_the_start(session: LaneSession) -> None:
    query = "SELECT @@wait_timeout, @@lock_wait_timeout, @@innodb_lock_wait_timeout, @@autocommit"
    assert session.rows(query) == [(33, 22, 11, 1)]


def test_a_format_is_sent_once_and_again_when_it_differs(pair: Pair, session: LaneSession) -> None:
    def sent() -> int:
        return int(session.rows("SHOW SESSION STATUS LIKE 'Com_binlog'")[0][1])

    format_event = pair.recorder().format
    session.use_format(format_event)
    session.use_format(format_event)
    assert sent() == 1
    session.use_format(b"\1" + format_event[1:])
    assert sent() == 2
    if session.flavor is Flavor.MYSQL:
        assert session.value("SELECT @@pseudo_replica_mode") == 1
        assert session.value("SELECT @@gtid_next") == "AUTOMATIC"
    else:
        assert session.value("SELECT @@binlog_annotate_row_events") == 0


def test_the_connection_id_is_the_servers_while_pseudo_thread_id_is_set(session: LaneSession) -> None:
    session.execute("SET SESSION pseudo_thread_id = 4242")
    assert session.value("SELECT CONNECTION_ID()") == 4242
    session.value("SELECT GET_LOCK('binlane-test', 0)")
    assert session.value("SELECT IS_USED_LOCK('binlane-test')") == session.connection_id


def test_a_session_that_is_kept_has_what_its_last_statement_has_left(session: LaneSession) -> None:
    """The thread that keeps it asks at any time, and also between a statement and what is asked about it."""
    connection: Any = session.connection
    session.begin()
    session.execute("SELECT CAST('x' AS SIGNED)")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(connection.stay).result()
    assert [code for _, code, _ in session.shown_warnings()] == [1292]
    assert connection.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS
    session.rollback()


def test_the_first_second_of_all_is_not_the_present_time(session: LaneSession) -> None:
    context = ContextSetter(session)
    ways: tuple[Callable[[], object], ...] = (
        lambda: session.at_time(0),
        lambda: context.enter(SessionContext(timestamp=0.0, thread_id=7), b"DO 0"),
    )
    for way in ways:
        if session.flavor is Flavor.MYSQL:
            with pytest.raises(pymysql.err.MySQLError, match="timestamp"):
                way()
        else:
            way()
            assert session.value("SELECT UNIX_TIMESTAMP()") == 0
            session.own_clock()


def test_a_closed_session_is_worth_another_try_and_closing_again_does_no_harm(session: LaneSession) -> None:
    session.close()
    session.close()
    with pytest.raises(pymysql.err.Error) as caught:
        session.value("SELECT 1")
    assert judge(caught.value) is Verdict.RETRY


def test_a_connection_that_is_lost_while_a_variable_is_set_is_worth_another_try(pair: Pair) -> None:
    """The statement that would set the variable back must not hide the error that the connection was lost with."""
    query = sqlalchemy.text("SELECT 1")
    with pair.engine.connect() as connection:
        number = connection.scalar(sqlalchemy.text("SELECT CONNECTION_ID()"))

        def lose() -> None:
            with session_variable(connection, "lock_wait_timeout", 1, 86_400):
                with pair.engine.connect() as other:
                    other.exec_driver_sql(f"KILL CONNECTION {number}")
                connection.execute(query)

        with pytest.raises(OperationalError) as caught:
            lose()
        assert judge(caught.value) is Verdict.RETRY
        with pytest.raises(PendingRollbackError) as second:
            connection.execute(query)
        assert judge(second.value) is Verdict.RETRY
        with (
            pytest.raises(TargetUnavailableError, match="target_server: the server says"),
            target_errors("target_server"),
        ):
            connection.execute(query)


def test_a_variable_is_set_back_also_after_an_error(pair: Pair) -> None:
    value = sqlalchemy.text("SELECT @@SESSION.lock_wait_timeout")
    with pair.engine.connect() as connection:
        before = connection.scalar(value)

        def fail() -> None:
            with session_variable(connection, "lock_wait_timeout", 1, before):
                assert connection.scalar(value) == 1
                connection.exec_driver_sql("SELECT * FROM binlane.no_table_of_this_name")

        with pytest.raises(ProgrammingError):
            fail()
        assert connection.scalar(value) == before


AGAIN = (
    *(1020, 1040, 1047, 1053, 1158, 1159, 1160, 1161, 1180, 1203, 1205, 1213, 1317, 1429, 1927, 1969, 4031, 3101),
    *(2002, 2003, 2006, 2013, 2055),
    *(1290, 1792, 1836),
)
"""DESIGN.md's list, written out: an error that is taken out of the code's own list shows."""


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        *((code, Verdict.RETRY) for code in sorted(TRANSIENT | {*AGAIN})),
        (1062, Verdict.DRIFT),
        (1032, Verdict.DRIFT),
        *((code, Verdict.FATAL) for code in (1105, 1146, 1452, 1950, 1790, 1064, 1054, 1666, 1609, 1782)),
    ],
)
def test_each_error_has_its_verdict(code: int, verdict: Verdict) -> None:
    assert judge(pymysql.err.OperationalError(code, "text")) is verdict


def test_a_broken_packet_and_a_refused_socket_are_worth_another_try() -> None:
    assert judge(pymysql.err.InternalError("Packet sequence number wrong - got 1 expected 2")) is Verdict.RETRY
    assert judge(ConnectionResetError("reset")) is Verdict.RETRY
