"""Applies the same log by the server's own replica, for the verdict."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import Any, Final

import pymysql

from binlane.model import Flavor
from lab.servers import PrivateServer

_SECONDS: Final = 60.0
_POLL: Final = 0.02
_ENDS_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Place:
    """A position in a source's log."""

    file: str
    position: int
    gtids: str


def place_of(source: PrivateServer) -> Place:
    """The present end of the source's log."""
    if source.flavor is Flavor.MYSQL:
        row = source.query("SHOW BINARY LOG STATUS")[0]
        return Place(str(row[0]), int(row[1]), str(row[4]).replace("\n", ""))
    row = source.query("SHOW MASTER STATUS")[0]
    return Place(str(row[0]), int(row[1]), "")


def replicate(source: PrivateServer, replica: PrivateServer, start: Place) -> str | None:
    """Let the replica apply the source's log from ``start`` to its present end; its error, if it stops.

    A replica whose server ends is started again, without the log.
    """
    try:
        return _replicated(source, replica, start)
    except pymysql.err.OperationalError as exc:
        # it writes its stack before it ends
        last = time.monotonic() + _ENDS_SECONDS
        while replica.is_running():
            if time.monotonic() > last:
                raise
            time.sleep(_POLL)
        replica.restart()
        return f"the replica's server has ended: {exc}"


def _replicated(source: PrivateServer, replica: PrivateServer, start: Place) -> str | None:
    end = place_of(source)
    account = f"_PORT = {source.port}, {{0}}_USER = '{source.user}', {{0}}_PASSWORD = '{source.password}'"
    if replica.flavor is Flavor.MYSQL:
        word, off = "SOURCE", "RESET REPLICA ALL"
        replica.query("RESET BINARY LOGS AND GTIDS")
        replica.query("SET GLOBAL gtid_purged = %s", (start.gtids,))
        change = "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE" + account.format(word)
        change += ", SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
        names = ("START REPLICA", "STOP REPLICA", "SHOW REPLICA STATUS")
    else:
        word, off = "MASTER", "RESET SLAVE ALL"
        change = "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER" + account.format(word)
        change += f", MASTER_USE_GTID = no, MASTER_LOG_FILE = '{start.file}', MASTER_LOG_POS = {start.position}"
        names = ("START SLAVE", "STOP SLAVE", "SHOW SLAVE STATUS")
    replica.query(change)
    replica.query(names[0])
    try:
        return _wait(replica, names[2], word, end)
    finally:
        with contextlib.suppress(Exception):
            replica.query(names[1])
        replica.query(off)


def _wait(replica: PrivateServer, asked: str, word: str, end: Place) -> str | None:
    last = time.monotonic() + _SECONDS
    while time.monotonic() < last:
        status = _status(replica, asked)
        for thread in ("SQL", "IO"):
            if status.get(f"Last_{thread}_Errno"):
                return str(status[f"Last_{thread}_Error"])
        file = str(status[f"Relay_{word.title()}_Log_File"])
        if (file, int(status[f"Exec_{word.title()}_Log_Pos"])) >= (end.file, end.position):
            return None
        time.sleep(_POLL)
    return f"the replica was not done after {_SECONDS:.0f} s"


def _status(replica: PrivateServer, asked: str) -> dict[str, Any]:
    with contextlib.closing(replica.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(asked)
        names = [column[0] for column in cursor.description or ()]
        return dict(zip(names, cursor.fetchone() or (), strict=True))
