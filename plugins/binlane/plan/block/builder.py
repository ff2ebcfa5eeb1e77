"""Transactions of one lane become blocks: what commits together on the target, in the source's order.

Its row events go to the target as they are, or folded to their net effect (``reduce``), in BINLOG statements that are
each self-contained (all TABLE_MAPs that the rows events need, STMT_END_F on the last rows event: ``join_statements``);
its statements are executed in their place between them. A statement that commits by itself stands alone in its block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.rows_payload import PACKET_SHARE, ending_statement, ends_statement
from binlane.binlog.vector.join_statements import joined
from binlane.errors import UnsupportedEventError
from binlane.model import BlockHeader, Item, ItemKind, LogPosition, RowCounts, TableKey
from binlane.plan.block.reduce import Reduced, Reducer
from binlane.plan.block.row_range import Stretch

_HEADER = 19


@dataclass(frozen=True, slots=True)
class BlockLimits:
    """What ends a block, and what ends a BINLOG statement inside it."""

    transactions: int
    bytes: int
    payload_bytes: int
    """Bytes of events in one BINLOG statement, usually; a single larger event makes a larger statement."""
    largest_bytes: int
    """Bytes of events in the largest statement: as base64 (4/3) it must fit the target's max_allowed_packet."""
    seconds: int = 0
    """Of source time between a block's first transaction and its last, at most; 0: any."""


@dataclass(frozen=True, slots=True)
class FinishedBlock:
    """A block as the filter job writes it."""

    header: BlockHeader
    items: Iterable[Item]
    """Consumed once, before the builder is given anything else: a large transaction's are built meanwhile."""


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """A TABLE_MAP or ROWS event of a transaction, checksum stripped."""

    event: bytes
    counts: RowCounts | None
    """None for a TABLE_MAP."""
    where: str
    """The beginning of a message about it."""


@dataclass(slots=True)
class RowsPayload:
    """Grows the events of one BINLOG statement, and keeps each such statement self-contained."""

    limit: int
    largest: int
    is_sent: bool = True
    """False for events that are folded first: their statements stay apart."""
    _events: list[bytes] = field(default_factory=list)
    _size: int = 0
    _counts: RowCounts = field(default_factory=RowCounts)
    _maps: dict[bytes, bytes] = field(default_factory=dict)
    """TABLE_MAPs of the current source statement, by table id."""
    _last_rows: int | None = None
    _ended: bool = True
    """The last rows event carries STMT_END_F already."""
    _open: bool = False
    """Inside a source statement: maps were seen and STMT_END_F was not."""

    def add_map(self, event: bytes) -> None:
        """Take a TABLE_MAP event, checksum stripped."""
        if not self._open:
            self._maps.clear()
            self._open = True
        self._maps[event[_HEADER : _HEADER + 6]] = event
        self._append(event)

    def add_rows(self, event: bytes, counts: RowCounts, where: str) -> Iterator[Item]:
        """Take a ROWS event, checksum stripped; yields the statement that had to end before it, if one had to.

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
        """Take events of whole source statements at once, the last a rows event with STMT_END_F.

        False, and nothing is taken, if they do not all fit into this BINLOG statement: add them one by one then.
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
        """Bytes that still go into this BINLOG statement."""
        return self.limit - self._size

    def flush(self, *, keep_maps: bool = False) -> Iterator[Item]:
        """End the BINLOG statement. ``keep_maps``: the source's statement goes on in the next one."""
        if self._last_rows is not None:
            events = self._events[: self._last_rows + 1]
            if not self._ended:
                events[-1] = ending_statement(events[-1])
            payload = b"".join(events)
            yield Item(ItemKind.ROWS, joined(payload) if self.is_sent else payload, self._counts)
        self._events, self._size, self._counts, self._last_rows = [], 0, RowCounts(), None
        if keep_maps and self._open:
            for event in self._maps.values():
                self._append(event)
        else:
            self._open = False

    def _append(self, event: bytes) -> None:
        self._events.append(event)
        self._size += len(event)


@dataclass(slots=True)
class BlockBuilder:
    """Builds the blocks of one lane from its transactions, in order."""

    limits: BlockLimits
    reducer: Reducer | None = None
    """None: row events are replayed as they are."""
    saved: dict[TableKey, RowCounts] = field(default_factory=dict)
    """Row changes that reduced blocks write less those read, by table."""
    _payload: RowsPayload = field(init=False)
    _stretches: list[Stretch] = field(default_factory=list)
    """Row events of whole transactions that stand before those of ``_payload``, which has none then."""
    _stretched: int = 0
    """Bytes of these."""
    _items: list[Item] = field(default_factory=list)
    _first: BlockHeader | None = None
    _last: BlockHeader | None = None
    _transactions: int = 0
    _bytes: int = 0

    def __post_init__(self) -> None:
        # a stretch is folded whole and cut afterwards: only a large transaction can have more than this
        limit = self.limits.payload_bytes if self.reducer is None else 2 * self.limits.bytes
        self._payload = RowsPayload(limit, self.limits.largest_bytes, is_sent=self.reducer is None)

    def add_event(self, event: bytes, counts: RowCounts | None, where: str) -> None:
        """Take a TABLE_MAP (``counts`` None) or ROWS event of the current transaction."""
        self._settle()
        self._bytes += len(event)
        if counts is None:
            self._payload.add_map(event)
        else:
            self._items.extend(self._as_written(self._payload.add_rows(event, counts, where)))

    def add_whole(self, events: bytes, largest: int, counts: RowCounts) -> bool:
        """Take all row events of whole transactions at once; False, and nothing is taken, if they may need a cut.

        ``largest``: bytes of the largest of them.
        """
        self._settle()
        if largest > self.limits.largest_bytes // 2 or not self._payload.add_whole(events, counts):
            return False
        self._bytes += len(events)
        return True

    def add_stretch(self, stretch: Stretch, largest: int) -> bool:
        """As ``add_whole``, for events that are to be folded: they stay where they are until then."""
        size = stretch.size
        if largest > self.limits.largest_bytes // 2 or size > self.payload_room:
            return False
        if self._payload.room < self._payload.limit:
            return self.add_whole(stretch.payload(), largest, RowCounts())
        self._stretches.append(stretch)
        self._stretched += size
        self._bytes += size
        return True

    def _settle(self) -> None:
        """Events that come one by one are gathered as bytes, and so are those before them."""
        if self._stretches:
            self._payload.add_whole(self._gathered().payload(), RowCounts())

    def _gathered(self) -> Stretch:
        gathered = Stretch.joined(self._stretches)
        self._stretches, self._stretched = [], 0
        return gathered

    @property
    def payload_room(self) -> int:
        """Bytes of events that still go into the BINLOG statement that is being gathered."""
        return self._payload.room - self._stretched

    def room(self) -> tuple[int, int]:
        """Transactions and bytes that still go into this block; the one that uses them up ends it."""
        return self.limits.transactions - self._transactions, self.limits.bytes - self._bytes

    def end_before(self, commit_time: float) -> Iterator[FinishedBlock]:
        """End the block if a transaction that committed at that time comes too late for it."""
        if commit_time > self.deadline(commit_time):
            yield from self.finish()

    def deadline(self, commit_time: float) -> float:
        """The last commit time that goes into this block, which a transaction of ``commit_time`` begins or is in."""
        if not self.limits.seconds:
            return inf
        return self.limits.seconds + (commit_time if self._first is None else self._first.commit_time)

    def end_transactions(self, first: BlockHeader, last: BlockHeader, count: int) -> Iterator[FinishedBlock]:
        """Count consecutive transactions of the lane in; yields the block if it is full."""
        self._first = first if self._first is None else self._first
        self._last = last
        self._transactions += count
        if self._transactions >= self.limits.transactions or self._bytes >= self.limits.bytes:
            yield from self.finish()

    def add_statement(self, item: Item) -> None:
        """Take a statement of the current transaction: rows before it are sent before it."""
        self._items.extend(self._flushed())
        self._items.append(item)
        self._bytes += len(item.payload)

    def is_large(self, size: int) -> bool:
        """Whether a transaction of that many bytes is a block of its own, built piece by piece: see ``stream``."""
        return size >= self.limits.bytes

    def are_large(self, size: NDArray[np.int64]) -> NDArray[np.bool_]:
        """``is_large`` of each."""
        return size >= self.limits.bytes

    def stream(self, header: BlockHeader, parts: Iterable[LoggedEvent | Item]) -> Iterator[FinishedBlock]:
        """End the block, and make one of a single large transaction, in memory that does not grow with it.

        It is folded in pieces: a state between two of its rows events satisfies the keys as well, for keys are checked
        row by row.
        """
        yield from self.finish()
        yield FinishedBlock(header, self._streamed(parts))

    def _streamed(self, parts: Iterable[LoggedEvent | Item]) -> Iterator[Item]:
        for part in parts:
            if isinstance(part, Item):
                self.add_statement(part)
            else:
                self.add_event(part.event, part.counts, part.where)
            yield from self._items
            self._items = []
        yield from self._flushed()
        self._bytes = 0

    def end_transaction(self, header: BlockHeader) -> Iterator[FinishedBlock]:
        """Count the transaction in; yields the block if it is full. ``header`` describes this one transaction."""
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
        self._items, self._first, self._last, self._transactions, self._bytes = [], None, None, 0, 0
        yield FinishedBlock(header, items)

    def _flushed(self) -> Iterator[Item]:
        """The row events gathered so far, as they are or as their net effect."""
        if self._stretches and self.reducer is not None:
            return _written(self.reducer.reduce_stretch(self._gathered()), self.limits, self.saved)
        return self._as_written(self._payload.flush())

    def _as_written(self, gathered: Iterator[Item]) -> Iterator[Item]:
        if self.reducer is None:
            yield from gathered
            return
        for item in gathered:
            yield from net_effect(item.payload, self.reducer, self.limits, self.saved)


def net_effect(
    events: bytes, reducer: Reducer, limits: BlockLimits, saved: dict[TableKey, RowCounts]
) -> Iterator[Item]:
    """What is left of row events, as BINLOG statements; the row changes written less those read go into ``saved``."""
    return _written(reducer.reduce(events), limits, saved)


def _written(reduced: Reduced, limits: BlockLimits, saved: dict[TableKey, RowCounts]) -> Iterator[Item]:
    loose = RowsPayload(limits.payload_bytes, limits.largest_bytes)
    for event in reduced.loose:
        if event.counts is None:
            loose.add_map(event.event)
        else:
            yield from loose.add_rows(event.event, event.counts, "block")
    yield from loose.flush()
    yield from reduced.items
    for key, counts in reduced.saved.items():
        saved[key] = saved.get(key, RowCounts()) + counts


def check_fits(needed: int, largest: int, where: str) -> None:
    """Raises UnsupportedEventError if ``needed`` bytes of events, which cannot be cut, are too many for the target."""
    if needed > largest:
        raise UnsupportedEventError(
            f"{where}a rows event that, with its TABLE_MAP, has {needed:,} bytes needs a larger BINLOG statement "
            f"than the target accepts ({largest:,} bytes of events); raise max_allowed_packet on the target "
            f"above {int(needed / PACKET_SHARE) + 4096:,}"
        )


def transaction_header(seqno: int, source: LogPosition, gtid: str, commit_time: float) -> BlockHeader:
    """The header of a block of this one transaction."""
    return BlockHeader(seqno, seqno, 1, source, gtid, commit_time)
