"""What the source's account may not read, asked of the server."""

from __future__ import annotations

from typing import Any, Final, cast

from pymysql.err import OperationalError
from sqlalchemy.exc import DBAPIError

from binlane.errors import TableMismatchError
from binlane.model import TableKey
from binlane.precheck.situation.facts import unreadable
from binlane.sessions.pins import READ_ONLY, SessionKind

TABLE, DENIED, GONE, VIEW = (TableKey("app", name) for name in ("t%s", "denied", "gone", "view"))
ANSWERS: Final = {"`app`.`denied`": 1142, "`app`.`gone`": 1146, "`app`.`view`": 1356}
"""A view answers 1356 where it reads what may not be read."""


class Session:
    """A driver's connection and the SQLAlchemy one around it."""

    kind = SessionKind.STATE
    is_detached = False

    @property
    def connection(self) -> Session:
        return self

    @property
    def dbapi_connection(self) -> Session:
        return self

    def detach(self) -> None:
        self.is_detached = True

    def use_as(self, kind: SessionKind) -> None:
        # a kept session would go on with it
        assert self.is_detached
        self.kind = kind

    def exec_driver_sql(self, statement: str) -> None:
        name = statement.split()[3]
        if name == "`app`.`view`" and self.kind not in READ_ONLY:
            # the hint by which a session that may write refuses views
            raise TableMismatchError(name)
        if (code := ANSWERS.get(name)) is not None:
            raise DBAPIError(statement, None, OperationalError(code, name))


def test_a_view_answers_for_what_it_reads() -> None:
    found = unreadable(cast(Any, Session()), (TABLE, DENIED, GONE, VIEW))
    assert found == (DENIED, VIEW)
