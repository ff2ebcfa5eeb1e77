"""A restored database is what it was at that moment, from every base and on both families."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.model import Flavor
from tests.integration.restore.scene import (
    DATABASE,
    OTHER,
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
    flavor: Flavor, base: str, channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of(flavor.value, flavor.value), () if base == "log" else (base,))
    if base == "log":
        # the live server's log reaches back to other tests
        archive = archive_of(scene.source, scene.channel.project / "archive", scene.start.partition(":")[0])
        code = scene.channel.cli(
            "restore", "--from", "log", "--log", str(archive), "--database", DATABASE, "--as", "back", "--before",
            f"DROP DATABASE {DATABASE}", "--onto", "target_server", "--yes",
        )  # fmt: skip
    else:
        code = scene.restore("--yes", base=base)
    said = capsys.readouterr()
    assert code == 0, said.err
    assert f"complete: back (from {DATABASE})" in said.out
    assert contents(scene.channel.target, "back") == scene.expected
    assert scene.databases() == {"back"}
    assert scene.channel.cli("restore", "--list", "--json") == 0
    [listed] = answer(capsys)
    assert (listed["stage"], listed["databases"]) == ("complete", {DATABASE: "back"})
    assert scene.channel.cli("restore", "--drop", listed["name"]) == 0
    assert scene.databases() == {"back"}
    assert scene.channel.target.query("SELECT 1 FROM binlane.restores") == []
    assert list((scene.channel.channels.parent / "restores").iterdir()) == []


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


def test_a_plan_writes_nothing_and_says_where_it_ends(channel: Channel, capsys: pytest.CaptureFixture[str]) -> None:
    scene = scene_of(channel)
    assert scene.restore("--json", base="one.sql") == 0
    plan = answer(capsys)
    assert plan["databases"] == {DATABASE: {"final": "back", "until_complete": "back_unfinished"}}
    assert plan["first_behind"]["statements"] == [f"DROP DATABASE {DATABASE}"]
    assert (plan["transactions"], plan["rows"]) == (14, 12)
    assert len(plan["before"]) == 10
    assert [each["rows"] for each in plan["before"]][-1] == {f"{DATABASE}.a": 1}
    assert plan["same_second"]["behind"] >= 1
    culprit, last = plan["first_behind"]["gtid"], plan["before"][-1]["gtid"]
    for end in (("--before", culprit), ("--until", last), ("--until", plan["end"])):
        assert scene.restore("--json", base="one.sql", end=end) == 0
        assert answer(capsys)["end"] == plan["end"]
    assert scene.databases() == set()
    assert not (channel.channels.parent / "restores").exists()


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
    assert "Dump completed" in capsys.readouterr().err
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
    file.write_bytes(whole)
    assert channel.cli("restore", "--continue", "r1") != 0
    assert "expected the dump with which the restore r1 was planned" in capsys.readouterr().err
    assert channel.cli("restore", "--drop", "r1") == 0
    assert scene.databases() == set()
    assert scene.restore("r1", "--yes", base="one.sql") == 0
    assert contents(channel.target, "back") == scene.expected
