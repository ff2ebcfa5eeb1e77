"""What a backup has recorded is read as it was written, or refused by the name of the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pymysql
import pytest

from binlane.bootstrap.physical import CopyPlace, other_backup, read_backup
from binlane.errors import ConfigError
from binlane.model import Flavor, LogPosition
from binlane.source.copy_times import CopyTimes

if TYPE_CHECKING:
    from binlane.bootstrap.sessions import Session

INFO, CHECKPOINTS = "mariadb_backup_binlog_info", "mariadb_backup_checkpoints"
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
PREPARED = b"backup_type = log-applied\nfrom_lsn = 0\nto_lsn = 46\n"


def backup(folder: Path, info: bytes, checkpoints: bytes = PREPARED) -> Path:
    (folder / INFO).write_bytes(info)
    (folder / CHECKPOINTS).write_bytes(checkpoints)
    return folder


@pytest.mark.parametrize(
    ("info", "gtids"),
    [
        (b"binlog.000007\t4711\t0-1-5,1-2-7\n", "0-1-5,1-2-7"),
        (b"binlog.000007\t4711\t\n", ""),
        (b"binlog.000007\t4711\n", ""),
        (f"binlog.000007\t4711\t{UUID}:1-5:7,\n{UUID}:tag:1\n".encode(), f"{UUID}:1-5:7,{UUID}:tag:1"),
    ],
)
def test_the_place_of_a_backup_is_read(info: bytes, gtids: str, tmp_path: Path) -> None:
    place = read_backup(backup(tmp_path, info))
    assert (place.position, place.gtid_set, place.lsn) == (LogPosition("binlog.000007", 4711), gtids, 46)
    assert place.times == CopyTimes()


@pytest.mark.parametrize("name", ["xtrabackup_info", "mariadb_backup_info"])
def test_a_backup_tells_when_it_was_begun_and_complete(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"uuid = x\nstart_time = 2026-11-20 01:00:00\nend_time = 2026-11-20 02:00:00\n")
    place = read_backup(backup(tmp_path, b"binlog.000007\t4711\n"))
    assert place.times == CopyTimes(1_795_136_400.0, 1_795_140_000.0)


@pytest.mark.parametrize(
    ("info", "checkpoints", "said"),
    [
        ("binlog.000007\t²\t0-1-5\n".encode(), PREPARED, "expected the source's log file, offset and GTID set"),
        (b"binlog.000007\t4\t0-1-x\n", PREPARED, "expected the source's log file, offset and GTID set"),
        (b"binlog.000007\t" + b"9" * 5000 + b"\n", PREPARED, "expected the source's log file, offset and GTID set"),
        (b"\n", PREPARED, "expected the source's log file, offset and GTID set"),
        # in a time that grows with its length
        (("binlog.000007\t4" + " " * 1_000_000 + "é").encode(), PREPARED, "expected the source's log file, offset and"),
        (b"binlog.000007\t4\t\xff\n", PREPARED, r"cannot be read: expected UTF-8, found 0xff"),
        (b"x" * (2 << 20), PREPARED, r"cannot be read: it has more than 1,048,576 bytes"),
        (b"b.000007\t4\n", b"backup_type = log-applied\nto_lsn = \n", "expected a number as to_lsn, found ''"),
        (b"b.000007\t4\n", b"backup_type = log-applied\nto_lsn = many\n", "expected a number as to_lsn, found 'many'"),
        (b"b.000007\t4\n", b"backup_type = \xff\n", "cannot be read: expected UTF-8, found 0xff"),
        (b"b.000007\t4\n", b"", "expected a prepared backup, found None"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_a_damaged_folder_is_refused_by_the_name_of_the_file(
    info: bytes, checkpoints: bytes, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"{tmp_path}/mariadb_backup_\w+: {said}"):
        read_backup(backup(tmp_path, info, checkpoints))


def test_what_is_no_file_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / INFO).mkdir()
    with pytest.raises(ConfigError, match=rf"{INFO}: cannot be read: .*a folder"):
        read_backup(tmp_path)
    # as a folder that the account may not enter, which the superuser always may
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=rf"file/{INFO}: cannot be read: Not a directory"):
        read_backup(tmp_path / "file")


class OlderServer:
    """MySQL before 8.0.30, which shows its redo log in one text alone."""

    flavor = Flavor.MYSQL

    def __init__(self, denied: int = 0) -> None:
        self.denied = denied

    def texts(self, query: str) -> list[list[str]]:
        if "STATUS LIKE" in query:
            return []
        if self.denied:
            raise pymysql.err.OperationalError(self.denied, "Access denied")
        return [["InnoDB", "", "LOG\n---\nLog sequence number          19466004\nLog flushed up to   19466000\n"]]


def test_an_older_mysql_shows_its_redo_log_to_accounts_with_process() -> None:
    recorded = CopyPlace("backup", LogPosition("binlog.000001", 4), "", 19466005)
    for server, said in (
        (OlderServer(), "expected a redo log at 19466005 or later, found 19466004"),
        (OlderServer(1227), "none of the privilege PROCESS"),
    ):
        [wrong] = other_backup(recorded, cast("Session", server))
        assert said in wrong
    assert other_backup(replace(recorded, lsn=19466004), cast("Session", OlderServer())) == []
