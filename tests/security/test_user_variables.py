"""The value of a user variable that a lane file gives a statement is a literal, and no other SQL reaches the target.

Attacker: whoever runs the plan job, as Spark's driver does.
"""

from __future__ import annotations

from typing import Final

import pytest

from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.context import ContextSetter
from binlane.binlog.variables import is_written
from binlane.errors import PlanError
from binlane.model import SessionContext
from binlane.servers.engines import engine_of
from tests.conftest import requires_mysql
from tests.integration.window.conftest import ChannelOf

VALUES: Final = (
    "1, GLOBAL long_query_time = 9",
    "(SELECT 1)",
    "(SELECT LOAD_FILE('/etc/passwd'))",
    "app.evil()",
    "SLEEP(9)",
    "@@GLOBAL.datadir",
    "@b := 1",
    "_utf8mb4 X'61' COLLATE utf8mb4_bin, @b := 1",
    "_utf8mb4 X'61' COLLATE utf8mb4_bin + app.evil()",
    "_utf8mb4 'a'",
    "X'61', GLOBAL long_query_time = 9 -- ' COLLATE x",
    "CAST(app.evil() AS SIGNED)",
    "CAST(1 AS CHAR)",
    "ST_GeomFromWKB(app.evil(), 0)",
    "POINT(1.0e0, app.evil())",
    "POINT(1.0e0, @a)",
    "POINT(1.0e0, 2.0e0) = 1",
    "POINT(" + "1" * 10_000 + "X",
    "1\n",
    "1 -- ",
    "null",
    "",
)
"""Texts in place of a value. A line more is an attack more."""


@pytest.mark.parametrize("value", VALUES)
def test_other_sql_is_no_value(value: str) -> None:
    assert not is_written(value)


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_no_other_sql_reaches_the_target(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    before = channel.target.query("SELECT @@GLOBAL.long_query_time")
    session = LaneSession.open(engine_of(channel.endpoints.target), SessionLimits())
    for value in VALUES:
        with pytest.raises(PlanError, match=r"user variable 'a': expected a literal in the window's files"):
            ContextSetter(session).enter(SessionContext(user_variables=(("a", value),)), b"INSERT INTO a.t VALUES (@a)")
    session.close()
    assert channel.target.query("SELECT @@GLOBAL.long_query_time") == before
