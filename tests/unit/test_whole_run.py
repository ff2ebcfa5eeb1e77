"""``make test`` runs the files of failed tests again, alone, and says which of them passed then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# each run of the file leaves a letter behind
UNSTEADY = """
from pathlib import Path

runs = Path(__file__).with_suffix(".runs")

def test_passes_the_second_time():
    runs.write_text((runs.read_text() if runs.exists() else "") + "x")
    assert len(runs.read_text()) > 1
"""
BESIDE = """
import pytest

def test_steady():
    steady = Path(__file__).with_name("steady")
    steady.write_text((steady.read_text() if steady.exists() else "") + "x")

@pytest.mark.trial
def test_of_another_tier():
    assert False
"""
BROKEN = UNSTEADY.replace("assert len(runs.read_text()) > 1", "assert False")


def run_all(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """``python -m tests`` on the tests of a folder, one process for all."""
    return subprocess.run(
        [sys.executable, "-m", "tests", "-q", *options, str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip


def runs_of(folder: Path, name: str) -> int:
    return len((folder / f"{name}.runs").read_text())


def test_a_file_that_passes_alone_is_told_as_unsteady(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(UNSTEADY)
    (tmp_path / "test_other.py").write_text("def test_steady():\n    pass\n")
    done = run_all(tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "unsteady: test_one.py failed beside other tests and passed alone"
    assert "2 passed" not in done.stdout
    assert runs_of(tmp_path, "test_one") == 2


def test_only_what_failed_runs_again_and_in_its_tier(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text('pytest_plugins = ("tests.tiers",)\n')
    (tmp_path / "test_one.py").write_text(UNSTEADY + BESIDE)
    done = run_all(tmp_path, "--tier", "test", "--minutes", "5")
    assert done.returncode == 0, done.stdout
    assert runs_of(tmp_path, "test_one") == 2
    assert (tmp_path / "steady").read_text() == "x"


def test_a_file_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text(BROKEN)
    (tmp_path / "test_unsteady.py").write_text(UNSTEADY)
    done = run_all(tmp_path)
    assert done.returncode == 1
    assert [line for line in done.stdout.splitlines() if line.startswith("unsteady")] == [
        "unsteady: test_unsteady.py failed beside other tests and passed alone"
    ]
    assert runs_of(tmp_path, "test_broken") == 2


def test_failures_in_many_files_are_not_run_again(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"test_{number}.py").write_text(UNSTEADY)
    assert run_all(tmp_path).returncode == 1
    assert {runs_of(tmp_path, f"test_{number}") for number in range(6)} == {1}


def test_what_failed_in_an_earlier_run_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "test_gone.py").write_text(BROKEN)
    assert run_all(tmp_path).returncode == 1
    (tmp_path / "test_gone.py").unlink()
    (tmp_path / "test_broken.py").write_text(BROKEN)
    done = run_all(tmp_path)
    assert done.returncode == 1
    assert "test_gone" not in done.stdout


@pytest.mark.parametrize(("option", "code"), [("--no-such-option", 4), ("--deselect=test_one.py", 5)])
def test_a_run_without_a_failed_test_keeps_its_exit_code(tmp_path: Path, option: str, code: int) -> None:
    (tmp_path / "test_one.py").write_text(UNSTEADY)
    assert run_all(tmp_path, option).returncode == code
