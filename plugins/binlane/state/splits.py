"""Row counts of blocks that were applied transaction by transaction (docs/invariants.md, 5).

A split block has one row: its first transaction inserts the row and each further one adds to it, together with the
position. The lanes' counters may differ from the plan's totals by exactly planned - written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, select

from binlane.lazy_dataclass import dataclass
from binlane.model import RowCounts
from binlane.state.tables import splits

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from binlane.model import BlockHeader
    from binlane.state.positions import PlanKey

_ADD: Final = (
    "INSERT INTO binlane.splits (channel, window_id, lane, first_seqno, last_seqno, transactions, "
    "planned_inserts, planned_updates, planned_deletes, written_inserts, written_updates, written_deletes, "
    "skipped_inserts, skipped_updates, skipped_deletes, done) "
    "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON DUPLICATE KEY UPDATE "
    "written_inserts = written_inserts + VALUES(written_inserts), "
    "written_updates = written_updates + VALUES(written_updates), "
    "written_deletes = written_deletes + VALUES(written_deletes), "
    "skipped_inserts = skipped_inserts + VALUES(skipped_inserts), "
    "skipped_updates = skipped_updates + VALUES(skipped_updates), "
    "skipped_deletes = skipped_deletes + VALUES(skipped_deletes), done = done + VALUES(done)"
)


@dataclass(frozen=True, slots=True)
class Split:
    """A block that was applied transaction by transaction."""

    lane: int
    first_seqno: int
    last_seqno: int
    transactions: int
    planned: RowCounts
    written: RowCounts
    skipped: RowCounts
    done: int
    """Transactions done, skipped ones included."""


def add_piece(
    cursor: Cursor,
    key: PlanKey,
    lane: int,
    block: BlockHeader,
    planned: RowCounts,
    written: RowCounts,
    skipped: RowCounts,
    done: int = 1,
) -> None:
    """Add ``done`` transactions of a block to its row, in the transaction that moves the position."""
    counts = (amount for rows in (planned, written, skipped) for amount in (rows.inserts, rows.updates, rows.deletes))
    place = (key.channel, key.window_id, lane, block.first_seqno, block.last_seqno, block.transactions)
    cursor.execute(_ADD, (*place, *counts, done))


def is_split(cursor: Cursor, key: PlanKey, lane: int, block: BlockHeader) -> bool:
    """Whether the block has a row in ``binlane.splits``."""
    found = cursor.execute(
        "SELECT 1 FROM binlane.splits WHERE channel = %s AND window_id = %s AND lane = %s AND first_seqno = %s "
        "AND last_seqno = %s",
        (key.channel, key.window_id, lane, block.first_seqno, block.last_seqno),
    )
    return found > 0


def read_splits(connection: Connection, channel: str, window_id: str) -> tuple[Split, ...]:
    """The window's split blocks, by lane and seqno."""
    rows = connection.execute(
        select(splits)
        .where(splits.c.channel == channel, splits.c.window_id == window_id)
        .order_by(splits.c.lane, splits.c.first_seqno)
    )
    return tuple(
        Split(
            row.lane,
            row.first_seqno,
            row.last_seqno,
            row.transactions,
            RowCounts(row.planned_inserts, row.planned_updates, row.planned_deletes),
            RowCounts(row.written_inserts, row.written_updates, row.written_deletes),
            RowCounts(row.skipped_inserts, row.skipped_updates, row.skipped_deletes),
            row.done,
        )
        for row in rows
    )
