"""Which tables of a divided shard are dealt by primary key, and the reason for each that is not."""

from __future__ import annotations

import dataclasses

import pytest

from binlane.binlog.types.type_codes import ColumnType
from binlane.model import Flavor, TableKey
from binlane.plan.block.reducible_tables import Exclusions
from binlane.plan.segment.logged_tables import LoggedTable
from binlane.plan.window.placement import ranged_column, why_not_by_key
from binlane.schema.model import Column, Generated, Key, KeyColumn, Schema, Table

KEY = TableKey("shop", "t")
ID = Column("id", 1, "int", nullable=False)
VALUE = Column("v", 2, "varchar", length=9, charset="utf8mb4", collation="utf8mb4_bin")
PRIMARY = Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("id"),))
TABLE = Table(KEY, "InnoDB", (ID, VALUE), (PRIMARY,))
LOGGED = LoggedTable(frozenset({(bytes([ColumnType.LONG, ColumnType.VARCHAR]), (0, 36))}), is_whole=True)
MORE = LoggedTable(frozenset({(bytes([ColumnType.LONG, ColumnType.VARCHAR]), (0, 40))}), is_whole=True)


def reason(table: Table = TABLE, logged: LoggedTable = LOGGED, excluded: Exclusions | None = None) -> str | None:
    schema = Schema(Flavor.MARIADB, "10.11", tables={table.key: table})
    return why_not_by_key(schema, Exclusions({}, {}) if excluded is None else excluded, KEY, logged)


def keyed(**changes: object) -> Table:
    """The table with another column as its key."""
    return dataclasses.replace(TABLE, columns=(dataclasses.replace(ID, **changes), VALUE))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["int", "bigint", "decimal", "datetime", "timestamp", "varbinary", "enum", "bit"])
def test_keys_that_are_compared_as_bytes_go_by_key(kind: str) -> None:
    assert reason(keyed(data_type=kind)) is None


@pytest.mark.parametrize("kind", ["float", "double", "uuid", "json", "geometry", "vector"])
def test_keys_of_other_types_go_by_table(kind: str) -> None:
    assert f"has id, of type {kind}" in str(reason(keyed(data_type=kind)))


@pytest.mark.parametrize(
    ("table", "logged", "expected"),
    [
        (keyed(data_type="varchar", charset="utf8mb4", collation="utf8mb4_bin"), LOGGED, "equal values may differ in"),
        (keyed(generated=Generated.STORED), LOGGED, "its primary key has a generated column"),
        (
            dataclasses.replace(TABLE, keys=(dataclasses.replace(PRIMARY, columns=(KeyColumn("id", prefix=3),)),)),
            LOGGED,
            "its primary key has a prefix of id",
        ),
        (
            dataclasses.replace(TABLE, keys=(PRIMARY, Key("u", True, False, (KeyColumn("v"),)))),
            LOGGED,
            "it has another unique key, u",
        ),
        (dataclasses.replace(TABLE, keys=()), LOGGED, "it has no primary key"),
        (dataclasses.replace(TABLE, key=TableKey("shop", "T")), LOGGED, "it is not in the target's schema"),
        (TABLE, dataclasses.replace(LOGGED, is_whole=False), "the log has rows that lack columns"),
        (TABLE, LOGGED | MORE, "the log has other columns than the target, or they change"),
        (dataclasses.replace(TABLE, columns=(ID,)), LOGGED, "the log has other columns than the target, or they"),
    ],
    ids=["text", "generated", "prefix", "unique", "no-key", "unknown", "partial", "two-layouts", "other-width"],
)
def test_other_tables_go_as_a_whole(table: Table, logged: LoggedTable, expected: str) -> None:
    assert expected in str(reason(table, logged))


def test_a_table_that_a_ddl_names_goes_as_a_whole() -> None:
    assert reason(excluded=Exclusions({KEY: "a DDL of the window names it"}, {})) == "a DDL of the window names it"


@pytest.mark.parametrize(
    ("kind", "inserted", "expected"),
    [("int", 16 << 20, 0), ("bigint", 1 << 30, 0), ("int", (16 << 20) - 1, None), ("tinyint", 1 << 30, None),
     ("datetime", 1 << 30, None)],
)  # fmt: skip
def test_neighbouring_keys_go_together_where_many_rows_are_new(kind: str, inserted: int, expected: int | None) -> None:
    assert ranged_column(keyed(data_type=kind), dataclasses.replace(LOGGED, inserted_bytes=inserted)) == expected


@pytest.mark.parametrize(("names", "expected"), [(("v", "id"), 0), (("id", "v"), None)])
def test_the_last_column_of_a_key_has_the_neighbours(names: tuple[str, str], expected: int | None) -> None:
    primary = dataclasses.replace(PRIMARY, columns=tuple(map(KeyColumn, names)))
    table = dataclasses.replace(TABLE, keys=(primary,))
    assert ranged_column(table, dataclasses.replace(LOGGED, inserted_bytes=1 << 30)) == expected
