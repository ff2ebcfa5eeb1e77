"""Walking a log: framing, checksums, and every reason to stop."""

from __future__ import annotations

import contextlib
import mmap
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlog.format_description import BARE_FORMAT, FormatDescription
from binlane.binlog.reader import LogReader
from binlane.binlog.wire import ENCRYPTED_MAGIC, HEADER, MAGIC, ChecksumAlgorithm, RawEvent, without_checksum
from binlane.errors import (
    BinlogError,
    ChecksumError,
    EncryptedLogError,
    IncidentError,
    TruncatedEventError,
    UnknownEventError,
    UnsupportedEventError,
)
from tests.unit.binlog.cases import MARIADB, MYSQL, T, crc, format_event, log, mariadb_gtid, query, wire

XID = wire(T.XID, b"\x2a" + bytes(7))
EVENTS = (mariadb_gtid(1, 4), query(b"INSERT"), XID)


def read(data: bytes, *, verify: bool = True) -> list[RawEvent]:
    return list(LogReader(data, "binlog.000001", verify=verify).events())


@pytest.mark.parametrize("checksums", [True, False])
@pytest.mark.parametrize("log_format", [MARIADB, MYSQL], ids=["mariadb", "mysql"])
def test_events_come_out_without_header_and_checksum(checksums: bool, log_format: FormatDescription) -> None:
    data = log(*EVENTS, log_format=log_format, checksums=checksums)
    described, *events = read(data)

    assert described.header.type_code == T.FORMAT_DESCRIPTION
    assert described.offset == len(MAGIC)
    assert [bytes(event.body) for event in events] == [event[HEADER.size :] for event in EVENTS]
    assert [without_checksum(event) for event in events] == list(EVENTS)
    for event, after in zip(events, [*[event.offset for event in events[1:]], len(data)], strict=True):
        assert event.offset + event.header.event_size == after


def test_bodies_are_slices_of_the_log() -> None:
    data = memoryview(log(*EVENTS))

    assert all(event.body.obj is data.obj for event in LogReader(data, "log").events())


def test_a_mapped_file_is_read_like_bytes(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(log(*EVENTS))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        reader = LogReader(mapped, path.name)
        bodies = [bytes(event.body) for event in reader.events()]
        del reader

    assert bodies == [bytes(event.body) for event in read(log(*EVENTS))]


OLD = replace(BARE_FORMAT, server_version="5.1.38", post_header_lengths=BARE_FORMAT.post_header_lengths[:27])


def test_a_damaged_version_does_not_turn_checksums_off() -> None:
    data = bytearray(MAGIC + format_event(replace(MYSQL, checksum=ChecksumAlgorithm.CRC32)) + crc(XID))
    at = data.index(MYSQL.server_version.encode())
    data[at] = ord("4")
    with pytest.raises(BinlogError, match=r"binlog.*:4: FORMAT_DESCRIPTION: .*the version is damaged"):
        read(bytes(data))


def test_the_algorithm_is_read_again_at_every_format() -> None:
    with_crc = format_event(replace(MYSQL, checksum=ChecksumAlgorithm.CRC32))
    without = format_event(replace(MYSQL, checksum=ChecksumAlgorithm.NONE))

    events = read(MAGIC + with_crc + crc(XID) + without + XID + with_crc + crc(XID))

    assert [bytes(event.body) for event in events if event.header.type_code == T.XID] == [XID[19:]] * 3


@pytest.mark.parametrize("index", range(4))
def test_a_wrong_checksum_stops_with_offset_and_both_values(index: int) -> None:
    data = bytearray(log(*EVENTS))
    offset = read(bytes(data))[index].offset
    data[offset + 30] ^= 1

    with pytest.raises(ChecksumError, match=rf"^binlog\.000001:{offset}: \w+: stored CRC32 is [0-9a-f]{{8}}, computed"):
        read(bytes(data))


def test_checksums_are_not_computed_where_nobody_asks() -> None:
    data = bytearray(log(*EVENTS))
    data[-1] ^= 1

    assert len(read(bytes(data), verify=False)) == 4


def test_the_in_use_flag_is_no_error_and_is_told() -> None:
    assert LogReader(log(flags=1), "log").in_use
    assert not LogReader(log(), "log").in_use


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", TruncatedEventError, "the file has 0 bytes"),
        (b"\xfebi", TruncatedEventError, "the file has 3 bytes"),
        (MAGIC, TruncatedEventError, "0 are left"),
        (ENCRYPTED_MAGIC + bytes(600), EncryptedLogError, "keyring"),
        (b"\xfe\xfe\x0d\x01" + bytes(600), UnsupportedEventError, "mariadb-binlog"),
        (b"\x1f\x8b\x08\x00" + bytes(600), UnsupportedEventError, "gzip"),
        (b"\x28\xb5\x2f\xfd" + bytes(600), UnsupportedEventError, "zstd"),
        (b"PK\3\4" + bytes(600), BinlogError, "expected fe62696e, found 504b0304: this is no binary log"),
        (MAGIC + wire(T.START_V3, bytes(56)), UnsupportedEventError, "3.23 to 4.1"),
        (MAGIC + struct.pack("<IBII", 0, T.START_V3, 1, 69) + bytes(56), UnsupportedEventError, "3.23 to 4.1"),
        (MAGIC + XID, BinlogError, "expected FORMAT_DESCRIPTION first, found XID"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_by_name(data: bytes, error: type[BinlogError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        LogReader(data, "binlog.000001")

    assert type(caught.value) is error
    assert str(caught.value).startswith("binlog.000001:")


@pytest.mark.parametrize(
    ("event", "error", "message"),
    [
        (wire(T.START_ENCRYPTION, bytes(17)), EncryptedLogError, "all events from here on are encrypted"),
        (wire(T.PERCONA_START_ENCRYPTION, bytes(17)), EncryptedLogError, "all events from here on are encrypted"),
        (wire(T.INCIDENT, b"\1\0\4gone"), IncidentError, r"INCIDENT 1 \('gone'\): the source lost changes"),
        (wire(T.START_V3, bytes(56)), UnsupportedEventError, "START_V3"),
        (wire(T.UNKNOWN, b"", flags=0x80), UnknownEventError, "type 0"),
        (wire(T.SLAVE, b""), UnknownEventError, "type 7"),
        (wire(200, b""), UnknownEventError, "cannot skip event type 200"),
    ],
)
def test_an_event_that_must_not_be_passed_stops_the_log(event: bytes, error: type[BinlogError], message: str) -> None:
    data = log(XID, event, XID)
    offset = len(data) - len(crc(XID)) - len(crc(event))
    passed: list[RawEvent] = []

    with pytest.raises(error, match=rf"^binlog\.000001:{offset}: .*{message}") as caught:
        passed.extend(LogReader(data, "binlog.000001").events())

    assert type(caught.value) is error


def test_an_unknown_event_with_the_ignorable_flag_is_passed_on() -> None:
    assert [event.header.type_code for event in read(log(wire(200, b"x", flags=0x80), XID))] == [15, 200, 16]


def test_everything_before_a_cut_is_read_and_the_cut_is_told() -> None:
    data = log(*EVENTS)
    offsets = [event.offset for event in read(data)]
    for end in range(offsets[1], len(data)):
        reader = LogReader(data[:end], "log")
        events: list[RawEvent] = []
        if end in offsets:
            events.extend(reader.events())
            assert reader.position == end
        else:
            with pytest.raises(TruncatedEventError):
                events.extend(reader.events())
            assert reader.position == max(offset for offset in offsets if offset < end)
        assert len(events) == sum(offset < reader.position for offset in offsets)


def test_a_cut_inside_the_format_is_truncated() -> None:
    head = log()
    for end in range(len(MAGIC), len(head)):
        with pytest.raises(TruncatedEventError):
            LogReader(head[:end], "log")


@pytest.mark.parametrize(
    "body", [b"", b"\4\0", b"\4\0" + b"9", b"\4\0" + b"9.7.4", b"\4\0" + b"9.7.4".ljust(54, b"\0")]
)
def test_a_format_that_is_too_short_is_refused(body: bytes) -> None:
    with pytest.raises(BinlogError, match=r"^log:4: FORMAT_DESCRIPTION: "):
        LogReader(MAGIC + HEADER.pack(0, T.FORMAT_DESCRIPTION, 1, 19 + len(body), 0, 0) + body, "log")


def test_a_tail_of_zeros_is_truncated() -> None:
    data = log(XID)

    with pytest.raises(TruncatedEventError, match=rf"^log:{len(data)}: only zeros from here on"):
        list(LogReader(data + bytes(64), "log").events())


@pytest.mark.parametrize("size", [0, 18, 19, 22])
def test_a_size_without_header_and_checksum_is_refused(size: int) -> None:
    data = bytearray(log(XID))
    struct.pack_into("<I", data, len(data) - len(crc(XID)) + 9, size)

    with pytest.raises(BinlogError, match=f"event_size {size} is smaller than a header"):
        read(bytes(data))


# previous position, size, log_pos as it stands in the header: what a file larger than 4 GiB looks like after the wrap
@pytest.mark.parametrize(
    ("size", "log_pos"), [(8161, 7014), (8125, 429542491), (31, 1179088375), (7927, 6076), (31, 0)]
)
def test_offsets_are_counted_and_never_read_from_the_header(size: int, log_pos: int) -> None:
    event = HEADER.pack(0, T.ROWS_QUERY, 1, size, log_pos, 0) + bytes(size - HEADER.size)
    data = log(checksums=False) + event + XID

    _, wrapped, after = read(data)

    assert wrapped.header.log_pos == log_pos
    assert after.offset == wrapped.offset + size


def test_a_corrupt_byte_raises_nothing_but_binlog_errors() -> None:
    data = log(*EVENTS)
    for at in range(len(data)):
        for value in (0, 1, 2, 15, 0x80, 0xFF):
            corrupt = data[:at] + bytes([value]) + data[at + 1 :]
            with contextlib.suppress(BinlogError):
                read(corrupt, verify=False)
