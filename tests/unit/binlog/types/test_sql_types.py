"""Column types: every type of both families has its row, and its row decides what every place does with it."""

from __future__ import annotations

from collections.abc import MutableMapping
from decimal import Decimal
from typing import Final, NamedTuple, cast

import pytest

from binlane.apply.rows.statements import StatementBuilder
from binlane.apply.rows.target_row import _as_hex
from binlane.binlog.row_values import RowDecoder
from binlane.binlog.table_map import OptionalMetadata, TableMap, columns_of
from binlane.binlog.types.column_types import LOGGED_TYPES, by_statements, logged_words
from binlane.binlog.types.columns import Column as LoggedColumn
from binlane.binlog.types.json_binary import JsonDocument, parse_json
from binlane.binlog.types.literals import literal
from binlane.binlog.types.readers import Value
from binlane.binlog.types.sql_types import SQL_TYPES, SqlType, column_words, reader_of
from binlane.binlog.types.sql_values import LARGE
from binlane.binlog.types.type_codes import UNSUPPORTED_RULE, ColumnType, LengthRule
from binlane.bootstrap.values import selected
from binlane.errors import BinlogError, PrecheckError
from binlane.model import Flavor, TableKey
from binlane.schema.binding import BoundTable
from binlane.schema.model import Column
from binlane.schema.normalize import parse_type
from binlane.verify.rows.column_text import ComparedTable, expression
from binlane.verify.rows.column_text import literal as key_literal
from tests.integration.values.types import SCHEMA_TYPES, TYPES

TABLE: Final = TableKey("shop", "t")
C: Final = ColumnType


class Logged(NamedTuple):
    """A type code and what becomes of its values."""

    code: ColumnType
    metadata: int
    words: str
    length: LengthRule
    data: bytes = b""
    value: object = None
    sql: str = ""
    same: str = "`c` <=> {}"
    """The condition that holds for the value alone; ``{}`` stands for ``sql``."""
    charset: str | None = None


BYTES: Final = "CAST(`c` AS BINARY) <=> X'6162'"
NUMBER: Final = "CAST(`c` AS UNSIGNED) <=> {}"
TEXT: Final = (b"ab", b"ab", "_utf8mb4 X'6162'", BYTES, "utf8mb4")
EPOCH: Final = ("1970-01-01 00:00:01", "'1970-01-01 00:00:01'")
DOCUMENT: Final = JsonDocument(parse_json(b"\x0c\x01x"))
SAME: Final = (
    "LENGTH(CAST(`c` AS CHAR CHARACTER SET utf8mb4)) = 3 AND SHA2(CAST(`c` AS CHAR CHARACTER SET utf8mb4), 256) = "
    "'ba2df4903a2c14e86dc3bcca58911b44ac1d2514b7227bf6eb08cfb978f55a1b' AND `c` = {}"
)
LOGGED: Final = [
    Logged(C.DECIMAL, 0, "type 0", (UNSUPPORTED_RULE, 0)),
    Logged(C.TINY, 0, "tinyint", (0, 1), b"\xff", -1, "-1 /* 255 if unsigned */"),
    Logged(C.SHORT, 0, "smallint", (0, 2), b"\x01\x80", -32767, "-32767 /* 32769 if unsigned */"),
    Logged(C.LONG, 0, "int", (0, 4), b"\1\0\0\0", 1, "1"),
    Logged(C.FLOAT, 4, "float", (0, 4), b"\xcd\xcc\xcc\x3d", 0.10000000149011612, "0.10000000149011612e0"),
    Logged(C.DOUBLE, 8, "double", (0, 8), bytes(6) + b"\xf8\x3f", 1.5, "1.5e0"),
    Logged(C.NULL, 0, "type 6", (0, 0), b"", None, "NULL", "`c` IS NULL"),
    Logged(C.TIMESTAMP, 0, "timestamp (old format)", (0, 4), b"\1\0\0\0", *EPOCH),
    Logged(C.LONGLONG, 0, "bigint", (0, 8), b"\2" + bytes(7), 2, "2"),
    Logged(C.INT24, 0, "mediumint", (0, 3), b"\3\0\0", 3, "3"),
    Logged(C.DATE, 0, "date", (0, 3), b"\x5d\xd0\x0f", "2024-02-29", "'2024-02-29'"),
    Logged(C.TIME, 0, "time (old format)", (0, 3), b"\x40\xe2\1", "12:34:56", "'12:34:56'"),
    Logged(C.DATETIME, 0, "datetime (old format)", (0, 8), bytes(8), "0000-00-00 00:00:00", "'0000-00-00 00:00:00'"),
    Logged(C.YEAR, 0, "year", (0, 1), b"\x7c", 2024, "2024"),
    Logged(C.NEWDATE, 0, "date", (0, 3), b"\x5d\xd0\x0f", "2024-02-29", "'2024-02-29'"),
    Logged(C.VARCHAR, 300, "varchar of 300 bytes", (2, 0), *TEXT),
    Logged(C.BIT, 0x0101, "bit(9)", (0, 2), b"\1\5", 261, "b'100000101'"),
    Logged(C.TIMESTAMP2, 2, "timestamp(2)", (0, 5), b"\0\0\0\1\x19", "1970-01-01 00:00:01.25", f"{EPOCH[1][:-1]}.25'"),
    Logged(C.DATETIME2, 0, "datetime(0)", (0, 5), b"\x80\0\0\0\0", "0000-00-00 00:00:00", "'0000-00-00 00:00:00'"),
    Logged(C.TIME2, 0, "time(0)", (0, 3), b"\x80\0\1", "00:00:01", "'00:00:01'"),
    Logged(C.BLOB_COMPRESSED, 2, "compressed blob", (2, 0), b"\0ab", *TEXT[1:]),
    Logged(C.VARCHAR_COMPRESSED, 99, "compressed varchar", (1, 0), b"\0ab", *TEXT[1:]),
    Logged(C.VECTOR, 4, "vector", (4, 0), b"ab", b"ab", "X'6162'", "HEX(`c`) = '6162'"),
    Logged(C.JSON, 4, "json stored in binary", (4, 0), b"\x0c\1x", DOCUMENT, "CAST(_utf8mb4 X'227822' AS JSON)", SAME),
    Logged(C.NEWDECIMAL, 4 << 8 | 2, "decimal(4,2)", (0, 2), b"\x8c\x32", Decimal("12.50"), "12.50"),
    Logged(C.ENUM, 0xF701, "type 247", (0, 1), b"\2", 2, "2", NUMBER),
    Logged(C.SET, 0xF808, "type 248", (0, 8), b"\3", 3, "3", NUMBER),
    Logged(C.TINY_BLOB, 1, "type 249", (1, 0), *TEXT),
    Logged(C.MEDIUM_BLOB, 3, "type 250", (3, 0), *TEXT),
    Logged(C.LONG_BLOB, 4, "type 251", (4, 0), *TEXT),
    Logged(C.BLOB, 2, "blob with 2 bytes of length", (2, 0), *TEXT),
    Logged(C.VAR_STRING, 30, "type 253", (UNSUPPORTED_RULE, 253), *TEXT),
    Logged(C.STRING, 0xFE28, "char of 40 bytes", (1, 0), *TEXT),
    Logged(C.STRING, 0xCEFC, "char of 1020 bytes", (2, 0), *TEXT),
    Logged(C.STRING, 0xFE04, "char of 4 bytes", (1, 0), b"ab", b"ab\0\0", "X'61620000'",
           "CAST(`c` AS BINARY) <=> X'61620000'", "binary"),
    Logged(C.STRING, 0xF702, "enum of 2 bytes", (0, 2)),
    Logged(C.GEOMETRY, 4, "geometry", (4, 0), b"ab", b"ab", "X'6162'", "HEX(`c`) = '6162'"),
]  # fmt: skip
NOT_IN_THE_OTHER_FAMILY: Final = {C.VECTOR}
BY_STATEMENTS: Final = {C.BLOB_COMPRESSED, C.VARCHAR_COMPRESSED}


def logged_table(code: int, metadata: int) -> TableMap:
    return TableMap(1, 0, "shop", "t", b"shop", b"t", bytes([code]), (metadata,), b"\1", OptionalMetadata())


def test_every_type_code_has_a_row_and_a_case() -> None:
    assert set(LOGGED_TYPES) == set(ColumnType) == {case.code for case in LOGGED}
    assert {code for code, kind in LOGGED_TYPES.items() if kind.one_family} == NOT_IN_THE_OTHER_FAMILY
    assert {code for code in range(256) if by_statements(code)} == BY_STATEMENTS


@pytest.mark.parametrize("case", LOGGED, ids=lambda case: f"{case.code.name}-{case.metadata:#x}")
def test_a_logged_column_has_its_words_and_its_length(case: Logged) -> None:
    assert logged_words(case.code, case.metadata) == case.words
    assert logged_table(case.code, case.metadata).column_length_spec() == (case.length,)


@pytest.mark.parametrize(
    "case", [case for case in LOGGED if case.sql], ids=lambda case: f"{case.code.name}-{case.metadata:#x}"
)
def test_a_logged_value_is_read_written_and_compared(case: Logged) -> None:
    column = LoggedColumn(1, "c", case.code, case.metadata, nullable=True, charset=case.charset)
    value = cast(Value, case.value)
    assert reader_of(column, text=False)(case.data) == value
    assert literal(column, value) == case.sql
    builder = StatementBuilder(BoundTable(TABLE, (column,), frozenset({0}), (), frozenset()), Flavor.MYSQL)
    assert builder.same(column, value) == case.same.format(case.sql)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("uuid", b"\x12" + bytes(14) + b"\x34", "12000000-0000-0000-0000-000000000034"),
        ("inet6", b"\x20\1" + bytes(13) + b"\1", "2001::1"),
        ("inet4", b"\x0a", "10.0.0.0"),
        ("binary", b"\x0a", b"\x0a" + bytes(15)),
    ],
)
def test_types_that_share_a_code_are_told_apart_by_their_names(name: str, data: bytes, text: Value) -> None:
    column = LoggedColumn(1, "c", C.STRING, 0xFE10, nullable=True, charset="binary", data_type=name)
    assert reader_of(column)(data) == text


def test_the_layout_of_mariadb_5_3_has_the_length_and_the_fraction_that_a_schema_tells() -> None:
    column = LoggedColumn(1, "c", C.TIMESTAMP, 0, nullable=True, fsp=3)
    assert column.length_rule((0, 4)) == (0, 6)
    assert reader_of(column)(b"\0\0\0\1\0\7") == "1970-01-01 00:00:01.007"
    now = LoggedColumn(1, "c", C.TIMESTAMP2, 3, nullable=True, fsp=3)
    assert now.length_rule((0, 6)) == (0, 6)
    assert reader_of(now)(b"\0\0\0\1\0\x46") == "1970-01-01 00:00:01.007"


def test_a_type_without_values_in_a_log_is_damage() -> None:
    table = logged_table(C.DECIMAL, 0)
    with pytest.raises(BinlogError, match=r"^x: shop\.t, column @1: type 0 has no values in a log"):
        RowDecoder(table, columns_of(table, Flavor.MYSQL), where="x: ")


class Kind(NamedTuple):
    """How values stand in statements; ``{}`` is the column's definition where it matters."""

    compared: str
    whole: str
    key: str
    is_exact: bool
    copied: str | None
    stored: bytes = b""


def hashed(value: str) -> str:
    return f"CONCAT(LENGTH({value}), ':', SHA2({value}, 256))"


def number(sign: str) -> Kind:
    text = f"CAST(CAST(`c` AS {sign}) AS CHAR)"
    return Kind(text, text, "12", True, f"CAST(`c` AS {sign})", b"1e2")


_DOUBLE = (
    "IF(`c` IS NULL, NULL, TRIM(LEADING '[' FROM TRIM(TRAILING ']' FROM REPLACE(JSON_ARRAY(`c` * 1e0), '.0]', ']'))))"
)
_DIGITS = (
    "IF(`c` IS NOT NULL AND HEX(`c`) IS NULL, CONCAT('larger than max_allowed_packet: ', UUID()), "
    f"{hashed('HEX(`c`)')})"
)
SIGNED, UNSIGNED = number("SIGNED"), number("UNSIGNED")
_YEAR = "CAST(`c` AS UNSIGNED) + IF(LENGTH(`c`) = 2, IF(CAST(`c` AS UNSIGNED) < 70, 2000, 1900), 0)"
YEAR = Kind(f"CAST({_YEAR} AS CHAR)", UNSIGNED.whole, "12", True, _YEAR, b"1e2")
FLOAT = Kind(_DOUBLE, _DOUBLE, "12e0", False, "`c` * 1e0", b"1e2")
PLAIN = Kind("CAST(`c` AS CHAR)", "CAST(`c` AS CHAR)", "'12'", True, "`c`", b"'1e2'")
STRING = Kind("HEX(`c`)", "HEX(`c`)", "_latin1 X'12'", True, "`c`", b"_binary'1e2'")
BINARY = STRING._replace(key="X'12'")
BLOB = Kind(hashed("CAST(`c` AS BINARY)"), "HEX(`c`)", "X'12'", True, "`c`", b"_binary'1e2'")
LOB = BLOB._replace(key="_latin1 X'12'")
_JSON = hashed("CAST(`c` AS CHAR CHARACTER SET utf8mb4)")
JSON = Kind(_JSON, _JSON, "'12'", False, "`c`", b"CAST(_utf8mb4'1e2' AS JSON)")
TEXT_JSON = Kind(BLOB.compared, BLOB.compared, "'12'", False, "`c`", b"_binary'1e2'")
OPAQUE = Kind(_DIGITS, _DIGITS, "'12'", False, "`c`", b"_binary'1e2'")
REFUSED = OPAQUE._replace(copied=None, stored=b"")


def decimal(size: str) -> Kind:
    text = f"CAST(CAST(`c` AS DECIMAL({size})) AS CHAR)"
    return Kind(text, text, "12", True, "`c`", b"1e2")


AS_TEXT: Final = "HEX(CONVERT(LEFT(`c`, 65537) USING utf8mb4))"
AS_MEMBER: Final = "HEX(CONVERT(LEFT(IF(`c` = 0, '0 (error value)', `c`), 65537) USING utf8mb4))"
AS_BYTES: Final = "HEX(LEFT(`c`, 65537))"
WHOLE: Final = "HEX(`c`)"
_LARGE_SET: Final = f"set({','.join(repr(f's{n}') for n in range(40))})"
NAMED: Final[list[tuple[str, str | None, str, Kind, str]]] = [
    *((name, None, name, SIGNED, AS_TEXT) for name in ("tinyint", "smallint", "mediumint", "int", "bigint")),
    ("int(10) unsigned zerofill", None, "int", UNSIGNED, AS_TEXT),
    ("decimal(10,2)", None, "decimal(10,2)", decimal("10,2"), AS_TEXT),
    ("float(7,3)", None, "float", FLOAT, "HEX(CONVERT(LEFT(`c` * 1e0, 65537) USING utf8mb4))"),
    ("double", None, "double", FLOAT, AS_TEXT),
    ("bit(9)", None, "bit(9)", UNSIGNED, WHOLE),
    *((each, None, "year", YEAR, AS_TEXT) for each in ("year(4)", "year(2)", "year")),
    ("date", None, "date", PLAIN, AS_TEXT),
    *((f"{name}(3)", None, f"{name}(3)", PLAIN, AS_TEXT) for name in ("time", "datetime", "timestamp")),
    *(
        (f"{name}(3) /* mariadb-5.3 */", None, f"{name} (old format)", REFUSED, AS_TEXT)
        for name in ("time", "datetime", "timestamp")
    ),
    ("char(30)", "latin1", "char of 40 bytes", STRING, AS_TEXT),
    ("varchar(30)", "latin1", "varchar of 40 bytes", STRING, AS_TEXT),
    ("binary(30)", None, "char of 40 bytes", BINARY, AS_BYTES),
    ("varbinary(30)", None, "varchar of 40 bytes", BINARY, AS_BYTES),
    *(
        (f"{size}{kind}", charset, f"blob with {prefix} bytes of length", values, shown)
        for prefix, size in enumerate(("tiny", "", "medium", "long"), 1)
        for kind, charset, values, shown in (("text", "latin1", LOB, AS_TEXT), ("blob", None, BLOB, AS_BYTES))
    ),
    ("enum('a','b')", "latin1", "enum of 1 bytes", UNSIGNED, AS_MEMBER),
    ("set('a','b')", "latin1", "set of 1 bytes", UNSIGNED, AS_TEXT),
    (_LARGE_SET, "latin1", "set of 8 bytes", UNSIGNED, AS_TEXT),
    ("json", None, "json stored in binary", JSON, AS_TEXT),
    ("json", "utf8mb4", "blob with 4 bytes of length", TEXT_JSON, AS_TEXT),
    ("uuid", None, "char of 16 bytes", PLAIN, AS_TEXT),
    ("inet6", None, "char of 16 bytes", PLAIN, AS_TEXT),
    ("inet4", None, "char of 4 bytes", PLAIN, AS_TEXT),
    ("vector(10)", None, "varchar of 40 bytes", OPAQUE, WHOLE),
    *((name, None, "geometry", OPAQUE, WHOLE) for name in ("geometry", "point", "linestring", "polygon")),
    *((f"multi{name}", None, "geometry", OPAQUE, WHOLE) for name in ("point", "linestring", "polygon")),
    ("geomcollection", None, "geometry", OPAQUE, WHOLE),
    ("xmltype", None, "xmltype", REFUSED, AS_TEXT),
]
"""Definition, character set, words in a TABLE_MAP, values, and how one is shown. No version has an ``xmltype`` row."""


def defined(definition: str, charset: str | None = None) -> Column:
    kind = parse_type(definition)
    return Column(
        name="c", ordinal=1, data_type=kind.data_type, unsigned=kind.unsigned, octets=40,
        precision=kind.precision, scale=kind.scale, fsp=kind.fsp, charset=charset, members=kind.members,
    )  # fmt: skip


def test_every_named_type_has_a_case_and_every_type_of_the_catalogues_a_row() -> None:
    assert {defined(definition).data_type for definition, *_ in NAMED} == set(SQL_TYPES) | {"xmltype"}
    catalogue = {one.definition.partition(" CHARACTER SET")[0].lower() for one in (*TYPES, *SCHEMA_TYPES)}
    names = {parse_type(definition.removesuffix(" null").partition(" srid")[0]).data_type for definition in catalogue}
    assert names <= set(SQL_TYPES)


@pytest.mark.parametrize(
    ("definition", "charset", "words", "kind", "shown"), [pytest.param(*case, id=case[0][:20]) for case in NAMED]
)
def test_a_named_type_is_compared_copied_and_shown(
    definition: str, charset: str | None, words: str, kind: Kind, shown: str
) -> None:
    column = defined(definition, charset)
    assert column_words(column, compressed=False) == words
    assert expression(column) == kind.compared
    assert expression(column, whole=True) == kind.whole
    assert key_literal(column, "12", Flavor.MYSQL) == kind.key
    compared = ComparedTable(TABLE, TABLE, (column,), (column,), (Flavor.MYSQL, Flavor.MARIADB))
    assert compared.keys_are_logged is kind.is_exact
    assert _as_hex(column) == shown
    if kind.copied is None:
        with pytest.raises(PrecheckError, match="expected a type that binlane can copy exactly, found"):
            selected(TABLE, column)
    else:
        select, stored = selected(TABLE, column)
        assert (select, stored(b"1e2")) == (kind.copied, kind.stored)


def test_a_column_that_the_target_has_is_logged_in_words_that_a_table_map_has() -> None:
    said = {case.words for case in LOGGED} | {
        logged_words(*one)
        for one in (
            *((C.STRING, 0xFE00 | size) for size in (4, 16)),
            *((C.STRING, 0xF700 | size) for size in (1,)),
            *((C.STRING, 0xF800 | size) for size in (1, 8)),
            *((C.BLOB, size) for size in (1, 2, 3, 4)),
            *((code, 3) for code in (C.TIME2, C.DATETIME2, C.TIMESTAMP2)),
            (C.VARCHAR, 40),
            (C.NEWDECIMAL, 10 << 8 | 2),
        )
    }
    assert {words for _, _, words, kind, _ in NAMED if kind is not REFUSED} <= said


def test_another_type_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """MariaDB 12.3's XMLTYPE, if it were to be logged as a LONGTEXT is."""
    rows = cast(MutableMapping[str, SqlType], SQL_TYPES)
    monkeypatch.setitem(rows, "xmltype", SqlType(LARGE, "blob with 4 bytes of length"))
    test_a_named_type_is_compared_copied_and_shown("xmltype", "latin1", "blob with 4 bytes of length", LOB, AS_TEXT)
