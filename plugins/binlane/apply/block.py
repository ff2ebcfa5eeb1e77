"""One block in one target transaction: the position's compare-and-set, the orders, the payload, the counters, COMMIT.

This module owns the transaction; everything that it calls takes a session or cursor and never commits. A DDL commits
implicitly: it runs before the transaction that moves the position, and ``ddl`` makes it exactly once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import pymysql

from binlane.apply.change_notes import ChangeNote, begin_whole, undo_noted
from binlane.apply.ddl.outcome import DdlPlace
from binlane.apply.ddl.run import beginning, has_not_run, run_ddl
from binlane.apply.nontransactional import NontransactionalChanges, takes_gtids
from binlane.apply.session.rollback import undo
from binlane.errors import BinlaneError
from binlane.lazy_dataclass import dataclass
from binlane.model import ItemKind, RowCounts
from binlane.state.orders.orders import Orders, begin_ddl, end_ddl, read_orders
from binlane.state.orders.skips import mark_skipped
from binlane.state.positions import Counted, PlanKey, lock_position, move_position, settle
from binlane.state.records.ddl_intents import forget_intent, read_intent
from binlane.state.splits import add_piece

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession
    from binlane.model import Item
    from binlane.plan.window_plan import Block


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """The place of a block: its lane, the lanes that move with it, and the seqno at which they all must stand."""

    key: PlanKey
    channel_uuid: str
    lane: int
    lanes: tuple[int, ...]
    """Ascending; the lane itself, or the participants of its barrier."""
    expected: int
    record: Callable[[Cursor, int], None] | None = None
    """Called in the transaction that moves the lanes, with the seqno that they reach; writes to the state alone."""
    agree: Callable[[int], bool] | None = None
    """Called last in that transaction, with that seqno; returns whether the transaction may commit, and may wait."""

    def moved(self, cursor: Cursor, seqno: int) -> None:
        """The transaction moves the lanes to ``seqno``."""
        if self.record is not None:
            self.record(cursor, seqno)


@dataclass(frozen=True, slots=True)
class Applied:
    """The row changes of a block, and the seqno where its lanes stand after it."""

    seqno: int
    counted: Counted


class Obstacle(Enum):
    """Why a block was rolled back, although no statement of it failed."""

    NOTE = "an item may change a table without transactions, and its transaction has no note (``change_notes``)"
    AGREEMENT = "the lanes do not commit together"


Outcome: TypeAlias = Applied | Orders | Obstacle | None
"""What became of a block. All but Applied have changed nothing: Orders keep the block from being applied as planned,
None says that its lanes do not stand where it begins."""


def apply_block(
    session: LaneSession,
    writer: BlockWriter,
    place: BlockPlace,
    block: Block,
    end: Callable[[], int],
    ddl_lock_wait_timeout: int = 60,
    planned: RowCounts | None = None,
    *,
    nontransactional: bool = False,
    may_change: Callable[[Item], bool] = lambda _: True,
    needs_note: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Apply a block. Returns None and changes nothing if its lanes do not stand where it begins.

    Returns Orders and changes nothing if the block must not be applied as planned: it reaches beyond a stop, or holds
    transactions to skip together with others. If its only transaction is to be skipped, only the position moves.
    ``end`` is called after the items are consumed and returns the seqno to leave the lanes at, which for the last block
    before a barrier or the window's end lies behind the block's last seqno. ``planned``: for a piece, the row changes
    of its whole block. ``nontransactional``: the only transaction changes non-transactional tables: statement by
    statement, where the target has GTIDs for them (``apply.nontransactional``), or behind a note
    (``apply.change_notes``). ``may_change``: whether an item may change such a table. ``needs_note``: whether the items
    that were consumed have ended before one that needs a note: then the block is rolled back, and ``Obstacle.NOTE``
    returned. After an error the transaction is rolled back or the session closed.
    """
    writer.begin_block(block.format)
    task = _Task(session, writer, place, block, end, planned, may_change=may_change, needs_note=needs_note)
    items = iter(block.items)
    first = next(items, None)
    if needs_note():
        return Obstacle.NOTE
    if first is not None and (nontransactional or first.kind is ItemKind.DDL):
        return task.ddl(first, items, ddl_lock_wait_timeout, nontransactional=nontransactional)
    return task.transaction(iter(()) if first is None else chain((first,), items))


def rewrite_block(
    session: LaneSession,
    writer: BlockWriter,
    place: BlockPlace,
    block: Block,
    end: Callable[[], int],
    planned: RowCounts,
    write: Callable[[], RowCounts],
) -> Outcome:
    """Apply a rolled-back block without DDL by ``write``, in one transaction. Returns as ``apply_block``.

    ``write`` returns the row changes that it has made; they replace ``planned`` in the row counts.
    """
    return _Task(session, writer, place, block, end, planned, write).transaction(iter(block.items))


@dataclass(frozen=True, slots=True)
class LaneShare:
    """A lane's share of a block that one lane applies with the shares of all others."""

    lane: int
    writer: BlockWriter
    block: Block
    planned: RowCounts | None
    write: Callable[[], RowCounts] | None = None
    """Writes the share, as in ``rewrite_block``; None to write its items."""


def apply_shares(
    session: LaneSession,
    place: BlockPlace,
    shares: Sequence[LaneShare],
    end: Callable[[], int],
    begins: Callable[[LaneShare], None],
) -> Mapping[int, Applied] | Orders | None:
    """Apply all shares of a block in one transaction, which moves the lanes of ``place``. Returns as ``apply_block``,
    with what was applied by lane. Calls ``begins`` before it writes a share."""
    for share in shares:
        # the shares of one block have one format
        share.writer.begin_block(share.block.format)
    tasks = [
        _Task(session, share.writer, replace(place, lane=share.lane), share.block, end, share.planned, share.write)
        for share in shares
    ]
    session.begin()
    try:
        orders, may_write = tasks[0].move()
        if orders is None or not may_write:
            session.rollback()
            return orders
        counted = dict[int, Counted]()
        for share, task in zip(shares, tasks, strict=True):
            begins(share)
            counted[share.lane] = task.write(iter(share.block.items), orders)
        seqno = tasks[0].end_of(orders)
        stands = shares[0].block.header.last_seqno
        for lane, each in counted.items():
            settle(session.cursor, place.key, place.lanes, lane, stands, seqno, each)
            # the first one has moved them all
            stands = seqno
        place.moved(session.cursor, seqno)
    except BaseException:
        undo(session)
        raise
    session.commit()
    return {lane: Applied(seqno, each) for lane, each in counted.items()}


def move_only(session: LaneSession, place: BlockPlace, seqno: int) -> Orders | bool:
    """Move the positions to ``seqno`` if the lane has no more blocks before it. Returns False if they stand elsewhere,
    Orders if they must not move there."""
    session.begin()
    try:
        if not move_position(session.cursor, place.key, place.lanes, place.expected, seqno):
            session.rollback()
            return False
        orders = read_orders(session.cursor, place.key, seqno, seqno)
        if orders.forbids(seqno):
            session.rollback()
            return orders
        place.moved(session.cursor, seqno)
    except BaseException:
        undo(session)
        raise
    session.commit()
    return True


def record_standing(session: LaneSession, place: BlockPlace) -> None:
    """Record the lanes' place in a transaction of its own, unless another runner has moved them on."""
    session.begin()
    try:
        if lock_position(session.cursor, place.key.channel, place.lane) == place.expected:
            place.moved(session.cursor, place.expected)
    except BaseException:
        undo(session)
        raise
    session.commit()


def _undo(session: LaneSession, _: BaseException | None) -> None:
    undo(session)


@dataclass(frozen=True, slots=True)
class _Task:
    """One block while it is applied."""

    session: LaneSession
    writer: BlockWriter
    place: BlockPlace
    block: Block
    end: Callable[[], int]
    planned: RowCounts | None
    rewrite: Callable[[], RowCounts] | None = None
    """Writes the block; None to write its items."""
    may_change: Callable[[Item], bool] = lambda _: True
    """Whether an item may change a table without transactions."""
    needs_note: Callable[[], bool] = lambda: False
    """Whether the items have ended before one that needs a note."""

    def transaction(
        self,
        items: Iterator[Item],
        after_ddl: DdlPlace | None = None,
        roll_back: Callable[[LaneSession, BaseException | None], object] = _undo,
    ) -> Outcome:
        """The transaction that moves the position. ``after_ddl``: the DDL that has run before it. ``roll_back``:
        undoes what was written, behind an error if there was one."""
        session = self.session
        session.begin()
        try:
            orders, may_write = self.move(after_ddl)
            if orders is None or not may_write:
                session.rollback()
                return orders
            counted = self.write(items, orders, after_ddl)
            outcome = self._settle(orders, counted)
        except BaseException as exc:
            roll_back(session, exc)
            if isinstance(exc, Exception) and self.needs_note():
                # the items before that one meet the error again, in a transaction of their own
                return Obstacle.NOTE
            raise
        if isinstance(outcome, Obstacle):
            roll_back(session, None)
            return outcome
        session.commit()
        return outcome

    def _settle(self, orders: Orders, counted: Counted) -> Applied | Obstacle:
        """Record what was written, and look whether the transaction may commit."""
        if self.needs_note():
            return Obstacle.NOTE
        place, seqno = self.place, self.end_of(orders)
        settle(self.session.cursor, place.key, place.lanes, place.lane, self.block.header.last_seqno, seqno, counted)
        place.moved(self.session.cursor, seqno)
        if place.agree is not None and not place.agree(seqno):
            return Obstacle.AGREEMENT
        return Applied(seqno, counted)

    def move(self, after_ddl: DdlPlace | None = None) -> tuple[Orders | None, bool]:
        """Begin the transaction: move the position, then read the orders, None if it stands elsewhere; and whether the
        block may be written as planned."""
        place, header = self.place, self.block.header
        # first: its row lock keeps every other runner out before data is touched (invariant 8)
        if not move_position(self.session.cursor, place.key, place.lanes, place.expected, header.last_seqno):
            return None, False
        orders = read_orders(
            self.session.cursor,
            place.key,
            header.first_seqno,
            header.last_seqno,
            ends_ddl=after_ddl is not None,
        )
        if after_ddl is None:
            return orders, not orders.forbids(header.last_seqno) and not (orders.skipped and header.transactions > 1)
        # a DDL has committed already: orders given while it ran treat its seqno as reached
        forget_intent(self.session.cursor, after_ddl.key.channel, after_ddl.seqno)
        return orders, True

    def write(self, items: Iterator[Item], orders: Orders, after_ddl: DdlPlace | None = None) -> Counted:
        """Write the block, or skip its only transaction."""
        written = self._skip(items) if orders.skipped and after_ddl is None else self._write(items)
        return Counted(written, 1, self.block.header.transactions)

    def ddl(self, item: Item, rest: Iterator[Item], lock_wait_timeout: int, *, nontransactional: bool) -> Outcome:
        """A DDL and the rows of the table that it creates, exactly once: the DDL by its GTID, the rows by the position.

        ``nontransactional``: the rows by GTIDs as well, or by a note, and there may be no DDL before them.
        """
        session, place, header = self.session, self.place, self.block.header
        ddl_place = DdlPlace(place.key, place.channel_uuid, place.lane, header.last_seqno)
        has_ddl = item.kind is ItemKind.DDL
        with beginning(session, item, ddl_place) if has_ddl else contextlib.nullcontext():
            orders = self._begin_ddl()
        if orders is None or orders.forbids(header.last_seqno):
            return orders
        if orders.skipped:
            return self.transaction(chain((item,), rest))
        # the note of its rows has taken the place of the DDL's, which has run
        note = ChangeNote.of(read_intent(session.cursor, place.key.channel, header.last_seqno))
        if has_ddl and note is None:
            try:
                run_ddl(session, self.writer, item, ddl_place, lock_wait_timeout)
            except (pymysql.err.MySQLError, BinlaneError) as exc:
                self._ddl_failed(ddl_place, exc)
                raise
        elif not has_ddl:
            rest = chain((item,), rest)
        if not nontransactional:
            return self.transaction(rest, ddl_place)
        if not takes_gtids(session):
            return self._noted(tuple(rest), ddl_place, note, has_ddl=has_ddl)
        written = self._nontransactional(rest, ddl_place, has_ddl=has_ddl)
        return replace(self, rewrite=lambda: written).transaction(iter(()), ddl_place)

    def _begin_ddl(self) -> Orders | None:
        """Let later orders treat the statement as reached, unless an order says something else of it; the orders as of
        now, None if the lanes do not stand before it."""
        session, place, header = self.session, self.place, self.block.header
        session.begin()
        try:
            if not begin_ddl(session.cursor, place.key, place.lanes, place.expected, header.last_seqno):
                session.rollback()
                return None
            orders = read_orders(session.cursor, place.key, header.first_seqno, header.last_seqno)
            if orders.skipped or orders.forbids(header.last_seqno):
                session.rollback()
                return orders
        except BaseException:
            undo(session)
            raise
        session.commit()
        return orders

    def _noted(self, items: tuple[Item, ...], place: DdlPlace, note: ChangeNote | None, *, has_ddl: bool) -> Outcome:
        """The transaction, behind a note, since no rollback undoes a part of it."""
        if not begin_whole(self.session, place, note, items):
            written = sum((item.rows for item in items), RowCounts())
            return replace(self, rewrite=lambda: written).transaction(iter(()), place)

        def roll_back(session: LaneSession, error: BaseException | None) -> None:
            if undo_noted(session, error, place, items if has_ddl else None) and not has_ddl:
                self._withdraw()

        applied = self.transaction(iter(items), place, roll_back)
        if applied is None:
            # another runner has moved the lanes, and has removed its own note
            forget_intent(self.session.cursor, place.key.channel, place.seqno)
        return applied

    def _nontransactional(self, items: Iterator[Item], place: DdlPlace, *, has_ddl: bool) -> RowCounts:
        changes: NontransactionalChanges | None = None
        try:
            changes = NontransactionalChanges.of(self.session, self.writer, items, place, self.may_change)
            return changes.write()
        except (pymysql.err.MySQLError, BinlaneError) as exc:
            if not has_ddl and (changes is None or not changes.has_begun()):
                self._ddl_failed(place, exc)
            raise

    def _ddl_failed(self, place: DdlPlace, error: Exception) -> None:
        """Unless the statement may have run, it has not begun. If the connection is lost, the next attempt asks."""
        with contextlib.suppress(pymysql.err.Error, OSError):
            if has_not_run(self.session, place, error):
                self._withdraw()

    def _withdraw(self) -> None:
        """Let orders stop in front of the DDL again; if the connection is lost, the next attempt does so."""
        try:
            end_ddl(self.session.cursor, self.place.key, self.place.lanes, self.block.header.last_seqno)
        except (pymysql.err.Error, OSError):
            self.session.close()

    def _write(self, items: Iterator[Item]) -> RowCounts:
        write = self.rewrite
        written = self.writer.write(items, self.block.header.last_seqno) if write is None else write()
        if self.planned is not None and (self.block.planned is not None or write is not None):
            self._account(self.planned, written, RowCounts())
        return written

    def _skip(self, items: Iterator[Item]) -> RowCounts:
        """Leave the transaction out; its rows are counted as skipped."""
        rows = [item.rows for item in items]
        skipped = sum(rows, RowCounts())
        self._account(skipped if self.planned is None else self.planned, RowCounts(), skipped)
        channel, seqno = self.place.key.channel, self.block.header.last_seqno
        # the target may have run a part of a DDL before it refused the rest
        forget_intent(self.session.cursor, channel, seqno)
        mark_skipped(self.session.cursor, channel, seqno, has_changes=bool(rows))
        return RowCounts()

    def _account(self, planned: RowCounts, written: RowCounts, skipped: RowCounts) -> None:
        block = self.block.header if self.block.planned is None else self.block.planned
        done = self.block.header.transactions
        add_piece(self.session.cursor, self.place.key, self.place.lane, block, planned, written, skipped, done)

    def end_of(self, orders: Orders) -> int:
        """The seqno where the lanes stand after the block: not beyond a stop."""
        seqno, last = self.end(), self.block.header.last_seqno
        return seqno if orders.stop_at is None else max(last, min(seqno, orders.stop_at))
