"""Rows of MySQL go with the modes of their sessions, in arrays as one by one, and are folded with no other rows."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, product
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from binlane.binlog.rows_payload import check_self_contained
from binlane.model import Flavor, Item, SessionContext, TableKey
from binlane.plan.block.computed_modes import ALL_SEEN, AllTables
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.segment import map as columnar
from binlane.plan.segment.map import MapSummary
from binlane.plan.segment.pieces import alone
from binlane.plan.window.merge import merge_scans
from binlane.sql.requirements import COMPUTED_MODE, COMPUTED_ZONE, Requirement
from tests.tiers import examples
from tests.unit.binlog.cases import MYSQL, log, mysql_gtid, payload, query
from tests.unit.plan.logs import EMPTY_SCHEMA, XID, MemorySink, insert, manifest_of, segment_of, settings, table_map
from tests.unit.plan.segment import plain_map

CUT, PADDED, STRICT = 1 << 32, 1 << 31, 1 << 22
ZONES = ("SYSTEM", "+05:00", "America/Argentina/ComodRivadavia")
Transaction = tuple[int, str, str]
"""The session's mode, the database, and what is special about the transaction."""


class OfDatabases:
    """The tables of some databases see the modes."""

    bits = ALL_SEEN

    def __init__(self, *names: str) -> None:
        self._names = names

    def sees(self, key: TableKey) -> bool:
        return key.database in self._names


def status(mode: int, zone: str = "") -> bytes:
    logged = b"\5" + bytes([len(zone)]) + zone.encode() if zone else b""
    return b"\0" + bytes(4) + b"\1" + struct.pack("<Q", mode) + logged


def events(number: int, mode: int, database: str, kind: str) -> list[bytes]:
    zone = kind if kind in ZONES else ""
    begin = query(b"BEGIN", database=database.encode(), status=status(mode, zone))
    found = [mysql_gtid(number), begin, table_map(1, database), insert(1, [number])]
    if kind == "savepoint":
        save = query(b"SAVEPOINT `s`", database=database.encode(), status=status(mode ^ CUT))
        found += [save, table_map(1, database), insert(1, [number + 1000])]
    if kind == "two":
        found += [
            table_map(1, database),
            table_map(2, "z"),
            insert(1, [number + 1000], ends=False),
            insert(2, [number]),
        ]
    if kind == "packed":
        return [found[0], payload(*found[1:], XID)]
    return [*found, XID]


Mapped = tuple[MapSummary, list[MemorySink]]


def mapped(
    version: ModuleType, transactions: Sequence[Transaction], *, reduce: bool, size: int, renames: bool = False
) -> Mapped:
    parts = [part for number, each in enumerate(transactions, 1) for part in events(number, *each)]
    data = log(*parts, log_format=MYSQL)
    _, template = segment_of([[]])
    count = len(transactions)
    segment = replace(
        template, flavor=Flavor.MYSQL, last_seqno=count, transactions=count, bytes=len(data), start_offset=0
    )
    chosen = settings(lanes=1, block_transactions=5, block_bytes=size, target="mysql", target_version="9.7.0")
    chosen = replace(chosen, renames=[["a", "new"]] if renames else [])
    scan = columnar.scan_segment(data, segment, chosen, lambda name: name == "")
    routing = merge_scans(manifest_of([segment]), [scan], chosen, EMPTY_SCHEMA)
    sinks: list[MemorySink] = []

    def open_sink(lane: int, format_event: bytes) -> MemorySink:
        sinks.append(MemorySink(lane, format_event))
        return sinks[-1]

    rules = {TableKey(name, "t"): TableRule(1, (0,), (0,)) for name in ("a", "new", "b", "z")}
    reducer = Reducer(rules, 1 << 16, 1 << 16) if reduce else None
    arguments = (data, segment, routing, chosen, open_sink, reducer, None, OfDatabases("new" if renames else "a"))
    summary = version.map_segment(*arguments)
    return summary, sorted(sinks, key=lambda sink: sink.lane)


TRANSACTIONS = st.lists(
    st.tuples(
        st.sampled_from([0, CUT, PADDED, CUT | STRICT]),
        st.sampled_from("aab"),
        st.sampled_from(["", "", "", "savepoint", "two", "packed", *ZONES]),
    ),
    min_size=1,
    max_size=14,
)


def sent(sinks: Sequence[MemorySink]) -> list[Item]:
    return [item for sink in sinks for _, items in sink.blocks for item in items]


@hypothesis_settings(max_examples=examples(200), deadline=None)
@given(TRANSACTIONS, st.booleans(), st.sampled_from([1, 300, 1 << 20]), st.booleans())
def test_arrays_give_rows_the_same_modes_as_one_by_one(
    transactions: list[Transaction], reduce: bool, size: int, renames: bool
) -> None:
    plain = mapped(plain_map, transactions, reduce=reduce, size=size, renames=renames)
    found = mapped(columnar, transactions, reduce=reduce, size=size, renames=renames)
    assert found[1] == plain[1]
    assert found[0].tally.requirements == plain[0].tally.requirements
    assert sum(item.rows.total for item in sent(found[1])) == sum(
        {"savepoint": 2, "two": 3}.get(kind, 1) for _, _, kind in transactions
    )
    for item in sent(found[1]):
        if item.payload:
            assert item.kind == "statement" or check_self_contained(item.payload)


def test_rows_of_one_mode_stay_together_and_those_that_see_none_go_with_any() -> None:
    modes = (0, 0, CUT, CUT | STRICT, CUT, 0)
    transactions = [(mode, database, "") for mode in modes for database in "ab"]
    for version, reduce, renames in product((columnar, plain_map), (False, True), (False, True)):
        summary, sinks = mapped(version, transactions, reduce=reduce, size=1 << 20, renames=renames)
        # five transactions a block
        found = [(item.context, item.rows.inserts) for item in sent(sinks)]
        joined = [(mode, sum(rows for _, rows in group)) for mode, group in groupby(found, lambda each: each[0])]
        assert [mode and mode.sql_mode for mode, _ in joined] == [0, CUT, 0]
        assert sum(rows for _, rows in joined) == len(transactions)
        assert {key: seqno for key, seqno in summary.tally.requirements.items() if key.feature == COMPUTED_MODE} == {
            Requirement(COMPUTED_MODE, "session", ""): 1,
            Requirement(COMPUTED_MODE, "session", "TIME_TRUNCATE_FRACTIONAL"): 5,
        }


def test_rows_of_one_time_zone_stay_together() -> None:
    """None: the log does not have the zone, which is no other one's."""
    kinds = ("", *ZONES, ZONES[2], "", ZONES[0])
    transactions = [(CUT, database, kind) for kind in kinds for database in "ab"]
    for version, reduce in product((columnar, plain_map), (False, True)):
        summary, sinks = mapped(version, transactions, reduce=reduce, size=1 << 20)
        found = [(item.context, item.rows.inserts) for item in sent(sinks)]
        joined = [(seen, sum(rows for _, rows in group)) for seen, group in groupby(found, lambda each: each[0])]
        assert [seen and (seen.sql_mode, seen.time_zone) for seen, _ in joined] == [
            (CUT, kind or None) for kind, _ in groupby(kinds)
        ]
        assert sum(rows for _, rows in joined) == len(transactions)
        assert {key.detail for key in summary.tally.requirements if key.feature == COMPUTED_ZONE} == {"", *ZONES}


@pytest.mark.parametrize("database", ["a", "b"])
def test_a_transaction_alone_is_computed_in_its_mode_whatever_its_tables_are(database: str) -> None:
    data = log(*events(1, CUT | STRICT, database, ""), log_format=MYSQL)
    limits = settings().limits
    block = alone(memoryview(data), "binlog.000001", Flavor.MYSQL, "9.7.0", limits)
    assert [item.context for item in block.items] == [SessionContext(sql_mode=CUT)]
    assert AllTables().sees(TableKey(database, "t"))
