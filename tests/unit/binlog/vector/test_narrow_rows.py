"""Short images hold the key before and the changed columns after; everything else is copied byte for byte."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlog.vector.frames import frame, index_rows, table_layouts, table_maps
from binlane.binlog.vector.narrow_rows import narrowed
from binlane.binlog.wire import EventType, build_event
from binlane.errors import BinlogError
from tests.unit.binlog.narrowed_plainly import narrowed_plainly
from tests.unit.binlog.row_events import EVERY_COLUMN, Column, bitmap, image, rows_body, table_map_body

T = EventType
KINDS = {
    T.WRITE_ROWS_V1: (False, True),
    T.UPDATE_ROWS_V1: (True, True),
    T.DELETE_ROWS_V1: (True, False),
    T.WRITE_ROWS_V2: (False, True),
    T.UPDATE_ROWS_V2: (True, True),
    T.DELETE_ROWS_V2: (True, False),
}
WIDE = [EVERY_COLUMN["long"], EVERY_COLUMN["varchar-256"], EVERY_COLUMN["blob"], EVERY_COLUMN["longlong"]]


def short(payload: bytes, keys: dict[int, Sequence[int]]) -> bytes:
    """``keys``: by table id."""
    frames = frame(payload, 0, 0)
    frames.check("block")
    index = index_rows(frames, "block")
    tables = table_maps(frames, index, "block")
    return narrowed(frames, index.number, table_layouts(tables), [keys[table.table_id] for table in tables])


def event(code: int, body: bytes) -> bytes:
    return build_event(code, body, timestamp=1_700_000_000, server_id=7)


def update(*rows: tuple[Sequence[bytes | None], Sequence[bytes | None]], flags: int = 1) -> bytes:
    """A statement that updates rows of the table ``WIDE``."""
    whole = [True] * len(WIDE)
    images = b"".join(image(WIDE, whole, values) for row in rows for values in row)
    body = rows_body(T.UPDATE_ROWS_V1, 1, len(WIDE), [bitmap(whole)] * 2, images)
    body = body[:6] + bytes([flags]) + body[7:]
    return event(T.TABLE_MAP, table_map_body(1, WIDE)) + event(T.UPDATE_ROWS_V1, body)


@st.composite
def payloads(draw: st.DrawFn) -> tuple[bytes, dict[int, Sequence[int]]]:
    """A payload and each table's key."""
    out, keys = list[bytes](), dict[int, Sequence[int]]()
    dice = draw(st.randoms(use_true_random=False))

    def value(column: Column) -> bytes | None:
        prefix, fixed = column.length
        return (
            None
            if dice.random() < 0.2
            else dice.randbytes(fixed if prefix == 0 else dice.randrange(dice.choice((20, 200))))
        )

    for table_id in range(1, draw(st.integers(1, 3)) + 1):
        columns = draw(st.lists(st.sampled_from(list(EVERY_COLUMN.values())), min_size=1, max_size=18))
        width = len(columns)
        keys[table_id] = sorted(draw(st.sets(st.integers(0, width - 1), max_size=3)))
        out.append(event(T.TABLE_MAP, table_map_body(table_id, columns, f"db{table_id}")))
        events = draw(st.integers(1, 3))
        for number in range(1, events + 1):
            code, (before, after) = draw(st.sampled_from(list(KINDS.items())))
            masks = [[True] * width for _ in range(before + after)]
            if draw(st.integers(0, 5)) == 0:
                masks = [[dice.random() < 0.8 or n == 0 for n in range(width)] for _ in masks]
            data = b""
            for _ in range(draw(st.integers(1, 6))):
                old = [value(column) for column in columns]
                new = [
                    value(column) if dice.random() < 0.2 else kept for column, kept in zip(columns, old, strict=True)
                ]
                data += b"".join(image(columns, mask, one) for mask, one in zip(masks, (old, new), strict=False))
            ends = number == events and draw(st.booleans())
            body = rows_body(code, table_id, width, [bitmap(mask) for mask in masks], data, ends=ends)
            out.append(event(code, body))
    return b"".join(out), keys


@given(payloads())
def test_machine_code_and_plain_python_give_the_same_bytes(given: tuple[bytes, dict[int, Sequence[int]]]) -> None:
    payload, keys = given
    found = short(payload, keys)
    assert found == narrowed_plainly(payload, lambda table: keys[table.table_id])
    assert len(found) <= len(payload)


@given(payloads(), st.data())
def test_damaged_rows_are_copied_or_refused(given: tuple[bytes, dict[int, Sequence[int]]], data: st.DataObject) -> None:
    payload, keys = given
    at = data.draw(st.integers(0, len(payload) - 1))
    damaged = payload[:at] + bytes([data.draw(st.integers(0, 255))]) + payload[at + 1 :]
    with contextlib.suppress(BinlogError, KeyError):
        assert len(short(damaged, keys)) <= len(damaged)


def test_an_update_is_its_key_and_the_columns_that_change_in_any_row() -> None:
    old = [b"\1\0\0\0", b"abc", b"x" * 500, None]
    payload = update((old, [old[0], b"abd", old[2], None]), (old, [old[0], b"abc", old[2], b"12345678"]))
    maps = event(T.TABLE_MAP, table_map_body(1, WIDE))
    key = image(WIDE, [True, False, False, False], old)
    sent = [False, True, False, True]
    rows = [
        key,
        image(WIDE, sent, [None, b"abd", None, None]),
        key,
        image(WIDE, sent, [None, b"abc", None, b"12345678"]),
    ]
    body = rows_body(T.UPDATE_ROWS_V1, 1, 4, [b"\1", b"\x0a"], b"".join(rows))
    assert short(payload, {1: [0]}) == maps + event(T.UPDATE_ROWS_V1, body)


def test_updates_of_other_columns_are_events_of_their_own_where_that_is_shorter_in_the_same_order() -> None:
    old = [b"\1\0\0\0", b"abc", b"x" * 500, b"12345678"]
    one, other = [old[0], b"abd", *old[2:]], [*old[:2], b"y" * 500, old[3]]
    payload = update((old, one), (old, one), (old, other), (old, one))
    maps = event(T.TABLE_MAP, table_map_body(1, WIDE))
    key = image(WIDE, [True, False, False, False], old)
    few, many = [False, True, False, False], [False, False, True, False]

    def sent(mask: list[bool], *rows: Sequence[bytes | None], ends: bool) -> bytes:
        images = b"".join(key + image(WIDE, mask, row) for row in rows)
        return event(T.UPDATE_ROWS_V1, rows_body(T.UPDATE_ROWS_V1, 1, 4, [b"\1", bitmap(mask)], images, ends=ends))

    assert short(payload, {1: [0]}) == (
        maps + sent(few, one, one, ends=False) + sent(many, other, ends=False) + sent(few, one, ends=True)
    )


def test_an_event_that_would_get_longer_is_copied() -> None:
    """Every second update changes the key, whose bytes an event of its own saves once; what stands before the images
    is long, and every event has it."""
    columns, whole, extra = [EVERY_COLUMN["blob"], EVERY_COLUMN["tiny"]], [True, True], bytes(1000)
    a, b, c = (bytes([n]) * 1300 for n in range(3))
    rows = [(a, b"\0"), (b, b"\0")], [(b, b"\0"), (b, b"\1")], [(b, b"\1"), (c, b"\1")]
    images = b"".join(image(columns, whole, values) for row in rows for values in row)
    body = rows_body(T.UPDATE_ROWS_V2, 1, 2, [bitmap(whole)] * 2, images)
    body = body[:8] + (2 + len(extra)).to_bytes(2, "little") + extra + body[10:]
    payload = event(T.TABLE_MAP, table_map_body(1, columns)) + event(T.UPDATE_ROWS_V2, body)
    assert short(payload, {1: [0]}) == payload == narrowed_plainly(payload, lambda _: [0])


def test_an_update_that_changes_nothing_still_has_a_row() -> None:
    row = [b"\1\0\0\0", b"abc", b"x" * 500, None]
    body = rows_body(T.UPDATE_ROWS_V1, 1, 4, [b"\1", b"\1"], 2 * image(WIDE, [True, False, False, False], row))
    assert short(update((row, row)), {1: [0]})[-len(body) :] == body


def test_short_images_are_not_marked_as_complete_rows() -> None:
    row = [b"\1\0\0\0", b"abc", b"x" * 500, None]
    payload = update((row, [row[0], b"", *row[2:]]), flags=0b1011)
    maps = len(event(T.TABLE_MAP, table_map_body(1, WIDE)))
    assert short(payload, {1: [0]})[maps + 19 + 6] == 0b0011
    assert short(payload, {1: []}) == payload


def test_events_with_checksums_are_refused() -> None:
    frames = frame(b"", 0, 4)
    with pytest.raises(ValueError, match="without checksums"):
        narrowed(frames, index_rows(frames, "block").number, table_layouts([]), [])


def test_a_table_of_more_columns_than_one_byte_counts_is_copied() -> None:
    columns = [EVERY_COLUMN["tiny"]] * 251
    whole = bitmap([True] * 251)
    row = image(columns, [True] * 251, [b"\0"] * 251)
    body = rows_body(T.DELETE_ROWS_V1, 1, 251, [whole], row)
    payload = event(T.TABLE_MAP, table_map_body(1, columns)) + event(T.DELETE_ROWS_V1, body)
    assert short(payload, {1: [0]}) == payload
