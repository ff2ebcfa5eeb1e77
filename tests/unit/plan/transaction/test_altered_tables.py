"""What a window's DDL says of tables that it does not name."""

from __future__ import annotations

from binlane.model import Flavor, TableKey
from binlane.plan.transaction.altered_tables import Alterations, without_altered_parents
from binlane.schema.model import ForeignKey, Schema, Table

OLD, NEW, OTHER, CHILD = (TableKey("d", name) for name in ("old", "new", "other", "child"))


def schema(parent: TableKey, on_delete: str = "CASCADE") -> Schema:
    key = ForeignKey("f", ("ref",), parent, ("id",), "RESTRICT", on_delete)
    tables = Table(CHILD, "InnoDB", (), foreign_keys=(key,)), Table(OTHER, "InnoDB", ())
    return Schema(Flavor.MARIADB, "10.11.1", tables={table.key: table for table in tables})


def test_foreign_keys_to_a_renamed_table_are_the_same_before_and_behind_it() -> None:
    window = Alterations({TableKey("D", "old"): (3,), NEW: (3,)})
    before, behind = (without_altered_parents(schema(parent), window) for parent in (OLD, NEW))
    assert before.tables == behind.tables
    assert without_altered_parents(schema(NEW, "RESTRICT"), window).tables != behind.tables
    assert without_altered_parents(schema(OTHER), window).tables == schema(OTHER).tables
    assert without_altered_parents(schema(OLD), Alterations(), Alterations({OLD: (0,)})).tables != schema(OLD).tables
    assert without_altered_parents(schema(OLD), Alterations()) == schema(OLD)
