"""A channel that is asked to stop stands at one seqno, which is its watermark; resumed, it ends as if nothing was."""

from __future__ import annotations

import datetime as dt
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from binlane.errors import PositionError, StopRequestedError
from binlane.orchestration import steps
from binlane.orchestration.extraction.window_reading import source_of, start_of
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.source.end_position import UntilPosition
from binlane.source.segments import extract
from binlane.state.orders import giving
from binlane.state.orders.stops import clear_stop, request_stop
from binlane.work.files import WorkFolder
from binlane.work.lookup import find_seqnos, read_manifest
from binlane.work.plan_job.job import InProcess, run_plan_job
from binlane.work.planned import PlannedLanes
from lab.traffic import Mix
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on
from tests.one_runner import apply_alone


@pytest.fixture(params=["mariadb", "mysql"])
def channel(request: pytest.FixtureRequest, channel_of: ChannelOf) -> Channel:
    return channel_of(request.param, request.param)


def planned(channel: Channel) -> dict[str, Any]:
    """A window, ready for its lanes."""
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    return steps.adopt_plan(channel.config, channel.endpoints, window["work"])


def rows_without_barriers(channel: Channel) -> None:
    """Transactions of two databases, in a window behind the one that creates them."""
    for name in ("one", "two"):
        run_on(channel.source, f"CREATE DATABASE {name}", f"CREATE TABLE {name}.t (a INT PRIMARY KEY)")
    channel.run()
    run_on(channel.source, *(f"INSERT INTO {('one', 'two')[a % 2]}.t VALUES ({a})" for a in range(60)))


def apply_all(channel: Channel, adopted: dict[str, Any]) -> list[dict[str, Any]]:
    lanes = [each["lane"] for each in adopted["lanes"]]
    with ThreadPoolExecutor(len(lanes)) as pool:
        return list(
            pool.map(lambda lane: steps.apply_lane(channel.config, channel.endpoints, adopted["plan"], lane), lanes)
        )


@pytest.mark.parametrize("reduce", ["block", "window"])
def test_stops_inside_folded_blocks_leave_the_state_of_one_seqno_and_resume_from_there(
    channel: Channel, tmp_path: Path, reduce: str
) -> None:
    channel.write_channel(blocks=f'reduce = "{reduce}"\n')
    if reduce == "window":
        channel.traffic(240, seed=2, mix=Mix(0, 0, 0, 0, 0))
    else:
        channel.traffic(120)
    adopted = planned(channel)
    engine = engine_of(channel.endpoints.target)
    plan = read_plan(adopted["plan"])
    if reduce == "window":
        folder = WorkFolder(adopted["plan"])
        manifest = read_manifest(WorkFolder(str(Path(adopted["plan"]).parent)))
        second = manifest.segments[1].first_seqno
        blocks = [block for lane in plan.all_lanes for block in PlannedLanes(folder, plan).blocks(lane, 0)]
        assert any(block.header.first_seqno < second <= block.header.last_seqno for block in blocks)
        assert max(block.header.transactions for block in blocks) > 20, "blocks as large as their parts prove nothing"
    start = start_of(channel.status.channel.watermark, channel.status.channel.source_identity)
    source = source_of(channel.config, channel.endpoints)
    for seqno in (plan.first_seqno + 33, plan.first_seqno + 34, plan.first_seqno + 101):
        clear_stop(engine, CHANNEL)
        assert request_stop(engine, CHANNEL, at=seqno).seqno == seqno
        results = apply_all(channel, adopted)
        assert {(each["seqno"], each["stopped"]) for each in results} == {(seqno, True)}
        assert "stopped on request" in steps.advance(channel.config, channel.endpoints, adopted["plan"])["note"]
        status = channel.status
        mark = status.channel.watermark
        assert {lane.seqno for lane in status.positions} == {seqno} == {mark.seqno}
        # the place is what an extraction up to it would have stored
        folder = WorkFolder(str(tmp_path / f"until_{seqno}"))
        again = extract(source, start, UntilPosition(mark.source), folder, channel=CHANNEL, window="w")
        assert (again.last_seqno, again.gtid_set, again.fingerprint) == (seqno, mark.gtid_set, mark.fingerprint)
        assert again.end_time == mark.source_time
        with pytest.raises(StopRequestedError, match=f"was asked to stop at seqno {seqno}"):
            steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert channel.target.query("SELECT COUNT(*) > 0 FROM binlane.splits") == [(1,)]
    clear_stop(engine, CHANNEL)
    adopted_again = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert adopted_again["plan"] == adopted["plan"]
    done = channel.go_on(adopted_again)
    assert done["seqno"] == plan.last_seqno
    channel.assert_equal()


def test_a_cleared_run_gives_its_order_to_stop_to_no_other_window(channel: Channel) -> None:
    rows_without_barriers(channel)
    adopted = planned(channel)
    finished = str(Path(adopted["plan"]).parent)
    apply_all(channel, adopted)
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    run_on(channel.source, "INSERT INTO one.t VALUES (101)")
    planned(channel)
    for place in ("highest", str(read_plan(adopted["plan"]).first_seqno)):
        again = steps.adopt_plan(channel.config, channel.endpoints, finished, place)
        assert again["plan"] == adopted["plan"]
        assert channel.status.channel.stopped is None
    with pytest.raises(PositionError, match=r"expected window .* to be open, to stop inside it, found .*nothing was"):
        request_stop(engine_of(channel.endpoints.target), CHANNEL, window_id=Path(finished).name)
    assert channel.status.channel.stopped is None


def test_a_stop_without_a_place_is_at_the_foremost_lane_that_has_work(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lane without work would stand at the window's end at once, and the stop with it."""
    rows_without_barriers(channel)
    adopted = planned(channel)
    plan = read_plan(adopted["plan"])
    assert plan.barriers == ()
    assert [each["lane"] for each in adopted["lanes"]] == [lane.lane for lane in channel.status.positions]
    assert plan.serialized not in {each["lane"] for each in adopted["lanes"]}
    engine, middle = engine_of(channel.endpoints.target), plan.first_seqno + 30
    request_stop(engine, CHANNEL, at=middle)
    apply_all(channel, adopted)
    clear_stop(engine, CHANNEL)
    assert channel.cli("stop", CHANNEL) == 0
    assert f"is stopped at seqno {middle:,}" in " ".join(capsys.readouterr().out.split())
    steps.advance(channel.config, channel.endpoints, adopted["plan"])
    assert channel.status.channel.watermark.seqno == middle
    assert channel.cli("resume", CHANNEL) == 0
    assert channel.cli("run", CHANNEL) == 0
    assert channel.status.channel.watermark.seqno == plan.last_seqno
    channel.assert_equal()


@pytest.mark.parametrize("command", ["stop", "resume"])
def test_an_order_waits_for_a_locked_position_for_a_limited_time_and_names_who_has_it(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    channel.traffic(10)
    planned(channel)
    monkeypatch.setattr(giving, "WAIT_SECONDS", 1)
    rows = {"stop": "binlane.positions", "resume": "binlane.channels"}[command]
    with channel.target.connect() as other, other.cursor() as cursor:
        cursor.execute("SELECT CONNECTION_ID()")
        [(holder,)] = cursor.fetchall()
        cursor.execute(f"SELECT * FROM {rows} FOR UPDATE")
        capsys.readouterr()
        assert channel.cli(command, CHANNEL) == 1
        said = " ".join(capsys.readouterr().err.split())
        assert said.startswith(f"TargetUnavailableError: channel {CHANNEL}: the order is not given, nothing was")
        assert f"connection {holder} since" in said
        assert channel.status.channel.stopped is None
        other.rollback()
    assert channel.cli(command, CHANNEL) == 0


def test_a_step_that_waits_for_a_lock_does_not_say_that_the_server_is_away(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(10)
    channel.target.query("SET GLOBAL innodb_lock_wait_timeout = 1")
    with channel.target.connect() as other, other.cursor() as cursor:
        cursor.execute("SELECT * FROM binlane.channels FOR UPDATE")
        capsys.readouterr()
        assert channel.cli("run", CHANNEL) == 1
        said = " ".join(capsys.readouterr().err.split())
        other.rollback()
    channel.target.query("SET GLOBAL innodb_lock_wait_timeout = DEFAULT")
    assert "another session has locked what this step needs" in said
    assert "host and port" not in said
    assert channel.cli("run", CHANNEL) == 0
    channel.assert_equal()


def test_stop_and_resume_on_the_command_line(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    channel.traffic(60)
    adopted = planned(channel)
    reached = read_plan(adopted["plan"]).first_seqno + 31
    assert channel.cli("stop", CHANNEL, "--at-seqno", str(reached)) == 0
    assert f"its lanes stop at seqno {reached}" in " ".join(capsys.readouterr().out.split())
    assert channel.cli("run", CHANNEL) == 0
    assert f"stopped on request at seqno {reached}" in " ".join(capsys.readouterr().out.split())
    assert channel.status.channel.watermark.seqno == reached
    assert channel.cli("run", CHANNEL) == 1
    assert "StopRequestedError" in capsys.readouterr().err
    assert channel.cli("stop", CHANNEL, "--now", "--at-seqno", "3") == 2
    assert channel.cli("stop", CHANNEL, "--at-seqno", str(reached - 1)) == 1
    assert channel.cli("resume", CHANNEL) == 0
    assert channel.cli("run", CHANNEL) == 0
    channel.assert_equal()
    last = channel.status.channel.watermark.seqno
    assert channel.cli("stop", CHANNEL) == 0
    assert f"is stopped at seqno {last}" in " ".join(capsys.readouterr().out.split())
    channel.traffic(10, seed=3)
    assert channel.cli("run", CHANNEL) == 1
    assert channel.status.channel.watermark.seqno == last


def test_a_stop_inside_a_window_that_has_no_plan_yet_is_carried_out(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(20)
    assert channel.run() is not None
    channel.traffic(40, seed=2)
    assert steps.extract(channel.config, channel.endpoints, WindowRequest("now"))["plan"] is None
    before = channel.status.channel.watermark.seqno
    assert channel.cli("stop", CHANNEL, "--at-seqno", str(before + 9)) == 0
    assert f"its lanes stop at seqno {before + 9:,}" in " ".join(capsys.readouterr().out.split())
    assert channel.cli("run", CHANNEL) == 0, capsys.readouterr().err
    assert channel.status.channel.watermark.seqno == before + 9
    # there, and without a plan at the place where it stands already, the channel is stopped
    assert channel.cli("run", CHANNEL) == 1
    assert channel.cli("resume", CHANNEL) == 0
    assert channel.cli("run", CHANNEL) == 0
    channel.traffic(10, seed=3)
    steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    assert channel.cli("stop", CHANNEL) == 0
    assert channel.cli("run", CHANNEL) == 1
    window = channel.status.window
    assert window is not None
    assert window.plan_digest is None


def test_a_stop_at_a_gtid_is_behind_it_and_one_at_a_time_before_it(channel: Channel) -> None:
    channel.traffic(40)
    adopted = planned(channel)
    plan = read_plan(adopted["plan"])
    window = channel.status.window
    assert window is not None
    folder = WorkFolder(window.bounds.work.uri)
    [found] = find_seqnos(folder, plan.first_seqno + 7, plan.first_seqno + 7)
    assert channel.cli("stop", CHANNEL, "--at-gtid", found.gtid) == 0
    stopped = channel.status.window
    assert stopped is not None
    assert stopped.stop_at == found.seqno
    times = [each.commit_time for each in find_seqnos(folder, plan.first_seqno, plan.last_seqno)]
    later = next((at for at, time in enumerate(times) if time >= times[0] + 0.001), None)
    if later is not None:
        moment = dt.datetime.fromtimestamp(times[later], dt.UTC).isoformat()
        assert channel.cli("stop", CHANNEL, "--at-time", moment) == 0
        stopped = channel.status.window
        assert stopped is not None
        assert stopped.stop_at == plan.first_seqno + later - 1
    assert channel.cli("stop", CHANNEL, "--at-gtid", "77-1-1") == 1
    assert channel.cli("stop", CHANNEL, "--at-time", "2030-01-01") == 1


def test_status_tells_marks_gaps_holders_lag_and_orders_to_a_program(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    channel.traffic(40)
    adopted = planned(channel)
    plan = read_plan(adopted["plan"])
    stop = plan.first_seqno + 11
    request_stop(engine_of(channel.endpoints.target), CHANNEL, at=stop, by="carol")
    apply_alone(channel.config, channel.endpoints, adopted["plan"], 0)
    capsys.readouterr()
    assert channel.cli("status", CHANNEL, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    at = {lane.lane: lane.seqno for lane in channel.status.positions}
    assert (found["low_water"], found["high_water"]) == (min(at.values()), stop)
    assert {each["lane"]: each["gap"] for each in found["lanes"]} == {
        lane: None if seqno == stop else [seqno + 1, stop] for lane, seqno in at.items()
    }
    assert found["lag_transactions"] == plan.last_seqno - min(at.values())
    assert found["window"]["stop_at"] == stop
    assert "by carol" in found["stopped"]
    assert {each["held_by_connection"] for each in found["lanes"]} == {None}
    assert channel.cli("status", CHANNEL) == 0
    assert "by carol" in capsys.readouterr().out


def test_lanes_that_have_ended_at_a_stop_go_on_if_it_is_cancelled_then(
    channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.traffic(40)
    adopt, advance, behind = steps.adopt_plan, steps.advance, list[int]()

    def order(*arguments: str) -> None:
        process = channel.start(*arguments)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said

    def stopped(*arguments: Any, **named: Any) -> Any:
        adopted = adopt(*arguments, **named)
        order("stop", CHANNEL, "--at-seqno", "10")
        return adopted

    def resumed(*arguments: Any) -> Any:
        if not behind:
            order("resume", CHANNEL)
            behind.extend(lane.seqno for lane in channel.status.positions)
        return advance(*arguments)

    monkeypatch.setattr(steps, "adopt_plan", stopped)
    monkeypatch.setattr(steps, "advance", resumed)
    assert channel.cli("run", CHANNEL) == 0
    assert set(behind) == {10}
    channel.assert_equal()
    assert channel.target.query("SELECT COUNT(*), MIN(state) FROM binlane.windows") == [(1, "finished")]
