"""Where a lane has a table's definition from: read with its neighbours once, or anew where the window alters it."""

from __future__ import annotations

from collections.abc import Mapping

from binlane.apply.rows.table_guard import TableGuard
from binlane.model import Flavor, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.schema.model import Table

ORDERS, ITEMS, ALTERED, OTHER = (TableKey(*name.split(".")) for name in ("a.orders", "a.items", "a.altered", "b.other"))


class Target:
    """A server that counts what it is asked for."""

    def __init__(self, *keys: TableKey) -> None:
        self.tables = {key: Table(key, "InnoDB", ()) for key in keys}
        self.asked: list[str] = []

    def read(self, key: TableKey) -> Table | None:
        self.asked.append(str(key))
        return self.tables.get(key)

    def read_database(self, database: str) -> Mapping[TableKey, Table]:
        self.asked.append(database)
        return {key: table for key, table in self.tables.items() if key.database == database}


def guard_of(target: Target) -> TableGuard:
    return TableGuard(Alterations({ALTERED: (5,)}), Flavor.MARIADB, target.read, target.read_database)


def test_the_tables_of_a_database_are_read_together_and_once() -> None:
    target = Target(ORDERS, ITEMS, OTHER)
    guard = guard_of(target)
    assert [guard.target(key) for key in (ORDERS, ITEMS, OTHER, ORDERS)] == [
        target.tables[key] for key in (ORDERS, ITEMS, OTHER, ORDERS)
    ]
    assert target.asked == ["a", "b"]


def test_a_table_that_the_window_alters_is_read_anew_each_time() -> None:
    target = Target(ORDERS, ALTERED)
    guard = guard_of(target)
    assert guard.target(ORDERS) is target.tables[ORDERS]
    assert guard.target(ALTERED) is guard.target(ALTERED) is target.tables[ALTERED]
    assert target.asked == ["a", "a.altered", "a.altered"]


def test_after_a_ddl_the_tables_are_read_again() -> None:
    target = Target(ORDERS)
    guard = guard_of(target)
    assert guard.target(ITEMS) is None
    target.tables[ITEMS] = Table(ITEMS, "InnoDB", ())
    guard.forget_tables()
    assert guard.target(ITEMS) is target.tables[ITEMS]


def test_a_table_of_a_large_database_is_read_alone() -> None:
    target = Target(ORDERS)
    guard = guard_of(target)
    guard.read_database = lambda _database: {}
    assert guard.target(ORDERS) is target.tables[ORDERS]
    assert target.asked == ["a.orders"]
