"""The server's own replica, as the standard that binlane's result is compared with."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any, Final

import pymysql.cursors
from pymysql.err import MySQLError

from binlane.model import Flavor

if TYPE_CHECKING:
    from lab.servers import PrivateServer
    from lab.suites.servers import Source

_SECONDS: Final = 60.0
_CHANGE: Final = {
    Flavor.MARIADB: "CHANGE MASTER TO MASTER_USE_GTID=no, ",
    Flavor.MYSQL: "CHANGE REPLICATION SOURCE TO ",
}
_WORDS: Final = {Flavor.MARIADB: ("Master", "Slave"), Flavor.MYSQL: ("Source", "Replica")}
"""The family's words for source and replica, in statements and in columns of the status."""


def replicate(source: Source, replica: PrivateServer) -> str:
    """Let a fresh server replicate the source's whole log; returns "" or the error that stopped it."""
    origin, role = _WORDS[replica.flavor]
    kind = origin.upper()
    place = f"{kind}_HOST='127.0.0.1', {kind}_PORT={source.server.port}, {kind}_USER='root', {kind}_PASSWORD=''"
    place += f", {kind}_LOG_FILE='{source.logs[0]}', {kind}_LOG_POS=4, {kind}_CONNECT_RETRY=1"
    try:
        connected = replica.connect(autocommit=True, cursorclass=pymysql.cursors.DictCursor)
        with closing(connected) as connection, connection.cursor() as cursor:
            cursor.execute(_CHANGE[replica.flavor] + place)
            cursor.execute(f"START {role}")
            return _followed(source, replica.flavor, cursor)
    except MySQLError as exc:
        return f"it does not start: {exc}"


def _followed(source: Source, flavor: Flavor, cursor: Any) -> str:
    origin, role = _WORDS[flavor]
    position, file = f"Exec_{origin}_Log_Pos", f"Relay_{origin}_Log_File"
    end = time.monotonic() + _SECONDS
    while True:
        cursor.execute(f"SHOW {role} STATUS")
        status = cursor.fetchone()
        for thread in ("IO", "SQL"):
            if status[f"Last_{thread}_Errno"] and not _is_passing(thread, status):
                return f"{thread} thread: {status[f'Last_{thread}_Errno']} {status[f'Last_{thread}_Error'][:300]}"
        reached = (_number(status[file]), int(status[position]))
        if reached >= (_number(source.logs[-1]), source.end):
            return ""
        if time.monotonic() > end:
            return f"not at the log's end after {_SECONDS:.0f} s (at {status[file]}:{status[position]})"
        time.sleep(0.05)


def _is_passing(thread: str, status: Any) -> bool:
    """Whether the error is temporary: the replica tries again to reach its source."""
    return thread == "IO" and int(status["Last_IO_Errno"]) in (2003, 2013)


def _number(file: str) -> int:
    return int(file.rpartition(".")[2] or 0)
