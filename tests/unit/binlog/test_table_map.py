"""TABLE_MAP as servers wrote it, every column's length rule, and what damage does."""

from __future__ import annotations

import contextlib
import itertools

import pytest

from binlane.binlog.table_map import SHORT, TableMap, known_columns
from binlane.binlog.types.type_codes import UNSUPPORTED_RULE
from binlane.errors import BinlogError, UnsupportedEventError
from tests.unit.binlog.row_events import EVERY_COLUMN, Column, table_map_body

# bodies of events that the servers wrote with binlog_row_metadata=FULL
MYSQL_SMALL = bytes.fromhex(
    "7f00000000000100036c61620005736d616c6c0006030ff6fef5f208b0040703f70104043e0101800304fcff003f0d0102040d026964017301"
    "640165016a01760a0108060502016101620801000c01fc"
)
MYSQL_INVISIBLE_KEY = bytes.fromhex(
    "7b00000000000500036c616200046769706b000208030002010180040c096d795f726f775f696401610801000c0140"
)
MYSQL_PREFIX_KEY = bytes.fromhex(
    "7900000000000100036c61620003706b7000030f0f0304c8005000020101000203fcff0004060161016201630904000a02000c01e0"
)
MARIADB_HASH_KEY = bytes.fromhex(
    "2400000000000100036c616200056861736875000303fc0801020601014002012d041302696401610d44425f524f575f484153485f31080100"
)
SERVER_BODIES = [MYSQL_SMALL, MYSQL_INVISIBLE_KEY, MYSQL_PREFIX_KEY, MARIADB_HASH_KEY]


def parse(body: bytes) -> TableMap:
    return TableMap.parse(memoryview(body), "f:4: ")


def test_a_full_mysql_table_map_is_read_whole() -> None:
    table = parse(MYSQL_SMALL)
    assert (table.table_id, table.flags, table.database, table.table) == (127, 1, "lab", "small")
    assert (table.raw_database, table.raw_table, table.width) == (b"lab", b"small", 6)
    assert table.column_types == bytes([3, 15, 246, 254, 245, 242])
    assert table.real_types == bytes([3, 15, 246, 247, 245, 242])
    assert table.metadata == (0, 1200, 0x0703, 0xF701, 4, 4)
    assert table.null_bitmap == b"\x3e"
    assert table.json_columns == 1
    assert table.column_length_spec() == ((0, 4), (2, 0), (0, 4), (0, 1), (4, 0), (4, 0))
    optional = table.optional
    assert optional.unsigned == (True, None, False, None, None, None)
    assert optional.collations == (None, 255, None, 8, None, 63)
    assert optional.column_names == ("id", "s", "d", "e", "j", "v")
    assert optional.members == (None, None, None, (b"a", b"b"), None, None)
    assert optional.primary_key == ((0, 0),)
    assert optional.visible == (True,) * 6
    assert optional.vector_dimensions == (None, None, None, None, None, 2)


def test_keys_signs_and_visibility_of_other_tables() -> None:
    hidden = parse(MYSQL_INVISIBLE_KEY).optional
    assert (hidden.visible, hidden.unsigned) == ((False, True), (True, False))
    assert parse(MYSQL_PREFIX_KEY).optional.primary_key == ((0, 10), (2, 0))
    hashed = parse(MARIADB_HASH_KEY).optional
    assert hashed.column_names == ("id", "a", "DB_ROW_HASH_1")
    assert (hashed.unsigned, hashed.collations) == ((False, None, True), (None, 45, None))


OPTIONAL = [
    pytest.param("unsigned", ["long", "char-80", "year"], b"\1\1\x40", (False, None, True), id="year-is-a-number"),
    pytest.param(
        "collations",
        ["char-80", "enum-1", "blob", "long", "set-8"],
        b"\2\3\x08\1\x3f\x0a\1\x2d\3\2\x08\x3f",
        (8, 45, 63, None, 45),
        id="characters-apart-from-enum-and-set",
    ),
    pytest.param("collations", ["char-80", "enum-1", "enum-1"], b"\x0b\2\x08\x09", (None, 8, 9), id="enums-one-by-one"),
    pytest.param("collations", ["char-80", "long", "blob"], b"\3\2\x08\x09", (8, None, 9), id="characters-one-by-one"),
    pytest.param("members", ["set-8", "enum-1"], b"\5\3\1\1x\6\5\2\1a\1b", ((b"x",), (b"a", b"b")), id="members"),
    pytest.param("geometry_types", ["long", "geometry"], b"\7\1\1", (None, 1), id="geometry-type"),
    pytest.param("column_names", ["long"], b"\xc8\3abc\4\2\1a", ("a",), id="an-unknown-field-is-skipped"),
]


@pytest.mark.parametrize(("name", "columns", "optional", "expected"), OPTIONAL)
def test_optional_metadata_belongs_to_its_columns(
    name: str, columns: list[str], optional: bytes, expected: tuple[object, ...]
) -> None:
    table = parse(table_map_body(1, [EVERY_COLUMN[column] for column in columns], optional=optional))
    assert getattr(table.optional, name) == expected


@pytest.mark.parametrize("column", EVERY_COLUMN.values(), ids=EVERY_COLUMN)
def test_every_column_type_has_its_length(column: Column) -> None:
    assert parse(table_map_body(1, [column])).column_length_spec() == (column.length,)


UNMEASURABLE = [(Column(0, b"", (0, 0)), 0), (Column(253, b"\xfe\x10", (0, 0)), 253)]


@pytest.mark.parametrize(("column", "code"), UNMEASURABLE, ids=["old-decimal", "var-string"])
def test_a_column_without_a_logged_length_is_named_so(column: Column, code: int) -> None:
    assert parse(table_map_body(1, [column])).column_length_spec() == ((UNSUPPORTED_RULE, code),)


IMPOSSIBLE = [
    pytest.param(252, b"\x00", id="blob-without-length-bytes"),
    pytest.param(252, b"\x05", id="blob-with-5-length-bytes"),
    pytest.param(246, b"\x00\x00", id="decimal-without-digits"),
    pytest.param(246, b"\x42\x00", id="decimal-of-66-digits"),
    pytest.param(246, b"\x05\x06", id="decimal-of-more-fraction-than-digits"),
    pytest.param(19, b"\x07", id="time-with-7-digits"),
    pytest.param(4, b"\x08", id="float-of-8-bytes"),
    pytest.param(5, b"\x04", id="double-of-4-bytes"),
    pytest.param(16, b"\x08\x00", id="bit-with-8-odd-bits"),
    pytest.param(16, b"\x01\x08", id="bit-65"),
    pytest.param(16, b"\x00\x00", id="bit-0"),
    pytest.param(254, b"\x0f\x10", id="char-of-another-real-type"),
    pytest.param(254, b"\xf7\x00", id="enum-of-no-bytes"),
    pytest.param(254, b"\xf8\x09", id="set-of-9-bytes"),
]


@pytest.mark.parametrize(("code", "metadata"), IMPOSSIBLE)
def test_metadata_that_no_server_writes_is_refused(code: int, metadata: bytes) -> None:
    table = parse(table_map_body(1, [EVERY_COLUMN["long"], Column(code, metadata, (0, 0))]))
    with pytest.raises(BinlogError, match=r"^g:9: TABLE_MAP: db\.t column 2: expected .*metadata is 0x"):
        table.column_length_spec("g:9: ")


@pytest.mark.parametrize("code", [20, 243, 244, 139])
def test_a_type_of_unknown_metadata_is_refused(code: int) -> None:
    with pytest.raises(UnsupportedEventError, match=rf"column 1 has type {code}"):
        parse(table_map_body(1, [Column(code, b"", (0, 0))]))


def test_a_map_without_metadata_is_refused_as_too_old() -> None:
    body = table_map_body(1, [EVERY_COLUMN["long"]])
    with pytest.raises(UnsupportedEventError, match=r"5\.1\.17 or older"):
        parse(body[: body.index(b"\x01\x03") + 2])


@pytest.mark.parametrize("name", ["#mysql50#app", "#MySQL50#binlane", "#mysql50#"])
def test_a_name_with_which_mariadb_finds_another_database_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedEventError, match=r"^f:4: TABLE_MAP: rows under '#.*by a new copy"):
        parse(table_map_body(1, [Column(3, b"", (0, 0))], name))


DAMAGED = [
    pytest.param(table_map_body(1, []).replace(b"\0\1t\0", b"\0\1tx"), "expected the 0 behind a name", id="no-nul"),
    pytest.param(table_map_body(1, []).replace(b"t", b"\xff"), "not UTF-8", id="name-not-utf-8"),
    pytest.param(table_map_body(1, [Column(3, b"\1", (0, 4))]), "1 bytes of column metadata, expected 0", id="surplus"),
    pytest.param(table_map_body(1, [EVERY_COLUMN["long"]], optional=b"\4\4\1a\1b"), "2 column names", id="names"),
    pytest.param(table_map_body(1, [], optional=b"\4\xff"), "255 does not begin a length", id="length"),
    pytest.param(table_map_body(1, [], "other\0app"), "is no name of a database", id="nul-in-a-name"),
    pytest.param(table_map_body(1, [], "d" * 65), "a name of 65 characters", id="long-name"),
    pytest.param(table_map_body(1, [EVERY_COLUMN["long"]] * 4097), "4097 columns; servers allow", id="columns"),
]


@pytest.mark.parametrize(("body", "message"), DAMAGED)
def test_damage_is_told_with_its_place(body: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=rf"^f:4: TABLE_MAP: .*{message}"):
        parse(body)


@pytest.mark.parametrize("body", SERVER_BODIES)
def test_every_cut_is_refused_or_loses_optional_metadata_only(body: bytes) -> None:
    whole = parse(body)
    for end in range(len(body)):
        with contextlib.suppress(BinlogError):
            assert parse(body[:end]).metadata == whole.metadata


@pytest.mark.parametrize("body", SERVER_BODIES)
def test_a_corrupt_byte_raises_nothing_but_binlog_errors(body: bytes) -> None:
    for at, value in itertools.product(range(len(body)), range(256)):
        with contextlib.suppress(BinlogError):
            parse(body[:at] + bytes([value]) + body[at + 1 :]).column_length_spec()


def test_tables_of_the_same_columns_are_parsed_once() -> None:
    first, other = (TableMap.parse(memoryview(table_map_body(1, [EVERY_COLUMN["long"]], name))) for name in "ab")
    assert (first.database, other.database) == ("a", "b")
    assert first.optional is other.optional


def test_a_list_of_many_columns_is_not_kept() -> None:
    """One of 1,000 columns would hold 100 KiB, and thousands are kept."""
    known_columns.cache_clear()
    for columns, kept in ((700, 0), (600, 1)):
        body = table_map_body(1, [EVERY_COLUMN["varchar-255"]] * columns)
        assert (len(body) <= SHORT) == bool(kept)
        assert TableMap.parse(memoryview(body)).width == columns
        assert known_columns.cache_info().currsize == kept
