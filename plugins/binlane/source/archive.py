"""A folder of binlog files as a source: plain, .gz or .zst, on anything that fsspec reads, streamed piece by piece.

Their order is that of the numbers in their names. A ``*.index`` file of the server says which log's they are, and from
the first one that it names and the folder has, each must be there, but for the newest: a copy may have taken the index
behind the files. The folder may have more files of that log than the index: older ones, which the server has purged,
and newer ones. The proofs of ``continuity`` decide whether they follow each other.
"""

from __future__ import annotations

import contextlib
import itertools
import posixpath
import re
import struct
import time
import zlib
from collections.abc import Callable, Collection, Generator, Iterator
from functools import cached_property
from itertools import pairwise
from typing import IO, Any, Final, cast

import zstandard

from binlane.binlog.reader import ENCRYPTION, INNODB_LOG, check_first_type, check_magic, encrypted
from binlane.binlog.vector.frames import as_array
from binlane.binlog.wire import FLAGS_AT, HEADER, IN_USE, MAGIC, Buffer, type_name
from binlane.errors import (
    BinlogError,
    MissingLogError,
    PrecheckError,
    SourceError,
    SourceIdentityError,
    SourceUnavailableError,
    TruncatedEventError,
    UnsupportedEventError,
)
from binlane.kernels import framing
from binlane.lazy_dataclass import dataclass
from binlane.model import LogPosition, TableKey, plural
from binlane.regular_files import NotRegularFileError, open_regular
from binlane.sessions.server_proof import archive_identity
from binlane.source.gzip_stream import GzipStream
from binlane.source.identity import described
from binlane.source.protocol import (
    EVERY_SESSION,
    LARGEST_EVENT,
    LOG_BYTES,
    LOG_START,
    LogChunk,
    LogLengthError,
    LogState,
    base_of,
    check_log_length,
    file_number,
    missing_file,
    too_large,
)
from binlane.work.files import file_system

_PIECE: Final = 1 << 20
_LARGE_PIECE: Final = 8 << 20
"""For who reads a whole file: what each chunk costs, whatever is in it, is most of the time else."""
_INDEX_BYTES: Final = 16 << 20
"""Maximum of an index file: half a million names of files."""
_BINLOG: Final = re.compile(r"(?P<base>.+)\.(?P<number>[0-9]{4,})(?P<packed>\.gz|\.zst)?")
_SIZE: Final = struct.Struct("<I")
_AT_TYPE: Final = 4
_AT_SIZE: Final = 9


@dataclass(frozen=True)
class ArchiveSource:
    """The binlog files below ``uri``. Files whose name is not that of a binlog are ignored."""

    uri: str
    event_bytes: int = LARGEST_EVENT
    trusted_files: frozenset[str] = frozenset()
    """See LogState."""
    log_bytes: int = LOG_BYTES
    """The limit of what a compressed file holds."""

    @property
    def name(self) -> str:
        """The folder's URI."""
        return self.uri

    def state(self) -> LogState:
        """List the folder and read the oldest file's header; raises SourceError if there is no binlog file in it."""
        files = self._files()
        first = next(iter(files))
        with contextlib.closing(self._events(first, files[first], LOG_START)) as events:
            header = next(events).data
        server_id = HEADER.unpack_from(header)[2]
        flavor = described(header, f"{self.name}/{first}").flavor
        # no archived transaction is later than this machine's clock
        clock = time.time()
        identity = archive_identity(flavor, server_id)
        return LogState(
            identity, flavor, tuple(files), None, clock, closes_by_clock=False, trusted_files=self.trusted_files
        )

    def newest_session(self) -> int:
        """EVERY_SESSION: there is no server to ask."""
        return EVERY_SESSION

    def open_sessions(self) -> None:
        """None: there is no server to ask."""

    def unlogged_sessions(self) -> tuple[int, ...]:
        """None: there is no server to ask."""
        return ()

    def missing_tables(self, tables: Collection[TableKey]) -> frozenset[TableKey]:
        """None: there is no server to ask."""
        return frozenset()

    def can_begin_at(self, offset: int) -> bool:
        """True: an archive can be read from any offset."""
        return True

    def read_log(self, start: LogPosition, gtid_set: str = "") -> Generator[LogChunk, None, None]:
        """Chunks from ``start`` to the end of the newest file; the GTID set is not needed.

        Raises MissingLogError if ``start``'s file or a later one is missing, BinlogError for a file that is not a
        binlog.
        """
        files = self._files()
        names = list(files)
        if start.file not in files:
            raise missing_file(self.name, start.file, names)
        needed = names[names.index(start.file) :]
        for before, after in pairwise(needed):
            check_gap(self.name, before, after)
        for file in needed:
            offset = max(start.offset, LOG_START) if file == start.file else LOG_START
            yield from self._events(file, files[file], offset, is_last=file == needed[-1])

    def file_names(self) -> tuple[str, ...]:
        """The log's files, oldest first; raises SourceError for a folder without the files of one log."""
        return tuple(self._files())

    def read_file(self, file: str, *, is_last: bool) -> Generator[LogChunk, None, None]:
        """Chunks of one file. ``is_last``: it may end anywhere, because its server may be writing it."""
        yield from self._events(file, self._files()[file], LOG_START, is_last=is_last)

    def stored_files(self) -> dict[str, tuple[str, ...]]:
        """The names under which the folder has each of ``file_names``: more than one if it has copies."""
        return {file: tuple(map(posixpath.basename, paths)) for file, paths in self._files().items()}

    def stored_size(self, stored: str) -> int:
        """Bytes of a file as it is in the folder. Raises SourceUnavailableError."""
        with self._errors(f"{self.name}/{stored}"):
            return int(self._place[0].size(self._path(stored)))

    def read_stored(self, stored: str, piece: int) -> Generator[bytes, None, None]:
        """A file as it is in the folder, in pieces. Raises SourceError and SourceUnavailableError."""
        with self._errors(f"{self.name}/{stored}"), self._stored(self._path(stored)) as file:
            while data := file.read(piece):
                yield data

    def read_only_copy(
        self, file: str, stored: str, read: Callable[[Buffer], object]
    ) -> Generator[LogChunk, None, None]:
        """``read_file`` of a complete file that the folder has once, as ``stored``, in larger chunks. ``read`` gets the
        bytes as they are in the folder, up to the end of what was decompressed."""
        where, path = f"{self.name}/{file}", self._path(stored)
        with self._errors(where), self._stored(path) as raw:
            told = cast("IO[bytes]", _StreamObserver(raw, read))
            with _unpacked(told, path, self.log_bytes) as stream:
                yield from self._reader(where, file, stream, may_grow=False).chunks(LOG_START, _LARGE_PIECE)

    def _path(self, stored: str) -> str:
        return posixpath.join(self._place[1], stored)

    @cached_property
    def _place(self) -> tuple[Any, str]:
        return file_system(self.uri)

    def _files(self) -> dict[str, list[str]]:
        """Binlog name (without .gz, .zst) to the paths of its copies, in the log's order."""
        filesystem, folder = self._place
        try:
            # object stores cache listings
            filesystem.invalidate_cache(folder)
            paths = sorted(str(entry) for entry in filesystem.ls(folder, detail=False))
        except FileNotFoundError:
            raise SourceError(
                f"{self.name}: expected a folder of binlog files, found no such folder; give the archive's (a channel "
                "has it as source.archive)"
            ) from None
        except PermissionError as exc:
            raise _refused(self.name, exc) from exc
        except Exception as exc:
            # a storage's own package has errors of its own
            raise SourceUnavailableError(
                f"{self.name}: cannot be listed: {exc}; if the storage is an object store, compare its address and "
                "this machine's credentials for it; then the step can be run again"
            ) from exc
        found: dict[str, list[str]] = {}
        for path in paths:
            if match := _BINLOG.fullmatch(posixpath.basename(path)):
                found.setdefault(f"{match['base']}.{match['number']}", []).append(path)
        if other := [path for path in paths if path.endswith(".ibb")]:
            # a server with InnoDB-based logs writes new events only to them: the plain files are not its whole log
            raise UnsupportedEventError(
                f"{self.name}/{posixpath.basename(other[0])}:0: {INNODB_LOG}, into a folder without it"
            )
        if not found:
            raise SourceError(f"{self.name}: expected binlog files such as binlog.000001, found none")
        indexes = [path for path in paths if path.endswith(".index")]
        order = sorted(self._indexed(indexes, found) if indexes else found, key=file_number)
        if len(bases := set(map(base_of, order))) > 1:
            raise SourceError(f"{self.name}: expected the files of one log, found {', '.join(sorted(bases))}")
        return {name: found[name] for name in order}

    def _indexed(self, indexes: list[str], found: dict[str, list[str]]) -> list[str]:
        """The files of the index's log."""
        if len(indexes) > 1:
            raise SourceError(f"{self.name}: expected one index file, found {len(indexes)}")
        where = f"{self.name}/{posixpath.basename(indexes[0])}"
        with self._errors(where), self._stored(indexes[0]) as file:
            data = file.read(_INDEX_BYTES + 1)
        if len(data) > _INDEX_BYTES:
            raise SourceError(
                f"{where}: expected the server's index file, found more than {_INDEX_BYTES >> 20} MiB; put the "
                "server's own there, or remove it"
            )
        # names are bytes, and only those that the folder has are of use
        lines = data.decode("utf-8", "surrogateescape").split("\n")
        order = [posixpath.basename(line.strip()) for line in lines if line.strip()]
        there = [name for name in order if name in found]
        if not there:
            raise MissingLogError(
                f"{where}: expected names of the folder's {plural(len(found), 'binlog file')}, found none of them; "
                "put the server's own index there, or remove it"
            )
        # files may be removed at the log's beginning; the newest one may have been begun while the others were copied
        if gone := next((name for name in order[order.index(there[0]) : -1] if name not in found), None):
            raise MissingLogError(
                f"{where}: the index names {gone}, found no such file; put the file back, or the server's index of "
                "before it"
            )
        bases = set(map(base_of, there))
        return [name for name in found if base_of(name) in bases]

    def _events(
        self, file: str, paths: list[str], offset: int, *, is_last: bool = True
    ) -> Generator[LogChunk, None, None]:
        where = f"{self.name}/{file}"
        with self._errors(where), self._opened(self._longest(where, paths)) as stream:
            yield from self._reader(where, file, stream, may_grow=is_last).chunks(offset)

    def _reader(self, where: str, file: str, stream: IO[bytes], *, may_grow: bool) -> _FileReader:
        may_end_anywhere = may_grow or file in self.trusted_files
        return _FileReader(where, file, stream, self.event_bytes, may_grow=may_end_anywhere)

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[IO[bytes]]:
        with self._stored(path) as raw, _unpacked(raw, path, self.log_bytes) as stream:
            yield stream

    def _stored(self, path: str) -> IO[bytes]:
        """The file as it is in the folder. Raises NotRegularFileError."""
        filesystem = self._place[0]
        stored: IO[bytes] = open_regular(path) if "file" in filesystem.protocol else filesystem.open(path, "rb")
        return stored

    def _longest(self, where: str, paths: list[str]) -> str:
        """The copy, plain or compressed, that has all that the others have.

        A plain one may have been copied while its server was writing it, a compressed one may be growing.
        """
        best = paths[0]
        for path in paths[1:]:
            with self._opened(best) as one, self._opened(path) as other:
                best = (best, path)[
                    _longer(one, other, f"{where}: {posixpath.basename(best)} and {posixpath.basename(path)}")
                ]
        return best

    @contextlib.contextmanager
    def _errors(self, where: str) -> Iterator[None]:
        try:
            yield
        except (zlib.error, zstandard.ZstdError) as exc:
            raise BinlogError(f"{where}: cannot be decompressed: {exc}; copy the file into the archive again") from exc
        except LogLengthError as exc:
            raise BinlogError(f"{where}: {exc}") from exc
        except EOFError as exc:
            raise TruncatedEventError(
                f"{where}: the compressed file ends too early: {exc}; copy the file into the archive again"
            ) from exc
        except NotRegularFileError as exc:
            raise SourceError(
                f"{posixpath.dirname(where)}/{posixpath.basename(exc.filename)}: {exc.strerror}; put the file there, "
                "or remove this from the archive"
            ) from exc
        except PermissionError as exc:
            raise _refused(where, exc) from exc
        except OSError as exc:
            raise SourceUnavailableError(f"{where}: cannot be read: {exc}; the step can be run again") from exc


def _refused(where: str, exc: PermissionError) -> PrecheckError:
    return PrecheckError(
        f"{where}: cannot be read: {exc}; let the account that runs binlane, or its credentials for the storage, list "
        "the archive's folder and read its files, then run again"
    )


def check_gap(where: str, before: str, after: str) -> None:
    """Raises MissingLogError if a file between two neighbours of an archive is missing, by their numbers."""
    if file_number(after) != file_number(before) + 1:
        raise MissingLogError(
            f"{where}: after {before} expected number {file_number(before) + 1}, found {after}; put "
            "the missing file into the archive"
        )


def _longer(one: IO[bytes], other: IO[bytes], names: str) -> int:
    """0 or 1: which of two copies of a file has more. Raises SourceIdentityError if they differ."""
    copies = [_Copy(one), _Copy(other)]
    for copy in copies:
        copy.take_header()
    while True:
        left, right = (copy.peek() for copy in copies)
        length = min(len(left), len(right))
        if length == 0:
            return int(len(right) > len(left))
        if left[:length] != right[:length]:
            raise SourceIdentityError(
                f"{names}: expected copies of one file, of which one may be shorter, found other events from offset "
                f"{copies[0].position} on; remove the wrong one from the archive"
            )
        for copy in copies:
            copy.skip(length)


class _Copy:
    """One of a file's copies, read piece by piece; what cannot be decompressed any more is its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._rest = b""
        self.position = 0

    def peek(self) -> bytes:
        """Some bytes from the present place on; none at the end."""
        if not self._rest:
            with contextlib.suppress(EOFError, zlib.error, zstandard.ZstdError):
                self._rest = self._stream.read(_PIECE)
        return self._rest

    def skip(self, length: int) -> None:
        """Move behind bytes of ``peek``."""
        self._rest = self._rest[length:]
        self.position += length

    def take_header(self) -> None:
        """Move behind FORMAT_DESCRIPTION, whose flags and checksum change when the file is closed."""
        head = self.peek()
        if len(head) >= LOG_START + HEADER.size:
            self.skip(min(LOG_START + int(_SIZE.unpack_from(head, LOG_START + _AT_SIZE)[0]), len(head)))


class _FileReader:
    """One open binlog file, cut into chunks of whole events."""

    def __init__(self, where: str, file: str, stream: IO[bytes], event_bytes: int, *, may_grow: bool) -> None:
        self._where = where
        self._event_bytes = event_bytes
        self._file = file
        self._stream = stream
        self._may_grow = may_grow
        self._was_closed = True

    def chunks(self, start: int, piece_bytes: int = _PIECE) -> Iterator[LogChunk]:
        """FORMAT_DESCRIPTION, then everything from ``start`` on."""
        check_magic(self._stream.read(len(MAGIC)), self._where)
        header = self._header()
        yield LogChunk(self._file, LOG_START, header)
        position = LOG_START + len(header)
        ahead = self._stream.read(HEADER.size)
        if len(ahead) > _AT_TYPE and ahead[_AT_TYPE] in ENCRYPTION:
            raise encrypted(f"{self._where}:{position}: ")
        if start > position:
            ahead, position = b"", self._skip(position + len(ahead), start)
        # one buffer for all of them: the system takes long to give new memory
        buffer = bytearray(ahead) + bytearray(piece_bytes)
        have, needed = 0, 0
        read = iter(lambda: self._read_into(buffer, have), 0)
        for size in itertools.chain([len(ahead)] if ahead else [], read):
            have += size
            if have < needed:
                if have == len(buffer):
                    # as it comes: a damaged size may say anything
                    buffer.extend(bytes(min(needed - have, have)))
                continue
            end = self._whole_events(buffer, have, position)
            if end:
                yield LogChunk(self._file, position, bytes(memoryview(buffer)[:end]))
                buffer[: have - end] = buffer[end:have]
                have, position = have - end, position + end
            needed = self._declared(buffer[: min(have, HEADER.size)], position)
            if needed <= piece_bytes:
                del buffer[2 * piece_bytes :]
            elif have == len(buffer):
                buffer.extend(bytes(min(needed - have, have)))
        # a file that was not closed may end anywhere: the server crashed, or is writing it
        if have and self._was_closed and not self._may_grow:
            raise TruncatedEventError(
                f"{self._where}:{position}: the file ends inside an event, {have} bytes after its beginning; "
                "copy the file into the archive again; if it is as long as on its server (SHOW BINARY LOGS), name "
                f"{self._file} in source.trusted_files of the channel"
            )

    def _read_into(self, buffer: bytearray, at: int) -> int:
        """Bytes that were read; 0 at the end."""
        return _read_into(self._stream, memoryview(buffer)[at:])

    def _declared(self, rest: bytearray, position: int) -> int:
        """Size in bytes of the event that begins with ``rest``; 0 if ``rest`` is too short to tell."""
        if len(rest) < HEADER.size:
            return 0
        size = int(_SIZE.unpack_from(rest, _AT_SIZE)[0])
        if size > self._event_bytes:
            raise too_large(f"{self._where}:{position}: {type_name(rest[_AT_TYPE])}: ", size, self._event_bytes)
        return size

    def _header(self) -> bytes:
        head = self._stream.read(HEADER.size)
        if len(head) > _AT_TYPE:
            check_first_type(head[_AT_TYPE], self._where)
        if len(head) < HEADER.size:
            raise TruncatedEventError(f"{self._where}:{LOG_START}: the file ends before its FORMAT_DESCRIPTION")
        size = _SIZE.unpack_from(head, _AT_SIZE)[0]
        if size <= HEADER.size:
            raise BinlogError(
                f"{self._where}:{LOG_START}: FORMAT_DESCRIPTION declares {size} bytes: the file is damaged here"
            )
        event = head + self._stream.read(min(size, _PIECE) - HEADER.size)
        if len(event) != size:
            raise TruncatedEventError(f"{self._where}:{LOG_START}: the file ends inside FORMAT_DESCRIPTION")
        self._was_closed = not event[FLAGS_AT] & IN_USE
        return event

    def _skip(self, position: int, target: int) -> int:
        """Move to ``target``: by seeking, or by decompressing the bytes between."""
        if target == position:
            return position
        if self._stream.seekable():
            size = self._stream.seek(0, 2)
            if size >= target:
                return self._stream.seek(target)
        else:
            while position < target and (piece := self._stream.read(min(_PIECE, target - position))):
                position += len(piece)
            if position == target:
                return position
            size = position
        raise SourceIdentityError(
            f"{self._where}: expected at least {target} bytes, found {size}: this is not the file from which the "
            "watermark was taken"
        )

    def _whole_events(self, data: bytearray, have: int, position: int) -> int:
        """Bytes of whole events at the beginning of ``data``, of which so many are read."""
        end, code = framing.whole_events(as_array(memoryview(data)[:have]), HEADER.size)
        if code == framing.SMALL_SIZE:
            size = _SIZE.unpack_from(data, end + _AT_SIZE)[0]
            raise BinlogError(
                f"{self._where}:{position + end}: event_size {size} is smaller than a header; the file is damaged here"
            )
        return int(end)


class _StreamObserver:
    """Tells what is read of a stream, which is read from its beginning on."""

    def __init__(self, stream: IO[bytes], read: Callable[[Buffer], object]) -> None:
        self._stream, self._read = stream, read

    def read(self, size: int = -1) -> bytes:
        """See IO."""
        data = self._stream.read(size)
        self._read(data)
        return data

    def readinto(self, room: memoryview) -> int:
        """See IO."""
        size = _read_into(self._stream, room)
        self._read(room[:size])
        return size


def _read_into(stream: IO[bytes], room: memoryview) -> int:
    """Read some bytes, without new memory where the stream can; 0 at its end."""
    if (read := getattr(stream, "readinto", None)) is not None:
        return int(read(room))
    data = stream.read(len(room))
    room[: len(data)] = data
    return len(data)


@contextlib.contextmanager
def _unpacked(raw: IO[bytes], path: str, most: int) -> Iterator[IO[bytes]]:
    if path.endswith(".gz"):
        yield _OnlyForward(GzipStream(raw), most)  # type: ignore[misc]
    elif path.endswith(".zst"):
        with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as stream:
            yield _OnlyForward(stream, most)  # type: ignore[misc]
    else:
        yield raw


class _OnlyForward:
    """Hides ``seek``: a compressed stream would have to be decompressed to find its end, and is read anyway."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream = stream
        self._most = most
        self._length = 0

    def read(self, size: int) -> bytes:
        """Exactly ``size`` bytes, fewer only at the end of the file. Raises LogLengthError."""
        parts, left = [], size
        while left and (part := self._stream.read(left)):
            parts.append(part)
            left -= len(part)
        self._length += size - left
        check_log_length(self._length, self._most)
        return b"".join(parts)

    def seekable(self) -> bool:
        """Compressed streams are not seekable."""
        return False
