"""A statement that reaches a body which is not read to its end is named, any other one is not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import pytest

from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.situation.situation import Needs
from binlane.schema.programs import Program
from binlane.shards.selection import Selection
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import said, schema, situation, target_of

ORDERS: Final = TableKey("shop", "orders")
UNREAD: Final = "BEGIN SHOW TABLES; SET NEW.id = 1; END"
ALLOWED: Final = 'filter.allow_statements = ["UNREAD"]'


def found(statement: str, *programs: Program, selection: Selection | None = None) -> list[str]:
    item = Item(ItemKind.STATEMENT, statement.encode(), context=SessionContext(database="shop"))
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000007", 4711), "", 0.0)

    def transactions_with(pattern: re.Pattern[bytes]) -> Iterator[tuple[LaneStatement, BlockHeader]]:
        if pattern.search(item.payload) is not None:
            yield LaneStatement(0, header, item), header

    made = situation(target_of(Flavor.MARIADB), tables=schema(), needs=Needs(statements=True))
    made = made if selection is None else replace(made, selection=selection)
    vars(made).update(
        stored_triggers=((), tuple(each for each in programs if each.kind == "trigger")),
        stored_programs=((), tuple(each for each in programs if each.kind != "trigger")),
        program_names=frozenset(each.key.table for each in programs if each.kind != "trigger"),
        transactions_with=transactions_with,
    )
    return said(made, "unread-bodies")


def trigger(body: str, time: str = "AFTER INSERT") -> Program:
    return Program(ORDERS, "trigger", body, name="logging", time=time)


def function(body: str, kind: str = "function") -> Program:
    return Program(TableKey("shop", "f"), kind, body)


@pytest.mark.parametrize(
    ("statement", "programs", "stops"),
    [
        ("INSERT INTO orders VALUES (1)", (trigger(UNREAD),), "shop.logging, of which reading stops at 'SHOW'"),
        ("INSERT INTO orders VALUES (f())", (function("BEGIN KILL 1; EXECUTE s; END"),), "reading stops at 'EXECUTE'"),
        ("SELECT a FROM v", (Program(TableKey("shop", "v"), "view", "select a b c d from t"),), "reading stops at"),
        ("INSERT INTO orders VALUES (1)", (trigger("SET NEW.id = f()"), function(UNREAD)), "function shop.f"),
        # what is read, and what the statement does not reach
        ("INSERT INTO orders VALUES (1)", (trigger("SET NEW.id = 1"),), None),
        ("UPDATE orders SET id = 1", (trigger(UNREAD),), None),
        ("INSERT INTO orders VALUES (1)", (function(UNREAD),), None),
        ("INSERT INTO orders VALUES (f())", (function("PROCEDURE p() BEGIN END", "package body"),), None),
    ],
)
def test_a_body_that_is_reached_is_read(statement: str, programs: tuple[Program, ...], stops: str | None) -> None:
    texts = found(statement, *programs)
    assert [stops is not None and stops in text for text in texts] == ([] if stops is None else [True]), texts
    assert all(ALLOWED in text for text in texts)
    # a channel that promises something has no way to take it
    filtered = found(statement, *programs, selection=Selection(exclude_databases=("x",), allowed=("UNREAD",)))
    assert len(filtered) == len(texts)
    assert not any(ALLOWED in text for text in filtered)
    assert found(statement, *programs, selection=Selection(allowed=("UNREAD",))) == []
