"""Real servers for the tests: private, started once a session, stopped with it."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from binlane.model import Flavor
from lab.servers import PrivateServer, private_server

# how long a case takes says nothing about whether it is right: machine code may have to be compiled in it
settings.register_profile("binlane", deadline=None)
settings.load_profile("binlane")

SYSTEM_DATABASES = frozenset({"mysql", "sys", "information_schema", "performance_schema"})

requires_mysql = pytest.mark.skipif(
    os.environ.get("BINLANE_MYSQLD") is None, reason="BINLANE_MYSQLD is not set: no MySQL server to test with"
)


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Flavor, str], PrivateServer]]:
    """A function that gives the session's server of a name, started when it is asked for first."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def start(flavor: Flavor, name: str) -> PrivateServer:
            folder = tmp_path_factory.mktemp(name)
            return stack.enter_context(private_server(folder / "data", flavor, name=name, durable=False))

        yield start


# A server is the session's, what it holds is the module's: which modules came before is chance.


@pytest.fixture(scope="module")
def mariadb_source(started: Callable[[Flavor, str], PrivateServer]) -> PrivateServer:
    """A MariaDB server with a binlog, for the source's part."""
    return _emptied(started(Flavor.MARIADB, "mariadb_source"))


@pytest.fixture(scope="module")
def mariadb_target(started: Callable[[Flavor, str], PrivateServer]) -> PrivateServer:
    """Another MariaDB server with a binlog of its own, for the target's part."""
    return _emptied(started(Flavor.MARIADB, "mariadb_target"))


@pytest.fixture(scope="module")
def mysql_source(started: Callable[[Flavor, str], PrivateServer]) -> PrivateServer:
    """A MySQL server with GTIDs and a binlog; the test is skipped where BINLANE_MYSQLD names none."""
    return _mysql(started, "mysql_source")


@pytest.fixture(scope="module")
def mysql_target(started: Callable[[Flavor, str], PrivateServer]) -> PrivateServer:
    """Another MySQL server with GTIDs; the test is skipped where BINLANE_MYSQLD names none."""
    return _mysql(started, "mysql_target")


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


def _mysql(started: Callable[[Flavor, str], PrivateServer], name: str) -> PrivateServer:
    if os.environ.get("BINLANE_MYSQLD") is None:
        pytest.skip("BINLANE_MYSQLD is not set: no MySQL server to test with")
    return _emptied(started(Flavor.MYSQL, name))


def _emptied(server: PrivateServer) -> PrivateServer:
    drop_databases(server)
    # what the module reads of the newest log is then its own: other modules log text in every character set
    server.query("FLUSH BINARY LOGS")
    return server
