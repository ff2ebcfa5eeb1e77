"""Hostile histories on real servers: some by seed, and all that ever failed; and that the judge sees a difference.

``make histories SECONDS=600`` tries as many as fit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlane.model import Flavor
from lab.histories.channel import Channel
from lab.histories.generator import generate
from lab.histories.history import Event, History, Settings
from lab.histories.trial import Trials, Verdict
from tests.conftest import requires_mysql

pytestmark = pytest.mark.trial

FILES = sorted((Path(__file__).parent / "kept").glob("*.txt"))
KEPT = {path.stem: History.from_text(path.read_text()) for path in FILES}
SEEDS = (1, 2, 3, 5)
FAMILIES = [pytest.param(Flavor.MARIADB, id="mariadb"), pytest.param(Flavor.MYSQL, id="mysql", marks=requires_mysql)]


@pytest.fixture(scope="module", params=FAMILIES)
def trials(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    """The servers of a family."""
    with Trials(request.param, tmp_path_factory.mktemp("histories") / "run") as started:
        yield started


@pytest.mark.parametrize("seed", SEEDS)
def test_a_generated_history_is_brought_over(trials: Trials, seed: int) -> None:
    history = generate(trials.flavor, seed)
    outcome = trials.judge(dataclasses.replace(history, settings=dataclasses.replace(history.settings, spark=False)))
    assert outcome.verdict is not Verdict.FAILED, (outcome.kind, outcome.details)
    assert outcome.statements > outcome.refused_by_source


def test_histories_that_failed_once_are_brought_over(trials: Trials) -> None:
    for name, history in KEPT.items():
        if history.flavor is trials.flavor:
            outcome = trials.judge(history)
            assert outcome.verdict is Verdict.EQUAL, (name, outcome.kind, outcome.details)


def test_a_row_that_is_another_one_is_found_and_is_a_failure_where_the_replica_has_it_right(
    trials: Trials, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = Channel.window

    def and_a_change(self: Channel, how: str, dice: object) -> bool:
        more = window(self, how, dice)  # type: ignore[arg-type]
        self.target.query("UPDATE d0.t SET f = 0.1000001 WHERE id = 1")
        return more

    monkeypatch.setattr(Channel, "window", and_a_change)
    said = ("CREATE DATABASE d0", "CREATE TABLE d0.t (id INT PRIMARY KEY, f FLOAT INVISIBLE)",
            "INSERT INTO d0.t (id, f) VALUES (1, 0.1), (2, 0.2)")  # fmt: skip
    outcome = trials.judge(History(trials.flavor, 1, Settings(), tuple(Event("a", sql) for sql in said)))
    assert (outcome.verdict, outcome.kind) == (Verdict.FAILED, "difference of rows")
