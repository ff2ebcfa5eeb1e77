"""Tests that failed beside others run once more: those alone, in the tier of the first run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.__main__ import run

pytest_plugins = ("pytester",)

STEADY_SECOND_TIME = """
import pathlib
import pytest

def test_unsteady():
    mark = pathlib.Path("ran-before")
    assert mark.exists() or mark.write_text("") is None and False

def test_passes():
    runs = pathlib.Path("runs")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")

@pytest.mark.trial
def test_of_another_tier():
    assert False
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p tests.tiers")
    return pytester.path


def test_only_what_failed_runs_again(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "test_beside.py").write_text(STEADY_SECOND_TIME)
    assert run(["--tier", "test", "--minutes", "5", "."]) == 0
    assert (project / "runs").read_text() == "x"
    assert "unsteady: test_beside.py failed beside other tests and passed alone" in capfd.readouterr().out


def test_what_fails_again_fails_the_run(project: Path) -> None:
    (project / "test_wrong.py").write_text("def test_wrong():\n    assert False\n")
    assert run(["--tier", "test", "."]) == 1
