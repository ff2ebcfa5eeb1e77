"""Leases of lanes: GET_LOCK on the connection that writes the lane, and heartbeats beside it.

A lease keeps runners from waiting on each other's row locks; that two of them never write the same block is the
compare-and-set's work (docs/invariants.md, 8). The lock goes with its connection, so a lost lease means a dead
connection. Lock names are server-wide and case-insensitive, and MySQL takes 64 characters at most.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select, text
from sqlalchemy.dialects.mysql import insert

from binlane.errors import PositionError
from binlane.state.tables import NOW, heartbeats

if TYPE_CHECKING:
    from pymysql.cursors import Cursor


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A sign of life of the process that holds a lane."""

    lane: int
    holder: str
    connection_id: int
    beat_at: str
    """The target's clock, UTC. Compared for equality only: no clock of another machine is trusted."""


def lease_name(channel_uuid: str, lane: int) -> str:
    """The lock's name: 48 characters, the same for every runner of the lane, whatever the case of the channel's
    name."""
    return "binlane:" + hashlib.sha256(f"{channel_uuid}/{lane}".encode()).hexdigest()[:40]


def bootstrap_lease(channel: str) -> str:
    """The name of the lock that a channel's first copy holds: before it there is no channel, and no UUID."""
    return lease_name(f"bootstrap {channel}", 0)


def take(cursor: Cursor, name: str) -> bool:
    """Take the lease on the cursor's connection without waiting; False if somebody holds it."""
    cursor.execute("SELECT GET_LOCK(%s, 0)", (name,))
    row = cursor.fetchone()
    if row is None or row[0] is None:
        raise PositionError(f"lease {name}: the server cannot tell whether it is free; look at its error log")
    return bool(row[0] == 1)


def release(cursor: Cursor, name: str) -> None:
    """Give the lease back; nothing happens if the connection does not hold it."""
    cursor.execute("SELECT RELEASE_LOCK(%s)", (name,))
    cursor.fetchone()


def holder(connection: Connection, name: str) -> int | None:
    """The id of the connection that holds the lease, if one does."""
    found = connection.execute(text("SELECT IS_USED_LOCK(:name)"), {"name": name}).scalar_one()
    return None if found is None else int(found)


def kill(connection: Connection, connection_id: int) -> None:
    """End a connection on the target: its transaction rolls back, its leases are free.

    Needs CONNECTION_ADMIN (MySQL) or CONNECTION ADMIN (MariaDB), or the same account.
    """
    connection.execute(text(f"KILL CONNECTION {int(connection_id)}"))


def beat(connection: Connection, channel: str, lane: int, name: str, connection_id: int) -> None:
    """Write the sign of life of the holder ``name``, whose lane connection has the id ``connection_id``."""
    statement = insert(heartbeats).values(
        channel=channel, lane=lane, holder=name[:255], connection_id=connection_id, beat_at=NOW
    )
    connection.execute(statement.on_duplicate_key_update(holder=name[:255], connection_id=connection_id, beat_at=NOW))


def read_heartbeats(connection: Connection, channel: str) -> dict[int, Heartbeat]:
    """The last sign of life of each lane that ever had a holder."""
    rows = connection.execute(select(heartbeats).where(heartbeats.c.channel == channel))
    return {row.lane: Heartbeat(row.lane, row.holder, row.connection_id, str(row.beat_at)) for row in rows}
