"""Folding over blocks against the model of a target: what is folded again has the effect of what was folded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from binlane.binlog.rows import RowsEvent, RowsKind, row_images
from binlane.binlog.rows_payload import check_self_contained
from binlane.binlog.table_map import TableMap
from binlane.binlog.wire import HEADER, EventType
from binlane.model import BlockHeader, Item, ItemKind, LogPosition, RowCounts, SessionContext, TableKey
from binlane.plan.block.builder import BlockBuilder, BlockLimits
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.window.reduce import LaneFolder
from binlane.plan.window_plan import Block
from tests.tiers import examples
from tests.unit.plan.block.test_reduce_model import RULES, Row, State, applied, logged, statement, stretches

COUNTED = {TableKey("folded", "t"): TableRule(3, (0,), (0, 1), counter=0, counter_signed=True)}
LIMITS = BlockLimits(1000, 1 << 20, 1 << 20, 1 << 20)
Folded = list[tuple[BlockHeader, tuple[Item, ...]]]


def header(first: int, last: int) -> BlockHeader:
    place = LogPosition("binlog.000007", 100 * first)
    return BlockHeader(first, last, last - first + 1, place, f"0-1-{last}", 1_700_000_000.0 + last)


def fold(
    blocks: Sequence[tuple[BlockHeader, Sequence[Item]]],
    bound: int = 1 << 20,
    edges: Sequence[int] = (),
    reducer: Reducer | None = None,
    formats: Sequence[bytes] = (),
) -> tuple[Folded, dict[TableKey, RowCounts]]:
    """The blocks folded. ``edges``: seqnos that a barrier's edge stands before; ``formats``: one a block."""
    folding = LaneFolder(
        Reducer(RULES, 1 << 20, 1 << 20) if reducer is None else reducer,
        LIMITS,
        bound,
        lambda seqno: sum(edge <= seqno for edge in edges),
    )
    given = [
        Block(head, formats[number] if formats else b"f", iter(items)) for number, (head, items) in enumerate(blocks)
    ]
    return [(block.header, tuple(block.items)) for _, block in folding.fold(given)], folding.saved


def statements_of(events: bytes) -> list[bytes]:
    """Each TABLE_MAP with its rows event."""
    found, at = list[bytes](), 0
    while at < len(events):
        _, code, _, size, _, _ = HEADER.unpack_from(events, at)
        if code == EventType.TABLE_MAP:
            found.append(b"")
        found[-1] += events[at : at + size]
        at += size
    return found


def change(kind: RowsKind, old: Row | None, new: Row | None) -> bytes:
    return statement(1, kind, [(old, new)])


def block_of(first: int, *changes: bytes) -> tuple[BlockHeader, tuple[Item, ...]]:
    """A block of a transaction a change, as it was logged."""
    counts = sum((one.counts for each in changes for one in logged(each) if one.counts is not None), RowCounts())
    return header(first, first + len(changes) - 1), (Item(ItemKind.ROWS, b"".join(changes), counts),)


def update(key: int, value: int) -> bytes:
    return change(RowsKind.UPDATE, (key, 10 + key, value), (key, 10 + key, value + 1))


def insert(key: int) -> bytes:
    return change(RowsKind.INSERT, None, (key, 10 + key, 0))


@pytest.mark.parametrize("rules", [RULES, COUNTED], ids=["plain", "counted"])
@hypothesis_settings(max_examples=examples(300), deadline=None)
@given(stretches(), st.data())
def test_blocks_folded_again_have_the_effect_of_their_transactions(
    rules: dict[TableKey, TableRule], stretch: tuple[State, bytes, RowCounts], data: st.DataObject
) -> None:
    first, events, counts = stretch
    expected, _ = applied(first, events)
    parts = statements_of(events)
    cuts = sorted({0, len(parts), *data.draw(st.sets(st.integers(0, len(parts)), max_size=6))})
    reducer = Reducer(rules, data.draw(st.sampled_from([200, 1 << 20])), 1 << 20)
    builder, blocks = BlockBuilder(LIMITS, reducer), list[tuple[BlockHeader, Sequence[Item]]]()
    for start, end in pairwise(cuts):
        for one in logged(b"".join(parts[start:end])):
            builder.add_event(one.event, one.counts, one.where)
        assert list(builder.end_transaction(header(start + 1, end))) == []
        blocks += [(block.header, tuple(block.items)) for block in builder.finish()]
    bound = data.draw(st.sampled_from([1, 300, 1000, 1 << 20]))
    found, saved = fold(blocks, bound, reducer=reducer)
    assert (found, saved) == fold(blocks, bound, reducer=reducer)
    state, written = first, RowCounts()
    for _, items in found:
        for item in items:
            check_self_contained(item.payload)
            state, made = applied(state, item.payload)
            assert made == item.rows
            written += made
    assert state == expected
    assert written == counts + sum((*saved.values(), *builder.saved.values()), RowCounts())
    assert [n for head, _ in found for n in range(head.first_seqno, head.last_seqno + 1)] == [*range(1, len(parts) + 1)]
    if rules is COUNTED:
        payloads = b"".join(item.payload for _, items in found for item in items)
        assert counter(first, payloads) == counter(first, events)
    elif bound == 1 << 20 and blocks:
        # one fold of the source's own events leaves as much
        once = reducer.reduce(events)
        assert len(found) == 1
        assert written == counts + sum(once.saved.values(), RowCounts())


def counter(first: State, events: bytes) -> int:
    """The highest id that the folded table has ever had."""
    ids = [key for name, key in first if name == "folded"]
    maps, at = dict[int, TableMap](), 0
    while at < len(events):
        _, code, _, size, _, _ = HEADER.unpack_from(events, at)
        body = memoryview(events)[at + HEADER.size : at + size]
        at += size
        if code == EventType.TABLE_MAP:
            table = TableMap.parse(body)
            maps[table.table_id] = table
            continue
        rows = RowsEvent.parse(code, body)
        if maps[rows.table_id].database == "folded":
            new = [after for _, after in row_images(rows, maps[rows.table_id]) if after is not None]
            ids += [int.from_bytes(rows.rows[start + 1 : start + 5], "little") for start, _ in new]
    return max(ids, default=0)


def seqnos(found: Folded) -> list[tuple[int, int]]:
    return [(head.first_seqno, head.last_seqno) for head, _ in found]


def test_a_row_that_changes_in_every_block_is_written_once_in_a_block_of_all() -> None:
    blocks = [block_of(3 * n + 1, *(update(1, 3 * n + each) for each in range(3))) for n in range(40)]
    [(head, items)], saved = fold(blocks)
    assert head == BlockHeader(1, 120, 120, LogPosition("binlog.000007", 100), "0-1-120", 1_700_000_120.0)
    assert [item.rows for item in items] == [RowCounts(updates=1)]
    assert saved == {TableKey("folded", "t"): RowCounts(updates=-119)}


def test_memory_does_not_grow_with_the_length_of_a_range() -> None:
    """A bound of six blocks: rows that change all the time fit it, however many blocks there are; others are cut."""
    one = len(block_of(1, update(1, 0))[1][0].payload)
    hot, held = [block_of(n + 1, update(1, n)) for n in range(200)], []
    folder = LaneFolder(Reducer(RULES, 1 << 20, 1 << 20), LIMITS, 6 * one, lambda _: 0)

    def watched() -> Iterator[Block]:
        for head, items in hot:
            yield Block(head, b"f", iter(items))
            held.append(sum(len(item.payload) for item in folder._items))

    assert [block.header.last_seqno for _, block in folder.fold(watched())] == [200]
    assert one < max(held) <= 6 * one
    cold, _ = fold([block_of(n + 1, insert(n)) for n in range(200)], 6 * one)
    assert len(cold) > 10
    assert [head.first_seqno for head, _ in cold[1:]] == [head.last_seqno + 1 for head, _ in cold[:-1]]
    assert max(sum(len(item.payload) for item in items) for _, items in cold) <= 6 * one


def test_folding_ends_at_a_barriers_edge_a_statement_and_another_format() -> None:
    blocks: list[tuple[BlockHeader, tuple[Item, ...]]] = [block_of(n, update(1, n)) for n in range(1, 9)]
    assert seqnos(fold(blocks)[0]) == [(1, 8)]
    assert seqnos(fold(blocks, edges=[4, 6])[0]) == [(1, 3), (4, 5), (6, 8)]
    assert seqnos(fold(blocks, formats=[b"f", b"f", b"g", b"g", b"f", b"f", b"f", b"f"])[0]) == [(1, 2), (3, 4), (5, 8)]
    for kind in (ItemKind.STATEMENT, ItemKind.DDL):
        told = (*blocks[3][1], Item(kind, b"DELETE FROM t"), *blocks[3][1])
        found = fold([*blocks[:3], (blocks[3][0], told), *blocks[4:]])[0]
        assert seqnos(found) == [(1, 3), (4, 4), (5, 8)]
        assert found[1] == (blocks[3][0], told)


def test_a_block_that_needs_too_much_room_is_passed_on_piece_by_piece() -> None:
    one = len(block_of(1, update(1, 0))[1][0].payload)
    taken = []

    def pieces() -> Iterator[Item]:
        for n in range(100):
            taken.append(n)
            yield block_of(2, update(1, n))[1][0]

    folder = LaneFolder(Reducer(RULES, 1 << 20, 1 << 20), LIMITS, 6 * one, lambda _: 0)
    given = [(header(1, 1), iter(block_of(1, update(1, 0))[1])), (header(2, 2), pieces()), (header(3, 3), iter(()))]
    found = folder.fold(Block(head, b"f", items) for head, items in given)
    assert next(found)[1].header.last_seqno == 1
    large = next(found)[1]
    assert (large.header, len(taken)) == (header(2, 2), 4)
    assert [item.rows for item in large.items] == [RowCounts(updates=1)] * 100
    # transactions that change nothing move the position
    assert [(block.header, list(block.items)) for _, block in found] == [(header(3, 3), [])]


def in_modes(block: tuple[BlockHeader, tuple[Item, ...]], *modes: int | None) -> tuple[BlockHeader, tuple[Item, ...]]:
    head, items = block
    found = (None if mode is None else SessionContext(sql_mode=mode) for mode in modes)
    return head, tuple(replace(item, context=context) for item, context in zip(items, found, strict=True))


def test_only_rows_of_one_mode_are_folded_together_over_blocks() -> None:
    """Rows that see none are folded with any; a block with two modes stays as it is."""
    two = block_of(6, update(1, 6))[1] + block_of(7, update(1, 7))[1]
    blocks = [
        in_modes(block_of(1, update(1, 1)), 0),
        in_modes(block_of(2, update(1, 2)), None),
        in_modes(block_of(3, update(1, 3)), 0),
        in_modes(block_of(4, update(1, 4)), 1),
        in_modes(block_of(5, update(1, 5)), 1),
        in_modes((header(6, 7), two), 1, 0),
        in_modes(block_of(8, update(1, 8)), None),
        in_modes(block_of(9, update(1, 9)), 2),
        in_modes(block_of(10, update(1, 10)), None),
    ]
    for bound in (1 << 20, 400):
        found, _ = fold(blocks, bound)
        if bound > 400:
            assert [(head.first_seqno, head.last_seqno) for head, _ in found] == [(1, 3), (4, 5), (6, 7), (8, 10)]
        modes = {head.last_seqno: [item.context and item.context.sql_mode for item in items] for head, items in found}
        assert modes == {3: [0], 5: [1], 7: [1, 0], 10: [2]}


@pytest.mark.parametrize("bound", range(100, 800, 12))
def test_rows_of_another_mode_begin_a_block_however_much_is_folded_at_once(bound: int) -> None:
    modes = [1, 1, 1, 2, 2, None, 1, 2, 2, 2, None, None, 1]
    blocks = [in_modes(block_of(seqno, insert(seqno)), mode) for seqno, mode in enumerate(modes, 1)]
    found, _ = fold(blocks, bound)
    for head, items in found:
        held = {mode for mode in modes[head.first_seqno - 1 : head.last_seqno] if mode is not None}
        assert len(held) <= 1
        sent = {item.context.sql_mode for item in items if item.context is not None}
        assert sent == held
    assert sum(item.rows.inserts for _, items in found for item in items) == len(modes)
