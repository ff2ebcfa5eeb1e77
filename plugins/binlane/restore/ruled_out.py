"""The files of an archive that a restore need not read: by the archive's index they hold nothing of its databases.

A file is passed over only if the index is of this very file (every byte is compared with its BLAKE3), if the files
around it follow each other by their numbers, their server and their GTIDs, and if no server was started in between.
Whatever does not fit is read as if there were no index, with the proofs and errors that reading has.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from blake3 import blake3

from binlane.binlog.wire import HEADER
from binlane.errors import BinlogError, SourceError
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition
from binlane.restore.archive_index import ArchiveIndex, IndexedFile
from binlane.source.archive import ArchiveSource
from binlane.source.continuity import is_of_rotation
from binlane.source.identity import Start, described
from binlane.source.protocol import LOG_START, EventSource, file_number
from binlane.source.start_position import begin

log = logging.getLogger(__name__)

LEAST: Final = 64 << 20
"""Bytes of files that are passed over together, at least: the windows around them take seconds of their own."""
_PIECE: Final = 8 << 20
_PACKED: Final = (".gz", ".zst")


@dataclass(frozen=True, slots=True)
class Passage:
    """Files that are passed over."""

    files: tuple[IndexedFile, ...]
    begin: Start
    """The beginning of the first one."""
    behind: Start
    """The beginning of the file behind them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the files in the log."""
        return tuple(each.file for each in self.files)


class RuledOut:
    """What the index of a source's archive says of some databases. A live server has none."""

    def __init__(self, source: EventSource, databases: frozenset[str]) -> None:
        """Raises SourceError for a folder that is no archive of one log."""
        self._source = source if isinstance(source, ArchiveSource) else None
        self._databases = databases
        self._index = None if self._source is None else ArchiveIndex(self._source)
        self._refused = set[str]()

    def begin_of(self, run: Sequence[IndexedFile]) -> LogPosition | None:
        """The place in front of the files of a run; None, and they are not passed over, if it cannot be read."""
        assert self._source is not None
        with self._refusing(run[0]):
            return begin(self._source, f"{run[0].file}:{LOG_START}").position
        return None

    def refuse(self, run: Sequence[IndexedFile]) -> None:
        """Do not pass over these files any more."""
        self._refused |= {each.file for each in run}

    def runs(self, start: LogPosition, before: str | None = None) -> Iterator[tuple[IndexedFile, ...]]:
        """Files that may be passed over together, in the log's order: whole behind a place, and before a file."""
        index = self._index
        if index is None or index.is_empty or not {start.file, before or start.file} <= {*index.files}:
            return
        first = index.files.index(start.file)
        end = len(index.files) if before is None else index.files.index(before)
        facts = index.of(start.file).facts
        if facts is None or start.offset > facts.begin:
            first += 1
        run: list[IndexedFile] = []
        for each in index.files[first:end]:
            facts = self._passable(index.of(each).facts)
            if run and (facts is None or not _follow(run[-1], facts)):
                yield from _large(run)
                run = []
            # a file without transactions is not seen by a reader of transactions
            if facts is not None and (run or facts.transactions):
                run.append(facts)
        yield from _large(run)

    def _passable(self, facts: IndexedFile | None) -> IndexedFile | None:
        is_read = facts is None or facts.file in self._refused or facts.is_after_start
        return None if facts is None or is_read or facts.may_concern(self._databases) else facts

    def passage(self, run: Sequence[IndexedFile]) -> Passage | None:
        """Over as many of the files, from the first on, as are what their index describes; None: they have to be
        read."""
        source, index = self._source, self._index
        assert source is not None
        assert index is not None
        files: list[IndexedFile] = []
        for each in run:
            with self._refusing(each):
                if self._is_as_indexed(each):
                    files.append(each)
                    continue
            break
        if not files:
            return None
        with self._refusing(files[0]):
            first, last = files[0], files[-1]
            after = index.files[index.files.index(last.file) + 1]
            ahead, behind = (begin(source, f"{file}:{LOG_START}") for file in (first.file, after))
            if (
                ahead.gtid_set == first.gtids_before
                and _goes_on(source, last, after)
                and behind.gtid_set == last.gtid_set
            ):
                return Passage(tuple(files), ahead, behind)
            self._refused.add(first.file)
        return None

    def _is_as_indexed(self, facts: IndexedFile) -> bool:
        assert self._source is not None
        if is_as_indexed(self._source, facts, self._databases):
            return True
        self._refused.add(facts.file)
        return False

    @contextlib.contextmanager
    def _refusing(self, file: IndexedFile) -> Iterator[None]:
        """What fails here is read without an index, and fails there by its name."""
        try:
            yield
        except (SourceError, BinlogError) as exc:
            log.info("%s: the index of %s is not used: %s", file.file, file.stored, exc)
            self._refused.add(file.file)


def is_as_indexed(source: ArchiveSource, facts: IndexedFile, databases: Iterable[str]) -> bool:
    """Whether the file has the content that was indexed and, where it can be seen, no TABLE_MAP of the databases: an
    index that lies about them is not believed in plain files."""
    is_plain = not facts.stored.endswith(_PACKED)
    maps = [_in_map(name) for name in databases] if is_plain else []
    overlap = max(map(len, maps), default=1) - 1
    hashed, before = blake3(max_threads=blake3.AUTO), b""
    for piece in source.read_stored(facts.stored, _PIECE):
        hashed.update(piece)
        edge = before + piece[:overlap]
        if any(text in piece or text in edge for text in maps):
            return False
        before = piece[-overlap:] if overlap else b""
    if hashed.hexdigest() != facts.blake3:
        log.warning("%s: %s is not the file that was indexed; it is read", source.name, facts.stored)
        return False
    return True


def _large(run: Sequence[IndexedFile]) -> Iterator[tuple[IndexedFile, ...]]:
    if run and sum(each.bytes for each in run) >= LEAST:
        yield tuple(run)


def _follow(one: IndexedFile, other: IndexedFile) -> bool:
    """Whether the second file is the next one of the same server's log."""
    return (
        file_number(other.file) == file_number(one.file) + 1
        and (other.flavor, other.server_id) == (one.flavor, one.server_id)
        and other.gtids_before == one.gtid_set
        and _is_bound(one, other.begun)
        and other.blake3 != one.blake3
    )


def _is_bound(one: IndexedFile, begun: float) -> bool:
    """Whether more than numbers and the server id says that a file that was begun then is the next one."""
    return one.gtid_set != "" or is_of_rotation(int(one.ended), int(begun))


def _goes_on(source: ArchiveSource, last: IndexedFile, after: str) -> bool:
    """Whether a file that is read is the next one, begun by the same server without a start."""
    with contextlib.closing(source.read_file(after, is_last=True)) as chunks:
        header = next(chunks).data
    begun, _, server_id, *_ = HEADER.unpack_from(header)
    if not _is_bound(last, begun):
        return False
    log_format = described(header, f"{source.name}/{after}")
    return file_number(after) == file_number(last.file) + 1 and (log_format.flavor, server_id, log_format.created) == (
        last.flavor,
        last.server_id,
        0,
    )


def _in_map(database: str) -> bytes:
    """The name as a TABLE_MAP has it: its length, the name, and a zero."""
    name = database.encode()
    return bytes((len(name),)) + name + b"\0"
