"""All blocks of a barrier in one transaction, because temporary tables are open between them, which no log restores.

A temporary table survives ROLLBACK and ends with its connection. So after any error the connection is closed, and the
next attempt applies the whole stretch on a new one, after making the tables that are open before it again from their
copies (``temporary_copies``). The same holds for a barrier whose transaction needs a note, once an item shows it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

import pymysql

from binlane.apply.block import Applied, BlockPlace, Obstacle, Outcome
from binlane.apply.change_notes import ChangeNote, begin_whole, undo_noted
from binlane.apply.ddl.outcome import DdlPlace
from binlane.apply.ddl.run import beginning, has_not_run, run_ddl
from binlane.apply.nontransactional_tables import BlockItems, NontransactionalTables
from binlane.apply.temporary_copies import as_a_whole
from binlane.errors import BinlaneError, PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import Barrier, Item, ItemKind, RowCounts
from binlane.state.orders.orders import Orders, begin_ddl, end_ddl, read_orders
from binlane.state.positions import Counted, move_position, settle
from binlane.state.records.ddl_intents import TOGETHER, forget_intent, read_intent

if TYPE_CHECKING:
    from binlane.apply.lane.ways.task import BlockTask
    from binlane.apply.rows.writers import BlockWriter
    from binlane.apply.session.connection import LaneSession
    from binlane.apply.temporary_copies import CopyKeeper
    from binlane.plan.window_plan import Block


@dataclass(frozen=True, slots=True)
class WholeBarrier:
    """A barrier that one transaction passes."""

    has_note: bool = False

    def apply(self, task: BlockTask) -> Outcome:
        """Apply all blocks of the task's barrier. Returns None if the lanes do not stand before them, Orders if they
        must not move; ``Obstacle.NOTE``, with the session closed, if a change needs a note.

        A statement that commits implicitly and changes temporary tables has a barrier of its own and runs before the
        transaction: its effect ends with the connection. Other tables that it renames as well are renamed before that,
        exactly once (``divided_rename``). Raises PlanError for blocks that cannot be one transaction, and for an order
        to skip one of their transactions; and the errors of any block, with the session closed.
        """
        assert task.barrier is not None
        lane = task.lane
        watched = None if self.has_note else lane.watched()
        passage = _Passage(
            lane.session, lane.writer, task.place, task.barrier, lane.keeper, lane.ddl_lock_wait_timeout, watched,
            self.has_note,
        )  # fmt: skip
        return passage.apply(task.stream.up_to(task.barrier.last))


@dataclass(frozen=True, slots=True)
class _Passage:
    """The barrier while it is applied."""

    session: LaneSession
    writer: BlockWriter
    place: BlockPlace
    barrier: Barrier
    keeper: CopyKeeper
    ddl_lock_wait_timeout: int
    """Seconds."""
    watched: NontransactionalTables | None
    """The tables whose changes need a note."""
    has_note: bool
    """Whether the barrier's statements may change tables without transactions, and so run behind a note."""

    def apply(self, blocks: Iterator[Block]) -> Outcome:
        """Apply the barrier's blocks, streamed."""
        session, place, barrier = self.session, self.place, self.barrier
        first = next(blocks)
        session.use_format(first.format)
        is_noted = False
        try:
            rename = None
            if not barrier.together:
                watched = BlockItems(first.items, self.watched)
                items = tuple(watched)
                if watched.needs_note():
                    session.close()
                    return Obstacle.NOTE
                # few windows need it
                from binlane.apply.divided_rename import divided

                rename = divided(session, items[0], self.keeper.open_tables(session))
                if rename is not None and rename.permanent is not None:
                    with beginning(session, rename.permanent, self._ddl):
                        begun = self._begin_ddl()
                    if begun is None or begun.forbids(barrier.last):
                        return begun
                    self._rename(rename.permanent)
                self._run_before_transaction(items if rename is None else rename.temporary)
            has_ddl = rename is not None and rename.permanent is not None
            is_noted = self._note()
            session.begin()
            if not move_position(session.cursor, place.key, place.lanes, place.expected, barrier.last):
                self._undo()
                return None
            orders = read_orders(session.cursor, place.key, barrier.first, barrier.last, ends_ddl=True)
            # orders that were given while a DDL ran treat its seqno as reached
            if not has_ddl and orders.forbids(barrier.last):
                self._undo()
                return orders
            if not has_ddl:
                self._check_skipped(orders)
            forget_intent(session.cursor, place.key.channel, barrier.last)
            counted = self._write(first, blocks)
            if counted is None:
                # a new connection begins again, without this one's temporary tables
                session.close()
                return Obstacle.NOTE
            settle(session.cursor, place.key, place.lanes, place.lane, barrier.last, barrier.last, counted)
            place.moved(session.cursor, barrier.last)
        except BaseException as exc:
            if is_noted:
                undo_noted(session, exc, self._ddl)
            session.close()
            self.keeper.drop_made()
            raise
        # from here on they may be committed, whether an answer comes or not
        self.keeper.made.clear()
        session.commit()
        if barrier.temporary is not None:
            self.keeper.sweep(barrier.last)
        return Applied(barrier.last, counted)

    def _begin_ddl(self) -> Orders | None:
        """Let later orders treat the statement as reached; returns the orders as of now, None and changes nothing if
        the lanes do not stand before it."""
        session, place, barrier = self.session, self.place, self.barrier
        session.begin()
        if not begin_ddl(session.cursor, place.key, place.lanes, place.expected, barrier.last):
            session.rollback()
            return None
        orders = read_orders(session.cursor, place.key, barrier.first, barrier.last)
        if orders.forbids(barrier.last):
            session.rollback()
            return orders
        self._check_skipped(orders)
        session.commit()
        return orders

    @property
    def _ddl(self) -> DdlPlace:
        """Where the notes of the barrier are."""
        place = self.place
        return DdlPlace(place.key, place.channel_uuid, place.lane, self.barrier.last)

    def _note(self) -> bool:
        """Write the note of a barrier that needs one; returns whether it does. Raises UndecidableError."""
        if not self.has_note:
            return False
        session, place, barrier = self.session, self.place, self.barrier
        note = ChangeNote.of(read_intent(session.cursor, place.key.channel, barrier.last))
        what = f"seqnos {barrier.first}..{barrier.last}".encode()
        begin_whole(session, self._ddl, note, (Item(ItemKind.STATEMENT, what),), unit=TOGETHER)
        return True

    def _rename(self, item: Item) -> None:
        session, place, seqno = self.session, self.place, self.barrier.last
        try:
            run_ddl(session, self.writer, item, self._ddl, self.ddl_lock_wait_timeout)
        except (pymysql.err.MySQLError, BinlaneError) as exc:
            # if the connection is lost, the next attempt lets orders stop in front of it again
            with contextlib.suppress(pymysql.err.Error, OSError):
                if has_not_run(session, self._ddl, exc):
                    end_ddl(session.cursor, place.key, place.lanes, seqno)
            raise

    def _run_before_transaction(self, items: Iterable[Item]) -> None:
        for item in items:
            self.writer.run(item, self.writer.prepare(item))
        self.writer.context.leave()
        self.writer.forget_tables()

    def _check_skipped(self, orders: Orders) -> None:
        if orders.skipped:
            raise PlanError(
                f"seqnos {sorted(orders.skipped)} are to be skipped, but {as_a_whole(self.barrier)}; cancel the skip "
                "(`binlane skip CHANNEL --cancel`)"
            )

    def _write(self, first: Block, blocks: Iterator[Block]) -> Counted | None:
        """Write what belongs to the transaction: the blocks, unless the only one has run before, and the copies.

        Returns None if the next item needs a note.
        """
        session, writer, barrier = self.session, self.writer, self.barrier
        rows, count, transactions = RowCounts(), 0, 0
        if not barrier.together:
            count, transactions = 1, first.header.transactions
        for block in chain((first,), blocks) if barrier.together else ():
            if block.format != first.format:
                raise PlanError(
                    f"seqno {block.header.first_seqno}: temporary tables are open across a change of the "
                    "source's version"
                )
            items = BlockItems(block.items, self.watched)
            rows += writer.write(items, block.header.last_seqno)
            if items.needs_note():
                return None
            count, transactions = count + 1, transactions + block.header.transactions
        for thread_id, database, table in barrier.leftovers:
            writer.context.drop_temporary(thread_id, database, table)
        if barrier.temporary is not None and barrier.temporary.kept is not None:
            self.keeper.keep(session, writer.context, barrier.last, barrier.temporary.kept)
            session.own_clock()
        return Counted(rows, count, transactions)

    def _undo(self) -> None:
        """Undo the connection's work; a changed temporary table is undone only by the connection's end."""
        if self.barrier.together:
            self.session.rollback()
            if self.has_note:
                # nothing has been written
                forget_intent(self.session.cursor, self.place.key.channel, self.barrier.last)
        else:
            self.session.close()
