"""Every column type of both servers with its extreme values, and how the server is asked what it stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from binlane.model import Flavor

BOTH: Final = frozenset(Flavor)
MARIADB: Final = frozenset({Flavor.MARIADB})
MYSQL: Final = frozenset({Flavor.MYSQL})

TEXT, BYTES, FLOAT, NUMBER, UTF8 = (
    "CAST({} AS CHAR)",
    "HEX({})",
    "CAST({} AS DOUBLE)",
    "{} + 0",
    "CONVERT({} USING utf8mb4)",
)
"""What is selected: the server's own spelling, its bytes, a double, a number, text."""


@dataclass(frozen=True)
class Type:
    definition: str
    select: str
    values: tuple[str, ...]
    servers: frozenset[Flavor] = BOTH


def _integers(name: str, bits: int) -> tuple[Type, ...]:
    top = 1 << (bits - 1)
    signed = tuple(map(str, (0, 1, -1, top - 1, -top)))
    unsigned = tuple(map(str, (0, 1, 2 * top - 1, top)))
    return Type(name, TEXT, signed), Type(f"{name} UNSIGNED", TEXT, unsigned)


def _fractions(name: str, low: str, high: str, servers: frozenset[Flavor] = BOTH) -> tuple[Type, ...]:
    found = []
    for fsp in range(7):
        ones, nines = ("." + "000001"[6 - fsp :], "." + "9" * fsp) if fsp else ("", "")
        extremes = low + ones, high + nines, high + (".5" if fsp else "")
        found.append(Type(f"{name}({fsp})", TEXT, tuple(f"'{value}'" for value in extremes), servers))
    return tuple(found)


_TIMES = tuple(
    Type(f"TIME({fsp})", TEXT, (*(f"'{value}'" for value in ("00:00:00", "838:59:59", "-838:59:59")), *extra))
    for fsp in range(7)
    for extra in [tuple(f"'{sign}12:34:56.{'123456'[:fsp]}'" for sign in ("", "-")) if fsp else ()]
    for extra in [(*extra, f"'-00:00:00.{'000001'[6 - fsp :]}'", f"'00:00:00.{'9' * fsp}'") if fsp else extra]
)
_DOUBLES = ("0", "-0e0", "0.1", "-1.5e-10", "1e15", "1e16", "123456789.123456789", "1e300", "5e-324", "3.3e-5")
_TEXTS = ("''", "'a'", "'é'", "'a '", "'it''s'", "'日本'", "REPEAT('x', 30)")
_MEMBERS = "('', 'a', 'it''s', 'é', 'a b')"
_POINT, _LINE = "ST_GeomFromText('POINT(1 2)')", "ST_GeomFromText('LINESTRING(0 0, 1.5 -2)')"
_DOCUMENTS = (
    '{"a": 1, "bb": [1, 2.5, "x\\\\n\\\\u0001\\\\"/é😀", null, true, false, {}], "": {"k": []}}',
    "null",
    "18446744073709551615",
    "-9223372036854775808",
    "[65535, 65536, -32769, -32768, 4294967295, 4294967296, -2147483648, -2147483649]",
    '"\\\\b\\\\f\\\\t\\\\r \\\\u007f\\\\u2028"',
    "[1e300, 0.1, 1e15, 1.0, -2.5e-20, 123456789012345680]",
)
OPAQUE: Final = (
    "JSON_ARRAY(CAST('-1.50' AS DECIMAL(10,2)), CAST('2024-02-29' AS DATE), CAST('-838:59:59' AS TIME(6)))",
    "JSON_ARRAY(CAST('2024-02-29 1:2:3.5' AS DATETIME(6)), b'101', CAST(REPEAT('x', 100) AS BINARY), X'ff')",
    "JSON_OBJECT('large', REPEAT('y', 70000), 'list', JSON_ARRAY(1, 2, 100000, 1e300))",
    "JSON_ARRAY(CAST('-0:0:0.000001' AS TIME(6)), TIMESTAMP('2024-01-01'), CAST(2024 AS YEAR))",
    "JSON_ARRAY(CAST(5 AS UNSIGNED), CAST(4294967296 AS SIGNED), CAST(4294967296 AS UNSIGNED), 5, true, NULL)",
    *(
        "(SELECT JSON_OBJECT('a', v, 'b', JSON_ARRAY(v)) FROM"
        f" JSON_TABLE({document}, '$[*]' COLUMNS (v {kind} PATH '$')) t)"
        for kind, document in (
            *((f"{size}BLOB", "JSON_ARRAY(X'00ff27')") for size in ("TINY", "", "MEDIUM", "LONG")),
            ("BINARY(4)", "JSON_ARRAY(X'00ff2700')"),
            ("BINARY(255)", "JSON_ARRAY('')"),
            ("BIT(3)", "'[5]'"),
            ("BIT(13)", "'[4097]'"),
            ("BIT(64)", "'[18446744073709551615]'"),
            ("TIMESTAMP(6)", "'[\"2038-01-19 03:14:07.999999\"]'"),
            ("TIMESTAMP", "'[\"1970-01-01 00:00:01\"]'"),
            ("TIMESTAMP", "'[\"0000-00-00 00:00:00\"]'"),
        )
    ),
)

TYPES: Final = (
    *(kind for name, bits in (("TINYINT", 8), ("SMALLINT", 16), ("MEDIUMINT", 24)) for kind in _integers(name, bits)),
    *(kind for name, bits in (("INT", 32), ("BIGINT", 64)) for kind in _integers(name, bits)),
    Type("INT ZEROFILL", NUMBER, ("7",)),
    Type("DECIMAL(65,30)", TEXT, ("0", f"'-{'9' * 35}.{'9' * 30}'", f"'{'9' * 35}.{'9' * 30}'", "'-1e-30'")),
    Type("DECIMAL(10,0)", TEXT, ("0", "-9999999999", "123")),
    Type("DECIMAL(18,9)", TEXT, ("0", "-999999999.999999999", "0.000000001")),
    Type("DECIMAL(5,5)", TEXT, ("0", "-0.99999", "0.00001")),
    Type("DECIMAL(1,0)", TEXT, ("9", "-9", "0")),
    Type("DECIMAL(20,7) UNSIGNED", TEXT, ("0", "9999999999999.9999999")),
    Type("FLOAT", FLOAT, ("0", "0.1", "-3.4028234e38", "1.17549435e-38", "16777217", "1e-45")),
    Type("DOUBLE", FLOAT, (*_DOUBLES, "1.7976931348623157e308", "-1.7976931348623157e308")),
    Type("FLOAT(7,3)", FLOAT, ("1234.567", "-0.001")),
    Type("BIT(1)", NUMBER, ("b'0'", "b'1'")),
    Type("BIT(13)", NUMBER, ("b'1010101010101'", "0")),
    Type("BIT(64)", NUMBER, (f"b'{'1' * 64}'", "1")),
    Type("YEAR", TEXT, ("0", "1901", "2155", "'1999'")),
    Type("DATE", TEXT, ("'0000-00-00'", "'9999-12-31'", "'2024-02-31'", "'2024-00-00'", "'0001-01-01'")),
    *_fractions("DATETIME", "1000-01-01 00:00:00", "9999-12-31 23:59:59"),
    Type("DATETIME(3)", TEXT, ("'0000-00-00 00:00:00'", "'2024-02-00 01:02:03.004'")),
    *_fractions("TIMESTAMP", "1970-01-01 00:00:01", "2038-01-19 03:14:07"),
    Type("TIMESTAMP(2) NULL", TEXT, ("'0000-00-00 00:00:00'", "'2024-03-31 02:30:00.25'")),
    *_TIMES,
    Type("CHAR(30)", UTF8, _TEXTS),
    Type("VARCHAR(30)", UTF8, _TEXTS),
    Type("CHAR(255)", UTF8, ("REPEAT('é', 255)", "''")),
    Type("VARCHAR(1000)", UTF8, ("REPEAT('日', 1000)", "''")),
    *(Type(f"{size}TEXT", UTF8, ("''", "'it''s é'", "REPEAT('日', 80)")) for size in ("TINY", "", "MEDIUM", "LONG")),
    *(Type(f"{size}BLOB", BYTES, ("''", "X'00ff0a27'", "REPEAT('a', 255)")) for size in ("TINY", "", "MEDIUM", "LONG")),
    Type("BLOB", BYTES, ("REPEAT(X'ff00', 30000)",)),
    Type("BINARY(5)", BYTES, ("X'0100000000'", "X'0000000000'", "'a '", "X'ffffffffff'")),
    Type("BINARY(255)", BYTES, ("REPEAT('x', 255)", "'a'")),
    Type("VARBINARY(300)", BYTES, ("X'0100'", "''", "REPEAT(X'ff', 300)")),
    Type(f"ENUM{_MEMBERS}", TEXT, ("'a'", "'it''s'", "'é'", "1", "0")),
    Type(f"ENUM({', '.join(repr(f'm{n}') for n in range(300))})", TEXT, ("'m0'", "'m299'")),
    Type("SET('a', 'it''s', 'é', 'x y')", TEXT, ("''", "'a'", "'a,é'", "15")),
    Type(f"SET({', '.join(repr(f's{n}') for n in range(64))})", TEXT, ("'s63,s0'", "18446744073709551615")),
    *(
        # the character sets that have several: MariaDB 11.5 and newer have another default than all others
        Type(f"VARCHAR(20) CHARACTER SET {name}", UTF8, ("'aé€日'", "''"))
        for name in ("latin1", "ucs2 COLLATE ucs2_general_ci", "utf32 COLLATE utf32_general_ci", "gbk")
    ),
    *(
        Type(f"CHAR(20) CHARACTER SET {name}", UTF8, ("'aЖ本 '", "''"))
        for name in ("cp1251", "utf16 COLLATE utf16_general_ci", "sjis", "big5")
    ),
    Type("ENUM('é', 'ü') CHARACTER SET latin1", TEXT, ("'ü'", "'é'")),
    Type("TEXT CHARACTER SET ascii", UTF8, ("'abc'",)),
    Type("GEOMETRY", BYTES, (_POINT, _LINE)),
    Type("POINT", BYTES, (_POINT,)),
    Type("JSON", TEXT, tuple(f"'{document}'" for document in _DOCUMENTS)),
    Type("JSON", TEXT, OPAQUE, MYSQL),
    Type("POINT SRID 4326", BYTES, ("ST_GeomFromText('POINT(10 20)', 4326)",), MYSQL),
    Type("VECTOR(3)", BYTES, ("TO_VECTOR('[1, -2.5, 3e10]')",), MYSQL),
    Type("VARCHAR(100) COMPRESSED", UTF8, ("'abc'", "''", "REPEAT('z', 100)"), MARIADB),
    Type("TEXT COMPRESSED", UTF8, ("''", "REPEAT('é', 300)", "'q'"), MARIADB),
    Type("BLOB COMPRESSED", BYTES, ("REPEAT(X'00ff', 300)", "X'01'"), MARIADB),
    Type("VARBINARY(100) COMPRESSED", BYTES, ("REPEAT('z', 100)",), MARIADB),
)
SCHEMA_TYPES: Final = (
    Type("UUID", TEXT, ("'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'"), MARIADB),
    Type(
        "INET6",
        TEXT,
        ("'::'", "'::1'", "'2001:db8::ff00:42:8329'", "'::ffff:1.2.3.4'", "'::1.2.0.0'", "'::102'"),
        MARIADB,
    ),
    Type("INET6", TEXT, ("'1:0:2::'", "'1:2:3:4:5:6:7:0'", "'0:0:1::'", "'1:0:0:2:0:0:0:3'"), MARIADB),
    Type("INET4", TEXT, ("'0.0.0.0'", "'255.255.255.255'", "'10.0.0.0'"), MARIADB),
)
"""Which no log tells from BINARY."""
