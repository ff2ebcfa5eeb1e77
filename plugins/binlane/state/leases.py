"""Leases of lanes: GET_LOCK on the connection that writes the lane, and a heartbeat row for each lane.

A lease keeps runners from waiting on each other's row locks. The compare-and-set alone guarantees that two runners
never write the same block (docs/invariants.md, 8). A DDL is no part of a block's transaction: where it has no GTID
(MariaDB, MySQL with ``gtid_mode`` off) the lease alone keeps two runners from running it both. The server releases the
lock when its connection ends, so a lost lease means a dead connection. Lock names are server-wide and case-insensitive,
with at most 64 characters on MySQL.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, select, text
from sqlalchemy.dialects.mysql import insert

from binlane.errors import PositionError, WindowBusyError
from binlane.lazy_dataclass import dataclass
from binlane.state.tables import NOW, heartbeats

if TYPE_CHECKING:
    from pymysql.cursors import Cursor


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The heartbeat of the process that holds a lane."""

    lane: int
    holder: str
    connection_id: int
    beat_at: str
    """UTC by the target's clock. Compared for equality only, so clocks need not agree."""


def lease_name(channel_uuid: str, lane: int) -> str:
    """The lock's name: 48 characters, equal for every runner of the lane."""
    return "binlane:" + hashlib.sha256(f"{channel_uuid}/{lane}".encode()).hexdigest()[:40]


def bootstrap_lease(channel: str) -> str:
    """The name of the lock for a channel's first copy, made from the channel's name: it has no UUID yet."""
    return lease_name(f"bootstrap {channel}", 0)


def load_lease(restore: str) -> str:
    """The name of the lock of a restore's load, which the connection holds that loads: who has it knows that no other
    process still writes to the restore's databases."""
    return lease_name(f"load {restore}", 0)


@contextlib.contextmanager
def beginning(engine: Engine, channel: str) -> Iterator[None]:
    """Hold the lease under which a channel begins. Raises WindowBusyError while a first copy of it, or another
    beginning, holds it: the channel's row would be of another place than the copied tables."""
    lease = bootstrap_lease(channel)
    with engine.connect() as connection:
        if connection.execute(text("SELECT GET_LOCK(:name, 0)"), {"name": lease}).scalar_one() != 1:
            raise WindowBusyError(
                f"channel {channel}: expected no first copy of this channel, found one that is running (`binlane "
                f"status {channel}`): {held_by(holder(connection, lease))}"
            )
        try:
            yield
        finally:
            connection.execute(text("SELECT RELEASE_LOCK(:name)"), {"name": lease})


def recopy_lease(channel_uuid: str) -> str:
    """The name of the lock of a channel's `binlane recopy`: no new window opens while a connection holds it."""
    return lease_name(f"recopy {channel_uuid}", 0)


def restores_lease() -> str:
    """The name of the lock under which the target's restores begin, one after the other."""
    return lease_name("restores", 0)


def reader_lock(channel: str) -> str:
    """The name of the lock for readers of the target, who spell it themselves: as long as MySQL allows."""
    return f"binlane/{channel}"[:64]


def pass_on(cursor: Cursor, name: str, wait: float, ignored: int | None) -> tuple[int | None, bool]:
    """Release the lock, if the cursor's connection holds it, and take it again behind those who wait for it.

    Returns the connection that has it in between, None if there is none, and whether it came back within ``wait``
    seconds. There is no wait for the connection ``ignored``.
    """
    cursor.execute("SELECT RELEASE_LOCK(%s)", (name,))
    cursor.fetchone()
    cursor.execute("SELECT IS_USED_LOCK(%s)", (name,))
    row = cursor.fetchone()
    holder = None if row is None or row[0] is None else int(row[0])
    cursor.execute("SELECT GET_LOCK(%s, %s)", (name, 0 if holder is not None and holder == ignored else wait))
    row = cursor.fetchone()
    return holder, row is not None and row[0] == 1


def take(cursor: Cursor, name: str) -> bool:
    """Take the lease on the cursor's connection without waiting; False if another connection holds it."""
    cursor.execute("SELECT GET_LOCK(%s, 0)", (name,))
    row = cursor.fetchone()
    if row is None or row[0] is None:
        raise PositionError(f"lease {name}: the server cannot tell whether it is free; look at its error log")
    return bool(row[0] == 1)


def release(cursor: Cursor, name: str) -> None:
    """Release the lease; a no-op if the connection does not hold it."""
    cursor.execute("SELECT RELEASE_LOCK(%s)", (name,))
    cursor.fetchone()


def holder(connection: Connection, name: str) -> int | None:
    """The id of the connection that holds the lease; None if it is free."""
    found = connection.execute(text("SELECT IS_USED_LOCK(:name)"), {"name": name}).scalar_one()
    return None if found is None else int(found)


def held_by(number: int | None) -> str:
    """What somebody may do who was refused a lease; ``number``: the connection that has it."""
    if number is None:
        return "it has just ended; run again"
    return (
        f"connection {number} of the target holds its lease; wait until it ends, or, if its process or its machine is "
        f"lost, end what is left of it there: KILL CONNECTION {number}"
    )


def kill(connection: Connection, connection_id: int) -> None:
    """Kill a connection on the target: its transaction rolls back, its leases become free.

    Needs CONNECTION_ADMIN (MySQL) or CONNECTION ADMIN (MariaDB), or the same account.
    """
    connection.execute(text(f"KILL CONNECTION {int(connection_id)}"))


def beat(connection: Connection, channel: str, lane: int, name: str, connection_id: int) -> None:
    """Write the heartbeat of the holder ``name``, whose lane connection has the id ``connection_id``."""
    statement = insert(heartbeats).values(
        channel=channel, lane=lane, holder=name[:255], connection_id=connection_id, beat_at=NOW
    )
    connection.execute(statement.on_duplicate_key_update(holder=name[:255], connection_id=connection_id, beat_at=NOW))


def read_heartbeats(connection: Connection, channel: str) -> dict[int, Heartbeat]:
    """The last heartbeat of each lane that ever had a holder."""
    rows = connection.execute(select(heartbeats).where(heartbeats.c.channel == channel))
    return {row.lane: Heartbeat(row.lane, row.holder, row.connection_id, str(row.beat_at)) for row in rows}
