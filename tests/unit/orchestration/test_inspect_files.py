"""``binlane inspect`` of compressed files: the same lines, in memory that does not grow with the file."""

from __future__ import annotations

import contextlib
import gzip
import io
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from binlane.errors import BinlogError, ConfigError
from binlane.model import LogPosition
from binlane.orchestration.commands.inspection.events import Detail, inspect_files
from binlane.orchestration.terminal import Terminal
from binlane.source.archive import ArchiveSource
from tests.unit.plan.logs import rows, segment_of

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
