"""Damaged and refused logs: one error with file and offset, and no segment of what cannot be read."""

from __future__ import annotations

import gzip
import shutil
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from binlane.binlog.wire import MAGIC, EventType, build_event
from binlane.errors import (
    BinlogError,
    ChecksumError,
    EncryptedLogError,
    IncidentError,
    TruncatedEventError,
    UnknownEventError,
    UnsupportedEventError,
)
from binlane.source.archive import ArchiveSource
from binlane.source.start_position import begin
from tests.integration.source.helpers import window

SECOND = "binlog.000002"


def events_of(log: bytes) -> list[tuple[int, int, int]]:
    """Offset, type and size of every event."""
    found, at = [], 4
    while at < len(log):
        size = struct.unpack_from("<I", log, at + 9)[0]
        found.append((at, log[at + 4], size))
        at += size
    return found


def first(log: bytes, kind: int) -> int:
    """Offset of the first event of a type."""
    return next(at for at, code, _ in events_of(log) if code == kind)


def inserted(log: bytes, kind: int, body: bytes, flags: int = 0) -> bytes:
    """The log with one more event before its first GTID."""
    at = first(log, 162)
    event = build_event(kind, body + bytes(4), server_id=1, flags=flags)[:-4]
    return log[:at] + event + zlib.crc32(event).to_bytes(4, "little") + log[at:]


def flipped(log: bytes) -> bytes:
    """One bit of a row changed."""
    at = log.index(b"word 5")
    return log[:at] + bytes([log[at] ^ 1]) + log[at + 1 :]


def resized(log: bytes) -> bytes:
    """An event that says it has no bytes."""
    at = first(log, 16) + 9
    return log[:at] + bytes(4) + log[at + 4 :]


OLD = MAGIC + struct.pack("<IBII", 0, EventType.START_V3, 1, 69) + bytes(56)
"""The beginning of a log whose events have headers of 13 bytes."""
DAMAGES: list[tuple[str, Callable[[bytes], bytes], type[BinlogError], str]] = [
    ("bad CRC", flipped, ChecksumError, r"binlog\.000002:\d+: .*stored CRC32"),
    (
        "bad CRC in the header",
        lambda log: log[:5] + bytes([log[5] ^ 1]) + log[6:],
        ChecksumError,
        r"binlog\.000002:4: ",
    ),
    ("wrong magic", lambda log: b"\xfebix" + log[4:], BinlogError, r"binlog\.000002:0: expected fe62696e"),
    ("empty file", lambda _: b"", TruncatedEventError, r"binlog\.000002:0: .* has 0 bytes"),
    ("cut in the magic", lambda log: log[:3], TruncatedEventError, r"binlog\.000002:0: .* has 3 bytes"),
    ("InnoDB's log", lambda log: b"\xfe\xfe\r\1" + log[4:], UnsupportedEventError, r"000002:0: .*mariadb-binlog"),
    ("packed under another name", lambda log: gzip.compress(log), UnsupportedEventError, r"000002:0: .*gzip"),
    ("packed by zstd", lambda log: zstandard.compress(log), UnsupportedEventError, r"000002:0: .*zstd"),
    ("of MySQL 4.0", lambda log: log[:8] + b"\1" + log[9:], UnsupportedEventError, r"000002:4: .*3\.23 to 4\.1"),
    ("of MySQL 3.23", lambda _: OLD, UnsupportedEventError, r"000002:4: .*3\.23 to 4\.1"),
    ("encrypted file", lambda log: b"\xfdbin" + log[4:], EncryptedLogError, r"binlog\.000002:0: "),
    ("encrypted events", lambda log: inserted(log, 164, bytes(17)), EncryptedLogError, r"binlog\.000002:\d+: "),
    ("no header", lambda log: log[:4] + log[first(log, 162) :], BinlogError, "expected FORMAT_DESCRIPTION"),
    ("only the magic", lambda log: log[:4], TruncatedEventError, r"binlog\.000002:4: .*ends before"),
    ("header without size", lambda log: log[:13] + bytes(4) + log[17:], BinlogError, r"binlog\.000002:4: .* 0 bytes"),
    ("cut in the header", lambda log: log[:60], TruncatedEventError, r"binlog\.000002:4: "),
    ("cut in an event", lambda log: log[:-20], TruncatedEventError, r"binlog\.000002:\d+: the file ends inside"),
    ("event without size", resized, BinlogError, r"binlog\.000002:\d+: event_size 0"),
    ("incident", lambda log: inserted(log, 26, b"\x01\x00\x04lost"), IncidentError, r"binlog\.000002:\d+: .*lost"),
    ("unknown event", lambda log: inserted(log, 250, b"new"), UnknownEventError, r"binlog\.000002:\d+: .*250"),
]


@pytest.mark.parametrize(("name", "damage", "error", "message"), DAMAGES, ids=[row[0] for row in DAMAGES])
def test_damage_stops_the_window_with_file_and_offset(
    name: str,
    damage: Callable[[bytes], bytes],
    error: type[BinlogError],
    message: str,
    archive_copy: Path,
    tmp_path: Path,
) -> None:
    archive = ArchiveSource(str(archive_copy))
    start = begin(archive, "oldest")
    path = archive_copy / SECOND
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(error, match=message) as caught:
        window(archive, start, tmp_path / name, segment_bytes=1 << 30)
    assert type(caught.value) is error
    assert {file.name for file in tmp_path.rglob("*.part")} == set()
    assert {file.name for file in tmp_path.rglob("*.binlog")} <= {"000001.binlog"}


def test_a_first_file_of_another_kind_is_named_before_the_channel_has_a_place(tmp_path: Path) -> None:
    (tmp_path / SECOND).write_bytes(OLD)
    with pytest.raises(UnsupportedEventError, match=rf"{SECOND}:4: .*3\.23 to 4\.1"):
        begin(ArchiveSource(str(tmp_path)), "oldest")


@pytest.mark.parametrize("beside", [True, False])
def test_a_log_that_goes_on_in_innodb_files_is_refused(beside: bool, mariadb_archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    shutil.copytree(mariadb_archive, folder) if beside else folder.mkdir()
    (folder / "binlog-000000.ibb").write_bytes(b"\xfe\xfe\r\1" + bytes(600))
    with pytest.raises(UnsupportedEventError, match=r"binlog-000000\.ibb:0: .*mariadb-binlog"):
        begin(ArchiveSource(str(folder)), "oldest")


def test_an_unknown_event_that_may_be_ignored_is_kept_in_its_segment(archive_copy: Path, tmp_path: Path) -> None:
    path = archive_copy / SECOND
    path.write_bytes(inserted(path.read_bytes(), 250, b"new", flags=0x80))
    archive = ArchiveSource(str(archive_copy))
    manifest = window(archive, begin(archive, "oldest"), tmp_path / "out")
    assert b"\xfa" in (tmp_path / "out" / manifest.segments[1].name).read_bytes()


def test_a_file_that_was_never_closed_may_end_anywhere(archive_copy: Path, tmp_path: Path) -> None:
    path = archive_copy / SECOND
    log = bytearray(path.read_bytes())
    log[21] |= 1
    path.write_bytes(log[:-20])
    archive = ArchiveSource(str(archive_copy))
    assert window(archive, begin(archive, "oldest"), tmp_path / "out").end.file == "binlog.000003"


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_a_packed_file_that_is_cut_or_damaged_is_named(suffix: str, archive_copy: Path, tmp_path: Path) -> None:
    pack = gzip.compress if suffix == ".gz" else zstandard.compress
    path = archive_copy / SECOND
    archive = ArchiveSource(str(archive_copy))
    start = begin(archive, "oldest")
    packed = pack(path.read_bytes())
    path.unlink()
    packed_path = path.with_name(SECOND + suffix)
    for data in (packed[: len(packed) // 2], packed[:40] + bytes(40) + packed[80:], b"not packed at all"):
        packed_path.write_bytes(data)
        with pytest.raises(BinlogError, match=r"binlog\.000002"):
            window(archive, start, tmp_path / "out")
