"""An archive's index that this account may not read, or that is no index: it is not used, and one line tells it."""

from __future__ import annotations

import errno
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, LogPosition
from binlane.orchestration.commands.inspection.archive_index import index
from binlane.orchestration.terminal import as_text
from binlane.restore import archive_index, ruled_out
from binlane.restore.archive_index import (
    ArchiveIndex,
    NotIndexedError,
    folder_of,
    index_file,
    keys_name_of,
    name_of,
    read_facts,
)
from binlane.restore.ruled_out import RuledOut
from binlane.source.archive import ArchiveSource
from binlane.work.files import WorkFolder
from tests.unit.source.archives import BEGUN, archive, log_file


def refused(folder: WorkFolder, *_: object) -> NoReturn:
    raise PermissionError(errno.EACCES, "Permission denied", folder.uri)


@pytest.mark.parametrize(
    ("method", "said"), [("names", "binlane_index: cannot be"), ("open", "000001.parquet: cannot be")]
)
def test_an_index_of_another_account_is_not_used(
    method: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    names = [f"binlog.{number:06d}" for number in (1, 2, 3)]
    for name in names:
        (tmp_path / name).write_bytes(b"")
        folder_of(str(tmp_path)).replace(name_of(name), b"")
    monkeypatch.setattr(WorkFolder, method, refused)
    caplog.set_level(logging.INFO)
    found = ArchiveIndex(ArchiveSource(str(tmp_path)))

    assert [found.of(name).facts for name in names] == [None] * 3
    [line] = caplog.messages
    assert said in line
    assert "Permission denied" in line
    source = ArchiveSource(str(tmp_path))
    assert [*RuledOut(source, frozenset({"shop"})).runs(LogPosition(names[0], 4))] == []


@pytest.mark.parametrize(("late", "passed"), [(0, 2), (600, 1)])
def test_files_without_gtids_are_passed_over_together_by_the_time_of_their_rotation(
    late: int, passed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server with the same id has a file of that number, too, and nothing of these databases in it."""
    monkeypatch.setattr(ruled_out, "LEAST", 0)
    begun = [BEGUN, BEGUN, BEGUN + late, BEGUN + late, BEGUN + late]
    files = [log_file(number, (number,), Flavor.MYSQL, begun=at, closed=at) for number, at in enumerate(begun, start=1)]
    source = archive(tmp_path, *files)
    for file in source.file_names():
        folder_of(str(tmp_path)).replace(name_of(file), index_file(source, file, file)[1])
    runs = RuledOut(source, frozenset({"shop"}))
    first, *_ = runs.runs(LogPosition("binlog.000001", 1 << 20), "binlog.000004")
    assert [each.file[-1] for each in first] == ["2", "3"][:passed]
    passage = runs.passage(first)
    assert (passage is not None) is (late == 0)


def test_an_index_that_says_it_has_gigabytes_of_metadata_is_named_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Three of them would be allocated for it. It is a sparse file."""
    source = archive(tmp_path, *(log_file(number, (number,), Flavor.MYSQL) for number in (1, 2)))
    folder = folder_of(str(tmp_path))
    folder.replace(name_of("binlog.000001"), b"PAR1")
    with Path(folder.path(name_of("binlog.000001"))).open("r+b") as file:
        file.seek(3 << 30)
        file.write((3_000_000_000).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(
        PlanError, match=r"binlog\.000001\.parquet: expected at most 64 MiB of metadata, found 3,000,000,000"
    ):
        read_facts(folder, "binlog.000001")
    caplog.set_level(logging.INFO)
    found = ArchiveIndex(source).of("binlog.000001")
    assert (found.facts, "64 MiB" in found.why) == (None, True)


@pytest.mark.parametrize("size", [0, 7, 8, 12])
def test_a_cut_index_is_named(size: int, tmp_path: Path) -> None:
    source = archive(tmp_path, log_file(1, (1,), Flavor.MYSQL), log_file(2, (2,), Flavor.MYSQL))
    whole = index_file(source, "binlog.000001", "binlog.000001")[1]
    folder = folder_of(str(tmp_path))
    for cut in (whole[:size], whole[len(whole) - size :]):
        folder.replace(name_of("binlog.000001"), cut)
        with pytest.raises(PlanError, match=r"binlog\.000001\.parquet: (cannot be read|expected at most)"):
            read_facts(folder, "binlog.000001")
    folder.replace(name_of("binlog.000001"), whole)
    assert read_facts(folder, "binlog.000001").transactions == 1


def test_an_index_is_readable_to_whoever_comes_to_the_archive(tmp_path: Path) -> None:
    folder_of(str(tmp_path)).replace("binlog.000001.parquet", b"")
    modes = {each.name: each.stat().st_mode & 0o777 for each in tmp_path.rglob("*")}
    assert modes == {"binlane_index": 0o755, "binlog.000001.parquet": 0o644}


@pytest.mark.parametrize(
    ("owner", "is_used"),
    [("the log's", True), ("this process's", True), ("root", True), ("another", False)],
)
def test_an_index_is_used_if_its_account_could_say_the_same_by_the_log(
    owner: str, is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who can write to its folder alone could have a restore pass over rows in silence."""
    source = archive(tmp_path, log_file(1, (1,), Flavor.MYSQL), log_file(2, (2,), Flavor.MYSQL))
    _, data, _ = index_file(source, "binlog.000001", "binlog.000001")
    folder_of(str(tmp_path)).replace(name_of("binlog.000001"), data)
    users = {"the log's": 1001, "this process's": 1002, "root": 0, "another": 1003}
    monkeypatch.setattr(
        archive_index, "_owner_of", lambda file: users["the log's" if isinstance(file, Path) else owner]
    )
    monkeypatch.setattr("os.geteuid", lambda: users["this process's"])

    found = ArchiveIndex(source).of("binlog.000001")

    assert (found.facts is not None) is is_used
    if not is_used:
        assert "(user ids 0, 1001, 1002), found one by the user id 1003, who could rule out files" in found.why


@pytest.mark.parametrize(("owner", "is_used"), [(1001, True), (0, True), (1003, False)])
def test_keys_are_used_if_their_account_could_say_the_same_by_the_log(
    owner: int, is_used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = archive(tmp_path, log_file(1, (1,), Flavor.MARIADB), log_file(2, (2,), Flavor.MARIADB))
    facts, data, keys = index_file(source, "binlog.000001", "binlog.000001")
    folder_of(str(tmp_path)).replace(name_of("binlog.000001"), data)
    folder_of(str(tmp_path)).replace(keys_name_of("binlog.000001"), keys)
    index = ArchiveIndex(source)
    monkeypatch.setattr(archive_index, "_owner_of", lambda file: 1001 if isinstance(file, Path) else owner)
    monkeypatch.setattr("os.geteuid", lambda: 1002)
    assert (index.keys_of(facts) is not None) is is_used
    for content in (b"", keys[:-1], keys.replace(facts.blake3.encode(), b"0" * 64)):
        folder_of(str(tmp_path)).replace(keys_name_of("binlog.000001"), content)
        assert index.keys_of(facts) is None
    assert ArchiveIndex(archive(tmp_path / "other", log_file(1, (1,)))).keys_of(facts) is None


@pytest.mark.parametrize(("owner", "is_limited"), [(1001, False), (0, False), (1003, True)])
def test_an_index_that_other_accounts_do_not_use_is_named_where_it_is_made(
    owner: int, is_limited: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there for a restore, which need not be by the account that makes it."""
    archive(tmp_path, log_file(1, (1,), Flavor.MYSQL), log_file(2, (2,), Flavor.MYSQL))
    monkeypatch.setattr(archive_index, "_owner_of", lambda file: 1001 if isinstance(file, Path) else owner)
    monkeypatch.setattr("os.geteuid", lambda: owner)
    shown = as_text(index(str(tmp_path), as_json=False)[0])
    found = json.loads(str(index(str(tmp_path), as_json=True)[0]))
    assert ("1 index by the user id 1003" in " ".join(shown.split())) is is_limited
    assert [each["limited_to"] for each in found["files"]] == [1003 if is_limited else None, None]
    assert bool(found["next_steps"]) is is_limited


def test_names_that_are_too_long_together_are_a_fault_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's offsets would be of other bytes."""
    source = archive(tmp_path, log_file(1, (1,), Flavor.MARIADB), log_file(2, (2,), Flavor.MARIADB))
    monkeypatch.setattr(archive_index, "_LARGEST_TEXTS", 1)
    with pytest.raises(
        NotIndexedError, match=r"binlog\.000001: expected at most 2 GiB of names in its index, found 2 b"
    ):
        index_file(source, "binlog.000001", "binlog.000001")


def test_a_process_that_indexes_loads_no_pandas(tmp_path: Path) -> None:
    """Arrow loads it for what it makes of Python's values: half a second of each process."""
    archive(tmp_path, log_file(1, (1,), Flavor.MARIADB), log_file(2, (2,), Flavor.MARIADB))
    program = (
        "import sys; from binlane.restore.archive_index import index_file; from binlane.source.archive import "
        "ArchiveSource; facts, *_ = index_file(ArchiveSource(sys.argv[1]), *2 * ['binlog.000001']); "
        "print(facts.databases[0].row_changes, *sorted({'pandas', 'pyarrow.compute'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
