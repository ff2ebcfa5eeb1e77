"""A restore whose databases are gone, or whose extension was interrupted: nothing is called complete, nothing of
production changes its name, and what the message names leads out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import Mock

import pytest

from binlane.bootstrap.sessions import Session
from binlane.errors import PositionError
from binlane.orchestration import steps
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.commands.copies.restore_windows import apply_windows
from binlane.orchestration.lane_processes import LaneProcesses
from binlane.restore import final_names
from binlane.restore.final_names import moved
from binlane.state.leases import load_lease
from tests.integration.restore.scene import answer, contents, scene_of
from tests.integration.restore.test_replace import former_of
from tests.integration.window.conftest import Channel, channel, channel_of, clean_servers, run_on

__all__ = ["channel", "channel_of", "clean_servers"]


@pytest.mark.parametrize("stage", ["apply_windows", "require_replaceable_now", "change_places", "move"])
def test_a_database_that_is_gone_is_no_restored_one(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    scene = scene_of(channel)
    target, former = channel.target, former_of(scene)
    right: Callable[..., Any] = getattr(restoring, stage)
    calls = 0

    def dropped(*given: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if stage == "change_places":
            # the attempt is killed in front of it
            run_on(target, "DROP DATABASE back_unfinished", log=False)
            raise KeyboardInterrupt
        found = right(*given, **options)
        if calls == 1 and stage != "move":
            run_on(target, "DROP DATABASE back_unfinished", log=False)
        elif stage == "move":
            run_on(target, "DROP DATABASE back", log=False)
            raise KeyboardInterrupt
        return found

    with monkeypatch.context() as patch:
        patch.setattr(restoring, stage, dropped)
        assert scene.restore("r1", "--replace", "--yes", base="one.sql") != 0
    assert calls == 1
    said = capsys.readouterr().err
    if stage in ("change_places", "move"):
        assert scene.channel.cli("restore", "--continue", "r1") != 0
        said = capsys.readouterr().err
    lost = "database back on the target" if stage == "move" else "database back_unfinished at"
    assert f"expected {lost}" in said
    if stage != "move":
        assert {name: str(value) for name, value in contents(target, "back").items()} == former
        assert scene.databases() == {"back"}
    assert scene.channel.cli("restore", "--drop", "r1") == 0, capsys.readouterr().err
    again = ("--as", "back2") if stage == "move" else ("--replace",)
    assert scene.restore("r2", *again, "--yes", base="one.sql") == 0, capsys.readouterr().err
    assert contents(target, "back2" if stage == "move" else "back") == scene.expected


def test_a_load_whose_lease_is_lost_ends_nothing_and_meets_no_other_one(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, target = scene_of(channel), channel.target
    right = restoring._load_dump

    def killed(running: Any, found: Any, own: Session, session: Session) -> None:
        right(running, found, own, session)
        # the session with the lease of the restore is idle while a dump is loaded, and somebody ends idle sessions
        [(idle,)] = session.texts("SELECT CONNECTION_ID()")
        run_on(target, f"KILL {idle}", log=False)
        for option in ("--continue", "--drop"):
            assert channel.cli("restore", option, "r1") != 0
            assert "restore r1: another process works on it" in capsys.readouterr().err
        assert channel.cli("restore", "--list", "--json") == 0
        assert [each["running"] for each in answer(capsys)] == [True]
        own.execute(f"DO RELEASE_LOCK('{load_lease('r1')}')")

    with monkeypatch.context() as patch:
        patch.setattr(restoring, "_LEASE_SECONDS", 0)
        patch.setattr(restoring, "_load_dump", killed)
        assert scene.restore("r1", "--yes", base="one.sql") != 0
    assert "restore r1: lost the lease of its load" in capsys.readouterr().err
    assert target.query("SELECT 1 FROM binlane.channels WHERE channel = 'r1'") == []
    assert channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    assert contents(target, "back") == scene.expected


def test_a_replaced_database_that_has_lost_its_tables_has_a_way_out(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_of(channel)
    former_of(scene)

    def emptied(*given: Any) -> None:
        apply_windows(*given)
        run_on(channel.target, "DROP TABLE back.child, back.a", log=False)

    with monkeypatch.context() as patch:
        patch.setattr(restoring, "apply_windows", emptied)
        assert scene.restore("r1", "--replace", "--yes", base="one.sql") != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "found none; `binlane restore --drop r1`, drop the database, then begin the restore again" in said
    assert scene.channel.cli("restore", "--drop", "r1") == 0, capsys.readouterr().err
    run_on(channel.target, "DROP DATABASE back", log=False)
    assert scene.restore("r1", "--replace", "--yes", base="one.sql") == 0, capsys.readouterr().err
    assert contents(channel.target, "back") == scene.expected
    assert scene.databases() == {"back"}


@pytest.mark.parametrize("is_planned", [True, False])
def test_an_extension_that_was_interrupted_goes_to_no_earlier_end(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_planned: bool
) -> None:
    scene = scene_of(channel)
    capsys.readouterr()
    assert scene.restore("--json", base="one.sql") == 0
    places = [each["place"] for each in answer(capsys)["before"]]
    assert scene.restore("r1", "--yes", base="one.sql", end=("--until", places[3])) == 0, capsys.readouterr().err
    before = contents(channel.target, "back")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if is_planned:
            patch.setattr(LaneProcesses, "apply", interrupted)
        else:
            patch.setattr(steps, "adopt_plan", interrupted)
        assert scene.channel.cli("restore", "--extend", "r1", "--until", places[8], "--yes") != 0
    capsys.readouterr()
    earlier = scene.channel.cli("restore", "--extend", "r1", "--until", places[6], "--yes")
    said = " ".join(capsys.readouterr().err.split())
    if is_planned:
        assert earlier != 0
        assert f"restore r1: expected an end at {places[8]} or behind it" in said
        assert contents(channel.target, "back") == before
        assert scene.channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    else:
        assert earlier == 0, said
    reached = channel.target.query("SELECT source_file, source_offset FROM binlane.channels WHERE channel = 'r1'")
    assert [f"{file}:{offset}" for file, offset in reached] == [places[8 if is_planned else 6]]
    with monkeypatch.context() as patch:
        patch.setattr(LaneProcesses, "apply", interrupted)
        assert scene.channel.cli("restore", "--extend", "r1", "--until", places[9], "--yes") != 0
    capsys.readouterr()
    assert scene.channel.cli("restore", "--drop", "r1") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"are at no moment of the log: a part of them may be at {places[8 if is_planned else 6]}, others" in said
    assert f"on the way to {places[9]}" in said
    assert scene.databases() == {"back"}


def test_a_move_that_a_crashed_server_has_done_in_part_goes_on(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, target = scene_of(channel), channel.target
    with monkeypatch.context() as patch:
        patch.setitem(restoring._STAGES, "moving", Mock(side_effect=PositionError("killed")))
        assert scene.restore("r1", "--yes", base="one.sql") != 0
    # as MariaDB before 10.6 leaves them behind a crash in RENAME TABLE
    run_on(target, "CREATE DATABASE back", "RENAME TABLE back_unfinished.late TO back.late", log=False)
    capsys.readouterr()
    assert scene.channel.cli("restore", "--drop", "r1") != 0
    assert "its databases are getting their final names" in capsys.readouterr().err
    run_on(target, "CREATE TABLE back.mine (id INT PRIMARY KEY)", log=False)
    assert scene.channel.cli("restore", "--continue", "r1") != 0
    assert "found table back.mine" in capsys.readouterr().err
    run_on(target, "DROP TABLE back.mine", log=False)
    assert scene.channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    assert contents(target, "back") == scene.expected
    assert scene.databases() == {"back"}


THEIRS: Final = (
    "CREATE DATABASE back",
    "CREATE TABLE back.mine (id INT PRIMARY KEY)",
    "CREATE PROCEDURE back.p() SELECT 'mine'",
)


@pytest.mark.parametrize("way_out", ["continue", "drop"])
def test_what_somebody_has_made_under_the_final_name_stays_theirs(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, way_out: str
) -> None:
    scene = scene_of(channel)
    target = channel.target
    with monkeypatch.context() as patch:
        # RENAME TABLE fails behind the CREATE DATABASE
        patch.setattr(final_names, "moved", lambda each, new: f"{moved(each, new)}, back.gone TO {new}.gone")
        assert scene.restore("r1", "--yes", base="one.sql") != 0
    assert scene.databases() == {"back", "back_unfinished"}
    run_on(target, "DROP DATABASE back", *THEIRS, log=False)
    theirs = contents(target, "back")
    capsys.readouterr()
    assert scene.channel.cli("restore", "--continue", "r1") != 0
    said = " ".join(capsys.readouterr().err.split())
    assert "expected no database of this name, or an empty one, found procedure back.p" in said
    assert contents(target, "back") == theirs
    if way_out == "drop":
        assert scene.channel.cli("restore", "--drop", "r1") == 0, capsys.readouterr().err
        assert scene.databases() == {"back"}
        assert contents(target, "back") == theirs
    else:
        run_on(target, "DROP DATABASE back", "CREATE DATABASE back", log=False)
        assert scene.channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
        assert contents(target, "back") == scene.expected
