"""What a whole window of rows loads, in all of its processes: ``tests/unit/test_start.py`` has its start alone."""

from __future__ import annotations

import re

from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.unit.test_start import NOT_ALWAYS

# pyarrow.compute itself is loaded by a function, which Python does not trace
ONLY_STATEMENTS_NEED = tuple(f"{name}." for name in (*NOT_ALWAYS, "pyarrow.vendored"))
LOADED = re.compile(r"^import time:.*\| +(\S+)$", re.MULTILINE)


def test_a_window_of_rows_loads_nothing_that_only_statements_need(channel: Channel) -> None:
    channel.on_both("CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    channel.begin()
    run_on(channel.source, "INSERT INTO shop.t VALUES (1)", "INSERT INTO shop.t VALUES (2)")
    channel.environment["PYTHONPROFILEIMPORTTIME"] = "1"
    told, traced = channel.start("run", CHANNEL).communicate(timeout=120)
    assert "2 transactions, 2 row changes" in told, traced
    channel.assert_equal()
    loaded = set(LOADED.findall(traced))
    assert {"binlane.precheck.checks", "binlane.apply.lane.barriers", "pyarrow.parquet"} <= loaded
    assert [name for name in sorted(loaded) if f"{name}.".startswith(ONLY_STATEMENTS_NEED)] == []
