"""Blocks in a row against a plain Python count: keys of all unique keys, both images, parents of foreign keys."""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from binlane.binlog.wire import EventType
from binlane.model import Flavor, TableKey
from binlane.plan.advice import blocks, hot_keys
from binlane.plan.advice.blocks import BlockCounts, WriteSets, seqnos
from binlane.plan.advice.table_keys import TableKeys
from binlane.plan.segment.columns import SegmentColumns, segment_columns
from binlane.schema.model import Column, ForeignKey, Generated, Key, KeyColumn, Schema, Table
from tests.tiers import examples
from tests.unit.binlog.cases import mariadb_gtid, wire
from tests.unit.binlog.row_events import EVERY_COLUMN, bitmap, image, rows_body, table_map_body
from tests.unit.plan.logs import HEAD, IN_TRANSACTION, XID, segment_of, settings, statements

SIZES = (2, 4, 12)
LONGS = (EVERY_COLUMN["long"],) * 3
ALL = (True,) * 3
Row = tuple[int | None, int | None, int | None]
PARENT, CHILD, KEYLESS, UNKNOWN, VIRTUAL = "abcdv"


def table(database: str, keys: Sequence[Key] = (), references: Sequence[ForeignKey] = (), **changes: object) -> Table:
    columns = [Column(name, place, "int", nullable=name != "x") for place, name in enumerate("xyz", 1)]
    columns[1] = replace(columns[1], **changes)  # type: ignore[arg-type]
    return Table(TableKey(database, "t"), "InnoDB", tuple(columns), tuple(keys), tuple(references))


PRIMARY = Key("PRIMARY", True, True, (KeyColumn("x"),))
SECOND = Key("y", True, False, (KeyColumn("y"),))
TO_PARENT = ForeignKey("f", ("y",), TableKey(PARENT, "t"), ("x",), "RESTRICT", "RESTRICT")
TABLES = (
    table(PARENT, [PRIMARY, SECOND]),
    table(CHILD, [PRIMARY], [TO_PARENT]),
    table(KEYLESS, [Key("z", False, False, (KeyColumn("z"),))]),
    table(VIRTUAL, [PRIMARY, SECOND], generated=Generated.VIRTUAL),
)
SCHEMA = Schema(Flavor.MARIADB, "10.11", tables={each.key: each for each in TABLES})


@dataclass(frozen=True)
class Change:
    """A row change; None for an image that its kind does not have."""

    table: str
    before: Row | None
    after: Row | None


Transaction = tuple[Change, ...] | None
"""None: a statement."""


def _image(row: Row) -> bytes:
    return image(LONGS, ALL, [None if value is None else struct.pack("<i", value) for value in row])


def events(seqno: int, transaction: Transaction) -> tuple[bytes, ...]:
    if transaction is None:
        return statements(seqno, "DELETE FROM t")
    found = [mariadb_gtid(seqno, IN_TRANSACTION)]
    for number, change in enumerate(transaction, 1):
        images = [row for row in (change.before, change.after) if row is not None]
        code = EventType.UPDATE_ROWS_V1
        if len(images) == 1:
            code = EventType.WRITE_ROWS_V1 if change.before is None else EventType.DELETE_ROWS_V1
        body = rows_body(code, number, 3, [bitmap(ALL)] * len(images), b"".join(map(_image, images)))
        found += [wire(EventType.TABLE_MAP, table_map_body(number, LONGS, change.table)), wire(code, body)]
    return (*found, XID)


def counted(
    log: Sequence[Transaction], schema: Schema | None = SCHEMA, cuts: Sequence[int] = (), sizes: Sequence[int] = SIZES
) -> tuple[tuple[BlockCounts, ...], WriteSets]:
    sets, start = WriteSets(TableKeys(schema), 1, sizes), len(HEAD)
    for first, last in itertools.pairwise([0, *cuts, len(log)]):
        if first < last:
            part = [events(seqno, each) for seqno, each in enumerate(log[first:last], first + 1)]
            data, segment = segment_of(part, first + 1, start)
            start = segment.end_offset
            unknown = [seqno for seqno in range(first + 1, last + 1) if log[seqno - 1] is None]
            sets.add(segment_columns(data, segment, settings()), unknown)
    return sets.finish(len(log)), sets


# the plain count: keys as (table, columns, values), row by row

PlainKey = tuple[object, ...]


def written(change: Change, row: Row) -> list[PlainKey]:
    """The keys of one image, first the one that identifies the row."""
    if change.table == KEYLESS:
        return [(KEYLESS, "xyz", *row)]
    found: list[PlainKey] = [(change.table, "x", row[0])]
    return [*found, (PARENT, "y", row[1])] if change.table == PARENT and row[1] is not None else found


def read(change: Change, row: Row) -> list[PlainKey]:
    return [(PARENT, "x", row[1])] if change.table == CHILD and row[1] is not None else []


def both(change: Change) -> Iterator[Row]:
    yield from (row for row in (change.before, change.after) if row is not None)


def is_told(change: Change) -> bool:
    return change.table not in (UNKNOWN, VIRTUAL)


def plain_block(block: Sequence[Transaction]) -> tuple[str, int, int, int, int, int]:
    """How a block is counted: free, shared or unknown; its longest chain, rows, different rows, tables and all rows."""
    writes, reads, depth = list[set[PlainKey]](), list[set[PlainKey]](), list[int]()
    known, left, rows = set[PlainKey](), 0, 0
    changes = [change for transaction in block for change in transaction or ()]
    for change in filter(is_told, changes):
        first, *_ = both(change)
        left += written(change, first)[0] not in known
        known.update(key for row in both(change) for key in written(change, row))
        rows += 1
    for transaction in block:
        told = [change for change in transaction or () if is_told(change)]
        writes.append({key for change in told for row in both(change) for key in written(change, row)})
        reads.append({key for change in told for row in both(change) for key in read(change, row)})
        met = [
            place
            for place in range(len(depth))
            if writes[-1] & (writes[place] | reads[place]) or reads[-1] & writes[place]
        ]
        depth.append(1 + max((depth[place] for place in met), default=0))
    is_unknown = None in block or not all(map(is_told, changes))
    state = "shared" if max(depth) > 1 else "unknown" if is_unknown else "free"
    return state, max(depth), rows, left, len({change.table for change in changes}), len(changes)


def plain(log: Sequence[Transaction], size: int) -> tuple[Counter[str], tuple[int, ...]]:
    states, sums = Counter[str](), [0] * 5
    for at in range(0, len(log) - size + 1, size):
        state, *found = plain_block(log[at : at + size])
        states[state] += 1
        sums = [a + b for a, b in zip(sums, found, strict=True)]
    return states, tuple(sums)


VALUES = st.integers(0, 6)
ROWS: st.SearchStrategy[Row] = st.tuples(VALUES, st.none() | VALUES, VALUES)


def changes(tables: str) -> st.SearchStrategy[Change]:
    made = st.tuples(st.sampled_from(tables), st.none() | ROWS, st.none() | ROWS)
    return made.filter(lambda parts: parts[1:] != (None, None)).map(lambda parts: Change(*parts))


def logs(tables: str = "aaabbbccdv") -> st.SearchStrategy[list[Transaction]]:
    of_rows = st.lists(changes(tables), min_size=0, max_size=3).map(tuple)
    return st.lists(st.one_of(*[of_rows] * 9, st.none()) if "d" in tables else of_rows, min_size=1, max_size=30)


@hypothesis_settings(max_examples=examples(150), deadline=None)
@given(logs(), st.data())
def test_the_counts_are_those_of_a_plain_count_however_the_log_is_cut(
    log: list[Transaction], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)))))
    found, _ = counted(log, cuts=cuts)
    for each in found:
        states, (chain, *sums) = plain(log, each.size)
        assert {"free": each.free, "shared": each.shared, "unknown": each.unknown} == {
            name: states[name] for name in ("free", "shared", "unknown")
        }
        assert [each.rows, each.left, each.opened, each.all_rows] == sums
        assert each.blocks <= each.chains <= chain
        assert each.blocks == len(log) // each.size


@hypothesis_settings(max_examples=examples(60), deadline=None)
@given(logs("aaac"))
def test_the_chain_is_the_longest_one_where_no_row_is_read(log: list[Transaction]) -> None:
    for each in counted(log)[0]:
        assert each.chains == plain(log, each.size)[1][0]


def both_change(first: Change, second: Change, schema: Schema | None = SCHEMA) -> str:
    block = counted([(first,), (second,)], schema, sizes=(2,))[0][0]
    return "free" if block.free else "shared" if block.shared else "unknown"


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        (Change("a", None, (1, 1, 1)), Change("a", None, (2, 2, 2)), "free"),
        (Change("a", None, (1, 1, 1)), Change("a", (1, 1, 1), None), "shared"),
        (Change("a", None, (1, 1, 1)), Change("a", None, (2, 1, 2)), "shared"),
        (Change("a", None, (1, None, 1)), Change("a", None, (2, None, 1)), "free"),
        (Change("a", (1, 1, 1), (1, 3, 1)), Change("a", None, (2, 1, 2)), "shared"),
        (Change("a", None, (1, 1, 1)), Change("b", None, (1, 1, 1)), "shared"),
        (Change("b", None, (5, 1, 1)), Change("a", (1, 1, 1), None), "shared"),
        (Change("b", None, (5, 1, 1)), Change("b", None, (6, 1, 1)), "free"),
        (Change("b", None, (5, None, 1)), Change("a", (1, 1, 1), None), "free"),
        (Change("c", None, (1, None, 1)), Change("c", (1, None, 1), None), "shared"),
        (Change("c", None, (1, None, 1)), Change("c", None, (1, 1, 1)), "free"),
        (Change("d", None, (1, 1, 1)), Change("a", None, (1, 1, 1)), "unknown"),
        (Change("v", None, (1, 1, 1)), Change("a", None, (1, 1, 1)), "unknown"),
    ],
    ids=[
        "other-rows",
        "primary-key",
        "unique-key",
        "null-is-no-key",
        "before-image",
        "child-of-a-new-parent",
        "parent-of-a-new-child",
        "two-children",
        "no-parent",
        "row-without-a-key",
        "null-is-a-value-of-a-row",
        "table-that-is-not-known",
        "key-that-is-not-logged",
    ],
)
def test_which_transactions_share_a_key(first: Change, second: Change, state: str) -> None:
    assert both_change(first, second) == state


def test_a_parent_that_is_read_and_then_deleted_is_shared_with_its_earlier_readers() -> None:
    child = Change("b", None, (5, 1, 1))
    log = [(child,), (replace(child, after=(6, 1, 1)), Change("a", (1, 1, 1), None))]
    assert counted(log, sizes=(2,))[0][0].shared == 1


def test_a_key_that_was_forgotten_may_have_been_changed_more_often_than_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_keys, "KEPT", 1)
    first, second = (Change("a", (number, None, 1), (number, None, 2)) for number in (1, 2))
    _, sets = counted([(first, first, second), (second,) * 3], cuts=(1,))
    assert (sets.hot.first(), sets.hot.missed) == ((hot_keys.HotKey("a.t", "2", 3),), 3)


def test_without_a_schema_rows_are_compared_as_a_whole_unless_the_log_has_the_primary_key() -> None:
    new, other, same = Change("a", None, (1, 1, 1)), Change("a", None, (1, 2, 2)), Change("a", (1, 1, 1), (1, 2, 2))
    assert both_change(new, same, None) == "shared"
    assert both_change(new, other, None) == "free"
    body = table_map_body(1, LONGS, "a", optional=b"\x08\x01\x00")
    columns = _columns(body, [(1, 1, 1)], [(1, 2, 2)])
    sets = WriteSets(TableKeys(None), 1, (2,))
    sets.add(columns, [])
    assert sets.finish(2)[0].shared == 1
    assert sets.hot.first() == (hot_keys.HotKey("a.t", "1", 2),)


def _columns(body: bytes, *inserts: Sequence[Row]) -> SegmentColumns:
    log = []
    for seqno, rows in enumerate(inserts, 1):
        images = b"".join(map(_image, rows))
        insert = wire(EventType.WRITE_ROWS_V1, rows_body(EventType.WRITE_ROWS_V1, 1, 3, [bitmap(ALL)], images))
        log.append((mariadb_gtid(seqno, IN_TRANSACTION), wire(EventType.TABLE_MAP, body), insert, XID))
    return segment_columns(*segment_of(log), settings())


def test_a_prefix_of_a_key_counts_by_its_bytes() -> None:
    prefix = Key("PRIMARY", True, True, (KeyColumn("x", prefix=2),))
    schema = replace(SCHEMA, tables={TABLES[0].key: table(PARENT, [prefix])})
    low, high = Change("a", None, (1, 1, 1)), Change("a", None, (1 + (1 << 16), 2, 2))
    assert both_change(low, high, schema) == "shared"
    assert both_change(low, Change("a", None, (2, 2, 2)), schema) == "free"


def test_rows_that_lack_columns_are_not_told() -> None:
    images = bitmap([False]) + struct.pack("<i", 1)
    change = wire(
        EventType.WRITE_ROWS_V1, rows_body(EventType.WRITE_ROWS_V1, 1, 3, [bitmap((True, False, False))], images)
    )
    partial = (mariadb_gtid(1, IN_TRANSACTION), wire(EventType.TABLE_MAP, table_map_body(1, LONGS, "a")), change, XID)
    sets = WriteSets(TableKeys(SCHEMA), 1, (2,))
    sets.add(segment_columns(*segment_of([partial, events(2, ())]), settings()), [])
    assert (sets.finish(2)[0].unknown, sets.hot.first()) == (1, ())


def test_a_block_with_more_keys_than_are_remembered_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "KEYS", 4)
    log = [(Change("c", None, (number, 0, 0)),) for number in range(12)]
    found, _ = counted([*log, (Change("c", (0, 0, 0), None),), *[()] * 11])
    assert [(each.free, each.shared, each.unknown) for each in found] == [(8, 0, 4), (4, 0, 2), (1, 0, 1)]
    assert [each.rows for each in found] == [5, 5, 1]


@hypothesis_settings(max_examples=examples(80), deadline=None)
@given(logs("aaab"), st.data(), st.sampled_from([3, 1 << 16]))
def test_hot_keys_have_the_changes_of_a_plain_count(log: list[Transaction], data: st.DataObject, kept: int) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)))))
    expected: Counter[tuple[str, str]] = Counter()
    for change in itertools.chain.from_iterable(transaction or () for transaction in log):
        first, *_ = both(change)
        expected[f"{change.table}.t", str(first[0])] += 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hot_keys, "KEPT", kept)
        patch.setattr(hot_keys, "MOST", min(kept, hot_keys.MOST))
        _, sets = counted(log, cuts=cuts)
        found = sets.hot.first()
    for each in found:
        assert each.changes <= expected[each.table, each.key] <= each.changes + sets.hot.missed
    if kept > 3:
        assert sets.hot.missed == 0
        counts = sorted((count for count in expected.values() if count > 1), reverse=True)[: hot_keys.MOST]
        assert [each.changes for each in found] == counts


def test_each_event_has_the_seqno_of_its_transaction() -> None:
    log = [
        events(1, (Change("a", None, (1, 1, 1)),)),
        events(2, None),
        events(3, ()),
        events(4, (Change("a", (1, 1, 1), None),)),
    ]
    columns = segment_columns(*segment_of(log), settings())
    codes = columns.frames.type_code.tolist()
    starts = [place for place, code in enumerate(codes) if code == EventType.MARIADB_GTID]
    found = seqnos(columns)
    assert [int(found[place]) for place in starts] == [1, 2, 3, 4]
    assert found.tolist()[starts[0] :] == [seqno for seqno, part in enumerate(log, 1) for _ in part]
