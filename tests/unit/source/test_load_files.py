"""Extraction keeps the file of a LOAD DATA and its statement in one segment, and says where a window cannot end."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

from binlane.binlog.wire import ChecksumAlgorithm
from binlane.model import LogPosition
from binlane.plan.manifest import Segment
from binlane.source.end_position import UntilLogEnd
from binlane.source.identity import Start
from binlane.source.load_files import LoadFileTracker
from binlane.source.protocol import LOG_START, LogChunk, LogState
from binlane.source.segment_writer import Stretch
from binlane.source.segments import Extraction
from tests.unit.binlog.cases import MARIADB, T, crc, format_event, mariadb_gtid, query, wire
from tests.unit.plan.logs import IN_TRANSACTION, XID, rows

HEADER = format_event(replace(MARIADB, checksum=ChecksumAlgorithm.CRC32))
RESTARTED = format_event(replace(MARIADB, checksum=ChecksumAlgorithm.CRC32, created=1_700_000_000))
FIRST = LOG_START + len(HEADER)
Events = tuple[bytes, ...]


class Counted:
    """A sink that keeps the segments' last seqnos."""

    def __init__(self) -> None:
        self.last: list[int] = []
        self.segments: tuple[Segment, ...] = ()

    def write(self, data: bytes | memoryview, header: bytes) -> None:
        """The bytes are of no interest."""

    def close(self, stretch: Stretch) -> None:
        self.last.append(stretch.last_seqno)

    def abort(self, exc: BaseException) -> None:
        raise AssertionError from exc


def file(file_id: int, seqno: int, size: int = 1, kind: int = T.BEGIN_LOAD_QUERY) -> Events:
    """A transaction with a file's block."""
    block = wire(kind, struct.pack("<I", file_id) + bytes(size))
    return (mariadb_gtid(seqno, IN_TRANSACTION), block, query(b"COMMIT"))


def ended(file_id: int, seqno: int) -> Events:
    """A transaction with the end of a file: what an EXECUTE_LOAD_QUERY and a DELETE_FILE have in common."""
    return (mariadb_gtid(seqno, IN_TRANSACTION), wire(T.DELETE_FILE, struct.pack("<I", file_id)), XID)


def size(*transactions: Events) -> int:
    return sum(len(crc(event)) for events in transactions for event in events)


def extracted(segment_bytes: int, *files: Sequence[Events], header: bytes = HEADER) -> tuple[list[int], int | None]:
    """The last seqno of each segment; the offset in the last file that the window must end before, if there is one."""
    start = Start(0, LogPosition("binlog.000001", FIRST), "", 0.0, "me", "")
    state = LogState("me", MARIADB.flavor, ("binlog.000001",), None, 1_800_000_000.0, closes_by_clock=True)
    sink, loads = Counted(), LoadFileTracker()
    run = Extraction("s", state, start, UntilLogEnd(), sink, segment_bytes, loads=loads)
    for number, transactions in enumerate(files, 1):
        name = f"binlog.{number:06d}"
        run.take(LogChunk(name, LOG_START, HEADER if number == 1 else header))
        data = b"".join(crc(event) for events in transactions for event in events)
        run.take(LogChunk(name, FIRST if number == 1 else LOG_START + len(header), data))
    run.finish()
    return sink.last, None if loads.open_since is None else loads.open_since.offset


def test_no_segment_ends_between_a_file_and_its_statement() -> None:
    log = (rows(1, "a"), file(1, 2), rows(3, "a"), rows(4, "a"), file(1, 5, kind=T.APPEND_BLOCK), ended(1, 6))
    assert extracted(1, log[:1] + log[2:4]) == ([1, 2, 3], None)
    assert extracted(size(*log), log) == ([6], None)
    # from the file's transaction on as many bytes as a segment has, whatever is before it
    assert extracted(size(*log[2:]), log) == ([6], None)
    assert extracted(size(*log[2:]) - 1, (rows(0, "a"), *log)) == ([7], None)
    assert extracted(size(*log[2:5]), log) == ([5, 6], None)


def test_a_file_may_be_larger_than_a_segment() -> None:
    assert extracted(1000, (file(1, 1, 5000), ended(1, 2), rows(3, "a"))) == ([2, 3], None)


def test_files_that_are_open_one_after_another_are_held_for_one_segment_s_size() -> None:
    log = (file(1, 1), file(2, 2), ended(1, 3), file(3, 4), ended(2, 5), file(4, 6), ended(3, 7), ended(4, 8))
    assert extracted(size(*log[1:]) + 1, log) == ([8], None)
    assert extracted(size(*log[1:3]), log) == ([3, 6, 8], None)


def test_a_window_must_end_before_the_first_file_without_a_statement() -> None:
    log = (rows(1, "a"), file(1, 2), file(2, 3), ended(2, 4), rows(5, "a"))
    assert extracted(1 << 20, log) == ([5], FIRST + size(*log[:1]))
    assert extracted(1 << 20, (*log, ended(1, 6))) == ([6], None)
    assert extracted(1 << 20, (*log, ended(1, 6), file(3, 7))) == ([7], FIRST + size(*log) + size(ended(1, 6)))


def test_a_file_whose_statement_does_not_come_is_given_up() -> None:
    """Its segment ends after so many bytes, or with the source's file; windows may end anywhere then."""
    log = (file(1, 1), rows(2, "a"), rows(3, "a"), rows(4, "a"))
    assert extracted(size(log[1]) + 1, log) == ([3, 4], None)
    assert extracted(1 << 20, log, (rows(5, "a"),)) == ([4, 5], None)
    assert extracted(1 << 20, log, (rows(5, "a"),), header=RESTARTED) == ([4, 5], None)
