"""Progress of the plan job as a look shows it: by names alone, bounded, and its errors its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from binlane.health import progress
from binlane.health.progress import Stage, _planning
from binlane.state.records.progress import RunStep, StepRow
from binlane.work import slow_folders
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job_progress import PlanProgress, plan_progress

ROW = StepRow(RunStep.PLAN, "w1", 0, 4, "2026-01-01 00:00:00", "2026-01-01 00:00:00")
KEY = "0123456789abcdef"


def folder(path: Path, *names: str) -> str:
    for name in ("manifest.json", *names):
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    return str(path)


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ((), PlanProgress(4, False, 0)),
        (("segments/0", "carried/1"), PlanProgress(4, False, 0)),
        ((f"{KEY}/context.json",), PlanProgress(4, True, 0)),
        (
            (f"{KEY}/context.json", *(f"{KEY}/lanes/{n}/{n % 3}.parquet" for n in range(6)), f"{KEY}/lanes/0/9.part"),
            PlanProgress(4, True, 3),
        ),
        (
            (f"{KEY}/context.json", f"{KEY}/parts/0/1.parquet", f"{KEY}/lanes/0/0.parquet", f"{KEY}/lanes/0/2.parquet"),
            PlanProgress(4, True, 1),
        ),
        ((f"{KEY}/context.json", f"{KEY[::-1]}/context.json"), None),
    ],
)
def test_a_look_reads_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], found: PlanProgress | None
) -> None:
    monkeypatch.setattr(WorkFolder, "read", lambda *_: pytest.fail("a file is read"))
    monkeypatch.setattr(WorkFolder, "open", lambda *_: pytest.fail("a file is read"))
    assert plan_progress(WorkFolder(folder(tmp_path, *names)), 4) == found


def test_a_folder_of_another_machine_is_no_scan(tmp_path: Path) -> None:
    assert plan_progress(WorkFolder(str(tmp_path / "none")), 4) is None
    assert _planning(lambda: WorkFolder(str(tmp_path / "none")), ROW, 9.0) == Stage(
        RunStep.PLAN, "plan job: 4 segments, progress not known", None, None
    )


def test_lanes_that_are_listed_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = folder(tmp_path, f"{KEY}/context.json", *(f"{KEY}/lanes/{n:04d}/{n}.parquet" for n in range(200)))
    listed, names = list[str](), WorkFolder.names
    monkeypatch.setattr(WorkFolder, "names", lambda self: [listed.append(self.uri), names(self)][1])  # type: ignore[func-returns-value]
    found = plan_progress(WorkFolder(work), 200)
    assert found is not None
    assert (found.built, len(listed)) == (32, 32)


@pytest.mark.parametrize("error", [ImportError("no s3fs"), ValueError("bad"), OSError("gone"), KeyError("Contents")])
def test_an_error_of_the_file_system_costs_this_figure_alone(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def broken(*_: Any) -> None:
        raise error

    monkeypatch.setattr(progress, "plan_progress", broken)
    found = _planning(lambda: WorkFolder("s3://bucket/w1"), ROW, 9.0)
    text = f"plan job: 4 segments, progress not known ({type(error).__name__})"
    assert found == Stage(RunStep.PLAN, text, None, None)


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """A file system that does not answer; the number of questions to it."""
    end, asked = threading.Event(), list[int]()

    def silent(*_: Any) -> None:
        asked.append(1)
        end.wait()

    monkeypatch.setattr(progress, "plan_progress", silent)
    monkeypatch.setattr(slow_folders, "FOLDER_SECONDS", 0.01)
    yield lambda: len(asked)
    end.set()


def test_a_file_system_that_does_not_answer_holds_nobody_and_is_not_asked_without_end(
    hold: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_folders, "_FREE", threading.Semaphore(3))
    for _ in range(9):
        assert _planning(lambda: WorkFolder("s3://bucket/w1"), replace(ROW, total=1), 9.0).text == (
            "plan job: 1 segment, progress not known (TimeoutError)"
        )
    assert hold() == 3
