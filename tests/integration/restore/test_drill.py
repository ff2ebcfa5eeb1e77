"""A drill finds what differs between the live copy and what a restore brings back, and removes what it has made."""

from __future__ import annotations

import datetime as dt
import random
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

from binlane.model import Flavor
from binlane.orchestration.commands.copies import drill as drilling
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.commands.copies.drill_comparison import compare_restored
from tests.integration.restore.scene import CHANGES, DATABASE, MADE, OTHER, answer, archive_of, take_dump
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, channel, channel_of, clean_servers, run_on

__all__ = ["channel", "channel_of", "clean_servers"]


_WITHOUT_KEY: Final = ("CREATE TABLE heap (v INT)", "INSERT INTO heap VALUES (1)")


class Site:
    """A channel whose target holds two databases, with a dump and an archive of their log."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        source = channel.source
        run_on(source, "FLUSH BINARY LOGS")
        [(first, *_)] = source.query(
            "SHOW BINARY LOG STATUS" if source.flavor is Flavor.MYSQL else "SHOW MASTER STATUS"
        )
        channel.init()
        for database in (DATABASE, OTHER):
            run_on(source, f"CREATE DATABASE {database}", f"USE {database}", *MADE, *_WITHOUT_KEY)
        self.dump = channel.project / "both.sql"
        take_dump(source, self.dump)
        # moments are of different seconds, as the log of MariaDB has them
        for database in (OTHER, DATABASE):
            slow = [each for change in CHANGES for each in (change, "DO SLEEP(0.1)")]
            run_on(source, f"USE {database}", *slow, "FLUSH BINARY LOGS")
        self.archive = archive_of(source, channel.project / "archive", first)
        assert channel.cli("run", CHANNEL) == 0
        # the live copy does not have it yet
        run_on(source, f"INSERT INTO {DATABASE}.heap VALUES (2)")

    def drill(self, *options: str, log: str | None = None) -> int:
        given = ("--from", str(self.dump), "--log", str(self.archive) if log is None else log)
        return self.channel.cli("drill", CHANNEL, *given, *options)

    def left(self) -> tuple[set[str], list[Path], list[tuple[Any, ...]]]:
        """What a drill would have left: databases, files, restores."""
        databases = {name for (name,) in self.channel.target.query("SHOW DATABASES") if "drill" in name}
        folder = self.channel.channels.parent / "restores"
        files = [*folder.iterdir()] if folder.exists() else []
        return databases, files, self.channel.target.query("SELECT channel FROM binlane.restores")


NOTHING: tuple[set[str], list[Path], list[tuple[Any, ...]]] = (set(), [], [])


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_drill_compares_every_row_and_definition_with_the_live_copy(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(channel_of(flavor.value, flavor.value))
    target = site.channel.target
    capsys.readouterr()
    assert site.drill("--json", "--seed", "7") == 0, capsys.readouterr()
    found = answer(capsys)
    assert found["state"] == "equal"
    assert {each["database"] for each in found["databases"]} == {DATABASE, OTHER}
    for each in found["databases"]:
        assert (each["state"], each["differences"], each["error"]) == ("equal", [], "")
        assert each["rows"] == 13
        assert each["definitions"] >= 8
        assert each["place"] != each["compared_at"]
    assert site.left() == NOTHING
    # the same seed again: the same databases and moments
    assert site.drill("--json", "--seed", "7", "--tenants", "1") == 0
    [again] = answer(capsys)["databases"]
    assert again["database"] == found["databases"][0]["database"]
    # the live copy is not what the log says
    run_on(target, f"UPDATE {DATABASE}.a SET v = 'drifted' WHERE id = 3", f"DELETE FROM {OTHER}.late WHERE id = 2",
           f"ALTER TABLE {OTHER}.late ADD COLUMN more INT DEFAULT 4", f"DROP FUNCTION {DATABASE}.f")  # fmt: skip
    assert site.drill() == 1
    said = capsys.readouterr().out
    assert "different: 0 of 2 restored databases equal" in said
    for part in ("primary key id=3: live v='drifted'", "column `more`", "function", "late"):
        assert part in said
    assert site.left() == NOTHING
    assert site.channel.cli("drill", CHANNEL, "--list", "--json") == 0
    listed = answer(capsys)
    assert [each["state"] for each in listed] == ["different", "equal", "equal"]
    assert listed[2] == found


@pytest.mark.parametrize("flavor", list(Flavor))
def test_each_fault_of_an_archive_is_found_by_name(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(channel_of(flavor.value, flavor.value))
    names = sorted(each.name for each in site.archive.iterdir())
    assert len(names) >= 3
    middle = names[1]
    [foreign] = [each for each in site.channel.target.datadir.glob("binlog.[0-9]*") if each.name.endswith("01")]
    number = int(names[-1].rpartition(".")[2])

    def flip(folder: Path) -> None:
        data = bytearray((folder / middle).read_bytes())
        data[-40] ^= 1
        (folder / middle).write_bytes(data)

    faults: dict[str, tuple[Callable[[Path], object], str]] = {
        "missing": (lambda folder: (folder / middle).unlink(), f"after {names[0]} expected number"),
        "first": (lambda folder: (folder / names[0]).unlink(), names[0]),
        "wrong start": (lambda folder: (folder / middle).write_bytes((folder / middle).read_bytes()[4:]), middle),
        "doubled": (
            lambda folder: shutil.copy(folder / middle, folder / f"binlog.{number + 1:06}"), f"binlog.{number + 1:06}",
        ),
        "cut": (lambda folder: (folder / middle).write_bytes((folder / middle).read_bytes()[:-60]), middle),
        "flipped": (flip, middle),
        "foreign": (lambda folder: shutil.copy(foreign, folder / middle), middle),
    }  # fmt: skip
    for name, (put_in, named) in faults.items():
        folder = site.channel.project / f"faulty {name}"
        shutil.copytree(site.archive, folder)
        put_in(folder)
        capsys.readouterr()
        assert site.drill("--json", log=str(folder)) == 1, name
        found = answer(capsys)
        assert (found["state"], found["databases"]) == ("failed", []), name
        assert named in found["error"], (name, found["error"])
    # what an archive cannot tell: a dump that is not of its place, and a dump that lacks a row
    text = site.dump.read_bytes()
    site.dump.write_bytes(text.replace("Zürich".encode(), b"Zurich"))
    assert site.drill("--json", "--tenants", "1") == 1
    [wrong] = answer(capsys)["databases"]
    assert wrong["state"] in ("different", "failed")
    assert "Z" in " ".join(wrong["differences"]) or wrong["error"]
    assert site.left() == NOTHING
    assert [each for (each,) in site.channel.target.query("SELECT DISTINCT state FROM binlane.drills")] != []


def test_a_live_copy_that_moves_on_is_compared_at_its_watermark(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(channel)
    compare, moves = compare_restored, list[tuple[str, ...]]()

    def compared(*given: Any) -> Any:
        if moves:
            run_on(channel.source, f"USE {DATABASE}", *moves.pop(0))
            assert channel.cli("run", CHANNEL) == 0
        return compare(*given)

    monkeypatch.setattr(f"{drilling.__name__}.compare_restored", compared)
    rows = ("UPDATE a SET v = 'later' WHERE id = 3", "DELETE FROM late WHERE id = 2", "INSERT INTO late VALUES (9)")
    moves.append(rows)
    site.dump.write_bytes(site.dump.read_bytes().replace(f"`{OTHER}`".encode(), b"`not_there`"))
    assert site.drill("--json") == 0, capsys.readouterr()
    [found] = answer(capsys)["databases"]
    assert (found["database"], found["state"], found["differences"]) == (DATABASE, "equal", [])
    assert moves == []
    # what the log does not show is compared again at the next watermark
    shift = "ALTER TABLE a ADD COLUMN m{} INT DEFAULT 2"
    moves.append((shift.format(1),))
    assert site.drill("--json") == 0, capsys.readouterr()
    assert moves == []
    # and not called equal, if it never rests
    moves += [(shift.format(number),) for number in (2, 3, 4)]
    assert site.drill() == 1
    said = capsys.readouterr().out
    assert f"not compared: {DATABASE}.a" in said or "not compared: table" in said
    assert "left out: not_there: the live copy does not have it" in said
    assert "incomplete: 0 of 1 restored database" in said


@pytest.mark.parametrize(
    ("stage", "way_out"), [("compare_restored", "--clean"), ("apply_windows", "--json")], ids=["clean", "next drill"]
)
def test_what_a_killed_drill_has_left_is_removed_by_its_record(
    channel: Channel, stage: str, way_out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(channel)
    module = restoring if stage == "apply_windows" else drilling
    run_on(channel.target, "CREATE DATABASE binlane_drill_1_9")
    # of channels of other targets, and of another folder
    folder = channel.channels.parent / "restores"
    folder.mkdir(exist_ok=True)
    foreign = [folder / name for name in ("drill_1_1.toml", f"others.{CHANNEL}.drill")]
    for file in foreign:
        file.write_text('["drill_1_1"]')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, stage, _killed)
        assert site.drill() != 0
    databases, files, restores = site.left()
    assert (len(databases), len(files), len(restores)) == (2, 4, 1)
    [own] = folder.glob("drill_1_1_*.toml")
    assert f'uri = "{channel.work.parent.absolute()}"' in own.read_text()
    assert site.drill(way_out, "--tenants", "1") == 0, capsys.readouterr()
    databases, files, restores = site.left()
    assert (databases, {*files}, restores) == ({"binlane_drill_1_9"}, {*foreign}, [])
    capsys.readouterr()
    assert site.channel.cli("drill", CHANNEL, "--list", "--json") == 0
    # the next drill's record says that the one before was interrupted
    states = {"--clean": ["running"], "--json": ["equal", "interrupted"]}
    assert [each["state"] for each in answer(capsys)] == states[way_out]


def _killed(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_drill_that_cannot_begin_says_why(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    site = Site(channel)
    for settings, said in {
        '[filter.kinds]\ndelete = "ignore"\n': "filter.kinds.delete: the channel leaves out what the log has",
        '[rename]\n"store_*" = "shop_*"\n': "expected a database that the channel orders has on the target",
        '[collations]\nutf8mb4_bin = "utf8mb4_general_ci"\n': "[collations]: the live copy has other collations",
    }.items():
        channel.write_channel(settings)
        assert site.drill() != 0
        assert said in capsys.readouterr().err
    channel.write_channel()
    assert channel.cli("drill", CHANNEL, "--from", str(site.dump)) != 0
    assert "--log: expected where the restores of the drill begin" in capsys.readouterr().err
    channel.write_channel('[drill]\nbase = "gone"\nlog = "gone/"\n')
    channel.target.query("UPDATE binlane.channels SET created_at = created_at - INTERVAL 9 DAY")
    capsys.readouterr()
    assert channel.cli("check", CHANNEL) == 1
    assert "undrilled: no drill has proved that restores work for" in capsys.readouterr().out
    channel.write_channel(f'[drill]\nbase = "{site.dump}"\nlog = "{site.archive}"\n')
    assert channel.cli("drill", CHANNEL, "--tenants", "1") == 0, capsys.readouterr()
    capsys.readouterr()
    assert channel.cli("check", CHANNEL) == 1
    assert "undrilled: no drill has proved that restores work for" in capsys.readouterr().out, "of one alone"
    channel.write_channel(f'[drill]\nbase = "{site.dump}"\nlog = "{site.archive}"\ntenants = 1\n')
    assert channel.cli("drill", CHANNEL) == 0, capsys.readouterr()
    assert site.left() == NOTHING
    capsys.readouterr()
    assert channel.cli("check", CHANNEL) == 0
    assert " drill=" in capsys.readouterr().out
    assert channel.cli("status", CHANNEL) == 0
    assert "the last one equal; restores proved at 20" in " ".join(capsys.readouterr().out.split())
    assert site.drill(log=str(channel.project / "nowhere") + "/") == 1
    capsys.readouterr()
    assert channel.cli("check", CHANNEL) == 1
    assert "undrilled: the last drill was not good: failed" in capsys.readouterr().out
    old = channel.project / "old.sql"
    gtids = (
        b"-- MySQL dump 10.13  Distrib 8.0.31\nSET @@GLOBAL.GTID_PURGED='3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5';\n"
    )
    dumped = (
        site.dump.read_bytes().replace(b"-- CHANGE MASTER TO", b"-- At").replace(b"SET GLOBAL gtid_slave_pos", b"-- At")
    )
    old.write_bytes(gtids + dumped)
    assert channel.cli("drill", CHANNEL, "--from", str(old), "--log", str(site.archive)) != 0
    said = " ".join(capsys.readouterr().out.split())
    assert "which mysqldump 8.0.31 reads without a lock of the rows" in said
    assert "--at" not in said
    assert site.left() == NOTHING


def test_a_database_that_differed_is_named_and_drawn_first_until_a_drill_has_found_it_equal(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(channel)
    # by chance alone the other one would be drawn
    chance = next(seed for seed in count() if random.Random(seed).sample((DATABASE, OTHER), 2)[0] == OTHER)
    monkeypatch.setattr("random.SystemRandom.randrange", lambda *_: chance)
    keys = f'[drill]\nbase = "{site.dump}"\nlog = "{site.archive}"\ntenants = 1\n'
    channel.write_channel(keys)
    capsys.readouterr()

    def drilled(*options: str) -> list[tuple[str, str]]:
        channel.cli("drill", CHANNEL, "--json", *options)
        return [(each["database"], each["state"]) for each in answer(capsys)["databases"]]

    other = channel.project / "other.sql"
    other.write_bytes(site.dump.read_bytes().replace(f"`{DATABASE}`".encode(), b"`not_there`"))
    run_on(channel.target, f"UPDATE {DATABASE}.a SET v = 'drifted' WHERE id = 3")
    assert sorted(drilled("--tenants", "2")) == [(DATABASE, "different"), (OTHER, "equal")]
    assert channel.cli("drill", CHANNEL, "--from", str(other)) == 0
    said = capsys.readouterr().out
    assert "1 of 1 restored database equal" in said
    assert f"left out: {DATABASE} (different, drill 1): the base does not have it" in said
    assert channel.cli("check", CHANNEL) == 1
    assert f"undrilled: not equal when last restored: {DATABASE} (different, drill 1)" in capsys.readouterr().out
    assert channel.cli("status", CHANNEL) == 0
    assert "not equal when last restored" in " ".join(capsys.readouterr().out.split())
    assert drilled() == [(DATABASE, "different")], "first of all"
    [(value,)] = channel.source.query(f"SELECT v FROM {DATABASE}.a WHERE id = 3")
    channel.target.query(f"UPDATE {DATABASE}.a SET v = %s WHERE id = 3", (value,))
    assert drilled() == [(DATABASE, "equal")]
    assert channel.cli("check", CHANNEL) == 0, capsys.readouterr()


def test_a_moment_at_which_a_database_is_not_there_is_drawn_again(
    channel: Channel, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(channel)
    source = channel.source
    [(first,)] = source.query("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%S')")
    run_on(source, f"DROP DATABASE {OTHER}", "DO SLEEP(3)", f"CREATE DATABASE {OTHER}", f"USE {OTHER}", *MADE)
    site.archive = archive_of(source, channel.project / "later", min(each.name for each in site.archive.iterdir()))
    assert channel.cli("run", CHANNEL) == 0
    site.dump.write_bytes(site.dump.read_bytes().replace(f"`{DATABASE}`".encode(), b"`not_there`"))
    drawn = list[float]()
    absent = dt.datetime.fromisoformat(f"{first}+00:00").timestamp() + 2

    def uniform(begins: float, ends: float) -> float:
        drawn.append(absent if len(drawn) < 2 else begins + 1)
        return drawn[-1]

    monkeypatch.setattr("random.Random.uniform", lambda _, *ends: uniform(*ends))
    capsys.readouterr()
    assert site.drill("--json") == 0, capsys.readouterr()
    [found] = answer(capsys)["databases"]
    assert (found["database"], found["state"], len(drawn)) == (OTHER, "equal", 3)
