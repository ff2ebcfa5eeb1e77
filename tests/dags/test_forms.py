"""A run's form in every DAG: what the run was triggered with is taken, or refused before anything is read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag

from binlane.orchestration.airflow import follow_task, run_outcome
from binlane.orchestration.commands.windows_in_turn import FollowResult
from lab.site import DAG_FILE
from tests.dags.scene import CHANNEL, drifted, stand_in, write_channel

CONTINUOUS = '[window]\nschedule = "continuous"\n'

Run = Callable[..., tuple[str, str]]
"""The DAG's id, further keys of the channel's file, and what the run is triggered with; its state and its output."""


@pytest.fixture
def run(
    metadata_database: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    folder = tmp_path / "dags"
    local = "airflow.dag_processing.bundles.local.LocalDagBundle"
    bundle = {"name": "forms", "classpath": local, "kwargs": {"path": str(folder)}}
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps([bundle]))
    monkeypatch.setenv("BINLANE_CHANNELS", str(folder / "channels"))
    for module in (run_outcome, follow_task):
        monkeypatch.setattr(module, "health_after", lambda channel, _, failed: drifted(channel.name, failed))
    for name in ("SOURCE", "TARGET"):
        # nobody answers there
        monkeypatch.setenv(f"AIRFLOW_CONN_{name}", "mysql://nobody:nothing@127.0.0.1:9/")

    def of(dag_id: str, keys: str = "", **conf: Any) -> tuple[str, str]:
        write_channel(tmp_path, text=f'{CHANNEL}{keys}[restore]\nbases = ["/b"]\n[drill]\nbase = "/b"\nlog = "/l/"\n')
        (folder / "binlane.py").write_text(DAG_FILE)
        capfd.readouterr()
        ended = DagBag(folder).dags[dag_id].test(run_conf=conf)
        return str(ended.state), "".join(capfd.readouterr())

    return of


@pytest.mark.parametrize(
    ("dag_id", "keys", "conf", "said"),
    [
        ("replicate_shop", "", {"dryrun": True}, "dryrun: unknown key; did you mean dry_run? known: until, stop_at"),
        ("replicate_shop", "", {"Until": "now"}, "Until: unknown key; did you mean until?"),
        ("replicate_shop", CONTINUOUS, {"dry_run": True}, "dry_run: unknown key; known: verify, verify_only,"),
        ("replicate_shop", CONTINUOUS, {"stop_at": "highest"}, "stop_at: unknown key;"),
        ("bootstrap_shop", "", {"database": "t", "replace": True}, "database: unknown key; did you mean databases?"),
        ("restore_shop", "", {"databases": "a", "until": "now", "table": "t"}, "table: unknown key;"),
        ("drill_shop", "", {"tenant": 1}, "tenant: unknown key; did you mean tenants? known: tenants, seed"),
        ("index_shop", '[archive]\nuri = "/backup/binlog"\n', {"uri": "/other"}, "uri: unknown key"),
    ],
)
def test_a_run_that_is_triggered_with_what_its_form_does_not_have_fails_by_its_name(
    run: Run, dag_id: str, keys: str, conf: dict[str, Any], said: str
) -> None:
    state, output = run(dag_id, keys, **conf)
    assert (state, f"ConfigError: {said}" in output) == ("failed", True), output


def test_a_run_whose_form_airflow_does_not_hand_on_fails(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__DAG_RUN_CONF_OVERRIDES_PARAMS", "False")
    state, output = run("replicate_shop", dry_run=True)
    assert (state, "dry_run: expected the run's own value, found the DAG's default" in output) == ("failed", True)


def test_a_run_of_windows_back_to_back_that_only_verifies_takes_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[Any] = []

    def take(*asked: Any) -> FollowResult:
        taken.append(asked)
        return FollowResult()

    monkeypatch.setattr(follow_task, "windows_in_turn", take)
    verified = stand_in(monkeypatch)
    assert run("replicate_shop", CONTINUOUS, verify="full", verify_only=True)[0] == "success"
    assert (taken, verified.asked) == ([], ["full"])
    state, output = run("replicate_shop", CONTINUOUS, verify_only=True)
    assert (state, "the run has nothing to do" in output, taken) == ("failed", True, [])
