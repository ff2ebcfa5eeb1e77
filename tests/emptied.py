"""A shared server as it was when it was started: whatever a module has left there, a failed one, too."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import pymysql
from pymysql.cursors import Cursor
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from binlane.binlog.types.literals import identifier
from binlane.errors import StateSchemaError
from binlane.model import Flavor
from binlane.state.consistent_view import CONSISTENT
from binlane.state.migrations.check import require_current
from binlane.state.tables import SCHEMA, metadata, migrations
from lab.servers import PrivateServer

SYSTEM_DATABASES: Final = frozenset({"mysql", "sys", "information_schema", "performance_schema"})
_OTHERS: Final = (
    "SELECT id FROM information_schema.processlist "
    "WHERE id <> CONNECTION_ID() AND user NOT IN ('system user', 'event_scheduler')"
)
_NO_SUCH_THREAD, _UNKNOWN_XID, _READ_ONLY = 1094, 1397, 1238
_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Origin:
    """What a server has had from the first."""

    variables: dict[str, str]
    accounts: frozenset[tuple[str, str, str]]
    plugins: frozenset[str]
    """Those that were installed from a library."""

    @classmethod
    def of(cls, server: PrivateServer) -> Origin:
        """Of a server that nothing has used yet."""
        with _cursor(server) as cursor:
            return cls(_variables(cursor), _accounts(cursor, server.flavor), _plugins(cursor))

    def restore(self, server: PrivateServer) -> None:
        """End connections and prepared transactions, drop databases, accounts, roles and plugins, set variables back.

        A new file of the log begins: what the module reads of the newest one is then its own.
        """
        with _cursor(server) as cursor:
            _end_connections(cursor)
            _roll_back_prepared(cursor, server.flavor)
            _drop_databases(cursor)
            for user, host, is_role in _accounts(cursor, server.flavor) - self.accounts:
                if is_role == "Y":
                    cursor.execute("DROP ROLE %s", (user,))
                else:
                    cursor.execute("DROP USER %s@%s", (user, host))
            # their variables go with them
            for name in _plugins(cursor) - self.plugins:
                cursor.execute(f"UNINSTALL PLUGIN {identifier(name)}")
            for name, value in _variables(cursor).items():
                if value != self.variables.get(name):
                    _set_back(cursor, name, self.variables[name])
            cursor.execute("FLUSH BINARY LOGS")


def drop_databases(server: PrivateServer) -> None:
    """Drop all but the system's databases, without a trace in the binlog."""
    with _cursor(server) as cursor:
        _drop_databases(cursor)


def empty_target(server: PrivateServer) -> bool:
    """``drop_databases``, but a schema ``binlane`` as this build makes it stays, with empty tables: MySQL takes as long
    to make it as a small window takes. Whether it has stayed."""
    with _cursor(server) as cursor:
        is_current = _has_only_own_tables(cursor) and _is_current(server)
        _drop_databases(cursor, {SCHEMA} if is_current else set())
        if is_current:
            _empty_state(cursor)
        return is_current


def _has_only_own_tables(cursor: Cursor) -> bool:
    cursor.execute(
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{SCHEMA}' UNION ALL "
        f"SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = '{SCHEMA}'"
    )
    return {name for (name,) in cursor.fetchall()} == {*(table.name for table in metadata.sorted_tables), CONSISTENT}


def _is_current(server: PrivateServer) -> bool:
    try:
        with _engine(server.url()).connect() as connection:
            require_current(connection)
    except (StateSchemaError, DBAPIError):
        return False
    return True


@functools.lru_cache(maxsize=64)
def _engine(url: str) -> Engine:
    """It keeps no connection, but knows the server and the compiled statements."""
    return create_engine(url, poolclass=NullPool)


def _empty_state(cursor: Cursor) -> None:
    names = [table.name for table in metadata.sorted_tables if table.name != migrations.name]
    filled = ", ".join(f"EXISTS (SELECT 1 FROM {SCHEMA}.{name})" for name in names)
    cursor.execute(f"SELECT {filled}")
    [flags] = cursor.fetchall()
    for name, has_rows in zip(names, flags, strict=True):
        if has_rows:
            cursor.execute(f"DELETE FROM {SCHEMA}.{name}")
    # AUTO_INCREMENT goes on where the deleted rows ended, and tests know the first numbers; MySQL would show an old one
    cursor.execute("/*!80000 SET SESSION information_schema_stats_expiry = 0 */")
    cursor.execute(
        f"SELECT table_name FROM information_schema.tables WHERE table_schema = '{SCHEMA}' AND auto_increment > 1"
    )
    for (name,) in cursor.fetchall():
        cursor.execute(f"ALTER TABLE {SCHEMA}.{name} AUTO_INCREMENT = 1")


@contextlib.contextmanager
def _cursor(server: PrivateServer) -> Iterator[Cursor]:
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        # a lock that somebody has left behind is an error, no wait for ever
        cursor.execute(f"SET SESSION sql_log_bin = 0, foreign_key_checks = 0, lock_wait_timeout = {_SECONDS}")
        yield cursor


def _variables(cursor: Cursor) -> dict[str, str]:
    # GTIDs move by themselves
    cursor.execute("SHOW GLOBAL VARIABLES WHERE variable_name NOT LIKE 'gtid%pos' AND variable_name NOT IN "
                   "('gtid_binlog_state', 'gtid_executed', 'gtid_purged')")  # fmt: skip
    return {str(name): str(value) for name, value in cursor.fetchall()}


def _set_back(cursor: Cursor, name: str, value: str) -> None:
    plain = value.replace(".", "", 1).removeprefix("-").isdigit()
    try:
        cursor.execute(f"SET GLOBAL {name} = {value if plain else cursor.mogrify('%s', (value,))}")
    except pymysql.err.MySQLError as exc:
        if exc.args[0] != _READ_ONLY:
            raise


def _accounts(cursor: Cursor, flavor: Flavor) -> frozenset[tuple[str, str, str]]:
    """User, host, and whether it is a role: MySQL's roles are accounts."""
    cursor.execute(f"SELECT user, host, {'is_role' if flavor is Flavor.MARIADB else repr('N')} FROM mysql.user")
    return frozenset(cursor.fetchall())


def _plugins(cursor: Cursor) -> frozenset[str]:
    cursor.execute("SELECT plugin_name FROM information_schema.plugins WHERE plugin_library IS NOT NULL")
    return frozenset(str(name) for (name,) in cursor.fetchall())


def _drop_databases(cursor: Cursor, kept: Collection[str] = ()) -> None:
    cursor.execute("SELECT schema_name FROM information_schema.schemata")
    for (name,) in cursor.fetchall():
        if name.lower() not in SYSTEM_DATABASES and name not in kept:
            cursor.execute(f"DROP DATABASE {identifier(name)}")


def _end_connections(cursor: Cursor) -> None:
    cursor.execute(_OTHERS)
    for (number,) in cursor.fetchall():
        try:
            cursor.execute(f"KILL CONNECTION {number}")
        except pymysql.err.MySQLError as exc:
            if exc.args[0] != _NO_SUCH_THREAD:
                raise


def _roll_back_prepared(cursor: Cursor, flavor: Flavor) -> None:
    """Their locks would stop a DROP DATABASE for as long as the server runs."""
    cursor.execute("XA RECOVER FORMAT='SQL'" if flavor is Flavor.MARIADB else "XA RECOVER CONVERT XID")
    for form, length, _, xid in cursor.fetchall():
        if flavor is Flavor.MYSQL:
            at = 2 + 2 * int(length)
            xid = f"X'{xid[2:at]}',X'{xid[at:]}',{form}"
        last = time.monotonic() + _SECONDS
        while True:
            try:
                cursor.execute(f"XA ROLLBACK {xid}")
                break
            except pymysql.err.MySQLError as exc:
                # the connection that has prepared it is still ending
                if exc.args[0] != _UNKNOWN_XID or time.monotonic() > last:
                    raise
                time.sleep(0.05)
