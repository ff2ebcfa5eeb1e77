"""The last lines of a run say what was skipped, how often, and the command that brings what is missing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lab.programs import WITHOUT_MYSQL

ROOT = Path(__file__).parents[2]
TESTS = f"""
import pytest

@pytest.mark.parametrize("number", range(3))
def test_of_mysql(number):
    pytest.skip({WITHOUT_MYSQL!r})

@pytest.mark.skipif(True, reason="no java on PATH")
def test_of_java():
    pass

def test_of_nothing():
    pass
"""


def test_skipped_tests_are_counted_by_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "plugins"), str(ROOT)]), "PYTEST_ADDOPTS": ""},
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert WITHOUT_MYSQL.endswith("lab/server_programs.sh mysql")
    assert done.stdout.splitlines()[-3:-1] == [f"3 skipped: {WITHOUT_MYSQL}", "1 skipped: no java on PATH"]
