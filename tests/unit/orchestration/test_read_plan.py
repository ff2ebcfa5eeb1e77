"""A plan's file is read only if its content has the digest that the target has, whoever has written it since."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.errors import PlanError
from binlane.orchestration.plan_file import read_plan
from binlane.plan.window_plan import WindowPlan
from binlane.work import files
from binlane.work.files import WorkFolder
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
