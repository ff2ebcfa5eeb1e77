"""A restore believes no more of a dump than its text shows, as the servers' own programs write it by their options."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import ConfigError
from binlane.model import Flavor
from binlane.restore.dump_file import DumpFile
from binlane.restore.dump_folder import DumpFolder
from lab.servers import PrivateServer
from tests.integration.precheck.helpers import setting
from tests.integration.restore.scene import DATABASE, MADE, answer, contents, scene_of, take_folder
from tests.integration.window.conftest import Channel, ChannelOf, channel, channel_of, clean_servers, run_on

__all__ = ["channel", "channel_of", "clean_servers"]

ALL: Final = ("--single-transaction", "--routines", "--events")
ALSO: Final = (
    "CREATE TABLE nothing (id INT)",
    "CREATE TABLE hits (n INT) ENGINE=MyISAM",
    "INSERT INTO hits VALUES (1)",
    "CREATE TABLE one (n INT) ENGINE=MyISAM",
    "CREATE TABLE `odd ``name'` (n INT)",
)
UNHELD: Final = f"nothing was written to {DATABASE}.hits (myisam), {DATABASE}.one (myisam) while the dump was made"
WORDS: Final = (
    "FLUSH .*TABLES WITH READ LOCK",
    "START TRANSACTION .*WITH CONSISTENT SNAPSHOT",
    "SELECT @@GLOBAL.GTID_EXECUTED",
    "LOCK TABLES",
    "UNLOCK TABLES",
)


def account_of(server: PrivateServer) -> list[str]:
    return [f"--host={server.host}", f"--port={server.port}", f"--user={server.user}", f"--password={server.password}"]


@pytest.mark.parametrize("series", ["mariadb", "10.5", "11.8", "mysql"])
def test_what_a_dump_was_not_asked_for_is_named(series: str, channel_of: ChannelOf, tmp_path: Path) -> None:
    source = channel_of(series, series).source
    run_on(source, f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *MADE, *ALSO)
    place = "--master-data=2" if source.flavor is Flavor.MARIADB else "--source-data=2"

    def dumped(*options: str) -> DumpFile:
        command = [str(source.tool("dump")), "--no-defaults", *account_of(source), place, *options]
        text = subprocess.run([*command, "--databases", DATABASE], check=True, capture_output=True).stdout
        (tmp_path / "d.sql").write_bytes(text)
        return DumpFile(tmp_path / "d.sql")

    def beliefs(*options: str) -> list[str]:
        found = dumped(*options).place()
        found.contents.require_all_rows("d.sql", {DATABASE}, ())
        assert found.begins("d.sql") == found.position != ""
        return [each.partition(":")[0] for each in found.contents.beliefs({DATABASE}, ())]

    assert beliefs(*ALL) == [UNHELD]
    assert beliefs(*ALL, "--skip-extended-insert", "--skip-opt", "--create-options") == [UNHELD]
    assert beliefs() == [f"no routines and no events belong to {DATABASE}", UNHELD]
    [rows, unheld] = beliefs(*ALL, "--no-data")
    named = ("a", "c", "hits", "nothing", "odd `name'", "one")
    assert rows == f"no rows belong to {', '.join(f'{DATABASE}.{each}' for each in named)}"
    assert unheld == UNHELD
    with pytest.raises(ConfigError, match=rf"expected all rows of {DATABASE}\.a, found some .* \(--where: 1 = 1\)"):
        beliefs(*ALL, "--where=1 = 1")
    # the comments are there without programs, too
    run_on(source, f"USE {DATABASE}", "DROP PROCEDURE p", "DROP FUNCTION f", "DROP EVENT e")
    assert beliefs(*ALL) == [UNHELD]


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_folder_of_mydumper_without_its_options_says_so(
    flavor: Flavor, channel_of: ChannelOf, tmp_path: Path
) -> None:
    source = channel_of(flavor.value, flavor.value).source
    run_on(source, f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *MADE)
    take_folder(source, tmp_path / "all")
    whole = DumpFolder(tmp_path / "all", frozenset({DATABASE})).place()
    assert whole.contents.beliefs({DATABASE}, ()) == []
    command = ["mydumper", *account_of(source), "--database", DATABASE, "--no-data", f"--outputdir={tmp_path / 'bare'}"]
    subprocess.run(command, check=True, capture_output=True)
    kinds, rows = DumpFolder(tmp_path / "bare", frozenset({DATABASE})).place().contents.beliefs({DATABASE}, ())
    assert kinds.startswith(f"no triggers and no routines and no events belong to {DATABASE}: ")
    assert rows.startswith(f"no rows belong to {DATABASE}.a, {DATABASE}.c")


def test_gtids_alone_are_a_place_by_the_program_that_has_read_them(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel_of("mysql", "mysql"), ("alone.sql",))
    text = scene.dump("alone.sql").read_text("latin-1")
    set_of = re.search(r"GTID_PURGED=/\*!80000 '\+'\*/ '([^']*)'", text)
    assert set_of is not None
    assert "CHANGE REPLICATION SOURCE" not in text
    # as if a transaction had been committed behind the snapshot, in front of the reading of the set
    old = re.sub(r"(Distrib) [^,]*", r"\1 8.0.31", text, count=1)
    scene.dump("old.sql").write_text(old, "latin-1")
    assert scene.restore("--yes", base="old.sql") != 0
    said = capsys.readouterr().err
    assert "which mysqldump 8.0.31 reads without a lock of the rows" in said
    assert "dump again with --source-data=2 --single-transaction, or give the place with --at" in said
    assert scene.databases() == set()
    gtids = "".join(set_of[1].split())
    assert scene.restore("known", "--json", "--at", gtids, base="old.sql") == 0
    plan = answer(capsys)
    assert (plan["begin"], plan["believed"]) == (scene.dumped, [])
    assert scene.restore("--yes", "--json", base="alone.sql") == 0, capsys.readouterr().err
    found = answer(capsys)
    assert contents(scene.channel.target, "back") == scene.expected
    [belief] = found["believed"]
    assert belief.startswith("the dump was made with --single-transaction or --lock-all-tables: ")
    # another process says it at the end, too
    assert scene.channel.cli("restore", "--continue", "restore_back") == 0
    assert f"believed: {belief}" in " ".join(capsys.readouterr().out.split())


def test_a_dump_of_some_rows_is_refused_and_one_without_programs_is_named(
    channel: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = scene_of(channel, ("one.sql",))
    text = scene.dump("one.sql").read_text("latin-1")
    some = text.replace("-- Dumping data for table `a`\n--\n", "-- Dumping data for table `a`\n--\n-- WHERE:  id > 1\n")
    assert some != text
    scene.dump("some.sql").write_text(some, "latin-1")
    assert scene.restore("--yes", base="some.sql") != 0
    assert f"expected all rows of {DATABASE}.a, found some of them (--where: id > 1)" in capsys.readouterr().err
    scene.dump("untold.sql").write_text(text.replace("-- Dumping events for", "-- Of"), "latin-1")
    assert scene.restore("--json", base="untold.sql") == 0
    # an event is there
    assert answer(capsys)["believed"] == []


def test_gtids_are_read_under_the_lock_of_the_rows_with_the_options_that_are_believed(channel_of: ChannelOf) -> None:
    source = channel_of("mysql", "mysql").source
    run_on(source, f"CREATE DATABASE {DATABASE}", f"USE {DATABASE}", *MADE)

    def sent(*options: str) -> list[str]:
        """What the program asks for, of these words."""
        source.query("TRUNCATE mysql.general_log")
        command = [str(source.tool("dump")), "--no-defaults", *account_of(source), *options, "--databases", DATABASE]
        with setting(source, "general_log", "1"):
            subprocess.run(command, check=True, capture_output=True)
        texts = source.query("SELECT CONVERT(argument USING utf8mb4) FROM mysql.general_log ORDER BY event_time")
        found = [word for (text,) in texts for word in WORDS if re.match(word, text) is not None]
        return found[: found.index("UNLOCK TABLES") + 1] if "UNLOCK TABLES" in found else found

    lock, snapshot, gtids, tables, unlock = WORDS
    with setting(source, "log_output", "'TABLE'"):
        assert sent("--single-transaction") == [lock, snapshot, gtids, unlock]
        assert sent("--single-transaction", "--source-data=2") == [lock, snapshot, gtids, unlock]
        assert sent("--lock-all-tables") == [lock, gtids]
        # what is committed in between is in the rows, and behind the GTIDs
        assert sent() == [gtids, tables, unlock]
