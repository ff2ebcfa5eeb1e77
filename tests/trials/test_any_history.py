"""Any history of traffic, runs, crashes, stops, lost folders, changes of lanes and backfills ends in equal data.

A state machine: Hypothesis writes the history, and shortens the one that fails. Invariants 4, 7 and 10.
"""

from __future__ import annotations

import datetime as dt
import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from binlane.errors import BinlaneError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.chaos import rounds
from tests.chaos.faults import Fault, When
from tests.chaos.worker import run_window, was_killed
from tests.conftest import requires_mysql
from tests.emptied import drop_databases
from tests.integration.window.conftest import CHANNEL, Channel
from tests.one_runner import apply_alone

NOW = WindowRequest("now")


class History(RuleBasedStateMachine):
    """What may happen to one channel."""

    source: PrivateServer
    target: PrivateServer
    ended: ClassVar[int] = 0
    """Histories after which both servers held the same."""

    @initialize()
    def begin(self) -> None:
        for server in (self.source, self.target):
            drop_databases(server)
        self.folder = Path(tempfile.mkdtemp(prefix="binlane-history-"))
        self.channel = Channel(self.source, self.target, self.folder)
        self.channel.init()
        self.seed = 0
        self.watermark = 0
        self.stopped = False

    def teardown(self) -> None:
        if hasattr(self, "channel"):
            self._resume()
            while self._run() is not None:
                pass
            self.channel.assert_equal()
            shutil.rmtree(self.folder)
            History.ended += 1

    @rule(transactions=st.integers(1, 40))
    def write(self, transactions: int) -> None:
        self.seed += 1
        self.channel.traffic(transactions, tenants=4, seed=self.seed, creates=True)

    @precondition(lambda self: not self.stopped)
    @rule()
    def run(self) -> None:
        self._run()

    @precondition(lambda self: not self.stopped)
    @rule(at=st.integers(1, 250), when=st.sampled_from(When))
    def crash(self, at: int, when: When) -> None:
        """Somewhere between the first statement on the target and the last."""
        if was_killed(run_window, self.channel.config, self.channel.endpoints, Fault(at, when)):
            rounds.survived["run killed by SIGKILL in a random history"] += 1

    @precondition(lambda self: not self.stopped)
    @rule(lanes=st.integers(1, 5), blocks=st.integers(1, 30))
    def begin_a_window(self, lanes: int, blocks: int) -> None:
        """Extracted, planned, one lane applied, and left."""
        window = self._extract(WindowRequest("now", lanes=lanes, block_transactions=blocks))
        if window["work"] is not None:
            if window["plan"] is None:
                run_plan_job(WorkFolder(window["work"]), InProcess())
            adopted = steps.adopt_plan(self.channel.config, self.channel.endpoints, window["work"])
            lane = adopted["lanes"][0]["lane"]
            apply_alone(self.channel.config, self.channel.endpoints, adopted["plan"], lane)

    @rule()
    def lose_all_folders(self) -> None:
        shutil.rmtree(self.channel.work, ignore_errors=True)

    @rule(lanes=st.integers(1, 4))
    def change_the_number_of_lanes(self, lanes: int) -> None:
        file = self.channel.channels / f"{CHANNEL}.toml"
        lines = [f"count = {lanes}" if line.startswith("count =") else line for line in file.read_text().splitlines()]
        file.write_text("\n".join(lines) + "\n")

    @precondition(lambda self: not self.stopped and self.channel.status.window is not None)
    @rule()
    def stop(self) -> None:
        assert self.channel.cli("stop", CHANNEL, "--now") == 0
        self.stopped = True

    @precondition(lambda self: self.stopped)
    @rule()
    def resume(self) -> None:
        self._resume()

    @precondition(lambda self: self.channel.status.window is None)
    @rule(hours=st.integers(0, 48))
    def backfill(self, hours: int) -> None:
        """An interval that is done already is done at once."""
        mark = self.channel.status.channel.watermark
        if mark.source_time > 0:
            end = dt.datetime.fromtimestamp(mark.source_time, dt.UTC) - dt.timedelta(hours=hours)
            answer = steps.extract(self.channel.config, self.channel.endpoints, WindowRequest(interval_end=end))
            assert (answer["finished"], answer["work"]) == (True, None)

    @invariant()
    def nothing_moves_back(self) -> None:
        if hasattr(self, "channel"):
            status = self.channel.status
            assert status.channel.watermark.seqno >= self.watermark
            self.watermark = status.channel.watermark.seqno
            assert self.watermark <= status.low_water <= status.high_water

    def _run(self) -> dict[str, Any] | None:
        window = self._extract(NOW)
        return None if window["work"] is None else self.channel.go_on(window)

    def _extract(self, request: WindowRequest) -> dict[str, Any]:
        return steps.extract(self.channel.config, self.channel.endpoints, request)

    def _resume(self) -> None:
        if self.stopped:
            assert self.channel.cli("resume", CHANNEL) == 0
            self.stopped = False


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_any_history_ends_in_equal_data(family: str, request: pytest.FixtureRequest) -> None:
    History.source, History.target = (request.getfixturevalue(f"{family}_{role}") for role in ("source", "target"))
    History.ended = 0
    History.TestCase.settings = settings(
        max_examples=100 if rounds.EVERYTHING else max(3, int(rounds.SECONDS / 60)),
        stateful_step_count=10,
        deadline=None,
        derandomize=rounds.SEED == 1,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    try:
        run_state_machine_as_test(History, settings=History.TestCase.settings)
    except BinlaneError as exc:
        pytest.fail(f"{type(exc).__name__}: {exc}")
    assert History.ended > 0
