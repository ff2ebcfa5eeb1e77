"""Real servers for the tests: private, started once a session, stopped with it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import pytest

from binlane.model import Flavor
from lab.servers import PrivateServer, private_server

SYSTEM_DATABASES = frozenset({"mysql", "sys", "information_schema", "performance_schema"})

requires_mysql = pytest.mark.skipif(
    os.environ.get("BINLANE_MYSQLD") is None, reason="BINLANE_MYSQLD is not set: no MySQL server to test with"
)


@pytest.fixture(scope="session")
def mariadb_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """A MariaDB server with a binlog, for the source's part."""
    folder = tmp_path_factory.mktemp("mariadb_source")
    with private_server(folder / "data", name="mariadb_source", durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """Another MariaDB server with a binlog of its own, for the target's part."""
    folder = tmp_path_factory.mktemp("mariadb_target")
    with private_server(folder / "data", name="mariadb_target", durable=False) as server:
        yield server


@pytest.fixture(scope="session")
def mysql_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """A MySQL server with GTIDs and a binlog; the test is skipped where BINLANE_MYSQLD names none."""
    yield from _mysql(tmp_path_factory, "mysql_source")


@pytest.fixture(scope="session")
def mysql_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    """Another MySQL server with GTIDs; the test is skipped where BINLANE_MYSQLD names none."""
    yield from _mysql(tmp_path_factory, "mysql_target")


@pytest.fixture
def clean_databases() -> Iterator[Callable[[PrivateServer], None]]:
    """A function that drops every database of tests from a server, at once and again when the test ends."""
    cleaned: list[PrivateServer] = []

    def clean(server: PrivateServer) -> None:
        drop_databases(server)
        cleaned.append(server)

    yield clean
    for server in cleaned:
        drop_databases(server)


def drop_databases(server: PrivateServer) -> None:
    """Drop all but the system's databases, without a trace in the binlog."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0, foreign_key_checks = 0")
        cursor.execute("SELECT schema_name FROM information_schema.schemata")
        for (name,) in cursor.fetchall():
            if name.lower() not in SYSTEM_DATABASES:
                cursor.execute(f"DROP DATABASE `{name}`")


def _mysql(factory: pytest.TempPathFactory, name: str) -> Iterator[PrivateServer]:
    if os.environ.get("BINLANE_MYSQLD") is None:
        pytest.skip("BINLANE_MYSQLD is not set: no MySQL server to test with")
    with private_server(factory.mktemp(name) / "data", Flavor.MYSQL, name=name, durable=False) as server:
        yield server
