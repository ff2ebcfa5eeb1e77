"""Answers that are read by chunks, and by PyMySQL packet by packet."""

from __future__ import annotations

import io
import struct
from typing import Any

import pymysql
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysql.constants import FIELD_TYPE

from binlane.driver import results, wire
from binlane.driver.wire import WireConnection

_KINDS = (
    (FIELD_TYPE.VAR_STRING, 45),
    (FIELD_TYPE.BLOB, 63),
    (FIELD_TYPE.JSON, 63),
    (FIELD_TYPE.LONGLONG, 63),
    (FIELD_TYPE.DATETIME, 63),
    (FIELD_TYPE.BIT, 63),
)
_UNREADABLE = (pymysql.err.MySQLError, *wire.UNREADABLE)


class Socket:
    """Gives what was sent in pieces of these sizes, in turn, then the end."""

    family = None

    def __init__(self, sent: bytes, pieces: list[int]) -> None:
        self._sent, self._pieces, self._at, self._turn = sent, pieces, 0, 0

    def recv_into(self, buffer: Any) -> int:
        size = min(self._pieces[self._turn % len(self._pieces)], len(buffer), len(self._sent) - self._at)
        buffer[:size] = self._sent[self._at : self._at + size]
        self._at, self._turn = self._at + size, self._turn + 1
        return size

    def sendall(self, _: bytes) -> None: ...

    def settimeout(self, _: object) -> None: ...

    def close(self) -> None: ...


def length_of(value: bytes) -> bytes:
    size = len(value)
    if size < 251:
        return bytes([size])
    return b"\xfc" + struct.pack("<H", size) if size < 1 << 16 else b"\xfd" + struct.pack("<I", size)[:3]


def text(value: bytes | None) -> bytes:
    return b"\xfb" if value is None else length_of(value) + value


def column(name: str, kind: int, collation: int) -> bytes:
    names = b"".join(text(each) for each in (b"def", b"", b"t", b"t", name.encode(), name.encode()))
    return names + b"\x0c" + struct.pack("<HIBHBxx", collation, 1000, kind, 1, 0)


def stream(packets: list[bytes]) -> bytes:
    heads = (struct.pack("<I", len(each))[:3] + bytes([number % 256]) for number, each in enumerate(packets, 1))
    return b"".join(head + each for head, each in zip(heads, packets, strict=True))


def answer(kinds: list[tuple[int, int]], rows: list[list[bytes | None]], end: bytes) -> bytes:
    columns = [column(f"c{number}", *kind) for number, kind in enumerate(kinds)]
    packed = [b"".join(map(text, row)) for row in rows]
    return stream([bytes([len(kinds)]), *columns, b"\xfe\0\0\x02\0", *packed, end])


def prepared(connection: Any) -> Any:
    connection._next_seq_id, connection._result, connection._current_timeout = 1, None, connection._read_timeout
    return connection


def by_packets(sent: bytes) -> Any:
    connection = prepared(pymysql.connections.Connection(defer_connect=True))
    connection._sock, connection._rfile = Socket(b"", [1]), io.BytesIO(sent)
    return connection


def by_chunks(sent: bytes, pieces: list[int]) -> Any:
    connection = prepared(WireConnection(defer_connect=True, again={}))
    connection._sock, connection._rfile = Socket(sent, pieces), io.BytesIO()
    return connection


def read(connection: Any) -> object:
    """What comes of the answer: its columns and rows, or that it cannot be read."""
    try:
        connection._read_query_result()
    except _UNREADABLE as exc:
        return "error" if exc.args[0] not in (1064, 2013) else exc.args[0]
    found = connection._result
    return found.description, found.rows, found.affected_rows, found.has_next, connection._next_seq_id


def streamed(connection: Any) -> object:
    """The same, row by row."""
    rows, result = list[object](), None
    try:
        connection._read_query_result(unbuffered=True)
        result = connection._result
        while (row := result._read_rowdata_packet_unbuffered()) is not None:
            rows.append(row)
    except _UNREADABLE as exc:
        if result is not None:
            # nothing is left to read of a lost connection
            result.unbuffered_active = False
        return "error" if exc.args[0] not in (1064, 2013) else exc.args[0]
    return result.description, rows, result.unbuffered_active, connection._next_seq_id


_END = b"\xfe\0\0\x22\0"
_ERROR = b"\xff" + struct.pack("<H", 1064) + b"#42000no"
_PIECES = st.lists(st.sampled_from((1, 7, 1000)), max_size=4).map(lambda sizes: [*sizes, 1 << 16])
_VALUE = st.none() | st.sampled_from((b"", b"1", b"12", b"2026-01-02 03:04:05", b"x" * 250, b"y" * 251, b"z" * 70_000))


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    kinds = draw(st.lists(st.sampled_from(_KINDS), min_size=1, max_size=5))
    rows = draw(st.lists(st.lists(_VALUE, min_size=len(kinds), max_size=len(kinds)), max_size=40))
    return answer(kinds, rows, draw(st.sampled_from((_END, _ERROR))))


@given(answers(), _PIECES)
def test_an_answer_is_what_pymysql_reads_packet_by_packet(sent: bytes, pieces: list[int]) -> None:
    assert read(by_chunks(sent, pieces)) == read(by_packets(sent))
    assert streamed(by_chunks(sent, pieces)) == streamed(by_packets(sent))


@given(answers(), _PIECES, st.data())
def test_a_damaged_answer_is_read_or_refused_as_by_pymysql(sent: bytes, pieces: list[int], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, min(len(sent) - 1, 600)))
    damaged = sent[:at] + bytes([data.draw(st.integers(0, 255))]) + sent[at + 1 :]
    damaged = damaged[: data.draw(st.sampled_from((len(damaged), at + 1)))]
    assert read(by_chunks(damaged, pieces)) == read(by_packets(damaged))
    assert streamed(by_chunks(damaged, pieces)) == streamed(by_packets(damaged))


def test_the_rest_of_an_answer_that_nobody_wants_is_passed_over() -> None:
    sent = answer([_KINDS[0]], [[b"1"], [b"2"], [b"3"]], _END)
    connection = by_chunks(sent + stream([b"\0\0\0\x02\0\0\0"]), [1 << 16])
    connection._read_query_result(unbuffered=True)
    result = connection._result
    assert result._read_rowdata_packet_unbuffered() == ("1",)
    result._finish_unbuffered_query()
    assert result._read_rowdata_packet_unbuffered() is None
    connection._next_seq_id = 1
    connection._read_query_result()
    assert connection._result.affected_rows == 0


@pytest.mark.parametrize("is_unbuffered", [False, True])
def test_rows_that_come_at_once_count_for_the_limit_of_an_answer(
    monkeypatch: pytest.MonkeyPatch, is_unbuffered: bool
) -> None:
    monkeypatch.setattr(wire, "LARGEST_RESULT", 100_000)
    sent = answer([_KINDS[0]], [[b"1"]] * 2_000, _END)
    connection = by_chunks(sent, [1 << 16])
    if is_unbuffered:
        assert len(streamed(connection)[1]) == 2_000  # type: ignore[index]
    else:
        with pytest.raises(pymysql.err.OperationalError, match="more than 100,000 bytes in memory"):
            connection._read_query_result()


def test_more_columns_than_a_server_has_are_refused_before_they_are_read() -> None:
    sent = stream([b"\xfc" + struct.pack("<H", 4_097), *[column("c", *_KINDS[0])] * 4_097, _END, _END])
    connection = by_chunks(sent, [1 << 16])
    with pytest.raises(pymysql.err.OperationalError, match="more than 4,096 columns"):
        connection._read_query_result()


def test_no_long_description_of_a_column_is_kept() -> None:
    results._kept.cache_clear()
    for name in ("c", "c" * 1_000):
        by_chunks(stream([b"\x01", column(name, *_KINDS[0]), _END, _END]), [1 << 16])._read_query_result()
    assert results._kept.cache_info().currsize == 1


def test_what_somebody_has_read_of_the_stream_himself_is_not_taken_for_bytes_that_are_here() -> None:
    connection = by_chunks(answer([_KINDS[0]], [[b"1"]] * 100, _END), [1 << 16])
    connection._read_packet()
    assert connection._rfile.read1(1 << 16)
    connection._execute_command(3, "SELECT 1")
    assert (connection.unread, connection.rows_here()) == (0, [])
