"""What a window's DDL says of tables that it does not name."""

from __future__ import annotations

from binlane.model import Flavor, TableKey
from binlane.plan.transaction.altered_tables import Alterations, without_altered_parents, without_triggers
from binlane.schema.model import ForeignKey, Schema, Table, Trigger

OLD, NEW, OTHER, CHILD = (TableKey("d", name) for name in ("old", "new", "other", "child"))


def schema(parent: TableKey, on_delete: str = "CASCADE", columns: tuple[str, ...] = ("id",)) -> Schema:
    key = ForeignKey("f", ("ref",), parent, columns, "RESTRICT", on_delete)
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


def test_foreign_keys_to_a_renamed_column_are_the_same_before_and_behind_it() -> None:
    window = Alterations({OLD: (3,)})
    before, behind, other = (
        without_altered_parents(schema(OLD, columns=names), window) for names in (("id",), ("x",), ("id", "x"))
    )
    assert before.tables == behind.tables != other.tables
    found = (without_altered_parents(schema(NEW, columns=names), window).tables for names in (("id",), ("x",)))
    assert next(found) != next(found)


def test_a_dropped_trigger_is_no_part_of_its_table_before_the_statement() -> None:
    """DROP TRIGGER does not name the table."""

    def with_triggers(*names: str) -> Schema:
        table = Table(OLD, "InnoDB", (), triggers=tuple(Trigger(name, "AFTER", "INSERT") for name in names))
        return Schema(Flavor.MARIADB, "10.11.1", tables={OLD: table})

    dropped = Alterations({TableKey("D", "TR"): (0,)})
    before, behind = (without_triggers(with_triggers(*names), dropped) for names in (("tr", "other"), ("other",)))
    assert before.tables == behind.tables
    assert without_triggers(with_triggers("other"), dropped) == with_triggers("other")
    assert without_triggers(with_triggers("tr"), Alterations({TableKey("e", "tr"): (0,)})) == with_triggers("tr")
    assert without_triggers(with_triggers("tr"), Alterations(unread=(0,))) == with_triggers()
    assert without_triggers(with_triggers("tr"), None) == with_triggers()
