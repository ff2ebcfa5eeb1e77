"""Records that are stored and the versions of their formats change together; files of another version are refused by
name, before anything is read of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import PlanError
from binlane.formats import FORMATS, FORMATS_FILE, OF_PLAN, OF_WINDOW, RELEASE, require_formats, written_formats
from binlane.orchestration.plan_file import read_plan
from binlane.state.tables import VERSION
from binlane.work import files
from binlane.work.files import WorkFolder
from binlane.work.folder_formats import write_formats
from binlane.work.plan_inputs import inputs_of, plan_digest, read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.plan_job.tasks import scan_task
from lab.stored_shapes import RECORDS, STORED, shapes
from lab.stored_windows import plans_of, stored, unpack

_CHANGED: Final = """what is stored as {name} has changed, and its version has not.
Raise the version in binlane/formats.py (of the tables on the target: in state/tables.py, with a step in
state/migrations/steps.py), let `oldest` be the lowest version that is still read exactly, run
`python -m lab.stored_shapes`, and say in CHANGELOG.md, under "Upgrading", what it means for an open window."""
NEXT: Final = "9.9.9"
OLDEST: Final = "0.0.1"
SHAPES: Final = shapes()


@pytest.mark.parametrize(("name", "shape"), SHAPES.items(), ids=SHAPES)
def test_a_stored_record_that_changes_is_another_version(name: str, shape: str) -> None:
    assert (STORED / name).read_text() == shape, _CHANGED.format(name=name)


def test_every_format_has_a_place_and_its_records() -> None:
    assert (
        {*OF_WINDOW, *OF_PLAN, "repair plans", "archive index", "archive keys"}
        == FORMATS.keys()
        == {"segments", *RECORDS}
    )
    assert len(OF_WINDOW) + len(OF_PLAN) + 3 == len(FORMATS)
    assert all(1 <= each.oldest <= each.version for each in FORMATS.values())
    # a version is never taken back
    newest = {name: FORMATS[name].version for name in RECORDS} | {"state": VERSION}
    for file in STORED.iterdir():
        name, _, version = file.stem.rpartition("-")
        assert int(version) <= newest[name if name in newest else name.replace("-", " ")]


def of_release(release: str, versions: dict[str, int]) -> bytes:
    return json.dumps({"binlane": release, "formats": versions}).encode()


def test_a_folder_of_today_is_read() -> None:
    for names in (OF_WINDOW, OF_PLAN):
        written = written_formats(names)
        require_formats(written, "w")
        assert json.loads(written)["formats"] == {name: FORMATS[name].version for name in names}


@pytest.mark.parametrize(
    ("release", "versions", "said"),
    [
        (
            NEXT,
            {"plan.json": FORMATS["plan.json"].version + 1},
            f"has written plan.json in version {FORMATS['plan.json'].version + 1}",
        ),
        (OLDEST, {"schema.json": 0}, "has written schema.json in version 0"),
        (NEXT, {"plan.json": 1, "hints.json": 1}, "hints.json in version 1, and .* does not know such files"),
    ],
    ids=["newer", "older", "unknown"],
)
def test_another_version_is_refused_with_both_releases(release: str, versions: dict[str, int], said: str) -> None:
    with pytest.raises(PlanError, match=said) as refused:
        require_formats(of_release(release, versions), "/work/w1")
    for part in (
        "/work/w1: ",
        f"binlane {release} ",
        f"this binlane, {RELEASE}, ",
        f"Finish the window with binlane {release}",
    ):
        assert part in str(refused.value)
    assert not refused.value.retryable


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"binlane": "1", "formats": {"plan.json": "x"}}', b'{"binlane": "1", "formats": []}']
)
def test_a_damaged_file_is_refused(data: bytes) -> None:
    with pytest.raises(PlanError, match=r"w/formats\.json: expected a release and the versions"):
        require_formats(data, "w")


@pytest.fixture
def window(tmp_path: Path) -> WorkFolder:
    """A stored window, planned."""
    work = unpack(stored()[0], tmp_path)
    run_plan_job(work, InProcess())
    return work


def replace_formats(folder: WorkFolder, name: str) -> None:
    with folder.create(FORMATS_FILE) as file:
        file.write(of_release(NEXT, {name: FORMATS[name].version + 1}))


READERS: Final[dict[str, Callable[[WorkFolder], object]]] = {
    "every step": read_inputs,
    "the plan job": lambda work: run_plan_job(work, InProcess()),
    "an upgrade of the state": lambda work: plan_digest(work.uri),
}
OF_PLANS: Final[dict[str, Callable[[WorkFolder], object]]] = {
    "a lane": lambda work: read_plan(plans_of(work).uri),
    "a worker of the plan job": lambda work: scan_task(work.uri, read_inputs(work).key, "no segment is read"),
    "an upgrade of the state": lambda work: plan_digest(work.uri),
}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_no_reader_takes_a_window_of_a_newer_binlane(window: WorkFolder, read: Callable[[WorkFolder], object]) -> None:
    replace_formats(window, "manifest.json")
    newer = FORMATS["manifest.json"].version + 1
    with pytest.raises(PlanError, match=re.escape(f"binlane {NEXT} has written manifest.json in version {newer}")):
        read(window)


@pytest.mark.parametrize("read", OF_PLANS.values(), ids=OF_PLANS)
def test_no_reader_takes_a_plan_of_a_newer_binlane(window: WorkFolder, read: Callable[[WorkFolder], object]) -> None:
    replace_formats(plans_of(window), "lane files")
    inputs_of.cache_clear()
    newer = FORMATS["lane files"].version + 1
    with pytest.raises(PlanError, match=re.escape(f"binlane {NEXT} has written lane files in version {newer}")):
        read(window)


@pytest.mark.parametrize("data", [of_release("a" * 500_000, {"plan.json": 99}), of_release("1", {"a" * 500_000: 1})])
def test_an_error_quotes_a_short_part_of_a_release(data: bytes) -> None:
    with pytest.raises(PlanError, match=r"binlane (?:a{100}|1) has written") as refused:
        require_formats(data, "/work/w1")
    assert len(str(refused.value)) < 1_000


def test_a_folder_that_another_release_has_begun_is_filled_anew_and_a_complete_one_is_kept(window: WorkFolder) -> None:
    plans = plans_of(window)
    assert plans.read(FORMATS_FILE) == written_formats(OF_PLAN)
    replace_formats(plans, "lane files")
    kept = plans.read(FORMATS_FILE)
    write_formats(plans, OF_PLAN, last=files.PLAN)
    assert plans.read(FORMATS_FILE) == kept
    Path(plans.path(files.PLAN)).unlink()
    run_plan_job(window, InProcess())
    assert plans.read(FORMATS_FILE) == written_formats(OF_PLAN)
