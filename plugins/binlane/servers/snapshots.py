"""A target that is kept in one state of the source while another client takes its snapshot (docs/consistency.md)."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Collection, Iterator
from typing import Final

from sqlalchemy import Connection, Engine, text

from binlane.lazy_dataclass import dataclass
from binlane.state.channels import read_channel
from binlane.state.consistent_view import ConsistentState, read_consistent_state
from binlane.state.leases import holder, reader_lock, recopy_lease

Address = tuple[str, int]
"""An IP address and a TCP port."""
_OPEN: Final = text(
    "SELECT p.host FROM information_schema.processlist AS p "
    "JOIN information_schema.innodb_trx AS t ON t.trx_mysql_thread_id = p.id "
    "WHERE t.trx_isolation_level = 'REPEATABLE READ' AND t.trx_autocommit_non_locking = 0"
)


@dataclass(frozen=True, slots=True)
class TargetReader:
    """Holds the readers' lock of a channel."""

    connection: Connection
    channel: str
    recopy: str

    @classmethod
    @contextlib.contextmanager
    def opened(cls, engine: Engine, channel: str) -> Iterator[TargetReader]:
        """On a connection that ends, with the lock, at the end of the context."""
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # a pooled connection would keep the lock
            connection.detach()
            yield cls(connection, channel, recopy_lease(read_channel(connection, channel).uuid))

    def resting(self, seconds: int) -> ConsistentState | None:
        """The state in which the target rests, with the lock taken; None, without it, if there is none within
        ``seconds``, or while tables are copied again."""
        lock = {"name": reader_lock(self.channel), "seconds": seconds}
        if self.connection.execute(text("SELECT GET_LOCK(:name, :seconds)"), lock).scalar_one() != 1:
            return None
        state = read_consistent_state(self.connection, self.channel)
        if state is not None and state.rests and holder(self.connection, self.recopy) is None:
            return state
        self.connection.execute(text("SELECT RELEASE_LOCK(:name)"), lock)
        return None

    def is_in(self, state: ConsistentState) -> bool:
        """Whether the target is in a state."""
        now = read_consistent_state(self.connection, self.channel)
        return now is not None and (now.seqno, now.source_identity) == (state.seqno, state.source_identity)

    def sees_snapshot(self, clients: Collection[Address]) -> bool:
        """Whether one of these clients, as the server sees their addresses, has an open transaction (REPEATABLE READ).

        Needs PROCESS. Such a transaction has its snapshot, unless it has begun by a locking statement; a single SELECT
        in autocommit mode is left out.
        """
        if not clients:
            return False
        found = (str(host).rpartition(":") for (host,) in self.connection.execute(_OPEN))
        return any(_is_one_of(name, port, clients) for name, _, port in found)


def _is_one_of(host: str, port: str, clients: Collection[Address]) -> bool:
    of_port = {_plain(address) for address, number in clients if port == str(number)}
    return bool(of_port) and not _addresses(host).isdisjoint(of_port)


def _addresses(host: str) -> set[str]:
    """A server that resolves names shows a client's name."""
    try:
        return {_plain(str(found[4][0])) for found in socket.getaddrinfo(host.strip("[]"), None)}
    except OSError:
        return set()


def _plain(address: str) -> str:
    found = ipaddress.ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)
