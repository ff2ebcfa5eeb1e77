"""Payloads on their way to the server: what is refused before, what is counted after, what is left behind."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

import pymysql
import pytest

from binlane.apply.block import BlockPlace, apply_block
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.context import ContextSetter
from binlane.errors import ApplyError, DriftError, PlanError
from binlane.model import Item, ItemKind, RowCounts, SessionContext
from binlane.plan.window_plan import Block
from binlane.state.positions import PlanKey
from tests.integration.apply.capture import Captured, Window, stamped
from tests.integration.apply.conftest import QUICK, Pair, positions, start_window

HEADER = struct.Struct("<IBIIIH")


def one_block(pair: Pair, statement: str) -> tuple[Captured, Block]:
    """A window of one transaction in one block, begun on the target; what the source has logged, and the block."""
    recorder = pair.recorder()
    captured = recorder.run(statement)
    window = Window(recorder.format)
    block = window.add(0, captured)
    start_window(pair.engine, window.plan)
    return captured, block


@pytest.fixture
def session(pair: Pair) -> Iterator[LaneSession]:
    opened = LaneSession.open(pair.engine, QUICK.limits)
    yield opened
    opened.close()


def apply(pair: Pair, session: LaneSession, block: Block) -> None:
    uuid = str(pair.rows("SELECT uuid FROM binlane.channels")[0][0])
    place = BlockPlace(PlanKey("orders", "w1", "d1"), uuid, 0, (0,), block.header.first_seqno - 1)
    applied = apply_block(session, writer(session), place, block, lambda: block.header.last_seqno)
    assert applied is not None


def writer(session: LaneSession) -> BlockWriter:
    return BlockWriter(session, ContextSetter(session))


def with_items(block: Block, *items: Item) -> Block:
    return replace(block, items=items)


def test_rows_without_their_map_never_reach_the_server(pair: Pair, session: LaneSession) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY)")
    captured, block = one_block(pair, "INSERT INTO t VALUES (1), (2)")
    [item] = captured.items
    size = HEADER.unpack_from(item.payload)[3]
    with pytest.raises(PlanError, match="without its TABLE_MAP"):
        apply(pair, session, with_items(block, replace(item, payload=item.payload[size:])))
    assert positions(pair)[0] == 0
    apply(pair, session, block)
    pair.assert_equal("t")


@pytest.mark.parametrize("wrong", [RowCounts(inserts=3), RowCounts(inserts=1), RowCounts(updates=2), RowCounts()])
def test_a_count_other_than_the_handler_s_rolls_back(pair: Pair, session: LaneSession, wrong: RowCounts) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY)")
    captured, block = one_block(pair, "INSERT INTO t VALUES (1), (2)")
    with pytest.raises(DriftError, match=r"the target counted .*2 inserts.* in shop\.t"):
        apply(pair, session, with_items(block, replace(captured.items[0], rows=wrong)))
    assert pair.rows("SELECT * FROM shop.t") == []
    assert positions(pair)[0] == 0
    apply(pair, session, block)
    pair.assert_equal("t")


def test_a_commit_after_an_error_commits_nothing_of_the_block(pair: Pair, session: LaneSession) -> None:
    """1062 leaves the transaction open, with the rows before it."""
    pair.both("CREATE TABLE t (a INT PRIMARY KEY)")
    _, block = one_block(pair, "INSERT INTO t VALUES (1), (2)")
    pair.target.query("INSERT INTO shop.t VALUES (2)")
    with pytest.raises(pymysql.err.IntegrityError, match="1062"):
        apply(pair, session, block)
    session.commit()
    assert pair.rows("SELECT * FROM shop.t") == [(2,)]
    assert positions(pair)[0] == 0


WORKS = [
    pytest.param(
        ["CREATE TABLE t (a INT PRIMARY KEY, b INT) PARTITION BY HASH (a) PARTITIONS 4"],
        [
            "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)",
            "UPDATE t SET b = b + 1",
            "UPDATE t SET a = a + 5 WHERE a < 3",
            "DELETE FROM t WHERE a > 5",
        ],
        id="partitions",
    ),
    pytest.param(
        [
            "CREATE TABLE p (a INT PRIMARY KEY)",
            "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES p (a) ON DELETE CASCADE)",
        ],
        ["INSERT INTO p VALUES (1), (2)", "INSERT INTO t VALUES (1), (1), (2)"],
        id="foreign-key",
    ),
    pytest.param(
        ["CREATE TABLE t (a INT, b BLOB)"],
        ["INSERT INTO t VALUES (1, 'x'), (1, 'x')", "UPDATE t SET b = 'y'", "DELETE FROM t LIMIT 1"],
        id="no-key",
    ),
    pytest.param(
        ["CREATE TABLE t (a INT PRIMARY KEY, b INT)"],
        ["INSERT INTO t VALUES (1, 1)", "UPDATE t SET a = 2", "DELETE FROM t", "INSERT INTO t VALUES (2, 2)"],
        id="key-change",
    ),
]


@pytest.mark.parametrize(("tables", "statements"), WORKS)
def test_the_handler_s_counts_close_for(
    pair: Pair, session: LaneSession, tables: list[str], statements: list[str]
) -> None:
    pair.both(*tables)
    recorder = pair.recorder()
    window = Window(recorder.format)
    blocks = [window.add(0, recorder.run(statement)) for statement in statements]
    start_window(pair.engine, window.plan)
    for block in blocks:
        apply(pair, session, block)
    pair.assert_equal("t")


def test_half_the_rows_of_a_partitioned_table_are_noticed(pair: Pair, session: LaneSession) -> None:
    """MariaDB counts a row of a partitioned table twice, so half of them would look like all."""
    pair.both("CREATE TABLE t (a INT PRIMARY KEY) PARTITION BY HASH (a) PARTITIONS 2")
    captured, block = one_block(pair, "INSERT INTO t VALUES (1), (2)")
    with pytest.raises(DriftError):
        apply(pair, session, with_items(block, replace(captured.items[0], rows=RowCounts(inserts=4))))
    assert pair.rows("SELECT * FROM shop.t") == []


def test_a_statement_too_large_for_the_target_is_refused_with_the_size_it_needs(
    pair: Pair, session: LaneSession
) -> None:
    session.max_allowed_packet = 1_000
    with pytest.raises(ApplyError, match="raise it above 1,3"):
        session.binlog(b"x" * 1_000)


def test_the_position_tells_the_time_of_the_target_and_not_of_the_events(pair: Pair, session: LaneSession) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY)")
    recorder = pair.recorder()
    first, second = recorder.run("INSERT INTO t VALUES (1)"), recorder.run("INSERT INTO t VALUES (2)")
    window = Window(recorder.format)
    blocks = [window.add(0, first), window.add(0, second)]
    start_window(pair.engine, window.plan)
    for block, captured in zip(blocks, (first, second), strict=True):
        [item] = captured.items
        apply(pair, session, with_items(block, replace(item, payload=stamped(item.payload, 1_000_000_000))))
        assert int(session.value("SELECT UNIX_TIMESTAMP()")) == 1_000_000_000, "BINLOG no longer leaks its time"
    is_now = "ABS(TIMESTAMPDIFF(SECOND, updated_at, UTC_TIMESTAMP())) < 60"
    assert pair.rows(f"SELECT lane, {is_now} FROM binlane.positions") == [(0, 1)]


def test_a_ddl_behind_other_items_is_refused_before_it_commits_them(pair: Pair, session: LaneSession) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY)")
    captured, block = one_block(pair, "INSERT INTO t VALUES (1)")
    ddl = Item(ItemKind.DDL, b"DROP TABLE t", context=SessionContext(database="shop"))
    with pytest.raises(PlanError, match="DDL"):
        apply(pair, session, with_items(block, *captured.items, ddl))
    assert pair.rows("SELECT * FROM shop.t") == []
    assert positions(pair)[0] == 0


def test_a_ddl_and_the_rows_that_fill_its_table_share_a_block(pair: Pair, session: LaneSession) -> None:
    """CREATE TABLE ... SELECT is logged as both."""
    recorder = pair.recorder()
    create = "CREATE TABLE t (a INT PRIMARY KEY)"
    recorder.ddl(create)
    captured = recorder.run("INSERT INTO t VALUES (1), (2)")
    window = Window(recorder.format)
    block = window.add(0, captured)
    start_window(pair.engine, window.plan)
    ddl = Item(ItemKind.DDL, create.encode(), context=SessionContext(database="shop"))
    apply(pair, session, with_items(block, ddl, *captured.items))
    pair.assert_equal("t")
