"""Which files of an archive's folder are its log, with and without the server's index."""

from __future__ import annotations

from pathlib import Path

import fsspec
import pytest
from fsspec import AbstractFileSystem

from binlane.errors import (
    BinlaneError,
    ConfigError,
    MissingLogError,
    PrecheckError,
    SourceError,
    SourceUnavailableError,
    TruncatedEventError,
)
from binlane.model import Flavor, LogPosition
from binlane.source.archive import ArchiveSource
from binlane.source.archive_check import check_archive
from binlane.source.start_position import begin
from tests.unit.binlog.cases import log, query
from tests.unit.source.archives import archive, log_file, window


class Refusing(AbstractFileSystem):  # type: ignore[misc]
    """A storage that refuses to be listed: by the name of its folder."""

    protocol = "refusing"

    def ls(self, path: str, detail: bool = True, **arguments: object) -> list[str]:
        if "credentials" in path:
            # of the storage's own package, as botocore's
            raise RuntimeError("Unable to locate credentials")
        raise PermissionError("Access Denied")


fsspec.register_implementation("refusing", Refusing, clobber=True)


def files(folder: Path, names: str, index: str | None) -> tuple[str, ...]:
    """The log's numbers in a folder of these files, whose index names those files."""
    for number in names.split():
        (folder / f"binlog.{number:>06}").write_bytes(log())
    (folder / "relay.000007").write_bytes(log())
    if index is None:
        (folder / "relay.000007").unlink()
    else:
        lines = [f"./binlog.{number:>06}\n" for number in index.split()]
        (folder / "binlog.index").write_text("".join(lines))
    return tuple(name.removeprefix("binlog.").lstrip("0") for name in ArchiveSource(str(folder)).state().files)


@pytest.mark.parametrize(
    ("names", "index", "expected"),
    [
        pytest.param("1 2 3 10", None, "1 2 3 10", id="no index"),
        pytest.param("1 2 3", "1 2 3", "1 2 3", id="the same"),
        pytest.param("1 2 3 4", "1 2", "1 2 3 4", id="files were added behind the index's copy"),
        pytest.param("1 2 3 4", "1 2 4", "1 2 3 4", id="a line is missing"),
        pytest.param("2 3", "1 2 3", "2 3", id="removed at the beginning"),
        pytest.param("1 2 3 4", "3 4", "1 2 3 4", id="purged on the server"),
        pytest.param("1 2", "1 2 3", "1 2", id="begun while the others were copied"),
        pytest.param("999999 1000000 1000001", "999999", "999999 1000000 1000001", id="by number"),
    ],
)
def test_an_index_hides_no_file_of_its_log(names: str, index: str | None, expected: str, tmp_path: Path) -> None:
    """The index may have been copied once, and the files behind it later; an archive keeps what its server purges."""
    assert files(tmp_path, names, index) == tuple(expected.split())


def test_a_file_that_the_index_names_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(MissingLogError, match=r"/[^/]+\.index: the index names binlog\.000003"):
        files(tmp_path, "1 2 4", "1 2 3 4")


def test_a_window_is_read_from_a_file_that_the_index_names_no_more(tmp_path: Path) -> None:
    source = archive(tmp_path, *(log_file(number, (number,), Flavor.MYSQL) for number in (1, 2, 3, 4)))
    start = begin(source, "binlog.000002:4")
    (tmp_path / "binlog.index").write_text("./binlog.000003\n./binlog.000004\n./binlog.000005\n")
    assert (window(source, start).transactions, begin(source, "oldest").position.file) == (3, "binlog.000001")


def test_a_check_of_an_archive_reads_the_files_that_the_index_names_no_more(tmp_path: Path) -> None:
    source = archive(tmp_path, *(log_file(number, (number,), Flavor.MYSQL) for number in (1, 2, 3, 4)))
    (tmp_path / "binlog.index").write_text("./binlog.000004\n")
    assert [(each.name[-1], each.faults) for each in check_archive(source)] == [(n, []) for n in "1234"]
    (tmp_path / "binlog.000002").unlink()
    [found] = [fault for each in check_archive(source) for fault in each.faults]
    assert "after binlog.000001 expected number 2, found binlog.000003" in found


def test_the_files_of_two_logs_need_an_index(tmp_path: Path) -> None:
    (tmp_path / "other.000001").write_bytes(log())
    with pytest.raises(SourceError, match="the files of one log, found binlog, other"):
        files(tmp_path, "1 2", None)
    assert files(tmp_path, "1 2", "1") == ("1", "2")


@pytest.mark.parametrize(
    ("uri", "error", "message"),
    [
        (
            "nope://bucket/x",
            ConfigError,
            "nope://bucket/x: expected a folder, or the URI of a storage that fsspec knows",
        ),
        ("gs://bucket/x", ConfigError, "gs://bucket/x: expected a storage whose package is installed: .*gcsfs"),
        ("refusing://bucket", PrecheckError, "refusing://bucket: cannot be read: Access Denied; let the account"),
        ("refusing://credentials", SourceUnavailableError, "cannot be listed: Unable to locate credentials; if the"),
    ],
)
def test_a_storage_that_cannot_be_listed_is_an_error_by_name(uri: str, error: type[BinlaneError], message: str) -> None:
    with pytest.raises(error, match=message):
        ArchiveSource(uri).state()


def test_a_file_that_ends_inside_an_event_is_taken_as_it_is_if_it_is_named(tmp_path: Path) -> None:
    """As a crash leaves it; the head of the next file decides whether it lacks a transaction."""
    files(tmp_path, "1 2", None)
    torn = tmp_path / "binlog.000001"
    torn.write_bytes(log(query(b"BEGIN"), query(b"DROP TABLE a.t"))[:-3])
    start = LogPosition(torn.name, 4)
    with pytest.raises(TruncatedEventError, match=r"name binlog\.000001 in source\.trusted_files of the channel$"):
        list(ArchiveSource(str(tmp_path)).read_log(start))
    trusting = ArchiveSource(str(tmp_path), trusted_files=frozenset({torn.name}))
    read = b"".join(chunk.data for chunk in trusting.read_log(start) if chunk.file == torn.name)
    assert 0 < len(read) < torn.stat().st_size - 4
    assert torn.read_bytes()[4:].startswith(read)
    assert "binlog.000002" in {chunk.file for chunk in trusting.read_log(start)}
