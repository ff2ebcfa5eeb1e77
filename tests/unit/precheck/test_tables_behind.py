"""Tables that statements write through views, triggers and routines are compared with the source's, no others are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final

import pytest

from binlane.model import BlockHeader, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.situation.situation import Needs
from binlane.schema.model import Column, Key, KeyColumn, Schema, Table
from binlane.schema.programs import Program
from binlane.shards.selection import Selection
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import PLAN, applying, said, schema, situation, target_of

ID: Final = Column("id", 1, "int")
WIDE, NARROW = (replace(ID, name="note", ordinal=2, data_type="varchar", length=length) for length in (50, 20))
ORDERS, AUDIT = TableKey("shop", "orders"), TableKey("shop", "audit")
INSERT: Final = "INSERT INTO orders VALUES (1)"
LOGGING: Final = "INSERT INTO audit VALUES (NEW.id, 'x')"


def of(*columns: Column, name: str = "audit", database: str = "shop") -> Schema:
    """A server's tables, of which ``audit`` has these columns."""
    keys = {ORDERS: (ID,), TableKey(database, name): columns}
    tables = [Table(key, "InnoDB", found, ()) for key, found in keys.items()]
    return schema(*tables, databases=frozenset({key.database for key in keys}))


def trigger(body: str = LOGGING, time: str = "AFTER INSERT") -> Program:
    return Program(ORDERS, "trigger", body, name="logging", time=time)


def found(
    statement: str, *programs: Program, source: Schema, target: Schema, written: TableKey = ORDERS, **changes: Any
) -> list[str]:
    """What check `tables-behind` says of a statement."""
    item = Item(ItemKind.STATEMENT, statement.encode(), context=SessionContext(database="shop"))
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000007", 4711), "", 0.0)

    def transactions_with(pattern: re.Pattern[bytes]) -> Iterator[tuple[LaneStatement, BlockHeader]]:
        if pattern.search(item.payload) is not None:
            yield LaneStatement(0, header, item), header

    named = frozenset({"shop"})
    plan = replace(PLAN, written=frozenset({written}))
    given: Mapping[str, Any] = {"needs": Needs(statements=True), "plan": plan, **changes}
    made = situation(target_of(), tables=target.of(named), source=source.of(named), planned=target, **given)
    server = SimpleNamespace(ask=lambda _, names: source.of(names), altered_behind=lambda *, whole: None)
    vars(made).update(
        source=server,
        stored_triggers=((), tuple(each for each in programs if each.kind == "trigger")),
        stored_programs=((), tuple(each for each in programs if each.kind != "trigger")),
        program_names=frozenset(each.key.table for each in programs if each.kind != "trigger"),
        transactions_with=transactions_with,
    )
    return said(made, "tables-behind")


FUNCTION: Final = Program(TableKey("shop", "f"), "function", "BEGIN UPDATE audit SET note = 'x'; RETURN 1; END")
VIEW: Final = Program(TableKey("shop", "v"), "view", "select id, note from audit")
BEHIND: Final = {
    "a trigger": (INSERT, (trigger(),), ORDERS),
    "a function": ("INSERT INTO orders VALUES (f())", (FUNCTION,), ORDERS),
    "a view": ("UPDATE v SET note = 'x'", (VIEW,), VIEW.key),
    "a view behind a trigger": (INSERT, (trigger("INSERT INTO v VALUES (NEW.id, 'x')"), VIEW), ORDERS),
}


@pytest.mark.parametrize(("statement", "programs", "written"), BEHIND.values(), ids=BEHIND)
def test_a_table_that_the_target_has_with_other_columns_is_named(
    statement: str, programs: tuple[Program, ...], written: TableKey
) -> None:
    [said_of] = found(statement, *programs, source=of(ID, WIDE), target=of(ID, NARROW), written=written)
    assert "seqno 5" in said_of
    assert "shop.audit.note with type varchar(20) in place of varchar(50), behind " in said_of
    assert found(statement, *programs, source=of(ID, WIDE), target=of(ID, WIDE), written=written) == []


def test_a_table_of_a_database_that_the_window_does_not_name_is_read_for_it() -> None:
    body = trigger("INSERT INTO crm.audit VALUES (NEW.id, 'x')")
    sides = (of(ID, each, database="crm") for each in (WIDE, NARROW))
    assert len(found(INSERT, body, source=next(sides), target=next(sides))) == 1


NOT_NAMED: Final = {
    "a trigger of another event": ({"programs": (trigger(time="AFTER DELETE"),)}),
    "a view that is read": ({"statement": "INSERT INTO orders SELECT id FROM v", "programs": (VIEW,)}),
    "left out by the filter": ({"selection": Selection(exclude_tables=("shop.audit",))}),
    "allow_unsafe": ({"channel": applying(allow_unsafe=True)}),
    "no statements": ({"needs": Needs()}),
}


@pytest.mark.parametrize("changes", NOT_NAMED.values(), ids=NOT_NAMED)
def test_what_no_statement_writes_there_is_not_compared(changes: Mapping[str, Any]) -> None:
    given = {"statement": INSERT, "programs": (trigger(),), **changes}
    programs = given.pop("programs")
    assert found(given.pop("statement"), *programs, source=of(ID, WIDE), target=of(ID, NARROW), **given) == []


def test_a_table_that_the_window_alters_is_not() -> None:
    altered = replace(PLAN.altered, tables={AUDIT: (3,)})
    plan = replace(PLAN, written=frozenset({ORDERS}), altered=altered)
    assert found(INSERT, trigger(), source=of(ID, WIDE), target=of(ID, NARROW), plan=plan) == []


def test_a_difference_that_changes_no_row_is_not_nor_is_one_that_is_named_already() -> None:
    key = Key("n", False, False, (KeyColumn("note"),))
    with_key = Table(AUDIT, "InnoDB", (ID, WIDE), (key,))
    source, target = of(ID, WIDE), of(ID, WIDE)
    target = replace(target, tables={**target.tables, AUDIT: with_key})
    assert found(INSERT, trigger(), source=source, target=target) == []
    plan = replace(PLAN, written=frozenset({ORDERS, AUDIT}))
    assert found(INSERT, trigger(), source=of(ID, WIDE), target=of(ID, NARROW), plan=plan) == []


LOOKUP: Final = TableKey("shop", "lookup")


def with_lookup(engine: str = "InnoDB", audit: str = "InnoDB", lookup: Column = WIDE) -> Schema:
    """A server's tables, of which ``lookup`` has this engine and column, and ``audit`` this engine."""
    columns = {ORDERS: ("InnoDB", (ID,)), AUDIT: (audit, (ID, WIDE)), LOOKUP: (engine, (ID, lookup))}
    tables = [Table(key, own, found, ()) for key, (own, found) in columns.items()]
    return schema(*tables, databases=frozenset({"shop"}))


JOINED: Final = Program(
    TableKey("shop", "v"), "view", "select a.id, a.note from audit a where a.id in (select id from lookup)"
)
READ_ONLY: Final = {
    "an UPDATE of a join": (
        INSERT,
        trigger("UPDATE audit a JOIN lookup l USING (id) SET a.note = l.note WHERE a.id = NEW.id"),
    ),
    "by a name with a database": (INSERT, trigger("UPDATE audit, shop.lookup l SET shop.audit.note = l.note")),
    "a DELETE of a join": (INSERT, trigger("DELETE audit FROM audit JOIN lookup USING (id)")),
    "a DELETE with USING": (INSERT, trigger("DELETE FROM a.* USING audit AS a JOIN lookup USING (id)")),
    "a query": (INSERT, trigger("INSERT INTO audit SELECT id, note FROM lookup")),
    "a view with a nested query": ("UPDATE v SET note = 'x'", JOINED),
    "such a view behind a trigger": (INSERT, trigger("UPDATE v SET note = 'x' WHERE id = NEW.id"), JOINED),
}


@pytest.mark.parametrize(("statement", "programs"), [(each[0], each[1:]) for each in READ_ONLY.values()], ids=READ_ONLY)
def test_a_table_that_is_only_read_behind_a_statement_may_be_any(statement: str, programs: tuple[Program, ...]) -> None:
    written = JOINED.key if "v" in statement.split() else ORDERS
    other = with_lookup(lookup=NARROW)
    assert found(statement, *programs, source=with_lookup(), target=other, written=written) == []
    other = with_lookup("MyISAM")
    assert found(statement, *programs, source=other, target=other, written=written) == []
    [said_of] = found(statement, *programs, source=with_lookup(), target=with_lookup(audit="MyISAM"), written=written)
    assert "shop.audit with engine MyISAM" in said_of


@pytest.mark.parametrize(
    "body",
    [
        "UPDATE audit a JOIN lookup l USING (id) SET l.note = 'x', a.note = 'y'",
        "UPDATE audit a JOIN lookup l USING (id) SET note = 'x'",
        "DELETE a, lookup FROM audit a JOIN lookup USING (id)",
        "DELETE FROM other USING audit AS a JOIN lookup USING (id)",
    ],
)
def test_each_table_of_a_join_that_a_body_may_change_is_compared(body: str) -> None:
    """Also where nothing tells which one."""
    [said_of] = found(INSERT, trigger(body), source=with_lookup(), target=with_lookup(lookup=NARROW))
    assert "shop.lookup.note" in said_of
    [said_of] = found(INSERT, trigger(body), source=with_lookup(), target=with_lookup(audit="MyISAM"))
    assert "shop.audit" in said_of


def test_a_table_without_transactions_behind_a_statement_has_a_reason_of_its_own() -> None:
    both = with_lookup(audit="MyISAM")
    [said_of] = found(INSERT, trigger(), source=both, target=both)
    assert "expected a table with transactions behind it, found shop.audit" in said_of
    assert "its rows stay where the block is rolled back" in said_of
    assert "apply.allow_nontransactional = true" in said_of
    assert "allow_unsafe" not in said_of
    assert found(INSERT, trigger(), source=both, target=both, channel=applying(allow_nontransactional=True)) == []


def test_a_table_that_keeps_no_rows_on_both_servers_is_not_compared() -> None:
    both = with_lookup(audit="BLACKHOLE")
    assert found(INSERT, trigger(), source=both, target=both) == []
    assert len(found(INSERT, trigger(), source=with_lookup(), target=both)) == 1
    assert len(found(INSERT, trigger(), source=both, target=with_lookup(audit="MEMORY"))) == 1
