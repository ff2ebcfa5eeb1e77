"""A restored database is what it was at that moment, from every base and on both families."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import zstandard

from binlane.bootstrap.copy_checks import VERSIONED
from binlane.errors import LaneEndedError, PositionError
from binlane.model import Flavor, size_text
from binlane.orchestration import step_progress
from binlane.orchestration.audited import whoami
from binlane.orchestration.commands.copies import restore as restoring
from binlane.orchestration.commands.copies import restore_windows
from binlane.orchestration.commands.copies.restore_list import restores
from binlane.orchestration.commands.run import apply_window
from binlane.orchestration.lane_processes import LaneProcesses
from binlane.restore import ruled_out
from binlane.restore.definers import OWN_ACCOUNT
from binlane.servers.engines import engine_of
from binlane.state.records.progress import RunStep, begin_step, end_step
from tests.integration.precheck.helpers import setting
from tests.integration.restore.scene import (
    DATABASE,
    KINDS,
    OTHER,
    add_times,
    answer,
    archive_of,
    contents,
    scene_of,
)
from tests.integration.window.conftest import Channel, ChannelOf, channel, channel_of, clean_servers, run_on

__all__ = ["channel", "channel_of", "clean_servers"]


@pytest.mark.parametrize("base", ["one.sql", "all.sql.gz", "one.sql.zst", "log"])
@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_database_is_back_as_it_was(
    flavor: Flavor,
    base: str,
    channel_of: ChannelOf,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), () if base == "log" else (base,), files=base == "log")
    if base == "log":
        # the live server's log reaches back to other tests
        archive = archive_of(scene.source, scene.channel.project / "archive", scene.start.partition(":")[0])
        given = (
            "restore", "--from", "log", "--log", str(archive), "--database", DATABASE, "--as", "back", "--before",
            f"DROP DATABASE {DATABASE}", "--onto", "target_server",
        )  # fmt: skip
        assert scene.channel.cli(*given, "--json") == 0
        without = answer(capsys)
        assert scene.channel.cli("archive", "index", str(archive)) == 0
        monkeypatch.setattr(ruled_out, "LEAST", 0)
        assert scene.channel.cli(*given, "--json") == 0
        plan = answer(capsys)
        assert without["ruled_out"] == [] != plan["ruled_out"] == plan["files"][1:3]
        # an index changes nothing of what is approved
        assert plan["digest"] == without["digest"]
        code = scene.channel.cli(*given, "--yes", "--digest", without["digest"])
    else:
        code = scene.restore("--yes", base=base)
    said = capsys.readouterr()
    assert code == 0, said.err
    assert f"complete: back (from {DATABASE})" in said.out
    assert ("2 files passed over" in said.out) == (base == "log")
    assert contents(scene.channel.target, "back") == scene.expected
    assert scene.databases() == {"back"}
    assert scene.channel.cli("restore", "--list", "--json") == 0
    [listed] = answer(capsys)
    assert (listed["stage"], listed["databases"]) == ("complete", {DATABASE: "back"})
    assert scene.channel.cli("restore", "--drop", listed["name"]) == 0
    assert scene.databases() == {"back"}
    assert scene.channel.target.query("SELECT 1 FROM binlane.restores") == []
    assert list((scene.channel.channels.parent / "restores").iterdir()) == []


@pytest.mark.skipif(shutil.which("mydumper") is None, reason="mydumper is not installed")
@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_database_is_back_as_it_was_from_a_folder_of_mydumper(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), ("folder",))
    folder = scene.dump("folder")
    place = ("--at", scene.dumped) if flavor is Flavor.MYSQL else ()  # Debian's mydumper does not know MySQL 9
    if place:
        assert scene.restore("--yes", base="folder") != 0
        assert "give the place with --at FILE:OFFSET" in capsys.readouterr().err
        assert scene.restore("lossy", "--yes", *place, base="folder") != 0
        assert f"rows of {DATABASE}.a: expected values of all columns, found none of at" in capsys.readouterr().err
        assert scene.channel.cli("restore", "--drop", "lossy") == 0
        add_times(folder)
    for end, suffix, pack in (("-schema.sql", ".gz", gzip.compress), (".a.sql", ".zst", zstandard.compress)):
        for file in folder.glob(f"*{end}"):
            file.with_name(file.name + suffix).write_bytes(pack(file.read_bytes()))
            file.unlink()
    # what newer versions record
    rows = f"[config]\nquote-character = BACKTICK\n\n[`{DATABASE}`.`a`]\nreal_table_name=a\nrows = 3\n"
    recorded = folder / "metadata"
    recorded.write_text(recorded.read_text() + rows)
    assert scene.restore("--yes", *place, base="folder") == 0, capsys.readouterr().err
    said = capsys.readouterr()
    assert "records neither the sql_mode of routines" in said.out
    assert contents(scene.channel.target, "back") == scene.expected
    assert scene.databases() == {"back"}
    recorded.write_text(recorded.read_text().replace("rows = 3", "rows = 4"))
    assert scene.restore("lacks", "--yes", "--as", "back2", *place, base="folder") != 0
    assert f"expected 4 rows of {DATABASE}.a, as its file metadata says, found 3" in capsys.readouterr().err
    assert scene.channel.cli("restore", "--drop", "lacks") == 0
    assert scene.databases() == {"back"}
    next(folder.glob(f"{DATABASE}.a.sql*")).unlink()
    assert scene.restore("gone", "--yes", "--as", "back2", *place, base="folder") != 0
    assert f"expected files {DATABASE}.a.*.sql with 4 rows, found none" in capsys.readouterr().err
    recorded.write_text(recorded.read_text().replace("Finished", "Begun"))
    assert scene.restore("cut", "--yes", "--as", "back2", *place, base="folder") != 0
    assert "the dump was cut" in capsys.readouterr().err


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_database_is_back_as_it_was_from_a_folder_of_mysql_shell(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), ("shell",), also=KINDS)
    folder = scene.dump("shell")
    root = folder / "@.json"
    root.write_text(json.dumps({**json.loads(root.read_text()), "options": {"excludeTables": [f"{DATABASE}.gone"]}}))
    assert scene.restore("--json", base="shell") == 0
    [*_, left_out] = answer(capsys)["believed"]
    assert f"(it was made with excludeTables: {DATABASE}.gone)" in left_out
    assert scene.restore("--yes", base="shell") == 0, capsys.readouterr().err
    assert left_out in " ".join(capsys.readouterr().out.split())
    assert contents(scene.channel.target, "back") == scene.expected
    assert scene.restore("part", "--yes", "--table", "parts", "--as", "back_part", base="shell") == 0
    part = contents(scene.channel.target, "back_part")
    assert part["tables"] == [("parts", "BASE TABLE")]
    assert part["rows of parts"] == scene.expected["rows of parts"]
    both = ("both", "--yes", "--database", OTHER, "--as", "back_%")
    assert scene.restore(*both, base="shell") == 0, capsys.readouterr().err
    assert contents(scene.channel.target, f"back_{DATABASE}") == scene.expected
    complete = {"back", "back_part", f"back_{DATABASE}", f"back_{OTHER}"}
    assert scene.databases() == complete
    done = folder / "@.done.json"
    text = done.read_text()
    recorded = json.loads(text)
    recorded["tableRows"][DATABASE]["a"] += 1
    done.write_text(json.dumps(recorded))
    assert scene.restore("lacks", "--yes", "--as", "back3", base="shell") != 0
    assert f"expected 4 rows of {DATABASE}.a, as its @.done.json says, found 3" in capsys.readouterr().err
    assert scene.channel.cli("restore", "--drop", "lacks") == 0
    assert scene.databases() == complete
    done.write_text(text)
    next(folder.glob(f"{DATABASE}@a@0.tsv.zst")).unlink()
    assert scene.restore("gone", "--yes", "--as", "back3", base="shell") != 0
    assert f"expected the file {DATABASE}@a@0.tsv.zst, found none" in capsys.readouterr().err
    done.unlink()
    assert scene.restore("cut", "--yes", "--as", "back3", base="shell") != 0
    assert "the dump was cut, or is being made" in capsys.readouterr().err


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_database_is_restored_beside_itself_on_the_server_whose_log_is_read(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), ("one.sql",))
    source, other = scene.source, contents(scene.source, OTHER)
    scene.channel.connect("target_server", source)
    try:
        assert scene.restore("--yes", base="one.sql") == 0, capsys.readouterr().err
        assert contents(source, "back") == scene.expected
        assert contents(source, OTHER) == other
    finally:
        run_on(source, "DROP DATABASE IF EXISTS back", "DROP DATABASE IF EXISTS binlane")


@pytest.mark.parametrize("flavor", list(Flavor))
def test_one_table_is_restored_with_its_triggers(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), ("one.sql",))
    for given, said in {
        ("--table", "c"): "refers to table a, which is not restored; restore it, too: --table a",
        ("--table", "gone"): "expected table gone at",
        ("--table", "a*"): "--table a*: expected the name of a table",
        ("--table", "a", "--database", OTHER, "--as", "%_back"): "expected one --database with it, found 2",
    }.items():
        base = "log" if OTHER in given else "one.sql"
        assert scene.restore("part", "--yes", *given, base=base) != 0
        assert said in capsys.readouterr().err, given
        assert scene.channel.cli("restore", "--extend", "part", "--until", "now") != 0
        scene.channel.cli("restore", "--drop", "part")
    assert scene.databases() == set()
    assert scene.restore("--yes", "--table", "a", base="one.sql") == 0, capsys.readouterr().err
    assert "and their triggers; what is counted below is the database's" in capsys.readouterr().out
    found = contents(scene.channel.target, "back")
    table = {name: scene.expected[name] for name in ("rows of a", "definition of a", "triggers")}
    assert found == {**table, "tables": [("a", "BASE TABLE")], "routines": [], "events": []}
    assert scene.channel.cli("restore", "--extend", "restore_back", "--until", "now") != 0
    assert "expected a restore of whole databases, found one of a" in capsys.readouterr().err


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_complete_restore_goes_on_to_a_later_end(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), ("one.sql",))
    capsys.readouterr()
    assert scene.restore("--json", base="one.sql") == 0
    plan = answer(capsys)
    name, early = plan["name"], plan["before"][3]["place"]
    archive = archive_of(scene.source, scene.channel.project / "archive", scene.start.partition(":")[0])
    in_archive = ("--log", str(archive), "--until", early)
    assert scene.restore("--yes", *in_archive[:2], base="one.sql", end=in_archive[2:]) == 0, capsys.readouterr().err
    assert contents(scene.channel.target, "back") != scene.expected
    # from the archive to the server that wrote it
    later = ("restore", "--extend", name, "--log", "source_server", "--before", f"DROP DATABASE {DATABASE}")
    for given, said in {
        ("--until", "now"): "found it dropped before",
        ("--until", "2020-01-01"): "expected a time behind the base",
        (): "expected one of the two",
        ("--log", "target_server", "--until", "now"): "expected ",
    }.items():
        assert scene.channel.cli("restore", "--extend", name, *given, "--yes") != 0
        assert said in capsys.readouterr().err
    assert scene.channel.cli(*later, "--json") == 0
    found = answer(capsys)
    assert (found["begin"], found["end"]) == (early, plan["end"])
    assert found["databases"] == {DATABASE: {"final": "back", "until_complete": "back"}}
    # what an attempt leaves that is killed behind its first writes
    target = scene.channel.target
    file = scene.channel.channels.parent / "restores" / f"{name}.toml"
    text = file.read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(restoring, "_to_the_end", lambda *_, **__: "killed")
        assert scene.channel.cli(*later, "--yes") == 0
    assert target.query("SELECT stage FROM binlane.restores") == [("extending",)]
    live = re.sub("^archive = .*$", 'connection = "source_server"', text, flags=re.MULTILINE)
    assert plan_left_out(file.read_text()) == plan_left_out(live.replace("back_unfinished", "back"))
    assert scene.channel.cli("restore", "--continue", name) == 0, capsys.readouterr().err
    assert contents(target, "back") == scene.expected
    assert scene.databases() == {"back"}
    assert scene.channel.cli("restore", "--drop", name) == 0
    assert scene.databases() == {"back"}


def plan_left_out(text: str) -> str:
    return re.sub("^# plan: .*$", "", text, flags=re.MULTILINE)


def test_databases_of_a_pattern_are_restored_together(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    scene = scene_of(channel, ("all.sql", "one.sql"))
    for given, said in {
        ("--as", "back", "--database", "store*"): "expected a name with %",
        ("--as", "back", "--database", "shop*"): "expected database shop*, found",
        ("--as", "%_back", "--database", "mysql"): "neither the server's own",
        ("--as", "a*b"): "a*b: expected a name without",
        ("--as", "%" * 20): "expected a name of at most",
    }.items():
        assert scene.restore("--yes", *given, base="all.sql") != 0
        assert said in capsys.readouterr().err, given
    assert scene.restore("--yes", "--database", "*", base="log") != 0
    assert "found a pattern" in capsys.readouterr().err
    assert scene.databases() == set()
    assert scene.restore("--yes", "--database", "store_*", "--as", "%_back", base="all.sql") == 0, (
        capsys.readouterr().err
    )
    assert scene.databases() == {f"{DATABASE}_back", f"{OTHER}_back"}
    assert contents(channel.target, f"{DATABASE}_back") == scene.expected
    # what came behind the end has moved the next number, too
    run_on(channel.source, f"DELETE FROM {OTHER}.a WHERE v = 'after;;'", f"ALTER TABLE {OTHER}.a AUTO_INCREMENT = 11")
    assert contents(channel.target, f"{OTHER}_back") == contents(channel.source, OTHER)


def test_a_plan_writes_nothing_and_says_where_it_ends(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    scene = scene_of(channel)
    assert scene.restore("--json", base="one.sql") == 0
    plan = answer(capsys)
    assert plan["databases"] == {DATABASE: {"final": "back", "until_complete": "back_unfinished"}}
    assert plan["first_behind"]["statements"] == [f"DROP DATABASE {DATABASE}"]
    assert (plan["transactions"], plan["rows"]) == (14, 12)
    assert len(plan["before"]) == 10
    assert plan["definers"] == ["binlane@%"]
    assert [each["rows"] for each in plan["before"]][-1] == {f"{DATABASE}.a": 1}
    assert plan["same_second"]["behind"] >= 1
    culprit, last = plan["first_behind"]["gtid"], plan["before"][-1]["gtid"]
    for end in (("--before", culprit), ("--until", last), ("--until", plan["end"])):
        assert scene.restore("--json", base="one.sql", end=end) == 0
        assert answer(capsys)["end"] == plan["end"]
    assert scene.databases() == set()
    assert not (channel.channels.parent / "restores").exists()


def test_a_table_whose_history_the_dump_lacks_is_named_in_the_plan_and_at_the_end(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    made = "CREATE TABLE prices (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING"
    scene = scene_of(channel, also=(made, "INSERT INTO prices VALUES (1, 1), (2, 2)", "UPDATE prices SET v = 3"))
    named = f"{DATABASE}.prices ({VERSIONED})"
    assert scene.restore("--json", base="one.sql") == 0
    assert answer(capsys)["not_exact"] == [named]
    assert scene.restore("--yes", base="one.sql") == 0, capsys.readouterr().err
    said = " ".join(capsys.readouterr().out.split())
    assert f"{named}: the text of a dump has six digits" in said[said.index("complete: ") :]
    assert contents(channel.target, "back") == scene.expected
    every = "SELECT COUNT(*) FROM {}.prices FOR SYSTEM_TIME ALL"
    assert scene.source.query(every.format(OTHER)) == [(4,)]
    assert channel.target.query(every.format("back")) == [(2,)]


def test_programs_without_a_definer_are_named_as_those_of_the_account_that_makes_them(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel)
    file = scene.dump("one.sql")
    file.write_bytes(re.sub(rb"DEFINER=`[^`]*`@`[^`]*`", b"", file.read_bytes()))
    assert scene.restore("--json", base="one.sql") == 0
    assert answer(capsys)["definers"] == [OWN_ACCOUNT]
    assert scene.restore(base="one.sql") == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"{OWN_ACCOUNT}: views and programs of the dump run with the privileges" in shown
    assert scene.restore("--yes", base="one.sql") == 0, capsys.readouterr().err
    assert len(contents(channel.target, "back")) == len(scene.expected)


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "a time before the dump": (("--until", "2020-01-01"), "expected a time behind the base"),
    "a time that has not come": (("--until", "2090-01-01"), "the end is behind it"),
    "no time": (("--until", "yesterday"), "expected a time such as"),
    "a place inside a transaction": (("--until", "INSIDE"), "expected a place between two transactions"),
    "a place behind the log": (("--until", "binlog.999999:4"), "found none"),
    "a GTID that is not there": (("--until", "0-1-999999999"), "found none"),
    "a statement that is not there": (("--before", "DROP DATABASE other"), "found none"),
    "a statement that is there twice": (("--before", "TWICE"), "found 2: "),
    "a moment at which it is dropped": (("--until", "now"), "found it dropped before"),
    "two ends": (("--until", "now", "--before", "0-1-1"), "expected one of the two"),
}


def test_bad_input_is_one_error_and_nothing_is_written(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    scene = scene_of(channel)
    capsys.readouterr()
    assert scene.restore("--json", base="one.sql") == 0
    last = answer(capsys)["before"][-2]["place"]
    run_on(scene.source, f"USE {OTHER}", f"CREATE DATABASE {DATABASE}", f"CREATE TABLE {DATABASE}.a (id INT)",
           f"INSERT INTO {DATABASE}.a VALUES (1)", f"DROP DATABASE {DATABASE}")  # fmt: skip
    found = []
    inside = f"{last.partition(':')[0]}:{int(last.partition(':')[2]) + 50}"
    for case, (end, said) in WRONG.items():
        given = [
            inside if each == "INSIDE" else f"DROP DATABASE {DATABASE}" if each == "TWICE" else each for each in end
        ]
        code = scene.restore("--yes", base="one.sql", end=given)
        shown = capsys.readouterr().err
        if code == 0 or said not in shown:
            found.append((case, code, shown))
    assert found == []
    assert scene.databases() == set()
    assert not (channel.channels.parent / "restores").exists()


def test_what_is_taken_or_of_another_server_is_refused(
    channel: Channel, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scene = scene_of(channel)
    for taken in ("back", "back_unfinished"):
        run_on(channel.target, f"CREATE DATABASE {taken}")
        assert scene.restore("--yes", base="one.sql") != 0
        assert f"database {taken}: expected no database of this name" in capsys.readouterr().err
        run_on(channel.target, f"DROP DATABASE {taken}")
    foreign = scene.dump("foreign.sql")
    text = scene.dump("one.sql").read_bytes()
    foreign.write_bytes(text.replace(b"gtid_slave_pos='", b"gtid_slave_pos='77-7-7,"))
    assert scene.restore("--yes", base="foreign.sql") != 0
    assert "the dump is of another server" in capsys.readouterr().err
    cut = scene.dump("cut.sql")
    cut.write_bytes(text[: len(text) // 2])
    assert scene.restore("--yes", base="cut.sql") != 0
    assert "it was cut; take a whole one" in capsys.readouterr().err
    assert scene.databases() == set()


def test_a_load_that_fails_is_kept_out_of_sight_and_begun_again(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel)
    file = scene.dump("one.sql")
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"INSERT INTO `c`", b"INSERT INTO `x`"))
    assert scene.restore("r1", "--yes", base="one.sql") != 0
    assert "store_042.x" in (said := capsys.readouterr().err) or "back_unfinished.x" in said
    assert scene.databases() == {"back_unfinished"}
    assert scene.restore("r1", "--yes", base="one.sql") != 0
    assert "--continue r1" in capsys.readouterr().err
    assert channel.cli("restore", "--extend", "r1", "--until", "now") != 0
    said = capsys.readouterr().err
    assert "expected a complete one, found it" in said
    assert "--continue r1" in said
    assert channel.cli("restore", "--extend", "r2", "--until", "now") != 0
    assert "expected the file of a restore r2, found none; `binlane restore --list`" in capsys.readouterr().err
    file.write_bytes(whole)
    assert channel.cli("restore", "--continue", "r1") != 0
    assert "expected the dump with which the restore r1 was planned" in capsys.readouterr().err
    assert channel.cli("restore", "--drop", "r1") == 0
    assert scene.databases() == set()
    assert scene.restore("r1", "--yes", base="one.sql") == 0
    assert contents(channel.target, "back") == scene.expected


def test_only_a_restore_goes_on_with_its_windows(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another window would end at the log's end of now, behind the DROP that the restore was made for."""
    scene = scene_of(channel)

    def killed(channel: object, *_: object) -> None:
        raise LaneEndedError("channel r1: the process of a lane was killed: `binlane run r1` continues it")

    with monkeypatch.context() as patch:
        patch.setattr(LaneProcesses, "apply", killed)
        assert scene.restore("r1", "--yes", base="one.sql") != 0
    assert "`binlane restore --continue r1` continues it" in capsys.readouterr().err
    restores = str(channel.channels.parent / "restores")
    for command in ("run", "follow"):
        assert channel.cli(command, "r1", "--channels", restores) != 0
        assert "`binlane restore --continue r1` goes on to its end" in capsys.readouterr().err
    assert channel.cli("recopy", "r1", "--table", "back.orders", "--yes", "--channels", restores) == 2
    assert "is a restore, whose tables are of its end" in capsys.readouterr().err
    assert channel.cli("resume", "r1", "--channels", restores) == 0
    assert "is resumed; `binlane restore --continue r1`" in capsys.readouterr().out
    assert channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    assert contents(channel.target, "back") == scene.expected
    assert channel.cli("run", "r1", "--channels", restores) != 0
    assert contents(channel.target, "back") == scene.expected


def test_a_restore_is_ended_and_forgotten_without_the_server_of_its_log(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel)
    with monkeypatch.context() as patch:
        patch.setitem(restoring._STAGES, "moving", Mock(side_effect=PositionError("killed")))
        assert scene.restore("r1", "--yes", base="one.sql") != 0
    # nothing listens there
    channel.environment["AIRFLOW_CONN_SOURCE_SERVER"] = "mysql://binlane:x@127.0.0.1:1/?ssl_mode=disabled"
    assert channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    assert contents(channel.target, "back") == scene.expected
    assert channel.cli("restore", "--drop", "r1") == 0
    assert "restore r1: forgotten" in capsys.readouterr().out


@pytest.mark.parametrize("lost", ["gone", "empty"])
def test_a_restore_whose_file_is_lost_can_be_forgotten(
    lost: str, channel: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel)
    with monkeypatch.context() as patch:
        patch.setitem(restoring._STAGES, "rolling", Mock(side_effect=PositionError("killed")))
        assert scene.restore("r1", "--yes", base="one.sql") != 0
    file = channel.channels.parent / "restores" / "r1.toml"
    assert channel.cli("restore", "--drop", "r1", "--onto", "target_server") != 0
    assert "`binlane restore --drop r1`, without --onto" in capsys.readouterr().err
    if lost == "gone":
        file.unlink()
    else:
        file.write_text("")
        assert channel.cli("restore", "--drop", "r1", "--onto", "source_server") != 0
        assert f"its file {file} stays" in capsys.readouterr().err
        assert file.exists()
    for asked in (("--continue", "r1"), ("--drop", "r1")):
        assert channel.cli("restore", *asked) != 0
        assert "`binlane restore --drop r1 --onto CONNECTION` forgets it on that target" in capsys.readouterr().err
    assert channel.cli("restore", "--drop", "r1", "--onto", "target_server") == 0, capsys.readouterr().err
    said = capsys.readouterr().out
    assert "it was rolling; these databases stay, drop those that you do not want: back_unfinished" in said
    assert scene.databases() == {"back_unfinished"}
    assert not file.exists()
    run_on(channel.target, "DROP DATABASE back_unfinished", log=False)
    assert scene.restore("r1", "--yes", base="one.sql") == 0, capsys.readouterr().err
    assert contents(channel.target, "back") == scene.expected


def test_a_connection_that_a_shell_does_not_know_loses_no_file_of_a_restore(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel)
    with monkeypatch.context() as patch:
        patch.setitem(restoring._STAGES, "rolling", Mock(side_effect=PositionError("killed")))
        assert scene.restore("r1", "--yes", base="one.sql") != 0
    file = channel.channels.parent / "restores" / "r1.toml"
    known = channel.environment.pop("AIRFLOW_CONN_SOURCE_SERVER")
    monkeypatch.delenv("AIRFLOW_CONN_SOURCE_SERVER", raising=False)
    capsys.readouterr()
    assert channel.cli("restore", "--continue", "r1") != 0
    said = capsys.readouterr().err
    assert "AIRFLOW_CONN_SOURCE_SERVER" in said
    assert "forgets" not in said
    assert channel.cli("restore", "--drop", "r1", "--onto", "target_server") != 0
    assert "`binlane restore --drop r1`, without --onto" in capsys.readouterr().err
    assert file.exists()
    channel.environment["AIRFLOW_CONN_SOURCE_SERVER"] = known
    assert channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    assert contents(channel.target, "back") == scene.expected


def test_the_list_says_how_far_a_restore_is(
    channel: Channel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, seen = scene_of(channel), []
    load = restoring._STAGES["loading"]

    def listed() -> dict[str, object]:
        [found] = json.loads(str(restores(channel.channels, as_json=True)))
        assert found["by"] == whoami()
        return {key: found[key] for key in ("stage", "running", "progress", "share", "error", "next_steps")}

    def loading(*arguments: Any) -> None:
        seen.append(listed())
        load(*arguments)

    def rolling(*arguments: Any) -> Any:
        engine = engine_of(channel.endpoints.target)
        begin_step(engine, "r1", RunStep.EXTRACT, "w1", done=5 << 20, total=10 << 20)
        seen.append(listed())
        end_step(engine, "r1", "w1")
        apply_window(*arguments)
        raise PositionError("killed")

    def told(*arguments: Any) -> Iterator[bytes]:
        yield from step_progress.told_load(*arguments)
        seen.append(listed())

    for key, value in channel.environment.items():
        monkeypatch.setenv(key, value)
    with monkeypatch.context() as patch:
        patch.setattr(step_progress, "SECONDS", 0.0)
        patch.setattr(restoring, "told_load", told)
        patch.setitem(restoring._STAGES, "loading", loading)
        patch.setattr(restore_windows, "apply_window", rolling)
        assert scene.restore("r1", "--yes", base="one.sql") != 0
    seen.append(listed())
    assert scene.channel.cli("restore", "--continue", "r1") == 0, capsys.readouterr().err
    seen.append(listed())
    text, again = "reading the log: 5.0 MiB of 10.0 MiB", ["binlane restore --continue r1"]
    nothing = {"progress": None, "share": None, "error": None, "next_steps": again}
    begun, loaded = seen[0], seen.pop(1)
    of = size_text(len(scene.dump("one.sql").read_bytes()))
    assert begun.pop("progress") == f"loading the dump: 0 B of {of}"
    assert re.fullmatch(rf"loading the dump: \d[\d.]* \w+ of {of}", str(loaded.pop("progress"))) is not None
    assert (begun.pop("share"), 0.5 < float(str(loaded.pop("share"))) <= 1.0) == (0.0, True)
    assert begun == loaded
    assert seen == [
        {"stage": "loading", "running": True, "error": None, "next_steps": again},
        nothing | {"stage": "rolling", "running": True, "progress": text, "share": 0.5},
        nothing | {"stage": "rolling", "running": False},
        nothing | {"stage": "complete", "running": False, "next_steps": ["binlane restore --drop r1"]},
    ]


def test_a_disk_that_does_not_hold_the_log_is_named_before_anything_is_written(
    channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of("mariadb", "mariadb"), ("one.sql",))
    usage = shutil.disk_usage(scene.channel.project)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda place: usage._replace(free=1_000))
        assert scene.restore("--yes", base="one.sql") != 0
    assert "free, for the log from" in capsys.readouterr().err
    assert scene.databases() == set()
    assert not [*scene.channel.project.rglob("restores/*.toml")]
    # the way on: as much is free
    assert scene.restore("--yes", base="one.sql") == 0
    assert contents(scene.channel.target, "back") == scene.expected


@pytest.mark.parametrize("flavor", list(Flavor))
def test_an_account_without_privileges_is_told_at_once_what_the_restore_needs(
    flavor: Flavor, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value))
    target = scene.channel.target
    run_on(target, f"CREATE USER test_restorer IDENTIFIED BY '{target.password}'", log=False)
    scene.channel.connect("target_server", target, "test_restorer")
    assert scene.restore("--yes", base="one.sql") == 1
    said = capsys.readouterr().err
    assert re.search(r"target: account: expected the \d+ privileges of the statements below, found none of them", said)
    assert "nothing was written" in said
    assert scene.databases() == set()
    typed = re.findall(r"^  (GRANT .*);  -- on the target, target_server \(test_restorer@", said, re.MULTILINE)
    if flavor is Flavor.MYSQL:
        # the definer of the database's programs holds it
        typed.append("GRANT SYSTEM_USER ON *.* TO test_restorer")
    run_on(target, *typed, log=False)
    with setting(target, "log_bin_trust_function_creators", "ON"):
        assert scene.restore("--yes", base="one.sql") == 0, capsys.readouterr().err
    assert contents(target, "back") == scene.expected


def test_a_view_over_a_database_that_is_not_restored_is_named_if_the_account_may_not_read_there(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    scene, target = scene_of(channel), channel.target
    file = scene.dump("one.sql")
    whole = file.read_bytes()
    file.write_bytes(whole.replace(b"from `a` where", b"from `elsewhere`.`a` where"))
    assert file.read_bytes() != whole
    run_on(target, f"CREATE USER test_restorer IDENTIFIED BY '{target.password}'", log=False)
    channel.connect("target_server", target, "test_restorer")
    for _ in range(2):
        code, said = scene.restore("--yes", base="one.sql"), capsys.readouterr()
        run_on(target, *re.findall(r"^  (GRANT .*);  -- on the target", said.err, re.MULTILINE), log=False)
        run_on(target, "SET GLOBAL log_bin_trust_function_creators = ON", log=False)
    run_on(target, "SET GLOBAL log_bin_trust_function_creators = OFF", log=False)
    assert code == 0, said.err
    assert re.search(
        r"VIEW `w` AS .* \(1142\).*: it was not made, because an object that it needs is not there", said.out
    )
    assert target.query("SELECT table_name FROM information_schema.views WHERE table_schema = 'back'") == [("wl",)]
