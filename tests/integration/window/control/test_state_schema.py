"""Every command and task asks whether the target's state fits; a window of an older schema is finished."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest
import typer
from typer.core import TyperGroup

from binlane.board.board_reader import BoardReader
from binlane.board.host import Host
from binlane.bootstrap.first_copy import Options
from binlane.cli import app
from binlane.connections import environment_resolver
from binlane.errors import StateSchemaError
from binlane.health.airflow_runs import AirflowRuns
from binlane.health.health import Severity, State
from binlane.orchestration import steps
from binlane.orchestration.airflow import bootstrap_dag, run_outcome
from binlane.orchestration.airflow.dag_shape import Kind
from binlane.orchestration.commands import verify
from binlane.orchestration.commands.copies import bootstrap
from binlane.orchestration.commands.windows_in_turn import FollowRequest, Pace, windows_in_turn
from binlane.orchestration.request import WindowRequest
from binlane.state.tables import VERSION
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.traffic import Mix
from tests.integration.state.older_schema import OLDER, know_two_versions, make_older
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf

NOWHERE: Final = "file:///nowhere/plan"
"""What a task is given: none opens it before it knows the state's schema."""


def follow(channel: Channel) -> object:
    """Windows back to back, as the task takes them."""
    following = FollowRequest(
        load=lambda: (channel.config, channel.endpoints),
        request=lambda: WindowRequest("now"),
        engine="local",
        say=print,
        applied=lambda *_: None,
        missed=lambda *_: None,
        resume="resume",
    )
    return windows_in_turn(following, Pace(1.0, 60), threading.Event())


COMMANDS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "adopt-target": ((),),
    "advise": ((),),
    "bootstrap": ((),),
    # a monitoring plugin: see below
    "check": (),
    # files alone
    "archive": (),
    "audit": ((), ("--json",)),
    "config": (),
    "conflicts": ((), ("--json",)),
    "decide": (("1", "--ran"),),
    "doctor": (),
    "drill": (("--from", "dump.sql", "--log", "source_server"), ("--list",), ("--clean",)),
    "find": ((),),
    "follow": ((),),
    "grants": (),
    "init": ((),),
    "inspect": (),
    "new": (),
    "plan": ((),),
    "read-at": (("--command", "true"),),
    "recopy": (("--table", "tenant_1.t", "--yes"),),
    "replay-skipped": (("1",),),
    # makes and names a channel of its own
    "restore": (),
    "resume": ((),),
    "run": ((),),
    "show": (("1",),),
    "skip": (
        ("--seqno", "1", "--reason", "r"),
        ("--seqno", "1", "--cancel"),
        ("--list",),
        ("--show", "1"),
    ),
    "spark-archive": (),
    "spark-job": (),
    "status": ((), ("--json",)),
    "stop": ((), ("--now",)),
    "verify": ((), ("--full",), ("--repair", "--yes")),
    "version": (),
    "xa": ((), ("--done", "x")),
}
"""Each command of the command line with the arguments behind the channel's name; none: it reads no state of a
target, or reports it (`doctor`)."""
TASKS: Final[Mapping[str, Callable[[Channel], object] | None]] = {
    Kind.EXTRACT: lambda channel: steps.extract(channel.config, channel.endpoints, WindowRequest("now")),
    Kind.FILTER: lambda channel: steps.inputs_folder(
        channel.config, channel.endpoints, {"work": NOWHERE, "inputs": None}
    ),
    Kind.ADOPT: lambda channel: steps.adopt_plan(channel.config, channel.endpoints, NOWHERE),
    Kind.APPLY: lambda channel: steps.apply_lane(channel.config, channel.endpoints, NOWHERE, 1),
    Kind.ADVANCE: lambda channel: steps.advance(channel.config, channel.endpoints, NOWHERE),
    Kind.VERIFY: lambda channel: verify.verify_after(channel.config, channel.endpoints, "full"),
    Kind.CONFIRM: lambda channel: run_outcome.open_window(CHANNEL, channel.endpoints, "w1"),
    Kind.FOLLOW: follow,
    bootstrap_dag.TASK: lambda channel: bootstrap.first_copy(
        channel.config, channel.endpoints, Options(), bootstrap.LogLines()
    ),
}
"""Each task of the DAGs: what it calls."""
ROWS: Final = Mix(cross_database=0.0, reference=0.0, ddl=0.0, accounts=0.0, statements=0.0)
"""No lane waits for another: one can be at the window's end and the others at its beginning."""


def test_the_lists_are_of_all_commands_and_tasks() -> None:
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    assert set(COMMANDS) == set(group.commands)
    assert set(TASKS) == {*Kind, bootstrap_dag.TASK}


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (f"INSERT INTO binlane.migrations VALUES ({VERSION + 1}, 'later', NOW(6))", f"has version {VERSION + 1}"),
        ("ALTER TABLE binlane.positions DROP COLUMN begun", "binlane.positions has no column begun"),
        ("ALTER TABLE binlane.positions ADD COLUMN mine INT", "binlane.positions has a column mine"),
        ("ALTER TABLE binlane.positions ENGINE = MyISAM", "binlane.positions is MyISAM, expected InnoDB"),
    ],
    ids=["newer", "missing column", "foreign column", "MyISAM"],
)
def test_every_command_task_and_page_refuses_a_state_that_does_not_fit(
    channel: Channel, capsys: pytest.CaptureFixture[str], damage: str, said: str
) -> None:
    channel.target.query(damage)
    capsys.readouterr()
    for command, calls in COMMANDS.items():
        for arguments in calls:
            assert channel.cli(command, CHANNEL, *arguments) == 1, (command, arguments)
            told = capsys.readouterr().err
            # a search asks every channel, and names those that it could not ask
            told = told.removeprefix(f"{CHANNEL}: not asked: ") if command == "find" else told
            assert told.startswith("StateSchemaError: target: "), (command, arguments, told)
            assert said in told, (command, arguments)
    assert channel.cli("check", CHANNEL) == Severity.UNKNOWN
    assert said in capsys.readouterr().out
    for call in filter(None, TASKS.values()):
        with pytest.raises(StateSchemaError, match=re.escape(said)):
            call(channel)
    assert channel.cli("doctor", CHANNEL) == 1
    assert said in capsys.readouterr().out
    card = BoardReader(host_of(channel)).channel("anybody", CHANNEL).card
    assert card.state is State.UNREACHABLE
    assert said in card.findings[0].text
    assert not channel.work.exists() or not list(channel.work.iterdir())


def host_of(channel: Channel) -> Host:
    return Host(
        get_user=lambda: "anybody",
        user_name=str,
        channels=lambda: channel.channels,
        resolve=environment_resolver(channel.environment),
        may=lambda *_: True,
        runs=lambda _: AirflowRuns(),
        scheduler_silent=lambda: None,
        trigger=lambda *_: pytest.fail("nothing is triggered"),
    )


@pytest.mark.parametrize("family", ["mariadb", "mysql"])
def test_a_window_that_an_older_schema_holds_half_finished_is_finished(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    channel = channel_of(family, family)
    channel.traffic(transactions=120, mix=ROWS)
    assert channel.run() is not None
    channel.traffic(transactions=160, seed=2, mix=ROWS)
    adopted = _planned(channel)
    half = max(adopted["lanes"], key=lambda lane: int(lane["lane"]))["lane"]
    steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], half)
    before = channel.status
    assert len({lane.seqno for lane in before.positions}) == 2, "one lane is at the end, the others are not"
    know_two_versions(monkeypatch.setattr)
    make_older(channel.target)

    for command in ("status", "stop", "plan", "verify"):
        capsys.readouterr()
        assert channel.cli(command, CHANNEL) == 1
        told = capsys.readouterr().err
        assert f"has version {OLDER}, this binlane needs {OLDER + 1}" in told
        assert f"run `binlane init {CHANNEL}`, which upgrades the schema" in told
    # lanes of the command are processes that know one version
    assert channel.run() is not None
    assert channel.status.window is None
    assert channel.status.channel.watermark.seqno > before.channel.watermark.seqno
    channel.assert_equal()


def _planned(channel: Channel) -> dict[str, Any]:
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    return steps.adopt_plan(channel.config, channel.endpoints, window["work"])


def test_an_open_window_whose_files_are_an_older_binlanes_keeps_the_schema_as_it_is(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the older binlane can finish the window, and it would refuse the upgraded schema."""
    channel.traffic(transactions=60, mix=ROWS)
    _planned(channel)
    know_two_versions(monkeypatch.setattr)
    make_older(channel.target)
    tables = channel.target.query("SHOW TABLES FROM binlane")
    (manifest,) = channel.work.glob("*/manifest.json")
    whole = manifest.read_bytes()
    manifest.write_bytes(whole.replace(b'"carried"', b'"of_old"'))
    for command in ("run", "init"):
        capsys.readouterr()
        assert channel.cli(command, CHANNEL) == 1
        told = capsys.readouterr().err
        assert "StateSchemaError: target: the schema binlane cannot be upgraded: channel orders" in told
        assert "finish the window with the older binlane (`binlane run orders`), then run again" in told
    assert channel.target.query("SHOW TABLES FROM binlane") == tables
    manifest.write_bytes(whole)
    assert channel.run() is not None
    channel.assert_equal()
