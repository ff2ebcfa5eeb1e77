"""A server that ends its answer before its log's end: what is missing is asked for again, and never left out."""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Final

import pytest

from binlane.binlog.wire import ARTIFICIAL
from binlane.errors import SourceError, SourceUnavailableError
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


class Torn(Server):
    """A file of its log ends inside an event: behind ``FILE`` and as many bytes of an event."""

    def __init__(self, file: str, files: tuple[str, ...], said: bytes, version: str) -> None:
        super().__init__()
        self.file, self.files, self.said, self.version = file, files, said, version

    def connected(self) -> SimpleNamespace:
        """As its superclass', for statements, too."""
        found = super().connected()
        found.get_server_info = lambda: self.version
        found.close = lambda: None
        return found

    def sent(self, start: LogPosition) -> list[bytes]:
        """Up to the tear, and the error there."""
        found = list[bytes]()
        for file in NAMES[NAMES.index(start.file) :]:
            begin = start.offset if file == start.file else 4
            found += packets(wire(T.ROTATE, struct.pack("<Q", begin) + file.encode(), ARTIFICIAL))
            found += packets(HEAD)
            found += [] if begin > 4 else itertools.chain.from_iterable(map(packets, EVENTS))
            if file == self.file:
                error = b"\xff" + struct.pack("<H", 1236) + b"#HY000" + self.said
                return [*found, len(error).to_bytes(3, "little") + b"\1" + error]
        return [*found, b"\1\0\0\0\xfe"]


SAID: Final = (
    b"binlog truncated in the middle of event; consider out of disk space on master; the first event 'binlog.000001' "
    b"at 4, the last event read from 'binlog.000002' at 500, the last byte read from 'binlog.000002' at 519."
)


@pytest.fixture
def torn(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Torn]:
    def made(file: str, files: tuple[str, ...] = NAMES, said: bytes = SAID, version: str = "11.8.2-MariaDB") -> Torn:
        found = Torn(file, files, said, version)
        monkeypatch.setattr(ServerSource, "connected", lambda source: found.connected())
        monkeypatch.setattr(server, "log_files", lambda connection: files)
        return found

    return made


@pytest.mark.parametrize("file", [FIRST, SECOND])
def test_the_log_goes_on_in_the_file_behind_a_tear(file: str, torn: Callable[..., Torn]) -> None:
    for offset in (4, 4 + len(FILE)):
        broken = torn(file)
        read = broken.read(LogPosition(FIRST, offset))
        assert [name for name, _, _ in read] == [*NAMES]
        assert all(data == FILE for _, _, data in read[1:])
        assert broken.begun[-1] == LogPosition(NAMES[NAMES.index(file) + 1], 4)


@pytest.mark.parametrize(
    ("file", "said", "version", "expected"),
    [
        pytest.param(THIRD, SAID, "11.8.2-MariaDB", r"source\.trusted_files", id="no file follows"),
        pytest.param(SECOND, SAID.replace(b"master", b"source"), "8.4.6", r"source\.trusted_files", id="mysql"),
        pytest.param(
            SECOND,
            b"log event entry exceeded max_allowed_packet",
            "11.8.2-MariaDB",
            r"max_allowed_packet \(1236\)$",
            id="other",
        ),
    ],
)
def test_what_proves_nothing_is_an_error(
    file: str, said: bytes, version: str, expected: str, torn: Callable[..., Torn]
) -> None:
    broken = torn(file, said=said, version=version)
    with pytest.raises(SourceError, match=rf"^db: the server says: {said.decode()[:8]}.*{expected}"):
        broken.read(LogPosition(FIRST, 4))


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
