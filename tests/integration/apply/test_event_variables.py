"""MariaDB gets the events of large BINLOG statements as values of the binary protocol, with the effect of literals."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from binlane.apply.rows.binlog import BinlogRows
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.event_variables import BINLOG_OF_VARIABLES, EventVariables
from binlane.binlog.rows_payload import encoded
from binlane.model import Flavor, Item
from tests.integration.apply.conftest import DATABASE, QUICK, Pair

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, w LONGBLOB)"
FILL = "INSERT INTO t VALUES (1, REPEAT('a', 90000)), (2, REPEAT('b', 90000))"
CHANGE = "UPDATE t SET w = CONCAT(REPEAT(X'00FF27', 30000), id)"


@contextlib.contextmanager
def lane(pair: Pair, *, round_trip: float = 0.0) -> Iterator[LaneSession]:
    session = LaneSession.open(pair.engine, QUICK.limits)
    with contextlib.closing(session):
        # of the fastest statement so far: zero stays
        session._round_trip = round_trip
        yield session


def write(session: LaneSession, format_event: bytes, *items: Item) -> None:
    """One transaction of items."""
    writer = BinlogRows(session)
    writer.prepare(format_event)
    session.begin()
    writer.write(iter(items), 1)
    session.commit()


def stored(session: LaneSession) -> int:
    """Statements that were prepared and executed."""
    return int(session.rows("SHOW SESSION STATUS LIKE 'Com_stmt_execute'")[0][1])


def recorded(pair: Pair, *statements: str) -> tuple[bytes, list[Item]]:
    pair.both(TABLE)
    recorder = pair.recorder()
    return recorder.format, [item for statement in statements for item in recorder.run(statement).items]


def test_events_are_stored_and_executed(pair: Pair) -> None:
    form, items = recorded(pair, FILL, CHANGE, "DELETE FROM t WHERE id = 2")
    with lane(pair) as session:
        write(session, form, *items)
        pair.assert_equal("t")
        # the format's events as well
        assert stored(session) == (4 if session.flavor is Flavor.MARIADB else 0)
        if session.flavor is Flavor.MARIADB:
            assert session.rows("SELECT @binlane_events_1, @binlane_events_2") == [(None, None)]


@pytest.mark.parametrize("mode", ["ORACLE", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES", "TRADITIONAL"])
def test_the_session_s_modes_and_character_sets_do_not_matter(mariadb_pair: Pair, mode: str) -> None:
    form, items = recorded(mariadb_pair, FILL, CHANGE)
    with lane(mariadb_pair) as session:
        session.use_format(form)
        session.begin()
        # as statements of the source may leave them
        session.execute(f"SET SESSION sql_mode = '{mode}'")
        session.execute("SET SESSION collation_connection = ucs2_bin, character_set_client = sjis")
        for item in items:
            session.binlog(item.payload)
        session.commit()
        mariadb_pair.assert_equal("t")


def test_a_far_server_and_few_events_get_a_literal() -> None:
    assert not EventVariables.are_worth_it(1_000_000, 0.005)
    assert EventVariables.are_worth_it(1_000_000, 0.000_5)
    assert not EventVariables.are_worth_it(10_000, 0.000_1)


class _Late:
    """A cursor to a server that is 2 ms away."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def execute(self, *arguments: object) -> int:
        time.sleep(0.002)
        return int(self._cursor.execute(*arguments))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


def test_a_session_asks_how_far_the_server_is(mariadb_pair: Pair) -> None:
    form, items = recorded(mariadb_pair, FILL, CHANGE)
    session = LaneSession.open(mariadb_pair.engine, QUICK.limits)
    with contextlib.closing(session):
        assert 0 < session._round_trip < 60
        session._round_trip = math.inf
        session.cursor = _Late(session.cursor)  # type: ignore[assignment]
        write(session, form, *items)
        assert stored(session) == 0
    mariadb_pair.assert_equal("t")


def test_a_server_without_room_for_a_prepared_statement_gets_literals(mariadb_pair: Pair) -> None:
    form, items = recorded(mariadb_pair, FILL, CHANGE)
    [(limit,)] = mariadb_pair.rows("SELECT @@max_prepared_stmt_count")
    mariadb_pair.rows("SET GLOBAL max_prepared_stmt_count = 0")
    try:
        with lane(mariadb_pair) as session:
            write(session, form, *items)
            assert stored(session) == 0
    finally:
        mariadb_pair.rows(f"SET GLOBAL max_prepared_stmt_count = {limit}")
    mariadb_pair.assert_equal("t")


def test_a_statement_as_long_as_a_packet_may_be_is_a_literal(mariadb_pair: Pair) -> None:
    form, [fill, change] = recorded(mariadb_pair, FILL, CHANGE)
    with lane(mariadb_pair) as session:
        write(session, form, fill)
        before = stored(session)
        session.max_allowed_packet = len(b"BINLOG ''") + len(encoded(change.payload)) + 1
        write(session, form, change)
        assert stored(session) == before
        mariadb_pair.assert_equal("t")


def test_events_of_more_than_one_packet_of_the_protocol(mariadb_pair: Pair) -> None:
    """16 MiB less a byte: what follows is another packet of the same command."""
    mariadb_pair.both(TABLE)
    recorder = mariadb_pair.recorder()
    [item] = recorder.run("INSERT INTO t VALUES (1, REPEAT('x', 17000000))").items
    with lane(mariadb_pair) as session:
        write(session, recorder.format, item)
        assert stored(session) == 2
    assert mariadb_pair.rows(f"SELECT MD5(w) FROM {DATABASE}.t") == mariadb_pair.source.query(
        f"SELECT MD5(w) FROM {DATABASE}.t"
    )


def test_an_error_leaves_nothing_that_a_second_statement_would_execute(mariadb_pair: Pair) -> None:
    form, [fill, change] = recorded(mariadb_pair, FILL, CHANGE)
    with lane(mariadb_pair) as session:
        with pytest.raises(pymysql.err.MySQLError, match="1032"):
            write(session, form, change)
        with pytest.raises(pymysql.err.MySQLError) as caught:
            session.send(BINLOG_OF_VARIABLES)
        assert caught.value.args[0] == 1149
        session.rollback()
        write(session, form, fill, change)
        mariadb_pair.assert_equal("t")


def test_storing_leaves_the_transaction_open(mariadb_pair: Pair) -> None:
    """What stands before it in the transaction is rolled back with it."""
    form, [fill, change] = recorded(mariadb_pair, FILL, CHANGE)
    with lane(mariadb_pair, round_trip=math.inf) as session:
        session.use_format(form)
        session.begin()
        session._round_trip = math.inf
        session.binlog(fill.payload)
        assert stored(session) == 0
        session._round_trip = 0.0
        session.binlog(change.payload)
        assert stored(session) == 1
        session.rollback()
        assert mariadb_pair.rows(f"SELECT COUNT(*) FROM {DATABASE}.t") == [(0,)]
