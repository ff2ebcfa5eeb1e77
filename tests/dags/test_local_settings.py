"""``config/airflow_local_settings.py``: services that fork tasks import what tasks need, other commands do not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SETTINGS = Path(__file__).parents[2] / "config" / "airflow_local_settings.py"
CODE = """
import runpy, sys
sys.argv = ["airflow", sys.argv[2], "--help"]
runpy.run_path({path!r})
print("binlane.orchestration.steps" in sys.modules, flush=True)
"""


@pytest.mark.parametrize(("command", "is_loaded"), [("scheduler", True), ("celery", True), ("db", False)])
def test_what_tasks_need_is_imported_where_tasks_fork(command: str, is_loaded: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(path=str(SETTINGS)), "airflow", command],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split()[-1] == str(is_loaded)
