"""Which transactions of a lane change tables without transactions and need a note, or have one already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from binlane.apply.nontransactional import takes_gtids
from binlane.apply.nontransactional_tables import NontransactionalTables
from binlane.apply.rows.writers import sends_row_events
from binlane.lazy_dataclass import dataclass
from binlane.state.records.ddl_intents import kept_seqnos

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from binlane.apply.lane.options import ApplyOptions
    from binlane.apply.session.connection import LaneSession
    from binlane.model import Flavor


@dataclass(slots=True)
class NoteWatch:
    """One attempt's knowledge of notes and tables."""

    session: LaneSession
    channel: str
    tables: NontransactionalTables
    watches: bool
    """Whether the channel allows such tables, on a target that does not itself refuse them beside others."""
    notes: frozenset[tuple[int, int]] = frozenset()
    """Lane and seqno of each transaction with a note. It was begun before, whatever engines its tables have now."""

    @classmethod
    def of(
        cls, session: LaneSession, poll: Connection, channel: str, source: Flavor, options: ApplyOptions
    ) -> NoteWatch:
        """``poll``: another connection to the target than the lane's."""
        tables = NontransactionalTables(poll, source, fires_triggers=not sends_row_events(options.writer))
        watches = options.allow_nontransactional and not takes_gtids(session)
        return cls(session, channel, tables, watches)

    def read(self) -> None:
        """Read the notes again: another runner may have left one."""
        self.notes = kept_seqnos(self.session.cursor, self.channel)

    def has_note(self, lane: int, first: int, last: int) -> bool:
        """Whether a transaction of these seqnos has a note."""
        return bool(self.notes) and any((lane, seqno) in self.notes for seqno in range(first, last + 1))

    def watched(self) -> NontransactionalTables | None:
        """The tables whose changes need a note, read anew for a block that begins; None if no change needs one."""
        if not self.watches:
            return None
        self.tables.forget()
        return self.tables
