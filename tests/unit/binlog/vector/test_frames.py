"""The kernels against their plain twins: the same answer or both refuse, whatever the bytes; nothing read outside."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.binlog import rows as plain
from binlane.binlog.table_map import TableMap
from binlane.binlog.vector import frames as fast
from binlane.binlog.wire import HEADER, BufferOffset, EventType, RawEvent, build_event, read_header, without_checksum
from binlane.errors import BinlogError, ChecksumError, TruncatedEventError, UnsupportedEventError
from tests.tiers import examples
from tests.unit.binlog.row_events import EVERY_COLUMN, Statement, event, logs, rows_body, table_map_body
from tests.unit.binlog.test_rows import CASES, WRONG

CRC_LENGTH = 4
Images = tuple[int, int, int, int]
LIKELY_BYTES = st.sampled_from([0, 1, 2, 19, 39, 250, 252, 255])


@dataclass(frozen=True)
class Answer:
    """What is said of a log; a stage that refuses leaves itself and the later ones None."""

    offsets: list[int]
    framed: bool
    numbers: list[int] | None = None
    counts: list[int] | None = None
    images: list[Images] | None = None


def with_checksum(data: bytes) -> bytes:
    size = HEADER.pack(0, 0, 0, len(data) + CRC_LENGTH, 0, 0)[9:13]
    data = data[:9] + size + data[13:]
    return data + zlib.crc32(data).to_bytes(CRC_LENGTH, "little")


def log_of(statements: list[Statement], tail: int) -> bytes:
    events = [data for statement in statements for data in statement.events]
    return b"".join(with_checksum(data) if tail else data for data in events)


def said_by_kernels(data: bytes | np.ndarray[tuple[int], np.dtype[np.uint8]], tail: int) -> Answer:
    frames = fast.frame(data, 0, tail)
    offsets, framed = frames.offset.tolist(), frames.error == 0
    try:
        index = fast.index_rows(frames, "f")
        numbers = index.number.tolist()
    except BinlogError:
        return Answer(offsets, framed)
    try:
        tables = fast.table_maps(frames, index, "f")
        counts = fast.count_rows(frames, index, tables, "f").tolist()
    except BinlogError:
        return Answer(offsets, framed, numbers)
    try:
        again, images, _ = fast.row_images(frames, index.number, fast.table_layouts(tables), "f")
    except UnsupportedEventError:
        return Answer(offsets, framed, numbers, counts)
    assert again.tolist() == counts
    return Answer(offsets, framed, numbers, counts, [tuple(row) for row in images.tolist()])


def framed_plainly(data: bytes, tail: int) -> tuple[list[RawEvent], bool]:
    view, at = memoryview(data), 0
    events: list[RawEvent] = []
    while at < len(data):
        try:
            header = read_header(view, at, "f", HEADER.size + tail)
        except BinlogError:
            return events, False
        events.append(RawEvent(BufferOffset(at), header, view[at + HEADER.size : at + header.event_size - tail]))
        at += header.event_size
    return events, True


def said_plainly(data: bytes, tail: int) -> Answer:
    events, framed = framed_plainly(data, tail)
    offsets: list[int] = [raw.offset for raw in events]
    known = plain.TableNumbers()
    try:
        numbers = [known.number(raw.header.type_code, raw.body) for raw in events]
    except BinlogError:
        return Answer(offsets, framed)
    dense = [-1 if number is None else number for number in numbers]
    tables: dict[int, TableMap] = {}
    try:
        for raw, number in zip(events, dense, strict=True):
            if raw.header.type_code == EventType.TABLE_MAP and number not in tables:
                tables[number] = TableMap.parse(raw.body)
        for table in tables.values():
            table.column_length_spec()
        parsed = [
            (raw, plain.RowsEvent.parse(raw.header.type_code, raw.body), tables[number])
            if number >= 0 and raw.header.type_code != EventType.TABLE_MAP
            else None
            for raw, number in zip(events, dense, strict=True)
        ]
        counts = [0 if item is None else plain.count_rows(item[1], item[2]) for item in parsed]
    except BinlogError:
        return Answer(offsets, framed, dense)
    if any(item is not None and (item[1].partial or item[1].type_code in plain.COMPRESSED_ROWS) for item in parsed):
        return Answer(offsets, framed, dense, counts)
    images: list[Images] = []
    for item in parsed:
        if item is not None:
            start = item[0].offset + HEADER.size + item[1].images_at
            for before, after in plain.row_images(item[1], item[2]):
                ranges = [(-1, -1) if part is None else (start + part[0], start + part[1]) for part in (before, after)]
                images.append((*ranges[0], *ranges[1]))
    return Answer(offsets, framed, dense, counts, images)


def agree(data: bytes, tail: int) -> Answer:
    answer = said_plainly(data, tail)
    assert said_by_kernels(data, tail) == answer
    return answer


@settings(deadline=None)
@given(logs(), st.sampled_from([0, CRC_LENGTH]))
def test_generated_logs_are_framed_as_they_were_made(statements: list[Statement], tail: int) -> None:
    data = log_of(statements, tail)
    answer = agree(data, tail)
    assert answer.framed
    assert answer.counts == [count for statement in statements for count in statement.counts]
    wanted = [pair for statement in statements for pair in statement.images]
    assert answer.images is not None
    found = [
        (None if row[0] < 0 else data[row[0] : row[1]], None if row[2] < 0 else data[row[2] : row[3]])
        for row in answer.images
    ]
    assert found == wanted


def test_rows_of_two_bytes_have_all_their_images() -> None:
    table = event(EventType.TABLE_MAP, table_map_body(1, [EVERY_COLUMN["tiny"]]))
    rows = rows_body(EventType.WRITE_ROWS_V1, 1, 1, [b"\1"], b"".join(bytes([0, value]) for value in range(250)))
    answer = agree(table + event(EventType.WRITE_ROWS_V1, rows), 0)
    assert answer.images is not None
    assert len(answer.images) == 250


@settings(max_examples=examples(300), deadline=None)
@given(logs(), st.sampled_from([0, CRC_LENGTH]), st.data())
def test_kernels_and_parser_agree_on_truncated_and_corrupt_logs(
    statements: list[Statement], tail: int, draw: st.DataObject
) -> None:
    data = bytearray(log_of(statements, tail))
    for _ in range(draw.draw(st.integers(0, 3))):
        if data:
            data[draw.draw(st.integers(0, len(data) - 1))] = draw.draw(
                st.sampled_from([0, 1, 2, 19, 39, 250, 252, 255])
            )
    end = draw.draw(st.integers(0, len(data))) if draw.draw(st.booleans()) else len(data)
    agree(bytes(data[:end]), tail)


@settings(max_examples=examples(100), deadline=None)
@given(st.binary(max_size=300))
def test_kernels_and_parser_agree_on_random_bytes(data: bytes) -> None:
    agree(data, 0)


@settings(max_examples=examples(200), deadline=None)
@given(logs(), st.data())
def test_bytes_behind_the_buffer_make_no_difference(statements: list[Statement], draw: st.DataObject) -> None:
    data = bytearray(log_of(statements, 0))
    if data:
        data[draw.draw(st.integers(0, len(data) - 1))] ^= draw.draw(st.integers(0, 255))
    end = draw.draw(st.integers(0, len(data)))
    answers = []
    for poison in (0x00, 0xFF, 0x01):
        padded = np.full(end + 70_000, poison, np.uint8)
        padded[:end] = np.frombuffer(bytes(data[:end]), np.uint8)
        answers.append(said_by_kernels(padded[:end], 0))
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize(("table", "type_code", "body", "rows"), CASES)
def test_kernels_and_parser_agree_on_server_events_and_every_truncation(
    table: bytes, type_code: int, body: bytes, rows: int
) -> None:
    before = event(EventType.TABLE_MAP, table)
    assert agree(before + event(type_code, body), 0).counts == [0, rows]
    for end in range(len(body)):
        agree(before + event(type_code, body[:end]), 0)


@pytest.mark.parametrize(("table", "type_code", "body", "rows"), CASES)
def test_kernels_and_parser_agree_on_server_events_with_a_corrupt_byte(
    table: bytes, type_code: int, body: bytes, rows: int
) -> None:
    before = event(EventType.TABLE_MAP, table)
    for at in range(len(body)):
        for value in (0, 1, 2, 4, 251, 252, 253, 254, 255, body[at] ^ 1):
            agree(before + event(type_code, body[:at] + bytes([value]) + body[at + 1 :]), 0)


@pytest.mark.parametrize(("table", "type_code", "body", "error", "message"), WRONG)
def test_each_guard_of_the_row_walk_has_its_error(
    table: bytes, type_code: int, body: bytes, error: type[BinlogError], message: str
) -> None:
    data = event(EventType.TABLE_MAP, table) + event(type_code, body)
    frames = fast.frame(data, 0, 0)
    index = fast.index_rows(frames, "f")
    with pytest.raises(error, match=rf"^f:{len(table) + HEADER.size}: "):
        fast.count_rows(frames, index, fast.table_maps(frames, index, "f"), "f")


@pytest.mark.parametrize(
    "body",
    [b"", b"\xfc", b"\xfc\1", b"\xfd\1\0", b"\xfb", b"\xff", b"\xfe" + bytes(8), b"\xfe\1" + bytes(7) + b"\1\0abcd"],
)
def test_the_guard_of_the_width_refuses_what_is_no_width(body: bytes) -> None:
    data = event(EventType.TABLE_MAP, table_map_body(0, [EVERY_COLUMN["long"]])) + event(23, bytes(8) + body)
    assert agree(data, 0).counts is None


@pytest.mark.parametrize("extra", [b"", b"\1", b"\0\0\1\1\0", b"\3\0", b"\4\0\1\1\0abcd"])
def test_the_guard_of_the_extra_data_refuses_what_is_none(extra: bytes) -> None:
    data = event(EventType.TABLE_MAP, table_map_body(0, [EVERY_COLUMN["long"]])) + event(30, bytes(8) + extra)
    assert agree(data, 0).counts is None


LONG = table_map_body(1, [EVERY_COLUMN["long"]])
INSERT = rows_body(EventType.WRITE_ROWS_V1, 1, 1, [b"\1"], b"\0abcd")
UNMAPPED = [
    pytest.param([(23, INSERT)], "table id 1 has no|no TABLE_MAP", BinlogError, id="no-map"),
    pytest.param([(19, LONG), (23, INSERT), (23, INSERT)], "no TABLE_MAP", BinlogError, id="after-the-statement"),
    pytest.param([(19, LONG), (15, b""), (23, INSERT)], "no TABLE_MAP", BinlogError, id="after-a-format-description"),
    pytest.param([(19, b"\1\0\0")], "its head", TruncatedEventError, id="short-map"),
    pytest.param([(20, b"")], "cannot read", UnsupportedEventError, id="pre-ga"),
    pytest.param([(172, b"")], "cannot read", UnsupportedEventError, id="fragments"),
]


@pytest.mark.parametrize(("events", "message", "error"), UNMAPPED)
def test_rows_without_a_table_are_refused(
    events: list[tuple[int, bytes]], message: str, error: type[BinlogError]
) -> None:
    data = b"".join(event(code, body) for code, body in events)
    with pytest.raises(error, match=message):
        fast.index_rows(fast.frame(data, 0, 0), "f")
    assert said_plainly(data, 0).numbers is None


def test_many_tables_keep_their_numbers() -> None:
    bodies = [table_map_body(table_id % 900, [], f"db{table_id}") for table_id in range(2_000)]
    data = b"".join(event(EventType.TABLE_MAP, body) for body in [*bodies, *reversed(bodies)])
    index = fast.index_rows(fast.frame(data, 0, 0), "f")
    assert index.number.tolist() == [*range(2_000), *reversed(range(2_000))]
    assert index.first.tolist() == list(range(2_000))


def _seconds_to_index(bodies: Iterable[bytes]) -> float:
    frames = fast.frame(b"".join(event(EventType.TABLE_MAP, body) for body in bodies), 0, 0)
    taken = []
    for _ in range(3):
        begun = time.perf_counter()
        fast.index_rows(frames, "f")
        taken.append(time.perf_counter() - begun)
    return min(taken)


def test_no_ids_and_no_definitions_of_an_archive_make_its_index_quadratic() -> None:
    """With a factor that is known ids share a slot, and with any factor definitions that differ in their last bytes
    did: 20,000 of them took a hundred times as long."""
    count, bits = 20_000, 49
    inverse = pow(0x9E3779B97F4A7C15, -1, 1 << bits)
    ids = [one for one in (number * inverse % (1 << bits) for number in range(4 * count)) if one < 1 << 48][:count]
    usual = _seconds_to_index(number.to_bytes(6, "little") + bytes(16) for number in range(count))
    assert _seconds_to_index(number.to_bytes(6, "little") + bytes(16) for number in ids) < 20 * usual
    ends = (number.to_bytes(6, "little") + bytes(14) + number.to_bytes(2, "little") for number in range(count))
    assert _seconds_to_index(ends) < 20 * usual


HEADS = [
    # extra data of three bytes that are none, and of four in an event of three
    pytest.param(30, b"\1", "ends before its head does", id="no-length"),
    pytest.param(30, b"\7\0\1\1\0", "ends before its head does", id="extra-over-the-end"),
    pytest.param(30, b"\1\0\1\1\0abcd", "extra data shorter than its own length", id="extra-shorter"),
    pytest.param(23, b"\2\1\0abcd", "its number of columns", id="another-width"),
    pytest.param(23, b"\1", "ends before its head does", id="no-bitmap"),
    pytest.param(24, b"\1\1", "ends before its head does", id="one-bitmap-of-two"),
]


@pytest.mark.parametrize(("type_code", "head", "message"), HEADS)
def test_a_malformed_head_of_a_rows_event_is_named(type_code: int, head: bytes, message: str) -> None:
    data = event(EventType.TABLE_MAP, table_map_body(0, [EVERY_COLUMN["long"]])) + event(type_code, bytes(8) + head)
    frames = fast.frame(data, 0, 0)
    index = fast.index_rows(frames, "f")
    with pytest.raises(BinlogError, match=message):
        fast.count_rows(frames, index, fast.table_maps(frames, index, "f"), "f")
    with pytest.raises(BinlogError, match=message):
        fast.row_images(frames, index.number, fast.table_layouts(fast.table_maps(frames, index, "f")), "f")


def test_a_table_keeps_its_number_under_another_table_id() -> None:
    """A server that has closed it meanwhile gives it a new one; here each id is another table's the next time."""
    shown = [(1, "a"), (2, "b"), (1, "b"), (2, "a"), (1, "a")]
    data = b"".join(event(EventType.TABLE_MAP, table_map_body(table_id, [], name)) for table_id, name in shown)
    frames = fast.frame(data, 0, 0)
    index = fast.index_rows(frames, "f")
    assert index.number.tolist() == [0, 1, 1, 0, 0]
    assert [table.database for table in fast.table_maps(frames, index, "f")] == ["a", "b"]


FRAME_ERRORS = [
    pytest.param(lambda data: data[:-1], TruncatedEventError, "inside the event", id="cut"),
    pytest.param(lambda data: data + b"\0" * 18, TruncatedEventError, "inside an event's header", id="short-header"),
    pytest.param(lambda data: data + b"\0" * 19, BinlogError, "event_size is smaller", id="zeros"),
]


@pytest.mark.parametrize(("damage", "error", "message"), FRAME_ERRORS)
def test_framing_keeps_what_stands_before_the_damage(
    damage: Callable[[bytes], bytes], error: type[BinlogError], message: str
) -> None:
    good = event(EventType.XID, b"12345678")
    frames = fast.frame(damage(good + good), 0, 0)
    assert frames.offset.tolist()[0] == 0
    with pytest.raises(error, match=rf"^f:{frames.end}: .*{message}"):
        frames.check("f")
    assert frames.end in (len(good), 2 * len(good))


def test_an_event_without_room_for_its_checksum_is_refused() -> None:
    frames = fast.frame(event(EventType.STOP, b"abc") + bytes(9), 0, CRC_LENGTH)
    with pytest.raises(BinlogError, match="event_size is smaller than a header and checksum"):
        frames.check("f")


def test_headers_are_read_whole() -> None:
    data = b"\xfebin" + build_event(EventType.XID, b"extra678", timestamp=2**32 - 1, server_id=1, flags=0x8001)
    frames = fast.frame(data, 4, 0)
    frames.check("f")
    assert (frames.offset.tolist(), frames.size.tolist(), frames.type_code.tolist()) == ([4], [27], [16])
    assert (frames.timestamp.tolist(), frames.flags.tolist()) == ([2**32 - 1], [0x8001])
    assert bytes(frames.body(0)) == b"extra678"


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.binary(max_size=64), min_size=1, max_size=5), st.sampled_from([0, 1]), st.data())
def test_checksums_are_those_of_zlib_and_of_a_log_in_use(bodies: list[bytes], flags: int, draw: st.DataObject) -> None:
    events = [with_checksum(build_event(16, body, server_id=1, flags=flags)) for body in bodies]
    head = with_checksum(build_event(EventType.FORMAT_DESCRIPTION, bodies[0], server_id=1))
    events.insert(0, head[:17] + bytes([flags]) + head[18:])
    data = b"".join(events)
    fast.verify_checksums(fast.frame(data, 0, CRC_LENGTH), "f")
    bad = draw.draw(st.integers(1, len(bodies)))
    at = sum(map(len, events[:bad])) + draw.draw(st.sampled_from([0, 5, len(events[bad]) - 1]))
    damaged = data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]
    with pytest.raises(ChecksumError, match=rf"^f:{sum(map(len, events[:bad]))}: "):
        fast.verify_checksums(fast.frame(damaged, 0, CRC_LENGTH), "f")


def test_a_log_without_checksums_has_none_to_verify() -> None:
    data = event(EventType.XID, b"12345678")
    fast.verify_checksums(fast.frame(data, 0, 0), "f")
    # the same bytes as an event with a checksum: they have a wrong one
    with pytest.raises(ChecksumError):
        fast.verify_checksums(fast.frame(data, 0, CRC_LENGTH), "f")


@settings(deadline=None)
@given(logs(), st.sampled_from([0, CRC_LENGTH]))
def test_stripped_events_are_those_of_the_plain_reader(statements: list[Statement], tail: int) -> None:
    data = log_of(statements, tail)
    frames = fast.frame(data, 0, tail)
    events = framed_plainly(data, tail)[0]
    wanted = np.arange(len(events))[::-1].copy()
    assert fast.strip_events(frames, wanted) == b"".join(without_checksum(raw) for raw in reversed(events))


@pytest.mark.parametrize("wanted", [[-1], [1], [0, 1]])
def test_events_that_do_not_exist_are_not_stripped(wanted: list[int]) -> None:
    with pytest.raises(ValueError, match="of 1 events"):
        fast.strip_events(fast.frame(event(EventType.XID, b"12345678"), 0, 0), np.array(wanted))


@settings(deadline=None)
@given(st.binary(max_size=40), st.lists(st.tuples(st.integers(-2, 42), st.integers(0, 42)), max_size=5))
def test_gather_copies_ranges_and_refuses_those_outside(data: bytes, ranges: list[tuple[int, int]]) -> None:
    offsets, lengths = (np.array([pair[side] for pair in ranges], np.int64) for side in (0, 1))
    if all(at >= 0 and at + length <= len(data) for at, length in ranges):
        assert fast.gather(data, offsets, lengths) == b"".join(data[at : at + length] for at, length in ranges)
    else:
        with pytest.raises(ValueError, match="not inside the buffer"):
            fast.gather(data, offsets, lengths)


def test_gather_refuses_lengths_that_are_no_lengths() -> None:
    with pytest.raises(ValueError, match="a length of -1"):
        fast.gather(b"abc", np.array([0, 1]), np.array([3, -1]))
    with pytest.raises(ValueError, match="1 offsets, 2 lengths"):
        fast.gather(b"abc", np.array([0]), np.array([1, 1]))


def test_tables_of_other_frames_are_refused() -> None:
    frames = fast.frame(event(EventType.TABLE_MAP, LONG), 0, 0)
    with pytest.raises(ValueError, match="not of these frames"):
        fast.count_rows(frames, fast.index_rows(frames, "f"), [], "f")


@pytest.mark.parametrize("data", [np.zeros(4, np.int32), np.zeros((2, 2), np.uint8), np.zeros(8, np.uint8)[::2]])
def test_arrays_of_other_types_than_bytes_are_refused(data: np.ndarray[tuple[int], np.dtype[np.uint8]]) -> None:
    with pytest.raises(ValueError, match="expected contiguous bytes"):
        fast.frame(data, 0, 0)


@pytest.mark.parametrize(("start", "tail"), [(-1, 0), (9, 0), (0, 3)])
def test_impossible_framing_arguments_are_refused(start: int, tail: int) -> None:
    with pytest.raises(ValueError, match="checksum length"):
        fast.frame(bytes(8), start, tail)
