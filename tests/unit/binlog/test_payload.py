"""Compressed events: what comes out, and what is refused."""

from __future__ import annotations

import contextlib
import zlib

import pytest
import zstandard

from binlane.binlog.events import Xid, parse_body
from binlane.binlog.payload import Compression, inflate, unpack
from binlane.binlog.wire import BufferOffset, RawEvent, build_event, read_header, without_checksum
from binlane.errors import BinlogError, UnsupportedEventError
from tests.unit.binlog.cases import MYSQL, T, payload, query, wire

INNER = (query(b"BEGIN"), wire(T.XID, b"\x2a" + bytes(7)))


def raw(event: bytes, offset: int = 4_294_967_300) -> RawEvent:
    view = memoryview(event)
    return RawEvent(BufferOffset(offset), read_header(view, 0, "log"), view[19:])


@pytest.mark.parametrize("compression", list(Compression))
def test_the_inner_events_come_out_with_the_offset_of_the_outer_one(compression: Compression) -> None:
    events = list(unpack(raw(payload(*INNER, compression=compression))))

    assert [without_checksum(event) for event in events] == list(INNER)
    assert {event.offset for event in events} == {4_294_967_300}
    assert parse_body(events[1], MYSQL) == Xid(42)


def test_a_payload_larger_than_one_block_of_the_decompressor_comes_out_whole() -> None:
    large = wire(T.ROWS_QUERY, bytes(3_000_000))

    assert [without_checksum(event) for event in unpack(raw(payload(large, *INNER)))] == [large, *INNER]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (payload(*INNER, declared=len(b"".join(INNER)) + 30), "inflates to less than its declared size"),
        (payload(*INNER, declared=len(INNER[0])), "holds more than the declared"),
        (payload(*INNER, declared=len(INNER[0]) + 19), "event_size 27, 19 bytes of the declared"),
        (payload(build_event(T.XID, b"", server_id=1)[:9] + bytes(10)), "event_size 0"),
        (wire(T.TRANSACTION_PAYLOAD, b"\2\1\0\3\1\5\1\1\4\0data"), "the file is damaged here"),
        (wire(T.TRANSACTION_PAYLOAD, b"\2\1\0\3\1\5\1\1\5\0data"), "payload size 5, 4 bytes are left"),
        (wire(T.TRANSACTION_PAYLOAD, b"\2\1\7\3\1\5\1\1\4\0data"), "7 is not a valid Compression"),
    ],
)
def test_a_payload_that_contradicts_itself_is_refused(event: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message) as caught:
        list(unpack(raw(event), "binlog.000001"))

    assert str(caught.value).startswith("binlog.000001:4294967300: TRANSACTION_PAYLOAD: ")


def test_a_declared_size_above_the_limit_is_refused_before_anything_is_inflated() -> None:
    with pytest.raises(UnsupportedEventError, match="declares 1099511627776 bytes"):
        next(unpack(raw(payload(*INNER, declared=1 << 40))))


def test_an_unknown_field_is_skipped_by_its_length() -> None:
    event = payload(*INNER)
    known = raw(event[:19] + b"\x09\3abc" + event[19:])

    assert len(list(unpack(known._replace(body=memoryview(b"\x09\3abc" + event[19:]))))) == 2


def test_a_corrupt_byte_raises_nothing_but_binlog_errors() -> None:
    event = payload(*INNER)
    for at in range(19, len(event)):
        for value in (0, 1, 0x7F, 0x80, 0xFB, 0xFC, 0xFE, 0xFF):
            corrupt = event[:at] + bytes([value]) + event[at + 1 :]
            with contextlib.suppress(BinlogError):
                list(unpack(raw(corrupt)))


def mariadb_part(data: bytes, declared: int | None = None) -> bytes:
    return b"\x84" + (len(data) if declared is None else declared).to_bytes(4, "big") + zlib.compress(data)


def test_a_compressed_part_comes_out_whole() -> None:
    assert inflate(memoryview(mariadb_part(b"k" * 100_000))) == b"k" * 100_000


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "a field of 1 bytes, 0 are left"),
        (b"\x02\0\5" + zlib.compress(b"abcde"), "begins with 0x02"),
        (b"\x94\0\0\0\5" + zlib.compress(b"abcde"), "begins with 0x94"),
        (mariadb_part(b"abcde", declared=4), "4 are declared"),
        (mariadb_part(b"abcde", declared=6), "inflates to 5 bytes"),
        (mariadb_part(b"abcde")[:-1], "inflates to 5 bytes"),
        (b"\x81\5garbage", "incorrect header check"),
        (mariadb_part(b"a", declared=(1 << 30) + 1), "the limit is 1073741824"),
    ],
)
def test_a_compressed_part_that_contradicts_itself_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        inflate(memoryview(data))


def test_a_bomb_is_not_inflated_further_than_it_declares() -> None:
    bomb = zstandard.compress(bytes(1 << 26))
    event = wire(
        T.TRANSACTION_PAYLOAD, b"\2\1\0\3\1\x20\1\4" + b"\xfd" + len(bomb).to_bytes(3, "little") + b"\0" + bomb
    )

    with pytest.raises(BinlogError, match="event_size 0, 32 bytes of the declared 32"):
        list(unpack(raw(event)))
