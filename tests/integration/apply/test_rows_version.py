"""Rows events of version 1, as MySQL up to 5.5 and ``log_bin_use_v1_row_events`` write them, on a MySQL of today."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest
from sqlalchemy import NullPool

from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.wire import EventType
from binlane.model import Flavor
from binlane.plan.transaction.event_format import format_for, translation
from binlane.servers.engines import engine_at
from lab.servers import PrivateServer
from tests.unit.plan.logs import insert, table_map

_TYPES_OF_5_5 = 27
_FORMATS = {
    "5.5": FormatDescription(
        "5.5.62-log", post_header_lengths=FormatDescription("5.5.62").post_header_lengths[:_TYPES_OF_5_5]
    ),
    "8.0": FormatDescription("8.0.31"),
}


@pytest.fixture
def session(mysql_target: PrivateServer) -> Iterator[LaneSession]:
    opened = LaneSession.open(engine_at(mysql_target.url(), poolclass=NullPool), SessionLimits())
    for statement in ("SET sql_log_bin = 0", "DROP DATABASE IF EXISTS tenant_1", "CREATE DATABASE tenant_1"):
        opened.execute(statement)
    opened.execute("CREATE TABLE tenant_1.t (a INT)")
    yield opened
    opened.connection.close()


@pytest.mark.parametrize("source", _FORMATS)
def test_rows_of_version_1_are_taken(session: LaneSession, source: str) -> None:
    form, payload, translate = _FORMATS[source], table_map(1, "tenant_1") + insert(1, [1, 2]), translation(Flavor.MYSQL)
    assert translate is not None
    session.use_format(form.without_checksum())
    with pytest.raises(pymysql.err.MySQLError, match="1730"):
        session.binlog(payload)
    announced = format_for(form, Flavor.MYSQL, str(session.value("SELECT VERSION()")))
    session.use_format(announced)
    session.binlog(translate(payload))
    assert session.rows("SELECT a FROM tenant_1.t ORDER BY a") == [(1,), (2,)]
    # what needs no change stays, and the source's own format where it announces version 2
    assert translate(translate(payload)) == translate(payload)
    own = len(form.post_header_lengths) >= EventType.DELETE_ROWS_V2
    assert (announced == form.without_checksum()) is own
