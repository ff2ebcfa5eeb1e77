"""What the source's account may not read, asked of the server."""

from __future__ import annotations

from typing import Any, Final, cast

from pymysql.err import OperationalError
from sqlalchemy.exc import DBAPIError

from binlane.errors import TableMismatchError
from binlane.model import TableKey
from binlane.precheck.situation.facts import unreadable

TABLE, DENIED, GONE, VIEW = (TableKey("app", name) for name in ("t%s", "denied", "gone", "view"))
ANSWERS: Final = {"`app`.`denied`": 1142, "`app`.`gone`": 1146}


class Session:
    """A session in which each view is refused by its hint."""

    def exec_driver_sql(self, statement: str) -> None:
        name = statement.split()[3]
        if name == "`app`.`view`":
            raise TableMismatchError(name)
        if (code := ANSWERS.get(name)) is not None:
            raise DBAPIError(statement, None, OperationalError(code, name))


def test_a_view_that_is_not_denied_may_be_read_although_it_is_not_opened() -> None:
    found = unreadable(cast(Any, Session()), (TABLE, DENIED, GONE, VIEW))
    assert found == (DENIED,)
