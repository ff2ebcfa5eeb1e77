"""The reducer against a model of the target: a dictionary of rows for each table, changed event by event."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from binlane.binlog.rows import RowsEvent, RowsKind, row_images
from binlane.binlog.rows_payload import check_self_contained
from binlane.binlog.table_map import TableMap
from binlane.binlog.wire import HEADER, EventType, build_event
from binlane.model import DealtItem, Item, LogPosition, RowCounts, TableKey
from binlane.plan.block.builder import (
    BlockBuilder,
    BlockLimits,
    FinishedBlock,
    LoggedEvent,
    RowsPayload,
    net_effect,
    transaction_header,
)
from binlane.plan.block.deal import Deal
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.block.row_range import RowRange
from tests.tiers import examples
from tests.unit.binlog.row_events import EVERY_COLUMN, rows_body, table_map_body

COLUMNS = (EVERY_COLUMN["long"], EVERY_COLUMN["long"], EVERY_COLUMN["long"])
"""Primary key, unique key, and a value."""
NAMES = ("folded", "loose")
Row = tuple[int, int, int]
State = dict[tuple[str, int], Row]
RULES = {TableKey("folded", "t"): TableRule(width=3, primary=(0,), unique=(0, 1))}


def event(code: int, body: bytes) -> bytes:
    return build_event(code, body, server_id=1)


def image(row: Row) -> bytes:
    return b"\0" + struct.pack("<3i", *row)


def statement(number: int, kind: RowsKind, rows: list[tuple[Row | None, Row | None]]) -> bytes:
    code = {RowsKind.INSERT: EventType.WRITE_ROWS_V1, RowsKind.UPDATE: EventType.UPDATE_ROWS_V1}.get(
        kind, EventType.DELETE_ROWS_V1
    )
    images = b"".join(image(half) for row in rows for half in row if half is not None)
    bitmaps = [b"\7"] * (2 if kind is RowsKind.UPDATE else 1)
    body = rows_body(code, number, 3, bitmaps, images, ends=True)
    return event(EventType.TABLE_MAP, table_map_body(number, COLUMNS, NAMES[number - 1])) + event(code, body)


@st.composite
def stretches(draw: st.DrawFn) -> tuple[State, bytes, RowCounts]:
    """A first state, and changes that a source with these keys would have taken from there on."""
    state: State = {}
    for name in NAMES:
        keys = draw(st.sets(st.integers(0, 3)))
        state |= {(name, key): (key, 10 + key, 0) for key in keys}
    first, parts, counts = dict(state), list[bytes](), RowCounts()
    for _ in range(draw(st.integers(1, 30))):
        number = draw(st.sampled_from((1, 1, 1, 2)))
        name = NAMES[number - 1]
        key, unique, value = draw(st.integers(0, 3)), draw(st.integers(10, 14)), draw(st.integers(0, 2))
        old, new = state.get((name, key)), (key, unique, value)
        if draw(st.booleans()):
            new = (draw(st.integers(0, 3)), unique, value)
        others = [row for place, row in state.items() if place[0] == name and row is not old]
        fits = all(row[0] != new[0] and row[1] != new[1] for row in others)
        if old is None and fits and new[0] == key:
            parts.append(statement(number, RowsKind.INSERT, [(None, new)]))
            state[name, key], counts = new, counts + RowCounts(inserts=1)
        elif old is not None and draw(st.booleans()):
            parts.append(statement(number, RowsKind.DELETE, [(old, None)]))
            del state[name, key]
            counts += RowCounts(deletes=1)
        elif old is not None and fits:
            parts.append(statement(number, RowsKind.UPDATE, [(old, new)]))
            del state[name, key]
            state[name, new[0]], counts = new, counts + RowCounts(updates=1)
    return first, b"".join(parts), counts


def applied(state: State, payload: bytes, *, second_key: bool = True) -> tuple[State, RowCounts]:
    """What a target makes of it: every key is checked at every row, as a server does."""
    state, counts, maps, at = dict(state), RowCounts(), dict[int, TableMap](), 0
    while at < len(payload):
        header = HEADER.unpack_from(payload, at)
        body = memoryview(payload)[at + HEADER.size : at + header[3]]
        at += header[3]
        if header[1] == EventType.TABLE_MAP:
            table = TableMap.parse(body)
            maps[table.table_id] = table
            continue
        rows = RowsEvent.parse(header[1], body)
        table = maps[rows.table_id]
        for before, after in row_images(rows, table):
            old, new = (
                None if place is None else struct.unpack("<3i", rows.rows[place[0] + 1 : place[1]])
                for place in (before, after)
            )
            if old is not None:
                assert state.pop((table.database, old[0])) == old
            if new is not None:
                others = [row for place, row in state.items() if place[0] == table.database]
                assert all(row[0] != new[0] and not (second_key and row[1] == new[1]) for row in others), (
                    "duplicate key"
                )
                state[table.database, new[0]] = (new[0], new[1], new[2])
            counts += RowCounts(
                int(rows.kind is RowsKind.INSERT), int(rows.kind is RowsKind.UPDATE), int(rows.kind is RowsKind.DELETE)
            )
    return state, counts


@hypothesis_settings(max_examples=examples(300), deadline=None)
@given(stretches(), st.sampled_from([200, 400, 1 << 20]))
def test_a_reduced_stretch_has_the_effect_of_the_stretch(
    stretch: tuple[State, bytes, RowCounts], payload_bytes: int
) -> None:
    first, events, counts = stretch
    expected, read = applied(first, events)
    assert read == counts
    reduced = Reducer(RULES, payload_bytes, 1 << 20).reduce(events)
    loose = RowsPayload(payload_bytes, 1 << 20)
    items: list[Item] = []
    for one in reduced.loose:
        if one.counts is None:
            loose.add_map(one.event)
        else:
            items += loose.add_rows(one.event, one.counts, "")
    items += [*loose.flush(), *reduced.items]
    state, written = first, RowCounts()
    for item in items:
        check_self_contained(item.payload)
        state, found = applied(state, item.payload)
        assert found == item.rows
        written += found
    assert state == expected
    saved = sum(reduced.saved.values(), RowCounts())
    assert written == read + saved
    assert Reducer(RULES, payload_bytes, 1 << 20).reduce(events) == reduced


@hypothesis_settings(max_examples=examples(200), deadline=None)
@given(stretches(), st.sampled_from([1, 60, 150, 400]))
def test_a_large_transaction_folded_in_pieces_has_the_effect_of_the_whole(
    stretch: tuple[State, bytes, RowCounts], block_bytes: int
) -> None:
    state, events, counts = stretch
    expected, _ = applied(state, events)
    builder = BlockBuilder(BlockLimits(1, block_bytes, 1 << 20, 1 << 20), Reducer(RULES, 1 << 20, 1 << 20))
    header = transaction_header(1, LogPosition("b.1", 4), "", 0.0)
    (block,) = (FinishedBlock(block.header, list(block.items)) for block in builder.stream(header, logged(events)))
    written = RowCounts()
    for item in block.items:
        check_self_contained(item.payload)
        state, found = applied(state, item.payload)
        written += found
    assert state == expected
    assert written == counts + sum(builder.saved.values(), RowCounts())


def logged(payload: bytes) -> Iterator[LoggedEvent]:
    maps, at = dict[int, TableMap](), 0
    while at < len(payload):
        _, code, _, size, _, _ = HEADER.unpack_from(payload, at)
        event = payload[at : at + size]
        body = memoryview(event)[HEADER.size :]
        at += size
        if code == EventType.TABLE_MAP:
            table = TableMap.parse(body)
            maps[table.table_id] = table
            yield LoggedEvent(event, None, "")
            continue
        rows = RowsEvent.parse(code, body)
        count = len(list(row_images(rows, maps[rows.table_id])))
        kinds = [count if rows.kind is kind else 0 for kind in (RowsKind.INSERT, RowsKind.UPDATE, RowsKind.DELETE)]
        yield LoggedEvent(event, RowCounts(*kinds), "")


def test_ten_updates_of_a_row_are_one_and_a_row_that_came_and_went_is_none() -> None:
    updates = [statement(1, RowsKind.UPDATE, [((1, 11, n), (1, 11, n + 1))]) for n in range(10)]
    gone = [statement(1, RowsKind.INSERT, [(None, (2, 12, 0))]), statement(1, RowsKind.DELETE, [((2, 12, 0), None)])]
    reduced = Reducer(RULES, 1 << 20, 1 << 20).reduce(b"".join([*updates, *gone]))
    assert [item.rows for item in reduced.items] == [RowCounts(updates=1)]
    assert reduced.saved == {TableKey("folded", "t"): RowCounts(inserts=-1, updates=-9, deletes=-1)}


def test_a_table_without_a_rule_keeps_its_events_in_order() -> None:
    events = [statement(2, RowsKind.INSERT, [(None, (n, n, 0))]) for n in range(3)]
    reduced = Reducer(RULES, 1 << 20, 1 << 20).reduce(b"".join(events))
    assert b"".join(one.event for one in reduced.loose) == b"".join(events)
    assert reduced.items == []


def test_changes_that_do_not_fit_each_other_are_not_folded() -> None:
    twice = statement(1, RowsKind.INSERT, [(None, (1, 11, 0))])
    reduced = Reducer(RULES, 1 << 20, 1 << 20).reduce(twice + twice)
    assert b"".join(one.event for one in reduced.loose) == twice + twice


def test_a_row_that_came_and_went_with_the_highest_counter_is_written_and_deleted() -> None:
    rules = {TableKey("folded", "t"): TableRule(3, (0,), (0, 1), counter=0, counter_signed=True)}
    gone = [statement(1, RowsKind.INSERT, [(None, (9, 19, 0))]), statement(1, RowsKind.DELETE, [((9, 19, 0), None)])]
    reduced = Reducer(rules, 1 << 20, 1 << 20).reduce(b"".join(gone))
    assert [item.rows for item in reduced.items] == [RowCounts(inserts=1, deletes=1)]
    kept = statement(1, RowsKind.INSERT, [(None, (10, 20, 0))])
    reduced = Reducer(rules, 1 << 20, 1 << 20).reduce(b"".join([*gone, kept]))
    assert [item.rows for item in reduced.items] == [RowCounts(inserts=1)]


ONE_KEY = {TableKey("folded", "t"): TableRule(width=3, primary=(0,), unique=(0,), counter=0, counter_signed=True)}


@hypothesis_settings(max_examples=examples(300), deadline=None)
@given(stretches(), st.booleans(), st.permutations(range(3)), st.sampled_from([200, 1 << 20]), st.booleans())
def test_shares_by_key_have_the_effect_of_the_whole_in_any_order_of_the_lanes(
    stretch: tuple[State, bytes, RowCounts], folds: bool, order: list[int], payload_bytes: int, ranged: bool
) -> None:
    first, events, counts = stretch
    expected, _ = applied(first, events)
    deal = Deal(3, lambda table: None if table.database == "folded" else 1, lambda _: 0 if ranged else None)
    reducer = Reducer(ONE_KEY, payload_bytes, 1 << 20, deal, folds)
    saved, limits = dict[TableKey, RowCounts](), BlockLimits(100, 1 << 20, payload_bytes, 1 << 20)
    items = list(net_effect(events, reducer, limits, saved)) if events else []
    lanes: dict[tuple[str, int], set[int]] = {}
    state, written = first, RowCounts()
    for lane in order:
        for item in items:
            assert isinstance(item, DealtItem)
            if item.lane != lane:
                continue
            check_self_contained(item.payload)
            state, found = applied(state, item.payload, second_key=False)
            assert found == item.rows
            written += found
            for key in keys_of(item.payload):
                lanes.setdefault(key, set()).add(lane)
    assert state == expected
    assert written == counts + sum(saved.values(), RowCounts())
    assert all(len(found) == 1 for found in lanes.values())


def test_neighbouring_keys_have_one_lane_and_the_next_range_has_the_next_lane() -> None:
    keys = range(-2048, 8 * 1024, 16)
    inserts = statement(1, RowsKind.INSERT, [(None, (key, key, 0)) for key in keys])
    moved = statement(1, RowsKind.UPDATE, [((5 * 1024, 5 * 1024, 0), (9 * 1024, 9 * 1024, 0))])
    reducer = Reducer(ONE_KEY, 1 << 20, 1 << 20, Deal(3, lambda _: None, lambda _: 0))
    shares = reducer.shares(RowRange.of(inserts + moved, ONE_KEY))
    lane_of = {key: share.lane for share in shares for item in share.items for _, key in keys_of(item.payload)}
    assert lane_of.keys() == {*keys, 9 * 1024} - {5 * 1024}
    ranges = dict[int, int]()
    for key, lane in lane_of.items():
        assert lane is not None
        assert ranges.setdefault(key // 1024, lane) == lane
    assert [(ranges[at] - ranges[0]) % 3 for at in range(10) if at != 8] == [at % 3 for at in range(10) if at != 8]


def keys_of(payload: bytes) -> Iterator[tuple[str, int]]:
    """The keys of all rows; those of the other table together."""
    maps, at = dict[int, TableMap](), 0
    while at < len(payload):
        header = HEADER.unpack_from(payload, at)
        body = memoryview(payload)[at + HEADER.size : at + header[3]]
        at += header[3]
        if header[1] == EventType.TABLE_MAP:
            table = TableMap.parse(body)
            maps[table.table_id] = table
            continue
        rows = RowsEvent.parse(header[1], body)
        for places in row_images(rows, maps[rows.table_id]):
            for place in places:
                if place is not None:
                    key = struct.unpack_from("<i", rows.rows, place[0] + 1)[0]
                    yield maps[rows.table_id].database, key if rows.table_id == 1 else 0
