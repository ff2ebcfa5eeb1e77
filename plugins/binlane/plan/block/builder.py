"""Builds blocks: transactions of one lane, in the source's order, that commit together on the target.

Row events are sent as logged, or folded to their net effect (``reduce``), in self-contained BINLOG statements: each has
all TABLE_MAPs that its rows events need, and STMT_END_F on its last rows event (``join_statements``). Logged statements
are executed at their place between the rows. A statement that commits implicitly is a block of its own.

Where a block ends: at the limits of ``BlockLimits``, here; at barriers, in ``segment.lane_writer``; among runs of plain
transactions, which are cut many at a time, in ``segment.run_writer``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.rows_payload import PACKET_SHARE, check_self_contained, ending_statement, ends_statement
from binlane.binlog.vector.join_statements import joined
from binlane.errors import UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import BlockHeader, DealtItem, Item, ItemKind, LogPosition, RowCounts, SessionContext, TableKey
from binlane.plan.block.bound_statements import StatementRules
from binlane.plan.block.computed_modes import Session
from binlane.plan.block.keyless_chains import ChainRules, with_chains_apart
from binlane.plan.block.reduce import Reducer, Reduction
from binlane.plan.block.row_range import RowRange

_HEADER = 19


@dataclass(frozen=True, slots=True)
class BlockLimits:
    """The limits at which a block ends, and a BINLOG statement inside it."""

    transactions: int
    bytes: int
    payload_bytes: int
    """Usual bytes of events in one BINLOG statement; a single larger event makes a larger statement."""
    largest_bytes: int
    """Most bytes of events in one BINLOG statement: as base64 (4/3) it must fit the target's max_allowed_packet."""
    seconds: int = 0
    """Longest source time between a block's first and last transaction; 0: no limit."""
    bound: StatementRules | None = None
    """The tables whose statements keep their ends inside a BINLOG statement; None: no table."""
    chains: ChainRules | None = None
    """The tables whose changes must not meet each other in one event; None: no table."""

    def shared_by(self, lanes: int) -> BlockLimits:
        """The limits of a block that several lanes share: each share is about as large as a block of one lane."""
        return replace(self, transactions=self.transactions * lanes, bytes=self.bytes * lanes)


@dataclass(frozen=True, slots=True)
class FinishedBlock:
    """A block as the plan job writes it."""

    header: BlockHeader
    items: Iterable[Item]
    """To be consumed once, before the builder is called again: the items of a large transaction are built on demand.
    They are ``DealtItem`` if the reducer deals."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """A TABLE_MAP or ROWS event of a transaction, checksum stripped."""

    event: bytes
    counts: RowCounts | None
    """None for a TABLE_MAP."""
    where: str
    """Prefix of error messages about the event."""
    mode: int | None = None
    """As ``BlockBuilder.compute_in``; the same for all events of a source statement."""


@dataclass(slots=True)
class RowsPayload:
    """Collects the events of BINLOG statements, and keeps each statement self-contained."""

    limit: int
    largest: int
    bound: StatementRules | None = None
    """As ``BlockLimits.bound``."""
    chains: ChainRules | None = None
    """As ``BlockLimits.chains``."""
    is_sent: bool = True
    """False for events that will be folded: the source's statements are not joined."""
    _events: list[bytes] = field(default_factory=list)
    _size: int = 0
    _counts: RowCounts = field(default_factory=RowCounts)
    _maps: dict[bytes, bytes] = field(default_factory=dict)
    """TABLE_MAPs of the current source statement, by table id."""
    _last_rows: int | None = None
    _ended: bool = True
    """STMT_END_F is set on the last rows event."""
    _open: bool = False
    """Inside a source statement: after its first TABLE_MAP, before STMT_END_F."""

    def add_map(self, event: bytes) -> None:
        """Take a TABLE_MAP event, checksum stripped."""
        if not self._open:
            self._maps.clear()
            self._open = True
        self._maps[event[_HEADER : _HEADER + 6]] = event
        self._append(event)

    def add_rows(self, event: bytes, counts: RowCounts, where: str) -> Iterator[Item]:
        """Take a ROWS event, checksum stripped. Yields the BINLOG statement that must end before it, if any.

        Raises UnsupportedEventError if the event alone, with its maps, is larger than a BINLOG statement may be.
        """
        check_fits(sum(map(len, self._maps.values())) + len(event), self.largest, where)
        if self._size + len(event) > self.limit and self._last_rows is not None:
            yield from self.flush(keep_maps=True)
        self._last_rows = len(self._events)
        self._append(event)
        self._counts += counts
        self._ended = ends_statement(event)
        if self._ended:
            self._open = False

    def add_whole(self, events: bytes, counts: RowCounts) -> bool:
        """Take the events of whole source statements at once; the last event is a rows event with STMT_END_F.

        Returns False and takes nothing if they do not all fit into this BINLOG statement: then add them one by one.
        """
        if self._size + len(events) > self.limit:
            return False
        self._last_rows = len(self._events)
        self._append(events)
        self._counts += counts
        self._ended, self._open = True, False
        return True

    @property
    def room(self) -> int:
        """Bytes that still fit into this BINLOG statement."""
        return self.limit - self._size

    def flush(self, *, keep_maps: bool = False) -> Iterator[Item]:
        """End the BINLOG statement. ``keep_maps``: the source's statement continues in the next one."""
        if self._last_rows is not None:
            events = self._events[: self._last_rows + 1]
            if not self._ended:
                events[-1] = ending_statement(events[-1])
            payload = b"".join(events)
            yield Item(ItemKind.ROWS, self._joined(payload) if self.is_sent else payload, self._counts)
        self._events, self._size, self._counts, self._last_rows = [], 0, RowCounts(), None
        if keep_maps and self._open:
            for event in self._maps.values():
                self._append(event)
        else:
            self._open = False

    def _joined(self, payload: bytes) -> bytes:
        bound, chains = self.bound, self.chains
        if bound is None and chains is None:
            return joined(payload)
        tables = check_self_contained(payload)
        if bound is None or all(bound.why(key) is None for key in tables):
            payload = joined(payload)
        if chains is not None and any(map(chains.may_lack_key, tables)):
            payload = with_chains_apart(payload, chains)
        return payload

    def _append(self, event: bytes) -> None:
        self._events.append(event)
        self._size += len(event)


@dataclass(slots=True)
class BlockBuilder:
    """Builds the blocks of one lane from its transactions, in order."""

    limits: BlockLimits
    reducer: Reducer | None = None
    """None: row events are sent as logged."""
    saved: dict[TableKey, RowCounts] = field(default_factory=dict)
    """Row changes written minus read in folded blocks, by table."""
    _payload: RowsPayload = field(init=False)
    _row_ranges: list[RowRange] = field(default_factory=list)
    """Row events of whole transactions that come before those of ``_payload``; ``_payload`` is empty meanwhile."""
    _row_range_bytes: int = 0
    """Bytes of ``_row_ranges``."""
    _mode: int | None = None
    """The modes in which the gathered rows are computed; None: they see none."""
    _items: list[Item] = field(default_factory=list)
    _first: BlockHeader | None = None
    _last: BlockHeader | None = None
    _transactions: int = 0
    _bytes: int = 0

    def __post_init__(self) -> None:
        # events to be folded are cut after folding: only a large transaction reaches this limit
        limit = self.limits.payload_bytes if self.reducer is None else 2 * self.limits.bytes
        most = self.limits.largest_bytes, self.limits.bound, self.limits.chains
        self._payload = RowsPayload(limit, *most, is_sent=self.reducer is None)

    def compute_in(self, mode: int | None) -> None:
        """The target computes columns of the rows that follow in these modes; None: they may have those of any other.

        Between statements of the source only. Rows of other modes are sent before them, and are not folded with them.
        """
        if mode is None or mode == self._mode:
            return
        if self._mode is not None:
            self._items.extend(self._flushed())
        self._mode = mode

    def add_event(self, event: bytes, counts: RowCounts | None, where: str, mode: int | None = None) -> None:
        """Take a TABLE_MAP (``counts`` None) or ROWS event of the current transaction; ``mode`` as ``compute_in``."""
        self.compute_in(mode)
        self._settle()
        self._bytes += len(event)
        if counts is None:
            self._payload.add_map(event)
        else:
            self._items.extend(self._as_written(self._payload.add_rows(event, counts, where)))

    def add_whole(self, events: bytes, largest: int, counts: RowCounts) -> bool:
        """Take all row events of whole transactions at once. Returns False and takes nothing if they may need a cut.

        ``largest``: bytes of the largest event.
        """
        self._settle()
        if largest > self.limits.largest_bytes // 2 or not self._payload.add_whole(events, counts):
            return False
        self._bytes += len(events)
        return True

    def add_row_range(self, row_range: RowRange, largest: int) -> bool:
        """``add_whole`` for events that will be folded: they are copied only then."""
        size = row_range.size
        if largest > self.limits.largest_bytes // 2 or size > self.payload_room:
            return False
        if self._payload.room < self._payload.limit:
            return self.add_whole(row_range.payload(), largest, RowCounts())
        self._row_ranges.append(row_range)
        self._row_range_bytes += size
        self._bytes += size
        return True

    def _settle(self) -> None:
        """Copy the gathered ranges into ``_payload``, which gathers events that come one by one."""
        if self._row_ranges:
            self._payload.add_whole(self._gathered().payload(), RowCounts())

    def _gathered(self) -> RowRange:
        gathered = RowRange.joined(self._row_ranges)
        self._row_ranges, self._row_range_bytes = [], 0
        return gathered

    @property
    def payload_room(self) -> int:
        """Bytes of events that still fit into the current BINLOG statement."""
        return self._payload.room - self._row_range_bytes

    def room(self) -> tuple[int, int]:
        """Transactions and bytes that still fit into this block; the transaction that uses them up ends it."""
        return self.limits.transactions - self._transactions, self.limits.bytes - self._bytes

    def end_before(self, commit_time: float) -> Iterator[FinishedBlock]:
        """End the block if a transaction committed at ``commit_time`` is too late for it."""
        if commit_time > self.deadline(commit_time):
            yield from self.finish()

    def deadline(self, commit_time: float) -> float:
        """The latest commit time in this block; a transaction of ``commit_time`` begins the block or is in it."""
        if not self.limits.seconds:
            return inf
        return self.limits.seconds + (commit_time if self._first is None else self._first.commit_time)

    def end_transactions(self, first: BlockHeader, last: BlockHeader, count: int) -> Iterator[FinishedBlock]:
        """Add consecutive transactions of the lane; yields the block if it is full."""
        self._first = first if self._first is None else self._first
        self._last = last
        self._transactions += count
        if self._transactions >= self.limits.transactions or self._bytes >= self.limits.bytes:
            yield from self.finish()

    def add_statement(self, item: Item) -> None:
        """Take a statement of the current transaction. The row events before it are sent first."""
        self._items.extend(self._flushed())
        self._items.append(item)
        self._bytes += len(item.payload)

    def is_large(self, size: int) -> bool:
        """Whether a transaction of ``size`` bytes becomes a block of its own, built piece by piece (``stream``)."""
        return size >= self.limits.bytes

    def are_large(self, size: NDArray[np.int64]) -> NDArray[np.bool_]:
        """``is_large`` of each size."""
        return size >= self.limits.bytes

    def stream(self, header: BlockHeader, parts: Iterable[LoggedEvent | Item]) -> Iterator[FinishedBlock]:
        """End the block, then make a block of one large transaction, in memory that does not grow with the transaction.

        The transaction is folded in pieces. This is safe because keys are checked row by row: they also hold between
        two of its rows events.
        """
        yield from self.finish()
        yield FinishedBlock(header, self._streamed(parts))

    def _streamed(self, parts: Iterable[LoggedEvent | Item]) -> Iterator[Item]:
        for part in parts:
            if isinstance(part, Item):
                self.add_statement(part)
            else:
                self.add_event(part.event, part.counts, part.where, part.mode)
            yield from self._items
            self._items = []
        yield from self._flushed()
        self._bytes, self._mode = 0, None

    def end_transaction(self, header: BlockHeader) -> Iterator[FinishedBlock]:
        """Add the current transaction, which ``header`` describes; yields the block if it is full."""
        yield from self.end_transactions(header, header, 1)

    def finish(self) -> Iterator[FinishedBlock]:
        """End the block here: at a barrier, before and after a DDL, at the segment's end."""
        if self._first is None or self._last is None:
            return
        self._items.extend(self._flushed())
        header = BlockHeader(
            first_seqno=self._first.first_seqno,
            last_seqno=self._last.last_seqno,
            transactions=self._transactions,
            source=self._first.source,
            gtid=self._last.gtid,
            commit_time=self._last.commit_time,
        )
        items = tuple(self._items)
        self._mode = None
        self._items, self._first, self._last, self._transactions, self._bytes = [], None, None, 0, 0
        yield FinishedBlock(header, items)

    def _flushed(self) -> Iterator[Item]:
        """The row events gathered so far, as logged or as their net effect."""
        if self._row_ranges and self.reducer is not None:
            return in_mode(_written(self.reducer.shares(self._gathered()), self.limits, self.saved), self._mode)
        return self._as_written(self._payload.flush())

    def _as_written(self, gathered: Iterator[Item]) -> Iterator[Item]:
        if self.reducer is None:
            yield from in_mode(gathered, self._mode)
            return
        for item in gathered:
            yield from in_mode(net_effect(item.payload, self.reducer, self.limits, self.saved), self._mode)


def in_mode(items: Iterator[Item], mode: int | None) -> Iterator[Item]:
    """ROWS items whose columns the target computes in these modes, of ``Session.seen``; None: the items as they are."""
    if mode is None:
        return items
    seen = Session.of(mode)
    context = SessionContext(sql_mode=seen.mode, time_zone=seen.zone, lc_time_names=seen.locale)
    return (replace(item, context=context) for item in items)


def net_effect(
    events: bytes, reducer: Reducer, limits: BlockLimits, saved: dict[TableKey, RowCounts]
) -> Iterator[Item]:
    """The net effect of row events, as BINLOG statements. Adds row changes written minus read to ``saved``."""
    return _written(reducer.shares(RowRange.of(events, reducer.rules)), limits, saved)


def _written(shares: Iterable[Reduction], limits: BlockLimits, saved: dict[TableKey, RowCounts]) -> Iterator[Item]:
    for share in shares:
        for item in _items_of(share, limits):
            yield item if share.lane is None else DealtItem.of(item, share.lane)
        for key, counts in share.saved.items():
            saved[key] = saved.get(key, RowCounts()) + counts


def _items_of(reduced: Reduction, limits: BlockLimits) -> Iterator[Item]:
    loose = RowsPayload(limits.payload_bytes, limits.largest_bytes, limits.bound, limits.chains)
    for event in reduced.loose:
        if event.counts is None:
            loose.add_map(event.event)
        else:
            yield from loose.add_rows(event.event, event.counts, "block")
    yield from loose.flush()
    yield from reduced.items


def check_fits(needed: int, largest: int, where: str) -> None:
    """Raises UnsupportedEventError if ``needed`` bytes of events, which cannot be cut, are too many for the target."""
    if needed > largest:
        raise UnsupportedEventError(
            f"{where}a rows event and its TABLE_MAP have {needed:,} bytes; the target accepts at most {largest:,} "
            "bytes of events in one BINLOG statement; SET GLOBAL max_allowed_packet = "
            f"{(int(needed / PACKET_SHARE) // 1024 + 5) * 1024} on the target, in its option file, too, then run again"
        )


def transaction_header(seqno: int, source: LogPosition, gtid: str, commit_time: float) -> BlockHeader:
    """The header of a block of a single transaction."""
    return BlockHeader(seqno, seqno, 1, source, gtid, commit_time)
