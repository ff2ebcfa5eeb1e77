"""Rows as the server sends them, from a connection that is lost or asked again."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest
from sqlalchemy import NullPool

from binlane.servers.engines import engine_at
from binlane.verify.rows.sides import Side, target_side
from lab.servers import PrivateServer

MANY = "SELECT seq, REPEAT('x', 1000) FROM seq_1_to_100000"


@pytest.fixture
def side(mariadb_target: PrivateServer) -> Iterator[Side]:
    with target_side(engine_at(mariadb_target.url("mysql"), poolclass=NullPool)) as opened:
        yield opened


def test_rows_come_one_by_one_and_the_connection_is_free_behind_the_last(side: Side) -> None:
    rows = side.stream(MANY)
    assert next(rows)[0] == 1
    assert sum(1 for _ in rows) == 99_999
    assert [tuple(row) for row in side.execute("SELECT 1")] == [(1,)]


def test_the_error_of_a_connection_that_is_lost_in_between_is_the_driver_s(
    side: Side, mariadb_target: PrivateServer
) -> None:
    [(number,)] = side.execute("SELECT CONNECTION_ID()")
    rows = side.stream(MANY)
    next(rows)
    mariadb_target.query(f"KILL {number}")
    with pytest.raises(pymysql.err.OperationalError, match=r"Lost connection|1927|was killed"):
        sum(1 for _ in rows)
