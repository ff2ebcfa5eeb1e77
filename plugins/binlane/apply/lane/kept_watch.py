"""Finds the blocks of a lane that change tables without transactions, before they do: such a transaction needs a note.

A block of several transactions is taken apart then, so that a note, and the question that it may become, is about one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from binlane.apply.kept_changes import KeepsChangesError, KeptTables
from binlane.apply.nontransactional import takes_gtids
from binlane.apply.rows.writers import sends_row_events
from binlane.state.records.ddl_intents import kept_seqnos

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from binlane.apply.lane.options import ApplyOptions
    from binlane.apply.session.connection import LaneSession
    from binlane.model import Barrier, Flavor, Item
    from binlane.plan.window_plan import Block


@dataclass(slots=True)
class KeptWatch:
    """One attempt's knowledge of notes and tables."""

    session: LaneSession
    channel: str
    tables: KeptTables
    watches: bool
    """Whether the channel allows such tables, on a target that does not itself refuse them beside others."""
    noted: frozenset[tuple[int, int]] = frozenset()
    """Lane and seqno of each transaction with a note. It was begun before, whatever engines its tables have now."""

    @classmethod
    def of(
        cls, session: LaneSession, poll: Connection, channel: str, source: Flavor, options: ApplyOptions
    ) -> KeptWatch:
        """``poll``: another connection to the target than the lane's."""
        tables = KeptTables(poll, source, fires_triggers=not sends_row_events(options.writer))
        watches = options.allow_nontransactional and not takes_gtids(session)
        return cls(session, channel, tables, watches)

    @property
    def may_keep(self) -> Callable[[Item], bool]:
        """Whether an item may change a table without transactions."""
        return self.tables.may_keep

    def read(self) -> None:
        """Read the notes again: another runner may have left one."""
        self.noted = kept_seqnos(self.session.cursor, self.channel)

    def over(self, lane: int, block: Block, last: int | None = None) -> Block:
        """The block; taking its items raises KeepsChangesError before one that needs a note. ``last``: the last seqno
        of what is applied together with it, which its note has."""
        header = block.header
        ends = range(header.first_seqno, header.last_seqno + 1) if last is None else (last,)
        if self.noted and any((lane, seqno) in self.noted for seqno in ends):
            return replace(block, items=_noted())
        if not self.watches:
            return block
        self.tables.forget()
        return replace(block, items=self.tables.watched(block.items))

    def over_barrier(
        self, lane: int, blocks: Iterator[Block], barrier: Barrier, noted: Collection[int]
    ) -> Iterator[Block]:
        """The blocks of a barrier that one transaction passes, as ``over`` gives them, unless it is ``noted``."""
        for block in blocks:
            yield block if barrier.last in noted else self.over(lane, block, barrier.last)


def _noted() -> Iterator[Item]:
    raise KeepsChangesError
    yield
