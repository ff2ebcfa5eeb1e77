"""Events that declare more than memory has: refused where they stand, before their bytes are there; large ones are
read in one go."""

from __future__ import annotations

import io
import socket
import struct
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.binlog.vector.decompress import largest_inflated
from binlane.binlog.vector.frames import frame
from binlane.binlog.wire import MAGIC
from binlane.errors import BinlogError, UnsupportedEventError
from binlane.kernels import framing
from binlane.model import LogPosition
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilLogEnd
from binlane.source.segments import extract
from binlane.source.start_position import begin
from binlane.source.stream import Dump
from binlane.work.files import WorkFolder
from tests.unit.binlog.cases import MARIADB, MYSQL, T, format_event, mariadb_gtid, payload, query, wire
from tests.unit.plan.logs import IN_TRANSACTION, XID

MIB = 1 << 20
LIMIT = 16 * MIB
HEAD = MAGIC + format_event(MARIADB)


def large(size: int) -> bytes:
    """A transaction with one event of so many bytes, its head not counted."""
    return mariadb_gtid(1, IN_TRANSACTION) + wire(T.ANNOTATE_ROWS, bytes(size)) + XID


def archive(folder: Path, *parts: bytes) -> ArchiveSource:
    folder.mkdir()
    (folder / "binlog.000001").write_bytes(b"".join(parts))
    return ArchiveSource(str(folder), LIMIT)


def test_an_archive_looks_at_each_byte_of_a_large_event_once_or_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = list[int]()
    whole_events = framing.whole_events

    def counted(data: Any, *arguments: Any) -> Any:
        looked_at.append(data.size)
        return whole_events(data, *arguments)

    monkeypatch.setattr(framing, "whole_events", counted)
    log = HEAD + large(100) + large(15 * MIB) + large(200)
    source = archive(tmp_path / "logs", log)
    chunks = list(source.read_log(LogPosition("binlog.000001", 4)))
    assert b"".join((MAGIC, *(chunk.data for chunk in chunks))) == log
    assert sum(looked_at) < 2 * len(log) + 2 * MIB


@pytest.mark.parametrize("declared", [LIMIT + 1, 0xFFFF_FFFF])
def test_an_archive_refuses_an_event_by_what_it_declares(tmp_path: Path, declared: int) -> None:
    event = bytearray(wire(T.ANNOTATE_ROWS, bytes(3 * MIB)))
    struct.pack_into("<I", event, 9, declared)
    source = archive(tmp_path / "logs", HEAD, mariadb_gtid(1, IN_TRANSACTION), bytes(event))
    at = len(HEAD) + len(mariadb_gtid(1, IN_TRANSACTION))
    with pytest.raises(
        UnsupportedEventError, match=rf"binlog\.000001:{at}: ANNOTATE_ROWS: declares {declared:,} bytes"
    ):
        list(source.read_log(LogPosition("binlog.000001", 4)))


COMPRESSED_ROWS = wire(
    T.WRITE_ROWS_COMPRESSED_V1, b"\5\0\0\0\0\0\1\0" + b"\1\1" + b"\x84" + struct.pack(">I", 3 << 30) + b"xxxx"
)


@pytest.mark.parametrize(
    ("log_format", "event", "kind", "declared"),
    [
        (MYSQL, payload(query(b"BEGIN"), XID, declared=LIMIT + 1), "TRANSACTION_PAYLOAD", LIMIT + 1),
        (MYSQL, payload(query(b"BEGIN"), XID, declared=1 << 40), "TRANSACTION_PAYLOAD", 1 << 40),
        (MARIADB, COMPRESSED_ROWS, "WRITE_ROWS_COMPRESSED_V1", 3 << 30),
    ],
)
def test_a_compressed_event_is_refused_by_what_it_would_inflate_to(
    tmp_path: Path, log_format: Any, event: bytes, kind: str, declared: int
) -> None:
    head = MAGIC + format_event(log_format)
    small = payload(query(b"BEGIN"), XID) if log_format is MYSQL else mariadb_gtid(1, IN_TRANSACTION)
    source = archive(tmp_path / "logs", head, small, event)
    expected = rf"binlog\.000001:{len(head) + len(small)}: {kind}: declares {declared:,} inflated bytes, .* {LIMIT:,}"
    with pytest.raises(UnsupportedEventError, match=expected):
        extract(
            source, begin(source, "oldest"), UntilLogEnd(), WorkFolder(str(tmp_path / "out")), channel="c", window="w"
        )


def test_a_compressed_statement_is_refused_by_what_it_would_inflate_to(tmp_path: Path) -> None:
    body = struct.pack("<IIBHH", 6, 0, 1, 0, 0) + b"a\0\x84" + struct.pack(">I", LIMIT + 1) + b"xxxx"
    source = archive(tmp_path / "logs", HEAD, mariadb_gtid(1, IN_TRANSACTION), wire(T.QUERY_COMPRESSED, body))
    expected = rf"binlog\.000001:\d+: QUERY_COMPRESSED: declares {LIMIT + 1} inflated bytes, the limit is {LIMIT}"
    with pytest.raises(BinlogError, match=expected):
        extract(
            source, begin(source, "oldest"), UntilLogEnd(), WorkFolder(str(tmp_path / "out")), channel="c", window="w"
        )


def test_events_as_long_as_a_header_and_longer_than_what_is_read_at_once_come_whole(tmp_path: Path) -> None:
    events = (wire(T.STOP, b""),), (*(wire(T.ANNOTATE_ROWS, bytes(size)) for size in (3 * MIB, 10, 9 * MIB, MIB)),)
    for number, found in enumerate(events):
        log = archive(tmp_path / str(number), HEAD, *found)
        chunks = list(log.read_log(LogPosition("binlog.000001", 4)))
        assert b"".join(chunk.data for chunk in chunks[1:]) == b"".join(found)
        assert [chunk.offset for chunk in chunks[2:]] == [before.offset + len(before.data) for before in chunks[1:-1]]


def test_the_largest_declaration_is_found_and_nothing_is_inflated() -> None:
    plain = frame(query(b"BEGIN") + XID, 0, 0)
    assert largest_inflated(plain) == (-1, 0)
    sizes = (1 << 61, 7, 1 << 61, 3)
    # one that has no room left beside the others is still smaller than they are
    payloads = frame(b"".join(payload(XID, declared=size) for size in sizes), 0, 0)
    assert largest_inflated(payloads) == (0, 1 << 61)


def test_a_file_that_is_looked_at_inflates_no_payload_that_declares_more() -> None:
    data = MAGIC + format_event(MYSQL) + payload(query(b"BEGIN"), XID, declared=LIMIT + 1)
    with pytest.raises(UnsupportedEventError, match=r"log:\d+: TRANSACTION_PAYLOAD: declares 16777217 bytes"):
        list(transactions(LogReader(data, "log", event_bytes=LIMIT)))


# The packets of a dump, as a server sends them.


def packets(event: bytes) -> list[bytes]:
    data = b"\0" + event
    pieces = [data[at : at + 0xFF_FFFF] for at in range(0, len(data) + 1, 0xFF_FFFF)]
    return [struct.pack("<I", len(piece))[:3] + b"\0" + piece for piece in pieces]


def dumped(*sent: bytes) -> tuple[list[bytes], int]:
    """What a dump gives of those packets, and the bytes that were left unread when it ended by an error."""
    ours, theirs = socket.socketpair()
    total, taken = sum(map(len, sent)), 0

    def send() -> None:
        nonlocal taken
        with theirs:
            for piece in sent:
                for at in range(0, len(piece), MIB):
                    try:
                        theirs.sendall(piece[at : at + MIB])
                    except OSError:
                        return
                    taken += len(piece[at : at + MIB])

    thread = threading.Thread(target=send)
    thread.start()
    connection = SimpleNamespace(_rfile=io.BufferedReader(socket.SocketIO(ours, "r")), _sock=ours, _read_timeout=60)
    try:
        with ours:
            dump = Dump("db", connection, LogPosition("binlog.000001", 4), LIMIT, by_gtid=False)
            return [chunk.data for chunk in dump.chunks()], 0
    except BinlogError as exc:
        connection._rfile.close()
        ours.close()
        thread.join()
        exc.add_note(str(total - taken))
        raise
    finally:
        connection._rfile.close()
        thread.join()


def test_a_dump_refuses_an_event_as_soon_as_its_head_is_there() -> None:
    head, event = format_event(MARIADB), bytearray(wire(T.ANNOTATE_ROWS, bytes(60 * MIB)))
    struct.pack_into("<I", event, 9, LIMIT + 1)
    with pytest.raises(
        UnsupportedEventError, match=r"binlog\.000001:\d+: ANNOTATE_ROWS: declares 16,777,217 bytes"
    ) as told:
        dumped(*packets(head), *packets(bytes(event)))
    assert int(told.value.__notes__[0]) > 40 * MIB


def test_a_dump_ends_when_an_event_has_more_packets_than_it_declares() -> None:
    head, event = format_event(MARIADB), bytearray(wire(T.ANNOTATE_ROWS, bytes(90 * MIB)))
    struct.pack_into("<I", event, 9, LIMIT)
    with pytest.raises(BinlogError, match="whose event declares another size") as told:
        dumped(*packets(head), *packets(bytes(event)))
    assert int(told.value.__notes__[0]) > 40 * MIB


def test_a_dump_takes_an_event_of_several_packets_up_to_the_limit() -> None:
    event = wire(T.ANNOTATE_ROWS, bytes(LIMIT - 19))
    end = b"\1\0\0\0\xfe"
    found, _ = dumped(*packets(format_event(MARIADB)), *packets(event), end)
    assert found == [format_event(MARIADB), event]
