"""Drifted rows of real targets set right after a plan, and nothing else written."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.errors import DriftError, PlanError, WindowBusyError
from binlane.orchestration import steps
from binlane.orchestration.commands import repair
from binlane.orchestration.commands.repair import StoredPlan, apply_plan, make_plan, read_stored
from binlane.orchestration.request import WindowRequest
from binlane.repair import execution as run_module
from binlane.repair.execution import RepairResult
from binlane.repair.plan import Action, RepairPlan
from binlane.servers.engines import engine_of
from binlane.state.records.repairs import note_plan, save_repair
from binlane.verify.outcome import Options
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.servers import PrivateServer
from tests.integration.window.conftest import CHANNEL, Channel, channel, clean_servers, fresh_channel, run_on

__all__ = ["channel", "clean_servers"]

TABLES = (
    "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
    "CREATE TABLE tenant_1.t (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, note VARCHAR(40), f FLOAT, d DOUBLE, "
    "at TIMESTAMP(3) NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(3), b BLOB, j JSON, e ENUM('x', 'y'), "
    "v INT AS (u + 1) VIRTUAL, s VARCHAR(50) AS (CONCAT(note, '!')) STORED)",
    "CREATE TABLE tenant_1.p (name VARCHAR(20) CHARACTER SET latin1 PRIMARY KEY)",
    "CREATE TABLE tenant_1.c (id INT PRIMARY KEY, p VARCHAR(20) CHARACTER SET latin1, "
    "FOREIGN KEY (p) REFERENCES tenant_1.p (name) ON DELETE CASCADE)",
    "CREATE TABLE tenant_1.bare (a INT)",
    "CREATE TABLE tenant_1.fires (id INT PRIMARY KEY, n INT)",
)
ROWS = (
    "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
    "INSERT INTO tenant_1.t (id, u, note, f, d, at, b, j, e) VALUES "
    + ", ".join(
        f"({n}, {n}, 'n''o\\\\te ü {n}', {n / 3!r}, -1.7976931348623157e308, '2026-01-02 03:04:05.678', "
        f"""X'00FF27{n:02x}', '{{"n": {n}, "s": "a\\\\"b"}}', {n % 2 + 1})"""
        for n in range(21)
    ),
    "INSERT INTO tenant_1.p VALUES ('é'), ('b')",
    "INSERT INTO tenant_1.c VALUES (1, 'é'), (2, 'b'), (3, 'é')",
    "INSERT INTO tenant_1.bare VALUES (1)",
    "INSERT INTO tenant_1.fires VALUES (1, 1)",
)
DRIFT = (
    "SET SESSION foreign_key_checks = 0",
    "DELETE FROM tenant_1.t WHERE id IN (0, 20)",
    "INSERT INTO tenant_1.t (id, u, note) VALUES (500, 20, 'in the way')",
    "UPDATE tenant_1.t SET u = -1 WHERE id = 1",
    "UPDATE tenant_1.t SET u = 1 WHERE id = 2",
    "UPDATE tenant_1.t SET u = 2 WHERE id = 1",
    "UPDATE tenant_1.t SET note = 'mine', b = NULL, d = 0, j = '{}' WHERE id = 7",
    "DELETE FROM tenant_1.p WHERE name = 'é'",
    "DELETE FROM tenant_1.c WHERE id = 1",
    "INSERT INTO tenant_1.p VALUES ('gone')",
)
REPAIRED = ("t", "p", "c")


@pytest.fixture
def drifted(channel: Channel) -> Channel:
    return drift(channel)


def drift(channel: Channel) -> Channel:
    for server in (channel.source, channel.target):
        run_on(server, *TABLES, *ROWS, log=False)
    run_on(channel.target, *DRIFT, log=False)
    return channel


def plan(channel: Channel) -> StoredPlan:
    return make_plan(CHANNEL, channel.channels, Options(full=True))[1]


def rows(server: PrivateServer) -> dict[str, list[tuple[object, ...]]]:
    return {table: server.query(f"SELECT * FROM tenant_1.{table} ORDER BY 1") for table in REPAIRED}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """The functions read connections from it, as the command line does."""
    if "drifted" in request.fixturenames:
        for name, value in request.getfixturevalue("drifted").environment.items():
            monkeypatch.setenv(name, value)


@pytest.mark.parametrize("families", [("mysql", "mysql"), ("mariadb", "mysql")], ids="-".join)
def test_changed_missing_and_extra_rows_are_set_right_and_all_else_is_left(
    families: tuple[str, str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    servers = (request.getfixturevalue(f"{families[0]}_source"), request.getfixturevalue(f"{families[1]}_target"))
    channel = drift(fresh_channel(*servers, tmp_path, clean_servers))
    run_on(
        channel.target,
        "CREATE TRIGGER tenant_1.fired BEFORE UPDATE ON tenant_1.fires FOR EACH ROW SET NEW.n = 9",
        "UPDATE tenant_1.fires SET n = 5",
        "DELETE FROM tenant_1.bare",
        log=False,
    )
    assert channel.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 1  # two tables are left
    said = capsys.readouterr().out
    assert "tenant_1.t: 2 to insert, 3 to update, 1 to delete\n  insert id=0: u=0 note='n''o\\\\te ü 0' " in said
    assert "  delete id=500: u=20 note='in the way' f=NULL " in said
    assert "  delete name='gone'" in said
    # the changed columns alone, strings as text
    assert "  update id=7: note='mine' becomes 'n''o\\\\te ü 7'; " in said
    assert "; b=NULL becomes 4 bytes of SHA-256 " in said
    assert "tenant_1.fires: not repaired: statements would fire its triggers (fired)" in said
    assert "tenant_1.bare: not repaired: it has no primary key" in said
    assert "tenant_1.fired: not repaired: trigger tenant_1.fired: exists on the target and not on the source" in said
    assert "4 rows inserted, 3 updated, 2 deleted on the target; 0 were already right" in said
    assert rows(channel.source) == rows(channel.target)
    assert channel.target.query("SELECT state, inserted, updated, deleted FROM binlane.repairs") == [("done", 4, 3, 2)]
    suspects = channel.target.query("SELECT table_name FROM binlane.suspects")
    assert {table for (table,) in suspects} == {"fires", "fired", "bare"}
    assert channel.cli("verify", CHANNEL, "--full") == 1
    assert "3 drift" in capsys.readouterr().out


def test_a_repair_ended_in_the_middle_is_finished_by_the_same_plan(
    drifted: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored = plan(drifted)
    monkeypatch.setattr(run_module, "BATCH", 1)
    calls: list[object] = []

    def dies(*arguments: object, **named: object) -> None:
        calls.append(arguments)
        if len(calls) == 5:
            raise KeyboardInterrupt  # inside the transaction
        save_repair(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(run_module, "save_repair", dies)
    with pytest.raises(KeyboardInterrupt):
        apply_plan(CHANNEL, drifted.channels, stored)
    assert rows(drifted.source) != rows(drifted.target)
    monkeypatch.setattr(run_module, "save_repair", save_repair)
    again = apply_plan(CHANNEL, drifted.channels, read_stored(CHANNEL, stored.place))
    assert again.equal_rows == 5  # two deleted, two that had exchanged their values, one more
    assert again.inserted + again.updated + again.deleted == len(stored.plan.rows) - 5
    assert rows(drifted.source) == rows(drifted.target)
    assert apply_plan(CHANNEL, drifted.channels, stored) == RepairResult(equal_rows=len(stored.plan.rows))


def test_repair_asks_first_and_compares_rows_again_that_changed_since(
    drifted: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = rows(drifted.target)
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    assert drifted.cli("verify", CHANNEL, "--full", "--repair") == 1
    assert (
        "nothing was repaired; to apply this plan: `binlane verify orders --repair --plan " in capsys.readouterr().out
    )
    assert rows(drifted.target) == before
    [file] = (drifted.work / repair.FOLDER).glob("*.json")
    run_on(drifted.source, "UPDATE tenant_1.t SET note = 'later' WHERE id = 7")
    run_on(drifted.target, "DELETE FROM tenant_1.p WHERE name = 'gone'", log=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    for chosen in (("--full",), ("--database", "a"), ("--table", "a.t"), ("--shard", "a")):
        assert drifted.cli("verify", CHANNEL, "--repair", "--plan", str(file), *chosen) == 2
    assert drifted.cli("verify", CHANNEL, "--repair", "--plan", str(file)) == 1
    assert "1 were already right; 1 not repaired, because the source has changed them since" in capsys.readouterr().out
    assert drifted.run() is not None
    assert drifted.cli("verify", CHANNEL, "--full", "--repair", "--yes") == 0
    assert "nothing to repair" in capsys.readouterr().out
    assert rows(drifted.source) == rows(drifted.target)


def test_a_plan_that_no_longer_fits_is_refused_and_nothing_is_written(drifted: Channel) -> None:
    stored = plan(drifted)
    before = rows(drifted.target)

    def refused(error: type[Exception], text: str, place: str = stored.place) -> None:
        with pytest.raises(error, match=text):
            apply_plan(CHANNEL, drifted.channels, read_stored(CHANNEL, place))
        assert rows(drifted.target) == before

    changed = json.loads(stored.plan.to_json())
    changed["rows"][0]["key"] = ["4711"]
    other = drifted.project / "changed.json"
    other.write_text(json.dumps(changed))
    refused(PlanError, "the plan was changed after it was written", str(other))
    moved = RepairPlan(CHANNEL, "another", stored.plan.seqno, stored.plan.rows, ())
    other.write_bytes(moved.to_json())
    refused(PlanError, r"found the digest \w+, which binlane\.repairs does not have", str(other))
    with engine_of(drifted.endpoints.target).begin() as connection:
        note_plan(connection, CHANNEL, moved.digest, str(other), moved.seqno, "somebody")
    refused(PlanError, "where the plan was made, found", str(other))
    elsewhere = RepairPlan("elsewhere", stored.plan.uuid, stored.plan.seqno, stored.plan.rows, ())
    other.write_bytes(elsewhere.to_json())
    refused(PlanError, f"expected a plan of the channel {CHANNEL}, found one of elsewhere", str(other))
    assert drifted.cli("verify", CHANNEL, "--yes") == 2
    assert drifted.cli("verify", CHANNEL, "--repair", "--plan", "nowhere.json") == 2
    run_on(drifted.target, "CREATE TRIGGER tenant_1.f BEFORE INSERT ON tenant_1.p FOR EACH ROW SET @a = 1", log=False)
    refused(PlanError, r"tenant_1\.p: statements would fire its triggers")
    run_on(drifted.target, "DROP TRIGGER tenant_1.f", log=False)
    run_on(drifted.source, "UPDATE tenant_1.fires SET n = 3")
    window = steps.extract(drifted.config, drifted.endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    steps.adopt_plan(drifted.config, drifted.endpoints, window["work"])
    refused(WindowBusyError, "nobody applies it now.*a repair cannot write while a window is open")
    drifted.go_on(window)
    refused(PlanError, "at seqno 0, where the plan was made, found .* at seqno 1: ")


def test_rows_that_the_filter_has_kept_are_not_deleted(drifted: Channel) -> None:
    earlier, before = plan(drifted), rows(drifted.target)
    drifted.write_channel('[filter.kinds]\ndelete = "ignore"\n')
    with pytest.raises(PlanError, match="the plan deletes 2 rows of the target, and the channel's filter now keeps"):
        apply_plan(CHANNEL, drifted.channels, earlier)
    assert rows(drifted.target) == before
    made = plan(drifted).plan
    assert {row.action for row in made.rows} == {Action.INSERT, Action.UPDATE}
    kept = {str(each.table) for each in made.left if "rows that only the target has are kept" in each.why}
    assert kept == {"tenant_1.p", "tenant_1.t"}


def test_a_trigger_that_changes_what_is_written_rolls_its_transaction_back(drifted: Channel) -> None:
    drifted.write_channel('allow_triggers = ["tenant_1.p"]\n')
    trigger = "CREATE TRIGGER tenant_1.f BEFORE INSERT ON tenant_1.p FOR EACH ROW SET NEW.name = UPPER(NEW.name)"
    run_on(drifted.target, trigger, log=False)
    with pytest.raises(
        DriftError, match=r"tenant_1\.p, primary key name='é': expected the source's row after the repair, found no row"
    ):
        apply_plan(CHANNEL, drifted.channels, plan(drifted))
    assert drifted.target.query("SELECT name FROM tenant_1.p") == [("b",)]
