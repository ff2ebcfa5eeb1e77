"""A target with an empty state, for each server family that is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from pymysql.cursors import Cursor
from sqlalchemy import Engine, NullPool

from binlane.servers.engines import engine_at
from binlane.state.migrations.upgrade import create
from binlane.state.tables import SCHEMA
from lab.servers import PrivateServer
from tests.emptied import empty_target


@pytest.fixture(params=["mariadb", "mysql"])
def target(request: pytest.FixtureRequest) -> PrivateServer:
    """Without a schema ``binlane``, unless the test asks for ``engine``."""
    server: PrivateServer = request.getfixturevalue(f"{request.param}_target")
    if "engine" not in request.fixturenames:
        server.query(f"DROP DATABASE IF EXISTS {SCHEMA}")
    return server


@pytest.fixture
def engine(target: PrivateServer) -> Iterator[Engine]:
    made = engine_at(target.url(), poolclass=NullPool)
    if not empty_target(target):
        create(made)
    yield made
    made.dispose()


@contextlib.contextmanager
def cursor_of(engine: Engine) -> Iterator[Cursor]:
    """A lane's cursor, autocommit on, as a session has it."""
    pooled = engine.raw_connection()
    connection: Any = pooled.driver_connection
    connection.autocommit(True)
    try:
        yield connection.cursor()
    finally:
        pooled.close()
