"""Compressed events opened many at once: what one after the other gives, or closed."""

from __future__ import annotations

import itertools
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
import zstandard

from binlane.binlog.payload import Compression, TransactionPayload
from binlane.binlog.rows import decompressed
from binlane.binlog.vector.decompress import Opened, lay_out, open_payloads, open_rows
from binlane.binlog.vector.frames import Frames, frame
from binlane.binlog.wire import HEADER, BufferOffset, RawEvent, read_header, without_checksum
from binlane.errors import BinlogError
from tests.unit.binlog.cases import T, payload, query, wire

INNER = (query(b"BEGIN"), wire(T.TABLE_MAP, bytes(40)), wire(T.XID, b"\x2a" + bytes(7)))
PAYLOAD = payload(*INNER)
IMAGES = bytes(range(60)) * 3
HEAD = struct.pack("<IHH", 6, 0, 1)
VALUES = (0, 1, 2, 0x7F, 0x80, 0x81, 0x85, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)
ROOM = 1 << 20
"""More inflated bytes than any case has, and as many as a damaged one may declare."""


def zipped(images: bytes = IMAGES, declared: int | None = None, length: int = 1, behind: bytes = b"") -> bytes:
    size = (len(images) if declared is None else declared).to_bytes(length, "big")
    return bytes((0x80 + length,)) + size + zlib.compress(images) + behind


ROWS = [
    wire(T.WRITE_ROWS_COMPRESSED_V1, HEAD + b"\x09\xff\x01" + zipped()),
    wire(T.UPDATE_ROWS_COMPRESSED_V1, HEAD + b"\x09\xff\x01\xff\x01" + zipped(length=4)),
    wire(T.DELETE_ROWS_COMPRESSED_V2, HEAD + b"\x05\0abc" + b"\xfc\x03\0\x07" + zipped(length=2)),
    wire(T.WRITE_ROWS_COMPRESSED_V1, HEAD + b"\x01\x01" + zipped(b"")),
]
ODD_ROWS = [
    wire(T.WRITE_ROWS_COMPRESSED_V1, HEAD + b"\x01\x01" + zipped(declared=len(IMAGES) - 1)),
    wire(T.WRITE_ROWS_COMPRESSED_V1, HEAD + b"\x01\x01" + zipped(declared=len(IMAGES) + 1)),
    wire(T.WRITE_ROWS_COMPRESSED_V1, HEAD + b"\x01\x01" + zipped(behind=b"x")),
    wire(T.WRITE_ROWS_COMPRESSED_V1, HEAD + b"\x01\x01" + zipped(length=5)),
    wire(T.WRITE_ROWS_COMPRESSED_V1, HEAD + b"\x01\x01" + b"\x80" + zlib.compress(IMAGES)),
    wire(T.WRITE_ROWS_COMPRESSED_V1, HEAD + b"\xfe\x01\0\0\0\0\0\0\0\x01" + zipped()),
    wire(T.WRITE_ROWS_COMPRESSED_V2, HEAD + b"\x01\0\x01\x01" + zipped()),
    wire(T.WRITE_ROWS_COMPRESSED_V1, HEAD),
    wire(T.WRITE_ROWS_COMPRESSED_V1, b""),
]


def raw(event: bytes) -> RawEvent:
    view = memoryview(event)
    return RawEvent(BufferOffset(0), read_header(view, 0, "log"), view[HEADER.size :])


def inside(opened: Opened | None) -> list[bytes]:
    if opened is None:
        return []
    edges = opened.start.tolist()
    return [bytes(opened.data[start:end]) for start, end in itertools.pairwise(edges)]


def damaged(event: bytes) -> Iterator[bytes]:
    yield event
    for at in range(HEADER.size, len(event)):
        for value in VALUES:
            yield event[:at] + bytes([value]) + event[at + 1 :]


def declared_by(event: bytes) -> bytes | None:
    """What a payload inflates to, if it is exactly what it declares."""
    try:
        found = TransactionPayload.parse(raw(event).body)
        if found.compression is Compression.NONE or found.uncompressed_size > ROOM:
            return None
        data = zstandard.ZstdDecompressor().stream_reader(found.payload).read(len(PAYLOAD) * 100)
    except (ValueError, zstandard.ZstdError):
        return None
    return data if len(data) == found.uncompressed_size else None


def test_every_damage_of_a_payload_leaves_it_closed_or_as_it_inflates_alone() -> None:
    opened = 0
    for event in damaged(PAYLOAD):
        expected = declared_by(event)
        found = inside(open_payloads(frame(event, 0, 0), ROOM, ROOM))
        assert found == ([] if expected is None else [expected]), event
        opened += len(found)
    assert opened > 1


@pytest.mark.parametrize("event", [*ROWS, *ODD_ROWS])
def test_every_damage_of_compressed_rows_leaves_them_closed_or_as_they_are_alone(event: bytes) -> None:
    for case in damaged(event):
        source = raw(case)
        try:
            code, body = decompressed(source.header.type_code, source.body)
            header = source.header._replace(type_code=code)
            expected = [without_checksum(RawEvent(BufferOffset(0), header, memoryview(body)))]
        except BinlogError:
            expected = []
        assert inside(open_rows(frame(case, 0, 0), ROOM, ROOM)) == expected, case


@pytest.mark.parametrize("event", ODD_ROWS)
def test_malformed_compressed_rows_are_refused_one_at_a_time_as_well(event: bytes) -> None:
    with pytest.raises(BinlogError):
        decompressed(event[4], raw(event).body)


@pytest.mark.parametrize(
    ("opening", "event", "size"),
    [(open_payloads, PAYLOAD, len(b"".join(INNER))), (open_rows, ROWS[0], len(IMAGES))],
    ids=["payloads", "rows"],
)
def test_payloads_that_declare_more_than_the_limits_are_not_decompressed(
    opening: Callable[[Frames, int, int], Opened | None], event: bytes, size: int
) -> None:
    frames = frame(event * 3, 0, 0)
    assert [len(inside(opening(frames, most, 3 * size))) for most in (size - 1, size)] == [0, 3]
    assert [len(inside(opening(frames, size, budget))) for budget in (0, 2 * size - 1, 2 * size)] == [0, 1, 2]


def test_a_damaged_payload_does_not_close_its_neighbours() -> None:
    bomb = zstandard.compress(bytes(1 << 26))
    head = b"\2\1\0\3\1\x20\1\4" + b"\xfd" + len(bomb).to_bytes(3, "little") + b"\0"
    events = [PAYLOAD, wire(T.TRANSACTION_PAYLOAD, head + bomb), query(b"BEGIN"), PAYLOAD]
    found = open_payloads(frame(b"".join(events), 0, 0), ROOM, ROOM)
    assert found is not None
    assert found.event.tolist() == [0, 3]
    assert inside(found) == [b"".join(INNER)] * 2


def test_a_payload_of_no_bytes_stays_closed() -> None:
    """No damage of one byte: two fields say the same."""
    empty = wire(T.TRANSACTION_PAYLOAD, b"\2\1\0\3\1\x64\1\1\0\0")
    assert open_payloads(frame(empty, 0, 0), ROOM, ROOM) is None
    found = open_payloads(frame(empty + PAYLOAD, 0, 0), ROOM, ROOM)
    assert found is not None
    assert found.event.tolist() == [1]


def test_there_is_nothing_to_open_in_plain_events() -> None:
    frames = frame(b"".join(INNER), 0, 0)
    assert open_payloads(frames, ROOM, ROOM) is None
    assert open_rows(frames, ROOM, ROOM) is None


def tailed(events: Sequence[bytes], tail: int) -> list[bytes]:
    """The events with room for a checksum."""
    return [
        event[:9] + (len(event) + tail).to_bytes(4, "little") + event[HEADER.size - 6 :] + bytes(tail)
        for event in events
    ]


@pytest.mark.parametrize("tail", [0, 4])
@pytest.mark.parametrize("wanted", [(True, True), (False, True), (True, False), (False, False)])
def test_events_are_laid_out_where_their_payload_was(tail: int, wanted: tuple[bool, bool]) -> None:
    outer = tailed([query(b"before"), PAYLOAD, PAYLOAD, query(b"behind")], tail)
    begins = np.cumsum([0, *map(len, outer)]).tolist()
    frames = frame(b"".join(outer), 0, tail)
    opened = open_payloads(frames, ROOM, ROOM)
    assert opened is not None
    data, at, source = lay_out(frames, opened, np.array(wanted))
    expected, places = [], []
    for event, begin, is_open in zip(outer, begins, (False, *wanted, False), strict=False):
        events = tailed(INNER, tail) if is_open else [event]
        expected += events
        places += [begin] * len(events)
    assert bytes(data) == b"".join(expected)
    starts = np.cumsum([0, *map(len, expected)])[:-1]
    piece = np.searchsorted(at, starts, "right") - 1
    assert (source[piece] + starts - at[piece]).tolist() == places
