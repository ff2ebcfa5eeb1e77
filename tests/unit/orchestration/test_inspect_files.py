"""``binlane inspect`` of compressed files: the same lines, in memory that does not grow with the file."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest
import zstandard

from binlane.binlog.wire import EventType
from binlane.errors import BinlogError, ConfigError, EncryptedLogError
from binlane.model import LogPosition
from binlane.orchestration.commands.inspection import events
from binlane.orchestration.commands.inspection.events import Detail, inspect_files
from binlane.orchestration.terminal import Terminal
from binlane.source.archive import ArchiveSource
from tests.unit.binlog.cases import crc, wire
from tests.unit.plan.logs import HEAD, rows, segment_of

START_ENCRYPTION = crc(wire(EventType.START_ENCRYPTION, bytes(17)))
LOG = segment_of([rows(number, "a", "b", count=9) for number in range(1, 200)])[0]
LARGE = 96 << 20


def frames(data: bytes) -> bytes:
    """Two frames, as `zstd` writes when it appends."""
    return zstandard.compress(data[:3000]) + zstandard.compress(data[3000:])


def members(data: bytes) -> bytes:
    return gzip.compress(data[:3000]) + gzip.compress(data[3000:])


PACKED = pytest.mark.parametrize(("suffix", "pack"), [(".gz", members), (".zst", frames)])


def shown(path: Path) -> str:
    out = io.StringIO()
    inspect_files([path], as_json=True, out=Terminal(file=out), err=Terminal(file=io.StringIO()))
    return out.getvalue().replace(path.name, "log")


@PACKED
def test_a_compressed_file_shows_what_the_plain_one_shows(
    suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    (tmp_path / "plain").write_bytes(LOG)
    packed = tmp_path / f"packed{suffix}"
    packed.write_bytes(pack(LOG))

    assert shown(packed) == shown(tmp_path / "plain")
    assert shown(packed).count("\n") == 199


@PACKED
def test_a_compressed_file_that_was_cut_is_refused(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    packed = tmp_path / f"packed{suffix}"
    for keep in (5, -5):
        packed.write_bytes(pack(LOG)[:keep])
        with pytest.raises(ConfigError, match=r"cannot be read: .*; name a complete binlog file"):
            shown(packed)


@PACKED
def test_a_compressed_file_of_more_than_the_limit_is_refused_before_it_is_whole(
    suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    packed = tmp_path / f"packed{suffix}"
    packed.write_bytes(pack(LOG))
    out = Terminal(file=io.StringIO())
    inspect_files([packed], as_json=True, out=out, err=out, detail=Detail(log_bytes=len(LOG)))
    with pytest.raises(ConfigError, match=rf"packed{suffix}: expected at most .* bytes in a compressed file of a log"):
        inspect_files([packed], as_json=True, out=out, err=out, detail=Detail(log_bytes=len(LOG) - 1))


def test_a_plain_file_has_no_limit_but_the_room_for_its_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain, out = tmp_path / "binlog.000001", io.StringIO()
    plain.write_bytes(LOG)
    inspect_files([plain], as_json=True, out=Terminal(file=out), err=Terminal(file=out), detail=Detail(log_bytes=1))
    assert out.getvalue().count("\n") == 199
    monkeypatch.setattr(events, "disk_usage", lambda folder: SimpleNamespace(free=len(LOG) - 1))
    with pytest.raises(ConfigError, match=rf"000001: expected room for its {len(LOG):,} bytes in .*TMPDIR=/FOLDER"):
        shown(plain)


@PACKED
def test_a_full_temporary_folder_is_told_as_one(
    suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    packed = tmp_path / f"packed{suffix}"
    packed.write_bytes(pack(LOG))
    monkeypatch.setattr(events, "_mapped", full)
    with pytest.raises(ConfigError, match=r"cannot be unpacked into .*: No space left on device; .*TMPDIR=/FOLDER"):
        shown(packed)


@PACKED
def test_an_archive_has_the_same_limit(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / f"binlog.000001{suffix}").write_bytes(pack(LOG))
    for log_bytes in (len(LOG), len(LOG) - 1):
        source = ArchiveSource(str(tmp_path), log_bytes=log_bytes)
        fault = pytest.raises(BinlogError, match=r"000001: expected at most .* bytes in a compressed file of a log")
        with contextlib.nullcontext() if log_bytes == len(LOG) else fault:
            list(source.read_log(LogPosition("binlog.000001", 4)))


@PACKED
def test_memory_does_not_grow_with_the_file(suffix: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    packed = tmp_path / f"packed{suffix}"
    packed.write_bytes(pack(bytes(LARGE)))
    tracemalloc.start()
    try:
        with pytest.raises(BinlogError):
            shown(packed)
        assert tracemalloc.get_traced_memory()[1] < LARGE // 2
    finally:
        tracemalloc.stop()


def listed(*files: Path) -> tuple[list[str], list[str], str]:
    """The places of the transactions that were listed, what was said of the files, and the error."""
    out, said, error = io.StringIO(), io.StringIO(), ""
    try:
        inspect_files(files, as_json=True, out=Terminal(file=out), err=Terminal(file=said))
    except BinlogError as exc:
        error = str(exc)
    return [json.loads(line)["file"] for line in out.getvalue().splitlines()], said.getvalue().splitlines(), error


def log_of(folder: Path, number: int, *seqnos: int) -> Path:
    path = folder / f"binlog.{number:06d}"
    path.write_bytes(segment_of([rows(seqno, "a", "b", count=1) for seqno in seqnos])[0])
    return path


def test_files_that_do_not_follow_each_other_are_listed_with_a_warning(tmp_path: Path) -> None:
    first, third, fourth = log_of(tmp_path, 1, 1, 2), log_of(tmp_path, 3, 5, 6), log_of(tmp_path, 4, 7, 8)
    names, said, error = listed(first, third, fourth)
    assert (names, error) == ([path.name for path in (first, third, fourth) for _ in range(2)], "")
    assert said[0].startswith(
        "warning: read as one log: binlog.000001 is not followed by its next file: expected binlog.000002, found "
        "binlog.000003"
    )
    assert not any("binlog.000004" in line and "binlog.000003 is not followed" in line for line in said)


def test_a_file_alone_and_files_without_a_number_have_no_order(tmp_path: Path) -> None:
    first, later = log_of(tmp_path, 1, 1, 2), log_of(tmp_path, 5, 7, 8)
    assert listed(later)[1:] == ([], "")
    for name, path in (("one.binlog", first), ("two.binlog", later)):
        path.rename(tmp_path / name)
    assert listed(tmp_path / "two.binlog", tmp_path / "one.binlog")[1:] == ([], "")


def test_a_file_that_is_encrypted_ends_no_other_one(tmp_path: Path) -> None:
    first, second, third = (log_of(tmp_path, number, number) for number in (1, 2, 3))
    for data, place in (
        (b"\xfdbin" + bytes(600), "binlog.000002:0: the file is encrypted"),
        (HEAD + START_ENCRYPTION + bytes(600), f"binlog.000002:{len(HEAD)}: all events from here on are encrypted"),
    ):
        second.write_bytes(data)
        names, said, error = listed(first, second, third)
        assert names == [first.name, third.name]
        assert [line for line in said if line.startswith("EncryptedLogError: ")] == [
            line for line in said if place in line
        ]
        assert len(said) == 1
        assert error.startswith("1 of 3 files cannot be read to the end: binlog.000002: ")
        with pytest.raises(EncryptedLogError, match=place):
            shown(second)
