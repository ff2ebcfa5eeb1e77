"""Both versions of the filter over logs of other projects: old servers, logs without GTIDs, odd transactions."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.binlog.vector.frames import frame, index_rows, table_maps
from binlane.binlog.wire import MAGIC
from binlane.errors import BinlaneError
from binlane.model import TableKey
from binlane.plan.block.computed_modes import AllTables
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.segment import map as columnar
from binlane.plan.settings import PlanSettings
from binlane.plan.window.mapped import MappedWindow
from binlane.plan.window.merge import make_plan, merge_scans
from tests.unit.plan.logs import EMPTY_SCHEMA, MemorySink, alone, manifest_of, rows, segment_of, settings
from tests.unit.plan.segment import plain_map

CORPORA = Path(__file__).parents[5] / "shared" / "corpora"
SMALL = 1300
"""Bytes of a file that every damage is tried on."""
STRIDE = 5
FILES = sorted(path for path in CORPORA.glob("*/*") if path.read_bytes()[:4] == MAGIC) if CORPORA.is_dir() else []
EACH = pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])


def outcome(path: Path, version: Any, *, reduce: bool, seconds: int = 0, damaged: bytes | None = None) -> object:
    """Scan, plan and blocks of a log, or the kind of error that it ends with."""
    data = path.read_bytes() if damaged is None else damaged
    chosen = settings(lanes=2, block_transactions=5, block_seconds=seconds)
    _, template = segment_of([rows(1, "a")])
    try:
        reader = LogReader(data, path.name, verify=False)
        count = len(list(transactions(reader)))
        segment = replace(template, flavor=reader.format.flavor, last_seqno=count, transactions=count)
        scan = version.scan_segment(data, segment, chosen, lambda name: name == "test")
        manifest = manifest_of([segment])
        routing = merge_scans(manifest, [scan], chosen, EMPTY_SCHEMA)
        sinks: list[MemorySink] = []

        def open_sink(lane: int, format_event: bytes) -> MemorySink:
            sinks.append(MemorySink(lane, format_event))
            return sinks[-1]

        reducer = Reducer(rules_of(data, reader, path.name), 1 << 16, 1 << 16) if reduce else None
        summary = version.map_segment(data, segment, routing, chosen, open_sink, reducer, None, AllTables())
    except BinlaneError as exc:
        return type(exc)
    plan = make_plan(manifest, routing, MappedWindow.of([summary])).sealed()[1]
    return scan, plan, summary.activity, sorted(sinks, key=lambda sink: sink.lane)


def rules_of(data: bytes, reader: LogReader, name: str) -> dict[TableKey, TableRule]:
    """Each table by its first column, right or wrong: a wrong key makes its changes not fit each other."""
    frames = frame(data, len(MAGIC), reader.format.checksum.length)
    found = table_maps(frames, index_rows(frames, name), name)
    return {TableKey(table.database, table.table): TableRule(table.width, (0,), (0,)) for table in found}


@pytest.mark.skipif(not FILES, reason=f"{CORPORA} is not there")
def test_most_logs_of_the_corpora_are_mapped() -> None:
    mapped = [path for path in FILES if isinstance(outcome(path, columnar, reduce=True), tuple)]
    assert 2 * len(mapped) > len(FILES)


@EACH
@pytest.mark.parametrize(("reduce", "seconds"), [(False, 1), (True, 0)], ids=["replay", "reduce"])
def test_the_versions_give_the_same_blocks_or_the_same_error(path: Path, reduce: bool, seconds: int) -> None:
    plain = outcome(path, plain_map, reduce=reduce, seconds=seconds)
    assert outcome(path, columnar, reduce=reduce, seconds=seconds) == plain


@pytest.mark.parametrize("path", [path for path in FILES if path.stat().st_size <= SMALL], ids=lambda path: path.name)
def test_damage_that_no_checksum_tells_is_an_error_of_the_project_or_a_result(path: Path) -> None:
    """The versions may differ: the columnar one leaves alone what it does not need, as the session of a BEGIN."""
    data = path.read_bytes()
    for at in range(len(MAGIC), len(data), STRIDE):
        damaged = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
        for version in (plain_map, columnar):
            found = outcome(path, version, reduce=True, damaged=damaged)
            assert isinstance(found, tuple) or (isinstance(found, type) and issubclass(found, BinlaneError)), at


@pytest.mark.parametrize("chosen", [settings(reduce="block"), settings(reduce="block", lanes=1)], ids=["lanes", "lane"])
def test_rows_between_two_ddl_cost_nothing_for_the_databases_that_they_do_not_change(chosen: PlanSettings) -> None:
    """A segment has as many runs as DDL: with something for each database in each run, 9,000 DDL over 100 databases
    took minutes to plan."""

    def cost_of_ddl(databases: int) -> int:
        names = [f"d{number}" for number in range(databases)]
        before = [rows(seqno, name) for seqno, name in enumerate(("a", *names), 1)]
        ddl = [
            transaction
            for seqno in range(len(before) + 1, len(before) + 41, 2)
            for transaction in (alone(seqno, f"CREATE TABLE t{seqno} (i INT)"), rows(seqno + 1, "a"))
        ]
        return calls_of(before + ddl, chosen) - calls_of(before, chosen)

    # caches are full then; beside other tests they may lose an entry
    cost_of_ddl(3)
    assert cost_of_ddl(60) - cost_of_ddl(3) < 60 - 3, "a call for each database"


def calls_of(log: Sequence[Sequence[bytes]], chosen: PlanSettings) -> int:
    """How many calls of Python's functions a segment's map takes."""
    data, segment = segment_of(log)
    routing = merge_scans(
        manifest_of([segment]), [columnar.scan_segment(data, segment, chosen, lambda _: False)], chosen, EMPTY_SCHEMA
    )
    calls = Counter[str]()
    sys.setprofile(lambda _frame, event, _argument: calls.update((event,)))
    try:
        columnar.map_segment(data, segment, routing, chosen, MemorySink)
    finally:
        sys.setprofile(None)
    return calls["call"]
