"""The filter's two maps: the same window gives the same blocks, however it is cut and whichever version does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from binlane.binlog.rows_payload import check_self_contained
from binlane.errors import BinlogError
from binlane.model import ItemKind, RowCounts, TableKey
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.block.row_size import Widest
from binlane.plan.transaction.altered_tables import Alterations
from binlane.shards.selection import Selection
from tests.tiers import examples
from tests.unit.binlog.cases import T, mariadb_gtid, wire
from tests.unit.binlog.row_events import rows_body
from tests.unit.plan.logs import (
    IN_TRANSACTION,
    XID,
    Filtered,
    alone,
    bound,
    ends,
    filtered,
    prepare,
    rows,
    settings,
    statements,
    table_map,
)

Log = list[tuple[bytes, ...]]


@st.composite
def windows(draw: st.DrawFn) -> Log:
    log: Log = []
    prepared: set[str] = set()
    for seqno in range(1, draw(st.integers(1, 14)) + 1):
        names = draw(st.lists(st.sampled_from("abcdr"), min_size=1, max_size=3, unique=True))
        kind = draw(
            st.sampled_from(["rows"] * 5 + ["many", "ddl", "user", "statement", "empty", "xa", "xa", "temporary"])
        )
        match kind:
            case "rows":
                log.append(rows(seqno, names[0], count=seqno % 4 + 1))
            case "many":
                log.append(rows(seqno, *names))
            case "ddl":
                log.append(alone(seqno, f"CREATE TABLE t{seqno} (a INT)", names[0]))
            case "user":
                log.append(alone(seqno, f"CREATE USER u{seqno}"))
            case "statement":
                log.append(statements(seqno, "UPDATE t SET a = 1", database=names[0]))
            case "empty":
                log.append(rows(seqno))
            case "temporary":
                log.append(bound(seqno, "CREATE TEMPORARY TABLE tmp (a INT)", "DROP TEMPORARY TABLE tmp"))
            case "xa" if names[0] in prepared:
                prepared.remove(names[0])
                log.append(ends(seqno, draw(st.sampled_from(["COMMIT", "COMMIT", "ROLLBACK"])), names[0]))
            case "xa":
                prepared.add(names[0])
                log.append(prepare(seqno, names[0], *names[1:], count=seqno % 3 + 1))
    return log


REDUCER = Reducer({TableKey(name, "t"): TableRule(1, (0,), (0,)) for name in "ab"}, 400, 1 << 16)
CHOSEN = settings(shard_list="(critical)=r\na=0\nb=1\nc=2\nd=2\n", fold_gap=1, block_transactions=3, payload_bytes=400)

EVERY_ROW = 740
"""Bytes of the largest BINLOG statement, of which every row is measured."""


def flat(found: Filtered, lane: int) -> list[object]:
    """A lane's transactions as they are applied: their seqnos once, and its payloads joined."""
    taken: list[object] = []
    for header, items in found.lanes.get(lane, []):
        taken.append((header.first_seqno, header.last_seqno, header.transactions, header.source, header.gtid))
        for item in items:
            taken.append((item.kind, item.payload, item.rows, item.context))
    return taken


def rows_events(found: Filtered, lane: int) -> list[object]:
    """What a lane changes, in order: statements, and rows by their number in front of each."""
    out: list[object] = []
    count = RowCounts()
    for _, items in found.lanes.get(lane, []):
        for item in items:
            if item.kind is ItemKind.ROWS:
                count += item.rows
            else:
                out.append((count, item.payload))
    return [*out, count]


@hypothesis_settings(max_examples=examples(40), deadline=None)
@given(windows(), st.data())
def test_a_window_cut_into_more_segments_gives_each_lane_the_same_transactions_in_the_same_order(
    log: Log, data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)))))
    whole, cut = filtered(log, CHOSEN), filtered(log, CHOSEN, cuts=cuts)
    # where a prepared group stands is told by its segment
    placeless: dict[str, Any] = {"prepared": {}, "carried_out": ()}
    assert replace(cut.routing, **placeless) == replace(whole.routing, **placeless)
    assert cut.routing.prepared.keys() == whole.routing.prepared.keys()
    for lane in range(4):
        assert rows_events(cut, lane) == rows_events(whole, lane)
        edges = [seqno for block in cut.seqnos(lane) for seqno in block]
        assert edges == sorted(edges)
        assert sum(header.transactions for header, _ in cut.lanes.get(lane, [])) == sum(
            header.transactions for header, _ in whole.lanes.get(lane, [])
        )
    one, other = whole.plan, cut.plan
    assert (one.tables, one.shards, one.kinds, one.lane_rows) == (
        other.tables,
        other.shards,
        other.kinds,
        other.lane_rows,
    )


@hypothesis_settings(max_examples=examples(40), deadline=None)
@given(windows(), st.data(), st.booleans())
def test_the_columnar_version_and_a_second_run_give_the_same_bytes(
    log: Log, data: st.DataObject, is_reduced: bool
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)))))
    reducer = REDUCER if is_reduced else None
    # of a few bytes: most transactions are large ones, a block each
    sizes = data.draw(st.sampled_from([1, 100, 160, 1 << 20])), data.draw(st.sampled_from([EVERY_ROW, 1 << 16]))
    chosen = replace(CHOSEN, block_bytes=sizes[0], largest_bytes=sizes[1])
    plain, again, columnar = (
        filtered(log, chosen, cuts=cuts, columnar=version, reducer=reducer) for version in (False, False, True)
    )
    assert plain.plan.to_json() == again.plan.to_json()
    for lane in range(4):
        assert flat(columnar, lane) == flat(plain, lane) == flat(again, lane)
    assert columnar.routing.to_json() == plain.routing.to_json()
    assert columnar.plan.to_json() == plain.plan.to_json()


@pytest.mark.parametrize("reduce", ["off", "block", "window"])
@hypothesis_settings(max_examples=examples(40), deadline=None)
@given(windows(), st.data())
def test_every_transaction_is_in_one_block_and_the_accounts_close(reduce: str, log: Log, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)))))
    chosen = replace(CHOSEN, reduce=reduce, window_bytes=data.draw(st.sampled_from([300, 1 << 20])))
    found = filtered(log, chosen, cuts=cuts, reducer=None if reduce == "off" else REDUCER)
    counted = [header.transactions for blocks in found.lanes.values() for header, _ in blocks]
    assert sum(counted) == len(log) == sum(each.transactions for each in found.plan.shards.values())
    items = [item for blocks in found.lanes.values() for _, items in blocks for item in items]
    written = sum((item.rows for item in items), RowCounts())
    assert written == found.plan.rows
    assert written == sum((table.written for table in found.plan.tables.values()), RowCounts())
    read = sum((table.read for table in found.plan.tables.values()), RowCounts())
    folded = sum(table.folded for table in found.plan.tables.values())
    assert written.total + folded == read.total == sum(each.rows for each in found.plan.shards.values())
    tables: set[TableKey] = set()
    for item in items:
        if item.kind is ItemKind.ROWS:
            tables |= check_self_contained(item.payload)
    assert tables == set(found.plan.tables)


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
@pytest.mark.parametrize(
    ("seconds", "blocks"),
    [
        (0, [(1, 10)]),
        (10, [(1, 3), (4, 7), (8, 10)]),
        (30, [(1, 8), (9, 10)]),
        (1, [(1, 1), (2, 3), (4, 5), (6, 7), (8, 8), (9, 10)]),
    ],
)
def test_a_block_ends_before_a_transaction_outside_its_time_span(
    columnar: bool, seconds: int, blocks: list[tuple[int, int]]
) -> None:
    # the clock goes back once, and a statement is no plain transaction
    log = [timed(rows(n, "a"), at) for n, at in enumerate([0, 9, 10, 11, 3, 20, 21, 30, 40], 1)]
    log.append(timed(statements(10, "DELETE FROM t", database="a"), 12))
    chosen = settings(lanes=1, block_transactions=100, block_seconds=seconds)
    assert filtered(log, chosen, columnar=columnar).seqnos(0) == blocks


def timed(transaction: tuple[bytes, ...], seconds: int) -> tuple[bytes, ...]:
    """A transaction that is committed that many seconds behind the others' time."""
    first = transaction[0]
    return ((int.from_bytes(first[:4], "little") + seconds).to_bytes(4, "little") + first[4:], *transaction[1:])


def test_counts_are_by_table_shard_and_kind() -> None:
    log = [rows(1, "a", count=3), rows(2, "a", "b"), alone(3, "CREATE TABLE n (a INT)"), statements(4, "DELETE FROM t")]
    plan = filtered(log, CHOSEN).plan
    assert {str(key): counts.read for key, counts in plan.tables.items()} == {"a.t": RowCounts(4), "b.t": RowCounts(1)}
    assert {name: (each.lane, each.transactions, each.rows) for name, each in plan.shards.items()} == {
        "a": (0, 3, 3), "a+b": (0, 1, 2)
    }  # fmt: skip
    assert Counter(plan.kinds) == Counter({"rows": 2, "ddl": 1, "dml": 1})
    assert plan.altered == Alterations({TableKey("a", "n"): (3,)})


@pytest.mark.parametrize("columnar", [False, True])
def test_a_plan_says_when_tables_are_first_written_and_when_they_are_altered(columnar: bool) -> None:
    log = [
        rows(1, "b"), rows(2, "a"), alone(3, "ALTER TABLE T ADD x INT"), rows(4, "a"), alone(5, "DROP TABLE t, u"),
        alone(6, "CREATE FROBNICATE TABLE x"), rows(7, "c"), statements(8, "DELETE FROM t"),
        alone(9, "ANALYZE TABLE c.t"), alone(10, "CREATE VIEW a.v AS SELECT * FROM c.t"), alone(11, "DROP DATABASE e"),
        alone(12, "CREATE TABLE a.l LIKE c.t"), alone(13, "TRUNCATE c.t"), alone(14, "DROP FUNCTION IF EXISTS f"),
    ]  # fmt: skip
    unread = replace(CHOSEN, filters=Selection(allowed=("UNREAD",)).to_values())
    plan = filtered(log, unread, cuts=[4], columnar=columnar).plan
    assert {str(key): list(maps.values()) for key, maps in plan.table_maps.items()} == {
        "b.t": [1], "a.t": [2], "c.t": [7]
    }  # fmt: skip
    names = {TableKey("a", "T"): (3,), TableKey("a", "t"): (5,), TableKey("a", "u"): (5,)}
    names |= {TableKey("a", "v"): (10,), TableKey("a", "l"): (12,)}
    # what a statement only reads, copies, maintains or empties keeps its definition
    assert plan.altered == Alterations(names, unread=(6,))
    assert plan.defined_in == {"a", "c", "e"}
    # names in another case are the same table, and a statement that cannot be read alters every table
    assert [plan.altered.before(TableKey("A", "t"), seqno) for seqno in (2, 3, 4, 5, 6, 7)] == [0, 1, 1, 2, 3, 3]
    assert [plan.altered.before(TableKey("c", "t"), seqno) for seqno in (5, 6)] == [0, 1]
    assert plan.altered.names(TableKey("anything", "at_all"))
    assert not Alterations(names).names(TableKey("c", "t"))


@pytest.mark.parametrize("changes", [{"lanes": 2}, {"block_transactions": 1}, {"fold_gap": 5}])
def test_different_settings_give_a_different_digest(changes: dict[str, object]) -> None:
    log: Sequence[tuple[bytes, ...]] = [rows(n, "ar"[n % 3 == 0]) for n in range(1, 9)]
    base = filtered(log, settings(shard_list="(critical)=r\n"))
    assert filtered(log, settings(shard_list="(critical)=r\n", **changes)).plan.digest != base.plan.digest
    assert filtered(log, settings(shard_list="(critical)=r\n")).plan.digest == base.plan.digest


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_rows_that_come_near_what_the_target_takes_are_measured_and_statements_are(columnar: bool) -> None:
    log = [rows(1, "a"), rows(2, "b", "c"), rows(3, "a", count=3), statements(4, "UPDATE t SET a = 1", database="b")]
    measured = filtered(log, replace(CHOSEN, largest_bytes=EVERY_ROW), columnar=columnar, cuts=(2,)).plan
    assert measured.widest == {
        TableKey("a", "t"): Widest(1, 1, 1, 1),
        TableKey("b", "t"): Widest(1, 2, 1, 2),
        TableKey("c", "t"): Widest(1, 2, 1, 2),
    }
    assert measured.longest_statement == (18, 4)
    assert filtered(log, CHOSEN, columnar=columnar).plan.widest == {}
    unasked = replace(CHOSEN, largest_bytes=EVERY_ROW, measures_rows=False)
    assert filtered(log, unasked, columnar=columnar).plan.widest == {}


@pytest.mark.parametrize("reducer", [None, REDUCER], ids=["replay", "reduce"])
def test_a_damaged_row_is_named_where_it_stands_in_the_segment(reducer: Reducer | None) -> None:
    broken = wire(T.WRITE_ROWS_V1, rows_body(T.WRITE_ROWS_V1, 1, 1, [b"\1"], b"\0\1\2\3"))
    log = [rows(1, "a"), (mariadb_gtid(2, IN_TRANSACTION), table_map(1), broken, XID), rows(3, "a")]
    with pytest.raises(BinlogError, match=r"^binlog\.000007:\d+: WRITE_ROWS_V1: a\.t: "):
        filtered(log, replace(CHOSEN, block_transactions=1), columnar=True, reducer=reducer)
