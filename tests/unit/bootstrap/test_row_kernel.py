"""Rows of a text result set become the constructors that Python would write, wherever the bytes are cut."""

from __future__ import annotations

import random

import numpy as np
import pytest

from binlane.binlog.types.sql_values import Literal
from binlane.bootstrap.row_stream import arrays_of
from binlane.kernels import result_sets as kernel

Row = tuple[bytes | None, ...]
LITERALS = (
    *(Literal(), Literal(exponent=True)),
    *(Literal(b"_binary'", b"'", escapes=True), Literal(b"'", b"'", escapes=True)),
)
ROWS: tuple[Row, ...] = (
    (b"1", b"2.5", b"plain", b"2024-02-29"),
    (None, None, None, None),
    (b"", b"1e-7", b"", b""),
    (b"-9", b"0", b"a'b\\c\0d\n\xff", b"x" * 250),
    (b"7", b"-1.5E+3", b"'" * 70_000, None),
    (b"8", None, b"z" * 300, b"y" * 251),
)
END = b"\x05\x00\x00\x09\xfe\x00\x00\x02\x00"


def text(value: bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    size = len(value)
    if size < 251:
        return bytes([size]) + value
    return (b"\xfc" + size.to_bytes(2, "little") if size < 1 << 16 else b"\xfd" + size.to_bytes(3, "little")) + value


def packet(row: Row) -> bytes:
    body = b"".join(map(text, row))
    return len(body).to_bytes(3, "little") + b"\x01" + body


def constructor(row: Row) -> bytes:
    values = (b"NULL" if one is None else spell(one) for spell, one in zip(LITERALS, row, strict=True))
    return b"(" + b",".join(values) + b")"


def spelled(data: bytes, *, checked: bool = False, filled: int = 0, pending: int = 0, limit: int = 1 << 20,
            room: int = 1 << 20) -> tuple[int, bytes, int, int]:  # fmt: skip
    out = np.zeros(room, np.uint8)
    given = np.frombuffer(data + b"\xee", np.uint8)
    at, end, rows, code = kernel.spell_rows(
        given, 0, len(data), *arrays_of(LITERALS), checked, out, filled, pending, limit
    )
    return at, out[filled:end].tobytes(), rows, code


def test_rows_are_spelled_as_one_by_one() -> None:
    data = b"".join(map(packet, ROWS)) + END
    at, found, rows, code = spelled(data)
    assert (code, rows, at) == (kernel.END, len(ROWS), len(data) - len(END))
    assert found == b",".join(map(constructor, ROWS))


def test_every_cut_waits_for_more_and_continues_with_a_comma() -> None:
    data = b"".join(map(packet, ROWS[:4])) + END
    whole = b",".join(map(constructor, ROWS[:4]))
    for cut in range(len(data)):
        at, found, rows, code = spelled(data[:cut])
        assert code == kernel.MORE
        _, rest, others, code = spelled(data[at:], pending=rows)
        assert (code, rows + others, found + rest) == (kernel.END, 4, whole)


def test_a_statement_ends_before_its_limit_and_has_one_row_at_least() -> None:
    data = packet(ROWS[0]) + packet(ROWS[3]) + END
    at, found, rows, code = spelled(data, limit=len(constructor(ROWS[0])) + 1)
    assert (code, rows, found, at) == (kernel.FULL, 1, constructor(ROWS[0]), len(packet(ROWS[0])))
    assert spelled(data, limit=1)[1:] == (constructor(ROWS[0]), 1, kernel.FULL)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x03\x00\x00\x01\xff\x15\x04", kernel.ERROR),
        (b"\xff\xff\xff\x01", kernel.LONG),
        (b"\x00\x00\x00\x01", kernel.DAMAGED),
        (packet(ROWS[0][:3]), kernel.DAMAGED),
        (packet((*ROWS[0], b"too many")), kernel.DAMAGED),
        (packet((b"(SELECT 1)", *ROWS[0][1:])), kernel.DAMAGED),
        (packet((b"1),(2", *ROWS[0][1:])), kernel.DAMAGED),
        (packet((b"1", b"app.f()", *ROWS[0][2:])), kernel.DAMAGED),
        (b"\x06\x00\x00\x01\x01a\xfd\xff\xff\xff", kernel.DAMAGED),
        (b"\x0a\x00\x00\x01\xfe\xff\xff\xff\xff\xff\xff\xff\xff\xff", kernel.DAMAGED),
    ],
)
def test_other_packets_are_left_where_they_are(data: bytes, code: int) -> None:
    assert spelled(data) == (0, b"", 0, code)


def test_the_check_of_a_row_is_not_copied() -> None:
    good, bad = packet((b"1", *ROWS[0])), packet((b"0", *ROWS[0]))
    assert spelled(good + bad, checked=True) == (len(good), constructor(ROWS[0]), 1, kernel.UNFAITHFUL)
    assert spelled(packet((None, *ROWS[0])), checked=True)[3] == kernel.UNFAITHFUL


def test_a_small_output_buffer_is_not_overrun() -> None:
    data = packet(ROWS[0]) + END
    need = next(room for room in range(10_000) if spelled(data, room=room)[3] == kernel.END)
    assert need >= len(constructor(ROWS[0]))
    for room in range(need):
        assert spelled(data, room=room) == (0, b"", 0, kernel.NO_ROOM)


def test_a_changed_byte_never_leads_out_of_the_buffers() -> None:
    """the output would differ in length from its guard, or the process would crash."""
    data = b"".join(map(packet, (*ROWS[:4], ROWS[5]))) + END
    dice = random.Random(7)
    for _ in range(4_000):
        damaged = bytearray(data)
        damaged[dice.randrange(len(data))] = dice.randrange(256)
        at, found, rows, _ = spelled(bytes(damaged))
        assert at <= len(data)
        assert (rows == 0) == (found == b"")
