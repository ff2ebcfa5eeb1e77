"""Archives built from bytes: files of a server's log, with ids, times and ends as a test wants them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from binlane.binlog.wire import HEADER, MAGIC, ChecksumAlgorithm, EventType
from binlane.model import Flavor
from binlane.plan.manifest import Manifest
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import Until, UntilLogEnd
from binlane.source.identity import Start
from binlane.source.segments import extract
from binlane.work.files import WorkFolder
from tests.unit.binlog.cases import MARIADB, MYSQL, crc, format_event, query, wire
from tests.unit.plan.logs import rows

T = EventType
BEGUN = 1_700_000_000
"""Seconds since the epoch: when the first file was begun."""
_ANONYMOUS = wire(T.ANONYMOUS_GTID, b"\0" + bytes(16) + struct.pack("<qBqq", 0, 2, 5, 6))


def log_file(
    number: int,
    transactions: Sequence[int],
    flavor: Flavor = Flavor.MARIADB,
    *,
    before: Sequence[tuple[int, int]] = (),
    server_id: int = 7,
    begun: int = BEGUN,
    closed: int = BEGUN,
    end: EventType | None = T.ROTATE,
    restarted: bool = False,
    database: str = "a",
) -> bytes:
    """A file of a server's log.

    MariaDB: with GTIDs; ``transactions`` has their numbers, ``database`` is the one that they change, and ``before``
    has server id and number of the last ones of the files before. MySQL: without. ``begun`` and ``closed``: when, in
    seconds since the epoch; ``restarted``: by a start of the server.
    """
    log_format = replace(MARIADB if flavor is Flavor.MARIADB else MYSQL, checksum=ChecksumAlgorithm.CRC32)
    head = format_event(replace(log_format, created=begun if restarted else 0))
    if flavor is Flavor.MARIADB:
        listed = b"".join(struct.pack("<IIQ", 0, server, last) for server, last in before)
        events = [
            wire(T.MARIADB_GTID_LIST, struct.pack("<I", len(before)) + listed),
            *(each for seqno in transactions for each in rows(seqno, database)),
        ]
    else:
        events = [wire(T.PREVIOUS_GTIDS, bytes(8))]
        for each in transactions:
            events += [_ANONYMOUS, query(f"CREATE TABLE t{each} (id INT)".encode())]
    last = {
        None: [],
        T.STOP: [wire(T.STOP, b"")],
        T.ROTATE: [wire(T.ROTATE, struct.pack("<Q", 4) + f"binlog.{number + 1:06}".encode())],
    }[end]
    behind = [_of(each, server_id, begun) for each in events] + [_of(each, server_id, closed) for each in last]
    return MAGIC + crc(_of(head[:-4], server_id, begun, bare=4)) + b"".join(map(crc, behind))


def archive(folder: Path, *files: bytes, first: int = 1, trusted: Sequence[str] = ()) -> ArchiveSource:
    """A folder of these files, numbered from ``first`` on; it may have others already."""
    folder.mkdir(exist_ok=True)
    for number, data in enumerate(files, first):
        (folder / f"binlog.{number:06}").write_bytes(data)
    return ArchiveSource(str(folder), trusted_files=frozenset(trusted))


def window(source: ArchiveSource, start: Start, until: Until | None = None) -> Manifest:
    """What a window reads; its files are left in the memory of this process."""
    place = WorkFolder("memory://windows")
    return extract(source, start, UntilLogEnd() if until is None else until, place, channel="c", window="w")


def behind(read: Manifest) -> Start:
    """Where the next window begins."""
    return Start(read.last_seqno, read.end, read.gtid_set, read.end_time, read.identity, read.fingerprint)


def _of(event: bytes, server_id: int, time: int, bare: int = 0) -> bytes:
    """The event as another server has written it at a time. ``bare``: bytes that its size counts and it does not
    have."""
    _, code, _, size, log_pos, flags = HEADER.unpack_from(event)
    return HEADER.pack(time, code, server_id, size - bare, log_pos, flags) + event[HEADER.size :]
