"""FORMAT_DESCRIPTION as every reader of a file sees it, whatever the server has made of it on the way."""

from __future__ import annotations

import struct

import pytest

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.wire import CHECKSUM_LENGTH, ChecksumAlgorithm
from binlane.errors import ChecksumError
from binlane.source.identity import canonical_header

_LOG_POS_AT = 13
_SOUND = FormatDescription("9.7.0").without_checksum()


def changed(log_pos: int, algorithm: ChecksumAlgorithm) -> bytes:
    """With the CRC32 of what it was before."""
    event = bytearray(_SOUND)
    struct.pack_into("<I", event, _LOG_POS_AT, log_pos)
    event[-CHECKSUM_LENGTH - 1] = algorithm
    event[-1] ^= 0xFF
    return bytes(event)


def test_mysql_without_checksums_changes_the_event_and_leaves_its_checksum() -> None:
    """It does so for a reader that begins in the middle of a file; tried on MySQL 5.6 and 9.7 without GTIDs."""
    assert canonical_header(changed(0, ChecksumAlgorithm.NONE), "log") == canonical_header(_SOUND, "log")


@pytest.mark.parametrize(
    ("log_pos", "algorithm"), [(0, ChecksumAlgorithm.CRC32), (len(_SOUND) + 4, ChecksumAlgorithm.NONE)]
)
def test_any_other_wrong_checksum_of_it_is_damage(log_pos: int, algorithm: ChecksumAlgorithm) -> None:
    with pytest.raises(ChecksumError, match="stored CRC32"):
        canonical_header(changed(log_pos, algorithm), "log")
