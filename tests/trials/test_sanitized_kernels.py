"""`make sanitized`: kernels that check every access to memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from lab import sanitized

OVERRUN: Final = """
import numpy as np
from binlane.kernels import copying
offset, size, wanted = np.zeros(1, np.int64), np.full(1, 100, np.uint32), np.zeros(1, np.int64)
copying.strip(np.zeros(100, np.uint8), offset, size, wanted, 19, 0, np.empty(2000, np.uint8)[:100])
print("fits")
copying.strip(np.zeros(100, np.uint8), offset, size, wanted, 19, 0, np.empty(99, np.uint8))
print("not seen")
"""


@pytest.fixture(scope="module")
def plugins() -> Path:
    return sanitized.build()


def test_an_access_outside_an_array_ends_the_process(plugins: Path) -> None:
    """The trial can fail."""
    command = [sys.executable, "-c", OVERRUN]
    done = subprocess.run(command, env=sanitized.environment(plugins), capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode != 0) == ("fits\n", True)
    assert "heap-buffer-overflow" in done.stderr
    assert "copying" in done.stderr
