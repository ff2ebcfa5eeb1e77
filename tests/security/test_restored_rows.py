"""The row of a restore on the target names no other database than the restore's channel file, and runs nothing as
another account.

Attacker: whoever can UPDATE ``binlane.restores`` on the target while an operator continues, extends or drops a restore.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, Final

import pytest

from binlane.errors import PositionError
from binlane.model import Flavor
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.commands.copies.restore_plan import RestorePlan, plan_restore
from tests.integration.restore.scene import DATABASE, Scene, scene_of
from tests.integration.window.conftest import ChannelOf, run_on

STAGES: Final = ("loading", "rolling", "replacing", "moving", "extending", "complete")
ROWS: Final[tuple[dict[str, Any], ...]] = (
    {"databases": [[DATABASE, "other"]]},
    {"databases": [[DATABASE, "back"], ["x", "other"]]},
    {"databases": [[DATABASE, "victim"]]},
    {"databases": [["victim", "back"]]},
    {"databases": [[DATABASE, "back"], [DATABASE, "victim"]]},
    {"databases": [[DATABASE, "back` ; DROP DATABASE victim; -- "]]},
    {"databases": [[DATABASE, "back\0"]]},
    {"databases": [[DATABASE, "BACK"]]},
    {"databases": []},
    {"replaced": [["victim", "victim_replaced"]]},
    {"replaced": [["back", "victim"]]},
    {"tables": ["a"]},
    {"base": "/etc/passwd"},
    {"base": ""},
    {"digest": "0" * 64},
)
"""What is put into the row's definition. A line more is an attack more."""
COMMANDS: Final = (
    ("--continue", "r1"), ("--drop", "r1"), ("--extend", "r1", "--until", "now", "--yes"), ("--list",),
    ("--drop-replaced", "r1"),
)  # fmt: skip
OWNED: Final = (
    "CREATE DEFINER=`root`@`localhost` EVENT `owned` ON SCHEDULE EVERY 1 SECOND ENABLE DO DROP DATABASE victim"
)


def _killed(*_: object) -> None:
    raise PositionError("killed")


def _before_its_names(scene: Scene) -> None:
    """A restore that was killed before its databases get their final names, beside databases of others."""
    for database in ("victim", "other_unfinished", "victim_unfinished"):
        run_on(scene.channel.target, f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(restoring._STAGES, "moving", _killed)
        assert scene.restore("r1", "--yes", base="one.sql") != 0


def _state(scene: Scene) -> set[tuple[str, ...]]:
    found = scene.channel.target.query("SELECT table_schema, table_name FROM information_schema.tables")
    return {(*each,) for each in found if each[0] not in ("binlane", "mysql", "performance_schema")}


def _update(scene: Scene, **values: object) -> None:
    with scene.channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for column, value in values.items():
            cursor.execute(f"UPDATE binlane.restores SET {column} = %s", (value,))


@pytest.mark.parametrize("flavor", list(Flavor))
def test_another_database_than_the_files_is_refused(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value))
    _before_its_names(scene)
    before = _state(scene)
    [(recorded,)] = scene.channel.target.query("SELECT definition FROM binlane.restores")
    for (number, row), (turn, stage) in itertools.product(enumerate(ROWS), enumerate(STAGES)):
        _update(scene, definition=json.dumps(json.loads(recorded) | row), stage=stage)
        # each command with each row and with each stage
        command = COMMANDS[(number + turn) % len(COMMANDS)]
        capsys.readouterr()
        code = scene.channel.cli("restore", *command)
        said = capsys.readouterr()
        what = "the base of" if {"base", "digest"} & {*row} else "the databases of"
        what = "what" if "replaced" in row else what
        where = f"binlane.restores.definition: expected {what}"
        assert where in " ".join((said.out + said.err).split()), (row, stage, command)
        assert code != 0 or command == ("--list",)
        assert _state(scene) == before
    _update(scene, definition=recorded, stage="moving")
    assert scene.channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    assert scene.channel.cli("restore", "--drop", "r1") == 0, capsys.readouterr().err


@pytest.mark.parametrize("database", ["back", "back_unfinished"])
def test_a_database_that_somebody_makes_behind_the_plan_stays(
    database: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of("mariadb", "mariadb"))

    def then_made(*arguments: Any) -> RestorePlan:
        planned = plan_restore(*arguments)
        run_on(scene.channel.target, f"CREATE DATABASE {database}", f"CREATE TABLE {database}.t (a INT)")
        return planned

    monkeypatch.setattr(restoring, "plan_restore", then_made)
    assert scene.restore("r1", "--yes", base="one.sql") != 0
    assert f"database {database}: expected no database of this name" in capsys.readouterr().err
    assert scene.channel.target.query(f"SHOW TABLES FROM {database}") == [("t",)]
    assert scene.channel.cli("restore", "--list") == 0
    assert "r1" not in capsys.readouterr().out


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_recorded_event_does_not_run(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value))
    _before_its_names(scene)
    target = scene.channel.target
    [(recorded,)] = target.query("SELECT programs FROM binlane.restores")
    programs = json.loads(recorded)
    [event] = [each for each in programs["texts"] if each["kind"] == "EVENT"]
    programs["texts"].append(event | {"name": "owned", "statement": OWNED})
    _update(scene, programs=json.dumps(programs))
    assert scene.channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    statuses = target.query("SELECT event_name, status FROM information_schema.events WHERE event_schema = 'back'")
    assert {name for name, _ in statuses} == {"e", "owned"}
    assert {status for _, status in statuses} <= {"SLAVESIDE_DISABLED", "REPLICA_SIDE_DISABLED"}
