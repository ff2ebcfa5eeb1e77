"""Each benchmark still runs on this build: with short logs, once, and with equal checksums."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.all import measured
from tests.conftest import requires_mysql
from tests.trials.sampling import sampled

SCALE = "0.003"
NAMES = [each.name for each in measured(1, 1) if not each.asked]


@requires_mysql
@pytest.mark.parametrize("name", sampled(NAMES, ("minutes-mariadb", "verification-mariadb")))
def test_a_benchmark_ends_with_equal_servers_and_a_result(name: str, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.all", "--only", name, "--scale", SCALE, "--runs", "1", "--wait", "0",
         "--output", str(tmp_path)],
        capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]
    (result,) = (each.result for each in measured(1, 1) if each.name == name)
    assert (tmp_path / result).exists()
