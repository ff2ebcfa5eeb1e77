"""A plan's file is read only if its content has the digest that the target has, whoever has written it since."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, LogPosition
from binlane.orchestration.plan_file import read_own_plan, read_plan, said_by_manifest, said_by_target
from binlane.plan.window_plan import WindowPlan
from binlane.state.windows import WindowBounds
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.stored_windows import plans_of, stored, unpack


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[WorkFolder, WindowPlan]:
    """A stored window's plan."""
    work = unpack(stored()[0], tmp_path_factory.mktemp("window"))
    plan = run_plan_job(work, InProcess())
    return plans_of(work), plan


@pytest.fixture
def plans(written: tuple[WorkFolder, WindowPlan]) -> Iterator[WorkFolder]:
    folder = written[0]
    before = folder.read(files.PLAN)
    yield folder
    replace(folder, before)


def replace(folder: WorkFolder, data: bytes) -> None:
    Path(folder.path(files.PLAN)).write_bytes(data)


def test_a_plan_is_checked_by_the_bytes_of_its_file(
    plans: WorkFolder, written: tuple[WorkFolder, WindowPlan], monkeypatch: pytest.MonkeyPatch
) -> None:
    def spelled(_: WindowPlan) -> bytes:
        raise AssertionError("a plan of thousands of tables would be written again by each lane")

    monkeypatch.setattr(WindowPlan, "to_json", spelled)
    assert read_plan(plans.uri) == written[1]


def test_a_file_that_says_the_same_in_other_bytes_is_read(
    plans: WorkFolder, written: tuple[WorkFolder, WindowPlan]
) -> None:
    replace(plans, json.dumps(json.loads(plans.read(files.PLAN))).encode())
    assert read_plan(plans.uri) == written[1]


def test_a_plan_is_parsed_once_by_the_steps_of_a_command(plans: WorkFolder) -> None:
    first = read_plan(plans.uri)
    assert read_plan(plans.uri) is first


@pytest.mark.parametrize("name", ["channel", "window_id", "source", "end_gtid_set", "digest"])
def test_a_file_that_says_anything_else_is_refused(plans: WorkFolder, name: str) -> None:
    said = json.loads(plans.read(files.PLAN))
    replace(plans, plans.read(files.PLAN).replace(f'"{name}": "{said[name]}"'.encode(), f'"{name}": "other"'.encode()))
    with pytest.raises(PlanError, match=r"plan\.json: expected content of SHA-256"):
        read_plan(plans.uri)


def test_a_step_takes_its_own_window_s_plan_alone(written: tuple[WorkFolder, WindowPlan], tmp_path: Path) -> None:
    """Whoever makes plans may have those of other channels of the same target."""
    folder, plan = written
    manifest = read_inputs(folder.window).manifest
    plans = WorkFolder(str(tmp_path / manifest.window)).plans("key")
    known = said_by_manifest(manifest)
    assert known.keys() == {*("first_seqno", "last_seqno", "source", "end", "end_gtid_set", "end_time", "flavor")}
    bounds = said_by_target(WindowBounds.of(manifest, ""))
    plans.replace(files.PLAN, plan.sealed()[1])
    assert read_own_plan(plans, manifest.channel, known) == read_own_plan(plans, manifest.channel, bounds) == plan
    others: dict[str, Any] = {
        **dict.fromkeys(("channel", "window_id", "source", "end_gtid_set"), "x" * 300),
        "first_seqno": plan.first_seqno + 1,
        "last_seqno": plan.last_seqno + 1,
        "end": LogPosition("binlog.000099", 4),
        "end_time": 1.0,
        "flavor": next(each for each in Flavor if each is not plan.flavor),
    }
    assert others.keys() == {"channel", "window_id", *known}
    for name, value in others.items():
        other = dataclasses.replace(plan, barriers=(), epochs=(), digest="", **{name: value})
        plans.replace(files.PLAN, other.sealed()[1])
        for said in (known, bounds):
            if name in ("channel", "window_id", *said):
                with pytest.raises(PlanError, match=rf"key/plan\.json: expected a plan whose {name} is ") as refused:
                    read_own_plan(plans, manifest.channel, said)
                assert len(str(refused.value)) < 1_500
