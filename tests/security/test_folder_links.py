"""A link in place of a folder below the work folder leads nothing outside that binlane writes or removes.

Attacker: whoever can write to the work folder, and would have the account of the tasks write where they cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import PlanError
from binlane.work.files import WorkFolder
from binlane.work.plan_inputs import WorkerInputs, read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.plan_job.made import answer
from tests.spark.test_event_metadata_filter import fill

WINDOW: Final = "000000000001-0123abcd"
PLACES: Final = ("", f"/{WINDOW}", "/{key}", "/{key}/lanes", "/{key}/lanes/0000")
"""Of a folder, behind that of its channel. A line more is an attack more on every way to write or remove."""


def _opened(work: Path) -> WorkFolder:
    return WorkFolder(str(work)).child("shop").child(WINDOW)


def _removes_file(work: Path, _: str) -> None:
    _opened(work).remove_file("manifest.json")


def _removes_lane_file(work: Path, key: str) -> None:
    _opened(work).plans(key).remove_file("lanes/0000/000001.parquet")


def _plans(work: Path, _: str) -> None:
    run_plan_job(WorkFolder.of_window(f"{work}/shop/{WINDOW}"), InProcess())


def _answers(work: Path, _: str) -> None:
    answer(f"{work}/shop/{WINDOW}", "token")


def _maps(work: Path, key: str) -> None:
    WorkerInputs(f"{work}/shop/{WINDOW}", key, "").plans.replace("lanes/0000/000001.parquet", b"rows")


def _extracts(work: Path, _: str) -> None:
    _opened(work).replace("segments/000009.binlog", b"rows")


WAYS: Final[Mapping[str, tuple[Callable[[Path, str], None], int]]] = {
    "extract": (_extracts, 2),
    "plan": (_plans, 5),
    "map": (_maps, 5),
    "answer": (_answers, 2),
    "remove a file": (_removes_file, 2),
    "remove a lane file": (_removes_lane_file, 5),
    "remove a window": (lambda work, _: _opened(work).remove(), 1),
}
"""By which files are written or removed, and how many of PLACES are on its way. A line more is a way more."""


def _window(work: Path) -> str:
    folder = WorkFolder(f"{work}/shop/{WINDOW}")
    fill(folder)
    run_plan_job(folder, InProcess())
    return read_inputs(folder).key


def _content(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_or_removed_behind_a_link(way: str, tmp_path: Path) -> None:
    act, places = WAYS[way]
    for number, place in enumerate(PLACES[:places]):
        work, outside = tmp_path / f"work{number}", tmp_path / f"outside{number}"
        key = _window(work)
        linked = work / f"shop{place if number < 2 else f'/{WINDOW}{place.format(key=key)}'}"
        linked.rename(outside)
        linked.symlink_to(outside)
        # the plan job writes no file that is there already
        for path in [*outside.rglob("plan.json"), *outside.rglob("*.parquet")]:
            path.unlink()
        before = _content(outside)
        with pytest.raises(PlanError, match=f"{linked}: expected a folder, found a symbolic link"):
            act(work, key)
        assert _content(outside) == before


def test_the_work_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "work").symlink_to(tmp_path / "disk")
    _window(tmp_path / "work")
    _opened(tmp_path / "work").remove()
    assert [path.name for path in (tmp_path / "disk" / "shop").iterdir()] == []
