from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, TableKey
from binlane.schema.codec import schema_from_json, schema_to_json
from binlane.schema.model import (
    Column,
    ForeignKey,
    Generated,
    Key,
    KeyColumn,
    Schema,
    Table,
    Trigger,
    reducible_tables,
    why_not_reduced,
)

ORDERS = TableKey("shop", "orders")
LINES = TableKey("shop", "lines")
PRIMARY = Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("id"),))
REFERENCE = ForeignKey("f", ("order_id",), ORDERS, ("id",), "RESTRICT", "CASCADE")


def table(**changes: Any) -> Table:
    base = Table(ORDERS, "InnoDB", (Column("id", 1, "int", nullable=False), Column("note", 2, "text")), (PRIMARY,))
    return dataclasses.replace(base, **changes)


def schema(*tables: Table, **changes: Any) -> Schema:
    base = Schema(Flavor.MARIADB, "10.11.6-MariaDB", tables={one.key: one for one in tables})
    return dataclasses.replace(base, **changes)


FULL = schema(
    table(
        columns=(
            Column("id", 1, "enum", members=("a", "é"), charset="utf8mb4", collation="utf8mb4_bin", nullable=False),
            Column("g", 2, "int", generated=Generated.VIRTUAL, expression="`id` + 1", default="'1'"),
        ),
        keys=(PRIMARY, Key("k", False, False, (KeyColumn(None, None, True, "`g` * 2"), KeyColumn("id", 3)))),
        foreign_keys=(REFERENCE,),
        triggers=(Trigger("t", "BEFORE", "INSERT"),),
    ),
    table(key=LINES),
    settings={"max_allowed_packet": "16777216", "lower_case_table_names": "0"},
    collations=frozenset({"utf8mb4_bin", "latin1_bin"}),
    databases=frozenset({"shop", "crm"}),
    views=frozenset({TableKey("shop", "v")}),
    routines=frozenset({("shop", "p"), ("crm", "q")}),
    events=frozenset({("shop", "e")}),
    references=frozenset({(LINES, ORDERS)}),
)


@pytest.mark.parametrize("value", [schema(), FULL], ids=["empty", "full"])
def test_a_schema_is_the_same_after_writing_and_reading(value: Schema) -> None:
    assert schema_from_json(schema_to_json(value)) == value


def test_tenants_with_the_same_tables_share_their_definitions() -> None:
    """A foreign key within the database is the same in all; one into a shared database is another definition."""
    keys = [TableKey(f"t{number}", "lines") for number in range(50)]

    def linked(key: TableKey, parent: str) -> Table:
        return table(key=key, foreign_keys=(dataclasses.replace(REFERENCE, parent=TableKey(parent, "orders")),))

    value = schema(
        *(linked(key, key.database) for key in keys),
        *(linked(TableKey(key.database, "other"), "shared") for key in keys),
    )

    data = schema_to_json(value)

    assert schema_from_json(data) == value
    assert len(json.loads(data)["definitions"]) == 2


def test_equal_schemas_give_equal_bytes_in_whatever_order_they_were_built() -> None:
    backwards = dataclasses.replace(
        FULL,
        tables=dict(reversed(list(FULL.tables.items()))),
        settings=dict(reversed(list(FULL.settings.items()))),
        routines=frozenset(sorted(FULL.routines)),
        databases=frozenset(sorted(FULL.databases)),
    )

    assert schema_to_json(backwards) == schema_to_json(FULL)


def changed(change: dict[str, Any], *path: str | int) -> bytes:
    document: Any = json.loads(schema_to_json(FULL))
    place = document
    for step in path:
        place = place[step]
    place.update(change)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"{", r"schema\.json: expected JSON", id="not-json"),
        pytest.param(b"[]", r"\$: expected an object, got list", id="not-an-object"),
        pytest.param(changed({"format": 2}), r"\$\.format: expected 1, got 2", id="another-format"),
        pytest.param(changed({"more": 1}), r"\$: unknown key 'more'; known: format, schema, def", id="another-part"),
        pytest.param(changed({"extra": 1}, "schema"), r"\$\.schema: unknown key 'extra'", id="unknown-key"),
        pytest.param(changed({"flavor": "oracle"}, "schema"), r"flavor: expected one of mariadb, mysql", id="enum"),
        pytest.param(changed({"version": 5}, "schema"), r"version: expected str, got 5", id="type"),
        pytest.param(changed({"views": {}}, "schema"), r"views: expected a list", id="list"),
        pytest.param(changed({"settings": []}, "schema"), r"settings: expected an object", id="object"),
        pytest.param(changed({"routines": [["a"]]}, "schema"), r"routines\[0\]: expected 2 values, got 1", id="pair"),
        pytest.param(
            changed({"ordinal": True}, "definitions", 0, "columns", 0),
            r"definitions\[0\]\.columns\[0\]\.ordinal: expected int, got True",
            id="bool",
        ),
        pytest.param(
            changed({"orders": 2}, "tables", "shop"),
            r"\$\.tables\.shop\.orders: expected a definition below 2, got 2",
            id="no-such-definition",
        ),
        pytest.param(
            changed({"orders": "a"}, "tables", "shop"), r"shop\.orders: expected int, got 'a'", id="no-number"
        ),
    ],
)
def test_a_damaged_file_is_refused_with_its_path(data: bytes, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        schema_from_json(data)


def pair(child: str, parent: str) -> tuple[TableKey, TableKey]:
    return TableKey(child, "c"), TableKey(parent, "p")


@pytest.mark.parametrize(
    ("references", "groups"),
    [
        ([], {}),
        ([pair("a", "a")], {}),
        ([pair("b", "a")], {"a": "a", "b": "a"}),
        ([pair("a", "b")], {"a": "a", "b": "a"}),
        ([pair("d", "c"), pair("b", "a"), pair("c", "b")], {"a": "a", "b": "a", "c": "a", "d": "a"}),
        ([pair("z", "y"), pair("b", "a")], {"a": "a", "b": "a", "y": "y", "z": "y"}),
        ([pair("a", "b"), pair("b", "a")], {"a": "a", "b": "a"}),
    ],
)
def test_databases_joined_by_foreign_keys_share_the_smallest_name(
    references: list[tuple[TableKey, TableKey]], groups: dict[str, str]
) -> None:
    assert schema(references=frozenset(references)).known().foreign_key_groups == groups


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (schema(table()), None),
        (schema(), "not in the target's schema"),
        (schema(table(engine="MyISAM")), "MyISAM"),
        (schema(table(engine="ROCKSDB")), "ROCKSDB"),
        (schema(table(keys=())), "no primary key"),
        (schema(table(keys=(dataclasses.replace(PRIMARY, primary=False, name="u"),))), "no primary key"),
        (schema(table(system_versioned=True)), "system-versioned"),
        (schema(table(without_overlaps=True)), "WITHOUT OVERLAPS"),
        (schema(table(foreign_keys=(REFERENCE,))), "foreign key"),
        (schema(table(), references=frozenset({(TableKey("crm", "x"), ORDERS)})), "foreign key"),
        (schema(table(), references=frozenset({(ORDERS, TableKey("crm", "x"))})), "foreign key"),
        (schema(table(), references=frozenset({(TableKey("crm", "x"), LINES)})), None),
    ],
)
def test_only_plain_tables_with_a_primary_key_are_reduced(value: Schema, reason: str | None) -> None:
    found = why_not_reduced(value, ORDERS)

    assert found is None if reason is None else found is not None and reason in found
    assert (ORDERS in reducible_tables(value)) == (reason is None)


def test_names_are_found_as_the_server_would_find_them() -> None:
    folding = schema(table(), settings={"lower_case_table_names": "1"})

    assert folding.table(TableKey("Shop", "ORDERS")) is not None
    assert schema(table()).table(TableKey("Shop", "ORDERS")) is None


def test_tables_with_triggers_are_known_by_name() -> None:
    assert FULL.tables_with_triggers == {ORDERS}


OTHERS: dict[str, Any] = {
    "engine": "MyISAM",
    "columns": (Column("other", 1, "int"),),
    "keys": (Key("other", unique=False, primary=False, columns=(KeyColumn("id"),)),),
    "foreign_keys": (ForeignKey("f", ("id",), TableKey("a", "p"), ("id",), "RESTRICT", "RESTRICT"),),
    "triggers": (Trigger("t", "BEFORE", "INSERT"),),
    "system_versioned": True,
    "without_overlaps": True,
}


def test_tables_of_one_kind_differ_in_their_names_alone() -> None:
    """Each kind is compared, and written, once: a field that it did not see would hide a difference."""
    one = table()
    assert {each.name for each in dataclasses.fields(Table)} == {*OTHERS, "key"}
    for name, other in OTHERS.items():
        assert dataclasses.replace(one, **{name: other}).kind != one.kind, name
    assert dataclasses.replace(one, key=TableKey("tenant_2", "t")).kind == one.kind
