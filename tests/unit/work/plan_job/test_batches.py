"""Segments in batches for one task each: large ones alone, small ones together, for as many workers as before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from binlane.plan.manifest import Segment
from binlane.work.plan_job import job
from binlane.work.plan_job.job import batches_of
from tests.unit.plan.logs import rows, segment_of

T = TypeVar("T")
MIB = 1 << 20
_, ONE = segment_of([rows(1, "a")])


def segments(*sizes: int) -> list[Segment]:
    return [replace(ONE, name=str(number), bytes=size) for number, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        pytest.param([], [], id="none"),
        pytest.param([5], [1], id="one"),
        pytest.param([64 * MIB] * 1000, [1] * 1000, id="of the usual size: each alone"),
        pytest.param([100] * 256, [1] * 256, id="small ones, as many as batches: each alone"),
        pytest.param([MIB] * 2560, [10] * 256, id="many small ones: together"),
        pytest.param([MIB] * 64_000, [64] * 1000, id="very many: no batch is larger than a segment of the usual size"),
        pytest.param([MIB] * 512 + [600 * MIB] + [MIB] * 3, [4] * 128 + [1, 3], id="a large one among small ones"),
    ],
)
def test_a_batch_has_neighbours_up_to_a_size(sizes: list[int], batches: list[int]) -> None:
    found = batches_of(segments(*sizes))
    assert [len(batch) for batch in found] == batches
    assert [name for batch in found for name in batch] == [str(number) for number in range(len(sizes))]


def test_a_pool_is_handed_a_part_of_the_batches_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "MOST_BATCHES", 2)
    parts, pools = list[int](), job.LocalProcesses(2)

    class Pool(ThreadPoolExecutor):
        """Notes how many batches it gets at once."""

        def map(self, fn: Callable[..., T], *batches: Iterable[Any], **options: Any) -> Iterator[T]:
            parts.append(len(list(batches[0])))
            return super().map(fn, *batches, **options)

    monkeypatch.setattr(job, "ProcessPoolExecutor", lambda processes, **_: Pool(processes))
    names = [["a", "b"], ["c"], ["d"], ["e", "f"], ["g"]]
    results = pools.run("scan", str.encode, names)
    assert (next(results), parts) == (b"a", [2])
    assert (b"".join(results), parts) == (b"bcdefg", [2, 2, 1])
    pools.close()
