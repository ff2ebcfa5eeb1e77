"""What a plan job tells of the files that it has made, to the process that waits for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.errors import PlanError
from binlane.work.files import PLAN, WorkFolder, digest_of
from binlane.work.plan_job.made import ANSWER, answer, forget_made, made_here, note_made, take_answer

TOKEN: Final = "a" * 64


@pytest.fixture
def folder(tmp_path: Path) -> WorkFolder:
    work = WorkFolder(str(tmp_path))
    note_made(work, work.plans("key"), {"manifest.json": digest_of(b"m")}, {PLAN: b"p"})
    answer(work.uri, TOKEN)
    forget_made(work.uri)
    return work


def test_the_holder_of_the_token_takes_the_answer(folder: WorkFolder) -> None:
    assert made_here(folder.uri) is None
    take_answer(folder.uri, TOKEN)
    assert made_here(folder.uri) == {"manifest.json": digest_of(b"m"), "key/plan.json": digest_of(b"p")}


def _of_other_files(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "made": found["made"].replace("p", "q")}


ANSWERS: Final[tuple[Callable[[dict[str, Any]], object], ...]] = (
    _of_other_files,
    lambda found: {**found, "code": "0" * 64},
    lambda found: {**found, "code": ""},
    lambda found: {**found, "code": "é"},
    lambda found: {**found, "code": None},
    lambda found: {"made": found["made"]},
    lambda found: {"made": json.loads(found["made"]), "code": found["code"]},
    lambda found: [],
    lambda found: "x",
)
"""Of who can write to the work folder. A line more is an attack more."""


@pytest.mark.parametrize("attack", ANSWERS)
def test_an_answer_of_another_program_is_refused(
    folder: WorkFolder, attack: Callable[[dict[str, Any]], object]
) -> None:
    file = Path(folder.path(ANSWER))
    file.write_text(json.dumps(attack(json.loads(file.read_text()))))
    with pytest.raises(PlanError, match=r"made\.json: expected the answer of this plan job.*run the plan job"):
        take_answer(folder.uri, TOKEN)
    assert made_here(folder.uri) is None


def test_the_answer_of_an_earlier_job_is_refused(folder: WorkFolder) -> None:
    with pytest.raises(PlanError, match="another code"):
        take_answer(folder.uri, "b" * 64)
