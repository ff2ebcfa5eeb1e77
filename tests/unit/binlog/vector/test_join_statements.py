"""Joined statements change the same rows in the same order under the same flags as the statements they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.binlog.vector import join_statements
from binlane.binlog.vector.join_statements import joined
from binlane.binlog.wire import HEADER, EventType, build_event
from tests.tiers import examples
from tests.unit.binlog.row_events import EVERY_COLUMN, rows_body, table_map_body

T = EventType
SHAPES = ((EVERY_COLUMN["long"],), (EVERY_COLUMN["long"], EVERY_COLUMN["long"]))
IMAGES = (b"\0abcd", b"\0abcdefgh")


class Step(NamedTuple):
    """A rows event as the server takes it."""

    definition: bytes
    """Its table and columns."""
    event: bytes
    """Without table id and STMT_END_F."""
    flags: int
    """Those of the statement's first rows event, which the server goes by."""


def steps(payload: bytes) -> tuple[list[Step], int]:
    """What the server makes of a payload, and the number of statements. It may take no table and no id twice."""
    found, statements, at = list[Step](), 0, 0
    maps: dict[bytes, bytes] = {}
    flags: int | None = None
    while at < len(payload):
        _, code, _, size, _, _ = HEADER.unpack_from(payload, at)
        event, at = payload[at : at + size], at + size
        body = event[HEADER.size :]
        if code == T.TABLE_MAP:
            maps[body[:6]] = body[6:]
            continue
        flags = body[6] & ~1 if flags is None else flags
        found.append(Step(maps[body[:6]], event[: HEADER.size] + bytes([body[6] & ~1]) + body[7:], flags))
        if body[6] & 1:
            names = [definition[2 : 2 + definition[2] + 4] for definition in maps.values()]
            assert len(set(names)) == len(names)
            maps, flags, statements = {}, None, statements + 1
    assert flags is None
    return found, statements


def statement(tables: dict[int, tuple[str, int]], events: list[int], flags: int) -> bytes:
    """``tables``: by id the database of a table t and its shape; ``events``: the table ids of the rows events."""
    out = [
        build_event(T.TABLE_MAP, table_map_body(number, SHAPES[shape], name), server_id=1)
        for number, (name, shape) in tables.items()
    ]
    for place, number in enumerate(events, 1):
        shape = tables[number][1]
        bitmap = bytes([(1 << shape + 1) - 1])
        ends = place == len(events)
        body = bytearray(rows_body(T.WRITE_ROWS_V1, number, shape + 1, [bitmap], IMAGES[shape], ends=ends))
        body[6] |= flags
        out.append(build_event(T.WRITE_ROWS_V1, bytes(body), timestamp=place, server_id=1))
    return b"".join(out)


@st.composite
def logged(draw: st.DrawFn) -> bytes:
    """Statements of a few tables, whose ids, columns and flags seldom change."""
    now = {"a": (1, 0), "b": (2, 0), "c": (3, 1)}
    out = []
    for _ in range(draw(st.integers(1, 8))):
        if draw(st.integers(0, 4)) == 0:
            name = draw(st.sampled_from("abc"))
            free = [number for number in range(1, 6) if number not in {used for used, _ in now.values()}]
            now[name] = (draw(st.sampled_from([*free, now[name][0]])), draw(st.integers(0, 1)))
        names = draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True))
        tables = {now[name][0]: (name, now[name][1]) for name in names}
        events = draw(st.lists(st.sampled_from(sorted(tables)), min_size=1, max_size=4))
        out.append(statement(tables, events, draw(st.sampled_from([0, 0, 0, 2, 6]))))
    return b"".join(out)


@settings(max_examples=examples(200), deadline=None)
@given(logged(), st.sampled_from([2, 200]))
def test_the_server_does_the_same_in_fewer_statements(payload: bytes, most_tables: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join_statements, "TABLES", most_tables)
        made = joined(payload)
    before, statements = steps(payload)
    after, fewer = steps(made)
    assert after == before
    assert fewer <= statements
    assert len(made) <= len(payload)
    assert joined(made) == made or most_tables == 2


def maps_of(payload: bytes) -> Iterator[int]:
    at = 0
    while at < len(payload):
        _, code, _, size, _, _ = HEADER.unpack_from(payload, at)
        if code == T.TABLE_MAP:
            yield int.from_bytes(payload[at + HEADER.size : at + HEADER.size + 6], "little")
        at += size


A, B = {1: ("a", 0)}, {2: ("b", 0)}


@pytest.mark.parametrize(
    ("logged", "maps", "statements"),
    [
        pytest.param(statement(A, [1], 0) + statement(B, [2], 0) + statement(A, [1], 0), [1, 2], 1, id="a map once"),
        pytest.param(statement(A | B, [2], 0), [2], 1, id="a map that nobody uses"),
        pytest.param(statement(A, [1], 2) + statement(A, [1], 0), [1, 1], 2, id="other flags"),
        pytest.param(statement(A, [1], 6) + statement(A, [1], 6), [1, 1], 2, id="without checks"),
        pytest.param(statement(A, [1], 0) + statement({1: ("a", 1)}, [1], 0), [1, 1], 2, id="other columns"),
        pytest.param(statement(A, [1], 0) + statement({7: ("a", 1)}, [7], 0), [1, 7], 2, id="other columns and id"),
        pytest.param(statement(A, [1], 0) + statement({7: ("a", 0)}, [7], 0), [1], 1, id="the same under another id"),
        pytest.param(statement(A, [1], 0) + statement({1: ("b", 0)}, [1], 0), [1, 1], 2, id="its id for another"),
    ],
)
def test_rows_events_of_equal_columns_are_joined_into_one_statement(
    logged: bytes, maps: list[int], statements: int
) -> None:
    made = joined(logged)
    assert list(maps_of(made)) == maps
    assert steps(made)[1] == statements
