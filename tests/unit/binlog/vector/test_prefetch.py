"""Kernels fetch memory ahead: the instruction is in their machine code, and no offset does harm."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from numba import njit

from binlane.binlog.vector import frame_kernels
from binlane.binlog.vector.arrays import Bytes
from binlane.binlog.vector.compiled import prefetch

FOUND = """
import numpy as np
from binlane.binlog.vector import frame_kernels
data = np.zeros(100, np.uint8)
frame_kernels.prefetch(data, 10**15)
print(frame_kernels.whole_events(data, 19))
"""


@pytest.fixture(scope="module")
def fetches() -> object:
    def fetched(data: Bytes, at: int) -> int:
        prefetch(data, at)
        return int(data[0])

    return njit(nogil=True)(fetched)


@pytest.mark.parametrize("at", [0, 99, 100, -1, -(10**12), 10**15])
def test_any_offset_may_be_fetched(fetches: object, at: int) -> None:
    assert callable(fetches)
    data = np.full(100, 7, np.uint8)
    data.flags.writeable = False
    assert fetches(data, at) == 7
    [code] = fetches.inspect_llvm().values()  # type: ignore[attr-defined]
    assert "llvm.prefetch" in code


def test_without_machine_code_nothing_is_fetched() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FOUND],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    # zeros are no event: its size is too small
    assert done.stdout.strip() == str((0, frame_kernels.SMALL_SIZE))
