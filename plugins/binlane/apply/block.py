"""One block, one transaction: the position's compare-and-set, the payload, the counters, COMMIT.

This is the owner of the transaction; what it calls takes a session or cursor and never commits. A DDL commits by
itself: it runs before the transaction that moves the position, exactly once by other means (ddl.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import pymysql

from binlane.apply.ddl import DdlPlace, forget_intent, run_ddl
from binlane.model import ItemKind, RowCounts
from binlane.state.positions import Counted, PlanKey, move_position, read_positions, settle

if TYPE_CHECKING:
    from binlane.apply.session import LaneSession
    from binlane.apply.writers import BlockWriter
    from binlane.model import Item
    from binlane.plan.window_plan import Block


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Where a block goes: its lane, the lanes that move with it, and the seqno at which they all must stand."""

    key: PlanKey
    channel_uuid: str
    lane: int
    lanes: tuple[int, ...]
    """Ascending; the lane itself, or the participants of its barrier."""
    expected: int


@dataclass(frozen=True, slots=True)
class Applied:
    """What a block did and where its lanes stand now."""

    seqno: int
    counted: Counted


def apply_block(
    session: LaneSession,
    writer: BlockWriter,
    place: BlockPlace,
    block: Block,
    end: Callable[[], int],
    ddl_lock_wait_timeout: int = 60,
) -> Applied | None:
    """Apply a block; None, and nothing is changed, if its lanes do not stand where it begins.

    ``end`` is asked once the items are consumed: the seqno to leave the lanes at, which for the last block before a
    barrier or the window's end lies behind the block's own last seqno. After an error the transaction is rolled back
    or the session closed.
    """
    session.use_format(block.format)
    items = iter(block.items)
    first = next(items, None)
    if first is not None and first.kind is ItemKind.DDL:
        return _apply_ddl(session, writer, place, block, first, items, end, ddl_lock_wait_timeout)
    items = iter(()) if first is None else chain((first,), items)
    return _transaction(session, place, block, lambda: writer.write(items, block.header.last_seqno), end)


def move_only(session: LaneSession, place: BlockPlace, seqno: int) -> bool:
    """Arrive: move the positions where no block of the lane is left before ``seqno``. False if they stand elsewhere."""
    session.begin()
    try:
        if not move_position(session.cursor, place.key, place.lanes, place.expected, seqno):
            session.rollback()
            return False
    except BaseException:
        undo(session)
        raise
    session.commit()
    return True


def undo(session: LaneSession) -> None:
    """Roll back after an error, or close the session if that fails: half a block must never be committed."""
    try:
        session.rollback()
    except (pymysql.err.Error, OSError):
        session.close()


def _apply_ddl(
    session: LaneSession,
    writer: BlockWriter,
    place: BlockPlace,
    block: Block,
    item: Item,
    rest: Iterator[Item],
    end: Callable[[], int],
    lock_wait_timeout: int,
) -> Applied | None:
    """A DDL and the rows that fill what it creates, exactly once: the DDL by its GTID, the rows by the position."""
    positions = read_positions(session.cursor, place.key)
    if any(positions.get(lane) != place.expected for lane in place.lanes):
        return None
    ddl_place = DdlPlace(place.key, place.channel_uuid, place.lane, block.header.last_seqno)
    run_ddl(session, writer, item, ddl_place, lock_wait_timeout)

    def record() -> RowCounts:
        forget_intent(session, ddl_place)
        return writer.write(rest, block.header.last_seqno)

    return _transaction(session, place, block, record, end)


def _transaction(
    session: LaneSession, place: BlockPlace, block: Block, write: Callable[[], RowCounts], end: Callable[[], int]
) -> Applied | None:
    header = block.header
    session.begin()
    try:
        # first of all: its row lock keeps any other runner out before data is touched (invariant 8)
        if not move_position(session.cursor, place.key, place.lanes, place.expected, header.last_seqno):
            session.rollback()
            return None
        counted = Counted(write(), 1, header.transactions)
        seqno = end()
        settle(session.cursor, place.key, place.lanes, place.lane, header.last_seqno, seqno, counted)
    except BaseException:
        undo(session)
        raise
    session.commit()
    return Applied(seqno, counted)
