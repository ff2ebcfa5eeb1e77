"""Foreign keys of the target whose parents have no rows there, because the filter leaves them out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binlane.model import RowCounts, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import TableCounts
from binlane.precheck.situation.situation import Situation
from binlane.precheck.tables.left_out_parents import check_left_out_parents
from binlane.schema.compare import Severity
from binlane.schema.model import Column, ForeignKey, Table
from binlane.shards.selection import Selection
from tests.unit.plan.logs import settings
from tests.unit.precheck.situations import PLAN, said, schema, situation, target_of

CHILD, PARENT = TableKey("shop", "orders"), TableKey("crm", "customers")
KEY = ForeignKey("fk", ("customer",), PARENT, ("id",), "RESTRICT", "RESTRICT")
INSERTED = RowCounts(inserts=1)
WITHOUT_CRM = Selection(exclude_databases=("crm",))


def of(
    counts: RowCounts = INSERTED,
    *,
    key: ForeignKey = KEY,
    selection: Selection = WITHOUT_CRM,
    has_rows: bool = False,
    nullable: bool = False,
    plan: dict[str, Any] | None = None,
    **changes: Any,
) -> Situation:
    """A window that writes such rows of the child, for a target whose parent has rows or not."""
    window = {"tables": {CHILD: TableCounts(read=counts, written=counts)}} if plan is None else plan
    return situation(
        target_of(ask=lambda _, parent: has_rows if parent == key.parent else None),
        replace(PLAN, **window),
        schema(Table(CHILD, "InnoDB", (Column("customer", 1, "int", nullable=nullable),), foreign_keys=(key,))),
        selection=selection,
        **changes,
    )


@pytest.mark.parametrize(
    "window",
    [
        of(),
        of(selection=Selection(include_databases=("shop",))),
        of(
            key=replace(KEY, parent=TableKey("sales", "customers")),
            settings=settings(renames=[["crm", "sales"]]),
        ),
    ],
    ids=["inserted", "not included", "renamed"],
)
def test_a_row_whose_parent_no_window_brings_is_refused_before_the_first_write(window: Situation) -> None:
    [found] = said(window, "left-out-parents")
    assert "shop.orders: foreign key fk: expected a parent whose rows are on the target, or none, found " in found
    assert "left out (" in found
    assert "ALTER TABLE `shop`.`orders` DROP FOREIGN KEY `fk` on the target" in found
    assert severities(window) == [Severity.FATAL]


@pytest.mark.parametrize(
    "window",
    [
        of(RowCounts(updates=1)),
        of(nullable=True),
        of(plan={"written": frozenset({CHILD})}),
        of(plan={"loaded": frozenset({CHILD})}),
    ],
    ids=["updated", "perhaps NULL", "by a statement", "loaded"],
)
def test_rows_that_may_need_no_parent_are_told_and_applied(window: Situation) -> None:
    assert severities(window) == [Severity.INFO]


@pytest.mark.parametrize(
    ("counts", "told"), [(RowCounts(updates=1), [Severity.INFO]), (RowCounts(inserts=1), [Severity.FATAL] * 9)]
)
def test_a_parent_of_many_tables_is_asked_once(counts: RowCounts, told: list[Severity]) -> None:
    """And told once where no row must have it."""
    children = [TableKey(f"shop_{number}", "orders") for number in range(9)]
    column = Column("customer", 1, "int", nullable=False)
    asked = list[TableKey]()

    def ask(_: object, parent: TableKey) -> bool:
        asked.append(parent)
        return False

    window = situation(
        target_of(ask=ask),
        replace(PLAN, tables={child: TableCounts(read=counts, written=counts) for child in children}),
        schema(*(Table(child, "InnoDB", (column,), foreign_keys=(KEY,)) for child in children)),
        selection=WITHOUT_CRM,
    )
    assert severities(window) == told
    assert asked == [PARENT]


def severities(window: Situation) -> list[Severity]:
    return [each.severity for each in check_left_out_parents(window)]


@pytest.mark.parametrize(
    "window",
    [
        of(RowCounts(deletes=1)),
        of(has_rows=True),
        of(selection=Selection()),
        of(key=replace(KEY, on_delete="CASCADE")),
        of(
            plan={
                "tables": {CHILD: TableCounts(read=INSERTED, written=INSERTED)},
                "altered": Alterations({CHILD: (3,)}),
            }
        ),
        of(plan={}),
    ],
    ids=["deleted", "kept by somebody", "taken", "of another check", "altered", "not written"],
)
def test_a_key_that_the_target_can_hold_to_stops_no_window(window: Situation) -> None:
    assert said(window, "left-out-parents") == []
