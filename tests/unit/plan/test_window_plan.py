"""A plan survives its file, and a plan that contradicts itself is none."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from binlane.errors import PlanError
from binlane.model import Barrier, Flavor, LogPosition, RowCounts, TableKey
from binlane.plan.block.row_size import Widest
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import TableCounts, WindowPlan, without_digest
from binlane.sql.requirements import Requirement

BARRIERS = (
    Barrier(12, 13, 2, (0, 1, 2), {"global": 2}),
    Barrier(15, 15, 0, (0, 1), {"several lanes": 1}),
)
PLAN = WindowPlan(
    channel="c",
    window_id="w",
    digest="d",
    first_seqno=11,
    last_seqno=20,
    lanes=2,
    barriers=BARRIERS,
    source="s",
    end=LogPosition("binlog.000007", 5_000_000_000),
    end_gtid_set="0-1-20",
    end_time=1.25,
    lane_rows=(RowCounts(1, 2, 3), RowCounts(), RowCounts(deletes=4)),
    tables={TableKey("a.b", "c"): TableCounts(RowCounts(5, 5, 5), RowCounts(1, 0, 0), 4, RowCounts(1, 2, 7))},
    flavor=Flavor.MYSQL,
    table_maps={TableKey("a.b", "c"): {"00ff": 12, "00fe": 11}},
    altered=Alterations({TableKey("a.b", "c"): (12, 14)}, (13,)),
    requirements={Requirement("collation", "a.b.c", "utf8mb4_bin"): 12},
    widest={TableKey("a.b", "c"): Widest(100, 12, 200, 13), TableKey("a", "b"): Widest(1, 11, 2, 11)},
    longest_statement=(50, 14),
)


def test_a_plan_comes_back_from_its_file_the_same() -> None:
    assert WindowPlan.from_json(PLAN.to_json()) == PLAN
    assert WindowPlan.from_json(PLAN.to_json()).to_json() == PLAN.to_json()


def test_a_sealed_plan_has_the_digest_of_its_content() -> None:
    sealed, data = PLAN.sealed()
    assert (replace(sealed, digest="d"), sealed.to_json()) == (PLAN, data)
    assert sealed.digest == sha256(without_digest(data, sealed.digest)).hexdigest() == PLAN.sealed()[0].digest
    assert replace(PLAN, last_seqno=21).sealed()[0].digest != sealed.digest


def test_a_plan_answers_for_its_lanes() -> None:
    assert PLAN.rows == RowCounts(1, 2, 7)
    assert list(PLAN.all_lanes) == [0, 1, 2]
    assert PLAN.serialized == 2
    assert [len(PLAN.barriers_of(lane)) for lane in PLAN.all_lanes] == [2, 2, 1]


def test_an_empty_window_is_a_plan() -> None:
    assert replace(PLAN, last_seqno=10, barriers=()).rows == PLAN.rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 3}, "got 3 lanes and 3 row counts"),
        ({"lanes": 0, "lane_rows": (RowCounts(),)}, "0 lanes"),
        ({"first_seqno": 0}, "are not a range"),
        ({"last_seqno": 9, "barriers": ()}, "are not a range"),
        ({"last_seqno": 14}, "reaches out of the window"),
        ({"barriers": BARRIERS[::-1]}, "out of order"),
        ({"barriers": (BARRIERS[0], replace(BARRIERS[1], first=13))}, "overlap"),
        ({"barriers": (replace(BARRIERS[0], owner=3),)}, "owner 3 is not a participant"),
        ({"barriers": (replace(BARRIERS[0], participants=(1, 0, 2)),)}, "not ascending lanes"),
        ({"barriers": (replace(BARRIERS[0], participants=(0, 2, 3)),)}, "not ascending lanes"),
        ({"tables": {TableKey("a", "b"): TableCounts(read=RowCounts(1))}}, r"row counts of a\.b do not agree"),
    ],
)
def test_a_plan_that_contradicts_itself_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        replace(PLAN, **changes)


def edited(**changes: Any) -> bytes:
    values = json.loads(PLAN.to_json())
    values.update(changes)
    return json.dumps({key: value for key, value in values.items() if value is not ...}, default=str).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        edited(extra=1),
        edited(lanes="2"),
        edited(lanes=True),
        edited(end=["f"]),
        edited(barriers=[{"first": 1}]),
        edited(lane_rows=[[1, 2], [0, 0, 0], [0, 0, 0]]),
        edited(lane_rows=[[1, 2, "3"], [0, 0, 0], [0, 0, 0]]),
        edited(tables=[{"database": "a"}]),
        PLAN.to_json()[:-5],
    ],
)
def test_a_file_that_is_no_plan_is_refused_by_name(data: bytes) -> None:
    with pytest.raises(PlanError, match=r"w/plan\.json"):
        WindowPlan.from_json(data, "w/plan.json")


@pytest.mark.parametrize(
    "name",
    [
        *("/etc/passwd", "../../other/lanes/0000/000001.parquet", "lanes/0001/000001.parquet", "lanes/0000/../../x"),
        *(
            "lanes/0000/000001.parquet/x",
            "parts/0000/000001.parquet",
            "lanes/0000/000001.parquet\n",
            "manifest.json",
            "",
        ),
    ],
)
def test_a_plan_names_the_files_of_its_own_lanes_alone(name: str) -> None:
    """Whoever makes plans would have a worker open, and tell the digest of, any file."""
    files = [
        [[file, 11, 12, 1, 2, 3, "00"]] if lane == 0 else []
        for lane in range(3)
        for file in ["lanes/0000/000001.parquet"]
    ]
    assert WindowPlan.from_json(edited(files=files)).files[0][0].blocks == 1
    files[0][0][0] = name
    with pytest.raises(PlanError, match=r"w/plan\.json: a file of lane 0: expected lanes/0000/NNNNNN\.parquet"):
        WindowPlan.from_json(edited(files=files), "w/plan.json")


def test_every_missing_key_is_noticed() -> None:
    for key in json.loads(PLAN.to_json()):
        values = json.loads(PLAN.to_json())
        del values[key]
        with pytest.raises(PlanError, match=r"plan\.json: \$(\.altered)?: key '\w+' is missing"):
            WindowPlan.from_json(json.dumps(values).encode())
