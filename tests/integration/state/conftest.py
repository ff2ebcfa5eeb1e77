"""A target with an empty state, for each server family that is there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, NullPool, create_engine

from binlane.state.tables import SCHEMA, create
from lab.servers import PrivateServer


@pytest.fixture(params=["mariadb", "mysql"])
def target(request: pytest.FixtureRequest) -> PrivateServer:
    server: PrivateServer = request.getfixturevalue(f"{request.param}_target")
    server.query(f"DROP DATABASE IF EXISTS {SCHEMA}")
    return server


@pytest.fixture
def engine(target: PrivateServer) -> Iterator[Engine]:
    made = create_engine(target.url(), poolclass=NullPool)
    create(made)
    yield made
    made.dispose()
