"""Values of user variables as SQL, and what variable events add to a session."""

from __future__ import annotations

import struct

import pytest

from binlane.binlog.events import Intvar, IntvarKind, Rand, UserVar, ValueType
from binlane.binlog.types.collations import charset_name, collation_name
from binlane.binlog.variables import is_written, with_variables
from binlane.errors import UnsupportedEventError
from binlane.model import Flavor, SessionContext


def integer(number: int, *, unsigned: bool = False) -> UserVar:
    return UserVar("x", number.to_bytes(8, "little", signed=not unsigned), ValueType.INT, 63, unsigned)


def decimal(hexadecimal: str) -> UserVar:
    return UserVar("x", bytes.fromhex(hexadecimal), ValueType.DECIMAL, 63)


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (UserVar("x", None), "NULL"),
        (UserVar("x", b"", ValueType.STRING, 45), "_utf8mb4 X'' COLLATE utf8mb4_general_ci"),
        (UserVar("x", b"h'\\\0\xff", ValueType.STRING, 8), "_latin1 X'68275c00ff' COLLATE latin1_swedish_ci"),
        (UserVar("x", b"\x95\x5c", ValueType.STRING, 13), "_sjis X'955c' COLLATE sjis_japanese_ci"),
        (UserVar("x", b"\xff", ValueType.STRING, 63), "_binary X'ff'"),
        (integer(0), "0"),
        (integer(-5), "-5"),
        (integer(-(1 << 63)), "CAST(-9223372036854775808 AS SIGNED)"),
        (integer(5, unsigned=True), "CAST(5 AS UNSIGNED)"),
        (integer((1 << 64) - 1, unsigned=True), "CAST(18446744073709551615 AS UNSIGNED)"),
        (UserVar("x", struct.pack("<d", 1.5), ValueType.REAL), "1.5e0"),
        (UserVar("x", struct.pack("<d", 1e300), ValueType.REAL), "1e+300"),
        (UserVar("x", struct.pack("<d", -0.1), ValueType.REAL), "-0.1e0"),
        (decimal("0f0d73eb655bcaf6d6"), "-12.3456789012345"),
        (decimal("03028132"), "1.50"),
        (decimal("02028a"), "0.10"),
        (decimal("010085"), "CAST(5 AS DECIMAL(1,0))"),
        (decimal("01007a"), "CAST(-5 AS DECIMAL(1,0))"),
        (decimal("0a0081000000ff"), "CAST(1000000255 AS DECIMAL(10,0))"),
    ],
)
def test_a_value_becomes_sql_of_the_same_type(variable: UserVar, expected: str) -> None:
    assert variable.sql_value() == expected
    assert is_written(expected)


POINT = "000000000101000000000000000000f03f0000000000000040"


def test_a_geometry_of_mariadb_keeps_its_type_its_srid_and_its_bytes() -> None:
    point = UserVar("x", bytes.fromhex(POINT), ValueType.STRING, 63, type_name="point")
    assert point.sql_value(Flavor.MARIADB) == "POINT(1.0e0, 2.0e0)"
    assert point.sql_value(Flavor.MYSQL) == f"_binary X'{POINT}'"
    other = UserVar("x", bytes.fromhex("e6100000" + POINT[8:]), ValueType.STRING, 63, type_name="geometry")
    assert other.sql_value(Flavor.MARIADB) == f"ST_GeomFromWKB(X'{POINT[8:]}', 4326)"
    assert all(is_written(variable.sql_value(flavor)) for variable in (point, other) for flavor in Flavor)


def doubles(*numbers: float) -> str:
    return struct.pack(f"<{len(numbers)}d", *numbers).hex()


@pytest.mark.parametrize(
    ("kind", "wkb", "expected"),
    [
        (
            "linestring", "010200000002000000" + doubles(0, 1, -2.5, 3),
            "LINESTRING(POINT(0.0e0, 1.0e0), POINT(-2.5e0, 3.0e0))",
        ),
        (
            "polygon", "01030000000100000004000000" + doubles(0, 0, 1, 0, 1, 1, 0, 0),
            "POLYGON(LINESTRING(POINT(0.0e0, 0.0e0), POINT(1.0e0, 0.0e0), POINT(1.0e0, 1.0e0), POINT(0.0e0, 0.0e0)))",
        ),
        ("multipoint", "010400000001000000" + POINT[8:], "MULTIPOINT(POINT(1.0e0, 2.0e0))"),
        ("geometrycollection", "010700000001000000" + POINT[8:], "GEOMETRYCOLLECTION(POINT(1.0e0, 2.0e0))"),
        # of what the constructors would change, the bytes are kept and the type is not
        ("geometrycollection", "010700000000000000", "ST_GeomCollFromWKB(X'010700000000000000', 0)"),
        ("point", "0101000000" + doubles(-0.0, 1), f"ST_PointFromWKB(X'0101000000{doubles(-0.0, 1)}', 0)"),
        ("point", POINT[8:] + "00", f"ST_PointFromWKB(X'{POINT[8:]}00', 0)"),
        ("point", "00" + POINT[10:], f"ST_PointFromWKB(X'00{POINT[10:]}', 0)"),
    ],
)  # fmt: skip
def test_a_geometry_is_made_by_the_function_of_its_type(kind: str, wkb: str, expected: str) -> None:
    value = UserVar("x", bytes(4) + bytes.fromhex(wkb), ValueType.STRING, 63, type_name=kind)
    assert value.sql_value(Flavor.MARIADB) == expected
    assert is_written(expected)


def test_collections_in_collections_without_an_end_are_kept_as_bytes() -> None:
    wkb = bytes.fromhex("010700000001000000") * 5000 + bytes.fromhex(POINT[8:])
    value = UserVar("x", bytes(4) + wkb, ValueType.STRING, 63, type_name="geometrycollection")
    assert value.sql_value(Flavor.MARIADB) == f"ST_GeomCollFromWKB(X'{wkb.hex()}', 0)"


@pytest.mark.parametrize(
    "variable",
    [
        UserVar("x", b"1234", ValueType.INT),
        UserVar("x", b"1234", ValueType.STRING, 63, type_name="point"),
        UserVar("x", b"1234", ValueType.REAL),
        UserVar("x", struct.pack("<d", float("inf")), ValueType.REAL),
        decimal("03"),
        decimal("030281"),
        decimal("0302813200"),
        decimal("0203ff"),
        decimal("0000"),
    ],
)
def test_a_damaged_value_is_refused(variable: UserVar) -> None:
    with pytest.raises(ValueError):
        variable.sql_value()


@pytest.mark.parametrize(
    "variable",
    [
        UserVar("x", b"a", ValueType.STRING, 9999),
        UserVar("x", b"a", ValueType.STRING, 63, type_name="a type of the next version"),
        UserVar("x", b"a", ValueType.ROW),
    ],
)
def test_a_value_that_cannot_be_written_without_a_loss_is_refused(variable: UserVar) -> None:
    with pytest.raises(UnsupportedEventError, match="user variable 'x'"):
        variable.sql_value()


@pytest.mark.parametrize(
    ("collation_id", "mysql", "mariadb"),
    [
        (8, "latin1_swedish_ci", "latin1_swedish_ci"),
        (63, "binary", "binary"),
        (255, "utf8mb4_0900_ai_ci", "utf8mb4_0900_ai_ci"),
        (245, "utf8mb4_croatian_ci", "utf8mb4_croatian_mysql561_ci"),
        (579, "utf8mb3_general1400_as_ci", "utf8mb3_general1400_as_ci"),
        (611, "utf8mb4_general1400_as_ci", "utf8mb4_general1400_as_ci"),
        (2048, "utf8mb3_uca1400_ai_ci", "utf8mb3_uca1400_ai_ci"),
        (2308, "utf8mb4_uca1400_nopad_ai_ci", "utf8mb4_uca1400_nopad_ai_ci"),
        (3271, "utf32_uca1400_croatian_nopad_as_cs", "utf32_uca1400_croatian_nopad_as_cs"),
        (2048 + 21 * 8, None, None),
        (3272, None, None),
        (5000, None, None),
        (17, None, None),
    ],
)
def test_a_collation_has_the_name_that_the_target_gives_it(
    collation_id: int, mysql: str | None, mariadb: str | None
) -> None:
    assert collation_name(collation_id, Flavor.MYSQL) == mysql
    assert collation_name(collation_id, Flavor.MARIADB) == mariadb


@pytest.mark.parametrize(("collation", "charset"), [("utf8mb4_bin", "utf8mb4"), ("binary", "binary")])
def test_a_collation_tells_its_character_set(collation: str, charset: str) -> None:
    assert charset_name(collation) == charset


def test_variable_events_add_to_the_session_in_order() -> None:
    events: list[Intvar | Rand | UserVar] = [
        Intvar(IntvarKind.LAST_INSERT_ID, 9),
        Intvar(IntvarKind.INSERT_ID, 10),
        Rand(1, 2),
        UserVar("a", None),
        integer(7),
    ]

    assert with_variables(SessionContext(database="d"), events, Flavor.MARIADB) == SessionContext(
        database="d",
        last_insert_id=9,
        insert_id=10,
        rand_seeds=(1, 2),
        user_variables=(("a", "NULL"), ("x", "7")),
    )
