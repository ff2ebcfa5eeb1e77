"""Queries to a live source before its log is read, and the meaning of its errors."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import pymysql

from binlane.answers import unusable
from binlane.binlog.types.literals import identifier
from binlane.connections import WITH_TLS, login_advice
from binlane.driver.login import LoginRefusedError
from binlane.errors import (
    BinlaneError,
    MissingLogError,
    PrecheckError,
    ServerIdInUseError,
    SourceError,
    SourceIdentityError,
    SourceUnavailableError,
)
from binlane.model import CLOCKS_DIFFER, Flavor, LogPosition, TableKey
from binlane.sessions.server_proof import NO_LOG, mariadb_identity
from binlane.source.gtid_set import not_logged
from binlane.source.protocol import LogState

_SAME_READER: Final = 4052
"""ER_SLAVE_SAME_ID, MariaDB's error for a second reader with the same server id."""
_UNAVAILABLE: Final = frozenset(
    {1040, 1053, 1158, 1159, 1160, 1161, 1203, 1317, 1927, 2002, 2003, 2006, 2013, 2055, 4031}
)
_LOCKED: Final = 1205
_LACKS_PRIVILEGE: Final = 1227
_LACKS_SELECT: Final = 1142
_SET_NUMBERS: Final = (
    "SELECT variable_value AS number FROM performance_schema.variables_by_thread "
    "WHERE variable_name = 'pseudo_thread_id'"
)
_UNLOGGED: Final = (
    "SELECT thread.processlist_id AS number FROM performance_schema.variables_by_thread variable "
    "JOIN performance_schema.threads thread USING (thread_id) "
    "WHERE variable.variable_name = 'sql_log_bin' AND variable.variable_value = 'OFF' ORDER BY 1"
)
_REFUSED: Final = frozenset({1044, 1045, _LACKS_SELECT, _LACKS_PRIVILEGE, 1698, 3118, 4151})
"""Errors of privileges. The message of 1227 names the privilege."""
_FATAL_READ: Final = 1236
_GONE: Final = ("could not find first log file", "purged", "not in the binary log", "no longer")
_TORN: Final = "truncated in the middle of event"
_REWOUND: Final = ("impossible position", "> file size", "before the last event", "bogus data")
_SEES_SESSIONS: Final = re.compile(r"GRANT (?:ALL PRIVILEGES|(?:.*, )?PROCESS(?:,.*)?) ON \*\.\* TO ")
_FILTER: Final = re.compile(r"Replicate_(?:Wild_)?(?:Do|Ignore)_")
_MISSING: Final = frozenset({1049, 1146})
"""No such database, no such table."""
_MOST_TABLES: Final = 200
_LEAVING: Final = 5.0
"""Seconds to wait for an earlier reader of this channel to disappear."""
LOG_PRIVILEGES: Final[Mapping[Flavor, tuple[str, ...]]] = {
    Flavor.MARIADB: ("REPLICATION SLAVE", "REPLICATION MASTER ADMIN", "BINLOG MONITOR", "SLAVE MONITOR"),
    Flavor.MYSQL: ("REPLICATION SLAVE", "REPLICATION CLIENT"),
}
"""Privileges on ``*.*`` for reading the log; MariaDB: from 10.5.2 on."""


@contextlib.contextmanager
def translated(name: str, flavor: Flavor | None = None) -> Iterator[None]:
    """Turns PyMySQL's errors, and answers that cannot be used, into binlane's errors, which name the server.
    ``flavor``: its family, where it is known."""
    try:
        yield
    except BinlaneError:
        raise
    except pymysql.err.MySQLError as exc:
        raise _error(name, exc, flavor) from exc
    except OSError as exc:
        raise SourceUnavailableError(f"{name}: cannot be reached: {exc}; check host and port, then run again") from exc
    except Exception as exc:
        if (answer := unusable(exc, name)) is not None:
            raise answer from exc
        raise


def _error(name: str, exc: pymysql.err.MySQLError, flavor: Flavor | None) -> SourceError | PrecheckError:
    code = exc.args[0] if exc.args else 0
    text = str(exc.args[1]) if len(exc.args) > 1 else str(exc)
    said = f"{name}: the server says: {text} ({code})"
    if code == _LOCKED:
        return SourceUnavailableError(
            f"{said}; another session has locked what this step reads, by LOCK TABLES or a DDL: wait until it has "
            "ended, or find it by SHOW FULL PROCESSLIST on the source and KILL it; then run the step again"
        )
    if code in _UNAVAILABLE:
        return SourceUnavailableError(f"{said}; run the step again when the server answers")
    if code == _SAME_READER:
        return ServerIdInUseError(
            f"{said}; another run of this channel is reading: run this one again, or set source.server_id of the "
            "channel to a unique number"
        )
    if isinstance(exc, LoginRefusedError):
        if advice := login_advice(code, text):
            return PrecheckError(f"{said}; {advice}")
        return PrecheckError(
            f"{said}; the login was refused: compare the connection's user and password with the account on the "
            f"server; {WITH_TLS}"
        )
    if code in _REFUSED:
        if flavor is not None:
            names = ", ".join(LOG_PRIVILEGES[flavor])
            return PrecheckError(f"{said}; GRANT {names} ON *.* TO the account on the source, then run again")
        wanted = "; ".join(f"{each.value}: GRANT {', '.join(names)}" for each, names in LOG_PRIVILEGES.items())
        return PrecheckError(f"{said}; the source's account needs, ON *.*, {wanted}")
    if code == _FATAL_READ and (found := _unreadable(said, exc)) is not None:
        return found
    advice = login_advice(code, text)
    return SourceError(f"{said}; {advice}" if advice else said)


def _unreadable(said: str, exc: pymysql.err.MySQLError) -> SourceError | PrecheckError | None:
    """Why a server does not send its log, where more can be said of it than the server does."""
    lowered = str(exc.args[1:]).lower()
    if "gtid_mode" in lowered:
        mode = "ON_PERMISSIVE" if "anonymous" in lowered else "OFF_PERMISSIVE"
        return PrecheckError(
            f"{said}; the server does not send transactions of its earlier gtid_mode: SET GLOBAL gtid_mode = "
            f"{mode} on the source until this window has read them, or read these files as an archive"
        )
    # the server's message is the same for a purged file and one that never existed; the file list was checked
    # before
    if any(sign in lowered for sign in _GONE):
        return MissingLogError(f"{said}; load a newer backup into the target, or read the missing files as an archive")
    if is_torn(exc):
        return SourceError(
            f"{said}; the server crashed while it wrote this file, its disk was full, or the file is damaged, and "
            "nothing in its log tells whether a transaction is lost there: compare the file with the server's "
            "replicas, copy it and all later ones into a folder, read them as source.archive, with the file in "
            "source.trusted_files if it lacks nothing, then name the server again; or load a newer backup into the "
            "target"
        )
    if any(sign in lowered for sign in _REWOUND):
        return SourceIdentityError(f"{said}; the log is shorter than before: it was reset or restored")
    return None


def is_torn(exc: pymysql.err.MySQLError) -> bool:
    """Whether a server says that a file of its log ends inside an event."""
    return exc.args[:1] == (_FATAL_READ,) and _TORN in str(exc.args[1:]).lower()


def flavor_of(connection: Any) -> Flavor:
    """By the version string of the handshake."""
    return Flavor.MARIADB if "mariadb" in connection.get_server_info().lower() else Flavor.MYSQL


def has_gtids(connection: Any) -> bool:
    """MySQL: whether gtid_mode is ON, which a dump by GTID needs."""
    return bool(_value(connection, "SELECT @@GLOBAL.gtid_mode = 'ON'"))


def check_settings(connection: Any, name: str) -> None:
    """Raises PrecheckError if the log is off or filtered, or lacks the changes that the server itself replicates."""
    if not _value(connection, "SELECT @@GLOBAL.log_bin"):
        raise PrecheckError(f"{name}: {NO_LOG}")
    status = _log_status(connection)
    for column in ("Binlog_Do_DB", "Binlog_Ignore_DB"):
        if status[column]:
            raise PrecheckError(
                f"{name}: {column.lower()} is set ({status[column]}): the source leaves changes out of its log "
                "without a trace; remove the option from the source"
            )
    if not _value(connection, "SELECT @@GLOBAL.log_slave_updates") and _rows(
        connection, *_REPLICA_STATUS[flavor_of(connection)]
    ):
        raise PrecheckError(
            f"{name}: is a replica with log_slave_updates OFF: the changes that it replicates are not in its "
            "log; switch log_slave_updates on, or read the log of its own source"
        )


def may_be_replica(connection: Any) -> bool:
    """Whether the server replicates another one, or the account may not see that."""
    try:
        return bool(_rows(connection, *_REPLICA_STATUS[flavor_of(connection)]))
    except pymysql.err.OperationalError as exc:
        if exc.args[0] == _LACKS_PRIVILEGE:
            return True
        raise


_REPLICA_STATUS: Final = {
    Flavor.MARIADB: ("SHOW ALL SLAVES STATUS",),
    Flavor.MYSQL: ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS"),
}
_REPLICAS: Final = {Flavor.MARIADB: ("SHOW SLAVE HOSTS",), Flavor.MYSQL: ("SHOW REPLICAS", "SHOW SLAVE HOSTS")}
"""The second statement is for MySQL before 8.0.22."""


def check_server_id(connection: Any, name: str, server_id: int, replica_host: str) -> None:
    """Raises ServerIdInUseError if another reader has the same server id: the server would end each one's dump in turn.

    A server keeps a reader registered until its dump thread notices the closed connection. So an earlier reader of this
    channel, registered as ``replica_host``, gets ``_LEAVING`` seconds to disappear.
    """
    own = _value(connection, "SELECT @@GLOBAL.server_id")
    if own == server_id:
        raise PrecheckError(f"{name}: server_id {server_id} is the source's own; set source.server_id of the channel")
    deadline = time.monotonic() + _LEAVING
    while (host := _registered_host(connection, server_id)) is not None:
        if host != replica_host or time.monotonic() > deadline:
            raise ServerIdInUseError(
                f"{name}: server_id {server_id} is registered by {host or 'another reader'}: expected no other "
                "reader with this id; another run of this channel is reading: wait for it, or set "
                "source.server_id of the channel to a unique number"
            )
        time.sleep(0.1)


def _registered_host(connection: Any, server_id: int) -> str | None:
    """The host name of the reader with this server id; None: no such reader."""
    for row in _rows(connection, *_REPLICAS[flavor_of(connection)]):
        if int(row["Server_id" if "Server_id" in row else "Server_Id"]) == server_id:
            return str(row.get("Host") or "")
    return None


def log_state(connection: Any) -> LogState:
    """Files, end and clock, in this order: a clock read after the end would close a window too early."""
    flavor = flavor_of(connection)
    # in local time one hour occurs twice a year
    connection.query("SET time_zone = '+00:00'")
    # what a clock that is ahead says of the future proves nothing: rows of before it are still to come
    with connection.cursor() as cursor:
        cursor.execute("SELECT UNIX_TIMESTAMP(NOW(6)), @@GLOBAL.sync_binlog <> 1")
        time_there, may_lose = cursor.fetchone()
    clock = min(float(time_there), time.time() + CLOCKS_DIFFER)
    logs = _rows(connection, "SHOW BINARY LOGS")
    files, sizes = tuple(row["Log_name"] for row in logs), tuple(int(row["File_size"]) for row in logs)
    status = _log_status(connection)
    unlogged = put_in = ""
    if flavor is Flavor.MYSQL:
        with connection.cursor() as cursor:
            cursor.execute("SELECT @@GLOBAL.server_uuid, @@GLOBAL.gtid_purged, @@GLOBAL.gtid_mode = 'ON'")
            uuid, purged, has_gtids = cursor.fetchone()
        # InnoDB keeps the GTIDs of what it has: a server that has lost their events counts them as purged
        may_lose = None if has_gtids else may_lose
        identity, unlogged = f"mysql server_uuid {uuid}", purged.replace("\n", "")
    else:
        with connection.cursor() as cursor:
            # in this order: what a replica applies is in its log before it is in gtid_slave_pos
            cursor.execute("SELECT @@GLOBAL.server_id, @@GLOBAL.gtid_slave_pos, @@GLOBAL.gtid_binlog_state")
            server_id, put_in, logged = cursor.fetchone()
        identity = mariadb_identity(server_id)
        if put_in and _leaves_out(connection):
            put_in = ""
        unlogged = not_logged(put_in, logged)
    return LogState(
        identity,
        flavor,
        files,
        _end_of(status),
        clock,
        closes_by_clock=True,
        sizes=sizes,
        unlogged=unlogged,
        put_in=put_in,
        may_lose=None if may_lose is None else bool(may_lose),
        own_clock=float(time_there),
    )


def log_files(connection: Any) -> tuple[str, ...]:
    """The log's files, oldest first."""
    return tuple(row["Log_name"] for row in _rows(connection, "SHOW BINARY LOGS"))


def log_end(connection: Any) -> LogPosition:
    """The log's end now."""
    return _end_of(_log_status(connection))


def _end_of(status: Mapping[str, Any]) -> LogPosition:
    return LogPosition(status["File"], int(status["Position"]))


def _leaves_out(connection: Any) -> bool:
    """Whether a MariaDB server replicates with filters: gtid_slave_pos passes the transactions that they leave out."""
    try:
        rows = _rows(connection, *_REPLICA_STATUS[Flavor.MARIADB])
    except pymysql.err.OperationalError as exc:
        if exc.args[0] == _LACKS_PRIVILEGE:
            return False
        raise
    return any(value for row in rows for name, value in row.items() if _FILTER.match(name))


def open_sessions(connection: Any) -> frozenset[tuple[int, int]] | None:
    """Server id and thread id of each connection, and the number that it logs in place of this one, where that can be
    read; None if the account sees its own alone, or the server may not list them all."""
    grants = [str(next(iter(row.values()))) for row in _rows(connection, "SHOW GRANTS")]
    if not any(_SEES_SESSIONS.match(grant) for grant in grants):
        return None
    own = int(_value(connection, "SELECT @@GLOBAL.server_id"))
    numbers = {int(row["Id"]) for row in _rows(connection, "SHOW PROCESSLIST")}
    if connection.thread_id() not in numbers or _loses_threads(connection):
        return None
    return frozenset((own, number) for number in numbers | _set_numbers(connection))


def _loses_threads(connection: Any) -> bool:
    """Whether MySQL lists the connections of its performance schema, and that has had no room for one."""
    lost = "SHOW GLOBAL STATUS LIKE 'Performance_schema_thread_instances_lost'"
    by_schema = "SHOW GLOBAL VARIABLES LIKE 'performance_schema_show_processlist'"
    if not any(row["Value"] == "ON" for row in _rows(connection, by_schema)):
        return False
    return any(int(row["Value"]) > 0 for row in _rows(connection, lost))


def _set_numbers(connection: Any) -> set[int]:
    """What MySQL's connections have in pseudo_thread_id, if the account may see that. MariaDB shows it to nobody."""
    return set(_numbers(connection, _SET_NUMBERS))


def unlogged_sessions(connection: Any) -> tuple[int, ...]:
    """Ids of MySQL's connections that write without its log (``sql_log_bin = 0``), ascending, if the account may see
    that. MariaDB shows it to nobody."""
    return tuple(_numbers(connection, _UNLOGGED))


def _numbers(connection: Any, query: str) -> list[int]:
    """What MySQL's performance schema tells of its connections; nothing to an account that may not read it."""
    if flavor_of(connection) is Flavor.MARIADB:
        return []
    try:
        return [int(row["number"]) for row in _rows(connection, query)]
    except pymysql.err.OperationalError as exc:
        if exc.args[0] != _LACKS_SELECT:
            raise
        return []


def missing_tables(connection: Any, tables: Collection[TableKey]) -> frozenset[TableKey]:
    """Those of up to ``_MOST_TABLES`` that the server does not have: of the others it says to an account that may not
    read them that it may not."""
    found = set[TableKey]()
    with connection.cursor() as cursor:
        # a table that is being altered is there
        cursor.execute("SET SESSION lock_wait_timeout = 1")
        cursor.execute("SET SESSION TRANSACTION READ ONLY")
        for key in sorted(tables, key=str)[:_MOST_TABLES]:
            try:
                # by the hint a view is an error, so that no function in it runs as binlane's account (``state_guard``)
                cursor.execute(f"SELECT 1 FROM {identifier(key.database)}.{identifier(key.table)} USE INDEX () LIMIT 0")
            except pymysql.err.MySQLError as exc:
                code = exc.args[0] if exc.args else 0
                if code in _MISSING:
                    found.add(key)
                elif code in _UNAVAILABLE:
                    raise
    return frozenset(found)


def _log_status(connection: Any) -> dict[str, Any]:
    """The newest file, its size and the filters; the statement's name has changed with MySQL 8.4."""
    return _rows(connection, "SHOW BINARY LOG STATUS", "SHOW MASTER STATUS")[0]


def _rows(connection: Any, statement: str, older: str = "") -> list[dict[str, Any]]:
    """The rows of a statement. ``older``: the statement for servers that do not know the first one."""
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        try:
            cursor.execute(statement)
        except pymysql.err.ProgrammingError:
            if not older:
                raise
            cursor.execute(older)
        return list(cursor.fetchall())


def _value(connection: Any, statement: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return cursor.fetchone()[0]
