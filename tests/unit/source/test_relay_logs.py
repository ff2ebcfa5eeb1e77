"""Two formats in one log: relay logs, of which a window's segments could keep only one, and files of both families."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.wire import MAGIC, ChecksumAlgorithm, EventFlag
from binlane.errors import SourceIdentityError, UnsupportedEventError
from binlane.plan.manifest import Manifest
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilLogEnd
from binlane.source.segments import extract
from binlane.source.start_position import begin
from binlane.work.files import WorkFolder
from tests.unit.binlog.cases import MARIADB, MYSQL, T, crc, format_event, wire
from tests.unit.plan.logs import rows, statements

CRC, UNKNOWN = ChecksumAlgorithm.CRC32, ChecksumAlgorithm.UNDEFINED
ROTATE = wire(T.ROTATE, struct.pack("<Q", 4) + b"binlog.000009", flags=0x20)
EVENTS = (*statements(1, "INSERT INTO t VALUES (1)"), *rows(2, "a"))


def extracted(folder: Path, first: FormatDescription, second: FormatDescription) -> Manifest:
    rotate = crc(ROTATE) if first.checksum is CRC else ROTATE
    (folder / "archive").mkdir()
    log = MAGIC + format_event(first) + rotate + format_event(second) + b"".join(map(crc, EVENTS))
    (folder / "archive" / "relay-bin.000001").write_bytes(log)
    source = ArchiveSource(str(folder / "archive"))
    place = WorkFolder(str(folder / "out"))
    return extract(source, begin(source, "oldest"), UntilLogEnd(), place, channel="c", window="w")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(replace(MARIADB, checksum=UNKNOWN), replace(MARIADB, checksum=CRC), id="checksums"),
        pytest.param(replace(MARIADB, checksum=CRC), replace(MYSQL, checksum=CRC), id="family"),
    ],
)
def test_a_file_with_two_formats_is_refused(
    tmp_path: Path, first: FormatDescription, second: FormatDescription
) -> None:
    """Read by the first, the statement would end with its checksum: four bytes that the source never ran."""
    with pytest.raises(UnsupportedEventError, match=r"relay-bin\.000001:\d+: FORMAT_DESCRIPTION: .*a relay log"):
        extracted(tmp_path, first, second)
    assert list(tmp_path.rglob("*.binlog")) == []


def test_a_relay_log_whose_formats_are_equal_is_refused_by_its_mark(tmp_path: Path) -> None:
    log_format = replace(MARIADB, checksum=CRC)
    log = MAGIC + format_event(log_format, flags=EventFlag.RELAY_LOG) + crc(ROTATE) + format_event(log_format)
    (tmp_path / "relay-bin.000001").write_bytes(log + b"".join(map(crc, EVENTS)))
    with pytest.raises(UnsupportedEventError, match=r"relay-bin\.000001:4: FORMAT_DESCRIPTION: a relay log"):
        begin(ArchiveSource(str(tmp_path)), "oldest")


def test_the_same_format_again_changes_nothing(tmp_path: Path) -> None:
    same = replace(MARIADB, checksum=CRC)
    assert extracted(tmp_path, same, replace(same, created=1_700_000_000)).last_seqno == 2


@pytest.mark.parametrize(("first", "second"), [(MARIADB, MYSQL), (MYSQL, MARIADB)])
def test_a_file_of_the_other_family_is_refused(
    tmp_path: Path, first: FormatDescription, second: FormatDescription
) -> None:
    """A server that was migrated in place keeps its old files, and gives them out."""
    source = tmp_path / "archive"
    source.mkdir()
    for number, log_format in enumerate((first, second), start=1):
        head = format_event(replace(log_format, checksum=CRC))
        (source / f"binlog.{number:06d}").write_bytes(MAGIC + head + (b"" if number == 1 else previous(log_format)))
    archive = ArchiveSource(str(source))
    with pytest.raises(
        SourceIdentityError, match=r"binlog\.000002: FORMAT_DESCRIPTION: expected a file of the source's"
    ):
        extract(
            archive, begin(archive, "oldest"), UntilLogEnd(), WorkFolder(str(tmp_path / "out")), channel="c", window="w"
        )


def previous(log_format: FormatDescription) -> bytes:
    """An empty PREVIOUS_GTIDS or GTID_LIST."""
    if log_format is MYSQL:
        return crc(wire(T.PREVIOUS_GTIDS, struct.pack("<Q", 0)))
    return crc(wire(T.MARIADB_GTID_LIST, struct.pack("<I", 0)))
