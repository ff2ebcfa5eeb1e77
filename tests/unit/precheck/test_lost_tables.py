"""Tables that a window's statements need and the target lacks, and those that only have the name of a word in one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from binlane.model import BlockHeader, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.precheck.situation.situation import Situation
from binlane.schema.model import Table
from binlane.schema.programs import Program
from binlane.shards.selection import Selection
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import PLAN, said, schema, situation, target_of

ORDERS, NOTES = TableKey("shop", "orders"), TableKey("shop", "notes")
READS = "INSERT INTO orders SELECT * FROM notes"
COLUMN = "UPDATE orders AS notes SET notes.notes = 'x'"
UNREAD = "WITH a AS (SELECT 1) UPDATE orders SET b = (SELECT 1 FROM notes)"
VIEW = Program(TableKey("shop", "v"), "view", "select 1 from shop.notes")


class _Source:
    """A source that has altered these tables behind the window."""

    def __init__(self, altered: Collection[TableKey] | None) -> None:
        self.altered, self.reads = altered, 0

    def altered_behind(self, *, whole: bool) -> Alterations | None:
        self.reads += whole
        return None if self.altered is None else Alterations(dict.fromkeys(self.altered, (0,)))


def window(
    sql: str,
    altered: Collection[TableKey] | None = (),
    programs: Collection[Program] = (),
    **changes: Any,
) -> Situation:
    """A window of one statement, for a target that lacks a table of the source's."""
    orders, notes = (Table(key, "InnoDB", ()) for key in (ORDERS, NOTES))
    plan = replace(PLAN, written=frozenset({ORDERS}), kinds={"dml": 1})
    made = situation(target_of(), plan, schema(orders), source=schema(orders, notes), **changes)
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000007", 4711), "", 0.0)
    logged = LaneStatement(0, header, Item(ItemKind.STATEMENT, sql.encode(), context=SessionContext(database="shop")))
    vars(made).update(
        source=_Source(altered),
        later_tables=frozenset(),
        stored_programs=((), tuple(programs)),
        stored_triggers=((), ()),
        transactions_with=lambda pattern: [(logged, header)] if pattern.search(logged.item.payload) else [],
    )
    return made


def lost(of: Situation) -> list[str]:
    """The findings, as far as the command."""
    return [text.split(";")[0] for text in said(of, "lost-tables")]


NAMED = ["shop.notes: table: expected the table, found no such table"]


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        pytest.param(READS, NAMED, id="read"),
        pytest.param("INSERT INTO orders SELECT * FROM v", NAMED, id="behind-a-view"),
        pytest.param("UPDATE orders SET a = shop.f()", NAMED, id="behind-a-function"),
        pytest.param(UNREAD, NAMED, id="not-read"),
        pytest.param(COLUMN, [], id="a-column-and-an-alias"),
    ],
)
def test_a_table_is_lost_to_a_statement_that_names_it_as_a_table(sql: str, found: list[str]) -> None:
    function = replace(VIEW, key=TableKey("shop", "f"), kind="function", text="return (select 1 from notes)")
    assert lost(window(sql, programs=(VIEW, function))) == found


@pytest.mark.parametrize(
    ("altered", "found"), [((), NAMED), ((ORDERS,), NAMED), ((NOTES,), []), (None, NAMED)], ids=str
)
def test_a_table_that_the_source_has_made_since_the_window_is_not_lost(
    altered: Collection[TableKey] | None, found: list[str]
) -> None:
    assert lost(window(READS, altered)) == found


def test_the_log_behind_the_window_is_read_only_for_a_table_that_statements_name() -> None:
    of = window(COLUMN, (NOTES,))
    assert (lost(of), of.source.reads) == ([], 0)  # type: ignore[union-attr]


def test_a_table_that_the_filter_leaves_out_is_not_lost() -> None:
    """A view may read it still, and nobody can copy it."""
    sql = "INSERT INTO orders SELECT * FROM v"
    assert lost(window(sql, programs=(VIEW,), selection=Selection(exclude_tables=("shop.notes",)))) == []


def test_of_a_window_that_is_begun_the_source_is_not_asked() -> None:
    orders, notes = (Table(key, "InnoDB", ()) for key in (ORDERS, NOTES))
    of = window(READS, (NOTES,), planned=schema(orders, notes), begun=True)
    assert (lost(of), of.source.reads) == (NAMED, 0)  # type: ignore[union-attr]
