"""``binlane.consistent``: which snapshots of the target a reader can trust, and the epochs that it knows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pymysql
import pytest
from sqlalchemy import Engine, func, select, text

from binlane.errors import StateSchemaError
from binlane.model import Epoch, LogPosition
from binlane.servers.snapshots import TargetReader
from binlane.state.channels import create_channel
from binlane.state.epochs import record_epoch
from binlane.state.migrations.check import require_current
from binlane.state.migrations.upgrade import create
from binlane.state.orders.orders import begin_ddl
from binlane.state.orders.stops import request_stop
from binlane.state.positions import move_position
from binlane.state.records.drills import (
    DIFFERENT,
    EQUAL,
    FAILED,
    NOTHING_KNOWN,
    RUNNING,
    DrillMemory,
    TenantResult,
    UnprovedDatabase,
    begin_drill,
    drill_memory,
    drilled_databases,
    last_drills,
    save_drill,
    worst,
)
from binlane.state.records.repairs import begin_repair, is_made, note_plan, read_repairs
from binlane.state.records.retention import forget_history
from binlane.state.tables import repairs
from binlane.state.windows import Window, finish_window, open_window, set_plan
from lab.servers import PrivateServer
from tests.integration.state.conftest import cursor_of
from tests.integration.state.test_state import BOUNDS, KEY, PLAN, START, bring_to_the_end

READER_TABLES: Final = ("consistent", "channels", "positions", "windows", "epochs", "skips")
"""docs/consistency.md: what a reader's account reads."""
AT_15: Final = Epoch(15, LogPosition("log.1", 500), "0-1-15", 7.5)


@pytest.fixture
def planned(engine: Engine) -> Window:
    create_channel(engine, "c", "source", START)
    open_window(engine, BOUNDS)
    return set_plan(engine, PLAN)


def seen(target: PrivateServer) -> list[tuple[Any, ...]]:
    return target.query(
        "SELECT seqno, source_file, source_offset, gtid_set, source_time, skipped FROM binlane.consistent "
        "WHERE channel = 'c' AND source_identity = 'source'"
    )


def move(engine: Engine, lanes: tuple[int, ...], before: int, after: int, epoch: Epoch | None = None) -> None:
    with cursor_of(engine) as cursor:
        cursor.execute("BEGIN")
        assert move_position(cursor, KEY, lanes, before, after)
        if epoch is not None:
            record_epoch(cursor, KEY, "source", epoch)
        cursor.execute("COMMIT")


def test_a_channel_stands_at_its_watermark_before_and_between_its_windows(
    target: PrivateServer, engine: Engine
) -> None:
    assert seen(target) == []
    create_channel(engine, "c", "source", START)
    create_channel(engine, "other", "source", START)
    start = [(10, "log.1", 4, "0-1-10", 5.0, 0)]
    assert seen(target) == start
    open_window(engine, BOUNDS)
    assert seen(target) == start
    set_plan(engine, PLAN)
    assert seen(target) == start
    bring_to_the_end(engine)
    end = [(20, "log.2", 900, "0-1-20", 9.5, 0)]
    assert seen(target) == end, "all lanes are at the end, the watermark is not"
    finish_window(engine, "c", "w1", "d1")
    assert seen(target) == end


def test_lanes_at_different_seqnos_and_a_running_ddl_are_no_state_of_the_source(
    target: PrivateServer, engine: Engine, planned: Window
) -> None:
    move(engine, (0,), 10, 15)
    assert seen(target) == []
    move(engine, (1,), 10, 15)
    assert seen(target) == [], "the serialized lane is still to come"
    move(engine, (2,), 10, 15, AT_15)
    assert seen(target) == [(15, "log.1", 500, "0-1-15", 7.5, 0)]
    with cursor_of(engine) as cursor:
        assert begin_ddl(cursor, KEY, (0, 1, 2), 15, 16)
    assert seen(target) == [], "the DDL may have committed already"
    move(engine, (0, 1, 2), 15, 16)
    assert seen(target) == [(16, None, None, None, None, 0)], "the lanes are together, at a place that is not recorded"


def test_the_target_rests_between_windows_at_an_epoch_and_where_the_channel_is_stopped(engine: Engine) -> None:
    """A reader that has the lock elsewhere would be overtaken: lanes wait for it at the ends of epochs alone."""

    def rests() -> bool:
        with TargetReader.opened(engine, "c") as reader:
            return reader.resting(1) is not None

    create_channel(engine, "c", "source", START)
    assert rests()
    open_window(engine, BOUNDS)
    assert rests(), "nothing is applied before the plan is stored"
    set_plan(engine, PLAN)
    assert not rests(), "its lanes may begin at any time"
    move(engine, (0, 1, 2), 10, 15, AT_15)
    assert rests()
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM binlane.epochs"))
        connection.execute(text("UPDATE binlane.positions SET seqno = 10, begun = 10"))
    assert not rests()
    request_stop(engine, "c")
    assert rests()
    bring_to_the_end(engine)
    assert rests(), "all lanes are at the window's end"


def test_skipped_transactions_are_counted_until_they_are_replayed(
    target: PrivateServer, engine: Engine, planned: Window
) -> None:
    for seqno, state in ((3, "skipped"), (4, "requested"), (5, "replayed")):
        target.query(
            "INSERT INTO binlane.skips SELECT 'c', %s, 'w', 0, '', 'f', 4, 1, '', 1, '', '', '', NOW(6), %s, NOW(6)",
            (seqno, state),
        )
    assert [row[-1] for row in seen(target)] == [1]


def test_an_epoch_is_recorded_once_and_goes_with_its_window(
    target: PrivateServer, engine: Engine, planned: Window
) -> None:
    with cursor_of(engine) as cursor:
        for _ in range(2):
            record_epoch(cursor, KEY, "source", AT_15)
        record_epoch(cursor, KEY, "source", Epoch(18, LogPosition("log.2", 4), "0-1-18", 8.5))
    columns = "number, seqno, window_id, source_identity, source_file, source_offset, gtid_set, source_time"
    assert target.query(f"SELECT {columns} FROM binlane.epochs ORDER BY 1") == [
        (1, 15, "w1", "source", "log.1", 500, "0-1-15", 7.5),
        (2, 18, "w1", "source", "log.2", 4, "0-1-18", 8.5),
    ]
    bring_to_the_end(engine)
    finish_window(engine, "c", "w1", "d1")
    target.query("UPDATE binlane.windows SET work = ''")
    target.query("UPDATE binlane.channels SET windows = windows + 1")
    assert forget_history(engine, "c", keep=2) == 0
    assert target.query("SELECT COUNT(*) FROM binlane.epochs") == [(2,)]
    assert forget_history(engine, "c", keep=1) == 1
    assert target.query("SELECT COUNT(*) FROM binlane.epochs") == [(0,)]


def test_a_plan_that_has_waited_is_the_newest_repair_where_it_begins(engine: Engine) -> None:
    digest = "a" * 64
    with engine.begin() as connection:
        note_plan(connection, "c", digest, "/work/plan.json", 3, "somebody")
        recopied = begin_repair(connection, "c", "b" * 64, "tenant_1.t", 4, "somebody")
        applied = begin_repair(connection, "c", digest, "/work/plan.json", 3, "somebody")
        assert [each.id for each in read_repairs(connection, "c", limit=9)] == [applied, recopied]
        assert is_made(connection, "c", digest)
        assert connection.scalar(select(func.count()).select_from(repairs)) == 2


def test_old_plans_that_nobody_has_applied_go(engine: Engine) -> None:
    with engine.begin() as connection:
        begun = begin_repair(connection, "c", "0" * 64, "/work/plan.json", 3, "somebody")
        for number in range(1, 5):
            note_plan(connection, "c", str(number) * 64, "/work/plan.json", 3, "somebody")
            note_plan(connection, "other", str(number) * 64, "/work/plan.json", 3, "somebody")
    forget_history(engine, "c", keep=2)
    with engine.connect() as connection:
        left = connection.scalars(select(repairs.c.digest).where(repairs.c.channel == "c").order_by(repairs.c.id))
        assert [*left] == ["0" * 64, "3" * 64, "4" * 64]
        assert [each.id for each in read_repairs(connection, "c", limit=9)] == [begun]
        others = connection.scalar(select(func.count()).where(repairs.c.channel == "other"))
        assert others == 4


def test_old_drills_go_but_the_newest_that_found_everything_equal(target: PrivateServer, engine: Engine) -> None:
    for state in (EQUAL, EQUAL, DIFFERENT, FAILED, FAILED):
        with engine.begin() as connection:
            number = begin_drill(connection, "c", 1, "dump", "log", "me")
            save_drill(connection, number, 0, (), state)
    states = "SELECT GROUP_CONCAT(state ORDER BY id) FROM binlane.drills WHERE channel = 'c'"
    with engine.begin() as connection:
        begin_drill(connection, "c", 1, "dump", "log", "me")
    forget_history(engine, "c", keep=2)
    assert target.query(states) == [("equal,failed,running",)]
    forget_history(engine, "c", keep=2)
    assert target.query(states) == [("equal,failed,running",)]


def test_a_drill_that_was_killed_hides_no_result(target: PrivateServer, engine: Engine) -> None:
    def last() -> str | None:
        with engine.connect() as connection:
            found = last_drills(connection, "c")
        return None if found is None else found.state

    with engine.begin() as connection:
        begin_drill(connection, "c", 1, "dump", "log", "me")
        begin_drill(connection, "c", 1, "dump", "log", "me")
    assert last() is None
    with engine.begin() as connection:
        for state in (EQUAL, DIFFERENT):
            save_drill(connection, begin_drill(connection, "c", 1, "dump", "log", "me"), 0, (), state)
        for _ in range(3):
            begin_drill(connection, "c", 1, "dump", "log", "me")
    assert last() == DIFFERENT
    forget_history(engine, "c", keep=1)
    assert last() == DIFFERENT
    states = "SELECT GROUP_CONCAT(state ORDER BY id) FROM binlane.drills WHERE channel = 'c'"
    assert target.query(states) == [("equal,different,running",)]


def test_what_one_drill_has_found_stands_until_a_newer_one_has_found_that_database_equal(engine: Engine) -> None:
    def drill(state: str = "", *, is_partial: bool = False, **databases: str) -> int:
        with engine.begin() as connection:
            memory = replace(drill_memory(connection, "c"), is_partial=is_partial)
            number = begin_drill(connection, "c", 5, "dump", "log", "me", memory)
            tenants = [
                TenantResult(database, "", "", "", "", 0, 0, 0, 0.0, each, (), "")
                for database, each in databases.items()
            ]
            save_drill(connection, number, 0, tenants, state or worst([*databases.values()]), "", memory)
        return number

    def known() -> tuple[list[str], bool]:
        with engine.connect() as connection:
            found = last_drills(connection, "c")
        assert found is not None
        return [*map(str, found.unproved)], found.equal_at is not None

    first = drill(a=DIFFERENT, b=EQUAL)
    assert known() == ([f"a (different, drill {first})"], False)
    drill(b=EQUAL, c=EQUAL)
    assert known() == ([f"a (different, drill {first})"], True), "of others"
    drill()
    assert known() == ([f"a (different, drill {first})"], True), "nothing was restored"
    second = drill(a=FAILED, c=EQUAL)
    assert known() == ([f"a (failed, drill {second})"], True)
    killed = drill(RUNNING, b=DIFFERENT)
    assert known() == ([f"a (failed, drill {second})", f"b (different, drill {killed})"], True), "one that was killed"
    forget_history(engine, "c", keep=1)
    drill(a=EQUAL)
    forget_history(engine, "c", keep=1)
    assert known() == ([f"b (different, drill {killed})"], True)
    drill(a=EQUAL, b=EQUAL)
    assert known() == ([], True)
    with engine.connect() as connection:
        assert drilled_databases(connection, "c", 5) == ("a", "b")
        assert drilled_databases(connection, "c", 6) is None
        assert drill_memory(connection, "other") == NOTHING_KNOWN


def test_a_drill_of_fewer_databases_than_the_channels_file_says_proves_no_age(
    target: PrivateServer, engine: Engine
) -> None:
    def drilled(*, is_partial: bool) -> str:
        with engine.begin() as connection:
            memory = replace(drill_memory(connection, "c"), is_partial=is_partial)
            number = begin_drill(connection, "c", 5, "dump", "log", "me", memory)
            save_drill(connection, number, 0, (), EQUAL, "", memory)
            found = last_drills(connection, "c")
        assert found is not None
        return found.equal_at or ""

    assert drilled(is_partial=True) == ""
    whole = drilled(is_partial=False)
    target.query("UPDATE binlane.drills SET ended_at = ended_at - INTERVAL 1 DAY")
    assert whole != ""
    assert drilled(is_partial=True) < whole, "that of a day ago"
    assert drilled(is_partial=True) < whole
    assert drilled(is_partial=False) >= whole


def test_a_database_that_the_channel_has_no_more_is_forgotten(engine: Engine) -> None:
    """The drill takes over what it still can restore."""
    with engine.begin() as connection:
        known = DrillMemory((UnprovedDatabase("a", DIFFERENT, 1),))
        begin_drill(connection, "c", 5, "dump", "log", "me", known)
        assert drill_memory(connection, "c") == known
        begin_drill(connection, "c", 5, "dump", "log", "me", NOTHING_KNOWN)
        assert drill_memory(connection, "c") == NOTHING_KNOWN
        assert last_drills(connection, "c") is None


def test_a_reader_needs_these_grants_and_no_others(target: PrivateServer, engine: Engine, planned: Window) -> None:
    target.query("DROP USER IF EXISTS reader")
    target.query(f"CREATE USER reader IDENTIFIED BY '{target.password}'")
    asks = "SELECT seqno FROM binlane.consistent WHERE channel = 'c'"
    for table in READER_TABLES:
        with pytest.raises(pymysql.err.MySQLError, match=r"denied|rights"), target.connect(user="reader") as connection:
            connection.cursor().execute(asks)
        target.query(f"GRANT SELECT ON binlane.{table} TO reader")
    with target.connect(user="reader") as connection, connection.cursor() as cursor:
        cursor.execute(asks)
        assert cursor.fetchall() == ((10,),)
        with pytest.raises(pymysql.err.MySQLError, match="denied"):
            cursor.execute("SELECT * FROM binlane.skipped_events")
    target.query("DROP USER reader")


@pytest.mark.parametrize(
    "damage", ["DROP VIEW binlane.consistent", "CREATE OR REPLACE VIEW binlane.consistent AS SELECT 1"]
)
def test_a_view_that_was_changed_by_hand_is_named_and_created_again(
    target: PrivateServer, engine: Engine, planned: Window, damage: str
) -> None:
    target.query(damage)
    with (
        engine.connect() as connection,
        pytest.raises(StateSchemaError, match=r"expected a view with .*init"),
    ):
        require_current(connection)
    create(engine)
    assert [row[0] for row in seen(target)] == [10]


def test_a_table_in_the_place_of_the_view_is_refused(target: PrivateServer, engine: Engine, planned: Window) -> None:
    target.query("DROP VIEW binlane.consistent")
    target.query("CREATE TABLE binlane.consistent (id INT)")
    with engine.connect() as connection, pytest.raises(StateSchemaError, match="expected a view"):
        require_current(connection)
