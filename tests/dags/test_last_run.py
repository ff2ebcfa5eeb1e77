"""Which of Airflow's runs the health is computed from: the newest that says something of windows."""

from __future__ import annotations

from typing import Any

import pytest

from binlane import airflow_plugin
from binlane.errors import DriftError
from tests.dags.scene import Run, Steps, run_window, stand_in

__all__ = ["run_window"]


def last() -> tuple[str, str]:
    found = airflow_plugin._last_run("replicate_demo")
    assert found is not None
    return found.run_id, found.state


def test_a_dry_run_and_a_verification_that_succeed_hide_no_earlier_failure(
    run_window: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def apply_lane(*_: Any) -> dict[str, Any]:
        raise DriftError("lane 0, seqno 7: a row is missing")

    failing = Steps({})
    monkeypatch.setattr(failing, "apply_lane", apply_lane)
    assert run_window(failing)[0] == "failed"
    failed = last()
    assert failed[1] == "failed"

    dry = Steps({"dry_run": True})
    monkeypatch.setattr(dry, "adopt_plan", lambda *_: {"plan": None, "lanes": []})
    assert run_window(dry, dry_run=True)[0] == "success"
    assert last() == failed

    stand_in(monkeypatch, "")
    assert run_window(Steps({}), verify="window", verify_only=True)[0] == "success"
    assert last() == failed

    stand_in(monkeypatch, "2 drift")
    assert run_window(Steps({}), verify="window", verify_only=True)[0] == "failed"
    assert last() != failed

    done = Steps({})
    monkeypatch.setattr(done, "advance", lambda *_: {"note": "done"})
    assert run_window(done)[0] == "success"
    assert last()[1] == "success"
