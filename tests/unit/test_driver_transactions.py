"""What a connection of binlane knows of its transaction behind an error that the server has answered."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from binlane import driver
from binlane.driver import Connection
from binlane.errors import StateSchemaError
from binlane.session_pins import SessionKind

SERVER_STATUS_IN_TRANS = 1


def test_an_error_makes_no_transaction_forget_what_it_has_written(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[str]()

    def query(_: Any, sql: str, unbuffered: bool = False) -> int:
        sent.append(sql)
        if sql.startswith("INSERT"):
            raise pymysql.err.IntegrityError(1062, "Duplicate entry")
        return 0

    monkeypatch.setattr(driver.Driver, "query", query)
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
