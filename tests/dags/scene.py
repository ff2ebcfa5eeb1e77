"""What the tests of DAGs share: a channel of a folder, and runs whose steps answer as they are told."""

import datetime as dt
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from binlane import orchestration
from binlane.config import load_channel
from binlane.errors import (
    DriftError,
)
from binlane.health.airflow_runs import AirflowRuns
from binlane.health.channel_facts import Facts, Limits
from binlane.health.health import Health, health_of
from binlane.orchestration import commands
from binlane.orchestration.airflow import run_outcome
from binlane.orchestration.airflow.replicate_dag import build_dag
from binlane.orchestration.request import WindowRequest

ROOT = Path(__file__).parents[2]
CHANNEL = '[source]\nconnection = "source"\n[target]\nconnection = "target"\n'


def write_channel(folder: Path, name: str = "shop", text: str = CHANNEL) -> Path:
    file = folder / "dags" / "channels" / f"{name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def shop(folder: Path, text: str = CHANNEL) -> DAG:
    return build_dag(load_channel(write_channel(folder, text=text)))


class Steps(ModuleType):
    """Stands for the steps: answers as told and writes down what it was asked. The work itself has its own tests."""

    def __init__(self, window: dict[str, Any], lanes: int = 3) -> None:
        super().__init__("binlane.orchestration.steps")
        self.calls: list[tuple[Any, ...]] = []
        self.window, self.lanes = (
            {
                "window": "w1",
                "work": "/w/w1",
                "watermark": 1234,
                "empty": False,
                "finished": False,
                "plan": None,
                **window,
            },
            lanes,
        )

    def extract(self, channel: Any, endpoints: Any, request: WindowRequest) -> dict[str, Any]:
        self.calls.append(("extract", endpoints.source.password, endpoints.target.tls.mode, request))
        return self.window

    def adopt_plan(
        self, channel: Any, endpoints: Any, work: str, stop_at: str | None, plan_engine: str, made: Any, author: Any
    ) -> dict[str, Any]:
        self.calls.append(("adopt_plan", work))
        return {
            "plan": f"{work}/plan.json",
            "lanes": [{"lane": n, "name": f"lane {n}: a{n}"} for n in range(self.lanes)],
        }

    def apply_lane(self, channel: Any, endpoints: Any, plan: str, lane: int, interrupted: Any) -> dict[str, Any]:
        self.calls.append(("apply_lane", plan, lane))
        return {"lane": lane}

    def advance(self, channel: Any, endpoints: Any, plan: str) -> dict[str, Any]:
        self.calls.append(("advance", plan))
        return {"note": "done"}


HEALTH = "health: drifted: 3 rows or definitions known to differ from the source"
"""In the note of every run: see ``drifted``."""


def drifted(channel: str, failed: AirflowRuns | None) -> Health:
    """Stands for what the target would be asked for."""
    facts = Facts(
        channel=channel, clock=9.0, created=1.0, seqno=7, committed=8.0, complete=None, stopped=None, window=None,
        error=None, drifted=3, pending=0, is_comparable=True, verified=0,
        unverified_since=None, full_at=None, compared_at=None, ran_at=None, runs=failed,
    )  # fmt: skip
    return health_of(facts, Limits(0, 0))


Run = Callable[..., tuple[str, dict[str, str]]]
"""Steps, and whether the filter runs for real; the run's state and its tasks' states by task and name of the lane."""


@pytest.fixture
def run_window(metadata_database: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(steps: Steps, filter_runs: bool = False, **conf: Any) -> tuple[str, dict[str, str]]:
        monkeypatch.setitem(sys.modules, steps.__name__, steps)
        monkeypatch.setattr(orchestration, "steps", steps, raising=False)
        monkeypatch.setattr(run_outcome, "health_after", lambda channel, _, failed: drifted(channel.name, failed))
        dag = DagBag(ROOT / "dags").dags["replicate_demo"]
        for task in dag.tasks:
            # between the tries of one that fails
            task.retry_delay = dt.timedelta(0)
        # the Spark job has tests of its own
        result = dag.test(
            run_conf={"until": "now", **conf}, mark_success_pattern=None if filter_runs else "event_metadata_filter"
        )
        tasks = {
            f"{ti.task_id} {ti.rendered_map_index or ''}".strip(): str(ti.state) for ti in result.get_task_instances()
        }
        return str(result.state), tasks

    return run


class Verified(ModuleType):
    """Stands for the verification, which has tests of its own."""

    def __init__(self, drift: str = "") -> None:
        super().__init__("binlane.orchestration.commands.verify")
        self.drift, self.asked = drift, list[str]()

    def verify_after(self, channel: Any, endpoints: Any, kind: str, *, accounts: bool) -> dict[str, Any]:
        self.asked.append(kind)
        if self.drift:
            raise DriftError(self.drift)
        return {"state": "clean", "note": "all clean"}


def stand_in(monkeypatch: pytest.MonkeyPatch, drift: str = "") -> Verified:
    verified = Verified(drift)
    monkeypatch.setitem(sys.modules, verified.__name__, verified)
    monkeypatch.setattr(commands, "verify", verified, raising=False)
    return verified


def last_note() -> str | None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        note: str | None = session.scalars(select(DagRun).order_by(DagRun.id.desc()).limit(1)).one().note
    return note


def last_event() -> Any:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        return session.scalars(select(AssetEvent).order_by(AssetEvent.id.desc()).limit(1)).one()
