"""Cleans the driver's servers, which are reused from test to test, of the previous test's objects."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pymysql.err import MySQLError

from binlane.model import Flavor
from lab.servers import PrivateServer

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

_OWN: Final = ("mysql", "information_schema", "performance_schema", "sys", "mtr", "test")
_ACCOUNTS: Final = ("root", "", "mysql.session", "mysql.sys", "mysql.infoschema", "mariadb.sys", "PUBLIC")
_TEST: Final = {
    Flavor.MARIADB: "CREATE DATABASE test CHARACTER SET latin1 COLLATE latin1_swedish_ci",
    Flavor.MYSQL: "CREATE DATABASE test CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
}
"""As the drivers install it."""
_RESETS: Final = {
    Flavor.MARIADB: ("STOP ALL SLAVES", "RESET SLAVE ALL", "RESET MASTER"),
    Flavor.MYSQL: ("STOP REPLICA", "RESET REPLICA ALL", "RESET BINARY LOGS AND GTIDS"),
}


def clean(
    flavor: Flavor, ports: Iterable[int], databases: Collection[str] = _OWN, accounts: Collection[str] = _ACCOUNTS
) -> None:
    """Empty the servers and their logs, except ``databases`` and ``accounts``. A server that does not run or cannot be
    emptied is left as it is."""
    for port in ports:
        server = PrivateServer(flavor, port, Path(), Path(), "suite", (), Path(), user="root", password="")
        with (
            contextlib.suppress(MySQLError),
            closing(server.connect(autocommit=True)) as connection,
            connection.cursor() as cursor,
        ):
            _clean(flavor, cursor, databases, accounts)


def _clean(flavor: Flavor, cursor: Cursor, databases: Collection[str], accounts: Collection[str]) -> None:
    for statement in ("SET sql_log_bin = 0", "SET foreign_key_checks = 0", *_RESETS[flavor][:2]):
        _try(cursor, statement)
    _try(cursor, "SET SESSION lock_wait_timeout = 5")
    for (name,) in _rows(cursor, "SHOW DATABASES"):
        if name.lower() not in databases:
            _try(cursor, f"DROP DATABASE `{name.replace('`', '``')}`")
    if "test" in databases and (
        list(_rows(cursor, "SELECT 1 FROM information_schema.tables WHERE table_schema = 'test' LIMIT 1"))
        or not list(_rows(cursor, "SHOW DATABASES LIKE 'test'"))
    ):
        _try(cursor, "DROP DATABASE IF EXISTS test")
        _try(cursor, _TEST[flavor])
    for user, host in _rows(cursor, "SELECT user, host FROM mysql.user"):
        if user not in accounts:
            kind = "USER" if host or flavor is Flavor.MYSQL else "ROLE"
            name = cursor.connection.escape(user) + (f"@{cursor.connection.escape(host)}" if kind == "USER" else "")
            _try(cursor, f"DROP {kind} {name}")
    _try(cursor, _RESETS[flavor][2])


def _rows(cursor: Cursor, statement: str) -> Iterator[tuple[Any, ...]]:
    cursor.execute(statement)
    yield from list(cursor.fetchall())


def _try(cursor: Cursor, statement: str) -> None:
    with contextlib.suppress(MySQLError):
        cursor.execute(statement)
