"""Blocks: what ends them, and that every BINLOG statement in them can stand alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlog.rows_payload import PACKET_SHARE, check_self_contained
from binlane.binlog.wire import HEADER
from binlane.errors import UnsupportedEventError
from binlane.model import Item, ItemKind, LogPosition, RowCounts, TableKey
from binlane.plan.block.builder import (
    BlockBuilder,
    BlockLimits,
    FinishedBlock,
    LoggedEvent,
    RowsPayload,
    transaction_header,
)
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from tests.unit.plan.logs import alone, filtered, insert, rows, settings, statements, table_map

WIDE = BlockLimits(transactions=1000, bytes=1 << 30, payload_bytes=1 << 20, largest_bytes=1 << 20)
EVENT = len(insert(1, [1]))
MAP = len(table_map(1))


def events_of(payload: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(payload):
        size = HEADER.unpack_from(payload, at)[3]
        yield payload[at : at + size]
        at += size


def images_of(events: Iterator[bytes] | list[bytes]) -> list[bytes]:
    """Rows events without the flag that says whether their statement ends."""
    return [event[:25] + event[26:] for event in events if event[4] != table_map(1)[4]]


@st.composite
def source_statements(draw: st.DrawFn) -> list[list[tuple[bytes, int]]]:
    """Statements as servers log them: TABLE_MAPs first, rows events of these tables, the last with STMT_END_F."""
    made = []
    for _ in range(draw(st.integers(1, 6))):
        tables = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3, unique=True))
        written = draw(st.lists(st.tuples(st.sampled_from(tables), st.integers(1, 12)), min_size=1, max_size=6))
        events = [(table_map(table, f"d{table}"), 0) for table in tables]
        for number, (table, count) in enumerate(written, 1):
            events.append((insert(table, range(count), ends=number == len(written)), count))
        made.append(events)
    return made


@given(source_statements(), st.integers(3 * MAP + EVENT + 60, 800), st.data())
def test_every_payload_is_self_contained_and_no_row_is_lost_whereever_it_is_cut(
    logged: list[list[tuple[bytes, int]]], limit: int, data: st.DataObject
) -> None:
    payload, items = RowsPayload(limit, limit), list[Item]()
    for statement in logged:
        if data.draw(st.booleans()) and payload.add_whole(
            b"".join(event for event, _ in statement), RowCounts(inserts=sum(count for _, count in statement))
        ):
            continue
        for event, count in statement:
            if count == 0:
                payload.add_map(event)
            else:
                items.extend(payload.add_rows(event, RowCounts(inserts=count), "binlog.000001:4: "))
    items.extend(payload.flush())
    sent = [event for item in items for event in events_of(item.payload)]
    assert images_of(sent) == images_of([event for statement in logged for event, _ in statement])
    for item in items:
        check_self_contained(item.payload)
        assert len(item.payload) <= limit
    total = sum((item.rows for item in items), RowCounts())
    assert total == RowCounts(inserts=sum(count for statement in logged for _, count in statement))


def test_maps_behind_the_last_rows_event_of_a_cut_go_with_the_rows_that_need_them() -> None:
    payload = RowsPayload(2 * MAP + EVENT, 2 * MAP + EVENT)
    payload.add_map(table_map(1, "a"))
    payload.add_map(table_map(2, "b"))
    assert list(payload.add_rows(insert(1, [1], ends=False), RowCounts(1), "")) == []
    (first,) = payload.add_rows(insert(2, [1]), RowCounts(1), "")
    (second,) = payload.flush()
    assert check_self_contained(first.payload) == {TableKey("a", "t")}
    assert check_self_contained(second.payload) == {TableKey("b", "t")}


def test_a_rows_event_over_the_limit_is_refused_with_the_packet_that_it_needs() -> None:
    big = insert(1, range(100))
    payload = RowsPayload(MAP + len(big) - 1, MAP + len(big) - 1)
    payload.add_map(table_map(1))
    with pytest.raises(UnsupportedEventError, match=r"^binlog\.000001:4: .*max_allowed_packet") as refused:
        list(payload.add_rows(big, RowCounts(100), "binlog.000001:4: "))
    [packet] = re.findall(r"SET GLOBAL max_allowed_packet = (\d+) on the target", str(refused.value))
    assert int(packet) % 1024 == 0
    assert int(packet) >= (MAP + len(big)) / PACKET_SHARE + 4096
    exact = RowsPayload(MAP + len(big), MAP + len(big))
    exact.add_map(table_map(1))
    assert list(exact.add_rows(big, RowCounts(100), "")) == []


def build(limits: BlockLimits, transactions: int) -> list[FinishedBlock]:
    builder, blocks = BlockBuilder(limits), list[FinishedBlock]()
    for seqno in range(1, transactions + 1):
        builder.add_event(table_map(1), None, "")
        builder.add_event(insert(1, [seqno]), RowCounts(1), "")
        place = transaction_header(seqno, LogPosition("binlog.000001", seqno), f"0-1-{seqno}", float(seqno))
        blocks.extend(builder.end_transaction(place))
    blocks.extend(builder.finish())
    assert list(builder.finish()) == []
    return blocks


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        (BlockLimits(3, 1 << 30, 1 << 20, 1 << 20), [3, 3, 1]),
        (BlockLimits(7, 1 << 30, 1 << 20, 1 << 20), [7]),
        (BlockLimits(1, 1 << 30, 1 << 20, 1 << 20), [1] * 7),
        (BlockLimits(1000, 2 * (MAP + EVENT), 1 << 20, 1 << 20), [2, 2, 2, 1]),
        (BlockLimits(1000, 2 * (MAP + EVENT) + 1, 1 << 20, 1 << 20), [3, 3, 1]),
        (BlockLimits(1000, 1, 1 << 20, 1 << 20), [1] * 7),
    ],
)
def test_a_block_ends_at_its_transactions_or_its_bytes(limits: BlockLimits, sizes: list[int]) -> None:
    blocks = build(limits, 7)
    assert [block.header.transactions for block in blocks] == sizes
    assert [block.header.last_seqno - block.header.first_seqno + 1 for block in blocks] == sizes
    for block in blocks:
        head = block.header
        assert (head.source.offset, head.gtid, head.commit_time) == (
            head.first_seqno, f"0-1-{head.last_seqno}", float(head.last_seqno)
        )  # fmt: skip
        assert sum((item.rows for item in block.items), RowCounts()) == RowCounts(head.transactions)


def test_rows_before_a_statement_are_sent_before_it_and_rows_behind_it_in_another_payload() -> None:
    builder = BlockBuilder(WIDE)
    statement = Item(ItemKind.STATEMENT, b"UPDATE t SET a = 1")
    for part in (1, 2):
        builder.add_event(table_map(part), None, "")
        builder.add_event(insert(part, [part]), RowCounts(1), "")
        if part == 1:
            builder.add_statement(statement)
    list(builder.end_transaction(transaction_header(1, LogPosition("b.1", 4), "", 1.0)))
    (block,) = builder.finish()
    assert [item.kind for item in block.items] == [ItemKind.ROWS, ItemKind.STATEMENT, ItemKind.ROWS]
    first, _, last = block.items
    for item in (first, last):
        check_self_contained(item.payload)


@pytest.mark.parametrize("is_reduced", [False, True], ids=["replay", "reduce"])
def test_rows_that_see_no_mode_do_not_get_that_of_an_earlier_block(is_reduced: bool) -> None:
    rules = {TableKey("a", "t"): TableRule(1, (0,), (0,))}
    builder = BlockBuilder(WIDE, Reducer(rules, 1 << 20, 1 << 20) if is_reduced else None)

    def part(number: int, mode: int | None) -> Iterator[LoggedEvent]:
        yield LoggedEvent(table_map(1), None, "", mode)
        yield LoggedEvent(insert(1, [number]), RowCounts(1), "", mode)

    def modes(blocks: Iterable[FinishedBlock]) -> list[int | None]:
        contexts = [item.context for block in blocks for item in block.items]
        return [None if context is None else context.sql_mode for context in contexts]

    def add(number: int, mode: int | None) -> list[int | None]:
        for event in part(number, mode):
            builder.add_event(event.event, event.counts, event.where, event.mode)
        list(builder.end_transaction(transaction_header(number, LogPosition("b.1", number), "", 1.0)))
        return modes(builder.finish())

    assert add(1, 8) == [8]
    assert add(2, None) == [None]
    assert modes(builder.stream(transaction_header(3, LogPosition("b.1", 3), "", 1.0), part(3, 8))) == [8]
    assert add(4, None) == [None]


@pytest.mark.parametrize("is_reduced", [False, True], ids=["replay", "reduce"])
def test_a_large_transaction_goes_through_in_pieces(is_reduced: bool) -> None:
    rules = {TableKey("a", "t"): TableRule(1, (0,), (0,))}
    reducer = Reducer(rules, payload_bytes=500, largest_bytes=500) if is_reduced else None
    taken: list[int] = []

    def parts() -> Iterator[LoggedEvent]:
        yield LoggedEvent(table_map(1), None, "")
        for number in range(100):
            taken.append(number)
            yield LoggedEvent(insert(1, [number], ends=number == 99), RowCounts(1), "")

    builder = BlockBuilder(BlockLimits(1000, bytes=500, payload_bytes=500, largest_bytes=500), reducer)
    builder.add_event(table_map(1), None, "")
    builder.add_event(insert(1, [100]), RowCounts(1), "")
    assert list(builder.end_transaction(transaction_header(1, LogPosition("b.1", 4), "0-1-1", 1.0))) == []
    header = transaction_header(2, LogPosition("b.1", 99), "0-1-2", 2.0)
    blocks = builder.stream(header, parts())
    assert next(blocks).header.last_seqno == 1
    large = next(blocks)
    assert large.header == header
    written = RowCounts()
    held = 0
    for item in large.items:
        check_self_contained(item.payload)
        assert len(item.payload) <= 500
        written += item.rows
        held = max(held, len(taken) - written.inserts)
    assert written == RowCounts(100)
    # two blocks' worth of events, as the reducer gathers them, and the one that did not fit
    assert held <= 2 * 500 // EVENT + 1
    assert next(blocks, None) is None
    assert list(builder.finish()) == []


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_a_large_transaction_stands_alone_in_its_block(columnar: bool) -> None:
    log = [rows(1, "a"), rows(2, "a"), rows(3, "a", count=50), rows(4, "a"), rows(5, "a", count=50), rows(6, "a")]
    found = filtered(log, settings(lanes=1, block_transactions=100, block_bytes=200), columnar=columnar)
    assert found.seqnos(0) == [(1, 2), (3, 3), (4, 4), (5, 5), (6, 6)]


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_a_ddl_stands_alone_in_its_block(columnar: bool) -> None:
    log = [rows(1, "a"), rows(2, "a"), alone(3, "CREATE TABLE n (a INT)"), rows(4, "a"), rows(5, "a")]
    found = filtered(log, settings(lanes=1, block_transactions=100), columnar=columnar)
    assert found.seqnos(0) == [(1, 2), (3, 3), (4, 5)]
    kinds = [[item.kind for item in items] for _, items in found.lanes[0]]
    assert kinds == [[ItemKind.ROWS], [ItemKind.DDL], [ItemKind.ROWS]]


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_statements_of_one_transaction_share_a_block_with_their_neighbours(columnar: bool) -> None:
    log = [rows(1, "a"), statements(2, "INSERT INTO t VALUES (1)", "DELETE FROM t"), rows(3, "a")]
    found = filtered(log, settings(lanes=1, block_transactions=100), columnar=columnar)
    assert found.seqnos(0) == [(1, 3)]
    ((_, items),) = found.lanes[0]
    assert [item.kind for item in items] == [ItemKind.ROWS, ItemKind.STATEMENT, ItemKind.STATEMENT, ItemKind.ROWS]
