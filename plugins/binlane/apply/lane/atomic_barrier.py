"""All blocks of a barrier in one transaction, because temporary tables are open between them, which no log restores.

A temporary table survives ROLLBACK and ends with its connection. So after any error the connection is closed, and the
next attempt applies the whole stretch on a new one, after making the tables that are open before it again from their
copies (``temporary_copies``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from binlane.apply.block import Applied, BlockPlace
from binlane.errors import PlanError
from binlane.model import Barrier, RowCounts
from binlane.state.orders.orders import Orders, read_orders
from binlane.state.positions import Counted, move_position, settle

if TYPE_CHECKING:
    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession
    from binlane.apply.temporary_copies import CopyKeeper
    from binlane.plan.window_plan import Block


def apply_atomically(
    session: LaneSession,
    writer: BlockWriter,
    place: BlockPlace,
    blocks: Iterator[Block],
    barrier: Barrier,
    keeper: CopyKeeper,
) -> Applied | Orders | None:
    """Apply the barrier's blocks, streamed. Returns None if the lanes do not stand before them, Orders if they must not
    move.

    A statement that commits implicitly and changes temporary tables has a barrier of its own and runs before the
    transaction: it changes nothing else, and its effect ends with the connection. Raises PlanError for blocks that
    cannot be one transaction, and for an order to skip one of their transactions.
    """
    first = next(blocks)
    session.use_format(first.format)
    try:
        if not barrier.together:
            _run_before_transaction(writer, first)
        session.begin()
        if not move_position(session.cursor, place.key, place.lanes, place.expected, barrier.last):
            _undo(session, barrier)
            return None
        orders = read_orders(session.cursor, place.key, barrier.first, barrier.last)
        if orders.forbids(barrier.last):
            _undo(session, barrier)
            return orders
        if orders.skipped:
            raise PlanError(
                f"seqnos {sorted(orders.skipped)} are to be skipped, but temporary tables are open in "
                f"{barrier.first}..{barrier.last}, which can only be applied as a whole; cancel the skip "
                "(`binlane skip --cancel`)"
            )
        rows, count, transactions = RowCounts(), 0, 0
        if not barrier.together:
            count, transactions = 1, first.header.transactions
        for block in chain((first,), blocks) if barrier.together else ():
            if block.format != first.format:
                raise PlanError(
                    f"seqno {block.header.first_seqno}: temporary tables are open across a change of the "
                    "source's version"
                )
            rows += writer.write(block.items, block.header.last_seqno)
            count, transactions = count + 1, transactions + block.header.transactions
        for thread_id, database, table in barrier.leftovers:
            writer.context.drop_temporary(thread_id, database, table)
        if barrier.temporary is not None and barrier.temporary.kept is not None:
            keeper.keep(session, writer.context, barrier.last, barrier.temporary.kept)
            session.own_clock()
        counted = Counted(rows, count, transactions)
        settle(session.cursor, place.key, place.lanes, place.lane, barrier.last, barrier.last, counted)
        place.moved(session.cursor, barrier.last)
    except BaseException:
        session.close()
        raise
    session.commit()
    if barrier.temporary is not None:
        keeper.sweep(barrier.last)
    return Applied(barrier.last, counted)


def _run_before_transaction(writer: BlockWriter, block: Block) -> None:
    for item in block.items:
        writer.run(item, writer.prepare(item))
    writer.context.leave()
    writer.forget_tables()


def _undo(session: LaneSession, barrier: Barrier) -> None:
    """Undo the connection's work; a changed temporary table is undone only by the connection's end."""
    if barrier.together:
        session.rollback()
    else:
        session.close()
