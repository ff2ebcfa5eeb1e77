"""Whole transactions of a log.

``Boundaries`` gives the place of each event relative to transactions; ``transactions`` yields whole transactions by the
same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from binlane.binlog.boundaries import Boundaries, Ending, Place
from binlane.binlog.events import Query, XaPrepare, parse_body
from binlane.binlog.gtids import Gtid, MariadbGtid, XaName
from binlane.binlog.payload import unpack
from binlane.binlog.reader import LogReader
from binlane.binlog.wire import LOG_BEGIN, BufferOffset, EventType, RawEvent, where
from binlane.errors import BinlogError, TruncatedEventError
from binlane.lazy_dataclass import dataclass

__all__ = ["Boundaries", "Ending", "IncompleteTail", "Place", "Transaction", "transactions"]

_T = EventType
_GTID_TYPES: Final = frozenset({_T.GTID, _T.ANONYMOUS_GTID, _T.GTID_TAGGED, _T.MARIADB_GTID})
_XA_ENDINGS: Final = frozenset({Ending.XA_PREPARE, Ending.XA_COMMIT, Ending.XA_ROLLBACK, Ending.ONE_PHASE})


@dataclass(frozen=True, slots=True)
class Transaction:
    """The events of one transaction, or of one half of an XA transaction."""

    gtid: str
    """MySQL ``uuid:n`` or ``uuid:tag:n``, MariaDB ``domain-server-sequence``; empty without a GTID."""
    start: BufferOffset
    """Offset of the transaction's first byte, and of the first byte after it."""
    end: BufferOffset
    commit_time: float
    """Seconds since the epoch. MySQL 8: of the commit; otherwise the time in its first event's header."""
    group_flags: int
    """Flags of the GTID event; 0 without a GTID."""
    events: tuple[RawEvent, ...]
    """All events, GTID and ending included; in place of TRANSACTION_PAYLOAD, the events inside it."""
    ending: Ending
    xa: XaName | None = None
    """The XID, for the four XA endings."""


@dataclass(frozen=True, slots=True)
class IncompleteTail:
    """An incomplete transaction at a log's end."""

    offset: BufferOffset
    """Where it begins; everything before was read."""
    reason: str
    in_use: bool
    """Whether the file was not closed: the server is writing it, or has crashed."""


def transactions(
    reader: LogReader,
    on_incomplete: Callable[[IncompleteTail], None] | None = None,
    *,
    start: BufferOffset = LOG_BEGIN,
    outside: Callable[[RawEvent], None] | None = None,
) -> Iterator[Transaction]:
    """Every whole transaction of the log, in order. ``start``: the offset of an event between transactions.

    ``outside`` gets the events between transactions.

    If the log ends inside a transaction, all earlier ones are yielded; then ``on_incomplete`` is called and the
    iterator ends, or, without ``on_incomplete``, TruncatedEventError is raised. Raises BinlogError for a damaged log.
    """
    boundaries = Boundaries(reader.format, reader.name)
    collected: list[RawEvent] = []
    reason = "the file ends inside a transaction"
    try:
        for event in reader.events(start):
            place = boundaries.feed(event)
            if place is Place.OUTSIDE:
                if outside is not None:
                    outside(event)
                continue
            collected.append(event)
            if place is Place.END:
                yield _transaction(collected, boundaries, reader)
                collected = []
    except TruncatedEventError as exc:
        reason = str(exc)
    else:
        if boundaries.open_since is None:
            return
    at = boundaries.open_since if boundaries.open_since is not None else reader.position
    if on_incomplete is None:
        raise TruncatedEventError(f"{where(reader.name, at)}incomplete tail: {reason}")
    on_incomplete(IncompleteTail(BufferOffset(at), reason, reader.in_use))


def _transaction(collected: list[RawEvent], boundaries: Boundaries, reader: LogReader) -> Transaction:
    first, last = collected[0], collected[-1]
    ending = boundaries.ending
    events = tuple(collected)
    if last.header.type_code == _T.TRANSACTION_PAYLOAD:
        inner, ending = _unpacked(last, reader)
        events = (*collected[:-1], *inner)
    assert ending is not None
    identity = identify(first, reader)
    return Transaction(
        gtid=identity.gtid,
        start=first.offset,
        end=BufferOffset(last.offset + last.header.event_size),
        commit_time=identity.commit_time,
        group_flags=identity.flags,
        events=events,
        ending=ending,
        xa=_xa_name(identity.xa, events, ending, reader),
    )


def _unpacked(event: RawEvent, reader: LogReader) -> tuple[tuple[RawEvent, ...], Ending]:
    """The events inside a payload; they must be one whole transaction by the same rules."""
    boundaries = Boundaries(reader.format, reader.name)
    inner: list[RawEvent] = []
    for unpacked in unpack(event, reader.name, reader.event_bytes):
        if boundaries.ending is not None:
            raise BinlogError(f"{where(reader.name, event.offset)}TRANSACTION_PAYLOAD: events behind its transaction")
        boundaries.feed(unpacked)
        inner.append(unpacked)
    if boundaries.ending is None:
        raise BinlogError(f"{where(reader.name, event.offset)}TRANSACTION_PAYLOAD: its transaction does not end in it")
    return tuple(inner), boundaries.ending


class Identity(NamedTuple):
    """A transaction's GTID and commit time."""

    gtid: str
    flags: int
    commit_time: float
    xa: XaName | None = None


def identify(first: RawEvent, reader: LogReader) -> Identity:
    """GTID and time from a transaction's first event. Raises BinlogError."""
    header = first.header
    if header.type_code not in _GTID_TYPES:
        return Identity("", 0, float(header.timestamp))
    gtid = parse_body(first, reader.format, reader.name)
    if isinstance(gtid, MariadbGtid):
        return Identity(gtid.name(header.server_id), int(gtid.flags), float(header.timestamp), gtid.xa)
    assert isinstance(gtid, Gtid)
    committed = gtid.immediate_commit_timestamp
    commit_time = float(header.timestamp) if committed is None else committed / 1_000_000
    return Identity("" if header.type_code == _T.ANONYMOUS_GTID else str(gtid), gtid.flags, commit_time)


def _xa_name(
    from_gtid: XaName | None, events: tuple[RawEvent, ...], ending: Ending, reader: LogReader
) -> XaName | None:
    if from_gtid is not None or ending not in _XA_ENDINGS:
        return from_gtid
    said = parse_body(events[-1], reader.format, reader.name)
    if isinstance(said, XaPrepare):
        return said.name
    return XaName.of_statement(said.sql) if isinstance(said, Query) else None
