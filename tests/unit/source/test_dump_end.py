"""A server that ends its answer before its log's end: what is missing is asked for again, and never left out."""

from __future__ import annotations

import io
import itertools
import struct
from types import SimpleNamespace

import pytest

from binlane.binlog.wire import ARTIFICIAL
from binlane.errors import SourceUnavailableError
from binlane.model import LogPosition
from binlane.source import server, stream
from binlane.source.stream import ServerSource
from tests.unit.binlog.cases import MARIADB, T, format_event, mariadb_gtid, wire
from tests.unit.plan.logs import IN_TRANSACTION, XID
from tests.unit.source.test_event_bytes import packets

HEAD = format_event(MARIADB)
FIRST, SECOND, THIRD = (f"binlog.00000{number}" for number in (1, 2, 3))
NAMES = (FIRST, SECOND, THIRD)
EVENTS = [mariadb_gtid(1, IN_TRANSACTION), wire(T.ANNOTATE_ROWS, bytes(2000)), XID]
FILE = b"".join((HEAD, *EVENTS))
END = LogPosition(THIRD, 4 + len(FILE))


class Server:
    """Ends its answers behind so many events, one number for each dump; behind the last number at its log's end."""

    def __init__(self, *dumps: int, offset_limit: int = 1 << 31) -> None:
        self.left = [*dumps]
        self.begun = list[LogPosition]()
        self.source = ServerSource("db", {}, 9, "orders", offset_limit=offset_limit)

    def connected(self) -> SimpleNamespace:
        """A connection whose dump request is answered as a server does."""
        connection = SimpleNamespace(
            query=lambda statement: None,
            get_server_info=lambda: "11.8.2-MariaDB",
            _read_packet=lambda: None,
            _read_timeout=60,
            _sock=SimpleNamespace(settimeout=lambda seconds: None),
            _force_close=lambda: None,
        )

        def execute(command: int, request: bytes) -> None:
            if command == 0x12:
                place = LogPosition(request[10:].decode(), struct.unpack_from("<I", request)[0])
                self.begun.append(place)
                answer = b"".join(self.sent(place))
                connection._rfile = io.BufferedReader(io.BytesIO(answer))

        connection._execute_command = execute
        return connection

    def sent(self, start: LogPosition) -> list[bytes]:
        found, left = list[bytes](), self.left.pop(0) if self.left else 1000
        for file in NAMES[NAMES.index(start.file) :]:
            begin = start.offset if file == start.file else 4
            found += packets(wire(T.ROTATE, struct.pack("<Q", begin) + file.encode(), ARTIFICIAL)) if left else []
            found += packets(HEAD) if left > 1 else []
            left, at = left - 2, 4 + len(HEAD)
            for event in EVENTS:
                if at >= begin and left > 0:
                    found += packets(event)
                    left -= 1
                at += len(event)
            if left <= 0:
                break
        return [*found, b"\1\0\0\0\xfe"]

    def read(self, start: LogPosition) -> list[tuple[str, int, bytes]]:
        """The log as the source gives it: each file's bytes."""
        files = dict[str, tuple[int, bytes]]()
        for chunk in self.source.read_log(start):
            begin, data = files.get(chunk.file, (chunk.offset, b""))
            if start.file != chunk.file or start.offset == 4:
                assert chunk.offset == begin + len(data)
            files[chunk.file] = begin, data + chunk.data
        return [(file, begin, data) for file, (begin, data) in files.items()]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "log_end", lambda connection: END)
    monkeypatch.setattr(stream, "_AGAIN", 0.0)
    monkeypatch.setattr(stream, "_STANDS_STILL", 0.2)


def at(monkeypatch: pytest.MonkeyPatch, *dumps: int, offset_limit: int = 1 << 31) -> Server:
    found = Server(*dumps, offset_limit=offset_limit)
    monkeypatch.setattr(ServerSource, "connected", lambda source: found.connected())
    return found


OFFSETS = [4, *(4 + len(HEAD) + sum(map(len, EVENTS[:count])) for count in (0, 1, 2, 3))]


@pytest.mark.parametrize("offset", OFFSETS)
def test_a_dump_that_is_ended_anywhere_is_read_on(monkeypatch: pytest.MonkeyPatch, offset: int) -> None:
    start = LogPosition(FIRST, offset)
    whole = at(monkeypatch).read(start)
    assert [file for file, _, _ in whole] == [*NAMES]
    assert all(data == FILE for _, _, data in whole[1:])
    assert whole[0][2] == HEAD + FILE[max(offset - 4, len(HEAD)) :]
    for first, second in itertools.product(range(16), (0, 1, 2, 3, 7)):
        assert at(monkeypatch, first, second).read(start) == whole, (first, second)


def test_a_server_that_sends_nothing_more_before_its_logs_end_is_no_source(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = at(monkeypatch, *[4] * 3, *[2] * 10_000)
    with pytest.raises(
        SourceUnavailableError, match=rf"^db: {SECOND}:\d+: expected events up to {END}, .*run the step"
    ):
        ended.read(LogPosition(FIRST, 4))
    assert len(ended.begun) > 3


def test_a_place_that_only_gtids_find_is_not_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = at(monkeypatch, 4, offset_limit=100)
    with pytest.raises(SourceUnavailableError, match="expected events up to"):
        ended.read(LogPosition(FIRST, 4))
    assert ended.begun == [LogPosition(FIRST, 4)]


def test_a_log_that_has_grown_since_is_read_to_where_the_server_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    for end in (LogPosition(SECOND, 4 + len(FILE)), LogPosition(FIRST, 4 + len(FILE)), LogPosition(FIRST, 50)):
        monkeypatch.setattr(server, "log_end", lambda connection, end=end: end)
        found = at(monkeypatch)
        assert [file for file, _, _ in found.read(LogPosition(FIRST, 4))] == [*NAMES]
        assert len(found.begun) == 1
