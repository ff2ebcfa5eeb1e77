"""GTID events of both families.

Sources: MySQL ``libs/mysql/binlog/event/control_events.cpp`` (``Gtid_event``) and ``libs/mysql/serialization`` (the
tagged form), MariaDB ``sql/log_event.cc`` (``Gtid_log_event``, ``Gtid_list_log_event``).
"""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Iterable
from enum import IntFlag
from typing import TYPE_CHECKING, Final

from binlane.binlog.fields import Fields
from binlane.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from binlane.binlog.format_description import FormatDescription

_LOGICAL_CLOCK: Final = 2
"""The type byte before last_committed and sequence_number."""
_HAS_ORIGINAL_TIMESTAMP: Final = 1 << 55
_HAS_ORIGINAL_VERSION: Final = 1 << 31
_UUID_LENGTH: Final = 16
_TAGGED: Final = 1
_TAG: Final = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_LAST_NUMBER: Final = (1 << 63) - 1
_LAST_TIME: Final = (1 << 55) - 1
"""Microseconds: as many as the untagged form has bits for."""
LARGEST_LIST: Final = 8 << 20
"""Bytes of the GTIDs at the head of a file: read, they take ten times as many. A server of 100 replaced ones, each with
a thousand gaps, has 1.6 MB."""
_XID_LENGTH: Final = 64
"""Bytes of each of the two parts of an XA transaction's name, at most (the XA standard)."""


@dataclass(frozen=True, slots=True)
class Gtid:
    """MySQL: a transaction begins. Types GTID, ANONYMOUS_GTID (no id: the fields are zero) and GTID_TAGGED."""

    sid: str
    """UUID of the server that first executed the transaction."""
    gno: int
    flags: int
    """Bit 0: the transaction may hold statements, not only rows."""
    tag: str = ""
    last_committed: int | None = None
    sequence_number: int | None = None
    immediate_commit_timestamp: int | None = None
    """Microseconds since the epoch, on the server that wrote this log. MySQL 8.0.1 and newer."""
    original_commit_timestamp: int | None = None
    """Microseconds since the epoch, on the server that first executed the transaction."""
    transaction_length: int | None = None
    """Bytes of the transaction, this event included."""
    immediate_server_version: int | None = None
    original_server_version: int | None = None

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> Gtid:
        """Newer versions append fields; fields that are missing become None."""
        fields = Fields(body)
        flags = fields.uint(1)
        sid = str(uuid.UUID(bytes=bytes(fields.take(_UUID_LENGTH))))
        gno = fields.sint(8)
        _check_number(gno)
        if fields.left == 0 or fields.uint(1) != _LOGICAL_CLOCK:
            return cls(sid, gno, flags)
        last_committed, sequence_number = fields.sint(8), fields.sint(8)
        if fields.left == 0:
            return cls(sid, gno, flags, "", last_committed, sequence_number)
        immediate = fields.uint(7)
        original = immediate & ~_HAS_ORIGINAL_TIMESTAMP
        if immediate & _HAS_ORIGINAL_TIMESTAMP:
            immediate, original = original, fields.uint(7)
        length = fields.packed() if fields.left > 0 else None
        version, original_version = _server_versions(fields)
        return cls(
            sid, gno, flags, "", last_committed, sequence_number, immediate, original, length, version, original_version
        )

    @classmethod
    def parse_tagged(cls, body: memoryview, _format: FormatDescription | None = None) -> Gtid:
        """GTID_TAGGED: fields by number; a missing field has the value of an earlier one, or zero."""
        fields = Fields(body)
        if (encoding := fields.varint()) != 1:
            raise ValueError(f"serialization format {encoding}, expected 1")
        if (size := fields.varint()) != len(body):
            raise ValueError(f"declares {size} bytes, the body has {len(body)}")
        last_needed = fields.varint()
        values: dict[int, int] = {}
        sid, tag = "", ""
        while fields.left > 0:
            number = fields.varint()
            if number == 1:
                sid = str(uuid.UUID(bytes=bytes(fields.varint() for _ in range(_UUID_LENGTH))))
            elif number == 3:
                tag = fields.text(fields.varint())
            elif number in _SIGNED:
                values[number] = fields.signed_varint()
            elif number in _UNSIGNED:
                values[number] = fields.varint()
            elif number <= last_needed:
                raise ValueError(f"field {number} is not known and must not be ignored")
            else:
                break
        if sid == "" or 2 not in values:
            raise ValueError("UUID or number is missing")
        _check_number(values[2])
        _check_tag(tag)
        for number in (6, 7):
            if values.get(number, 0) > _LAST_TIME:
                raise ValueError(f"a commit at {values[number]} microseconds, {_LAST_TIME} at most were expected")
        immediate, version = values.get(6), values.get(9)
        return cls(
            sid,
            values[2],
            values.get(0, 0),
            tag,
            values.get(4),
            values.get(5),
            immediate,
            values.get(7, immediate),
            values.get(8),
            version,
            values.get(10, version),
        )

    def __str__(self) -> str:
        return f"{self.sid}:{self.tag}:{self.gno}" if self.tag != "" else f"{self.sid}:{self.gno}"


def _check_number(gno: int) -> None:
    if not 0 <= gno <= _LAST_NUMBER:
        raise ValueError(f"number {gno} of a transaction, expected 1 to {_LAST_NUMBER}")


def _check_tag(tag: str) -> None:
    if tag and _TAG.fullmatch(tag) is None:
        raise ValueError(f"tag {tag[:40]!r}, expected at most 32 lower-case letters, digits and underscores")


_SIGNED: Final = frozenset({2, 4, 5})
"""Numbers of GTID_TAGGED's signed fields: gno, last_committed, sequence_number."""
_UNSIGNED: Final = frozenset({0, 6, 7, 8, 9, 10, 11})
"""Flags, two timestamps, length, two server versions, commit group ticket."""


def _server_versions(fields: Fields) -> tuple[int | None, int | None]:
    if fields.left == 0:
        return None, None
    version = fields.uint(4)
    if not version & _HAS_ORIGINAL_VERSION:
        return version, version
    return version & ~_HAS_ORIGINAL_VERSION, fields.uint(4)


class MariadbGtidFlag(IntFlag):
    """``flags2`` of MariaDB's GTID event."""

    STANDALONE = 0x01
    """FL_STANDALONE: one event follows, without COMMIT."""
    GROUP_COMMIT_ID = 0x02
    TRANSACTIONAL = 0x04
    """FL_TRANSACTIONAL: the transaction can be rolled back."""
    ALLOW_PARALLEL = 0x08
    WAITED = 0x10
    DDL = 0x20
    PREPARED_XA = 0x40
    COMPLETED_XA = 0x80


class MariadbExtraFlag(IntFlag):
    """``flags_extra`` of MariaDB's GTID event, 10.5 and newer."""

    MULTI_ENGINE = 0x01
    START_ALTER = 0x02
    COMMIT_ALTER = 0x04
    ROLLBACK_ALTER = 0x08
    THREAD_ID = 0x10


_GROUP_COMMIT_ID: Final = int(MariadbGtidFlag.GROUP_COMMIT_ID)
_XA: Final = int(MariadbGtidFlag.PREPARED_XA | MariadbGtidFlag.COMPLETED_XA)
_MULTI_ENGINE: Final = int(MariadbExtraFlag.MULTI_ENGINE)
_ALTER_ENDS: Final = int(MariadbExtraFlag.COMMIT_ALTER | MariadbExtraFlag.ROLLBACK_ALTER)
_THREAD_ID: Final = int(MariadbExtraFlag.THREAD_ID)
_XA_NAME: Final = re.compile(rb"X'((?:[0-9A-Fa-f]{2})*)',X'((?:[0-9A-Fa-f]{2})*)',(\d{1,20})")
_FORMAT_BITS: Final = 0xFFFF_FFFF
"""MySQL takes format ids of 64 bits, and logs these in XA PREPARE alone (seen on 9.7)."""


@dataclass(frozen=True, slots=True)
class XaName:
    """The XID of an XA transaction, which pairs XA PREPARE with XA COMMIT or XA ROLLBACK."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    @classmethod
    def parse(cls, fields: Fields, format_id: int, gtrid_length: int, bqual_length: int) -> XaName:
        """Raises ValueError for a name that no server takes."""
        if max(gtrid_length, bqual_length) > _XID_LENGTH:
            raise ValueError(
                f"an XID of {gtrid_length} and {bqual_length} bytes, {_XID_LENGTH} each at most were expected"
            )
        return cls(format_id, bytes(fields.take(gtrid_length)), bytes(fields.take(bqual_length)))

    @classmethod
    def of_statement(cls, sql: bytes) -> XaName | None:
        """The XID in a logged statement such as ``XA COMMIT X'6731',X'62',7``; None if there is none."""
        match = _XA_NAME.search(sql)
        if match is None:
            return None
        gtrid, bqual, format_id = (str(part, "ascii") for part in match.groups())
        return cls(int(format_id) & _FORMAT_BITS, bytes.fromhex(gtrid), bytes.fromhex(bqual))

    def __str__(self) -> str:
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True)
class MariadbGtid:
    """MariaDB: a transaction begins; there is no BEGIN. The server id of the triple is in the event's header."""

    seq_no: int
    domain_id: int
    flags: MariadbGtidFlag
    commit_id: int | None = None
    xa: XaName | None = None
    extra_flags: MariadbExtraFlag | None = None
    start_seq_no: int | None = None
    """COMMIT_ALTER and ROLLBACK_ALTER: the number of the transaction that began the ALTER."""
    thread_id: int | None = None

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> MariadbGtid:
        """Zeros pad a body shorter than the post-header of 19 bytes."""
        fields = Fields(body)
        seq_no, domain_id = fields.uint(8), fields.uint(4)
        bits = fields.uint(1)
        flags = MariadbGtidFlag(bits)
        commit_id = fields.uint(8) if bits & _GROUP_COMMIT_ID else None
        xa = None
        if bits & _XA:
            format_id, gtrid_length, bqual_length = fields.uint(4), fields.uint(1), fields.uint(1)
            xa = XaName.parse(fields, format_id, gtrid_length, bqual_length)
        if fields.left == 0:
            return cls(seq_no, domain_id, flags, commit_id, xa)
        extra = fields.uint(1)
        if extra & _MULTI_ENGINE:
            fields.uint(1)
        start_seq_no = fields.uint(8) if extra & _ALTER_ENDS else None
        thread_id = fields.uint(4) if extra & _THREAD_ID else None
        return cls(seq_no, domain_id, flags, commit_id, xa, MariadbExtraFlag(extra), start_seq_no, thread_id)

    def name(self, server_id: int) -> str:
        """``domain-server-sequence``."""
        return f"{self.domain_id}-{server_id}-{self.seq_no}"


@dataclass(frozen=True, slots=True)
class MariadbGtidList:
    """MariaDB: the newest GTID of every domain and server before this file."""

    gtids: tuple[tuple[int, int, int], ...]
    """Domain, server, sequence."""
    flags: int = 0

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> MariadbGtidList:
        """The count's upper four bits are flags. Raises ValueError for more than ``LARGEST_LIST``."""
        _check_size(body)
        fields = Fields(body)
        count = fields.uint(4)
        entries = struct.iter_unpack("<IIQ", fields.take((count & 0x0FFFFFFF) * 16))
        return cls(tuple((domain, server, seq_no) for domain, server, seq_no in entries), count >> 28)

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{seq_no}" for domain, server, seq_no in self.gtids)


@dataclass(frozen=True, slots=True)
class PreviousGtids:
    """MySQL: the GTID set of all earlier files."""

    sets: tuple[tuple[str, str, tuple[tuple[int, int], ...]], ...]
    """UUID, tag, intervals; first and last are both inside an interval."""

    @classmethod
    def parse(cls, body: memoryview, _format: FormatDescription | None = None) -> PreviousGtids:
        """Both encodings: with tags the count's top byte is 1, and the count itself is in bits 8 to 55. Raises
        ValueError for more than ``LARGEST_LIST``."""
        _check_size(body)
        fields = Fields(body)
        count = fields.uint(8)
        tagged = count >> 56
        if tagged not in (0, _TAGGED):
            raise ValueError(f"GTID set encoding {tagged}, expected 0 or {_TAGGED}")
        if tagged == _TAGGED:
            count = (count >> 8) & 0xFFFFFFFFFFFF
        sets, seen = [], set[tuple[str, str]]()
        for _ in range(count):
            sid = str(uuid.UUID(bytes=bytes(fields.take(_UUID_LENGTH))))
            tag = fields.text(fields.varint()) if tagged else ""
            _check_tag(tag)
            ranges = tuple(
                (first, end - 1) for first, end in struct.iter_unpack("<QQ", fields.take(fields.uint(8) * 16))
            )
            _check_ranges(ranges)
            if (sid, tag) in seen:
                raise ValueError(f"intervals of {sid}:{tag} are in the GTID set twice")
            seen.add((sid, tag))
            sets.append((sid, tag, ranges))
        return cls(tuple(sets))

    def __str__(self) -> str:
        return ",".join(
            ":".join((sid, *((tag,) if tag != "" else ()), *(_interval(*interval) for interval in intervals)))
            for sid, tag, intervals in self.sets
        )


def _check_size(body: memoryview) -> None:
    if len(body) > LARGEST_LIST:
        raise ValueError(
            f"GTIDs of {len(body):,} bytes at the head of a file, {LARGEST_LIST:,} at most were expected: 500,000 gaps "
            "or servers; if the source itself has so many, fill the gaps of gtid_executed by empty transactions"
        )


def _check_ranges(ranges: Iterable[tuple[int, int]]) -> None:
    """Servers write them in order, with a gap between each two."""
    before = -1
    for first, last in ranges:
        if not before + 1 < first <= last <= _LAST_NUMBER:
            raise ValueError(f"interval {first}-{last} of a GTID set behind {before}")
        before = last


def _interval(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
