"""What a connection of binlane knows of its transaction behind an error that the server has answered."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from binlane.driver import connection as driver_connection
from binlane.driver import wire
from binlane.driver.connection import Connection
from binlane.errors import StateSchemaError
from binlane.sessions.pins import SessionKind

SERVER_STATUS_IN_TRANS = 1


def test_an_error_makes_no_transaction_forget_what_it_has_written(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[str]()

    def query(_: Any, sql: str, unbuffered: bool = False) -> int:
        sent.append(sql)
        if sql.startswith("INSERT"):
            raise pymysql.err.IntegrityError(1062, "Duplicate entry")
        return 0

    monkeypatch.setattr(wire.Driver, "query", query)
    connection = Connection.__new__(Connection)
    vars(connection).update(
        _held={"conflicts"}, _written={"conflicts"}, _looked=set(), _has_snapshot=True, _sees_late=True, _guards=False,
        _commits_itself=True, server_status=SERVER_STATUS_IN_TRANS, server_version="9.7.0", kind=SessionKind.STATE,
        _place=None, _has_ended=False, _reads_only=False,
    )  # fmt: skip
    monkeypatch.setattr(Connection, "_looked_at_now", lambda _, query: (1, "conflicts", "late"))
    monkeypatch.setattr(Connection, "rollback", lambda self: sent.append("ROLLBACK"))
    monkeypatch.setattr(Connection, "_reset", lambda _: None)
    with pytest.raises(pymysql.err.IntegrityError):
        connection._query("INSERT INTO t VALUES (1)")
    with pytest.raises(StateSchemaError, match="late"):
        connection.commit()
    assert sent == ["INSERT INTO t VALUES (1)", "ROLLBACK"]


class Other:
    """A second session: it answers until the server has ended it."""

    def __init__(self, opened: list[Other], errors: list[int]) -> None:
        self.errors, self.is_closed, self.asked = errors, False, 0
        opened.append(self)

    def _looked_at(self, query: str) -> tuple[Any, ...]:
        self.asked += 1
        if self.errors:
            raise pymysql.err.OperationalError(self.errors.pop(), "gone")
        return (0, None, None)

    def close(self) -> None:
        self.is_closed = True
        raise pymysql.err.Error("Already closed")


@pytest.mark.parametrize(
    ("kind", "opened", "left"),
    [(SessionKind.LANE, 1, 1), (SessionKind.STATE, 3, 0)],
    ids=["a lane keeps it", "others do not"],
)
def test_the_session_for_a_look_at_the_catalogue_of_now(
    kind: SessionKind, opened: int, left: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lane asks once an epoch, which may be each second."""
    sessions, errors = list[Other](), list[int]()
    connection = Connection.__new__(Connection)
    vars(connection).update(_other=None, _other_limits=None, _again={}, _asked=None, kind=kind, proof=None)
    monkeypatch.setattr(driver_connection, "Connection", lambda **_: Other(sessions, errors))
    for _ in range(3):
        assert connection._looked_at_now("SELECT 1") == (0, None, None)
    assert (len(sessions), sum(not each.is_closed for each in sessions)) == (opened, left)


def test_a_session_that_the_server_has_ended_is_opened_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions, errors = list[Other](), list[int]()
    connection = Connection.__new__(Connection)
    vars(connection).update(_other=None, _other_limits=None, _again={}, _asked=None, kind=SessionKind.LANE, proof=None)
    monkeypatch.setattr(driver_connection, "Connection", lambda **_: Other(sessions, errors))
    connection._looked_at_now("SELECT 1")
    errors.append(2013)
    assert connection._looked_at_now("SELECT 1") == (0, None, None)
    assert [(each.asked, each.is_closed) for each in sessions] == [(2, True), (1, False)]
    # a fresh one that does not answer is no idle one
    errors += [2013, 2013]
    with pytest.raises(pymysql.err.OperationalError, match="gone"):
        connection._looked_at_now("SELECT 1")
    assert len(sessions) == 3


def test_a_server_without_room_for_a_second_session_answers_in_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: Any) -> Other:
        raise pymysql.err.OperationalError(1040, "Too many connections")

    connection = Connection.__new__(Connection)
    vars(connection).update(_other=None, _other_limits=None, _again={}, _asked=None, kind=SessionKind.LANE, proof=None)
    monkeypatch.setattr(driver_connection, "Connection", refused)
    monkeypatch.setattr(Connection, "_looked_at", lambda _, query: (0, query, None))
    assert connection._looked_at_now("SELECT 1") == (0, "SELECT 1", None)
