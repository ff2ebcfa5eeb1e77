"""A transaction of a copy is done again behind a deadlock, if what it reads can be read again."""

from __future__ import annotations

from typing import cast

import pymysql
import pytest

from binlane.bootstrap.row_copy import in_transaction
from binlane.bootstrap.sessions import Session
from binlane.model import TableKey

TABLE = TableKey("app", "t")


class Server:
    """A session that runs everything."""

    def __init__(self, *, is_open: bool) -> None:
        self.is_open = is_open

    def execute(self, _: str) -> int:
        return 0


@pytest.mark.parametrize("is_open", [True, False])
def test_a_transaction_whose_reader_was_closed_raises_its_own_error(is_open: bool) -> None:
    attempts = 0

    def work() -> int:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise pymysql.err.OperationalError(1213, "Deadlock found")
        return 7

    writer, reader = (cast(Session, Server(is_open=each)) for each in (True, is_open))
    if is_open:
        assert in_transaction(writer, TABLE, work, reader) == 7
        return
    with pytest.raises(pymysql.err.OperationalError, match="Deadlock found"):
        in_transaction(writer, TABLE, work, reader)
    assert attempts == 1
