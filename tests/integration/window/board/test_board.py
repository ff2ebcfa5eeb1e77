"""The board's API on a channel between real servers. That Airflow guards it is tested in tests/dags/test_board.py."""

import hashlib
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi import Header, HTTPException
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from binlane.binlog.row_values import Change, RowDecoder
from binlane.binlog.rows import RowsEvent
from binlane.board import answers
from binlane.board.api import FILES, STATIC, build_app
from binlane.board.host import Host, TriggeredRun
from binlane.connections import environment_resolver
from binlane.health.airflow_runs import AirflowRuns, Run
from binlane.orchestration import steps
from binlane.orchestration.commands.verify import verify_channel
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of
from binlane.state.leases import load_lease
from binlane.state.positions import PlanKey
from binlane.state.records.audit import begin_entry
from binlane.state.records.drills import DIFFERENT, EQUAL, TenantResult, begin_drill, save_drill
from binlane.state.records.history import read_snapshot
from binlane.state.records.journal import record_error
from binlane.state.records.progress import RunStep, begin_step
from binlane.state.records.restores import RestoreDefinition, create_restore
from binlane.verify.outcome import Options
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.traffic import Mix
from tests.integration.window.conftest import CHANNEL, MIXED, Channel, run_on
from tests.one_runner import apply_alone

API = f"/api/channels/{CHANNEL}"
READ, EDIT = {"Authorization": "Bearer reader"}, {"Authorization": "Bearer editor"}


def user_of(authorization: str = Header("")) -> str:
    user = authorization.removeprefix("Bearer ")
    if user not in ("reader", "editor", "stranger"):
        raise HTTPException(401, "Not authenticated")
    return user


Asked = list[tuple[str, str, dict[str, Any]]]
"""Runs that Airflow was asked for: by whom, of which DAG, with what."""


def client_of(
    channel: Channel,
    runs: AirflowRuns | None = None,
    asked: Asked | None = None,
    *,
    is_paused: bool = False,
    fails: Exception | None = None,
) -> TestClient:
    def may(user: Any, method: str, dag_id: str) -> bool:
        assert dag_id == f"replicate_{CHANNEL}"
        return user == "editor" or (user == "reader" and method == "GET")

    def trigger(user: Any, dag_id: str, conf: Mapping[str, Any]) -> TriggeredRun:
        if fails is not None:
            raise fails
        assert asked is not None, "nobody was to start a run"
        asked.append((user, dag_id, dict(conf)))
        return TriggeredRun("manual__7", is_paused)

    host = Host(
        get_user=user_of,
        user_name=str,
        may=may,
        resolve=environment_resolver(channel.environment),
        channels=lambda: channel.channels,
        runs=lambda dag_id: AirflowRuns() if runs is None else runs,
        scheduler_silent=lambda: None,
        trigger=trigger,
        database_error=OperationalError,
    )
    return TestClient(build_app(host), headers=READ)


def test_a_database_that_does_not_answer_is_said_and_can_be_tried_again(
    channel: Channel, caplog: pytest.LogCaptureFixture
) -> None:
    fails = OperationalError("INSERT INTO dag_run", {}, sqlite3.OperationalError("database is locked"))
    client = client_of(channel, fails=fails)
    token = {"X-Binlane-Token": client.get("/api/session", headers=EDIT).json()["token"], **EDIT}
    answer = client.post(f"{API}/verify", json={"full": True}, headers=token)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    said = "a database does not answer, and the web server's log has its error; look at the page, then try again"
    assert answer.json()["detail"] == said
    # its error has the database's host and account, which are not everybody's to see
    assert "a database does not answer: database is locked" in caplog.text


def get(client: TestClient, path: str, headers: dict[str, str] = READ) -> Any:
    answer = client.get(path, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def half_way(channel: Channel) -> dict[str, Any]:
    """A window whose plan is adopted and whose first lane is applied."""
    window = steps.extract(channel.config, channel.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted: dict[str, Any] = steps.adopt_plan(channel.config, channel.endpoints, window["work"])
    return {**window, **adopted}


def test_a_channel_from_its_first_day_to_its_transactions(channel: Channel) -> None:
    client = client_of(channel)
    (card,) = get(client, "/api/channels")
    assert (card["state"], card["mark"]["seqno"], card["progress"]) == ("idle", 0, None)
    channel.traffic(120)
    done = channel.run()
    assert done is not None
    channel.traffic(80, seed=2)
    channel.run()
    found = get(client, API)
    assert found["card"]["mark"]["seqno"] == channel.status.channel.watermark.seqno
    assert found["card"]["mark"]["behind"] >= 0
    newest, oldest = found["history"]
    assert (newest["number"], oldest["number"], oldest["window_id"]) == (2, 1, done["window"])
    assert sum(row["transactions"] for row in found["history"]) == channel.status.channel.watermark.seqno
    for row in found["history"]:
        assert row["state"] == "finished"
        assert row["read"] >= row["written"] > 0
        assert row["behind"] >= 0
        assert row["serialized"] >= row["barriers"] > 0
    assert found["heat"]["windows"] == [2, 1]
    assert [row[0] for row in found["heat"]["transactions"] if row[0]]
    assert get(client, f"{API}/windows?before=2")[0]["number"] == 1
    assert get(client, f"{API}/windows?limit=1")[0]["number"] == 2


@pytest.mark.parametrize("reduce", ["block", "window"])
def test_every_transaction_of_a_window_is_in_one_block_of_one_lane(channel: Channel, reduce: str) -> None:
    """The drill down loses nothing and doubles nothing: lanes, blocks, transactions."""
    channel.write_channel(blocks=f'reduce = "{reduce}"\n')
    channel.traffic(300 if reduce == "window" else 150, mix=MIXED if reduce == "block" else Mix())
    done = channel.run()
    assert done is not None
    client = client_of(channel)
    seqnos: list[int] = []
    page = f"{API}/windows/{done['window']}"
    window = get(client, page)
    for lane in window["lanes"]:
        after, blocks = 0, []
        while after is not None:
            part = get(client, f"{page}/lanes/{lane['lane']}/blocks?after={after}&limit=3")
            blocks += part["blocks"]
            after = part["next_after"]
        assert len(blocks) == lane["blocks"]
        assert all(block["applied"] for block in blocks)
        for block in blocks:
            found = transactions(client, f"{page}/lanes/{lane['lane']}/blocks/{block['first_seqno']}/transactions")
            assert len(found) == block["transactions"]
            assert found[-1]["gtid"] == block["gtid"]
            assert (found[0]["file"], found[0]["offset"]) == (block["file"], block["offset"])
            seqnos += [each["seqno"] for each in found]
    row = window["row"]
    assert sorted(seqnos) == list(range(row["first_seqno"], row["last_seqno"] + 1))


def transactions(client: TestClient, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        part = get(client, f"{path}?after={after}&limit=7")
        found += part["transactions"]
        after = part["next_after"]
    return found


def test_statements_are_for_those_who_may_edit(channel: Channel) -> None:
    with channel.source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE tenant_x")
        cursor.execute("CREATE TABLE tenant_x.t (a INT PRIMARY KEY, b VARCHAR(9) DEFAULT 'secret')")
    done = channel.run()
    assert done is not None
    client = client_of(channel)
    lanes = get(client, f"{API}/windows/{done['window']}")["lanes"]
    (lane,) = [lane for lane in lanes if lane["blocks"]]
    page = f"{API}/windows/{done['window']}/lanes/{lane['lane']}/blocks"
    path = f"{page}/{get(client, page)['blocks'][-1]['first_seqno']}/transactions"
    (shown,) = get(client, path, EDIT)["transactions"]
    assert "secret" in shown["statements"][0]["text"]
    assert "secret" not in client.get(path).text


def test_a_running_window_shows_its_lanes_and_can_be_stopped_and_resumed(channel: Channel) -> None:
    channel.traffic(120)
    window = half_way(channel)
    client = client_of(channel)
    apply_alone(channel.config, channel.endpoints, window["plan"], 0)
    found = get(client, API)
    assert found["card"]["progress"]["planned"]
    assert found["lanes"][0]["done"]
    assert found["lanes"][0]["applied"] == found["lanes"][0]["transactions"]
    assert found["lanes"][-1]["serialized"]
    assert client.post(f"{API}/stop", json={}, headers=READ).status_code == 403
    assert channel.status.window is not None
    assert channel.status.window.stop_at is None
    answer = client.post(f"{API}/stop", json={"now": True}, headers=EDIT)
    assert "at their next block" in answer.json()["message"]
    assert channel.status.window.stop_at == 0
    assert get(client, API)["card"]["state"] in ("stopping", "stopped")
    assert client.post(f"{API}/resume", headers=EDIT).status_code == 200
    assert channel.status.window.stop_at is None
    commands = get(client, f"{API}/records", headers=EDIT)["commands"]
    assert [(each["command"], each["arguments"], each["result"]) for each in commands][:2] == [
        ("resume", "", "done"), ("stop", "--now=True", "done")
    ]  # fmt: skip
    assert get(client, f"{API}/records", headers=READ)["commands"] is None
    answer = client.post(f"{API}/decide", json={"seqno": 5, "ran": True}, headers=EDIT)
    assert (answer.status_code, "no undecided DDL" in answer.text) == (409, True)
    assert channel.go_on(window) is not None


def test_a_transaction_is_skipped_with_a_reason_by_those_who_may_edit(channel: Channel) -> None:
    # no barrier at the end: the first lane would have to bring the others there
    channel.traffic(120, mix=Mix(cross_database=0.0, reference=0.0, ddl=0.0, accounts=0.0, statements=0.0))
    window = half_way(channel)
    client = client_of(channel)
    applied = apply_alone(channel.config, channel.endpoints, window["plan"], 0)["seqno"]
    plan = read_plan(window["plan"])
    assert applied == plan.last_seqno
    page = f"{API}/windows/{window['window']}/lanes"
    mine = get(client, f"{page}/0/blocks")["blocks"][0]["first_seqno"]
    ahead = get(client, f"{page}/1/blocks")["blocks"][-1]["last_seqno"]

    def skip(headers: dict[str, str], **body: Any) -> tuple[int, str]:
        answer = client.post(f"{API}/skip", json={"reason": "<b>OPS-17</b>", **body}, headers=headers)
        return answer.status_code, answer.text

    assert skip(READ, seqno=ahead)[0] == 403
    assert "it is applied already" in skip(EDIT, seqno=mine)[1]
    assert skip(EDIT, seqno=mine)[0] == 409
    assert "expected the reason why the transaction is skipped" in skip(EDIT, seqno=ahead, reason=" ")[1]
    assert "expected one of --seqno, --gtid" in skip(EDIT)[1]
    assert get(client, API)["skips"] == []
    code, said = skip(EDIT, seqno=ahead)
    assert (code, "1 transaction will be skipped" in said) == (200, True)
    (shown,) = get(client, API, EDIT)["skips"]
    assert (shown["seqno"], shown["state"], shown["reason"]) == (ahead, "requested", "<b>OPS-17</b>")
    assert shown["by"] == "editor, on the board"
    assert shown["summary"]
    assert get(client, API)["skips"] == [{**shown, "summary": None}]
    events = f"{API}/skips/{ahead}/events"
    assert client.get(events).status_code == 403
    assert len(client.get(events, headers=EDIT).content) == shown["bytes"]
    assert client.post(f"{API}/cancel-skip", json={"seqno": ahead}, headers=READ).status_code == 403
    assert client.post(f"{API}/cancel-skip", json={"seqno": ahead}, headers=EDIT).status_code == 200
    assert get(client, API)["skips"] == []
    assert skip(EDIT, seqno=ahead)[0] == 200
    assert channel.go_on(window) is not None
    assert [each["state"] for each in get(client, API)["skips"]] == ["skipped"]
    assert client.post(f"{API}/cancel-skip", json={"seqno": ahead}, headers=EDIT).status_code == 409


@pytest.mark.parametrize(
    ("run_state", "expected"), [(None, "failed"), ("running", "failed"), ("failed", "failed"), ("success", "failed")]
)
def test_an_error_is_shown_with_its_way_out(channel: Channel, run_state: str | None, expected: str) -> None:
    channel.traffic(60, tenants=4)
    window = half_way(channel)
    assert channel.status.window is not None
    key = PlanKey(CHANNEL, window["window"], channel.status.window.plan_digest or "")
    hostile = "<img src=x onerror=alert(1)>"
    with engine_of(channel.endpoints.target).begin() as connection:
        record_error(connection, key, 1, None, 1062, hostile)
    run = None if run_state is None else Run("r1", run_state, 1.0, None, ("apply_lane",))
    runs = AirflowRuns(active=run) if run_state == "running" else AirflowRuns(ended=() if run is None else (run,))
    found = get(client_of(channel, runs), API, EDIT)
    assert found["card"]["state"] == expected
    (error,) = found["errors"]
    assert (error["lane"], error["current"], error["text"]) == (1, True, hostile)
    assert "correct the row" in error["way_out"]
    assert channel.go_on(window) is not None


def test_a_target_that_cannot_be_read_is_an_answer(channel: Channel) -> None:
    channel.connect("target_server", channel.target, port=1)
    (card,) = get(client_of(channel), "/api/channels")
    assert card["state"] == "unreachable"
    [finding] = card["findings"]
    assert (finding["severity"], "TargetUnavailableError" in finding["text"]) == ("unknown", True)


def test_a_wrong_file_is_an_answer_and_harms_no_other(channel: Channel) -> None:
    (channel.channels / f"{CHANNEL}.toml").write_text("[lanes]\ncount = 0\n")
    (card,) = get(client_of(channel), "/api/channels")
    assert (card["state"], card["mark"]) == ("unreachable", None)
    assert client_of(channel).get(API).status_code == 409


def test_rows_are_for_those_who_may_edit_whole_in_pages_and_as_they_were_logged(channel: Channel) -> None:
    run_on(
        channel.source,
        "CREATE DATABASE tenant_x",
        "CREATE TABLE tenant_x.t (a INT PRIMARY KEY, note LONGTEXT CHARACTER SET utf8mb4, raw VARBINARY(9))",
    )
    channel.write_channel('[rename]\n"tenant_x" = "renamed_x"\n')
    hostile = "<script>alert(1)</script> \u202egnp.exe 'quoted'"
    with channel.source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("INSERT INTO tenant_x.t VALUES (1, %s, x'00ff'), (2, NULL, x'07')", (hostile,))
        cursor.execute("UPDATE tenant_x.t SET note = %s WHERE a = 2", ("x" * 5_000,))
        cursor.execute("DELETE FROM tenant_x.t WHERE a = 1")
        connection.commit()
    done = channel.run()
    assert done is not None
    client = client_of(channel)
    seqno = channel.status.channel.watermark.seqno
    for lane in range(4):
        page = f"{API}/windows/{done['window']}/lanes/{lane}/blocks"
        for block in get(client, page)["blocks"]:
            if block["first_seqno"] <= seqno <= block["last_seqno"]:
                path = f"{page}/{block['first_seqno']}/transactions"
    assert get(client, path)["rows_shown"] is False
    assert get(client, path, EDIT)["rows_shown"] is True
    assert client.get(f"{path}/{seqno}/rows").status_code == 403
    assert client.get(f"{path}/{seqno + 1}/rows", headers=EDIT).status_code == 404
    assert client.get(f"{path}/{seqno}/rows?after={10**19}", headers=EDIT).status_code == 422
    decoded: list[RowsEvent] = []
    original = RowDecoder.changes

    def counted(self: RowDecoder, event: RowsEvent, where: str = "") -> Iterator[Change]:
        decoded.append(event)
        return original(self, event, where)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RowDecoder, "changes", counted)
        [last_row] = get(client, f"{path}/{seqno}/rows?after=3", EDIT)["rows"]
    # the page's own event alone: of a million rows before it none is decoded
    assert (last_row["kind"], len(decoded)) == ("delete", 1)
    found: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        part = get(client, f"{path}/{seqno}/rows?after={after}&limit=3", EDIT)
        found += part["rows"]
        after = part["next_after"]
    assert [row["kind"] for row in found] == ["insert", "insert", "update", "delete"]
    shown = get(client, f"{path}?after={seqno - 1}&limit=1")["transactions"][0]
    # the log has no names: those of the target's table
    assert [row["columns"] for row in found] == [["a", "note", "raw"]] * 4
    run_on(channel.target, "ALTER TABLE renamed_x.t ADD COLUMN later INT", log=False)
    changed = get(client, f"{path}/{seqno}/rows?limit=1", EDIT)["rows"]
    assert changed[0]["columns"] == ["@1", "@2", "@3"]
    # as many columns, and others
    run_on(channel.target, "ALTER TABLE renamed_x.t DROP COLUMN later, DROP COLUMN raw, ADD raw DATETIME", log=False)
    changed = get(client, f"{path}/{seqno}/rows?limit=1", EDIT)["rows"]
    assert changed[0]["columns"] == ["@1", "@2", "@3"]
    assert {row["table"] for row in found} == {each["name"] for each in shown["tables"]} == {"renamed_x.t"}
    first, second, third, last = found
    assert (first["before"], last["after"]) == (None, None)
    number, note, raw = first["after"]
    assert (number, raw) == ("1", "X'00ff'")
    for part_of_it in ("<script>alert(1)</script>", "\u202egnp.exe", "quoted"):
        assert part_of_it in note
    assert second["after"] == ["2", None, "X'07'"]
    assert third["before"] == second["after"]
    assert third["after"][1].endswith(" ... (5,002 characters)")
    assert len(third["after"][1]) < 1_100
    assert last["before"] == first["after"]


def test_verifications_are_shown_with_what_they_found(channel: Channel) -> None:
    client = client_of(channel)
    assert get(client, API)["verifications"] == []
    channel.traffic(40, mix=Mix(), creates=True)
    channel.run()
    verify_channel(channel.config, channel.endpoints, Options(full=False))
    channel.target.query("CREATE TABLE tenant_001.mine (id INT PRIMARY KEY)")
    verify_channel(channel.config, channel.endpoints, Options(full=True))
    found = get(client, API)
    full, window = found["verifications"]
    through = channel.status.channel.watermark.seqno
    assert (full["kind"], full["state"], full["drift"], full["pending"]) == ("full", "drift", 1, 0)
    assert (window["kind"], window["state"], window["through_seqno"]) == ("window", "clean", through)
    assert window["ended_at"] >= window["started_at"]
    assert full["rows"] >= window["rows"] > 0
    assert full["tables"] > 0
    assert found["verified_through"] == {"window": through}


def test_rows_that_differ_are_listed_with_both_values_to_those_who_may_edit(channel: Channel) -> None:
    run_on(
        channel.source,
        "CREATE DATABASE app",
        "CREATE TABLE app.t (a INT, b VARCHAR(9) CHARACTER SET utf8mb4, n INT, note VARCHAR(2000), PRIMARY KEY (a, b))",
        "INSERT INTO app.t VALUES (1, 'x', 10, 'one'), (2, 'y', 20, NULL), (3, 'z', 30, NULL)",
    )
    assert channel.run() is not None
    client = client_of(channel)
    assert get(client, API, EDIT)["drifted"] == []
    run_on(
        channel.target,
        "UPDATE app.t SET n = 11, note = '<b>' WHERE a = 1",
        "DELETE FROM app.t WHERE a = 2",
        "INSERT INTO app.t VALUES (4, 'ä', NULL, REPEAT('x', 2000))",
        "ALTER TABLE app.t ADD KEY mine (n)",
        log=False,
    )
    verify_channel(channel.config, channel.endpoints, Options(full=True))
    assert get(client, API)["drifted"] is None
    found = get(client, API, EDIT)
    [definition] = [each for each in found["drifted"] if each["note"]]
    assert (definition["table"], "mine" in definition["note"]) == ("app.t", True)
    rows = {tuple(map(tuple, each["key"])): each for each in found["drifted"] if not each["note"]}
    changed, missing, extra = (
        rows[("a", number), ("b", text)] for number, text in (("1", "'x'"), ("2", "'y'"), ("4", "'ä'"))
    )
    assert len(rows) == 3
    assert (changed["missing_on"], missing["missing_on"], extra["missing_on"]) == (None, "target", "source")
    assert changed["columns"] == [
        {"name": "n", "source": "10", "target": "11"},
        {"name": "note", "source": "'one'", "target": "'<b>'"},
    ]
    assert missing["columns"] == [
        {"name": "n", "source": "20", "target": None},
        {"name": "note", "source": None, "target": None},
    ]
    assert len(extra["columns"][1]["target"]) < 1_100
    # a page asks every few seconds: definitions are read again when others are known to differ
    run_on(channel.target, "ALTER TABLE app.t CHANGE n renamed INT", log=False)
    assert get(client, API, EDIT)["drifted"] == found["drifted"]
    back = ("ALTER TABLE app.t CHANGE renamed n INT", "UPDATE app.t SET n = 10, note = 'one' WHERE a = 1")
    run_on(channel.target, *back, log=False)
    verify_channel(channel.config, channel.endpoints, Options(full=True))
    assert len(get(client, API, EDIT)["drifted"]) == len(found["drifted"]) - 1


def test_a_failed_run_stays_to_be_seen_while_the_next_one_runs(channel: Channel) -> None:
    failed = Run("manual__1", "failed", 1.0, 2.0, ("apply_lane",))
    running = AirflowRuns(active=Run("manual__2", "running", 3.0, None), ended=(failed,))
    card = get(client_of(channel, running), API)["card"]
    assert (card["run"]["run_id"], card["run_before"]["run_id"]) == ("manual__2", "manual__1")
    assert card["run_before"]["failed_tasks"] == ["apply_lane"]
    card = get(client_of(channel, AirflowRuns(ended=(failed,))), API)["card"]
    assert (card["run"]["run_id"], card["run_before"]) == ("manual__1", None)


def test_the_heat_map_begins_with_the_newest_window(channel: Channel) -> None:
    for seed in range(3):
        channel.traffic(10, seed=seed, mix=Mix())
        assert channel.run() is not None
    found = get(client_of(channel), API)
    assert found["heat"]["windows"] == [each["number"] for each in found["history"]] == [3, 2, 1]


def test_a_window_that_is_dropped_while_the_channel_is_read_costs_no_answer(channel: Channel) -> None:
    channel.traffic(30)
    half_way(channel)
    snapshot = read_snapshot(engine_of(channel.endpoints.target), CHANNEL)
    assert answers.progress_of(snapshot) is not None
    assert any(lane.transactions for lane in answers.lanes_of(snapshot))
    read_later = replace(snapshot, history=())
    assert answers.progress_of(read_later) is None
    assert {lane.transactions for lane in answers.lanes_of(read_later)} == {0}


def test_a_verification_is_a_run_that_applies_nothing_and_no_window_may_be_left_open(channel: Channel) -> None:
    asked: Asked = []

    def verify(runs: AirflowRuns | None, headers: dict[str, str] = EDIT, **body: Any) -> tuple[int, str]:
        client = client_of(channel, runs, asked, is_paused=runs is None)
        answer = client.post(f"{API}/verify", json=body, headers=headers)
        return answer.status_code, answer.text

    assert verify(None, READ)[0] == 403
    assert asked == []
    code, said = verify(None, full=True)
    assert (code, "run manual__7 of" in said, "begins when the DAG is unpaused" in said) == (200, True, True)
    assert asked == [("editor", f"replicate_{CHANNEL}", {"verify": "full", "verify_only": True})]
    channel.traffic(30)
    window = half_way(channel)
    run = Run("r1", "running", 1.0, None)
    running = AirflowRuns(active=run)
    for others in (AirflowRuns(ended=(replace(run, state="failed"),)), AirflowRuns(active=replace(run, applies=False))):
        code, said = verify(others)
        assert (code, f"window {window['window']} is unfinished" in said, len(asked)) == (503, True, 1)
    code, said = verify(running)
    assert (code, "as soon as no other run of the DAG is active" in said) == (200, True)
    assert asked[1][2] == {"verify": "window", "verify_only": True}
    file = channel.channels / f"{CHANNEL}.toml"
    by_cron = file.read_text()
    file.write_text(by_cron + '[window]\nschedule = "continuous"\n')
    code, said = verify(running)
    assert (code, "choose all tables" in said, len(asked)) == (409, True, 2)
    assert (verify(running, full=True)[0], len(asked)) == (200, 3)
    file.write_text(by_cron.replace('connection = "source_server"', f'archive = "{channel.work}"'))
    code, said = verify(running)
    assert (code, "the channel has an archive" in said, len(asked)) == (409, True, 3)


def test_files_that_were_removed_are_said_to_be(channel: Channel) -> None:
    channel.traffic(30)
    done = channel.run()
    assert done is not None
    WorkFolder(str(channel.work / done["window"])).remove()
    client = client_of(channel)
    assert get(client, f"{API}/windows/{done['window']}")["lanes"]
    answer = client.get(f"{API}/windows/{done['window']}/lanes/0/blocks")
    assert answer.status_code == 404
    for path in ("/windows/none", "/windows/none/lanes/0/blocks"):
        assert client.get(API + path).status_code == 404
    assert client.get("/api/channels/other").status_code == 404


def test_a_user_without_read_access_to_the_dag_sees_nothing_of_the_channel(channel: Channel) -> None:
    stranger = {"Authorization": "Bearer stranger"}
    client = client_of(channel)
    assert get(client, "/api/channels", stranger) == []
    assert client.get(API, headers=stranger).status_code == 404
    assert client.post(f"{API}/stop", json={}, headers=stranger).status_code == 404


def routes(client: TestClient) -> list[tuple[str, str]]:
    app: Any = client.app
    assert all(isinstance(route, APIRoute) for route in app.routes), "a mounted folder would be open to anyone"
    return [(method, route.path) for route in app.routes for method in route.methods]


def test_every_route_answers_401_without_a_user(channel: Channel) -> None:
    client = client_of(channel)
    found = routes(client)
    assert len(found) > 10
    for method, path in found:
        place = path.format(name=CHANNEL, window_id="w", lane=0, first_seqno=1, seqno=1)
        answer = client.request(method, place, headers={"Authorization": ""})
        assert answer.status_code == 401, (method, path)
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert client.get(path).status_code == 404


def test_the_page_loads_nothing_from_elsewhere_and_its_files_are_the_documented_ones(
    channel: Channel, tmp_path: Path
) -> None:
    client = client_of(channel)
    page = client.get("/")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "://" not in page.text
    for name in FILES:
        answer = client.get(f"/static/{name}")
        assert answer.content == (STATIC / name).read_bytes()
        again = client.get(f"/static/{name}", headers={**READ, "If-None-Match": answer.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
    for name in ("README.md", "..%2Fapi.py", "uPlot.LICENSE"):
        assert client.get(f"/static/{name}").status_code == 404
    readme = (STATIC / "README.md").read_text()
    for name in ("uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE"):
        assert f"`{hashlib.sha256((STATIC / name).read_bytes()).hexdigest()}`" in readme


def test_the_pages_scripts_never_parse_data_as_html() -> None:
    for file in STATIC.glob("*.js"):
        if not file.name.startswith("uPlot"):
            text = file.read_text()
            for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
                assert sink not in text, f"{file.name}: {sink}"


CSRF = [
    pytest.param({"X-Binlane-Token": "right"}, 200, id="token"),
    pytest.param({"X-Binlane-Token": "right", "Sec-Fetch-Site": "same-origin"}, 200, id="token, same origin"),
    pytest.param({"X-Binlane-Token": "right", "Origin": "http://testserver"}, 200, id="token, own origin"),
    pytest.param({}, 403, id="cookie alone"),
    pytest.param({"X-Binlane-Token": "wrong"}, 403, id="wrong token"),
    pytest.param({"X-Binlane-Token": "right", "Sec-Fetch-Site": "cross-site"}, 403, id="another site"),
    pytest.param({"X-Binlane-Token": "right", "Sec-Fetch-Site": "same-site"}, 403, id="a neighbour"),
    pytest.param({"X-Binlane-Token": "right", "Origin": "https://evil.example"}, 403, id="another origin"),
    pytest.param({"Authorization": "Basic x", "X-Binlane-Token": ""}, 403, id="another scheme is no bearer"),
    # FastAPI takes these for no bearer at all, and Airflow goes by the cookie
    pytest.param({"Authorization": "Bearer"}, 403, id="an empty bearer"),
    pytest.param({"Authorization": "Bearer "}, 403, id="an empty bearer with a space"),
    pytest.param({"Authorization": "bearer\t"}, 403, id="an empty bearer with a tab"),
    pytest.param({"Authorization": "Bearer x"}, 403, id="a bearer beside the cookie"),
    pytest.param({"Authorization": "Bearer x", "X-Binlane-Token": "right"}, 200, id="a bearer and the token"),
]


@pytest.mark.parametrize(("headers", "expected"), CSRF)
def test_a_cookie_alone_never_acts(channel: Channel, headers: dict[str, str], expected: int) -> None:
    client = client_of(channel)
    app: Any = client.app
    # a session by cookie, as Airflow's
    app.dependency_overrides[user_of] = lambda: "editor"
    cookies = {"_token": "signed.by.airflow"}
    browser = TestClient(app, cookies=cookies)
    token = browser.get("/api/session").json()["token"]
    assert token
    assert "signed" not in token
    sent = {name: token if value == "right" else value for name, value in headers.items()}
    assert browser.post(f"{API}/resume", headers=sent).status_code == expected
    program = TestClient(app)
    assert program.post(f"{API}/resume", headers={"Authorization": "Bearer x"}).status_code == 200
    for none in ("Bearer", "Bearer ", "Basic x"):
        assert program.post(f"{API}/resume", headers={"Authorization": none}).status_code == 403


def test_restores_and_drills_are_shown_to_who_may_read_the_channel_of_their_databases(
    channel: Channel,
) -> None:
    channel.write_channel('[filter]\nexclude_databases = ["audit*"]\n')
    channel.init()
    engine = engine_of(channel.endpoints.target)

    def restore(name: str, database: str, tables: tuple[str, ...] = ()) -> None:
        given = RestoreDefinition(
            "/dumps/d.sql", "/log/", ((database, "back"),), tables, "b.000001:4", "b.000001", 900, "now", (), "", ()
        )
        with engine.begin() as connection:
            create_restore(connection, name, given)
            begin_entry(connection, name, "restore", {}, by="anna")

    client = client_of(channel)
    assert [get(client, f"{API}/records")[each] for each in ("restores", "drills")] == [[], []]
    restore("r1", "tenant_1", ("orders",))
    restore("r2", "audit_1")
    begin_step(engine, "r1", RunStep.LOAD, RunStep.LOAD, done=5 << 20, total=10 << 20)
    with engine.connect() as held:
        held.execute(text("SELECT GET_LOCK(:name, 0)"), {"name": load_lease("r1")})
        [found] = get(client, f"{API}/records", EDIT)["restores"]
    left = found.pop("seconds_left")
    assert left >= 0
    assert 0 < found.pop("began_at") - time.time() + 3600 < 7200
    seen = {
        "name": "r1", "databases": [{"name": "tenant_1", "final": "back"}], "tables": ["orders"],
        "end": "b.000001:900", "reached": None, "stage": "loading", "state": "running",
        "step": "loading the dump: 5.0 MiB of 10.0 MiB", "share": 0.5, "by": "anna",
    }  # fmt: skip
    assert found == seen | {"base": "/dumps/d.sql", "asked": "now", "error": ""}
    [found] = get(client, f"{API}/records", READ)["restores"]
    assert (found["base"], found["asked"], found["error"], found["state"]) == (None, None, None, "interrupted")

    tenants = [TenantResult("a", "a_1", "", "", "", 1, 1, 1, 1.0, state, (), "") for state in (EQUAL, EQUAL, DIFFERENT)]
    with engine.begin() as connection:
        number = begin_drill(connection, CHANNEL, 5, "/dumps/d.sql", "/log/", "anna")
        save_drill(connection, number, 6 << 20, tenants, DIFFERENT, "row 5")
        connection.execute(text("UPDATE binlane.drills SET ended_at = ended_at - INTERVAL 2 DAY"))
    [drill] = get(client, f"{API}/records", READ)["drills"]
    assert (drill["state"], drill["equal"], drill["databases"], drill["error"]) == (DIFFERENT, 2, 3, None)
    assert 172_800 <= drill["age"] < 172_900
    [drill] = get(client, f"{API}/records", EDIT)["drills"]
    assert drill["error"] == "row 5"
