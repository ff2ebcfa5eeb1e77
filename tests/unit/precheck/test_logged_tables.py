"""Tables of the log against the target's, where tenants have the same tables."""

from __future__ import annotations

from dataclasses import replace

from binlane.binlog.wire import HEADER
from binlane.model import Flavor, TableKey
from binlane.schema.model import Column, Table
from tests.unit.plan.logs import table_map
from tests.unit.precheck.situations import PLAN, findings, schema, situation

TABLE_ID = 6
TENANTS = tuple(TableKey(f"tenant_{number}", "t") for number in range(1, 6))


def body(database: str) -> str:
    """As a plan has it: without the table id."""
    return table_map(1, database)[HEADER.size + TABLE_ID :].hex()


def test_each_tenant_with_other_columns_is_named_among_those_that_are_alike() -> None:
    maps = {key: {body(key.database): number} for number, key in enumerate(TENANTS, 1)}
    plan = replace(PLAN, flavor=Flavor.MARIADB, table_maps=maps)
    same, other = (Column("id", 1, "int", nullable=False),), (Column("id", 1, "bigint", nullable=False),)
    columns = {TENANTS[1]: other, TENANTS[3]: other}
    tables = schema(*(Table(key, "InnoDB", columns.get(key, same)) for key in TENANTS), flavor=Flavor.MARIADB)
    found = findings(situation(plan=plan, tables=tables), "logged-tables")
    assert [one.where for one in found] == ["tenant_2.t.id: logged type", "tenant_4.t.id: logged type"]
