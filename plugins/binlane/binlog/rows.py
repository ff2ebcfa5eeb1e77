"""ROWS events: finds and counts the row images; ``row_values`` decodes them.

Formats: v1 (codes 23-25: MySQL 5.1 to 5.5, MariaDB), v2 (30-32: MySQL 5.6 and newer), MariaDB's compressed ones
(166-171), MySQL's PARTIAL_UPDATE_ROWS (39). Sources: MySQL ``libs/mysql/binlog/event/rows_event.h`` (Rows_event),
``sql/log_event.cc`` (Rows_log_event::pack_row), MariaDB ``sql/log_event.cc`` (binlog_buf_uncompress).
``kernels.framing`` and ``kernels.rows`` do the same for whole segments; tests compare them with this module, which is
plain Python.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from enum import IntFlag, StrEnum
from typing import Final

from binlane.binlog.table_map import FLAGS_IN_BODY, TABLE_ID_AND_FLAGS, TableMap
from binlane.binlog.types.type_codes import UNSUPPORTED_RULE, LengthRule
from binlane.binlog.wire import EventType, type_name
from binlane.errors import BinlogError, TruncatedEventError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import plural


class RowsKind(StrEnum):
    """Insert, update or delete."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


class RowsFlag(IntFlag):
    """Flags of the rows event's own post-header."""

    STMT_END = 0x0001
    """STMT_END_F, on a statement's last rows event: its TABLE_MAPs end here."""
    NO_FOREIGN_KEY_CHECKS = 0x0002
    RELAXED_UNIQUE_CHECKS = 0x0004
    COMPLETE_ROWS = 0x0008
    CASCADES_LOGGED = 0x0010
    """USE_SQL_FOREIGN_KEY_F, MySQL 9.6 and newer: what foreign keys have changed by this event is logged as rows."""


CHECKS_OFF: Final = int(RowsFlag.NO_FOREIGN_KEY_CHECKS | RowsFlag.RELAXED_UNIQUE_CHECKS)
"""The flags that switch a server's checks off."""


def checks_off(kind: RowsKind, flags: int) -> int:
    """The checks without which a rows event of these flags is written, as in ``CHECKS_OFF``.

    Updates and deletions whose cascades are logged go without foreign keys, which would change rows a second time.
    Insertions cascade nothing: they stay checked.
    """
    off = flags & CHECKS_OFF
    if flags & RowsFlag.CASCADES_LOGGED and kind is not RowsKind.INSERT:
        off |= RowsFlag.NO_FOREIGN_KEY_CHECKS
    return off


_T = EventType
ROWS_KINDS: Final[Mapping[int, RowsKind]] = {
    _T.WRITE_ROWS_V1: RowsKind.INSERT,
    _T.UPDATE_ROWS_V1: RowsKind.UPDATE,
    _T.DELETE_ROWS_V1: RowsKind.DELETE,
    _T.WRITE_ROWS_V2: RowsKind.INSERT,
    _T.UPDATE_ROWS_V2: RowsKind.UPDATE,
    _T.DELETE_ROWS_V2: RowsKind.DELETE,
    _T.PARTIAL_UPDATE_ROWS: RowsKind.UPDATE,
    _T.WRITE_ROWS_COMPRESSED_V1: RowsKind.INSERT,
    _T.UPDATE_ROWS_COMPRESSED_V1: RowsKind.UPDATE,
    _T.DELETE_ROWS_COMPRESSED_V1: RowsKind.DELETE,
    _T.WRITE_ROWS_COMPRESSED_V2: RowsKind.INSERT,
    _T.UPDATE_ROWS_COMPRESSED_V2: RowsKind.UPDATE,
    _T.DELETE_ROWS_COMPRESSED_V2: RowsKind.DELETE,
}
"""The rows events that are supported."""
REFUSED_ROWS: Final = frozenset(
    {_T.PRE_GA_WRITE_ROWS, _T.PRE_GA_UPDATE_ROWS, _T.PRE_GA_DELETE_ROWS, _T.PARTIAL_ROW_DATA}
)
"""Unsupported rows events: those of 5.1 pre-releases, and MariaDB 12.3's fragments of large rows events."""
COMPRESSED_ROWS: Final = frozenset(range(_T.WRITE_ROWS_COMPRESSED_V1, _T.DELETE_ROWS_COMPRESSED_V2 + 1))
PLAIN_TYPES: Final = dict(zip(sorted(COMPRESSED_ROWS), (23, 24, 25, 30, 31, 32), strict=True))
WITH_EXTRA: Final = frozenset(
    {
        *range(_T.WRITE_ROWS_V2, _T.DELETE_ROWS_V2 + 1),
        _T.PARTIAL_UPDATE_ROWS,
        *range(_T.WRITE_ROWS_COMPRESSED_V2, _T.DELETE_ROWS_COMPRESSED_V2 + 1),
    }
)
"""v2 rows events: extra data, after a u16 length that counts itself, stands before the width."""
OVERRUN_HINT: Final = (
    "the log is damaged, or the table has MariaDB 5.3 columns (TIME, DATETIME or TIMESTAMP with a fraction, made under "
    "mysql56_temporal_format=OFF), whose length no log tells: alter them on the source"
)
_PARTIAL_JSON: Final = 1
"""Bit of a partial image's value options: a bitmap over the table's JSON columns follows."""

Range = tuple[int, int]
"""[start, end) in ``RowsEvent.rows``."""


@dataclass(frozen=True, slots=True)
class RowsEvent:
    """One rows event, parsed as far as possible without its TABLE_MAP."""

    type_code: int
    table_id: int
    flags: int
    kind: RowsKind
    width: int
    """Number of columns in the event."""
    columns_before: bytes | None
    """One bit a column, lowest first, set if before-images have the column; None for inserts."""
    columns_after: bytes | None
    """One bit a column, lowest first, set if after-images have the column; None for deletes."""
    extra: bytes
    """v2 extra data without its length (NDB's, or the partition); empty in v1."""
    rows: memoryview
    """The decompressed row images; a slice of the event's body if it was not compressed."""
    images_at: int
    """Offset of the images, compressed or not, in the event's body."""

    @classmethod
    def parse(cls, type_code: int, body: memoryview, where: str = "") -> RowsEvent:
        """Parse an event's body (after the header, without the checksum). ``where`` begins every message.

        Raises UnsupportedEventError for an unsupported form of rows, BinlogError for damage.
        """
        name = f"{where}{type_name(type_code)}: "
        kind = ROWS_KINDS.get(type_code)
        if kind is None:
            raise UnsupportedEventError(f"{name}not a rows event that this version reads")
        _within(body, TABLE_ID_AND_FLAGS, name)
        extra, at = _extra(body, name) if type_code in WITH_EXTRA else (b"", TABLE_ID_AND_FLAGS)
        width, at = _length_encoded(body, at, name)
        bitmap_length = (width + 7) // 8
        middle = at + bitmap_length
        end = middle + bitmap_length if kind is RowsKind.UPDATE else middle
        _within(body, end, name)
        compressed = type_code in COMPRESSED_ROWS
        return cls(
            type_code=type_code,
            table_id=int.from_bytes(body[:6], "little"),
            flags=int.from_bytes(body[6:8], "little"),
            kind=kind,
            width=width,
            columns_before=None if kind is RowsKind.INSERT else bytes(body[at:middle]),
            columns_after=None if kind is RowsKind.DELETE else bytes(body[end - bitmap_length : end]),
            extra=extra,
            rows=memoryview(decompress(body[end:], name)) if compressed else body[end:],
            images_at=end,
        )

    @property
    def partial(self) -> bool:
        """Whether after-images may hold JSON diffs instead of values."""
        return self.type_code == _T.PARTIAL_UPDATE_ROWS

    @property
    def ends_statement(self) -> bool:
        """Whether the event has STMT_END_F, which ends the statement's TABLE_MAPs."""
        return bool(self.flags & RowsFlag.STMT_END)


def _within(body: memoryview, end: int, name: str) -> None:
    if end > len(body):
        raise TruncatedEventError(f"{name}expected at least {end} bytes of body, found {len(body)}; it is damaged")


def _extra(body: memoryview, name: str) -> tuple[bytes, int]:
    start = TABLE_ID_AND_FLAGS + 2
    _within(body, start, name)
    length = int.from_bytes(body[TABLE_ID_AND_FLAGS:start], "little")
    if length < 2:
        raise BinlogError(f"{name}extra data of length {length}, which counts its own 2 bytes; the event is damaged")
    end = TABLE_ID_AND_FLAGS + length
    return bytes(body[start:end]), end


def _length_encoded(body: memoryview, at: int, name: str) -> tuple[int, int]:
    """A length-encoded integer below 2**24 (servers allow fewer columns), and the offset behind it."""
    _within(body, at + 1, name)
    first = body[at]
    if first < 251:
        return first, at + 1
    if first not in (252, 253):
        raise BinlogError(f"{name}byte {at} of the body is {first}: no number below 2**24; the event is damaged")
    end = at + first - 249
    _within(body, end, name)
    return int.from_bytes(body[at + 1 : end], "little"), end


def decompress(data: memoryview, name: str = "") -> bytes:
    """Decompress MariaDB's rows: ``0x80 | algorithm << 4 | n``, the length in n big-endian bytes, a zlib stream."""
    head = data[0] if len(data) else 0
    length_bytes = head & 0x07
    if head & 0xF0 != 0x80 or not 1 <= length_bytes <= 4 or len(data) <= length_bytes:
        raise BinlogError(f"{name}expected a zlib header 0x81 to 0x84, found {bytes(data[:5]).hex() or 'nothing'}")
    length = int.from_bytes(data[1 : 1 + length_bytes], "big")
    stream = zlib.decompressobj()
    try:
        # one byte more than declared, to detect a longer stream without allocating more memory
        plain = stream.decompress(data[1 + length_bytes :], length + 1)
    except zlib.error as exc:
        raise BinlogError(f"{name}compressed rows are damaged: {exc}") from exc
    if len(plain) != length or not stream.eof or stream.unused_data:
        raise BinlogError(f"{name}compressed rows: declared {length} bytes, the stream does not end there")
    return plain


def decompressed(type_code: int, body: memoryview, where: str = "") -> tuple[int, bytes]:
    """Type code and body of the uncompressed event, since BINLOG refuses compressed ones (error 1730)."""
    if type_code not in COMPRESSED_ROWS:
        raise ValueError(f"{where}{type_name(type_code)} is not a compressed rows event")
    event = RowsEvent.parse(type_code, body, where)
    return PLAIN_TYPES[type_code], bytes(body[: event.images_at]) + bytes(event.rows)


def rows_length(type_code: int, body: memoryview) -> int:
    """Bytes of an event's body with its rows decompressed, by the declared length; decompresses nothing."""
    if type_code not in COMPRESSED_ROWS:
        return len(body)
    _, at = _extra(body, "") if type_code in WITH_EXTRA else (b"", TABLE_ID_AND_FLAGS)
    width, at = _length_encoded(body, at, "")
    at += (width + 7) // 8 * (2 if ROWS_KINDS[type_code] is RowsKind.UPDATE else 1)
    _within(body, at + 1, "")
    return at + int.from_bytes(body[at + 1 : at + 1 + (body[at] & 0x07)], "big")


def row_images(event: RowsEvent, table: TableMap, where: str = "") -> Iterator[tuple[Range | None, Range | None]]:
    """The (before, after) images of each row, as ranges in ``event.rows``.

    Raises BinlogError where an image overruns the event or the event is not of this table's shape, and
    UnsupportedEventError for PARTIAL_UPDATE_ROWS, whose after-images are not rows, and for columns without a length.
    """
    if event.partial:
        raise UnsupportedEventError(
            f"{where}{table.database}.{table.table}: PARTIAL_UPDATE_ROWS holds JSON diffs, not row images; "
            "it can be counted and replayed as it is, but not taken apart"
        )
    return image_ranges(event, table, where)


def count_rows(event: RowsEvent, table: TableMap, where: str = "") -> int:
    """The number of rows that the event changes. Raises as ``row_images``, but counts PARTIAL_UPDATE_ROWS."""
    return sum(1 for _ in image_ranges(event, table, where))


def image_ranges(
    event: RowsEvent, table: TableMap, where: str = "", spec: Sequence[LengthRule] | None = None
) -> Iterator[tuple[Range | None, Range | None]]:
    """As ``row_images``, and for PARTIAL_UPDATE_ROWS, whose after-images begin with their value options.

    ``spec``: column lengths from a schema in place of the TABLE_MAP's.
    """
    name = f"{where}{type_name(event.type_code)}: {table.database}.{table.table}: "
    if event.width != table.width:
        raise BinlogError(f"{name}{plural(event.width, 'column')}, its TABLE_MAP has {table.width}; the log is damaged")
    spec = table.column_length_spec(where) if spec is None else spec
    before, after = (
        None
        if bitmap is None
        else [rule for number, rule in enumerate(spec) if bitmap[number >> 3] >> (number & 7) & 1]
        for bitmap in (event.columns_before, event.columns_after)
    )
    rows = bytes(event.rows)
    if not rows:
        if before or after or event.partial:
            raise BinlogError(f"{name}no row images; the event is damaged")
        # MySQL logs `INSERT INTO t VALUES ()` under binlog_row_image=MINIMAL as one row of no bytes
        yield (None if before is None else (0, 0)), (None if after is None else (0, 0))
        return
    at = 0
    while at < len(rows):
        first = at
        before_range = after_range = None
        if before is not None:
            at = _image_end(rows, at, before, name)
            before_range = (first, at)
        if after is not None:
            middle = at
            if event.partial:
                _, at = partial_head(rows, at, table.json_columns, name)
            at = _image_end(rows, at, after, name)
            after_range = (middle, at)
        if at == first:
            raise BinlogError(f"{name}{len(rows)} bytes of rows that have no columns; the event is damaged")
        yield before_range, after_range


def _image_end(rows: bytes, at: int, columns: list[LengthRule], name: str) -> int:
    """The end of the image at ``at``: one bit for each column in it, set for NULL, then the values that are not
    NULL."""
    nulls_at = at
    at += (len(columns) + 7) // 8
    _inside(rows, at, name)
    for number, (rule, length) in enumerate(columns):
        if rows[nulls_at + (number >> 3)] >> (number & 7) & 1:
            continue
        if rule == UNSUPPORTED_RULE:
            raise UnsupportedEventError(
                f"{name}a column of type {length}, of a length that the log does not tell: "
                "alter the table on the source, which rewrites it in a current format"
            )
        if rule:
            _inside(rows, at + rule, name)
            length = int.from_bytes(rows[at : at + rule], "little")
        at += rule + length
        _inside(rows, at, name)
    return at


def partial_head(rows: bytes, at: int, json_columns: int, name: str) -> tuple[bytes, int]:
    """The head of a partial after-image: one bit for each JSON column of the table, set if the image has diffs for it,
    and the offset of the image itself. Empty: no column has diffs. Raises as ``image_ranges``."""
    options, at = _length_encoded(memoryview(rows), at, name)
    if options & ~_PARTIAL_JSON:
        raise UnsupportedEventError(f"{name}value options {options:#x}: only 1, partial JSON, is known")
    if not options & _PARTIAL_JSON:
        return b"", at
    end = at + (json_columns + 7) // 8
    _inside(rows, end, name)
    return rows[at:end], end


def _inside(rows: bytes, end: int, name: str) -> None:
    if end > len(rows):
        raise BinlogError(f"{name}a row image reaches to byte {end} of {len(rows)} bytes of rows; {OVERRUN_HINT}")


class TableNumbers:
    """Numbers distinct table definitions from 0 in order of appearance, and maps table ids to these numbers.

    TABLE_MAP events that are equal except for their table id have the same number. An id is valid until the rows event
    that ends the statement or a FORMAT_DESCRIPTION, as in the servers: they reuse ids for other tables, and a table
    that was closed and opened again gets a new id.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._current: dict[int, int] = {}

    def number(self, type_code: int, body: memoryview, where: str = "") -> int | None:
        """The number of a TABLE_MAP or ROWS event's table; None for other events, which must be passed in, too.

        Raises BinlogError for a table id without TABLE_MAP, UnsupportedEventError for an unsupported form of rows.
        """
        if type_code == _T.FORMAT_DESCRIPTION:
            self._current.clear()
        if type_code in REFUSED_ROWS:
            raise UnsupportedEventError(f"{where}{type_name(type_code)}: rows in a form that this version cannot read")
        if type_code != _T.TABLE_MAP and type_code not in ROWS_KINDS:
            return None
        _within(body, TABLE_ID_AND_FLAGS, f"{where}{type_name(type_code)}: ")
        table_id = int.from_bytes(body[:6], "little")
        if type_code == _T.TABLE_MAP:
            number = self._numbers.setdefault(bytes(body[6:]), len(self._numbers))
            self._current[table_id] = number
            return number
        if table_id not in self._current:
            raise BinlogError(
                f"{where}{type_name(type_code)}: table id {table_id} has no TABLE_MAP in its statement; "
                "the log is damaged"
            )
        number = self._current[table_id]
        if body[FLAGS_IN_BODY] & RowsFlag.STMT_END:
            self._current.clear()
        return number
