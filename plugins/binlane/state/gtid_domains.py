"""GTID domains of lanes on a MariaDB target.

A DDL gets its seqno as the sequence number in its lane's domain, and is left out if the target's binlog has reached
that number (``apply.ddl``). So two lanes of one target must not have the same domain, whatever their channels: a DDL of
the one would pass for done because the other has done one.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from sqlalchemy import select, text

from binlane.choices import MOST_LANES
from binlane.state.tables import channels

if TYPE_CHECKING:
    from sqlalchemy import Connection

_FIRST: Final = 0x8000_0000
"""Domains of lanes are in the upper half, since operators number theirs from 0."""


def gtid_domain(channel_uuid: str, lane: int) -> int:
    """The domain of a channel's lane: 2^31 .. 2^32 - 1."""
    return _FIRST | zlib.crc32(f"{channel_uuid}/{lane}".encode()) >> 1


def sequence_in(state: str, domain: int) -> int:
    """The highest sequence number of a domain in a list of ``domain-server-sequence``; 0 if it has none."""
    gtids = (gtid.split("-") for gtid in state.split(",") if gtid)
    return max((int(sequence) for found, _, sequence in gtids if int(found) == domain), default=0)


def new_channel_uuid(connection: Connection) -> str:
    """A UUID for a channel, none of whose domains is another channel's or in the target's binlog.

    A hash of 31 bits meets another one by chance: among 1,000 lanes at one site in some 4,000.
    """
    taken = {gtid_domain(each, lane) for each in connection.scalars(select(channels.c.uuid)) for lane in _lanes()}
    # MySQL, which has no domains, does not have the variable
    for _, state in connection.execute(text("SHOW GLOBAL VARIABLES LIKE 'gtid_binlog_state'")):
        taken.update(int(gtid.partition("-")[0]) for gtid in state.split(",") if gtid)
    while True:
        found = str(uuid4())
        if taken.isdisjoint(gtid_domain(found, lane) for lane in _lanes()):
            return found


def _lanes() -> range:
    """Every lane that a channel can have, with the serialized one."""
    return range(MOST_LANES + 1)
