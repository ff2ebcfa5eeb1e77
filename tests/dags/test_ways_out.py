"""Troubles of ``tests/ways_out.py`` as a run of Airflow meets them: its task's log, its note and the board say what to
type, and the next run of the DAG goes on."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from typing import Final

import pytest
from airflow.dag_processing.dagbag import DagBag

from binlane import airflow_plugin
from binlane.connections import environment_resolver
from binlane.health.health import Severity
from binlane.health.look import look_at
from lab.site import DAG_FILE
from tests.conftest import requires_mysql
from tests.dags.scene import last_note
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel_of, clean_servers, run_on
from tests.integration.window.control.test_ways_out import begun, broken, led_out, read_step
from tests.trials.sampling import sampled
from tests.ways_out import TROUBLES, Trouble

__all__ = ["channel_of", "clean_servers"]

pytestmark = pytest.mark.trial

DAG_ID: Final = f"replicate_{CHANNEL}"
SAMPLE: Final = frozenset(
    {
        "a table was dropped",
        "a column has another type",
        "a trigger was dropped",
        "rows are in the way",
        "a CREATE TABLE of the window was run by hand",
        "read_only was set",
        "max_allowed_packet was lowered",
        "the target's account has lost a privilege",
        "the target's password was changed",
        "the source's password was changed",
        "the source was stopped",
        "the work folder is full",
        "the target's disk is full",
        "the source has purged its log",
    }
)
"""Troubles of each task, and of each kind of way out."""
_FOUND: Final = re.compile(r"(?:AirflowFailException: |binlane\.errors\.)\w+: (?:.*\n)+?(?=\d{4}-\d\d-\d\dT|\Z)")
"""The error in the log of a failed task: its class and text, at a traceback's end."""
_ESCAPED: Final = re.compile(r"\\(?=[^\w\s])")
"""What a note's Markdown has in front of marks."""


@pytest.fixture
def run_of(
    metadata_database: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Channel], str | None]:
    """Triggers the channel's DAG; the errors in its tasks' logs if it fails."""

    def run(channel: Channel) -> str | None:
        folder = channel.project / "dags"
        (folder / "binlane.py").write_text(DAG_FILE)
        local = "airflow.dag_processing.bundles.local.LocalDagBundle"
        bundle = {"name": CHANNEL, "classpath": local, "kwargs": {"path": str(folder)}}
        monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST", json.dumps([bundle]))
        monkeypatch.setenv("BINLANE_CHANNELS", str(channel.channels))
        for name, value in channel.environment.items():
            monkeypatch.setenv(name, value)
        dag = DagBag(folder).dags[DAG_ID]
        for task in dag.tasks:
            task.retry_delay = dt.timedelta(0)
        capsys.readouterr()
        ended = dag.test(run_conf={"until": "now", "engine": "local"})
        log = capsys.readouterr().out
        return None if ended.state == "success" else "".join(found[0] for found in _FOUND.finditer(log))

    return run


def _in_families(troubles: list[Trouble]) -> list[object]:
    return [
        pytest.param(family, each, id=f"{each.what}-{family}", marks=(requires_mysql,) if family == "mysql" else ())
        for each in troubles
        for family in each.families
    ]


@pytest.mark.parametrize(
    ("family", "trouble"),
    _in_families([*sampled(TROUBLES, [each for each in TROUBLES if each.what in SAMPLE])]),
)
def test_what_a_task_a_note_and_the_board_say_leads_out(
    channel_of: ChannelOf,
    run_of: Callable[[Channel], str | None],
    family: str,
    trouble: Trouble,
    capsys: pytest.CaptureFixture[str],
) -> None:
    channel = channel_of(family, family)
    begun(channel)
    run_on(channel.source, *trouble.window)
    with broken(channel, trouble) as found:

        def run() -> str | None:
            said = run_of(channel)
            if said is not None:
                told(channel, said, found.without)
            return said

        led_out(found, trouble, capsys, run=run)
    channel.assert_equal()


def told(channel: Channel, said: str, without: str) -> None:
    """The run's note and the first line of the board name the step that the task's log names."""
    step, _ = read_step(said, without)
    runs = airflow_plugin._runs(DAG_ID)
    health = look_at(channel.config, environment_resolver(channel.environment), runs=runs).health
    assert health.severity is not Severity.OK
    assert step in health.findings[0].text
    assert step in _ESCAPED.sub("", last_note() or "")
