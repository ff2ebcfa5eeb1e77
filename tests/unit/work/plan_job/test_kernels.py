"""The machine code that a command's workers inherit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
PROGRAM = """
import binlane.machine_code
named = []
binlane.machine_code.load_cached = lambda *kernels: named.extend(kernels)
import binlane.work.plan_job.kernels
from numba.core.registry import CPUDispatcher
print(len(named) > 0 and all(isinstance(kernel, CPUDispatcher) for kernel in named))
"""


def test_each_is_a_compiled_function() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "plugins")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
