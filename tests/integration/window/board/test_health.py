"""Health on real servers: board, status and check say the same, and none of them is greener than the truth."""

import datetime as dt
import json
import re
import time
from typing import Any

import pytest

from binlane.errors import PrecheckError
from binlane.health.airflow_runs import AirflowRuns, Run
from binlane.orchestration import steps
from binlane.orchestration.commands.verify import verify_channel
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.request import WindowRequest
from binlane.orchestration.window_refusal import recorded_refusal
from binlane.servers.engines import engine_of
from binlane.state.positions import PlanKey
from binlane.state.records.journal import record_error
from binlane.verify.outcome import Options
from binlane.verify.scope import Scope
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.traffic import Mix
from tests.integration.window.board.test_board import API, client_of, get, half_way
from tests.integration.window.conftest import CHANNEL, Channel, run_on
from tests.one_runner import apply_alone

ROWS = Mix(cross_database=0.0, reference=0.0, ddl=0.0, accounts=0.0, statements=0.0)
"""No lane waits for another one."""


def shown(
    channel: Channel, capsys: pytest.CaptureFixture[str], runs: AirflowRuns | None = None
) -> tuple[list[str], int]:
    """The states that every screen shows, and the exit code of the plugin. ``runs``: for the board."""
    capsys.readouterr()
    assert channel.cli("status", CHANNEL, "--json") == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)["health"]
    states = [each["state"] for each in told["findings"]]
    assert told["state"] == states[0]
    assert channel.cli("status", CHANNEL) == 0
    assert re.search(rf"^health +{states[0]}: ", capsys.readouterr().out, re.MULTILINE)
    code = channel.cli("check", CHANNEL)
    assert f"BINLANE {('OK', 'WARNING', 'CRITICAL')[code]}: {CHANNEL}: " in capsys.readouterr().out
    client = client_of(channel, runs)
    [listed], card = get(client, "/api/channels"), get(client, API)["card"]
    on_board = [each["state"] for each in card["findings"]]
    assert [each["state"] for each in listed["findings"]] == on_board
    assert card["state"] == on_board[0]
    severity = ("ok", "warning", "critical").index(card["findings"][0]["severity"])
    assert f'binlane_health_severity{{channel="{CHANNEL}"}} {severity}.0' in client.get("/metrics").text
    if runs is None:
        assert (on_board, severity) == (states, code)
    return on_board, code


def verify(channel: Channel, *, full: bool = True) -> str:
    return verify_channel(channel.config, channel.endpoints, Options(full=full)).state


def test_a_target_without_the_state_is_new_and_not_unreachable(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(channel.target, "DROP DATABASE binlane")
    capsys.readouterr()
    assert channel.cli("check", CHANNEL) == 3
    assert f"UNKNOWN: {CHANNEL}: new: the target has no schema binlane" in capsys.readouterr().out
    [listed] = get(client_of(channel), "/api/channels")
    assert listed["state"] == "new"
    assert f"`binlane bootstrap {CHANNEL}`" in listed["findings"][0]["next_step"]


def left_a_minute_ago(channel: Channel) -> None:
    """Nobody has worked on the open window since."""
    for table, column in (("windows", "created_at"), ("heartbeats", "beat_at")):
        run_on(channel.target, f"UPDATE binlane.{table} SET {column} = {column} - INTERVAL 1 MINUTE", log=False)


def test_a_window_that_is_refused_is_failed_until_it_has_a_plan(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, n INT)")
    assert channel.run() is not None
    run_on(channel.target, "ALTER TABLE app.t DROP COLUMN n", log=False)
    run_on(channel.source, "INSERT INTO app.t VALUES (1, 1)")
    for _ in range(2):  # the second error replaces the first
        assert channel.cli("run", CHANNEL) == 1
        assert shown(channel, capsys) == (["failed", "unfinished"], 2)
    assert channel.cli("status", CHANNEL) == 0
    said = " ".join(capsys.readouterr().out.split())
    # the cause first, then what it is a finding of
    refused = r"failed: the window was refused: app\.t: .* \(PrecheckError: precheck failed: \d findings?; nothing was "
    assert re.search(refused, said)
    assert "plan job:" not in said
    assert channel.cli("check", CHANNEL) == 2
    assert re.search(refused, capsys.readouterr().out)
    [error] = get(client_of(channel), API)["errors"]
    assert (error["lane"], error["seqno"], error["current"]) == (None, 0, True)
    # a dry run and a plan are no reason for an alarm
    assert channel.cli("plan", CHANNEL) == 1
    assert channel.target.query("SELECT COUNT(*) FROM binlane.errors") == [(1,)]
    run_on(channel.target, "ALTER TABLE app.t ADD COLUMN n INT", log=False)
    with_plan(channel)
    # lanes stop at an error of their window: once it has a plan, they alone record one
    window = channel.status.window
    assert window is not None
    with pytest.raises(PrecheckError), recorded_refusal(channel.endpoints.target, CHANNEL, window.bounds.window_id):
        raise PrecheckError("another run of the same window")
    assert channel.target.query("SELECT COUNT(*) FROM binlane.errors WHERE text LIKE '%another run%'") == [(0,)]
    left_a_minute_ago(channel)
    assert shown(channel, capsys) == (["unfinished"], 0)
    assert channel.run() is not None
    assert shown(channel, capsys)[0] == ["idle"]


def with_plan(channel: Channel) -> None:
    """Give the open window its plan, and apply nothing of it."""
    window = steps.extract(channel.config, channel.endpoints, WindowRequest())
    # the target has changed since the plan that was refused
    assert window["plan"] is None
    run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(channel.config, channel.endpoints, window["work"])


def test_drift_is_on_every_screen_until_it_is_found_to_be_gone(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(60, mix=ROWS)
    channel.run()
    assert shown(channel, capsys) == (["idle"], 0)
    channel.target.query("CREATE TABLE tenant_001.mine (id INT PRIMARY KEY)")
    assert verify(channel) == "drift"
    assert shown(channel, capsys) == (["drifted"], 2)
    channel.traffic(20, mix=ROWS, seed=2)
    channel.run()
    assert shown(channel, capsys) == (["drifted"], 2)
    assert channel.cli("stop", CHANNEL) == 0
    assert shown(channel, capsys) == (["drifted", "stopped"], 2)
    assert channel.cli("resume", CHANNEL) == 0
    channel.target.query("DROP TABLE tenant_001.mine")
    assert shown(channel, capsys) == (["drifted"], 2)
    assert verify(channel) == "clean"
    assert shown(channel, capsys) == (["idle"], 0)


def test_a_stopped_channel_is_stopped_on_every_screen(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    assert channel.cli("stop", CHANNEL) == 0
    assert shown(channel, capsys) == (["stopped"], 1)
    assert channel.cli("resume", CHANNEL) == 0
    assert shown(channel, capsys) == (["idle"], 0)


def test_a_channel_that_nobody_runs_falls_behind(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    run_on(channel.target, "UPDATE binlane.channels SET created_at = created_at - INTERVAL 2 DAY, source_time = 0")
    assert shown(channel, capsys) == (["behind"], 2)
    channel.traffic(20, mix=ROWS)
    channel.run()
    assert shown(channel, capsys) == (["idle"], 0)
    run_on(channel.target, "UPDATE binlane.channels SET source_time = source_time - 86500")
    assert shown(channel, capsys) == (["behind"], 2)
    assert channel.cli("stop", CHANNEL) == 0
    assert shown(channel, capsys) == (["behind", "stopped"], 2)
    assert channel.cli("check", CHANNEL, "--max-lag", "2d") == 1
    assert channel.cli("check", CHANNEL, "--max-lag", "0") == 1


def test_an_idle_source_that_is_read_is_no_lag_and_a_run_without_work_recovers_from_a_failure(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(20, mix=ROWS)
    channel.run()
    run_on(
        channel.target,
        "UPDATE binlane.channels SET source_time = source_time - 86500",
        "UPDATE binlane.windows SET finished_at = finished_at - INTERVAL 2 DAY",
    )
    failed = AirflowRuns(ended=(Run("r1", "failed", 1.0, time.time() - 3600, ("extract_segments",)),))
    assert shown(channel, capsys, failed) == (["failed", "behind"], 2)
    assert channel.run() is None
    assert shown(channel, capsys, failed) == (["idle"], 0)
    # a run to an earlier end, behind the watermark
    until = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=86450)
    assert channel.run(WindowRequest(until.isoformat())) is None
    assert shown(channel, capsys, failed) == (["idle"], 0)


def test_a_row_that_has_drifted_once_stays_known_while_the_source_changes_it(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, a INT)")
    run_on(channel.source, "INSERT INTO app.t VALUES (1, 1), (2, 2)")
    channel.run()
    run_on(channel.target, "UPDATE app.t SET a = 7 WHERE id = 1")
    assert verify(channel) == "drift"
    run_on(channel.source, "UPDATE app.t SET a = 3 WHERE id = 1", "UPDATE app.t SET a = 3 WHERE id = 2")
    assert verify(channel) == "drift"
    assert channel.status.suspects == {"drift": 1}
    assert shown(channel, capsys) == (["drifted"], 2)
    channel.run()
    assert shown(channel, capsys) == (["drifted"], 2)
    assert verify(channel) == "clean"
    assert shown(channel, capsys) == (["idle"], 0)


def test_a_channel_that_nobody_verifies_is_unverified(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    earlier = "UPDATE binlane.windows SET finished_at = finished_at - INTERVAL 8 DAY"
    channel.traffic(20, mix=ROWS)
    channel.run()
    run_on(channel.target, earlier)
    assert shown(channel, capsys) == (["unverified"], 1)
    # one that was killed has proved nothing
    run_on(
        channel.target,
        "INSERT INTO binlane.verifications (channel, kind, window_id, through_seqno, state, started_at, tables, "
        "chunks, compared_rows, drift, pending) "
        f"VALUES ('{CHANNEL}', 'window', '', 1000, 'running', UTC_TIMESTAMP(), 0, 0, 0, 0, 0)",
    )
    assert shown(channel, capsys) == (["unverified"], 1)
    assert channel.cli("check", CHANNEL, "--max-unverified", "9d") == 0
    assert verify(channel, full=False) == "clean"
    assert shown(channel, capsys) == (["idle"], 0)


def test_a_clean_verification_makes_no_more_verified_than_it_has_compared(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in (1, 2):
        channel.traffic(20, mix=ROWS, seed=seed)
        channel.run()
    run_on(channel.target, "UPDATE binlane.windows SET finished_at = finished_at - INTERVAL 8 DAY")
    work = channel.target.query("SELECT work FROM binlane.windows WHERE number = 1")
    run_on(channel.target, "UPDATE binlane.windows SET work = '' WHERE number = 1")
    # the rows of the first window are not known any more
    assert verify(channel, full=False) == "clean"
    assert shown(channel, capsys) == (["unverified"], 1)
    run_on(channel.target, f"UPDATE binlane.windows SET work = '{work[0][0]}' WHERE number = 1")
    # one of a single table covers no window
    options = Options(full=True, scope=Scope(tables=("tenant_001.*",)))
    assert verify_channel(channel.config, channel.endpoints, options).state == "clean"
    assert shown(channel, capsys) == (["unverified"], 1)
    assert verify(channel, full=False) == "clean"
    assert shown(channel, capsys) == (["idle"], 0)
    # windows say nothing of the rows that no window touches
    run_on(channel.target, "UPDATE binlane.channels SET created_at = created_at - INTERVAL 40 DAY")
    assert shown(channel, capsys) == (["unverified"], 1)
    assert verify(channel) == "clean"
    assert shown(channel, capsys) == (["idle"], 0)
    run_on(channel.target, "UPDATE binlane.verified SET full_at = full_at - INTERVAL 32 DAY")
    assert shown(channel, capsys) == (["unverified"], 1)


def test_a_failure_lasts_until_the_command_line_has_recovered_from_it(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(60, tenants=4, mix=ROWS)
    window = half_way(channel)
    opened = channel.status.window
    assert opened is not None
    key = PlanKey(CHANNEL, window["window"], opened.plan_digest or "")
    with engine_of(channel.endpoints.target).begin() as connection:
        record_error(connection, key, 1, None, 1062, "DriftError: a row is in the way")
    last = read_plan(window["plan"]).files[1][-1].last_seqno
    run_on(channel.target, f"UPDATE binlane.errors SET seqno = {last}")
    failed = AirflowRuns(ended=(Run("r1", "failed", 1.0, 2.0, ("apply_lane",)),))
    assert shown(channel, capsys, failed) == (["failed", "unfinished"], 2)
    # another lane works, and the one with the error stays where it is
    apply_alone(channel.config, channel.endpoints, window["plan"], 0)
    assert shown(channel, capsys, failed) == (["failed", "unfinished"], 2)
    apply_alone(channel.config, channel.endpoints, window["plan"], 1)
    left_a_minute_ago(channel)
    assert shown(channel, capsys) == (["unfinished"], 0)
    assert shown(channel, capsys, failed) == (["failed", "unfinished"], 0)
    # a lane that a stop has left inside the block fails there again
    stands_at = "SELECT seqno FROM binlane.positions WHERE lane = 1"
    run_on(channel.target, f"UPDATE binlane.errors SET at = UTC_TIMESTAMP(6), reached = ({stands_at})")
    assert shown(channel, capsys) == (["failed", "unfinished"], 2)
    assert channel.go_on(window) is not None
    assert shown(channel, capsys, failed) == (["idle"], 0)


def test_a_target_that_does_not_answer_is_good_on_no_screen(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.connect("target_server", channel.target, port=1)
    assert channel.cli("status", CHANNEL) == 1
    assert channel.cli("check", CHANNEL) == 3
    assert "BINLANE UNKNOWN: " in capsys.readouterr().out
    [card] = get(client_of(channel), "/api/channels")
    assert (card["state"], card["findings"][0]["severity"]) == ("unreachable", "unknown")
    assert f'binlane_up{{channel="{CHANNEL}"}} 0.0' in client_of(channel).get("/metrics").text


def test_a_channel_that_is_not_on_the_target_is_good_on_no_screen(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    run_on(channel.target, "DELETE FROM binlane.channels")
    assert channel.cli("status", CHANNEL) == 1
    assert channel.cli("check", CHANNEL) == 3
    assert "new: " in capsys.readouterr().out
    [card] = get(client_of(channel), "/api/channels")
    assert (card["state"], card["findings"][0]["severity"]) == ("new", "unknown")
