"""Restores that are cut at each of their statements, and restores to random transactions, which the server's own
replica judges."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from pathlib import Path
from typing import Final

import pymysql
import pytest

from binlane.model import Flavor
from lab.servers import PrivateServer, private_server
from tests.chaos.proxy import Act, proxy
from tests.integration.restore.scene import DATABASE, Scene, answer, contents, scene_of
from tests.integration.restore.test_replace import FORMER, former_of, kept
from tests.integration.window.conftest import ChannelOf, run_on

_TOKENS: Final = (b"INSERT INTO `a`", b"RENAME TABLE", b"CREATE DEFINER", b"DROP DATABASE")
"""Statements of the load and of the final names; those of windows are cut in tests/chaos."""
_REPLACING: Final = (
    b"CREATE DATABASE `back_replaced`", b"LOCK TABLES", b"DROP TRIGGER IF EXISTS `back`",
    b"DROP EVENT IF EXISTS `back`", b"RENAME TABLE",
    b"ALTER DATABASE `back`", b"CREATE DEFINER", b"DROP VIEW IF EXISTS `back`.`only_former`",
    b"DROP PROCEDURE IF EXISTS `back`", b"DROP DATABASE IF EXISTS `back_unfinished`",
)  # fmt: skip
"""Statements of the change; the connection is lost in front of each, and behind it."""
_MOST_SECONDS: Final = 120.0
_STAGES: Final = ("loading", "rolling", "moving")
_KILLS: Final = 8
"""The first ones at these stages, the others at other times."""


@pytest.mark.parametrize("act", [Act.CUT_AFTER], ids=["behind"])
@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_restore_that_is_cut_at_each_statement_goes_on(
    flavor: Flavor, act: Act, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value))
    target = scene.channel.target
    for number, token in enumerate(_TOKENS):
        with proxy(target.host, target.port) as cut:
            scene.channel.connect("target_server", target, port=cut.port)
            cut.once(token, act)
            assert scene.restore(f"cut{number}", "--yes", base="one.sql") != 0, token
            assert cut.struck == 1, token
        scene.channel.connect("target_server", target)
        left = scene.databases()
        assert "back" not in left or "back_unfinished" in left or _is_moved(scene, number), (token, left)
        capsys.readouterr()
        assert scene.channel.cli("restore", "--continue", f"cut{number}") == 0, capsys.readouterr().err
        assert contents(target, "back") == scene.expected, token
        assert scene.databases() == {"back"}
        assert scene.channel.cli("restore", "--drop", f"cut{number}") == 0
        run_on(target, "DROP DATABASE back")


def _is_moved(scene: Scene, number: int) -> bool:
    """Whether the cut was behind the last statement."""
    [(stage,)] = scene.channel.target.query("SELECT stage FROM binlane.restores WHERE channel = %s", (f"cut{number}",))
    return bool(stage == "moving")


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_replacement_that_is_cut_at_each_statement_goes_on(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value))
    target, former = scene.channel.target, former_of(scene)
    cuts = [(token, act) for token in _REPLACING for act in (Act.CUT_BEFORE, Act.CUT_AFTER)]
    for number, (token, act) in enumerate(cuts):
        name = f"cut{number}"
        with proxy(target.host, target.port) as cut:
            scene.channel.connect("target_server", target, port=cut.port)
            cut.once(token, act)
            assert scene.restore(name, "--replace", "--yes", base="one.sql") != 0, (token, act)
            assert cut.struck == 1, token
        scene.channel.connect("target_server", target)
        tables = {table for (table,) in target.query(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'back' AND table_type = 'BASE TABLE'"
        )}  # fmt: skip
        assert tables in ({"a", "child"}, {"a", "c", "late"}), (token, act)
        if "child" not in tables:
            # a former event would go on, on the restored tables
            events = target.query("SELECT event_name FROM information_schema.events WHERE event_schema = 'back' AND "
                                  "status = 'ENABLED'")  # fmt: skip
            assert events == [], (token, act)
        capsys.readouterr()
        assert scene.channel.cli("restore", "--continue", name) == 0, (token, act, capsys.readouterr().err)
        assert contents(target, "back") == scene.expected, (token, act)
        assert kept(scene) == former, (token, act)
        assert scene.databases() == {"back", "back_replaced"}
        assert scene.channel.cli("restore", "--drop-replaced", name) == 0
        assert scene.channel.cli("restore", "--drop", name) == 0
        run_on(target, "DROP DATABASE back", log=False)
        run_on(target, *FORMER, log=False)


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_restore_whose_processes_are_killed_at_any_time_goes_on(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), ("one.sql",))
    target, stages = scene.channel.target, set[str]()
    begun = time.monotonic()
    assert scene.channel.start(*scene.command("one.sql"), "whole", "--yes").wait() == 0
    seconds = time.monotonic() - begun
    for number in range(_KILLS):
        assert scene.channel.cli("restore", "--drop", scene_name(number - 1)) == 0
        run_on(target, "DROP DATABASE IF EXISTS back")
        with scene.channel.start(*scene.command("one.sql"), scene_name(number), "--yes") as running:
            if number < len(_STAGES):
                await_stage(target, scene_name(number), _STAGES[number])
            else:
                time.sleep(seconds * (number + 1 - len(_STAGES)) / (_KILLS + 1 - len(_STAGES)))
            os.killpg(running.pid, signal.SIGKILL)
        found = target.query("SELECT stage FROM binlane.restores WHERE channel = %s", (scene_name(number),))
        stages |= {stage for (stage,) in found}
        if ("complete",) not in found:
            assert "back" not in scene.databases() or ("moving",) in found
        capsys.readouterr()
        if found:
            assert scene.channel.cli("restore", "--continue", scene_name(number)) == 0, capsys.readouterr().err
        else:
            # it was killed before it had begun, or between its file and its row: both ways are named
            again = scene.channel.cli(*scene.command("one.sql"), scene_name(number), "--yes")
            if again != 0:
                assert f"--drop {scene_name(number)}" in capsys.readouterr().err
                assert scene.channel.cli("restore", "--drop", scene_name(number)) == 0
                assert scene.channel.cli(*scene.command("one.sql"), scene_name(number), "--yes") == 0
        assert contents(target, "back") == scene.expected, (number, found)
        assert scene.databases() == {"back"}
    assert stages >= {"rolling"}, stages


def await_stage(target: PrivateServer, name: str, stage: str) -> None:
    """Return once the restore is at that stage, or behind it: a short one may be missed."""
    end = time.monotonic() + _MOST_SECONDS
    at, awaited = -1, _STAGES.index(stage)
    while at < awaited and time.monotonic() < end:
        with contextlib.suppress(pymysql.Error):  # the schema is not there yet
            rows = target.query("SELECT stage FROM binlane.restores WHERE channel = %s", (name,))
            at = max((_STAGES.index(found) if found in _STAGES else len(_STAGES) for (found,) in rows), default=-1)
        time.sleep(0.002)
    assert at >= awaited


def scene_name(number: int) -> str:
    """The name of a restore; that of the undisturbed one comes before the first."""
    return "whole" if number < 0 else f"killed{number}"


@pytest.mark.parametrize("flavor", list(Flavor))
def test_restores_to_random_transactions_are_what_the_servers_own_replica_holds_there(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    chance = random.Random(20_261_127)
    scene = scene_of(channel_of(flavor.value, flavor.value))
    assert scene.restore("--json", base="one.sql") == 0
    plan = answer(capsys)
    begin, end = _place(plan, "begin"), _place(plan, "end")
    places = [place for place in _commits(scene.source, begin[0]) if begin[1] < place <= end[1]]
    with private_server(tmp_path / "replica", flavor, durable=False) as replica:
        _follow(replica, scene)
        for number, place in enumerate(sorted(chance.sample(places, 10))):
            at = (begin[0], place)
            given = ("--until", f"{at[0]}:{at[1]}")
            assert scene.restore(f"to{number}", "--yes", base="one.sql", end=given) == 0, capsys.readouterr().err
            _replay(replica, at)
            assert contents(scene.channel.target, "back") == contents(replica, DATABASE), at
            assert scene.channel.cli("restore", "--drop", f"to{number}") == 0
            run_on(scene.channel.target, "DROP DATABASE back")


def _place(plan: dict[str, str], word: str) -> tuple[str, int]:
    file, _, offset = plan[word].partition(":")
    return file, int(offset)


def _commits(source: PrivateServer, file: str) -> list[int]:
    """Where transactions end."""
    found = source.query(f"SHOW BINLOG EVENTS IN '{file}'")
    begins = [int(row[1]) for row in found if row[2] in ("Gtid", "Anonymous_Gtid")]
    return begins[1:]


def _follow(replica: PrivateServer, scene: Scene) -> None:
    file, _, offset = scene.start.partition(":")
    source, is_mysql = scene.source, replica.flavor is Flavor.MYSQL
    word = "SOURCE" if is_mysql else "MASTER"
    more = "SOURCE_AUTO_POSITION = 0, GET_SOURCE_PUBLIC_KEY = 1" if is_mysql else "MASTER_USE_GTID = no"
    replica.query(
        f"CHANGE {'REPLICATION SOURCE' if is_mysql else word} TO {word}_HOST = '{source.host}', {word}_PORT = "
        f"{source.port}, {word}_USER = '{source.user}', {word}_PASSWORD = '{source.password}', {word}_LOG_FILE = "
        f"'{file}', {word}_LOG_POS = {offset}, {more}"
    )


def _replay(replica: PrivateServer, place: tuple[str, int]) -> None:
    """Let the server's own replica go on up to the place."""
    word, kind = ("SOURCE", "REPLICA") if replica.flavor is Flavor.MYSQL else ("MASTER", "SLAVE")
    replica.query(f"START {kind} UNTIL {word}_LOG_FILE = '{place[0]}', {word}_LOG_POS = {place[1]}")
    end = time.monotonic() + _MOST_SECONDS
    while time.monotonic() < end:
        status = _status(replica, kind)
        assert not status["Last_SQL_Error"], status["Last_SQL_Error"]
        if status[f"{kind.capitalize()}_SQL_Running"] == "No":
            replica.query(f"STOP {kind}")
            return
        time.sleep(0.05)
    raise AssertionError(f"the replica does not reach {place}")


def _status(replica: PrivateServer, kind: str) -> dict[str, str]:
    with replica.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW {kind} STATUS")
        assert cursor.description is not None
        names = [column[0] for column in cursor.description]
        row = cursor.fetchone()
        assert row is not None
        return dict(zip(names, map(str, row), strict=True))
