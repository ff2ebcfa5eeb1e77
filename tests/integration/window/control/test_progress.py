"""How far a window is, from the first byte of log to the last lane, as status and board are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binlane.health.health import State
from binlane.health.look import look_at
from binlane.health.progress import Stage
from binlane.orchestration import step_progress, steps
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.records.progress import RunStep, read_step
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.integration.window.conftest import CHANNEL, Channel


def stage(channel: Channel) -> tuple[State, Stage | None]:
    look = look_at(channel.config, lambda name: getattr(channel.endpoints, name.removesuffix("_server")))
    assert look.health.facts is not None
    return look.health.state, look.health.facts.stage


def row(channel: Channel) -> Any:
    with engine_of(channel.endpoints.target).connect() as connection:
        return read_step(connection, CHANNEL)


def test_every_step_tells_how_far_it_is(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(step_progress, "SECONDS", 0.0)
    channel.traffic(200)
    seen: list[tuple[int, int]] = []
    found: list[tuple[State, Stage | None]] = []

    def told(done: int, total: int) -> None:
        seen.append((done, total))
        # the row is written behind this call: the second chunk sees the first one's
        found.append(stage(channel))

    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"), told)
    assert 0 < seen[-1][0] <= seen[-1][1]
    assert seen == sorted(seen)
    state, reading = found[-1]
    assert state is State.RUNNING
    assert reading is not None
    assert reading.step is RunStep.EXTRACT
    assert reading.text.startswith("reading the log: ")

    _, scanning = stage(channel)
    assert scanning is not None
    assert (scanning.step, scanning.share) == (RunStep.PLAN, 0.0)
    assert scanning.text == f"plan job: scanning {window['segments']} segment{'s' * (window['segments'] > 1)}"
    run_plan_job(WorkFolder(window["work"]), InProcess())
    _, built = stage(channel)
    assert built is not None
    assert (built.share, built.text.endswith("built")) == (1.0, True)

    adopted = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    _, begun = stage(channel)
    assert begun == Stage(RunStep.APPLY, f"0 of {window['transactions']:,} transactions applied", 0.0, None)
    assert channel.cli("status", CHANNEL) == 0
    assert "0 of " in capsys.readouterr().out
    channel.go_on({**window, "plan": adopted["plan"]})
    assert stage(channel) == (State.IDLE, None)


def test_an_empty_window_and_one_that_fails_are_in_no_step(channel: Channel, monkeypatch: pytest.MonkeyPatch) -> None:
    assert channel.run() is None
    assert row(channel) is None
    channel.traffic(20)

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(steps, "write_inputs", broken)
    with pytest.raises(RuntimeError, match="the disk is gone"):
        channel.run()
    assert row(channel) is None


def test_a_dry_run_writes_nothing(channel: Channel) -> None:
    channel.traffic(20)
    steps.extract(channel.config, channel.endpoints, WindowRequest("now", dry_run=True))
    assert row(channel) is None


def test_what_a_killed_extraction_left_is_not_shown(channel: Channel) -> None:
    channel.target.query("INSERT INTO binlane.progress VALUES ('orders', 'extract', 'w', 5, 9, NOW(6), "
                         "UTC_TIMESTAMP(6) - INTERVAL 1 MINUTE)")  # fmt: skip
    assert stage(channel) == (State.IDLE, None)


def test_the_json_has_it(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    channel.traffic(20)
    steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    capsys.readouterr()
    assert channel.cli("status", "--all", "--json") == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["progress"] == {"step": "plan", "text": "plan job: scanning 1 segment", "share": 0.0, "left": None}
