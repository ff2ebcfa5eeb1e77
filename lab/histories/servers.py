"""Servers of histories: their start, their preparation for a history, and the removal of its objects."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from binlane.model import Flavor
from lab.histories.content import SYSTEM
from lab.histories.edge_changes import FILES
from lab.histories.history import Event
from lab.servers import PrivateServer, start_server

_OPTIONS: Final = ("--local-infile=1", "--log-bin-trust-function-creators=1", "--event-scheduler=OFF")
_OF_FAMILY: Final = {
    Flavor.MYSQL: ("--secure-file-priv=", "--replica-parallel-workers=1", "--skip-replica-start"),
    Flavor.MARIADB: ("--skip-slave-start",),
}
SESSIONS: Final = {
    # MySQL's information_schema.processlist converts the text of every running statement to utf8mb3: 3854 for some
    Flavor.MYSQL: "SELECT processlist_id AS id, processlist_user AS user FROM performance_schema.threads",
    Flavor.MARIADB: "SELECT id, user FROM information_schema.processlist",
}
"""A query of a server's connections and their users."""


def make_folder(folder: Path) -> None:
    """The servers' folder, with the files that histories load."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    folder.chmod(0o755)


def start(flavor: Flavor, folder: Path, name: str) -> PrivateServer:
    """Start a server below ``folder``, with the options that histories need."""
    return start_server(folder / name, flavor, (*_OPTIONS, *_OF_FAMILY[flavor]), name=name, durable=False)


def prepare(server: PrivateServer, events: list[Event]) -> None:
    """Execute the statements before the channel's beginning, without logging them. They have the same result on source
    and target."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0, timestamp = 1700000000")
        for event in events:
            with contextlib.suppress(pymysql.err.MySQLError):
                cursor.execute(event.sql)


def commit_prepared(server: PrivateServer) -> None:
    """End the XA transactions that a history has left prepared."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        _end_prepared(cursor, server.flavor, "COMMIT")


def _end_prepared(cursor: Cursor, flavor: Flavor, end: str) -> None:
    is_mysql = flavor is Flavor.MYSQL
    cursor.execute("XA RECOVER CONVERT XID" if is_mysql else "XA RECOVER FORMAT='SQL'")
    for form, length, _, xid in cursor.fetchall():
        if is_mysql:
            at = 2 + 2 * int(length)
            xid = f"X'{xid[2:at]}',X'{xid[at:]}',{form}"
        with contextlib.suppress(pymysql.err.MySQLError):
            cursor.execute(f"XA {end} {xid}")


def empty(server: PrivateServer) -> None:
    """Remove a history's objects; the schema ``binlane`` stays, since each history has a channel of its own."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0, foreign_key_checks = 0, lock_wait_timeout = 20")
        _end_prepared(cursor, server.flavor, "ROLLBACK")
        cursor.execute("SELECT schema_name FROM information_schema.schemata")
        for (name,) in cursor.fetchall():
            if name.lower() not in SYSTEM:
                cursor.execute(f"DROP DATABASE `{name.replace('`', '``')}`")
