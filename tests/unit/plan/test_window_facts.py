"""The line on what barriers cost a window."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from binlane.choices import MOST_LANES
from binlane.errors import PlanError
from binlane.plan.window_facts import (
    MAX_SHARDS,
    MAX_TABLES,
    LaneFacts,
    ShardFacts,
    TableFacts,
    WindowFacts,
    serialization,
)
from binlane.plan.window_plan import CROSS_LANE


def test_the_line_says_how_many_wait_for_how_many_and_what_can_be_done() -> None:
    said = serialization(27_123, 26_266, {CROSS_LANE: 339, "reference shard": 2})
    assert said is not None
    assert said.startswith(
        "26,266 of 27,123 transactions (97%) are applied one after another, because of 341 (1.3%) that need a barrier, "
        f"most of them for '{CROSS_LANE}'; "
    )
    assert 'lanes.assigner = "pattern"' in said
    assert "lanes.fold_gap" in said


@pytest.mark.parametrize(
    ("transactions", "serialized", "causes"),
    [
        (1_000, 99, {CROSS_LANE: 99}),  # few
        (10_000, 999, {CROSS_LANE: 10}),  # a small part
        (0, 0, {}),
    ],
)
def test_a_window_that_barriers_cost_little_has_no_line(
    transactions: int, serialized: int, causes: Mapping[str, int]
) -> None:
    assert serialization(transactions, serialized, causes) is None


def test_other_causes_have_the_remedy_that_helps_them() -> None:
    said = serialization(1_000, 900, {"reference shard": 9})
    assert said is not None
    assert "pattern" not in said
    assert "lanes.fold_gap" in said


FACTS = WindowFacts(
    *(9, 8, 7, 6, 5, 4, 3), {}, {},
    lanes=(LaneFacts("a", 1, 1, 1, 1),) * (MOST_LANES + 1),
    shards=(ShardFacts("a", 0, 1, 1),) * MAX_SHARDS, more_shards=1,
    tables=(TableFacts("a.t", 1, 1, 1, 1),) * MAX_TABLES, more_tables=1,
    rules=(),
)  # fmt: skip


@pytest.mark.parametrize("name", ["lanes", "shards", "tables"])
def test_no_more_is_read_than_is_written(name: str) -> None:
    """The board reads those of many windows."""
    assert WindowFacts.from_json(FACTS.to_json()) == FACTS
    written = getattr(FACTS, name)
    changed: dict[str, Any] = {name: (*written, written[0])}
    longer = dataclasses.replace(FACTS, **changed)
    with pytest.raises(
        PlanError, match=rf"\$\.{name}: expected at most {len(written)}, got {len(written) + 1}; they are"
    ):
        WindowFacts.from_json(longer.to_json())


def test_a_lane_that_the_stored_facts_lack_is_none() -> None:
    """A position may be of one: both rows may have been changed by another program."""
    assert FACTS.lane(0) == FACTS.lanes[0]
    assert FACTS.lane(len(FACTS.lanes)) is None
    assert FACTS.lane(-1) is None
