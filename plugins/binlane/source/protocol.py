"""The interface of all sources of events: complete events in the source's order, with their positions."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from binlane.binlog.payload import MAX_UNCOMPRESSED
from binlane.errors import MissingLogError, SourceError, SourceIdentityError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition, TableKey

LOG_START = 4
"""The first event of a file stands behind the four bytes of magic."""
EVERY_SESSION = 0xFFFF_FFFF
"""The highest id of a connection that the log can hold."""
LARGEST_EVENT = 1 << 30
"""Default of ``source.event_bytes``: the servers' own limit for max_allowed_packet, beyond which replicas refuse an
event."""
_FIRST_BYTES = 64 << 10


class LogChunk(NamedTuple):
    """Whole events that follow each other in one file of the source.

    The first chunk of each file holds FORMAT_DESCRIPTION alone, with ``offset`` 4, wherever reading begins.
    """

    file: str
    offset: int
    """Offset of ``data`` in the source's file, 64 bits wide."""
    data: bytes
    left_out: int = 0
    """Bytes of the file directly before ``offset`` that are in no chunk: START_ENCRYPTION of a server that decrypts."""


@dataclass(frozen=True, slots=True)
class LogState:
    """State of the source at the time of the query."""

    identity: str
    """Of a server: does not change while it is the same one. Of an archive: of its oldest file; see
    ``is_another_source``."""
    flavor: Flavor
    files: tuple[str, ...]
    """The source's binlog files, oldest first."""
    end: LogPosition | None
    """The log's end; None if it is found only by reading."""
    clock: float
    """Seconds since the epoch; no correct commit time in the log is later. At most a minute ahead of this machine's."""
    closes_by_clock: bool
    """Whether new transactions cannot have commit times before ``clock``. False for an archive, which may get older
    files."""
    sizes: tuple[int, ...] = ()
    """Bytes of each of ``files``; empty if they are not known."""
    unlogged: str = ""
    """GTIDs of transactions that the source has and no file of its log, because they were purged or never logged."""
    put_in: str = ""
    """MariaDB: gtid_slave_pos, the transactions that the source has by replication, or that a dump has put in: its log
    has them, too, unless they were put in."""
    taken: str = ""
    """GTIDs that no file of the log needs to have: the target has them."""
    may_lose: bool | None = None
    """Whether the source, as it is set now, may have transactions behind a crash that no file of its log has. None: its
    GTIDs tell of them, or it cannot be asked."""
    own_clock: float | None = None
    """What the source's clock says, however far it is ahead: what the log has of the source's own time is compared with
    it. None: ``clock``."""
    trusted_files: frozenset[str] = frozenset()
    """Files of an archive that are taken as they are, although nothing proves that they are complete."""

    def bytes_between(self, start: LogPosition, stop: LogPosition | None) -> int:
        """Bytes of log from ``start`` to ``stop``, without it to the end; 0 if the files' sizes are not known."""
        end = self.end if stop is None else stop
        if end is None or not self.sizes or not {start.file, end.file} <= set(self.files):
            return 0
        first, last = self.files.index(start.file), self.files.index(end.file)
        return max(0, sum(self.sizes[first:last]) + end.offset - start.offset)


class EventSource(Protocol):
    """A log that can be read from any event's offset on. ``name`` begins every message about it."""

    @property
    def name(self) -> str:
        """The server or the folder."""

    @property
    def event_bytes(self) -> int:
        """Maximum bytes of one event, as logged and as decompressed. An event that declares more is damaged or hostile,
        and is refused before memory is allocated."""

    def state(self) -> LogState:
        """Query the source; raises SourceError or PrecheckError if its log cannot be read."""

    def newest_session(self) -> int:
        """The id of the newest connection of the source's server; EVERY_SESSION if there is no server to ask, or its
        log may have the connections of another one."""

    def open_sessions(self) -> frozenset[tuple[int, int]] | None:
        """Server id and thread id of each connection of the source's server; None if there is no server to ask, or the
        account does not see them all."""

    def unlogged_sessions(self) -> tuple[int, ...]:
        """Ids of connections of the source's server that write without its log now, ascending; none if there is no
        server to ask, or the account does not see it."""

    def missing_tables(self, tables: Collection[TableKey]) -> frozenset[TableKey]:
        """Those that the source's server does not have, as permanent tables or views, and says so; none if there is no
        server to ask, or the account may not know."""

    def can_begin_at(self, offset: int) -> bool:
        """Whether reading can begin at this offset without a GTID set."""

    def read_log(self, start: LogPosition, gtid_set: str = "") -> Generator[LogChunk, None, None]:
        """Chunks from ``start``, an event's first byte, to the log's end. Close the generator to stop early.

        ``gtid_set``: all transactions before ``start``, for servers that find a large offset only by GTIDs.
        """


def first_bytes(source: EventSource, file: str) -> bytes:
    """The first events of a file behind its FORMAT_DESCRIPTION, in any number; empty if it has none."""
    return first_bytes_of(source.read_log(LogPosition(file, LOG_START)), file)


def first_bytes_of(log: Generator[LogChunk, None, None], file: str) -> bytes:
    """The same of a log that begins with the file."""
    with contextlib.closing(log) as chunks:
        next(chunks)
        chunk = next(chunks, None)
        return chunk.data[:_FIRST_BYTES] if chunk is not None and chunk.file == file else b""


def too_large(place: str, declared: int, limit: int, inflated: str = "") -> UnsupportedEventError:
    """The error for an event that declares more bytes than allowed. ``place``: the event's place and type, for the
    message."""
    return UnsupportedEventError(
        f"{place}declares {declared:,}{inflated} bytes, source.event_bytes of the channel is {limit:,}: the log "
        "is damaged here, or manipulated to exhaust this machine's memory; if your source wrote this event, "
        "raise source.event_bytes"
    )


LOG_BYTES: Final = (1 << 30) + MAX_UNCOMPRESSED
"""The limit of what a compressed file of a log holds. A server begins a new file at max_binlog_size, 1 GiB at most, but
never inside of a transaction; a plain file takes its bytes on a disk already, and has no limit."""


class LogLengthError(Exception):
    """A compressed file holds more than a file of a log."""


def check_log_length(length: int, most: int = LOG_BYTES) -> None:
    """Raises LogLengthError if a file holds more than ``most`` bytes."""
    if length > most:
        raise LogLengthError(
            f"expected at most {most:,} bytes in a compressed file of a log, found more; if the file is whole, "
            "decompress it: a plain one has no limit"
        )


def of_log(pieces: Iterable[bytes], most: int = LOG_BYTES) -> Iterator[bytes]:
    """The pieces of a file of a log. Raises LogLengthError."""
    length = 0
    for piece in pieces:
        length += len(piece)
        check_log_length(length, most)
        yield piece


_LONGEST_NAME: Final = 255
"""Bytes of a file's name, at most."""


def file_number(name: str) -> int:
    """The number behind a binlog file's name: 7 of ``binlog.000007``. Raises SourceError if it has none."""
    number = name.rpartition(".")[2]
    if not number.isdecimal() or len(number) > _LONGEST_NAME:
        raise SourceError(
            f"{name}: expected a file of the log with a number behind its name, such as binlog.000007: MySQL gives "
            "none to a log whose name has a dot; set log_bin on the source to a name without dots, and begin the "
            "channel there"
        )
    return int(number)


def base_of(name: str) -> str:
    """The name of the log that a file belongs to: ``binlog`` of ``binlog.000007``."""
    return name.rpartition(".")[0]


def missing_file(where: str, file: str, names: Sequence[str]) -> SourceError:
    """The error for a file that the log does not have: the file was purged, or the log was reset. ``names``: oldest
    first."""
    if base_of(names[-1]) != base_of(file):
        return SourceIdentityError(
            f"{where}: expected {file}, the newest is {names[-1]}: the log has another name than before (option "
            f"log_bin): give it its name {base_of(file)} back, with its index, or read the rest of the old files as an "
            f"archive and begin a channel at {names[0]}:{LOG_START}"
        )
    if file_number(names[-1]) < file_number(file):
        return SourceIdentityError(
            f"{where}: expected {file}, the newest is {names[-1]}: the log was renumbered (RESET MASTER, or another "
            "server); a new source needs a new channel"
        )
    return MissingLogError(
        f"{where}: expected {file}, the oldest is {names[0]}: it was purged before it was read; put it back, read "
        "it as an archive, or load a newer backup into the target"
    )


def check_follows(where: str, before: str, rotates_to: str, found: str) -> None:
    """Raises MissingLogError if ``found`` is not the file that the ROTATE event of the file ``before`` names.

    A file that ends by a crash or a shutdown has no ROTATE: then the files' numbers must follow each other.
    """
    if found == rotates_to:
        return
    stem, _, number = before.rpartition(".")
    expected = rotates_to or f"{stem}.{int(number) + 1:0{len(number)}}"
    if rotates_to or file_number(found) != int(number) + 1:
        raise missing_between(where, before, expected, found)


def missing_between(where: str, before: str, expected: str, found: str) -> MissingLogError:
    """The error for a gap between two files of the log."""
    return MissingLogError(
        f"{where}: {before} is not followed by its next file: expected {expected}, found {found}: a file between "
        "them was removed, and its changes would be lost; put the file back with its line in the index, read the "
        "log from an archive that has the file, or load a newer backup into the target"
    )
