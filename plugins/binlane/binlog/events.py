"""A frozen class per event type, and one table from type codes to parsers.

Some events have modules of their own: ``format_description``, ``query``, ``gtids``, ``variables``, ``payload``; their
classes are in the table, too. TABLE_MAP and row events are in ``table_map`` and ``rows``.
Sources: MySQL ``libs/mysql/binlog/event/``, MariaDB ``sql/log_event.h``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final

from binlane.binlog.fields import Fields
from binlane.binlog.format_description import BARE_FORMAT, FormatDescription, own_checksum_length
from binlane.binlog.gtids import Gtid, MariadbGtid, MariadbGtidList, PreviousGtids, XaName
from binlane.binlog.payload import TransactionPayload
from binlane.binlog.query import Duplicates, ExecuteLoadQuery, Query
from binlane.binlog.variables import Intvar, IntvarKind, Rand, UserVar, ValueType
from binlane.binlog.wire import (
    HEADER,
    IGNORABLE,
    KNOWN_TYPES,
    BufferOffset,
    EventHeader,
    EventType,
    RawEvent,
    read_header,
    type_name,
    where,
)
from binlane.errors import BinlogError, UnknownEventError
from binlane.lazy_dataclass import dataclass

__all__ = [
    "BARE_FORMAT",
    "PARSERS",
    "AnnotateRows",
    "BinlogCheckpoint",
    "Duplicates",
    "Event",
    "ExecuteLoadQuery",
    "FileBlock",
    "FileDeletion",
    "FormatDescription",
    "Gtid",
    "Heartbeat",
    "Incident",
    "Intvar",
    "IntvarKind",
    "MariadbGtid",
    "MariadbGtidList",
    "Opaque",
    "PreviousGtids",
    "Query",
    "Rand",
    "Rotate",
    "RowsQuery",
    "StartEncryption",
    "Stop",
    "TransactionPayload",
    "UserVar",
    "ValueType",
    "XaName",
    "XaPrepare",
    "Xid",
    "parse_body",
    "parse_event",
]
_LONGEST_NAME: Final = 512
"""Bytes of a file's name with its folder (FN_REFLEN)."""


@dataclass(frozen=True, slots=True)
class Rotate:
    """The log continues in another file."""

    position: int
    file: str

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> Rotate:
        """Some servers pad the name with NULs."""
        fields = Fields(body)
        position, file = fields.uint(8), bytes(fields.rest()).rstrip(b"\0")
        if len(file) > _LONGEST_NAME:
            raise ValueError(f"the name of a file has {len(file):,} bytes, expected at most {_LONGEST_NAME}")
        return cls(position, file.decode())


@dataclass(frozen=True, slots=True)
class Stop:
    """The server was shut down."""

    @classmethod
    def parse(cls, _body: memoryview, _format: FormatDescription | None = None) -> Stop:
        """There is nothing to read."""
        return cls()


@dataclass(frozen=True, slots=True)
class Xid:
    """Commit of a transaction on a transactional engine."""

    xid: int

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> Xid:
        """Raises struct.error."""
        return cls(*struct.unpack("<Q", body))


@dataclass(frozen=True, slots=True)
class XaPrepare:
    """End of the first half of an XA transaction, or, with ``one_phase``, of all of it."""

    one_phase: bool
    name: XaName

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> XaPrepare:
        """Raises ValueError."""
        fields = Fields(body)
        one_phase, format_id = fields.uint(1), fields.uint(4)
        gtrid_length, bqual_length = fields.uint(4), fields.uint(4)
        return cls(one_phase != 0, XaName.parse(fields, format_id, gtrid_length, bqual_length))


@dataclass(frozen=True, slots=True)
class Incident:
    """The source lost events."""

    number: int
    message: str

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> Incident:
        """Raises ValueError."""
        fields = Fields(body)
        return cls(fields.uint(2), fields.short_text())


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The source is alive and idle. Never in a file."""

    file: str
    position: int | None
    """HEARTBEAT_V2 only: the position in 64 bits. HEARTBEAT has it in ``log_pos``."""

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> Heartbeat:
        """HEARTBEAT."""
        return cls(str(body, "utf-8"), None)

    @classmethod
    def parse_v2(cls, body: memoryview, _format: FormatDescription | None = None) -> Heartbeat:
        """HEARTBEAT_V2: type, length and value fields; unknown ones are skipped."""
        fields = Fields(body)
        file, position = "", None
        while fields.left > 0 and (kind := fields.packed()) != 0:
            value = Fields(fields.take(fields.packed()))
            if kind == 1:
                file = value.text(value.left)
            elif kind == 2:
                position = value.packed()
        return cls(file, position)


@dataclass(frozen=True, slots=True)
class StartEncryption:
    """All later events of the file are ciphertext."""

    scheme: int
    key_version: int
    nonce: bytes

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> StartEncryption:
        """Raises ValueError."""
        fields = Fields(body)
        return cls(fields.uint(1), fields.uint(4), bytes(fields.take(12)))


@dataclass(frozen=True, slots=True)
class FileBlock:
    """BEGIN_LOAD_QUERY and APPEND_BLOCK: a part of the file that LOAD DATA reads."""

    file_id: int
    data: memoryview

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> FileBlock:
        """Raises ValueError."""
        fields = Fields(body)
        return cls(fields.uint(4), fields.rest())


@dataclass(frozen=True, slots=True)
class FileDeletion:
    """DELETE_FILE: the LOAD DATA failed on the source; its blocks are void."""

    file_id: int

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> FileDeletion:
        """Raises ValueError."""
        return cls(Fields(body).uint(4))


@dataclass(frozen=True, slots=True)
class AnnotateRows:
    """MariaDB: the statement that the rows events come from; for people to read."""

    sql: bytes

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> AnnotateRows:
        """The whole body is the statement."""
        return cls(bytes(body))


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """MySQL: the statement that the rows events come from; for people to read."""

    sql: bytes

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> RowsQuery:
        """A length byte, ignored because statements may be longer than 255 bytes, then the statement."""
        fields = Fields(body, at=1)
        return cls(bytes(fields.rest()))


@dataclass(frozen=True, slots=True)
class BinlogCheckpoint:
    """MariaDB: crash recovery needs files from this one on."""

    file: str

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> BinlogCheckpoint:
        """Raises ValueError."""
        fields = Fields(body)
        return cls(fields.text(fields.uint(4)))


@dataclass(frozen=True, slots=True)
class Opaque:
    """An event that is not parsed here: row events, group replication's events, and unknown types that are
    ignorable."""

    type_code: int
    body: bytes


Event = (
    AnnotateRows
    | BinlogCheckpoint
    | ExecuteLoadQuery
    | FileBlock
    | FileDeletion
    | FormatDescription
    | Gtid
    | Heartbeat
    | Incident
    | Intvar
    | MariadbGtid
    | MariadbGtidList
    | Opaque
    | PreviousGtids
    | Query
    | Rand
    | Rotate
    | RowsQuery
    | StartEncryption
    | Stop
    | TransactionPayload
    | UserVar
    | XaPrepare
    | Xid
)

PARSERS: Final[Mapping[int, Callable[[memoryview, FormatDescription], Event]]] = {
    EventType.QUERY: Query.parse,
    EventType.STOP: Stop.parse,
    EventType.ROTATE: Rotate.parse,
    EventType.INTVAR: Intvar.parse,
    EventType.APPEND_BLOCK: FileBlock.parse,
    EventType.DELETE_FILE: FileDeletion.parse,
    EventType.RAND: Rand.parse,
    EventType.USER_VAR: UserVar.parse,
    EventType.FORMAT_DESCRIPTION: FormatDescription.parse,
    EventType.XID: Xid.parse,
    EventType.BEGIN_LOAD_QUERY: FileBlock.parse,
    EventType.EXECUTE_LOAD_QUERY: ExecuteLoadQuery.parse,
    EventType.INCIDENT: Incident.parse,
    EventType.HEARTBEAT: Heartbeat.parse,
    EventType.ROWS_QUERY: RowsQuery.parse,
    EventType.GTID: Gtid.parse,
    EventType.ANONYMOUS_GTID: Gtid.parse,
    EventType.PREVIOUS_GTIDS: PreviousGtids.parse,
    EventType.XA_PREPARE: XaPrepare.parse,
    EventType.TRANSACTION_PAYLOAD: TransactionPayload.parse,
    EventType.HEARTBEAT_V2: Heartbeat.parse_v2,
    EventType.GTID_TAGGED: Gtid.parse_tagged,
    EventType.PERCONA_START_ENCRYPTION: StartEncryption.parse,
    EventType.ANNOTATE_ROWS: AnnotateRows.parse,
    EventType.BINLOG_CHECKPOINT: BinlogCheckpoint.parse,
    EventType.MARIADB_GTID: MariadbGtid.parse,
    EventType.MARIADB_GTID_LIST: MariadbGtidList.parse,
    EventType.START_ENCRYPTION: StartEncryption.parse,
    EventType.QUERY_COMPRESSED: Query.parse_compressed,
}


def parse_body(event: RawEvent, log_format: FormatDescription, name: str = "bytes") -> Event:
    """The parsed body of a framed event. Raises only BinlogError, with ``name`` and the event's offset."""
    code = event.header.type_code
    parse = PARSERS.get(code)
    if parse is None:
        if code not in KNOWN_TYPES and not event.header.flags & IGNORABLE:
            raise UnknownEventError(
                f"{where(name, event.offset)}cannot skip event type {code}; a newer binlane may know it"
            )
        return Opaque(code, bytes(event.body))
    try:
        return parse(event.body, log_format)
    except (ValueError, struct.error) as exc:
        raise BinlogError(f"{where(name, event.offset)}{type_name(code)}: {exc}") from exc
    except BinlogError as exc:
        raise type(exc)(f"{where(name, event.offset)}{type_name(code)}: {exc}") from exc


def parse_event(
    data: memoryview, at: int, log_format: FormatDescription = BARE_FORMAT, name: str = "bytes"
) -> tuple[EventHeader, Event]:
    """The event at ``at`` of a log of format ``log_format``. Raises only BinlogError.

    The checksum, if any, is cut off and not verified. FORMAT_DESCRIPTION is parsed by its own server version.
    """
    header = read_header(data, at, name)
    is_format = header.type_code == EventType.FORMAT_DESCRIPTION
    body = data[at + HEADER.size : at + header.event_size]
    tail = own_checksum_length(body) if is_format else log_format.checksum.length
    if len(body) < tail:
        raise BinlogError(
            f"{where(name, at)}{type_name(header.type_code)}: event_size {header.event_size} has no room for a checksum"
        )
    return header, parse_body(RawEvent(BufferOffset(at), header, body[: len(body) - tail]), log_format, name)
