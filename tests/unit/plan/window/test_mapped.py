"""A lane's files, packed: the same files, in any way that a list is looked at."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from binlane.plan.window.mapped import LaneFiles
from binlane.plan.window_plan import LaneFile, WindowPlan
from tests.unit.plan.logs import filtered, rows, settings

FILES = tuple(
    LaneFile(f"lanes/0000/{n:06d}.parquet", 10 * n + 1, 10 * n + 10, 2, 9, 2**40 + n, f"{n:064x}") for n in range(5)
)


@pytest.mark.parametrize("files", [FILES, FILES[:1], (), (dataclasses.replace(FILES[0], name='é "\\\n'),)])
def test_packed_files_are_the_files(files: tuple[LaneFile, ...]) -> None:
    packed = LaneFiles(files)
    assert tuple(packed) == files
    assert (len(packed), bool(packed)) == (len(files), bool(files))
    assert packed == files
    assert pickle.loads(pickle.dumps(packed)) == packed


def test_packed_files_are_a_sequence() -> None:
    packed = LaneFiles(FILES)
    assert (packed[0], packed[-1], tuple(packed[1:4]), tuple(packed[::-2])) == (
        FILES[0], FILES[-1], FILES[1:4], FILES[::-2],
    )  # fmt: skip
    with pytest.raises(IndexError):
        packed[5]
    assert packed != FILES[:4]
    assert packed != (*FILES[:4], FILES[0])


def test_a_plan_of_packed_files_has_the_bytes_of_one_that_was_read() -> None:
    plan = filtered([rows(n, name) for n, name in enumerate("abcab", 1)], settings(), cuts=(2, 3)).plan
    assert any(isinstance(files, LaneFiles) and len(files) > 1 for files in plan.files)
    read = WindowPlan.from_json(plan.to_json())
    assert all(isinstance(files, tuple) for files in read.files)
    assert read == plan
    assert read.to_json() == plan.to_json() == b"".join(plan.json_pieces())
