"""Lanes without work have no position, and the watermark does not wait for them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Engine

from binlane.errors import PositionError
from binlane.state.channels import create_channel
from binlane.state.positions import Counted, move_position, settle
from binlane.state.records.journal import read_status
from binlane.state.windows import finish_window, open_window, set_plan
from lab.servers import PrivateServer
from tests.integration.state.conftest import cursor_of
from tests.integration.state.test_state import BOUNDS, KEY, PLAN, ROWS, START


def test_lanes_without_work_have_no_position_and_one_that_was_put_there_is_refused(
    target: PrivateServer, engine: Engine
) -> None:
    create_channel(engine, "c", "source", START)
    open_window(engine, BOUNDS)
    plan = replace(PLAN, files=(PLAN.files[0], (), ()))
    assert set_plan(engine, plan).lanes_with_work == plan.lanes_with_work == (0,)
    assert [lane.lane for lane in read_status(engine, "c").positions] == [0]
    target.query(
        "INSERT INTO binlane.positions (channel, lane, seqno, window_id, digest, inserts, updates, deletes, blocks, "
        "transactions, updated_at) VALUES ('c', 2, 10, 'w1', 'd1', 0, 0, 0, 0, 0, UTC_TIMESTAMP())"
    )
    with cursor_of(engine) as cursor:
        cursor.execute("BEGIN")
        assert move_position(cursor, KEY, (0,), 10, 19)
        settle(cursor, KEY, (0,), 0, 19, 20, Counted(ROWS, 1, 9))
        cursor.execute("COMMIT")
    with pytest.raises(PositionError, match=r"positions of lanes \[0, 2\], expected \[0\]"):
        finish_window(engine, "c", "w1", "d1")
    target.query("DELETE FROM binlane.positions WHERE lane = 2")
    assert finish_window(engine, "c", "w1", "d1").seqno == 20
