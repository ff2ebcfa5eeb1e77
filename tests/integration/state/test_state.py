"""Channels, windows and positions: compare-and-set, or nothing."""

from __future__ import annotations

import datetime as dt
import itertools
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Engine, NullPool, Table, event, insert, select, text

from binlane.errors import (
    PlanError,
    PositionError,
    PrecheckError,
    SourceIdentityError,
    StateSchemaError,
    StopRequestedError,
    WindowBusyError,
)
from binlane.model import BlockHeader, FolderRecord, LogPosition, RowCounts
from binlane.plan.window_plan import LaneFile, WindowPlan
from binlane.servers.engines import engine_at
from binlane.state.channels import Watermark, create_channel
from binlane.state.migrations.upgrade import create
from binlane.state.orders import stops
from binlane.state.orders.orders import begin_ddl, end_ddl
from binlane.state.orders.stops import clear_stop, request_stop, settle_stop
from binlane.state.positions import Counted, PlanKey, lane_positions, move_position, read_positions, settle
from binlane.state.records.journal import last_error_id, read_errors, read_status, record_error
from binlane.state.splits import add_piece, is_split
from binlane.state.tables import NOW, metadata, migrations
from binlane.state.windows import (
    Window,
    WindowBounds,
    drop_unplanned,
    finish_window,
    open_window,
    read_open_window,
    record_files,
    set_plan,
)
from lab.servers import PrivateServer
from tests.integration.state.conftest import cursor_of

START = Watermark(10, LogPosition("log.1", 4), "0-1-10", 5.0, "f10")
BOUNDS = WindowBounds(
    "c", "w1", "source", 11, 20, LogPosition("log.2", 900), "0-1-20", 9.5, "f20", FolderRecord("file:///srv/w1")
)
ROWS = RowCounts(3, 2, 1)
PLAN = WindowPlan(
    channel="c",
    window_id="w1",
    digest="d1",
    first_seqno=11,
    last_seqno=20,
    lanes=2,
    barriers=(),
    source="source",
    end=BOUNDS.end,
    end_gtid_set="0-1-20",
    end_time=9.5,
    lane_rows=(ROWS, RowCounts(), RowCounts()),
    files=tuple((LaneFile(f"lanes/{lane:04d}/000001.parquet", 11, 20, 1, 3, 100, ""),) for lane in range(3)),
)
KEY = PlanKey("c", "w1", "d1")


@pytest.fixture
def planned(engine: Engine) -> Window:
    create_channel(engine, "c", "source", START)
    open_window(engine, BOUNDS)
    return set_plan(engine, PLAN)


def bring_to_the_end(engine: Engine, rows: RowCounts = ROWS) -> None:
    with cursor_of(engine) as cursor:
        cursor.execute("BEGIN")
        assert move_position(cursor, KEY, (0, 1, 2), 10, 19)
        settle(cursor, KEY, (0, 1, 2), 0, 19, 20, Counted(rows, 1, 9))
        cursor.execute("COMMIT")


def test_creating_the_state_again_changes_nothing(engine: Engine, planned: Window) -> None:
    create(engine)
    with engine.connect() as connection:
        assert read_open_window(connection, "c") == planned


def test_every_table_is_innodb_whatever_the_default_is(target: PrivateServer) -> None:
    made = engine_at(target.url(), poolclass=NullPool)

    @event.listens_for(made, "connect")
    def other_default(connection: Any, _: object) -> None:
        connection.query("SET SESSION default_storage_engine = MyISAM")

    create(made)
    engines = target.query(
        "SELECT DISTINCT LOWER(engine) FROM information_schema.tables WHERE table_schema = 'binlane' "
        "AND table_type = 'BASE TABLE'"
    )
    assert engines == [("innodb",)]
    target.query("ALTER TABLE binlane.errors ENGINE = MyISAM")
    with pytest.raises(StateSchemaError, match=r"binlane\.errors is MyISAM, expected InnoDB"):
        create(made)


def test_a_proxy_that_shares_connections_is_refused(target: PrivateServer) -> None:
    made = engine_at(target.url(), poolclass=NullPool)
    ids = itertools.cycle([7, 7, 8])

    @event.listens_for(made, "before_cursor_execute", retval=True)
    def multiplex(_: object, __: object, statement: str, parameters: object, *___: object) -> tuple[str, object]:
        return statement.replace("CONNECTION_ID()", str(next(ids))), parameters

    with pytest.raises(PrecheckError, match="proxy"):
        create(made)
    assert target.query("SELECT 1 FROM information_schema.schemata WHERE schema_name = 'binlane'") == []


def test_a_channel_is_created_once_and_belongs_to_one_source(engine: Engine) -> None:
    first = create_channel(engine, "c", "source", START)
    assert create_channel(engine, "c", "source", replace(START, seqno=99)) == first
    with pytest.raises(SourceIdentityError, match="belongs to source"):
        create_channel(engine, "c", "another", START)
    assert create_channel(engine, "C", "another", START).uuid != first.uuid, "names are case-sensitive"


def test_a_channel_that_begins_again_takes_nothing_of_the_old_one_for_its_own(engine: Engine) -> None:
    """An order to skip a seqno would leave out another transaction: they are counted anew. Who did what stays known."""
    of_channels = [table for table in metadata.sorted_tables if table is not migrations]
    with engine.begin() as connection:
        for table in of_channels:
            for channel in ("c", "other"):
                connection.execute(insert(table).values(_a_row_of(table, channel)))
        connection.execute(text("DELETE FROM binlane.channels WHERE channel = 'c'"))
    with pytest.raises(PrecheckError, match="found an unfinished first copy"):
        create_channel(engine, "c", "source", START)
    with engine.begin() as connection:
        connection.execute(text("UPDATE binlane.bootstraps SET finished_for = 'x' WHERE channel = 'c'"))
    create_channel(engine, "c", "source", START)
    with engine.connect() as connection:
        for table in of_channels:
            rows = Counter(connection.scalars(select(table.c.channel)))
            assert rows == {"other": 1} | ({"c": 1} if table.name in ("channels", "audit") else {}), table.name


def _a_row_of(table: Table, channel: str) -> dict[str, Any]:
    values: dict[type, Any] = {int: 1, float: 1.0, str: channel, bytes: b"x", dt.datetime: NOW}
    needed = (column for column in table.columns if not column.nullable and column.autoincrement is not True)
    return {column.name: values[column.type.python_type] for column in needed}


def test_one_window_is_open_a_channel_and_the_same_one_is_returned(engine: Engine) -> None:
    create_channel(engine, "c", "source", START)
    opened = open_window(engine, BOUNDS)
    assert opened.bounds == BOUNDS
    assert (opened.number, opened.state, opened.plan_digest) == (1, "open", None)
    assert open_window(engine, BOUNDS) == opened
    for other in (
        replace(BOUNDS, window_id="w2"),
        replace(BOUNDS, last_seqno=21),
        replace(BOUNDS, end=LogPosition("log.2", 901)),
        replace(BOUNDS, end_fingerprint="f"),
    ):
        with pytest.raises(WindowBusyError, match=r"window w1 .* is open"):
            open_window(engine, other)


def test_of_four_concurrent_runs_one_opens_the_window(engine: Engine) -> None:
    create_channel(engine, "c", "source", START)

    def attempt(number: int) -> str:
        try:
            return open_window(engine, replace(BOUNDS, window_id=f"w{number}")).bounds.window_id
        except WindowBusyError:
            return ""

    with ThreadPoolExecutor(4) as pool:
        won = [name for name in pool.map(attempt, range(4)) if name]
    with engine.connect() as connection:
        window = read_open_window(connection, "c")
    assert window is not None
    assert won == [window.bounds.window_id]


@pytest.mark.parametrize(
    ("bounds", "error"),
    [
        (replace(BOUNDS, first_seqno=12), PositionError),
        (replace(BOUNDS, first_seqno=10), PositionError),
        (replace(BOUNDS, last_seqno=9), PositionError),
        (replace(BOUNDS, source_identity="another"), SourceIdentityError),
        (replace(BOUNDS, channel="unknown"), PositionError),
    ],
)
def test_a_window_that_does_not_fit_the_watermark_is_not_opened(
    engine: Engine, bounds: WindowBounds, error: type[Exception]
) -> None:
    create_channel(engine, "c", "source", START)
    with pytest.raises(error):
        open_window(engine, bounds)
    assert read_status(engine, "c").window is None


def test_only_a_window_without_a_plan_is_forgotten(engine: Engine) -> None:
    create_channel(engine, "c", "source", START)
    seen = open_window(engine, BOUNDS)
    assert drop_unplanned(engine, seen)
    assert not drop_unplanned(engine, seen)
    assert open_window(engine, BOUNDS).number == 1
    # whoever has seen it without a plan is late
    planned = set_plan(engine, PLAN)
    assert not drop_unplanned(engine, seen)
    with engine.connect() as connection:
        assert read_open_window(connection, "c") == planned


def test_a_window_keeps_its_first_plan(engine: Engine, planned: Window) -> None:
    assert (planned.plan_digest, planned.lanes, planned.totals) == ("d1", 2, ROWS)
    assert set_plan(engine, PLAN) == planned
    with pytest.raises(PlanError, match="has the plan d1, got d2"):
        set_plan(engine, replace(PLAN, digest="d2"))
    with pytest.raises(PlanError, match=r"stored with seqnos 11\.\.20"):
        set_plan(engine, replace(PLAN, digest="d2", last_seqno=21))


def test_the_files_of_a_window_are_written_anew_only_while_no_other_run_uses_them(engine: Engine) -> None:
    """Each run records digests in the place of those that it has found, and plans what it has found."""
    create_channel(engine, "c", "source", START)
    of_two = {"manifest.json": "m", "schema.json": "s"}
    open_window(engine, replace(BOUNDS, work=FolderRecord("file:///srv/w1", of_two)))
    record = partial(record_files, engine, "c", "w1")
    with pytest.raises(WindowBusyError, match="has written its files anew"):
        record({}, {"manifest.json": "older"}, only_unplanned=True)
    record({}, of_two, only_unplanned=True)
    with pytest.raises(WindowBusyError, match="has written its files anew"):
        set_plan(engine, PLAN, digests=of_two, before=of_two)
    record(of_two, {})
    record(of_two, {})
    set_plan(engine, PLAN, digests=of_two, before=of_two)
    with pytest.raises(WindowBusyError, match="has planned it"):
        record({}, of_two, only_unplanned=True)
    # its files are gone, and the same log is read again
    record({"manifest.json": "m"}, of_two)
    bring_to_the_end(engine)
    finish_window(engine, "c", "w1", "d1")
    with pytest.raises(WindowBusyError, match="has ended it"):
        record({}, {"manifest.json": "m"})


def test_of_four_concurrent_plans_one_is_stored(engine: Engine) -> None:
    create_channel(engine, "c", "source", START)
    open_window(engine, BOUNDS)

    def attempt(number: int) -> bool:
        try:
            set_plan(engine, replace(PLAN, digest=f"d{number}"))
        except PlanError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(attempt, range(4))) == [False, False, False, True]


def test_a_plan_puts_every_lane_before_the_window(engine: Engine, planned: Window) -> None:
    with engine.connect() as connection:
        lanes = lane_positions(connection, "c")
    assert [(lane.lane, lane.seqno, lane.digest, lane.rows) for lane in lanes] == [
        (lane, 10, "d1", RowCounts()) for lane in range(3)
    ]


@pytest.mark.parametrize(
    ("key", "lanes", "expected"),
    [
        (KEY, (0,), 9),
        (KEY, (0,), 11),
        (replace(KEY, digest="d2"), (0,), 10),
        (replace(KEY, window_id="w2"), (0,), 10),
        (replace(KEY, channel="C"), (0,), 10),
        (KEY, (0, 3), 10),
    ],
)
def test_a_position_moves_only_from_where_it_stands_and_under_its_plan(
    engine: Engine, planned: Window, key: PlanKey, lanes: tuple[int, ...], expected: int
) -> None:
    with cursor_of(engine) as cursor:
        cursor.execute("BEGIN")
        assert not move_position(cursor, key, lanes, expected, 15)
        cursor.execute("ROLLBACK")
        assert read_positions(cursor, KEY) == {0: 10, 1: 10, 2: 10}


def test_positions_never_move_back(engine: Engine, planned: Window) -> None:
    with cursor_of(engine) as cursor:
        for seqno in (10, 9):
            with pytest.raises(PositionError, match="not forward"):
                move_position(cursor, KEY, (0,), 10, seqno)
        cursor.execute("BEGIN")
        assert move_position(cursor, KEY, (0,), 10, 15)
        with pytest.raises(PositionError, match="not forward"):
            settle(cursor, KEY, (0,), 0, 15, 14, Counted(RowCounts(), 1, 1))
        with pytest.raises(PositionError, match="0 of their positions"):
            settle(cursor, KEY, (0,), 0, 16, 17, Counted(RowCounts(), 1, 1))
        cursor.execute("ROLLBACK")


def test_a_second_mover_waits_for_the_first_and_then_finds_it_moved(engine: Engine, planned: Window) -> None:
    with cursor_of(engine) as first, cursor_of(engine) as second, ThreadPoolExecutor(1) as pool:
        first.execute("BEGIN")
        assert move_position(first, KEY, (0, 1), 10, 15)
        second.execute("BEGIN")
        waiting = pool.submit(move_position, second, KEY, (1,), 10, 12)
        time.sleep(0.3)
        assert not waiting.done(), "the row's lock keeps the second one out"
        first.execute("COMMIT")
        assert waiting.result(timeout=10) is False
        second.execute("ROLLBACK")


def test_movers_of_several_lanes_cannot_deadlock(engine: Engine, planned: Window) -> None:
    def move(lanes: tuple[int, ...]) -> int:
        moved = 0
        with cursor_of(engine) as cursor:
            for _ in range(30):
                cursor.execute("BEGIN")
                at = read_positions(cursor, KEY)[0]
                cursor.execute("ROLLBACK")
                cursor.execute("BEGIN")
                if move_position(cursor, KEY, lanes, at, at + 1):
                    moved += 1
                    cursor.execute("COMMIT")
                else:
                    cursor.execute("ROLLBACK")
        return moved

    with ThreadPoolExecutor(3) as pool:
        moved = sum(pool.map(move, [(0, 1, 2), (2, 1, 0), (1, 0, 2)]))
    with cursor_of(engine) as cursor:
        assert read_positions(cursor, KEY) == dict.fromkeys(range(3), 10 + moved)


def test_only_the_owner_gets_what_was_counted(engine: Engine, planned: Window) -> None:
    bring_to_the_end(engine)
    with engine.connect() as connection:
        lanes = lane_positions(connection, "c")
    assert [lane.seqno for lane in lanes] == [20, 20, 20]
    assert [(lane.rows, lane.blocks, lane.transactions) for lane in lanes] == [
        (ROWS, 1, 9),
        (RowCounts(), 0, 0),
        (RowCounts(), 0, 0),
    ]


def test_the_watermark_moves_once_when_every_lane_is_there(engine: Engine, planned: Window) -> None:
    bring_to_the_end(engine)
    mark = finish_window(engine, "c", "w1", "d1", "all well")
    assert mark == Watermark(20, BOUNDS.end, "0-1-20", 9.5, "f20")
    settled: list[object] = []
    assert finish_window(engine, "c", "w1", "d1", settle=[settled.append]) == mark
    assert settled == []
    assert open_window(engine, BOUNDS).is_finished, "a finished window is returned, not opened again"
    status = read_status(engine, "c")
    assert (status.window, status.channel.watermark, status.low_water, status.channel.windows) == (None, mark, 20, 1)
    following = replace(BOUNDS, window_id="w2", first_seqno=21, last_seqno=25)
    assert open_window(engine, following).number == 2
    one_lane = replace(PLAN, lanes=1, lane_rows=(ROWS, ROWS), files=PLAN.files[:2])
    set_plan(engine, replace(one_lane, window_id="w2", first_seqno=21, last_seqno=25))
    assert [lane.lane for lane in read_status(engine, "c").positions] == [0, 1]
    assert finish_window(engine, "c", "w1", "d1") == mark, "the lanes' rows are the next window's by now"


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE binlane.positions SET seqno = 19 WHERE lane = 1", "lane 1 at 19; expected every lane at 20"),
        ("UPDATE binlane.positions SET seqno = 21 WHERE lane = 1", "lane 1 at 21"),
        ("DELETE FROM binlane.positions WHERE lane = 2", r"positions of lanes \[0, 1\], expected \[0, 1, 2\]"),
        ("UPDATE binlane.positions SET digest = 'x' WHERE lane = 2", "lane 2 belongs to window w1, plan x"),
        ("UPDATE binlane.positions SET inserts = inserts + 1 WHERE lane = 2", "the row counts do not agree"),
        ("UPDATE binlane.channels SET watermark_seqno = 11", "the watermark is 11, expected 10"),
    ],
)
def test_the_watermark_stays_if_anything_is_amiss(
    target: PrivateServer, engine: Engine, planned: Window, damage: str, message: str
) -> None:
    bring_to_the_end(engine)
    target.query(damage)
    before = read_status(engine, "c")
    with pytest.raises(PositionError, match=message):
        finish_window(engine, "c", "w1", "d1")
    with pytest.raises(PlanError, match="has the plan d1, got d2"):
        finish_window(engine, "c", "w1", "d2")
    assert read_status(engine, "c") == before


def test_a_stop_is_the_highest_position_a_ddl_under_way_included_and_can_be_taken_back(
    engine: Engine, planned: Window
) -> None:
    with cursor_of(engine) as cursor:
        move_position(cursor, KEY, (1,), 10, 17)
    asked = request_stop(engine, "c", by="alice")
    assert (asked.seqno, asked.now, asked.is_reached) == (17, False, False)
    status = read_status(engine, "c")
    assert status.window is not None
    assert status.window.stop_at == 17
    assert str(status.channel.stopped).startswith("at seqno 17, by alice at 20")
    with cursor_of(engine) as cursor:
        assert begin_ddl(cursor, KEY, (2,), 10, 18)
    assert request_stop(engine, "c").seqno == 18
    with cursor_of(engine) as cursor:
        end_ddl(cursor, KEY, (2,), 18)
    assert request_stop(engine, "c", at=19).seqno == 19
    for seqno in (16, 21):
        with pytest.raises(PositionError, match="a lane stands at 17 already, and the open window ends at 20"):
            request_stop(engine, "c", at=seqno)
    assert request_stop(engine, "c", now=True).now
    clear_stop(engine, "c")
    status = read_status(engine, "c")
    assert status.window is not None
    assert (status.window.stop_at, status.channel.stopped) == (None, None)
    assert (status.low_water, status.high_water) == (10, 17)


@pytest.mark.parametrize("ahead", [0, 300, -300])
def test_a_stop_that_is_younger_than_an_order_to_resume_stays(
    engine: Engine, planned: Window, monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """A run of the DAG says when it was asked for: its task may be tried again much later, by a clock of its own."""
    monkeypatch.setattr(stops, "time", SimpleNamespace(time=lambda: time.time() + ahead))
    request_stop(engine, "c", by="alice")
    with engine.begin() as connection:
        connection.execute(text("UPDATE binlane.channels SET stopped_at = stopped_at - INTERVAL 100 SECOND"))
    now = dt.datetime.now(dt.timezone(dt.timedelta(hours=-7))) + dt.timedelta(seconds=ahead)
    clear_stop(engine, "c", now - dt.timedelta(seconds=200))
    assert read_status(engine, "c").channel.stopped is not None
    clear_stop(engine, "c", now - dt.timedelta(seconds=50))
    assert read_status(engine, "c").channel.stopped is None
    clear_stop(engine, "c", now)


def test_a_stop_settles_where_all_lanes_stand_and_the_window_ends_from_there(engine: Engine, planned: Window) -> None:
    window = planned
    mark = Watermark(15, LogPosition("log.1", 500), "0-1-15", 7.0, "f15")
    with cursor_of(engine) as cursor:
        for lane in (0, 1):
            move_position(cursor, KEY, (lane,), 10, 15)
    with pytest.raises(PositionError, match="lane 2 at 10; expected every lane at 15"):
        settle_stop(engine, window, mark)
    with cursor_of(engine) as cursor:
        move_position(cursor, KEY, (2,), 10, 15)
    assert settle_stop(engine, window, mark) == mark
    assert settle_stop(engine, window, mark) == mark
    assert read_status(engine, "c").channel.watermark == mark
    with cursor_of(engine) as cursor:
        for lane in (0, 1, 2):
            move_position(cursor, KEY, (lane,), 15, 20)
        settle(cursor, KEY, (0,), 0, 20, 20, Counted(ROWS, 1, 1))
    assert finish_window(engine, "c", "w1", "d1").seqno == 20


def test_the_accounts_of_split_blocks_are_what_was_written_instead(engine: Engine, planned: Window) -> None:
    block = BlockHeader(11, 13, 2, LogPosition("log.1", 4), "", 1.0)
    with cursor_of(engine) as cursor:
        for lane in (0, 1, 2):
            move_position(cursor, KEY, (lane,), 10, 20)
        add_piece(cursor, KEY, 0, block, ROWS, RowCounts(4, 2, 1), RowCounts())
        assert is_split(cursor, KEY, 0, block)
        assert not is_split(cursor, KEY, 1, block)
        settle(cursor, KEY, (0,), 0, 20, 20, Counted(RowCounts(4, 2, 1), 1, 1))
    with pytest.raises(PositionError, match=r"of the block of seqnos 11\.\.13 in lane 0, 1 of 2 transactions done"):
        finish_window(engine, "c", "w1", "d1")
    with cursor_of(engine) as cursor:
        add_piece(cursor, KEY, 0, block, ROWS, RowCounts(1, 0, 0), RowCounts(0, 5, 0))
    with pytest.raises(PositionError, match="the row counts do not agree"):
        finish_window(engine, "c", "w1", "d1")
    with cursor_of(engine) as cursor:
        settle(cursor, KEY, (0,), 0, 20, 20, Counted(RowCounts(1, 0, 0), 1, 1))
    finish_window(engine, "c", "w1", "d1")


def test_a_stopped_channel_opens_no_window_until_it_is_resumed(engine: Engine) -> None:
    create_channel(engine, "c", "source", START)
    assert request_stop(engine, "c").window is None
    with pytest.raises(StopRequestedError, match="was asked to stop at seqno 10, by somebody"):
        open_window(engine, BOUNDS)
    with pytest.raises(PositionError, match="end the next window with --until"):
        request_stop(engine, "c", at=12)
    clear_stop(engine, "c")
    open_window(engine, BOUNDS)


def test_errors_are_read_newest_first_and_by_id(engine: Engine, planned: Window) -> None:
    with engine.begin() as connection:
        assert last_error_id(connection, "c") == 0
        record_error(connection, KEY, 0, None, 1062, "first")
        first = last_error_id(connection, "c")
        record_error(connection, KEY, 1, None, 0, "second")
        assert [error.text for error in read_errors(connection, "c")] == ["second", "first"]
        assert [error.text for error in read_errors(connection, "c", after=first)] == ["second"]
