"""An archive is damaged in one place and read in windows: it is refused, or what was read is what the server wrote."""

from __future__ import annotations

import io
import itertools
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import BinlaneError, BinlogError
from binlane.model import LogPosition
from binlane.orchestration.commands.inspection.events import inspect_files
from binlane.orchestration.terminal import Terminal
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilPosition
from binlane.source.identity import Start
from binlane.source.protocol import LOG_START
from binlane.source.proved import proved
from binlane.source.start_position import begin
from tests.damaged_archives import (
    COMPRESS,
    HARMLESS,
    KILL,
    LOSING,
    LOSING_WITH_GTIDS,
    PROVED_BY_GTIDS,
    Archive,
    Files,
    bytes_of_transactions,
    packed,
)
from tests.integration.source.helpers import behind, window


def written(files: Files) -> list[bytes]:
    """The transactions of whole files, in the log's order."""
    return [each for name in sorted(files) for each in bytes_of_transactions(files[name], name)]


def put(files: Files, folder: Path, trusted: frozenset[str] = frozenset()) -> ArchiveSource:
    """The files as an archive in the folder, instead of what it has."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return ArchiveSource(str(folder), trusted_files=trusted)


@dataclass(frozen=True, slots=True)
class Begun:
    """A place where a window begins, and the transactions behind it."""

    start: Start
    behind: list[bytes]


def begun(archive: Archive, trusted: frozenset[str], folder: Path) -> dict[str, list[Begun]]:
    """By file: the log's beginning, a place in the file, and the end of its last transaction."""
    source = put(archive.files, folder / "whole", trusted)
    oldest = begin(source, "oldest")
    segments = window(source, oldest, folder / "each", segment_bytes=1).segments
    everything, found = written(archive.files), dict[str, list[Begun]]()
    for name in archive.names:
        found[name] = [Begun(oldest, everything)]
        ends = [LogPosition(name, each.end_offset) for each in segments if each.source_file == name]
        for end in (ends[1], ends[-1]):
            start = behind(window(source, oldest, folder / "begun", UntilPosition(end)))
            shutil.rmtree(folder / "begun")
            found[name].append(Begun(start, everything[start.seqno :]))
    return found


def read(source: ArchiveSource, start: Start, folder: Path) -> list[bytes]:
    """The transactions of a window up to the archive's end."""
    shutil.rmtree(folder, ignore_errors=True)
    segments = window(source, start, folder).segments
    return [
        each
        for segment in segments
        for each in bytes_of_transactions((folder / segment.name).read_bytes(), segment.name)
    ]


def passed(source: ArchiveSource, start: Start) -> int:
    """Bytes that a reader without a window gets up to the archive's end."""
    return sum(len(chunk.data) for chunk in proved(source, start) if chunk.offset != LOG_START)


def damage_everywhere(
    archive: Archive, folder: Path, pairs: Sequence[str], suffixes: Sequence[str] = ("",)
) -> Counter[str]:
    """Each kind of damage to each of the pairs, named by their first file; how many were refused and read, by kind.

    ``suffixes``: how the files are compressed, in turn.

    Raises AssertionError for the first window that has other transactions than the server wrote, or is refused for
    damage by which nothing is lost.
    """
    killed = {name for name, end in zip(archive.names, archive.ends, strict=False) if end == KILL}
    trusted = frozenset() if archive.has_gtids else frozenset(killed)
    places, counted = begun(archive, trusted, folder), Counter[str]()
    losing = {**LOSING, **(LOSING_WITH_GTIDS if archive.has_gtids else {})}
    harmless = {**HARMLESS, **(PROVED_BY_GTIDS if archive.has_gtids else {})}
    for name, (what, damage) in itertools.product(pairs, {**losing, **harmless}.items()):
        files = damage(archive, name)
        is_losing = what in losing and not _is_beginning(files, archive.files)
        source = put(packed(files, suffixes), folder / "damaged", trusted - {name} if is_losing else trusted)
        # without its oldest file the rest is whole: a window knows where it begins, an inspection does not
        is_seen = is_losing and files != {each: archive.files[each] for each in archive.names[1:]}
        inspect(files, folder / "damaged", f"{what}, {name}", is_losing=is_seen, has_gtids=archive.has_gtids)
        for number, place in enumerate(places[name]):
            case = f"{what}, {name}, begun at {place.start.position}"
            if is_losing:
                names = "|".join(archive.names[archive.names.index(name) :])
                with pytest.raises(BinlaneError, match=names):
                    pytest.fail(f"{case}: expected a refusal, read {len(read(source, place.start, folder / 'read'))}")
                with pytest.raises(BinlaneError, match=names):
                    pytest.fail(f"{case}: without a window: expected a refusal, read {passed(source, place.start)}")
                counted[f"{what}: refused"] += 1
                continue
            found = read(source, place.start, folder / "read")
            assert passed(source, place.start) >= sum(map(len, found)), case
            whole = place.behind
            if _is_beginning(files, archive.files):
                whole = whole[: len(found)]
                assert found or number == _AT_END, case
            assert found == whole, case
            counted[f"{what}: read"] += 1
    return counted


def inspect(files: Files, folder: Path, case: str, *, is_losing: bool, has_gtids: bool) -> None:
    """``binlane inspect`` of the files in their order lists what it can, and says where they do not follow each other.

    Raises AssertionError if it says nothing of damage by which transactions are lost, or warns where nothing is lost.
    """
    paths, said, out = sorted(folder.iterdir()), io.StringIO(), Terminal(file=io.StringIO())
    unread = ""
    try:
        inspect_files(paths, as_json=True, out=out, err=Terminal(file=said))
    except BinlogError as exc:
        unread = str(exc)
    is_twice = len({path.stem if path.suffix in COMPRESS else path.name for path in paths}) < len(paths)
    if is_losing:
        assert "read as one log: binlog." in said.getvalue() or "cannot be read to the end" in unread, case
    elif has_gtids and not is_twice:
        assert (said.getvalue(), unread) == ("", ""), case


_AT_END: Final = 2


def _is_beginning(files: Files, whole: Files) -> bool:
    """Whether the archive's newest files are missing, and nothing else is wrong."""
    return files == {name: whole[name] for name in sorted(whole)[: len(files)] if name in whole}
