"""What an archive's identity is: the log that its fingerprint proves, whatever server id its files show."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from binlane.binlog.wire import HEADER, MAGIC
from binlane.errors import SourceIdentityError
from binlane.model import Flavor
from binlane.sessions.server_proof import ServerProof, archive_identity, is_another_source, mariadb_identity
from binlane.source.end_position import UntilPosition
from binlane.source.start_position import begin
from tests.unit.source.archives import T, archive, behind, log_file, window


def changed(flavor: Flavor) -> list[bytes]:
    """Three files of a server that was stopped behind the first one and started with another id."""
    return [
        log_file(1, (1, 2), flavor, server_id=1, end=T.STOP),
        log_file(2, (3, 4), flavor, server_id=101, restarted=True, before=[(1, 2)]),
        log_file(3, (5,), flavor, server_id=101, before=[(1, 2), (101, 4)]),
    ]


@pytest.mark.parametrize("flavor", Flavor)
def test_an_archive_may_lose_its_files_of_before_a_change_of_the_server_id(flavor: Flavor, tmp_path: Path) -> None:
    trusted = ("binlog.000002",)
    files = changed(flavor)
    source = archive(tmp_path, *files[:2], trusted=trusted)
    start = begin(source, "oldest")
    read = window(source, start)
    assert (start.identity, read.identity) == (archive_identity(flavor, 1), archive_identity(flavor, 101))
    (tmp_path / "binlog.000001").unlink()
    source = archive(tmp_path, files[2], first=3, trusted=trusted)
    assert window(source, behind(read)).transactions == 1


@pytest.mark.parametrize("flavor", Flavor)
def test_a_window_that_is_read_again_goes_through_a_change_of_the_server_id(flavor: Flavor, tmp_path: Path) -> None:
    """The channel has the identity of the window's end by then."""
    source = archive(tmp_path, *changed(flavor), trusted=("binlog.000002",))
    start = begin(source, "oldest")
    read = window(source, start)
    again = window(source, replace(start, identity=read.identity))
    assert (again.segments, again.fingerprint) == (read.segments, read.fingerprint)


def test_a_window_that_ends_before_the_change_has_the_id_of_its_own_file(tmp_path: Path) -> None:
    source = archive(tmp_path, *changed(Flavor.MARIADB))
    start = begin(source, "oldest")
    first = window(archive(tmp_path / "first", changed(Flavor.MARIADB)[0]), start)
    read = window(source, start, UntilPosition(first.end))
    assert read.identity == archive_identity(Flavor.MARIADB, 1)


def test_a_folder_with_files_of_both_families_has_that_of_the_oldest_one(tmp_path: Path) -> None:
    """As it is kept over a migration: an index that names the newer ones alone hides no others."""
    newer = log_file(2, (1, 2), Flavor.MARIADB, restarted=True)
    start = begin(archive(tmp_path / "newer", newer, first=2), "oldest")
    both = archive(tmp_path / "both", log_file(1, (1,), Flavor.MYSQL, end=T.STOP), newer)
    (tmp_path / "both" / "binlog.index").write_text("./binlog.000002\n")
    with pytest.raises(SourceIdentityError, match="is its oldest file's: a folder each for the files of both"):
        window(both, start)
    (tmp_path / "both" / "binlog.000001").unlink()
    assert window(both, start).transactions == 2


@pytest.mark.parametrize(
    ("before", "refused"),
    [
        pytest.param([(1, 2)], "", id="it-has-what-was-read"),
        pytest.param([(9, 5)], "without 0-1-2", id="another-one's"),
    ],
)
def test_the_first_head_of_a_new_channel_may_show_that_a_changed_id_is_of_one_history(
    before: list[tuple[int, int]], refused: str, tmp_path: Path
) -> None:
    first = log_file(1, (1, 2), server_id=1, end=T.STOP)
    source = archive(tmp_path, first, log_file(2, (3,), server_id=101, restarted=True, before=before))
    start = begin(source, f"binlog.000001:{_behind_head(first)}")
    assert start.gtid_set == ""
    if refused:
        with pytest.raises(SourceIdentityError, match=refused):
            window(source, start)
    else:
        assert window(source, start).transactions == 3


def _behind_head(log: bytes) -> int:
    """The offset behind the file's two first events."""
    at = len(MAGIC)
    for _ in range(2):
        at += HEADER.unpack_from(log, at)[3]
    return at


@pytest.mark.parametrize("flavor", Flavor)
def test_the_archive_of_another_server_is_another_log(flavor: Flavor, tmp_path: Path) -> None:
    start = begin(archive(tmp_path / "own", log_file(1, (1, 2), flavor)), "oldest")
    other = archive(tmp_path / "other", log_file(1, (1, 2), flavor, server_id=8))
    with pytest.raises(SourceIdentityError, match=r"000001:\d+: FORMAT_DESCRIPTION changed .* of server_id 8\).*Point"):
        window(other, start)


OF_MARIADB, OF_MYSQL = mariadb_identity(1), "mysql server_uuid 1"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (OF_MARIADB, mariadb_identity(2), True),
        (OF_MYSQL, "mysql server_uuid 2", True),
        (OF_MYSQL, OF_MARIADB, True),
        (OF_MARIADB, archive_identity(Flavor.MARIADB, 2), False),
        (OF_MYSQL, archive_identity(Flavor.MYSQL, 2), False),
        (archive_identity(Flavor.MYSQL, 1), archive_identity(Flavor.MYSQL, 2), False),
        (OF_MARIADB, archive_identity(Flavor.MYSQL, 1), True),
    ],
)
def test_the_identities_of_servers_and_of_families_tell_sources_apart(one: str, other: str, expected: bool) -> None:
    assert is_another_source(one, other) is expected
    assert is_another_source(other, one) is expected


@pytest.mark.parametrize("flavor", Flavor)
def test_a_server_behind_an_archive_has_the_id_of_the_newest_file_that_was_read(flavor: Flavor) -> None:
    values = {Flavor.MARIADB: ("101", "", ""), Flavor.MYSQL: ("a-uuid", "1", "101")}[flavor]
    assert ServerProof(archive_identity(flavor, 101)).refusal(flavor, values) is None
    refused = ServerProof(archive_identity(flavor, 1)).refusal(flavor, values)
    assert refused is not None
    assert "server_id 101 (if its server_id was changed, read the archive first" in refused
