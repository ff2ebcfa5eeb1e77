"""A window's inputs: parsed once for readers that ask page by page, and read only if they are the window's own.

Attacker: whoever can write to the work folder.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.errors import PlanError
from binlane.orchestration.plan_job.engines import job_arguments
from binlane.work.files import CHANNEL, PLAN, WorkFolder
from binlane.work.plan_inputs import INPUTS, inputs_of, plan_digest, read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.stored_windows import stored

CALLS: Final[list[object]] = []


def called(*arguments: object) -> None:
    CALLS.append(arguments)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A window's folder, without a plan."""
    with zipfile.ZipFile(stored()[0]) as window:
        window.extractall(tmp_path)
    return next(tmp_path.rglob("manifest.json")).parent


def rewritten(folder: Path, **changes: Any) -> None:
    """Other values in channel.json."""
    file = folder / CHANNEL
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))


def test_inputs_are_parsed_once_until_they_are_replaced(folder: Path) -> None:
    first = read_inputs(WorkFolder(str(folder)))
    assert read_inputs(WorkFolder(str(folder))) is first
    with (folder / CHANNEL).open("a") as file:
        file.write("\n")
    second = read_inputs(WorkFolder(str(folder)))
    assert (second is first, second.key == first.key) == (False, False)
    assert second.schema == first.schema


@pytest.mark.parametrize("key", ["assigner", "consistency"])
@pytest.mark.parametrize(
    "read",
    [
        pytest.param(read_inputs, id="a step"),
        pytest.param(lambda work: run_plan_job(work, InProcess()), id="the plan job"),
    ],
)
def test_files_call_no_code_unless_they_are_the_extraction_s_own(
    folder: Path, read: Callable[[WorkFolder], object], key: str
) -> None:
    known = WorkFolder(str(folder), read_inputs(WorkFolder(str(folder))).digests)
    rewritten(folder, **{key: f"{__name__}:called"})
    with pytest.raises(PlanError, match=r"channel\.json: expected SHA-256 \w+, as the target has recorded"):
        read(known)
    with pytest.raises(
        PlanError, match=rf"channel\.json: lanes\.{key}: expected .* found the code {__name__}:called, "
    ):
        read(WorkFolder(str(folder)))
    assert not CALLS
    assert not list(folder.glob(f"*/{PLAN}"))


def test_code_that_the_channel_names_itself_is_no_other_s(folder: Path) -> None:
    own = f"{__name__}:called"
    rewritten(folder, consistency=own)
    assert read_inputs(WorkFolder(str(folder)), {own}).settings.consistency == own
    # these call nothing, and have a name for the files that they expect
    key = read_inputs(WorkFolder(str(folder)), {own}).key
    assert inputs_of(str(folder), key).settings.consistency == own
    assert plan_digest(str(folder)) is None
    assert not CALLS


def test_a_submitted_job_gets_the_digests_of_its_inputs_alone(folder: Path) -> None:
    digests = read_inputs(WorkFolder(str(folder))).digests
    assert job_arguments(WorkFolder("w", {**digests, "0123/plan.json": "a"})) == [
        "--work", "w", "--digests", json.dumps({name: digests[name] for name in INPUTS}),
    ]  # fmt: skip
    assert job_arguments(WorkFolder("w")) == ["--work", "w"]
