"""Connections whose temporary tables are open at a window's end, and that the log behind it shows to have ended."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlog.wire import MAGIC
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilPosition
from binlane.source.lost_sessions import lost_sessions
from binlane.source.segments import extract
from binlane.source.start_position import begin
from binlane.source.temporary import TemporaryTracker
from binlane.work.files import WorkFolder
from tests.unit.binlog.cases import T, crc, wire
from tests.unit.plan.logs import bound, rows
from tests.unit.source.test_load_files import HEADER, RESTARTED, Events, size

MADE, USED, DROPPED = (
    "CREATE TEMPORARY TABLE tmp (a INT)",
    "INSERT INTO t SELECT a FROM tmp",
    "DROP TEMPORARY TABLE tmp",
)
ROTATE = wire(T.ROTATE, struct.pack("<Q", 4) + b"binlog.000002")


def head(gtid: int) -> bytes:
    """A GTID list of what is before a file."""
    entries = struct.pack("<IIQ", 0, 7, gtid) if gtid else b""
    return crc(wire(T.MARIADB_GTID_LIST, struct.pack("<I", bool(gtid)) + entries))


def lost(folder: Path, first: tuple[Events, ...], second: tuple[Events, ...], *, restarted: bool = True) -> set[int]:
    """Of a window that ends behind the first two transactions of the first file."""
    source = ArchiveSource(str(folder / "log"))
    (folder / "log").mkdir()
    begins = MAGIC + HEADER + head(0)
    bodies = [b"".join(crc(event) for events in each for event in events) for each in (first, second)]
    end = b"" if restarted else crc(ROTATE)
    (folder / "log" / "binlog.000001").write_bytes(begins + bodies[0] + end)
    header = RESTARTED if restarted else HEADER
    (folder / "log" / "binlog.000002").write_bytes(MAGIC + header + head(len(first)) + bodies[1])
    tracker, start = TemporaryTracker(), begin(source, "oldest")
    until = UntilPosition(replace(start.position, offset=len(begins) + size(*first[:2])))
    work = WorkFolder(str(folder / "work"))
    manifest = extract(source, start, until, work, channel="c", window="w", temporary=tracker)
    assert manifest.last_seqno == 2
    return {connection for _, connection in lost_sessions(source, manifest, tracker)}


BEGUN = (bound(1, MADE, alone=True), rows(2, "a"))
AGAIN = (bound(3, MADE, alone=True), bound(4, USED))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param(BEGUN, (rows(3, "a"),), {6}, id="crash"),
        pytest.param((*BEGUN, rows(3, "a")), (rows(4, "a"),), {6}, id="crash later"),
        pytest.param(BEGUN, AGAIN, {6}, id="the number is given again"),
        pytest.param((*BEGUN, bound(3, USED)), (rows(4, "a"),), set(), id="used before the crash"),
        pytest.param((*BEGUN, bound(3, DROPPED, alone=True)), (rows(4, "a"),), set(), id="dropped before the crash"),
        pytest.param(
            (BEGUN[0], bound(2, MADE, alone=True, thread=9), bound(3, USED)), (rows(4, "a"),), {9}, id="one of two"
        ),
    ],
)
def test_a_restart_of_the_source_ends_its_connections(
    first: tuple[Events, ...], second: tuple[Events, ...], expected: set[int], tmp_path: Path
) -> None:
    """Nobody has to be asked for them."""
    assert lost(tmp_path, first, second) == expected


def test_a_new_file_ends_none(tmp_path: Path) -> None:
    assert lost(tmp_path, BEGUN, (rows(3, "a"),), restarted=False) == set()
