"""Finds the transaction of a block that the target refuses: applies them one by one, then rolls all of them back.

Nothing stays applied: position and data are rolled back together, and transactions that may change tables without
transactions are not tried. The row lock on the position keeps other runners from the lane meanwhile.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pymysql
from sqlalchemy.exc import SQLAlchemyError

from binlane.apply.lane.block_writers import LogFacts, block_writer
from binlane.apply.rows.cross_family import rows_events
from binlane.apply.rows.single_row import single_rows
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.retry_verdicts import Verdict, error_code, error_text, judge
from binlane.binlog.rows_payload import check_self_contained, events_of, is_table_map
from binlane.binlog.wire import type_name
from binlane.errors import BinlaneError, DriftError
from binlane.lazy_dataclass import dataclass
from binlane.model import BlockHeader, Flavor, Item, ItemKind
from binlane.state.positions import lock_position

if TYPE_CHECKING:
    from binlane.apply.lane.run_state import RunState
    from binlane.apply.rows.writers import BlockWriter
    from binlane.plan.window_plan import Block

_IS_TRANSACTIONAL: Final = (
    "SELECT 1 FROM information_schema.tables JOIN information_schema.engines USING (engine)"
    " WHERE table_schema = %s AND table_name = %s AND transactions = 'YES'"
)
_SHOWN: Final = 500
"""Bytes of a statement shown in a message."""
_PIECE: Final = f"piece_{secrets.token_hex(16)}"
"""A savepoint whose name no other one of the log's has."""


@dataclass(frozen=True, slots=True)
class Failing:
    """The transaction that the target refuses."""

    header: BlockHeader
    message: str
    """The target's error, with the statement or rows event that causes it."""


def find_failing(state: RunState, lane: int, block: BlockHeader, expected: int) -> Failing | None:
    """The first transaction of ``block`` that the target refuses; None if there is none, or if it cannot be found now.

    ``expected``: the lane's position. Raises nothing: the block's own error matters more.
    """
    with contextlib.suppress(SQLAlchemyError, pymysql.err.MySQLError, OSError, BinlaneError):
        session = LaneSession.open(state.engine, state.options.limits)
        try:
            return _first(session, state, lane, block, expected)
        finally:
            session.close()
    return None


def _first(session: LaneSession, state: RunState, lane: int, block: BlockHeader, expected: int) -> Failing | None:
    source = state.plan.flavor
    with state.engine.connect() as catalog, contextlib.closing(_pieces(state, lane, block)) as pieces:
        catalog = catalog.execution_options(isolation_level="AUTOCOMMIT")
        writer = block_writer(session, catalog, state.options, LogFacts.of(state.plan, state.checked))
        for number, piece in enumerate(pieces):
            if number == 0:
                writer.begin_block(piece.format)
                session.begin()
                if lock_position(session.cursor, state.key.channel, lane) != expected:
                    return None
            if piece.header.last_seqno <= expected:
                continue
            items = tuple(piece.items)
            if block.transactions == 1 and any(item.kind is not ItemKind.ROWS for item in items):
                return None  # a statement that may commit implicitly
            if state.options.allow_nontransactional and not _can_be_undone(session, items):
                return None
            session.execute(f"SAVEPOINT {_PIECE}")
            tracked = _Tracked(iter(items))
            try:
                writer.write(tracked, piece.header.last_seqno)
            except pymysql.err.MySQLError as exc:
                if judge(exc) is Verdict.RETRY:
                    return None
                where = _where(writer, piece.header, tracked.last, source)
                return Failing(piece.header, f"{error_code(exc)} {error_text(exc)}{where}")
            except BinlaneError as exc:
                return Failing(piece.header, f"{exc}{_described(tracked.last)}")
    return None


def _can_be_undone(session: LaneSession, items: Iterable[Item]) -> bool:
    """Whether they are rows of transactional tables alone. A statement may change any table, by a function."""
    return all(
        item.kind is ItemKind.ROWS
        and all(
            session.rows(_IS_TRANSACTIONAL, (table.database, table.table))
            for table in check_self_contained(item.payload)
        )
        for item in items
    )


def _pieces(state: RunState, lane: int, block: BlockHeader) -> Generator[Block, None, None]:
    yield from state.source.pieces(lane, block)


class _Tracked:
    """Items that remember the last one taken."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self.last: Item | None = None

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            self.last = item
            yield item


def _where(writer: BlockWriter, header: BlockHeader, item: Item | None, source: Flavor) -> str:
    """The refused rows event, found by writing the item's events one by one, as text."""
    if item is None or item.kind is not ItemKind.ROWS:
        return _described(item)
    with contextlib.suppress(pymysql.err.MySQLError, OSError, BinlaneError):
        events = tuple(rows_events(item.payload, source))
        writer.session.execute(f"ROLLBACK TO SAVEPOINT {_PIECE}")
        for number, (event, rows) in enumerate(events, 1):
            if _is_refused(writer, header, replace(item, payload=event, rows=rows)):
                found = f", in the rows event {number} of {len(events)} of the transaction: {_rows(event)}"
                return f"{found}{_row(writer, header, event, item, source)}"
    return _described(item)


def _row(writer: BlockWriter, header: BlockHeader, event: bytes, item: Item, source: Flavor) -> str:
    """The refused row as text: database, table, primary key and both images.

    The event's rows are written one by one. Returns "" if the event cannot be split into rows.
    """
    with contextlib.suppress(pymysql.err.MySQLError, OSError, BinlaneError):
        writer.session.execute(f"ROLLBACK TO SAVEPOINT {_PIECE}")
        for number, (alone, text) in enumerate(single_rows(event, writer.session, source), 1):
            [(_, rows)] = rows_events(alone, source)
            if _is_refused(writer, header, replace(item, payload=alone, rows=rows)):
                return f", row {number} of the event: {text}"
    return ""


def _is_refused(writer: BlockWriter, header: BlockHeader, item: Item) -> bool:
    try:
        writer.write((item,), header.last_seqno)
    except (pymysql.err.MySQLError, DriftError):
        return True
    return False


def _described(item: Item | None) -> str:
    if item is None or item.kind is ItemKind.FILE:
        return ""
    if item.kind is ItemKind.ROWS:
        return f", in {_rows(item.payload)}"
    return f", in the statement: {item.payload[:_SHOWN].decode('utf-8', 'backslashreplace')}"


def _rows(payload: bytes) -> str:
    kinds = [type_name(event[4]) for event in events_of(payload) if not is_table_map(event)]
    tables = ", ".join(sorted(map(str, check_self_contained(payload))))
    return f"{', '.join(dict.fromkeys(kinds))} of {tables}"
