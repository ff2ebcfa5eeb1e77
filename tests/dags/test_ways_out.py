"""Troubles of ``tests/ways_out.py`` as a run of Airflow meets them: its task's log, its note and the board say what to
type, and the next run of the DAG goes on."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import threading
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from airflow.dag_processing.dagbag import DagBag

from binlane import airflow_plugin
from binlane.connections import environment_resolver
from binlane.errors import BinlaneError
from binlane.health.health import Severity
from binlane.health.look import look_at
from binlane.orchestration.airflow import follow_task, replicate_dag
from lab.site import DAG_FILE
from tests.conftest import requires_mysql
from tests.dags.scene import last_note
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel_of, clean_servers, run_on
from tests.integration.window.control.test_ways_out import FOLLOWED, begun, broken, led_out, read_step
from tests.trials.sampling import sampled
from tests.ways_out import TROUBLES, Trouble

__all__ = ["channel_of", "clean_servers"]

pytestmark = pytest.mark.trial

DAG_ID: Final = f"replicate_{CHANNEL}"
SAMPLE: Final = frozenset(
    {
        "a table was dropped",
        "a table was dropped that statements of the window read, which change another one",
        "the source was restarted with other settings (`binlog_ignore_db`)",
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
CONTINUED: Final = FOLLOWED - {"the connection leads to another target"}
"""Also met by the task of a continuous DAG. The board reads the target by the same connection, and so finds a server
without the channel."""
CONTINUOUS: Final = '[window]\nschedule = "continuous"\n'
_FOUND: Final = re.compile(r"(?:AirflowFailException: |binlane\.errors\.)\w+: (?:.*\n)+?(?=\d{4}-\d\d-\d\dT|\Z)")
"""The error in the log of a failed task: its class and text, at a traceback's end."""
_ESCAPED: Final = re.compile(r"\\(?=[^\w\s])")
"""What a note's Markdown has in front of marks."""


@pytest.fixture
def run_of(
    metadata_database: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str | None]:
    """Triggers the channel's DAG, with ``settings`` before the others of its file; the errors in its tasks' logs if it
    fails."""

    def run(channel: Channel, settings: str = "") -> str | None:
        folder = channel.project / "dags"
        file = channel.channels / f"{CHANNEL}.toml"
        if not (text := file.read_text()).startswith(settings):
            # a step has written it anew
            file.write_text(settings + text)
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
        ended = dag.test(run_conf=None if settings else {"until": "now", "engine": "local"})
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
    run_of: Callable[..., str | None],
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


@pytest.mark.parametrize(("family", "trouble"), _in_families([each for each in TROUBLES if each.what in CONTINUED]))
def test_what_the_task_of_a_continuous_dag_says_leads_out(
    channel_of: ChannelOf,
    run_of: Callable[..., str | None],
    family: str,
    trouble: Trouble,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(follow_task, "LONGEST_PAUSE", 1.0)
    channel = channel_of(family, family)
    begun(channel)
    last = channel.status.channel.watermark.seqno + len(trouble.window)
    run_on(channel.source, *trouble.window)
    with broken(channel, trouble) as found:

        def run() -> str | None:
            with interrupted_at(channel, last):
                said = run_of(channel, CONTINUOUS)
            if said is not None:
                told(channel, said, found.without)
            return said

        led_out(found, trouble, capsys, run=run)
    channel.assert_equal()


@contextlib.contextmanager
def interrupted_at(channel: Channel, seqno: int) -> Iterator[None]:
    """A run of the block ends as if its task were told to when the target is there."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.2):
            # the connection may lead elsewhere
            with contextlib.suppress(BinlaneError):
                if channel.status.channel.watermark.seqno >= seqno:
                    replicate_dag._INTERRUPTED.set()
                    return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        replicate_dag._INTERRUPTED.clear()


def told(channel: Channel, said: str, without: str) -> None:
    """The run's note and the first line of the board name the step that the task's log names."""
    step, _ = read_step(said, without)
    runs = airflow_plugin._runs(DAG_ID)
    health = look_at(channel.config, environment_resolver(channel.environment), runs=runs).health
    assert health.severity is not Severity.OK
    assert step in health.findings[0].text
    assert step in _ESCAPED.sub("", last_note() or "")
