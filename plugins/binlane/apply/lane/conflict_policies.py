"""What a lane does where the target's rows differ from those that the log expects: ``apply.on_conflict``.

Add a policy: a class with the methods of ``ConflictPolicy``, its word in ``choices.OnConflict``, a line in
``CONFLICT_POLICIES``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from binlane.apply.lane.ways.task import FailedBlock, Rewrite
from binlane.apply.nontransactional_tables import BlockItems
from binlane.apply.rows.conflict_detect import NeedsRewriteError, RowComparison
from binlane.apply.rows.conflict_overwrite import OverwritingRows
from binlane.apply.rows.sql import SqlRows
from binlane.apply.rows.writers import BlockWriter, sends_row_events
from binlane.apply.session.retry_verdicts import is_drift
from binlane.choices import OnConflict
from binlane.errors import DriftError
from binlane.model import Item, ItemKind, RowCounts
from binlane.state.records.conflicts import Conflict, record_conflicts

if TYPE_CHECKING:
    from binlane.apply.lane.run_state import AttemptState, RunState
    from binlane.apply.session.connection import LaneSession
    from binlane.plan.window_plan import Block


class ConflictPolicy(Protocol):
    """One policy of ``apply.on_conflict``."""

    rewrites: bool
    """Whether a block that has failed may be applied again: then its items are counted while they are read."""

    def writer(self, state: RunState, session: LaneSession, writer: BlockWriter) -> BlockWriter:
        """The writer of the lane's blocks, made from the usual one."""
        ...

    def rewrite(self, state: RunState, attempt: AttemptState, failed: FailedBlock) -> Rewrite:
        """How a block is applied again. Raises the block's ``cause`` if the policy does not help."""
        ...


class Stop:
    """A row that is missing or in the way is an error: all lanes stop."""

    rewrites = False

    def writer(self, state: RunState, session: LaneSession, writer: BlockWriter) -> BlockWriter:
        """The usual one: only a missing or duplicate key shows that somebody else has changed a row."""
        return writer

    def rewrite(self, state: RunState, attempt: AttemptState, failed: FailedBlock) -> Rewrite:
        """Raises the block's ``cause``."""
        raise failed.cause


class Overwrite:
    """Rows are compared before they are written; those with other values are corrected and recorded.

    A block that fails because of drift is rolled back and applied again, row by row: still one block, one transaction,
    the compare-and-set first. Corrected rows are recorded in that transaction. The block's transactions are built again
    from the segment, not folded, so rows come in the log's order.
    """

    rewrites = True

    def writer(self, state: RunState, session: LaneSession, writer: BlockWriter) -> BlockWriter:
        """The same writer, but it compares rows first and records those whose values differ from the log's."""

        def transactions(last_seqno: int) -> Iterator[tuple[int, Sequence[Item]]]:
            assert state.current is not None
            lane, header, _ = state.current
            if header.transactions > 1 and header.last_seqno == last_seqno:
                for piece in state.source.pieces(lane, header):
                    yield piece.header.last_seqno, tuple(piece.items)

        tables, note = SqlRows(session, writer.guard), partial(_record, state, session)
        writer.comparison = RowComparison(tables, note, transactions)
        return writer

    def rewrite(self, state: RunState, attempt: AttemptState, failed: FailedBlock) -> Rewrite:
        """The block's transactions, row by row.

        Raises ``cause`` if it is no drift. Writing raises it for a block with a DDL, and if a count was wrong and no
        row explains it; DriftError, with the table, for rows that must not be overwritten; and the errors of any block.
        """
        place, block, cause = failed.place, failed.block, failed.cause
        if not is_drift(cause):
            raise cause
        assert isinstance(block.items, BlockItems)
        # this also consumes the rest of the items: only then can the next block be read
        total = block.items.total()
        planned = total if block.planned is None or failed.planned is None else failed.planned
        session = attempt.session
        row_events = attempt.writer if sends_row_events(state.options.writer) else None
        note = partial(_record, state, session)
        rows = OverwritingRows(session, attempt.writer.guard, row_events=row_events, note=note)
        writer = attempt.writer.with_rows(rows)

        def pieces() -> Iterator[Block]:
            for piece in state.source.pieces(place.lane, block.header if block.planned is None else block.planned):
                if block.header.first_seqno <= piece.header.first_seqno <= block.header.last_seqno:
                    yield piece

        def write() -> RowCounts:
            written = RowCounts()
            for piece in pieces():
                items = tuple(piece.items)
                if any(item.kind is ItemKind.DDL for item in items):
                    raise cause
                # errors name this transaction, not its block
                state.current = (place.lane, piece.header, place.expected)
                written += writer.write(items, piece.header.last_seqno)
            if rows.explained == 0 and isinstance(cause, DriftError) and not isinstance(cause, NeedsRewriteError):
                raise cause
            return written

        items = (item for piece in pieces() for item in piece.items)
        return Rewrite(writer, replace(block, items=items), planned, write)


CONFLICT_POLICIES: Final[Mapping[OnConflict, ConflictPolicy]] = {
    OnConflict.STOP: Stop(),
    OnConflict.OVERWRITE: Overwrite(),
}


def _record(state: RunState, session: LaneSession, conflict: Conflict) -> None:
    """Record a conflict for the lane being applied, in its open transaction."""
    assert state.current is not None
    session.own_clock()
    record_conflicts(session.cursor, state.key, state.current[0], (conflict,))
