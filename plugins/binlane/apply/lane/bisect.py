"""Which transaction of a block the target refuses: the block once more, transaction by transaction, then rolled back.

Nothing is applied by this: position and data go back with the transaction, whose row lock on the position keeps the
lane where the block has failed meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pymysql
from sqlalchemy.exc import SQLAlchemyError

from binlane.apply.rows.single_row import single_rows
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.context import ContextSetter
from binlane.apply.session.retry_verdicts import Verdict, error_code, error_text, judge
from binlane.binlog.rows_payload import (
    check_self_contained,
    ending_statement,
    events_of,
    is_table_map,
    rows_with_tables,
)
from binlane.binlog.wire import type_name
from binlane.errors import BinlaneError
from binlane.model import BlockHeader, Item, ItemKind
from binlane.state.positions import lock_position

if TYPE_CHECKING:
    from binlane.apply.lane.run_state import Course
    from binlane.plan.window_plan import Block

_SHOWN: Final = 500
"""Bytes of a statement in a message."""


@dataclass(frozen=True, slots=True)
class Failing:
    """The transaction that fails."""

    header: BlockHeader
    message: str
    """The target's error, and the statement or rows event that it is about."""


def find_failing(course: Course, lane: int, block: BlockHeader, expected: int) -> Failing | None:
    """The first transaction of ``block`` that the target refuses; None if there is none, or nobody can tell now.

    ``expected``: where the lane stands. Raises nothing: the block's own error is what matters.
    """
    with contextlib.suppress(SQLAlchemyError, pymysql.err.MySQLError, OSError, BinlaneError):
        session = LaneSession.open(course.engine, course.options.limits)
        try:
            return _first(session, course, lane, block, expected)
        finally:
            session.close()
    return None


def _first(session: LaneSession, course: Course, lane: int, block: BlockHeader, expected: int) -> Failing | None:
    writer = BlockWriter(session, ContextSetter(session))
    with contextlib.closing(_pieces(course, lane, block)) as pieces:
        for number, piece in enumerate(pieces):
            if number == 0:
                session.use_format(piece.format)
                session.begin()
                if lock_position(session.cursor, course.key.channel, lane) != expected:
                    return None
            if piece.header.last_seqno <= expected:
                continue
            items = tuple(piece.items)
            if block.transactions == 1 and any(item.kind is not ItemKind.ROWS for item in items):
                return None  # it may be a statement that commits by itself
            session.execute("SAVEPOINT piece")
            told = _Told(iter(items))
            try:
                writer.write(told, piece.header.last_seqno)
            except pymysql.err.MySQLError as exc:
                if judge(exc) is Verdict.RETRY:
                    return None
                return Failing(piece.header, f"{error_code(exc)} {error_text(exc)}{_where(session, told.last)}")
            except BinlaneError as exc:
                return Failing(piece.header, f"{exc}{_described(told.last)}")
    return None


def _pieces(course: Course, lane: int, block: BlockHeader) -> Generator[Block, None, None]:
    yield from course.source.pieces(lane, block)


class _Told:
    """Items that remember which was taken last."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self.last: Item | None = None

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            self.last = item
            yield item


def _where(session: LaneSession, item: Item | None) -> str:
    """The rows event that fails, found by sending the item's events one by one."""
    if item is None or item.kind is not ItemKind.ROWS:
        return _described(item)
    statements = tuple(_statements(item.payload))
    with contextlib.suppress(pymysql.err.MySQLError, OSError, BinlaneError):
        session.execute("ROLLBACK TO SAVEPOINT piece")
        for number, statement in enumerate(statements, 1):
            try:
                session.binlog(statement)
            except pymysql.err.MySQLError:
                found = f", in the rows event {number} of {len(statements)} of the transaction: {_rows(statement)}"
                return f"{found}{_row(session, statement)}"
    return _described(item)


def _row(session: LaneSession, statement: bytes) -> str:
    """The row of a rows event that the target refuses: database, table, primary key and both images.

    Its rows are sent one by one. Of an event that cannot be taken apart nothing is said.
    """
    with contextlib.suppress(pymysql.err.MySQLError, OSError, BinlaneError):
        session.execute("ROLLBACK TO SAVEPOINT piece")
        for number, (alone, text) in enumerate(single_rows(statement, session), 1):
            try:
                session.binlog(alone)
            except pymysql.err.MySQLError:
                return f", row {number} of it: {text}"
    return ""


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


def _statements(payload: bytes) -> Iterator[bytes]:
    """Each rows event with its TABLE_MAP, ended as a source statement: self-contained."""
    return (table_map + ending_statement(rows) for table_map, rows in rows_with_tables(payload, bytes))
