"""Tracks prepared XA transactions while a window is extracted, so that a missing XA PREPARE is found before the window
exists on the target.

Only XIDs are tracked here; the plan job pairs the transactions' halves.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from binlane.binlog.boundaries import Boundaries, Ending
from binlane.binlog.events import Query, XaPrepare, parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import XaName
from binlane.binlog.payload import unpack
from binlane.binlog.query import statement
from binlane.binlog.wire import EventType, RawEvent, where
from binlane.errors import BinlogError
from binlane.plan.transaction.xa import check_new, find, unknown
from binlane.shards.selection import EVERYTHING, Selection
from binlane.source.xa_statements import XaStatements

_SECOND_HALVES: Final = frozenset({Ending.XA_COMMIT, Ending.XA_ROLLBACK})


class XaTracker:
    """Tracks prepared XA transactions. Pass it the last event of every transaction, in order."""

    def __init__(self, known: Iterable[str] = (), selection: Selection = EVERYTHING) -> None:
        """``known``: the XIDs that are prepared at the window's beginning. ``selection``: the channel's."""
        self.statements = XaStatements(selection)
        """Those with statements, which is passed more events."""
        self._open: set[XaName] = set()
        self._from_before: set[XaName] = set()
        for text in known:
            name = XaName.of_statement(text.encode())
            if name is not None:
                self._from_before.add(name)
                self._open.add(name)
        self.ended: set[str] = set()
        """The XIDs of ``known`` that are committed or rolled back in the window."""

    def take(self, event: RawEvent, ending: Ending | None, log_format: FormatDescription, name: str) -> None:
        """Take ``event`` of the file ``name``, which ends a transaction.

        Raises UnsupportedEventError for an XA COMMIT whose XA PREPARE is not known, and for a second XA PREPARE.
        """
        if event.header.type_code == EventType.TRANSACTION_PAYLOAD:
            inside = _xa_inside(event, log_format, name)
            if inside is None:
                return
            event, ending = inside
        place = f"{name}:{event.offset}"
        if ending is Ending.XA_PREPARE:
            said = parse_body(event, log_format, name)
            assert isinstance(said, XaPrepare)
            check_new(said.name, self._open, place)
            self._open.add(said.name)
        elif ending in _SECOND_HALVES:
            query = parse_body(event, log_format, name)
            found = XaName.of_statement(query.sql) if isinstance(query, Query) else None
            if found is not None:
                self._end(found, ending is Ending.XA_COMMIT, place)

    def _end(self, name: XaName, commits: bool, place: str) -> None:
        key = find(name, self._open)
        if key is None:
            if commits:
                raise unknown(name, place)
            return
        self._open.discard(key)
        if key in self._from_before:
            self._from_before.discard(key)
            self.ended.add(str(key))


def _xa_inside(event: RawEvent, log_format: FormatDescription, name: str) -> tuple[RawEvent, Ending | None] | None:
    """The last event of a compressed XA transaction, and how it ends; None for any other transaction, which is not
    decompressed."""
    inner = unpack(event, name)
    boundaries = Boundaries(log_format, name)
    last = next(inner, None)
    if last is None or not _begins_xa(last, log_format, name):
        return None
    boundaries.feed(last)
    for last in inner:
        boundaries.feed(last)
    return last, boundaries.ending


def _begins_xa(event: RawEvent, log_format: FormatDescription, name: str) -> bool:
    if event.header.type_code != EventType.QUERY:
        return False
    try:
        sql = statement(event.body, log_format.post_header_length(EventType.QUERY))
    except struct.error as exc:
        raise BinlogError(f"{where(name, event.offset)}QUERY: {exc}; the event is damaged") from exc
    return bytes(sql[:3]).upper() == b"XA "
