"""A whole segment as arrays: its events, their tables, and the number of rows that they change.

Checks shapes, calls the kernels, and turns their codes into errors. All functions take milliseconds for a
segment; ``events`` and ``rows`` parse single events at the offsets found here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NewType

import numpy as np
from numpy.typing import NDArray

from binlane.binlog import rows as plain
from binlane.binlog.table_map import FLAGS_IN_BODY, TableMap
from binlane.binlog.types.type_codes import LengthRule
from binlane.binlog.vector.arrays import Bytes, Ints
from binlane.binlog.wire import (
    CHECKSUM_LENGTH,
    HEADER,
    Buffer,
    BufferOffset,
    EventHeader,
    EventType,
    RawEvent,
    check_crc,
    type_name,
    where,
)
from binlane.errors import BinlogError, TruncatedEventError, UnsupportedEventError
from binlane.kernels import copying, framing
from binlane.kernels import rows as row_kernels
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, plural

BufferOffsets = NewType("BufferOffsets", np.ndarray[tuple[int, ...], np.dtype[np.int64]])
SegmentOffsets = NewType("SegmentOffsets", np.ndarray[tuple[int, ...], np.dtype[np.int64]])
"""Arrays of the two kinds of offsets. A single entry is a plain int, to be converted to its type again."""

_USUAL_ROW: Final = 8
"""The minimum bytes of log of most rows."""
_HIDDEN: Final = np.zeros(256, np.bool_)
"""Event types without plain row images in the log."""
_HIDDEN[[EventType.PARTIAL_UPDATE_ROWS, *plain.COMPRESSED_ROWS]] = True
_ERRORS: Final[Mapping[int, tuple[type[BinlogError], str]]] = {
    framing.SHORT_HEADER: (TruncatedEventError, "the bytes end inside an event's header"),
    framing.SMALL_SIZE: (
        BinlogError,
        "event_size is smaller than a header and checksum; the file is damaged here",
    ),
    framing.SHORT_EVENT: (TruncatedEventError, "the bytes end inside the event"),
    framing.SHORT_BODY: (TruncatedEventError, "the event ends before its head does; it is damaged"),
    framing.UNMAPPED: (BinlogError, "its table id has no TABLE_MAP in its statement; the log is damaged"),
    framing.REFUSED: (UnsupportedEventError, "rows in a form that this version cannot read"),
    framing.BAD_EXTRA: (BinlogError, "extra data shorter than its own length; the event is damaged"),
    framing.BAD_WIDTH: (BinlogError, "its number of columns is not that of its TABLE_MAP; the log is damaged"),
    framing.OVERRUN: (BinlogError, f"a row image reaches over the event's end; {plain.OVERRUN_HINT}"),
    framing.NO_IMAGES: (BinlogError, "no row images; the event is damaged"),
    framing.NO_COLUMNS: (BinlogError, "bytes of rows that have no columns; the event is damaged"),
    framing.UNKNOWN_LENGTH: (UnsupportedEventError, "a column of a length that the log does not tell"),
    framing.BAD_OPTIONS: (UnsupportedEventError, "value options other than partial JSON"),
}


@dataclass(frozen=True, slots=True)
class Frames:
    """The events of one buffer, one array entry each, up to the buffer's end or the first invalid event."""

    data: Bytes
    checksum_length: int
    offset: BufferOffsets
    type_code: NDArray[np.uint8]
    size: NDArray[np.uint32]
    """Whole events: header, body and checksum."""
    timestamp: NDArray[np.uint32]
    flags: NDArray[np.uint16]
    error: int
    """0, or the error code for the bytes at ``end``."""
    end: int
    """Offset where framing stopped."""

    def check(self, name: str) -> None:
        """Raise the error that stopped framing, if any: TruncatedEventError or BinlogError."""
        if self.error != framing.OK:
            kind, text = _ERRORS[self.error]
            raise kind(f"{where(name, self.end)}{text} ({self.data.size - self.end} bytes are left)")

    def select(self, events: Ints) -> Frames:
        """Some of the events, in that order."""
        return replace(
            self,
            offset=BufferOffsets(self.offset[events]),
            type_code=self.type_code[events],
            size=self.size[events],
            timestamp=self.timestamp[events],
            flags=self.flags[events],
        )

    def begin(self, event: int) -> BufferOffset:
        """Offset of the event."""
        return BufferOffset(int(self.offset[event]))

    def raw(self, event: int, base: int = 0) -> RawEvent:
        """One event, as ``binlog.events`` parses it; ``base``: offset in its file of the buffer's first byte."""
        at = self.begin(event)
        header = EventHeader._make(HEADER.unpack_from(self.data.data, at))
        return RawEvent(BufferOffset(base + at), header, self.body(event))

    def body(self, event: int) -> memoryview:
        """The body of one event: between header and checksum."""
        start = int(self.offset[event])
        end = start + int(self.size[event]) - self.checksum_length
        return self.data.data[start + HEADER.size : end]

    def ends_statement(self, events: Ints) -> NDArray[np.bool_]:
        """Whether each of these TABLE_MAP or rows events has STMT_END_F."""
        return self.have_flag(events, plain.RowsFlag.STMT_END)

    def have_flag(self, events: Ints, flag: plain.RowsFlag) -> NDArray[np.bool_]:
        """Whether each of these rows events has a flag."""
        flags: NDArray[np.uint8] = self.data[self.offset[events] + HEADER.size + FLAGS_IN_BODY]
        return (flags & flag).astype(np.bool_)


@dataclass(frozen=True, slots=True)
class TableIndex:
    """The table of each TABLE_MAP and ROWS event."""

    number: NDArray[np.int32]
    """One entry an event: a number from 0 per distinct TABLE_MAP body, in order of appearance; -1 for other events."""
    first: Ints
    """One entry for each number: the event where it first appears."""


@dataclass(frozen=True, slots=True)
class TableLayouts:
    """The length rules of all columns of all tables, flat, for the kernels."""

    tables: Ints
    """(tables, 3): index of its first rule, number of its columns, number of its JSON columns."""
    rule: NDArray[np.uint8]
    length: Ints


def as_array(data: Buffer | Bytes) -> Bytes:
    """``data`` (bytes, an mmap, an array) as the type of array that the kernels take; copies nothing."""
    array = np.asarray(data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8))
    if array.dtype != np.uint8 or array.ndim != 1 or not array.flags.c_contiguous:
        raise ValueError(f"expected contiguous bytes, got {array.dtype} of {array.ndim} dimensions")
    view = array.view()
    view.flags.writeable = False
    return view


def frame(data: Buffer | Bytes, start: int, checksum_length: int) -> Frames:
    """The events from byte ``start`` on. Damage stops framing and sets ``Frames.error``: see ``Frames.check``."""
    array = as_array(data)
    if checksum_length not in (0, CHECKSUM_LENGTH) or not 0 <= start <= array.size:
        raise ValueError(f"start {start}, checksum length {checksum_length}")
    room = (array.size - start) // (HEADER.size + checksum_length)
    # np.empty does not touch memory, so unused parts of the arrays cost nothing
    offset, kind, size = np.empty(room, np.int64), np.empty(room, np.uint8), np.empty(room, np.uint32)
    time, flags = np.empty(room, np.uint32), np.empty(room, np.uint16)
    count, error, end = framing.frame(
        array, start, HEADER.size, checksum_length, offset, kind, size, time, flags
    )  # fmt: skip
    return Frames(
        data=array,
        checksum_length=checksum_length,
        offset=BufferOffsets(offset[:count].copy()),
        type_code=kind[:count].copy(),
        size=size[:count].copy(),
        timestamp=time[:count].copy(),
        flags=flags[:count].copy(),
        error=error,
        end=end,
    )


def verify_checksums(frames: Frames, name: str) -> None:
    """Raises ChecksumError for the first event with a wrong CRC32; a no-op without checksums."""
    if frames.checksum_length == 0:
        return
    bad = framing.first_bad_crc(frames.data, frames.offset, frames.type_code, frames.size)
    if bad < frames.offset.size:
        at = int(frames.offset[bad])
        check_crc(frames.data.data[at : at + int(frames.size[bad])], name, at)


def index_rows(frames: Frames, name: str) -> TableIndex:
    """The table of each event, with the numbers of ``rows.TableNumbers``.

    Raises BinlogError for a rows event without its TABLE_MAP, UnsupportedEventError for an unsupported form of rows.
    """
    maps = int(np.count_nonzero(frames.type_code == EventType.TABLE_MAP))
    number, first = np.empty(frames.offset.size, np.int32), np.empty(maps, np.int64)
    # a power of two, at most half full, so that a probe always ends at a free slot
    capacity = 1 << (2 * maps + 1).bit_length()
    count, code, event = framing.index(
        frames.data, frames.offset, frames.type_code, frames.size, HEADER.size, frames.checksum_length,
        number, first,
        np.full(capacity, -1, np.int32), np.empty(maps, np.uint64), np.empty((maps, 2), np.int64),
        np.full(capacity, -1, np.int64), np.empty(capacity, np.int32), np.empty(capacity, np.int64),
    )  # fmt: skip
    _raise_at(code, frames, event, name)
    return TableIndex(number, first[:count].copy())


def table_maps(frames: Frames, index: TableIndex, name: str, flavor: Flavor = Flavor.MYSQL) -> tuple[TableMap, ...]:
    """The table of each number, with the table id of its first TABLE_MAP.

    ``flavor``: of the server that wrote the log, for the optional metadata.
    """
    begins = frames.offset[index.first]
    ends = begins + frames.size[index.first] - frames.checksum_length
    view, head = frames.data.data, HEADER.size
    return tuple(
        TableMap.parse(view[begin + head : end], where(name, begin), flavor)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
    )


def table_layouts(tables: Sequence[TableMap]) -> TableLayouts:
    """The tables' columns for the kernels; raises BinlogError for metadata that no server writes."""
    known: dict[tuple[bytes, tuple[int, ...]], tuple[int, int, int]] = {}
    # tables with equal columns share these objects (``known_columns``), and a fleet has 10,000 of them
    alike: dict[tuple[int, int], tuple[int, int, int]] = {}
    rules: list[LengthRule] = []
    entries = []
    for table in tables:
        objects = id(table.column_types), id(table.metadata)
        entry = alike.get(objects)
        if entry is None:
            shape = table.column_types, table.metadata
            if shape not in known:
                known[shape] = len(rules), table.width, table.json_columns
                rules.extend(table.column_length_spec())
            entry = alike[objects] = known[shape]
        entries.append(entry)
    flat = np.array(rules, np.int64).reshape(-1, 2)
    return TableLayouts(
        np.array(entries, np.int64).reshape(-1, 3), flat[:, 0].astype(np.uint8), np.ascontiguousarray(flat[:, 1])
    )


def count_rows(frames: Frames, index: TableIndex, tables: Sequence[TableMap], name: str) -> Ints:
    """Rows that each event changes, 0 for events that hold none; ``tables`` as from ``table_maps``.

    Raises BinlogError and UnsupportedEventError as ``rows.count_rows``, which counts MariaDB's compressed events here.
    """
    if len(tables) != index.first.size or index.number.size != frames.offset.size:
        raise ValueError(f"{plural(len(tables), 'table')} for {index.first.size} numbers: they are not of these frames")
    return count_events(frames, index.number, tables, table_layouts(tables), name)


def count_events(
    frames: Frames, number: NDArray[np.int32], tables: Sequence[TableMap], layouts: TableLayouts, name: str
) -> Ints:
    """As ``count_rows``; ``number``: the index into ``tables`` for each event."""
    counts, _ = _counted(frames, number, layouts, name, np.empty((0, 4), np.int64))
    for event in np.flatnonzero(counts == row_kernels.COMPRESSED).tolist():
        place = where(name, int(frames.offset[event]))
        rows = plain.RowsEvent.parse(int(frames.type_code[event]), frames.body(event), place)
        counts[event] = plain.count_rows(rows, tables[number[event]], place)
    return counts


def row_images(
    frames: Frames, number: NDArray[np.int32], layouts: TableLayouts, name: str
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """(rows of each event, images, whether an event's images lack columns).

    ``number``: for each event the index of its table in ``layouts``, or -1. A row of images: before start, before end,
    after start, after end in ``data``; -1 for an image that the event does not have. Raises as ``count_rows``, and
    UnsupportedEventError for PARTIAL_UPDATE_ROWS and compressed events, whose images are not in ``data``: use ``rows``
    for these.
    """
    hidden = np.flatnonzero((number >= 0) & _HIDDEN[frames.type_code])
    if hidden.size:
        event = int(hidden[0])
        place, code = where(name, int(frames.offset[event])), int(frames.type_code[event])
        raise UnsupportedEventError(f"{place}{type_name(code)}: its row images are not in the log as they are")
    # unused parts of the array cost no memory
    images = np.empty((int(frames.size.sum(dtype=np.int64)) // _USUAL_ROW, 4), np.int64)
    counts, lacking = _counted(frames, number, layouts, name, images)
    rows = int(counts.sum())
    if rows > images.shape[0]:
        images = np.empty((rows, 4), np.int64)
        _counted(frames, number, layouts, name, images)
    return counts, images[:rows], lacking


def _counted(
    frames: Frames, number: NDArray[np.int32], layouts: TableLayouts, name: str, images: Ints
) -> tuple[Ints, NDArray[np.bool_]]:
    counts, lacking = np.empty(frames.offset.size, np.int64), np.empty(frames.offset.size, np.bool_)
    code, event = row_kernels.count(
        frames.data, frames.offset, frames.type_code, frames.size, HEADER.size, frames.checksum_length,
        number, layouts.tables, layouts.rule, layouts.length, counts, images, lacking,
    )  # fmt: skip
    _raise_at(code, frames, event, name)
    return counts, lacking


def first_appearances(number: NDArray[np.int32], tables: int) -> tuple[Ints, Ints]:
    """The table numbers of some events in the order in which they appear, and the first event of each."""
    used, first = np.empty(tables, np.int64), np.empty(tables, np.int64)
    count = framing.appearances(number, np.full(tables, -1, np.int32), used, first)
    return used[:count], first[:count]


def gather(data: Buffer | Bytes, offsets: Ints, lengths: Ints) -> bytes:
    """The ranges of ``data``, concatenated. Raises ValueError for a range outside ``data``."""
    if offsets.shape != lengths.shape:
        raise ValueError(f"{offsets.size} offsets, {lengths.size} lengths")
    if lengths.size and int(lengths.min()) < 0:
        raise ValueError(f"a length of {int(lengths.min())}")
    out = np.empty(int(lengths.sum()), np.uint8)
    used = copying.gather(
        as_array(data), np.ascontiguousarray(offsets, np.int64), np.ascontiguousarray(lengths, np.int64), out
    )
    if used < 0:
        bad = -1 - used
        raise ValueError(f"range {bad}: {lengths[bad]} bytes at {offsets[bad]} are not inside the buffer")
    return out.tobytes()


def strip_events(frames: Frames, events: Ints) -> bytes:
    """These events (numbers into ``frames``) with 19-byte headers, without checksums, log_pos 0: a BINLOG payload.

    ``event_size`` is adjusted. log_pos 0 means not known, since the events are no longer at a place in a file.
    """
    wanted = np.ascontiguousarray(events, np.int64)
    if wanted.size and not 0 <= int(wanted.min()) <= int(wanted.max()) < frames.offset.size:
        raise ValueError(f"event numbers {wanted.min()} to {wanted.max()} of {frames.offset.size} events")
    out = np.empty(int(frames.size[wanted].sum(dtype=np.int64)) - frames.checksum_length * wanted.size, np.uint8)
    copying.strip(
        frames.data, frames.offset, frames.size, wanted, HEADER.size, frames.checksum_length, out
    )  # fmt: skip
    return out.tobytes()


def _raise_at(code: int, frames: Frames, event: int, name: str) -> None:
    if code != framing.OK:
        kind, text = _ERRORS[code]
        place = where(name, int(frames.offset[event]))
        raise kind(f"{place}{type_name(int(frames.type_code[event]))}: {text}")
