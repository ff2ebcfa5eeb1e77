"""That a connection of the source has ended: an operator says it in ``source.ended_sessions``, or the source."""

from __future__ import annotations

from dataclasses import field

from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.plan.transaction.temporary_tables import Session


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """A connection that has ended without a DROP of its temporary tables in the log."""

    session: Session
    created: LogPosition
    """In front of the transaction that created the first of these tables: a server gives numbers of connections again
    behind a restart."""
    is_named: bool = field(default=True, compare=False)
    """An operator has said it; False: an earlier window has found it in the source's list of connections."""

    @classmethod
    def of(cls, text: str, *, is_named: bool = True) -> SessionEnd:
        """Of an entry, whose form the channel's file or state has been checked for."""
        session, _, created = text.partition("@")
        server_id, _, connection = session.partition(":")
        file, _, offset = created.rpartition(":")
        return cls((int(server_id), int(connection)), LogPosition(file, int(offset)), is_named)

    def __str__(self) -> str:
        return f"{self.session[0]}:{self.session[1]}@{self.created}"

    def is_before(self, position: LogPosition) -> bool:
        """Whether the tables were created in front of a position of the log, by a connection that may still be there:
        where the log has another name, the server was restarted in between."""
        return position.is_behind(self.created)
