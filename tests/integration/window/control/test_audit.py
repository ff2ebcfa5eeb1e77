"""Every command that changes data or decisions leaves a row in the audit, and does nothing if it cannot."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from binlane.cli.commands import app
from binlane.connections import Endpoint
from binlane.model import Flavor
from binlane.orchestration.audited import audited, whoami
from binlane.servers.engines import engine_of
from binlane.state.records import audit as records
from tests.integration.window.board.test_board import API, EDIT, client_of
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel, channel_of, clean_servers, run_on

__all__ = ["channel", "channel_of", "clean_servers"]

NEW: Final = "newer"
RESTORE: Final = ("--from", "log", "--log", "source_server", "--database", "audited", "--onto", "target_server")
AUDITED: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "stop": ((CHANNEL,), (CHANNEL, "--now")),
    "resume": ((CHANNEL,),),
    "decide": ((CHANNEL, "1", "--ran"),),
    "xa": ((CHANNEL, "--done", "x"), (CHANNEL, "--forget", "x")),
    "skip": ((CHANNEL, "--seqno", "1", "--reason", "r"), (CHANNEL, "--seqno", "1", "--cancel")),
    "replay-skipped": ((CHANNEL, "1"),),
    "verify": ((CHANNEL, "--repair", "--yes", "--plan", "PLAN"),),
    "recopy": ((CHANNEL, "--table", "audited.t", "--yes"),),
    "adopt-target": ((CHANNEL, "--yes"),),
    "init": ((NEW, "--start", "now"),),
    "bootstrap": ((NEW, "--databases", "other"),),
    "restore": (
        ("kept", *RESTORE, "--as", "audited_kept", "--until", "now", "--yes"),
        ("--extend", "done", "--until", "now", "--yes"),
        ("--continue", "done"),
        ("--drop", "done"),
    ),
}
"""The commands with a row, as they are typed."""
WITHOUT: Final = frozenset(
    {
        *("config", "status", "find", "inspect", "archive", "show", "check", "conflicts", "spark-job", "spark-archive"),
        *("new", "version", "grants", "doctor", "plan", "advise", "read-at", "audit"),
        # recorded in binlane.drills, and its restores as all are
        "drill",
        # their windows are recorded in binlane.windows
        *("run", "follow"),
    }
)


def test_each_command_is_in_one_of_the_tables() -> None:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    assert set(group.commands) == {*AUDITED, *WITHOUT}
    assert not WITHOUT & AUDITED.keys()


def rows(channel: Channel, capsys: pytest.CaptureFixture[str], *options: str) -> list[Any]:
    capsys.readouterr()
    assert channel.cli("audit", CHANNEL, "--json", *options) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def state_of(channel: Channel) -> Any:
    """Every row of the target that a command could change."""
    names = [
        f"{schema}.{name}"
        for schema, name in channel.target.query(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND "
            "(table_schema LIKE 'audited%' OR table_schema IN ('binlane', 'other'))"
        )
    ]
    return sorted(channel.target.query("CHECKSUM TABLE " + ", ".join(names)))


@pytest.mark.parametrize("flavor", list(Flavor))
def test_nothing_is_done_before_the_row_is_written_and_each_command_has_one(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(flavor.value, flavor.value)
    source, target = channel.source, channel.target
    run_on(source, "CREATE DATABASE audited", "CREATE TABLE audited.t (id INT PRIMARY KEY, n INT)")
    run_on(source, "INSERT INTO audited.t VALUES (1, 1), (2, 2)")
    assert channel.run() is not None
    assert channel.cli("restore", "done", *RESTORE, "--as", "audited_done", "--until", "now", "--yes") == 0
    text = (channel.channels / f"{CHANNEL}.toml").read_text()
    (channel.channels / f"{NEW}.toml").write_text(text + '[filter]\ninclude_databases = ["other"]\n')
    run_on(source, "CREATE DATABASE other", "CREATE TABLE other.t (id INT PRIMARY KEY)")
    run_on(target, "UPDATE audited.t SET n = 7 WHERE id = 2", log=False)
    channel.cli("verify", CHANNEL, "--full", "--repair")
    [plan] = (channel.work / "repairs").iterdir()
    # the table takes no row more; a trigger on it would be refused by itself
    [(now,)] = target.query("SELECT CAST(NOW(6) AS CHAR)")
    run_on(target, f"ALTER TABLE binlane.audit ADD CONSTRAINT no_row CHECK (at <= '{now}')", log=False)
    before, files = state_of(channel), sorted(channel.project.rglob("restores/*"))
    calls = [(command, *typed) for command, each in AUDITED.items() for typed in each]
    calls = [tuple(str(plan) if word == "PLAN" else word for word in call) for call in calls]
    for call in calls:
        capsys.readouterr()
        assert channel.cli(*call) == 1, call
        said = capsys.readouterr().err
        assert "no_row" in said, call
        assert "Traceback" not in said, call
    assert state_of(channel) == before
    assert sorted(channel.project.rglob("restores/*")) == files

    run_on(target, "ALTER TABLE binlane.audit DROP CONSTRAINT no_row", log=False)
    ended = {}
    for call in calls:
        code = channel.cli(*call)
        newest = rows(channel, capsys, "--all")[0]
        words = [word for word in call if word in ("--now", "--replace")]
        ended[call] = (newest["command"], newest["result"])
        assert newest["command"].split()[0] == call[0], (call, words, newest)
        assert (newest["result"] == "done") == (code == 0), (call, newest)
        assert newest["by"] == whoami()
        assert newest["account"].partition("@")[0] == target.user
        assert newest["ended_at"] >= newest["at"]
        assert (newest["error"] is None) == (code == 0)
    done = {command for command, result in ended.values() if result == "done"}
    assert {"stop", "resume", "verify --repair", "recopy", "adopt-target", "restore", "restore --drop"} <= done
    # the restore is forgotten, and what was done is not
    kinds = [(row["channel"], row["command"]) for row in rows(channel, capsys, "--all")]
    assert ("done", "restore") in kinds
    assert ("done", "restore --drop") in kinds
    [repaired] = [row for row in rows(channel, capsys) if row["command"] == "verify --repair"]
    assert repaired["digest"][:8] in plan.name


def test_a_row_says_what_failed_and_what_is_not_over(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    assert channel.cli("stop", CHANNEL, "--at-seqno", "7") == 1
    newest = rows(channel, capsys)[0]
    assert (newest["command"], newest["arguments"]) == ("stop", {"--at-seqno": "7"})
    assert (newest["result"], newest["error"]) == ("failed", "PositionError")
    assert client_of(channel).post(f"{API}/resume", headers=EDIT).status_code == 200
    assert rows(channel, capsys)[0]["by"] == "editor, on the board"
    with audited(target_of(channel), CHANNEL, "recopy"):
        assert rows(channel, capsys)[0]["result"] == "begun"
        assert rows(channel, capsys)[0]["ended_at"] is None
    assert channel.cli("audit", CHANNEL) == 0
    said = " ".join(capsys.readouterr().out.split())
    for word in ("failed:", "PositionError", "--at-seqno=7"):
        assert word in said


def test_the_newest_rows_of_each_channel_are_kept(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "KEPT", 3)
    monkeypatch.setattr(records, "KEPT_DAYS", 0)
    for name in ("another", *[CHANNEL] * 5):
        with audited(target_of(channel), name, "recopy"):
            pass
    assert [row["channel"] for row in rows(channel, capsys, "--all")] == [*[CHANNEL] * 3, "another"]
    kept = [row["number"] for row in rows(channel, capsys)]
    assert kept == sorted(kept, reverse=True)


def test_nobody_pushes_out_a_young_row_by_cheap_orders(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "KEPT", 3)
    assert channel.cli("stop", CHANNEL) == 0
    for _ in range(5):
        assert channel.cli("resume", CHANNEL) == 0
    capsys.readouterr()
    assert [row["command"] for row in rows(channel, capsys)][:6] == [*["resume"] * 5, "stop"]


def target_of(channel: Channel) -> Endpoint:
    assert engine_of(channel.endpoints.target) is not None
    return channel.endpoints.target
