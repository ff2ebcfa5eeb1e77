"""A DDL that the target has refused half-way, and that an operator has skipped."""

from __future__ import annotations

import pytest

from binlane.apply.lane.runner import run_lane
from binlane.errors import ApplyError
from binlane.model import LogPosition
from binlane.state.orders.skips import SkipRequest, request_skips
from binlane.state.records.journal import read_status
from tests.integration.apply.conftest import QUICK, Pair, positions, start_window
from tests.integration.apply.test_ddl import ddl_window
from tests.integration.apply.test_ddl_killed import run_alone


def test_a_ddl_that_is_skipped_leaves_no_note_of_the_part_that_has_run(mariadb_pair: Pair) -> None:
    mariadb_pair.both("CREATE TABLE a (id INT PRIMARY KEY)", "CREATE TABLE b (id INT PRIMARY KEY)")
    window = ddl_window(mariadb_pair, "DROP TABLE a, b")
    start_window(mariadb_pair.engine, window.plan)
    run_alone(mariadb_pair.target, "CREATE TABLE c (id INT, FOREIGN KEY (id) REFERENCES b (id))")
    with pytest.raises(ApplyError, match="1451"):
        run_lane(mariadb_pair.engine, window.plan, 2, window.source, QUICK)
    assert mariadb_pair.rows("SELECT state FROM binlane.ddl") == [("begun",)]
    opened = read_status(mariadb_pair.engine, "orders").window
    assert opened is not None
    skip = SkipRequest(1, 2, "0-1-1", LogPosition("", 4), 1.0, "a DDL", b"events", (0, 1, 2), is_shared=False)
    request_skips(mariadb_pair.engine, opened, [skip], reason="kept here", by="carol")
    run_lane(mariadb_pair.engine, window.plan, 2, window.source, QUICK)
    assert positions(mariadb_pair) == [1, 1, 1]
    assert mariadb_pair.rows("SELECT * FROM binlane.ddl") == []
