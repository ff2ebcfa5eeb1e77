"""The source's place of a seqno inside a window, read from the window's own segments."""

from __future__ import annotations

import struct
from pathlib import Path

from binlane.binlog.gtids import MariadbGtidFlag
from binlane.model import LogPosition
from binlane.source.identity import Start
from binlane.source.position_at import place_of
from binlane.source.protocol import LARGEST_EVENT
from binlane.work.files import WorkFolder
from tests.unit.binlog.cases import T, mariadb_gtid, wire
from tests.unit.plan.logs import XID, manifest_of, rows, segment_of, table_map


def test_what_the_extraction_has_accepted_has_a_place_whatever_it_inflates_to(tmp_path: Path) -> None:
    """The channel's limit may have been higher than the default; a stop has to find its place all the same."""
    stream = bytes([0x84]) + struct.pack(">I", 2 * LARGEST_EVENT) + b"x\x9c" + bytes(8)
    large = wire(T.WRITE_ROWS_COMPRESSED_V1, bytes([1, 0, 0, 0, 0, 0]) + b"\1\0" + b"\1" + b"\xff" + stream)
    transaction = (mariadb_gtid(2, int(MariadbGtidFlag.TRANSACTIONAL)), table_map(1), large, XID)
    data, segment = segment_of([rows(1, "a"), transaction, rows(3, "a")])
    (tmp_path / segment.name).parent.mkdir()
    (tmp_path / segment.name).write_bytes(data)
    start = Start(0, LogPosition(segment.source_file, segment.start_offset), "", 0.0, "me", "")
    place = place_of(WorkFolder(str(tmp_path)), manifest_of([segment]), start, 2)
    assert (place.seqno, place.gtid_set) == (2, "0-7-2")
