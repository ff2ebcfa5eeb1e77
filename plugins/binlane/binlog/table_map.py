"""TABLE_MAP: the table of a ROWS event's table id, and the length of each of its columns in a row image.

Sources: MySQL ``libs/mysql/binlog/event/rows_event.h`` (Table_map_event), ``binary_log_funcs.cpp`` (calc_field_size),
MariaDB ``sql/rpl_utility.cc``. The sets of types with optional metadata were compared with the information_schema of
MySQL 9.7 and MariaDB 10.11.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from binlane.binlog.fields import check_name
from binlane.binlog.types import collations
from binlane.binlog.types.column_types import LOGGED_TYPES, Entry, codes_with
from binlane.binlog.types.columns import Column
from binlane.binlog.types.type_codes import ColumnType, LengthRule
from binlane.errors import BinlogError, UnsupportedEventError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, plural
from binlane.rename_rules import NAMES_A_FILE, names_a_file

TABLE_ID_AND_FLAGS: Final = 8
"""Length of the post-header of TABLE_MAP and ROWS events: table id u48, flags u16."""
FLAGS_IN_BODY: Final = 6
"""Where these flags stand in an event's body."""
MOST_COLUMNS: Final = 4096
"""Of a table, in both families: what each column takes in memory is a multiple of what it takes in the log."""
_C = ColumnType
_NUMERIC: Final = codes_with(Entry.SIGN)
_CHARACTERS: Final = codes_with(Entry.COLLATION)
_ENUM_OR_SET: Final = codes_with(Entry.MEMBERS)

_KEPT: Final = 4096
"""Lists of columns that a process keeps, some KiB each: a log has the same ones again and again."""
SHORT: Final = 2048
"""Bytes of a list of columns that may be kept: parsed, one of 1,000 columns with their names takes 100 KiB."""


@dataclass(slots=True)
class _Cursor:
    """Reads fields of ``data`` one after another, never past its end."""

    data: bytes
    where: str
    at: int = 0

    def take(self, length: int) -> bytes:
        end = self.at + length
        if end > len(self.data):
            raise BinlogError(
                f"{self.where}TABLE_MAP: expected {length} bytes at byte {self.at} of {len(self.data)}; "
                "the event is damaged"
            )
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def integer(self) -> int:
        """A length-encoded integer: one byte up to 250, else 252, 253 or 254 before 2, 3 or 8 bytes."""
        first = self.take(1)[0]
        if first < 251:
            return first
        if first in (251, 255):
            raise BinlogError(f"{self.where}TABLE_MAP: byte {self.at - 1}: {first} does not begin a length")
        return int.from_bytes(self.take((2, 3, 8)[first - 252]), "little")

    def string(self) -> bytes:
        return self.take(self.integer())

    def left(self) -> bool:
        return self.at < len(self.data)


@dataclass(frozen=True, slots=True)
class OptionalMetadata:
    """The fields that ``binlog_row_metadata`` adds. Tuples have one entry per column; ``None``: not logged.

    MINIMAL logs signs, collations and geometry types; FULL logs all fields; MariaDB's default NO_LOG logs none.
    """

    unsigned: tuple[bool | None, ...] | None = None
    """None for columns that are not numbers."""
    collations: tuple[int | None, ...] | None = None
    """Collation ids of character, ENUM and SET columns."""
    column_names: tuple[str, ...] | None = None
    members: tuple[tuple[bytes, ...] | None, ...] | None = None
    """Members of ENUM and SET columns, in order, in the column's character set."""
    geometry_types: tuple[int | None, ...] | None = None
    primary_key: tuple[tuple[int, int], ...] | None = None
    """Column numbers from 0 in key order, each with its prefix length in characters; 0 for the whole column."""
    visible: tuple[bool, ...] | None = None
    vector_dimensions: tuple[int | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class TableMap:
    """One TABLE_MAP event. Valid until the statement's last ROWS event, which has STMT_END_F."""

    table_id: int
    flags: int
    database: str
    table: str
    raw_database: bytes
    raw_table: bytes
    column_types: bytes
    """One ``ColumnType`` a column, as logged: ENUM and SET are STRING here, see ``real_types``."""
    metadata: tuple[int, ...]
    """One integer a column; 0 for types without. Two-byte metadata is ``first << 8 | second`` for STRING, ENUM, SET and
    NEWDECIMAL, little-endian for the others."""
    null_bitmap: bytes
    """One bit a column, lowest first: set if the column may be NULL."""
    optional: OptionalMetadata

    @classmethod
    def parse(cls, body: memoryview, where: str = "", flavor: Flavor = Flavor.MYSQL) -> TableMap:
        """Parse an event's body (after the header, without the checksum) of a server of that family.

        Only the optional metadata depends on the family. ``where`` begins every message. Raises BinlogError for damage,
        and UnsupportedEventError for a column type whose metadata cannot be read (also MySQL's TYPED_ARRAY, which no
        server logs).
        """
        data = bytes(body)
        raw_database, at = _name(data, TABLE_ID_AND_FLAGS, where)
        raw_table, at = _name(data, at, where)
        return cls(
            int.from_bytes(data[:6], "little"),
            int.from_bytes(data[6:TABLE_ID_AND_FLAGS], "little"),
            _object_name(raw_database, where),
            _object_name(raw_table, where),
            raw_database,
            raw_table,
            *_columns(data, at, where, flavor),
        )

    @property
    def width(self) -> int:
        """How many columns the table has."""
        return len(self.column_types)

    @property
    def real_types(self) -> bytes:
        """Column types, with ENUM and SET in place of STRING; the metadata has the real type."""
        return _real_types(self.column_types, self.metadata)

    @property
    def json_columns(self) -> int:
        """The number of JSON columns; a PARTIAL_UPDATE_ROWS image has one bit for each."""
        return self.column_types.count(_C.JSON)

    def column_length_spec(self, where: str = "") -> tuple[LengthRule, ...]:
        """The length rule of each column; raises BinlogError for metadata that no server writes."""
        return tuple(
            LOGGED_TYPES[code].length(meta, f"{where}TABLE_MAP: {self.database}.{self.table} column {number}: ")
            for number, (code, meta) in enumerate(zip(self.column_types, self.metadata, strict=True), 1)
        )


def columns_of(table: TableMap, flavor: Flavor) -> tuple[Column, ...]:
    """The columns, with the properties that the log has."""
    optional, width = table.optional, table.width
    nothing = (None,) * width
    names = optional.column_names or nothing
    unsigned = optional.unsigned or nothing
    members = optional.members or nothing
    charsets = [charset_of(table, number, flavor) for number in range(width)]
    return tuple(
        Column(
            number=number + 1,
            name=names[number],
            type_code=code,
            metadata=table.metadata[number],
            nullable=bool(table.null_bitmap[number >> 3] >> (number & 7) & 1),
            unsigned=unsigned[number],
            charset=charsets[number],
            members=members[number],
        )
        for number, code in enumerate(table.real_types)
    )


def charset_of(table: TableMap, number: int, flavor: Flavor) -> str | None:
    """The character set of a column, by its number from 0; None if it is not logged, and for types that are no
    strings."""
    collation = None if table.optional.collations is None else table.optional.collations[number]
    name = None if collation is None else collations.collation_name(collation, flavor)
    return None if name is None else collations.charset_name(name)


_Columns = tuple[bytes, tuple[int, ...], bytes, OptionalMetadata]
"""The fields of a ``TableMap`` from ``column_types`` on."""


def _columns(data: bytes, at: int, where: str, flavor: Flavor) -> _Columns:
    """The fields behind the names, parsed once for all tables where these are equal, such as tenants'."""
    rest = data[at:]
    if len(rest) <= SHORT:
        try:
            return known_columns(rest, flavor)
        except BinlogError:
            # not cached, and read again, because an error message has the place
            pass
    return _parsed_columns(_Cursor(data, where, at), flavor)


@lru_cache(maxsize=_KEPT)
def known_columns(rest: bytes, flavor: Flavor) -> _Columns:
    """The columns of a TABLE_MAP's body behind its names."""
    return _parsed_columns(_Cursor(rest, ""), flavor)


def _parsed_columns(cursor: _Cursor, flavor: Flavor) -> _Columns:
    width = cursor.integer()
    if width > MOST_COLUMNS:
        raise BinlogError(f"{cursor.where}TABLE_MAP: {width} columns; servers allow at most {MOST_COLUMNS}")
    types = cursor.take(width)
    if not cursor.left():
        raise UnsupportedEventError(
            f"{cursor.where}TABLE_MAP: no column metadata: a log of MySQL 5.1.17 or older, with rows of unknown length"
        )
    metadata = _metadata(types, _Cursor(cursor.string(), cursor.where))
    null_bitmap = cursor.take((width + 7) // 8)
    return types, metadata, null_bitmap, _optional(cursor, _real_types(types, metadata), _FIELDS_OF[flavor])


def object_names(body: bytes) -> tuple[str, str]:
    """The database and the table of a TABLE_MAP's body, whose columns are not read. Raises as ``TableMap.parse``."""
    database, at = _name(body, TABLE_ID_AND_FLAGS, "")
    return _object_name(database, ""), _object_name(_name(body, at, "")[0], "")


def _name(data: bytes, at: int, where: str) -> tuple[bytes, int]:
    """The name at a byte: its length, its bytes, a 0; and the byte behind it. A fleet's log has 10,000 tables, so the
    whole name is taken at once, and field by field only to say what is wrong."""
    if at < len(data):
        end = at + 1 + data[at]
        if data[end : end + 1] == b"\0":
            return data[at + 1 : end], end + 1
    cursor = _Cursor(data, where, min(at, len(data)))
    cursor.take(cursor.take(1)[0] + 1)
    raise BinlogError(f"{where}TABLE_MAP: byte {cursor.at - 1}: expected the 0 behind a name")


def _object_name(name: bytes, where: str) -> str:
    found = _text(name, where)
    try:
        check_name(found)
    except ValueError as exc:
        raise BinlogError(f"{where}TABLE_MAP: {exc}") from exc
    if names_a_file(found):
        # also one that the filter leaves out: it may be another name of a table that the filter takes
        raise UnsupportedEventError(
            f"{where}TABLE_MAP: rows under {found!r}, {NAMES_A_FILE}: find out who has written them; if a user's "
            "database has such a name, give it a plain one (ALTER DATABASE .. UPGRADE DATA DIRECTORY NAME), and begin "
            "the channel again by a new copy: what is logged keeps its name"
        )
    return found


def _text(name: bytes, where: str) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as exc:
        raise BinlogError(f"{where}TABLE_MAP: name {name!r} is not UTF-8, as all servers write names") from exc


def _metadata(types: bytes, cursor: _Cursor) -> tuple[int, ...]:
    values = []
    for number, code in enumerate(types, 1):
        kind = LOGGED_TYPES.get(code)
        if kind is None:
            raise UnsupportedEventError(
                f"{cursor.where}TABLE_MAP: column {number} has type {code}, which this version does not know"
            )
        values.append(int.from_bytes(cursor.take(kind.metadata), "big" if kind.big_endian else "little"))
    if cursor.left():
        raise BinlogError(
            f"{cursor.where}TABLE_MAP: {len(cursor.data)} bytes of column metadata, expected {cursor.at}; "
            "the event is damaged"
        )
    return tuple(values)


def _real_types(types: bytes, metadata: tuple[int, ...]) -> bytes:
    return bytes(
        meta >> 8 if code == _C.STRING and meta >> 8 in _ENUM_OR_SET else code
        for code, meta in zip(types, metadata, strict=True)
    )


# The optional metadata: a type byte, a length-encoded length, a value; one function a type, None for "skip".
_Values = dict[str, tuple[object, ...]]


def _bits(data: bytes) -> Iterator[bool]:
    """Highest bit of each byte first, as only optional metadata has them."""
    return (bool(byte >> (7 - shift) & 1) for byte in data for shift in range(8))


def _spread(real: bytes, wanted: frozenset[ColumnType], values: Iterator[object]) -> tuple[object, ...]:
    """One entry a column: the next value for a column of a wanted type, else None."""
    return tuple(next(values, None) if code in wanted else None for code in real)


def _integers(cursor: _Cursor) -> Iterator[int]:
    while cursor.left():
        yield cursor.integer()


def _strings(cursor: _Cursor) -> Iterator[bytes]:
    while cursor.left():
        yield cursor.string()


def _member_lists(cursor: _Cursor) -> Iterator[tuple[bytes, ...]]:
    while cursor.left():
        yield tuple(cursor.string() for _ in range(cursor.integer()))


def _default_collation(cursor: _Cursor, real: bytes, wanted: frozenset[ColumnType]) -> tuple[object, ...]:
    """A default collation, then (number among the wanted columns, collation) for those that differ from it."""
    default = cursor.integer()
    numbers = list(_integers(cursor))
    others = dict(zip(numbers[::2], numbers[1::2], strict=False))
    wanted_columns = sum(code in wanted for code in real)
    return _spread(real, wanted, iter([others.get(number, default) for number in range(wanted_columns)]))


def _names(cursor: _Cursor, real: bytes) -> tuple[str, ...]:
    names = tuple(_text(name, cursor.where) for name in _strings(cursor))
    if len(names) != len(real):
        raise BinlogError(f"{cursor.where}TABLE_MAP: {len(names)} column names for {plural(len(real), 'column')}")
    return names


def _key_parts(cursor: _Cursor, prefixed: bool) -> tuple[tuple[int, int], ...]:
    numbers = list(_integers(cursor))
    if prefixed:
        return tuple(zip(numbers[::2], numbers[1::2], strict=False))
    return tuple((number, 0) for number in numbers)


_Field = tuple[str, Callable[[_Cursor, bytes], tuple[object, ...]]]


def _fields(characters: frozenset[ColumnType]) -> Mapping[int, _Field]:
    return {
        1: ("unsigned", lambda cursor, real: _spread(real, _NUMERIC, _bits(cursor.data))),
        2: ("collations", lambda cursor, real: _default_collation(cursor, real, characters)),
        3: ("collations", lambda cursor, real: _spread(real, characters, _integers(cursor))),
        4: ("column_names", _names),
        5: ("members", lambda cursor, real: _spread(real, frozenset({_C.SET}), _member_lists(cursor))),
        6: ("members", lambda cursor, real: _spread(real, frozenset({_C.ENUM}), _member_lists(cursor))),
        7: ("geometry_types", lambda cursor, real: _spread(real, frozenset({_C.GEOMETRY}), _integers(cursor))),
        8: ("primary_key", lambda cursor, _: _key_parts(cursor, prefixed=False)),
        9: ("primary_key", lambda cursor, _: _key_parts(cursor, prefixed=True)),
        10: ("collations", lambda cursor, real: _default_collation(cursor, real, _ENUM_OR_SET)),
        11: ("collations", lambda cursor, real: _spread(real, _ENUM_OR_SET, _integers(cursor))),
        12: ("visible", lambda cursor, real: tuple(_bits(cursor.data))[: len(real)]),
        13: ("vector_dimensions", lambda cursor, real: _spread(real, frozenset({_C.VECTOR}), _integers(cursor))),
    }


_FIELDS_OF: Final[Mapping[Flavor, Mapping[int, _Field]]] = {
    # with the character set binary: VECTOR in MySQL's lists (seen on 9.7), and in MariaDB's its geometries, which are
    # blobs there (seen on 10.11); its VECTOR is logged as VARBINARY
    Flavor.MYSQL: _fields(_CHARACTERS | {_C.VECTOR}),
    Flavor.MARIADB: _fields(_CHARACTERS | {_C.GEOMETRY}),
}


def _merged(old: tuple[object, ...] | None, new: tuple[object, ...]) -> tuple[object, ...]:
    """Two fields fill one attribute: members of SET and ENUM; collations of character columns and of ENUM and SET."""
    if old is None:
        return new
    return tuple(before if after is None else after for before, after in zip(old, new, strict=False))


def _optional(cursor: _Cursor, real: bytes, fields: Mapping[int, _Field]) -> OptionalMetadata:
    found: _Values = {}
    while cursor.left():
        code = cursor.take(1)[0]
        value = _Cursor(cursor.string(), cursor.where)
        field = fields.get(code)
        if field is not None:  # a newer server's field is skipped by its length
            name, read = field
            found[name] = _merged(found.get(name), read(value, real))
    return OptionalMetadata(**found)  # type: ignore[arg-type]  # _fields pairs each name with a reader of its type
