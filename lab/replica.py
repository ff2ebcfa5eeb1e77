"""Measures MariaDB's own replica on the log that binlane applies."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from lab.servers import LabError

if TYPE_CHECKING:
    from lab.servers import PrivateServer

THREADS: Final = 8
OPTIONS: Final = (f"--slave-parallel-threads={THREADS}", "--slave-parallel-mode=optimistic")
"""The replica's options: the fastest of MariaDB's modes that needs no setting of the source."""
_MOST_SECONDS: Final = 300.0
_POLL: Final = 0.05


def follow(replica: PrivateServer, source: PrivateServer, place: tuple[str, int] | None = None) -> None:
    """Begin at a place of the source's log, or at its oldest, catch up, and stop the SQL thread; the I/O thread keeps
    running."""
    file, offset = (_oldest(source), 4) if place is None else place
    replica.query(
        f"CHANGE MASTER TO master_host = '{source.host}', master_port = {source.port}, master_user = '{source.user}', "
        f"master_password = '{source.password}', master_use_gtid = no, "
        f"master_log_file = '{file}', master_log_pos = {offset}"
    )
    replica.query("START SLAVE")
    _wait_for_the_end(replica, source)
    replica.query("STOP SLAVE SQL_THREAD")


def catch_up(replica: PrivateServer, source: PrivateServer) -> float:
    """Apply the source's further log, received completely before; the seconds from the SQL threads' start to the
    end."""
    ((file, position, *_),) = source.query("SHOW MASTER STATUS")
    began = time.monotonic()
    while True:
        status = _status(replica)
        if (status["Master_Log_File"], int(status["Read_Master_Log_Pos"])) == (file, int(position)):
            break
        _check(status, began)
        time.sleep(_POLL)
    began = time.monotonic()
    replica.query("START SLAVE SQL_THREAD")
    _wait_for_the_end(replica, source)
    seconds = time.monotonic() - began
    replica.query("STOP SLAVE SQL_THREAD")
    return seconds


def _oldest(source: PrivateServer) -> str:
    return str(source.query("SHOW BINARY LOGS")[0][0])


def _wait_for_the_end(replica: PrivateServer, source: PrivateServer) -> None:
    ((end,),) = source.query("SELECT @@gtid_binlog_pos")
    began = time.monotonic()
    while replica.query("SELECT MASTER_GTID_WAIT(%s, 1)", (end,)) != [(0,)]:
        _check(_status(replica), began)


def _check(status: dict[str, Any], began: float) -> None:
    for name in ("Last_IO_Error", "Last_SQL_Error"):
        if status[name]:
            raise LabError(f"the server's own replica stopped: {status[name]}")
    if time.monotonic() - began > _MOST_SECONDS:
        raise LabError(f"the server's own replica is not at the log's end after {_MOST_SECONDS:.0f} s")


def _status(replica: PrivateServer) -> dict[str, Any]:
    with replica.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SLAVE STATUS")
        names = [column[0] for column in cursor.description or ()]
        return dict(zip(names, cursor.fetchone() or (), strict=True))
