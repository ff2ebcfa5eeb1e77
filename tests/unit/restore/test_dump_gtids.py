"""A GTID set is the place of a dump's rows where its program has read both under one lock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import UUID

import pytest

from binlane.errors import ConfigError
from binlane.model import Flavor
from binlane.orchestration.commands.copies.restore_plan import EndRequest, RestoreRequest, _belief, _start
from binlane.restore.dump_file import DumpFile, DumpPlace
from binlane.source.identity import Start
from binlane.source.protocol import EventSource
from tests.unit.binlog.cases import UUID_BYTES, crc, mysql_gtid, query
from tests.unit.source.archives import BEGUN, archive, log_file

SID = str(UUID(bytes=UUID_BYTES))
HEAD = "-- MySQL dump 10.13  Distrib {}, for Linux (x86_64)\n--\n-- Server version\t8.0.45\n"
GTIDS = (
    "SET @@SESSION.SQL_LOG_BIN= 0;\n\n--\n-- GTID state at the {} of the backup \n--\n\n"
    f"SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '{SID}:1-2';\n"
)
PLACE = "-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000002', SOURCE_LOG_POS=4;\n"
BODY = "CREATE DATABASE `shop`;\nUSE `shop`;\nINSERT INTO `t` VALUES (1);\n"
TAIL = "SET @@SESSION.SQL_LOG_BIN = @MYSQLDUMP_TEMP_LOG_BIN;\n-- Dump completed on 2026-11-20  1:00:00\n"
REQUEST = RestoreRequest(None, "d.sql", "log", ("shop",), (), None, EndRequest("now", None), None, "target")


def placed(folder: Path, *texts: str) -> DumpPlace:
    (folder / "d.sql").write_text("".join(texts))
    return DumpFile(folder / "d.sql").place()


@pytest.mark.parametrize(
    ("version", "named"),
    [
        ("5.7.40-log", "mysqldump 5.7.40"),
        ("8.0.31", "mysqldump 8.0.31"),
        ("8.0.11-TiDB", "mysqldump 8.0.11"),
        ("5.8.1", "mysqldump 5.8.1"),
        ("10.3.39-MariaDB", "a program that its head does not name"),
        ("unknown", "a program that its head does not name"),
    ],
)
def test_gtids_that_were_read_without_a_lock_are_no_place(version: str, named: str, tmp_path: Path) -> None:
    place = placed(tmp_path, HEAD.format(version), GTIDS.format("beginning"), BODY, TAIL)
    for where, otherwise in (("--from d.sql", ", or give the place"), ("d.sql", "")):
        with pytest.raises(ConfigError) as raised:
            place.begins(where, otherwise)
        said = str(raised.value)
        assert said.startswith(f"{where}: expected the place in the log")
        assert f"found GTIDs alone ({SID}:1-2), which {named} reads without a lock of the rows" in said
        assert said.endswith(f"dump again with --source-data=2 --single-transaction{otherwise}")
    with pytest.raises(ConfigError, match="give the place with --at FILE:OFFSET or --at GTIDS"):
        _start(cast(EventSource, None), REQUEST, place)


@pytest.mark.parametrize("version", ["5.7.41", "5.7.44-log", "8.0.32", "8.4.3", "9.7.4-2"])
def test_gtids_that_may_have_been_read_without_a_lock_are_believed(version: str, tmp_path: Path) -> None:
    place = placed(tmp_path, HEAD.format(version), GTIDS.format("beginning"), BODY, TAIL)
    assert place.begins("d.sql") == f"{SID}:1-2"
    [belief] = _belief(REQUEST, place, cast(Start, None))
    assert belief.startswith("the dump was made with --single-transaction or --lock-all-tables: ")
    assert belief.endswith("a dump with --source-data=2 shows its place")
    assert _belief(replace(REQUEST, at="binlog.000002:4"), place, cast(Start, None)) == ()


@pytest.mark.parametrize("version", ["5.7.38", "8.0.45"])
def test_gtids_behind_the_rows_are_of_another_moment(version: str, tmp_path: Path) -> None:
    head, behind = HEAD.format(version), GTIDS.format("end")
    alone = placed(tmp_path, head, BODY, behind, TAIL)
    with pytest.raises(ConfigError, match=rf"mysqldump {version} reads without a lock behind all rows"):
        alone.begins("d.sql")
    beside = placed(tmp_path, head, PLACE, BODY, behind, TAIL)
    assert (beside.begins("d.sql"), beside.gtid_set) == ("binlog.000002:4", "")


def test_a_place_that_was_written_under_the_lock_shows_the_gtids(tmp_path: Path) -> None:
    place = placed(tmp_path, HEAD.format("5.7.20"), GTIDS.format("beginning"), PLACE, BODY, TAIL)
    assert (place.begins("d.sql"), place.gtid_set) == ("binlog.000002:4", f"{SID}:1-2")
    assert _belief(REQUEST, place, cast(Start, None)) == ()


def test_who_knows_that_nothing_was_written_gives_the_gtids(tmp_path: Path) -> None:
    source = archive(tmp_path / "log", log_file(1, (), Flavor.MYSQL, end=None))
    [file] = (tmp_path / "log").iterdir()
    logged = [crc(mysql_gtid(each, BEGUN * 1_000_000)) + crc(query(b"CREATE TABLE t (id INT)")) for each in (1, 2, 3)]
    file.write_bytes(file.read_bytes() + b"".join(logged))
    place = placed(tmp_path, HEAD.format("8.0.31"), GTIDS.format("beginning"), BODY, TAIL)
    asked = replace(REQUEST, at=f"{SID}:1-2")
    start = _start(source, asked, place)
    assert start.gtid_set == f"{SID}:1-2"
    assert _belief(asked, place, start) == ()
