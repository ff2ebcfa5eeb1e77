"""Scheduled events of a server, by whether they run, and the statement with which they do or do not.

What binlane makes of an enabled event is DISABLE ON SLAVE, and a disabled one stays DISABLE (``sql.scheduled_event``):
so the target itself keeps which of them ran where they come from.
"""

from __future__ import annotations

from typing import Final

from binlane.binlog.types.literals import identifier, quoted
from binlane.bootstrap.sessions import Session
from binlane.lazy_dataclass import dataclass

_RUNNING: Final = "status = 'ENABLED'"
_AS_ON_A_REPLICA: Final = "status NOT IN ('ENABLED', 'DISABLED')"
"""MariaDB and MySQL before 8.2 say SLAVESIDE_DISABLED, newer ones REPLICA_SIDE_DISABLED."""


@dataclass(frozen=True, slots=True, order=True)
class ScheduledEvent:
    """An event of a server."""

    database: str
    name: str
    definer: str
    """``user@host``; a role of MariaDB has no host."""

    def __str__(self) -> str:
        return f"{self.database}.{self.name}"

    def altered(self, status: str) -> str:
        """The statement that gives it another status. Without a definer, whoever runs it would become the definer."""
        user, _, host = self.definer.rpartition("@")
        account = f"{quoted(user)}@{quoted(host)}" if user and host else quoted(user or host)
        return f"ALTER DEFINER = {account} EVENT {identifier(self.database)}.{identifier(self.name)} {status}"


def running_events(session: Session) -> list[ScheduledEvent]:
    """The enabled events that the account sees."""
    return _events(session, _RUNNING)


def stopped_events(session: Session) -> list[ScheduledEvent]:
    """The events that are disabled as on a replica."""
    return _events(session, _AS_ON_A_REPLICA)


def _events(session: Session, condition: str) -> list[ScheduledEvent]:
    query = f"SELECT event_schema, event_name, definer FROM information_schema.events WHERE {condition}"
    return sorted(ScheduledEvent(*row) for row in session.texts(query))
