from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from binlane.binlog.table_map import OptionalMetadata, TableMap
from binlane.model import Flavor, TableKey
from binlane.schema.compare import Severity
from binlane.schema.logged import compare_logged_key, compare_table_map
from binlane.schema.model import Column, Key, KeyColumn, Table

PRIMARY = Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("id"),))
UTF8MB4 = 45
LATIN1 = 8
CP1251 = 51


def table(*columns: Column, **changes: Any) -> Table:
    numbered = tuple(dataclasses.replace(column, ordinal=at) for at, column in enumerate(columns, 1))
    return dataclasses.replace(Table(TableKey("shop", "t"), "InnoDB", numbered, (PRIMARY,)), **changes)


def column(data_type: str, **changes: Any) -> Column:
    return dataclasses.replace(Column("c", 1, data_type), **changes)


def logged(*types: tuple[int, int], nullable: int = 0xFF, **optional: Any) -> TableMap:
    codes, metadata = bytes(code for code, _ in types), tuple(meta for _, meta in types)
    raw = bytes([nullable] * ((len(types) + 7) // 8))
    return TableMap(1, 0, "shop", "t", b"shop", b"t", codes, metadata, raw, OptionalMetadata(**optional))


def differences(one: TableMap, target: Table) -> list[str]:
    found = compare_table_map(one, Flavor.MYSQL, target)
    assert {difference.severity for difference in found} <= {Severity.FATAL}
    return [difference.what for difference in found]


SAME = [
    pytest.param((1, 0), column("tinyint"), id="tinyint"),
    pytest.param((3, 0), column("int"), id="int"),
    pytest.param((4, 4), column("float", precision=7, scale=3), id="float"),
    pytest.param((10, 0), column("date"), id="date"),
    pytest.param((13, 0), column("year"), id="year"),
    pytest.param((15, 300), column("varchar", length=100, octets=300), id="varchar"),
    pytest.param((15, 12), column("vector", length=3, octets=12), id="vector-of-mariadb"),
    pytest.param((16, 0x0101), column("bit", precision=9), id="bit"),
    pytest.param((17, 6), column("timestamp", fsp=6), id="timestamp"),
    pytest.param((18, 0), column("datetime", fsp=0), id="datetime"),
    pytest.param((19, 3), column("time", fsp=3), id="time"),
    pytest.param((7, 0), column("timestamp (old format)", fsp=0), id="old-timestamp"),
    pytest.param((140, 2), column("text", compressed=True), id="compressed-text"),
    pytest.param((141, 801), column("varchar", octets=800, compressed=True), id="compressed-varchar"),
    pytest.param((242, 4), column("vector", length=3), id="vector"),
    pytest.param((245, 4), column("json"), id="mysql-json"),
    pytest.param((252, 4), column("json", charset="utf8mb4"), id="mariadb-json"),
    pytest.param((246, 20 << 8 | 6), column("decimal", precision=20, scale=6), id="decimal"),
    pytest.param((252, 3), column("mediumtext"), id="mediumtext"),
    pytest.param((254, 0xF701), column("enum", members=("a", "b")), id="enum"),
    pytest.param((254, 0xF702), column("enum", members=tuple(map(str, range(256)))), id="long-enum"),
    pytest.param((254, 0xF808), column("set", members=tuple(map(str, range(40)))), id="long-set"),
    pytest.param((254, 0xFE28), column("char", octets=40), id="char"),
    pytest.param((254, 0xCEFC), column("char", octets=1020), id="long-char"),
    pytest.param((254, 0xFE10), column("uuid"), id="uuid"),
    pytest.param((255, 4), column("multipoint"), id="geometry"),
]


@pytest.mark.parametrize(("one", "target"), SAME)
def test_a_logged_column_fits_the_column_that_logs_it(one: tuple[int, int], target: Column) -> None:
    assert differences(logged(one), table(target)) == []


def test_a_logged_column_fits_no_other_kind_of_column() -> None:
    pairs: list[tuple[tuple[int, int], Column]] = [case.values for case in SAME]  # type: ignore[misc]
    for at, (one, _) in enumerate(pairs):
        for other_at, (_, other) in enumerate(pairs):
            fits = other_at == at or (one == (245, 4) and other.data_type == "json")
            assert differences(logged(one), table(other)) == ([] if fits else ["logged type"]), (one, other)


def test_json_of_one_family_fits_the_json_of_the_other_and_no_other_text_does() -> None:
    text, mysql = logged((252, 4)), table(column("json"))

    assert compare_table_map(text, Flavor.MARIADB, mysql) == ()
    assert [one.what for one in compare_table_map(text, Flavor.MYSQL, mysql)] == ["logged type"]
    assert differences(logged((245, 4)), table(column("longtext", charset="utf8mb4"))) == ["logged type"]


UNPACKED = [
    pytest.param((140, 2), column("text"), [], id="text"),
    pytest.param((140, 4), column("longblob"), [], id="longblob"),
    pytest.param((141, 801), column("varchar", octets=800), [], id="varchar"),
    pytest.param((141, 9), column("varbinary", octets=8), [], id="varbinary"),
    pytest.param((141, 9), column("char", octets=8), ["logged type"], id="char"),
    pytest.param((141, 9), column("text"), ["logged type"], id="varchar-for-text"),
    pytest.param((140, 2), column("varchar", octets=800), ["logged type"], id="text-for-varchar"),
    pytest.param((140, 2), column("int"), ["logged type"], id="int"),
    pytest.param((140, 2), column("json"), ["logged type"], id="json"),
    pytest.param((252, 2), column("text"), [], id="plain"),
]


@pytest.mark.parametrize(("one", "target", "expected"), UNPACKED)
def test_a_compressed_column_fits_the_plain_one_of_the_other_family(
    one: tuple[int, int], target: Column, expected: list[str]
) -> None:
    found = compare_table_map(logged(one), Flavor.MARIADB, table(target), across=True)
    assert [each.what for each in found] == expected
    if one != (252, 2):
        assert differences(logged(one), table(target)) == ["logged type"]


def test_another_number_of_columns_is_fatal() -> None:
    assert differences(logged((3, 0), (3, 0)), table(column("int"))) == ["logged columns"]
    assert differences(logged((3, 0)), table(column("int"), column("int"))) == ["logged columns"]


@pytest.mark.parametrize(
    ("one", "target", "what"),
    [
        pytest.param(logged((3, 0), nullable=0), column("int"), "logged nullability", id="not-null"),
        pytest.param(logged((3, 0)), column("int", nullable=False), "logged nullability", id="null"),
        pytest.param(logged((3, 0), unsigned=(True,)), column("int"), "logged sign", id="sign"),
        pytest.param(logged((3, 0), column_names=("d",)), column("int"), "logged name", id="name"),
        pytest.param(
            logged((15, 10), collations=(LATIN1,)),
            column("varchar", octets=10, charset="cp1251", collation="cp1251_general_ci"),
            "logged character set",
            id="charset",
        ),
        pytest.param(
            logged((254, 0xF701), members=((b"y", b"x"),)),
            column("enum", members=("x", "y"), charset="latin1"),
            "logged members",
            id="members",
        ),
        pytest.param(
            logged((254, 0xF701), members=(("é".encode("cp1252"),),)),
            column("enum", members=("й",), charset="latin1"),
            "logged members",
            id="members-in-their-character-set",
        ),
    ],
)
def test_optional_metadata_is_held_against_the_target(one: TableMap, target: Column, what: str) -> None:
    assert differences(one, table(target)) == [what]


@pytest.mark.parametrize(
    ("one", "target"),
    [
        (logged((3, 0), unsigned=(True,), column_names=("C",)), column("int", unsigned=True)),
        (logged((13, 0), unsigned=(True,)), column("year")),
        (logged((15, 10), collations=(UTF8MB4,)), column("varchar", octets=10, charset="utf8mb4")),
        (logged((15, 10), collations=(63,)), column("varbinary", octets=10)),
        (logged((254, 0xF701), members=(("é".encode("cp1252"),),)), column("enum", members=("é",), charset="latin1")),
    ],
)
def test_optional_metadata_that_agrees_is_no_difference(one: TableMap, target: Column) -> None:
    assert differences(one, table(target)) == []


def test_columns_that_mariadb_logs_and_hides_are_counted() -> None:
    hashed = Key("u", unique=True, primary=False, columns=(KeyColumn("c"),), kind="HASH")
    target = table(column("int"), system_versioned=True, keys=(PRIMARY, hashed))

    assert differences(logged((3, 0), (17, 6), (17, 6), (8, 0)), target) == []
    assert differences(logged((3, 0)), target) == ["logged columns"]
    assert differences(logged((3, 0)), table(column("int"), keys=(hashed,), engine="MEMORY")) == []


@pytest.mark.parametrize(
    ("parts", "columns", "found"),
    [
        pytest.param(((0, 0),), ("id",), None, id="the same"),
        pytest.param(((1, 0), (0, 0)), ("id", "s"), None, id="in another order"),
        pytest.param(((0, 0),), ("s",), ("id", "s"), id="another column"),
        pytest.param(((0, 0),), ("id", "s"), ("id", "id, s"), id="a column more"),
        pytest.param(((1, 7),), ("s",), ("s(7)", "s"), id="a prefix"),
        pytest.param(None, ("id",), ("none", "id"), id="none on the source"),
        pytest.param(((0, 0),), (), ("id", "none"), id="none on the target"),
    ],
)
def test_another_primary_key_than_the_logged_one_is_named(
    parts: tuple[tuple[int, int], ...] | None, columns: tuple[str, ...], found: tuple[str, str] | None
) -> None:
    one = logged((3, 0), (15, 40), column_names=("ID", "s"), primary_key=parts)
    key = dataclasses.replace(PRIMARY, columns=tuple(KeyColumn(name) for name in columns))
    there = table(column("int"), column("varchar", octets=40), keys=(key,) if columns else ())

    differences = compare_logged_key(one, there, Severity.FATAL)

    assert [(one.expected, one.found) for one in differences] == ([] if found is None else [found])
    assert compare_logged_key(logged((3, 0), (15, 40)), there, Severity.FATAL) == ()


@pytest.mark.parametrize(
    ("unique", "nullable", "fits"),
    [
        pytest.param((KeyColumn("id"),), False, True, id="whole and never NULL"),
        pytest.param((KeyColumn("id"),), True, False, id="may be NULL"),
        pytest.param((KeyColumn("id"), KeyColumn("s", prefix=3)), False, False, id="of a part of a column"),
        pytest.param((KeyColumn("s"),), False, False, id="of another column"),
    ],
)
def test_without_a_primary_key_servers_log_a_unique_one(
    unique: tuple[KeyColumn, ...], nullable: bool, fits: bool
) -> None:
    one = logged((3, 0), (15, 40), column_names=("id", "s"), primary_key=((0, 0),))
    columns = column("int", name="id", nullable=nullable), column("varchar", name="s", octets=40, nullable=nullable)
    there = table(*columns, keys=(Key("u", unique=True, primary=False, columns=unique),))

    assert (compare_logged_key(one, there, Severity.FATAL) == ()) is fits
    assert compare_logged_key(dataclasses.replace(one, optional=OptionalMetadata(column_names=("id", "s"))), there,
                              Severity.FATAL) == ()  # fmt: skip


def test_the_row_s_end_in_keys_of_versioned_tables_is_the_server_s_own() -> None:
    names = ("id", "row_start", "row_end")
    one = logged((3, 0), (17, 6), (17, 6), column_names=names, primary_key=((0, 0), (2, 0)))
    there = table(column("int", name="id"), system_versioned=True)

    assert compare_logged_key(one, there, Severity.FATAL) == ()
    assert compare_logged_key(one, dataclasses.replace(there, keys=()), Severity.FATAL) != ()
