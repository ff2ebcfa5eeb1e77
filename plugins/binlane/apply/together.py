"""All blocks of a barrier in one transaction: temporary tables are open between them, and no log could bring them back.

A temporary table survives ROLLBACK and dies with its connection: so after any error the connection is closed, and the
next attempt begins the whole stretch anew on another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from binlane.apply.block import Applied, BlockPlace
from binlane.errors import PlanError
from binlane.model import Barrier, RowCounts
from binlane.state.orders import Orders, read_orders
from binlane.state.positions import Counted, move_position, settle

if TYPE_CHECKING:
    from binlane.apply.session import LaneSession
    from binlane.apply.writers import BlockWriter
    from binlane.plan.window_plan import Block


def apply_together(
    session: LaneSession, writer: BlockWriter, place: BlockPlace, blocks: Iterator[Block], barrier: Barrier
) -> Applied | Orders | None:
    """Apply the barrier's blocks, streamed; None if the lanes do not stand before them, Orders if they must not move.

    Raises PlanError for blocks that cannot be one transaction, and for an order to leave one of them out.
    """
    first = next(blocks)
    session.use_format(first.format)
    session.begin()
    try:
        if not move_position(session.cursor, place.key, place.lanes, place.expected, barrier.last):
            session.rollback()
            return None
        orders = read_orders(session.cursor, place.key, barrier.first, barrier.last)
        if orders.forbids(barrier.last):
            session.rollback()
            return orders
        if orders.skipped:
            raise PlanError(
                f"seqnos {sorted(orders.skipped)} are to be skipped, and stand where temporary tables are open, in "
                f"{barrier.first}..{barrier.last}, which is all or nothing; take that back"
            )
        rows, count, transactions = RowCounts(), 0, 0
        for block in chain((first,), blocks):
            if block.format != first.format:
                raise PlanError(
                    f"seqno {block.header.first_seqno}: temporary tables are open over a change of the source's version"
                )
            rows += writer.write(block.items, block.header.last_seqno)
            count, transactions = count + 1, transactions + block.header.transactions
        for thread_id, database, table in barrier.leftovers:
            writer.context.drop_temporary(thread_id, database, table)
        counted = Counted(rows, count, transactions)
        settle(session.cursor, place.key, place.lanes, place.lane, barrier.last, barrier.last, counted)
    except BaseException:
        session.close()
        raise
    session.commit()
    return Applied(barrier.last, counted)
