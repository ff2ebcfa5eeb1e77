"""A live server's log by the replication protocol: PyMySQL logs in, then this module reads the packets in large reads.

Protocol: https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_replication.html and
https://mariadb.com/docs/server/reference/clientserver-protocol/replication-protocol. The dump is non-blocking: the
server sends EOF at the log's end, and wherever the dump is killed. Events arrive as they are in the file, except those
with the ARTIFICIAL flag, heartbeats, and a FORMAT_DESCRIPTION that the server repeats for a start in the middle of a
file.
"""

from __future__ import annotations

import contextlib
import re
import struct
import time
import uuid
import zlib
from collections.abc import Collection, Generator, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import numpy as np
from pymysql.constants import COMMAND
from pymysql.err import MySQLError

from binlane.binlog.wire import ARTIFICIAL, FLAGS_AT, HEADER, EventType, type_name
from binlane.driver.connection import Connection
from binlane.driver.wire import raise_error
from binlane.errors import BinlogError, SourceError, SourceIdentityError, SourceUnavailableError
from binlane.kernels import copying
from binlane.lazy_dataclass import dataclass
from binlane.model import LOG_FILE_NAME, Flavor, LogPosition, TableKey
from binlane.source import server
from binlane.source.gtid_set import MariadbGtidSet, parse_gtid_set
from binlane.source.protocol import EVERY_SESSION, LARGEST_EVENT, LOG_START, LogChunk, LogState, file_number, too_large
from binlane.source.server import translated

DUMP_NON_BLOCK: Final = 0x01
SEND_ANNOTATE_ROWS: Final = 0x02
"""Dump flag: without it MariaDB leaves out ANNOTATE_ROWS events, and the offsets would not add up."""
OFFSET_LIMIT: Final = 0xFFFF_FFFF
"""COM_BINLOG_DUMP's offset has 32 bits."""
_WRITE_SECONDS: Final = 3600
_AGAIN: Final = 0.05
"""Seconds between two dumps of which the first has not reached the log's end."""
_STANDS_STILL: Final = 10.0
"""Seconds for which dumps may bring nothing: longer than a disk takes to sync."""

_BUFFER: Final = 1 << 20
_NO_EVENT: Final = memoryview(b"")
_ROOM: Final = 128 << 10
_HEAD: Final = 1 << 10
"""Bytes within which a file's FORMAT_DESCRIPTION ends."""
_WHOLE_PACKET: Final = 0xFF_FFFF
"""A packet of this length continues in the next one."""
_U32: Final = struct.Struct("<I")
_AT_TYPE: Final = 4
_AT_SIZE: Final = 9
_AT_LOG_POS: Final = 13
_WRAP: Final = 0xFFFF_FFFF
_FILE_NAME: Final = re.compile(LOG_FILE_NAME)
_SHOWN: Final = 80
"""Characters of a wrong name in an error."""
_ERROR_PACKET: Final = b"\xff"
_EOF_PACKET: Final = b"\xfe"
_SPECIAL: Final = frozenset(
    {
        EventType.ROTATE,
        EventType.FORMAT_DESCRIPTION,
        EventType.HEARTBEAT,
        EventType.HEARTBEAT_V2,
        EventType.START_ENCRYPTION,
    }
)
_SPECIAL_TYPES: Final = np.isin(np.arange(256), list(_SPECIAL))
_FILE_HEAD: Final = frozenset({EventType.MARIADB_GTID_LIST, EventType.BINLOG_CHECKPOINT})


@dataclass(frozen=True, slots=True)
class ServerSource:
    """A live server. ``arguments`` are those of ``pymysql.connect``; the dump registers as ``server_id``."""

    name: str
    arguments: dict[str, Any]
    server_id: int
    replica_name: str
    """The channel; shown by SHOW REPLICAS, and the base of the replica's UUID."""
    offset_limit: int = OFFSET_LIMIT
    event_bytes: int = LARGEST_EVENT
    unlogged_gtids: str = ""
    """Transactions that the source has, no file of its log, and the target, too."""

    def state(self) -> LogState:
        """Check that the server's log can be read and is complete; raises SourceError or PrecheckError by name."""
        with contextlib.closing(self.connected()) as connection, self._named(connection):
            server.check_settings(connection, self.name)
            server.check_server_id(connection, self.name, self.server_id, self._host)
            state = server.log_state(connection)
        if state.files:
            # without a number the server writes its log over itself
            file_number(state.files[-1])
        if not self.unlogged_gtids:
            return state
        allowed = parse_gtid_set(state.flavor, self.unlogged_gtids)
        unlogged = str(parse_gtid_set(state.flavor, state.unlogged).ahead_of(allowed))
        return replace(state, unlogged=unlogged, taken=str(allowed))

    def newest_session(self) -> int:
        """The id of a connection that is opened now: a server counts them up until it is restarted.

        EVERY_SESSION: its log has the connections of the server that it replicates, which have other numbers.
        """
        with contextlib.closing(self.connected()) as connection, self._named(connection):
            return EVERY_SESSION if server.may_be_replica(connection) else int(connection.thread_id())

    def open_sessions(self) -> frozenset[tuple[int, int]] | None:
        """All connections; None without PROCESS."""
        with contextlib.closing(self.connected()) as connection, self._named(connection):
            return server.open_sessions(connection)

    def unlogged_sessions(self) -> tuple[int, ...]:
        """Those that MySQL shows to an account that may read ``performance_schema``."""
        with contextlib.closing(self.connected()) as connection, self._named(connection):
            return server.unlogged_sessions(connection)

    def missing_tables(self, tables: Collection[TableKey]) -> frozenset[TableKey]:
        """Those for which it says so to an account that may read them."""
        with contextlib.closing(self.connected()) as connection, self._named(connection):
            return server.missing_tables(connection, tables)

    def can_begin_at(self, offset: int) -> bool:
        """Up to 4 GiB. Beyond, MySQL needs its GTID dump command, which has a 64-bit offset, and MariaDB a GTID set."""
        return offset <= self.offset_limit

    def read_log(self, start: LogPosition, gtid_set: str = "") -> Generator[LogChunk, None, None]:
        """Chunks from ``start`` at least to where the log ends now. ``gtid_set``: all transactions before ``start``;
        needed only for MariaDB at an offset beyond 4 GiB.

        The server's EOF proves nothing: a dump that is killed (KILL QUERY) ends with it, too, and MySQL ends it before
        transactions that its log's end counts, as long as they are not synced to its disk. So what is missing is asked
        for again. Behind a file that ends inside an event the next one is asked for (``_behind_tear``).

        Raises MissingLogError if the server has purged the file, SourceUnavailableError if the connection breaks.
        """
        place, end, header, is_behind, since = start, None, "", False, time.monotonic()
        while True:
            reached = place
            connection = self.connected()
            try:
                with self._named(connection):
                    if end is None:
                        end = server.log_end(connection)
                    dump = self._dump(connection, place, gtid_set)
                    for chunk in _behind(dump.chunks(), place):
                        is_behind = is_behind or (place.file == end.file != chunk.file)
                        until = chunk.offset + len(chunk.data)
                        if chunk.file != place.file or until > place.offset:
                            place = LogPosition(chunk.file, until)
                        if chunk.offset == LOG_START:
                            if chunk.file == header:
                                continue
                            header = chunk.file
                        yield chunk
                    if dump.torn is not None:
                        place = self._behind_tear(dump.file, dump.torn)
            finally:
                # no COM_QUIT: the server may be in the middle of a packet
                connection._force_close()
            if is_behind or (place.file == end.file and place.offset >= end.offset):
                return
            since = time.monotonic() if place != reached else since
            if time.monotonic() - since > _STANDS_STILL or not self.can_begin_at(place.offset):
                raise SourceUnavailableError(
                    f"{self.name}: {place}: expected events up to {end}, where the log ended when reading began, found "
                    "that the server ends its answer here: the dump was ended (KILL QUERY, a shutdown), or the server "
                    "cannot write its log to its disk; run the step again"
                )
            time.sleep(_AGAIN)

    def _behind_tear(self, file: str, said: MySQLError) -> LogPosition:
        """Where the log goes on behind a file that ends inside an event. Raises ``said`` where nothing tells whether
        the log lacks anything there.

        A crash may leave such an end, and MariaDB does not cut it off as MySQL does. The next file's list of GTIDs
        tells whether a whole transaction is lost with it (``Continuity.head``).
        """
        with contextlib.closing(self.connected()) as connection, self._named(connection):
            following = dict(pairwise(server.log_files(connection))).get(file)
            if following is None or server.flavor_of(connection) is not Flavor.MARIADB:
                raise said
        return LogPosition(following, LOG_START)

    def _dump(self, connection: Any, start: LogPosition, gtid_set: str) -> Dump:
        """What the server sends from a place on, or from before it, up to where it ends its answer."""
        self._prepare(connection)
        # MariaDB 11.8 does not decrypt right what follows FORMAT_DESCRIPTION if a dump begins there
        at_head = start.offset < min(_HEAD, self.offset_limit)
        first = LogPosition(start.file, LOG_START) if at_head else start
        self._request(connection, first, gtid_set)
        return Dump(self.name, connection, first, self.event_bytes, by_gtid=start.offset > self.offset_limit)

    @property
    def _host(self) -> str:
        """The host name for the registration; the protocol's field has 60 characters."""
        return f"binlane:{self.replica_name}"[:60]

    def _named(self, connection: Any) -> contextlib.AbstractContextManager[None]:
        return translated(self.name, server.flavor_of(connection))

    def connected(self) -> Any:
        """A connection for statements, which the caller closes."""
        with translated(self.name):
            return Connection(**{"autocommit": True, **self.arguments})

    def _prepare(self, connection: Any) -> None:
        replica = uuid.uuid5(uuid.NAMESPACE_URL, f"binlane:{self.replica_name}")
        # CRC32 whatever the server's setting is: a server removes checksums for a reader that does not announce them
        for statement in (
            "SET @master_binlog_checksum = 'CRC32', @source_binlog_checksum = 'CRC32'",
            f"SET @slave_uuid = '{replica}', @replica_uuid = '{replica}'",
            "SET @mariadb_slave_capability = 4",
            # by default the server waits a minute for a reader that is busy with what it has, and closes the connection
            f"SET SESSION net_write_timeout = {_WRITE_SECONDS}",
        ):
            connection.query(statement)
        host = self._host.encode()
        registration = _U32.pack(self.server_id) + bytes([len(host)]) + host + b"\0\0" + struct.pack("<HII", 0, 0, 0)
        connection._execute_command(COMMAND.COM_REGISTER_SLAVE, registration)
        connection._read_packet()

    def _request(self, connection: Any, start: LogPosition, gtid_set: str) -> None:
        file, offset = start.file.encode(), max(start.offset, LOG_START)
        flavor = server.flavor_of(connection)
        if offset > self.offset_limit and flavor is Flavor.MYSQL and server.has_gtids(connection):
            # COM_BINLOG_DUMP_GTID has a 64-bit offset; with a file and an empty GTID set it skips no transaction
            head = struct.pack("<HII", DUMP_NON_BLOCK, self.server_id, len(file))
            no_gtids = struct.pack("<IQ", 8, 0)
            request = head + file + struct.pack("<Q", offset) + no_gtids
            connection._execute_command(COMMAND.COM_BINLOG_DUMP_GTID, request)
            return
        flags = DUMP_NON_BLOCK | (SEND_ANNOTATE_ROWS if flavor is Flavor.MARIADB else 0)
        if offset > self.offset_limit:
            if flavor is not Flavor.MARIADB or not gtid_set:
                raise SourceError(
                    f"{self.name}: {start}: the replication protocol cannot begin beyond offset {self.offset_limit:,} "
                    "without GTIDs; switch GTIDs on, or read this file as an archive"
                )
            # a server sends from what is in its log, one GTID a domain
            connection.query(f"SET @slave_connect_state = '{MariadbGtidSet.parse(gtid_set).logged()}'")
            file, offset = b"", LOG_START
        request = struct.pack("<IHI", offset, flags, self.server_id) + file
        connection._execute_command(COMMAND.COM_BINLOG_DUMP, request)


def _behind(chunks: Iterator[LogChunk], start: LogPosition) -> Iterator[LogChunk]:
    """The chunks without events before ``start``."""
    for chunk in chunks:
        surplus = start.offset - chunk.offset
        if surplus <= 0 or chunk.file != start.file or chunk.offset == LOG_START:
            yield chunk
        elif surplus < len(chunk.data):
            yield LogChunk(chunk.file, start.offset, chunk.data[surplus:])


class Dump:
    """The packets of one dump as chunks; one object per connection."""

    def __init__(self, name: str, connection: Any, start: LogPosition, event_bytes: int, *, by_gtid: bool) -> None:
        self._name = name
        self._event_bytes = event_bytes
        self._start = start
        self.file = start.file
        """The file that the server sends."""
        self.torn: MySQLError | None = None
        """The server's error at the end of its answer, where ``file`` ends inside an event."""
        self._position = max(start.offset, LOG_START)
        self._is_searching = by_gtid
        """The server finds the start by GTIDs, and may send events of the file's header before it."""
        self._behind_header = 0
        """Where the file's events behind FORMAT_DESCRIPTION begin."""
        self._left_out = 0
        """Bytes of events before ``_position`` that are in no chunk."""
        self._has_begun = False
        self._receive = connection._rfile.readinto1
        # sending the request has set the write timeout
        connection._sock.settimeout(connection._read_timeout)
        self._buffer = bytearray(_BUFFER)
        self._array = np.frombuffer(self._buffer, np.uint8)
        self._filled = 0
        self._at = 0
        """Offset in the buffer up to which packets are taken."""
        self._events = np.empty(_BUFFER, np.uint8)
        self._taken = self._last = 0
        """Bytes of consecutive events in ``_events`` that are not yielded yet, and the offset of the last of these
        events."""

    def chunks(self) -> Iterator[LogChunk]:
        """Read to the log's end."""
        is_open = True
        while is_open:
            # large chunks have less overhead
            if len(self._buffer) - self._filled < _ROOM:
                yield from self._flush()
                self._make_room()
            self._receive_some()
            is_open = yield from self._packets()

    def _make_room(self) -> None:
        rest, buffer = self._filled - self._at, self._buffer
        if rest > len(buffer) // 2:
            # an event larger than the buffer
            self._buffer = bytearray(2 * len(buffer))
            self._array = np.frombuffer(self._buffer, np.uint8)
            self._events = np.empty(len(self._buffer), np.uint8)
        elif self._at == 0:
            return
        self._buffer[:rest] = buffer[self._at : self._filled]
        self._at, self._filled = 0, rest

    def _receive_some(self) -> None:
        with memoryview(self._buffer) as view:
            try:
                got = self._receive(view[self._filled :])
            except OSError as exc:
                raise SourceUnavailableError(f"{self._where()}the connection broke: {exc}; run the step again") from exc
        if not got:
            raise SourceUnavailableError(f"{self._where()}the server closed the connection; run the step again")
        self._filled += got

    def _packets(self) -> Generator[LogChunk, None, bool]:
        """Take the whole packets in the buffer; False at the log's end."""
        while True:
            if not self._is_searching:
                self._at, self._taken, self._last = copying.take(
                    self._array, self._at, self._filled, _SPECIAL_TYPES, self._events, self._taken, self._last
                )
            if self._at + 4 > self._filled:
                return True
            at, length = self._at, _U32.unpack_from(self._buffer, self._at)[0] & _WHOLE_PACKET
            end = at + 4 + length
            # an event in several packets is checked when its header has arrived, before memory for all of it is used
            if (at + 5 + HEADER.size if length == _WHOLE_PACKET else end) > self._filled:
                return True
            # left by the kernel: a control event, an event in several packets, the end of the log, or damage
            yield from self._flush()
            view = memoryview(self._buffer)
            event = view[at + 5 : end]
            if length == _WHOLE_PACKET:
                event, end = self._long_packet(at)
                if end == at:
                    return True
            elif length == 0 or view[at + 4] != 0:
                self._end_of_log(bytes(view[at + 4 : end]))
                return False
            self._at = end
            if len(event) < HEADER.size or _U32.unpack_from(event, _AT_SIZE)[0] != len(event):
                raise BinlogError(self._wrong_size(len(event)))
            yield from self._alone(event)

    def _long_packet(self, at: int) -> tuple[memoryview, int]:
        """The event in several 16 MiB packets from ``at`` on, and the end of the last; ``at`` if packets are missing
        yet.

        Raises UnsupportedEventError for an event that declares more than ``event_bytes``, BinlogError for more bytes
        than the event declares, both before all packets are read.
        """
        begin, parts, length, come = at, [], _WHOLE_PACKET, 0
        declared = _U32.unpack_from(self._buffer, at + 5 + _AT_SIZE)[0]
        if declared > self._event_bytes:
            raise too_large(
                f"{self._where()}{type_name(self._buffer[at + 5 + _AT_TYPE])}: ", declared, self._event_bytes
            )
        while length == _WHOLE_PACKET:
            if at + 4 > self._filled:
                return _NO_EVENT, begin
            length = _U32.unpack_from(self._buffer, at)[0] & _WHOLE_PACKET
            come += length
            if come > 1 + declared:
                raise BinlogError(self._wrong_size(come - 1))
            if at + 4 + length > self._filled:
                return _NO_EVENT, begin
            parts.append(memoryview(self._buffer)[at + 4 : at + 4 + length])
            at += 4 + length
        # its first byte is 0, so it is not an error packet
        return memoryview(b"".join(parts))[1:], at

    def _wrong_size(self, size: int) -> str:
        return (
            f"{self._where()}the server sent a packet of {size} bytes whose event declares another size; a "
            "program between binlane and the server changes the stream"
        )

    def _flush(self) -> Iterator[LogChunk]:
        if self._taken == 0:
            return
        data, self._taken = self._events[: self._taken].tobytes(), 0
        yield self._next(data, memoryview(data)[self._last :])

    def _next(self, data: bytes, last: memoryview) -> LogChunk:
        """The chunk of the next events in the file; ``last``: its last event."""
        self._check_log_pos(last, self._position + len(data))
        offset, self._position = self._position, self._position + len(data)
        left_out, self._left_out = self._left_out, 0
        return LogChunk(self.file, offset, data, left_out)

    def _check_log_pos(self, event: memoryview, end: int) -> None:
        log_pos = _U32.unpack_from(event, _AT_LOG_POS)[0]
        # MariaDB 11.4 and newer writes 0 inside transactions
        if log_pos not in (0, end & _WRAP):
            raise BinlogError(
                f"{self._where()}events end at {end} by their sizes, the server says {log_pos} (modulo 2**32): "
                "the server has left out events; check binlog filters and replicate options on the source"
            )

    def _alone(self, event: memoryview) -> Iterator[LogChunk]:
        kind, artificial = event[_AT_TYPE], event[FLAGS_AT] & ARTIFICIAL
        if kind == EventType.FORMAT_DESCRIPTION:
            yield LogChunk(self.file, LOG_START, bytes(event))
            self._behind_header = LOG_START + len(event)
            if self._position == LOG_START:
                self._position += len(event)
        elif kind == EventType.ROTATE and artificial:
            self._turn_to(event)
        elif kind in (EventType.HEARTBEAT, EventType.HEARTBEAT_V2) or artificial:
            return
        elif kind == EventType.START_ENCRYPTION:
            # the server decrypts later events; START_ENCRYPTION itself occupies bytes of the file, behind
            # FORMAT_DESCRIPTION; for a start in the middle of a file it is sent, too
            if self._position == self._behind_header:
                self._position += len(event)
                self._left_out += len(event)
        elif self._is_searching and not self._is_next(event):
            if kind not in _FILE_HEAD:
                raise SourceIdentityError(
                    f"{self._where()}the first transaction that the server sends for the GTID position does not "
                    "begin there: this is not the log from which the watermark was taken"
                )
        else:
            self._is_searching = False
            yield self._next(bytes(event), event)

    def _is_next(self, event: memoryview) -> bool:
        return bool(_U32.unpack_from(event, _AT_LOG_POS)[0] == (self._position + len(event)) & _WRAP)

    def _turn_to(self, event: memoryview) -> None:
        """Follow an artificial ROTATE: u64 offset, file name, and a CRC32 only if the file's events have one."""
        has_crc = zlib.crc32(event[:-4]) == _U32.unpack_from(event, len(event) - 4)[0]
        body = event[HEADER.size : len(event) - 4 if has_crc else len(event)]
        offset = int.from_bytes(body[:8], "little")
        try:
            file = bytes(body[8:]).decode()
        except UnicodeDecodeError as exc:
            raise BinlogError(
                f"{self._where()}the server goes on in a file whose name is no UTF-8 ({exc}): a program between "
                "binlane and the server changes the stream, or log_bin of the source has such a name"
            ) from exc
        if _FILE_NAME.fullmatch(file) is None:
            raise BinlogError(
                f"{self._where()}expected the name of the log's next file, found {file[:_SHOWN]!r}, which no server "
                "has: another program answers in its place, or changes what it says; look at host, port and ssl_mode "
                "of the connection"
            )
        if not self._has_begun:
            self._has_begun = True
            if file != self._start.file:
                raise SourceIdentityError(
                    f"{self._where()}the server begins its answer in {file}: this is not the log from which the "
                    "watermark was taken"
                )
        elif file != self.file:
            self.file, self._position, self._left_out = file, offset, 0

    def _end_of_log(self, packet: bytes) -> None:
        if packet[:1] == _ERROR_PACKET:
            try:
                raise_error(packet)
            except (struct.error, ValueError) as exc:
                raise SourceError(
                    f"{self._where()}an error of the server that cannot be read ({exc}): it is no MySQL or MariaDB "
                    "server, or a program between changes what it says; look at host and port of the connection"
                ) from exc
            except MySQLError as exc:
                if not server.is_torn(exc):
                    raise
                self.torn = exc
                return
        if packet[:1] != _EOF_PACKET:
            found = f"a packet of type {packet[0]}" if packet else "an empty packet"
            raise SourceError(f"{self._where()}expected an event, an error or EOF, got {found}")

    def _where(self) -> str:
        return f"{self._name}: {self.file}:{self._position}: "
