"""Statements that find rows which a channel keeps because its filter ignores what removes them."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any, Final

import pytest

from binlane.model import BlockHeader, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.bodies import kept_rows
from binlane.precheck.bodies.row_order import RowOrder
from binlane.precheck.situation.situation import Needs, Situation
from binlane.schema.compare import Severity
from binlane.schema.model import Column, Key, KeyColumn, Table
from binlane.schema.partitions import Partition, Partitioning
from binlane.schema.programs import Program
from binlane.shards.selection import Selection
from tests.unit.plan.logs import settings
from tests.unit.precheck.situations import applying, findings, said, schema, situation, target_of

UPSERT: Final = "INSERT INTO hits VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1"


def of(
    sql: str,
    kinds: tuple[tuple[str, str], ...] = (("delete", "ignore"),),
    *triggers: Program,
    there: bool = True,
    needs: Needs | None = None,
    **changes: Any,
) -> Situation:
    """A window of one statement. ``there``: its tables are on the target."""
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000001", 4), "", 0.0)
    logged = SimpleNamespace(
        lane=0, header=header, beginning=sql,
        item=Item(ItemKind.STATEMENT, sql.encode(), context=SessionContext(database="shop")),
    )  # fmt: skip
    made = situation(
        target_of(has_table=lambda _: there, programs=(), makes_temporary_tables=False),
        needs=Needs(statements=True) if needs is None else needs,
        settings=settings(filters=Selection(kinds=kinds).to_values()),
        **changes,
    )
    vars(made).update(
        stored_triggers=((), triggers),
        stored_programs=((), ()),
        program_names=frozenset(),
        transactions_with=lambda pattern: [(logged, header)] if pattern.search(sql.encode()) else [],
    )
    return made


@pytest.mark.parametrize("kind", ["delete", "truncate"])
def test_a_statement_that_meets_rows_is_refused_where_what_removes_them_is_ignored(kind: str) -> None:
    [found] = said(of(UPSERT, ((kind, "ignore"),)), "kept-rows")
    assert f"statement of seqno 5, {UPSERT}: expected rows that the source has, too, found ON DUPLICATE KEY" in found
    assert f'where rows may be kept (kinds.{kind} = "ignore")' in found


@pytest.mark.parametrize(
    "window",
    [
        of(UPSERT, ()),
        of(UPSERT, (("delete", "refuse"), ("accounts", "ignore"))),
        of(UPSERT, channel=applying(allow_unsafe=True)),
        of(UPSERT, needs=Needs()),
        of("INSERT INTO hits VALUES (1, 1)"),
        of("INSERT INTO daily SELECT * FROM passing", there=False),
    ],
    ids=["no rule", "another rule", "allowed", "rows alone", "a plain statement", "a temporary table"],
)
def test_what_meets_no_kept_row_is_applied(window: Situation) -> None:
    assert said(window, "kept-rows") == []


def divided(*names: str) -> Partitioning:
    return Partitioning(tuple(Partition("LIST", "", name, "", "`id`", name[1:], "") for name in names))


@pytest.mark.parametrize("kind", ["drop", "drop_database"])
@pytest.mark.parametrize(
    ("target", "source", "is_archive", "is_refused"),
    [
        (divided("p1", "p2"), divided("p2"), False, True),
        (divided("p1", "p2"), None, False, True),
        (divided("p1", "P2"), divided("p1", "p2", "p3"), False, False),
        (divided("p1"), None, True, True),
        (divided(), divided("p1"), False, False),
        (divided(), None, False, False),
        (divided(), None, True, False),
    ],
)
@pytest.mark.parametrize("sql", [UPSERT, "INSERT INTO hits VALUES (1, 1)"], ids=["a statement", "a trigger"])
def test_where_only_drops_are_ignored_rows_of_dropped_partitions_are_kept(
    kind: str, target: Partitioning, source: Partitioning | None, *, is_archive: bool, is_refused: bool, sql: str
) -> None:
    body = "UPDATE daily JOIN hits USING (day) SET daily.n = 1"
    counts = Program(TableKey("shop", "hits"), "trigger", body, name="counts", time="AFTER INSERT")
    window = of(sql, ((kind, "ignore"),), *([] if sql == UPSERT else [counts]))
    object.__setattr__(window.target, "ask", lambda _, key: target if key.table == "hits" else divided())
    if not is_archive:
        vars(window).update(source=SimpleNamespace(ask=lambda *_: source), source_as_named=schema())
    [found] = findings(window, "kept-rows")
    assert (found.severity is Severity.FATAL) is is_refused
    assert f'(kinds.{kind} = "ignore")' in str(found)
    assert is_refused or "has not dropped and made again since they were copied" in str(found)


def test_a_statement_with_ignore_meets_the_rows_of_the_table_that_it_fills() -> None:
    """Also where it reads temporary tables alone."""
    window = of("INSERT IGNORE INTO hits SELECT * FROM passing")
    vars(window.target).update(has_table=lambda key: key.table == "hits")
    [found] = said(window, "kept-rows")
    assert "found IGNORE, where rows may be kept" in found
    window = of("INSERT INTO hits SELECT * FROM passing")
    vars(window.target).update(has_table=lambda key: key.table == "hits")
    assert said(window, "kept-rows") == []


def test_a_statement_that_is_not_read_may_find_rows_of_any_table() -> None:
    window = of("WITH x AS (SELECT 1) INSERT INTO hits SELECT * FROM x", there=False)
    assert said(window, "kept-rows") != []


def test_a_trigger_that_meets_rows_is_found_behind_a_plain_statement() -> None:
    body = "INSERT INTO daily VALUES (NEW.day, 1) ON DUPLICATE KEY UPDATE n = n + 1"
    counts = Program(TableKey("shop", "hits"), "trigger", body, name="counts", time="AFTER INSERT")
    [found] = said(of("INSERT INTO hits VALUES (1, 1)", (("delete", "ignore"),), counts), "kept-rows")
    assert "found ON DUPLICATE KEY UPDATE of trigger shop.counts" in found


@pytest.mark.parametrize(
    ("condition", "is_named"),
    [
        ("WHERE id = 1 LIMIT 1", False),
        ("WHERE day = 3 AND hits.id = 1 LIMIT 1", False),
        ("WHERE id > 1 LIMIT 1", True),
        ("WHERE day = 1 LIMIT 1", True),
        ("WHERE name = 1 LIMIT 1", True),
        ("WHERE id = '1' LIMIT 1", True),
        ("WHERE id = 1e17 LIMIT 1", True),
        ("WHERE id = 1 OR day = 2 LIMIT 1", True),
        ("ORDER BY id LIMIT 1", True),
    ],
)
def test_a_limit_behind_one_row_of_a_unique_key_meets_no_other(condition: str, *, is_named: bool) -> None:
    columns = (Column("id", 1, "bigint", nullable=False), Column("day", 2, "int"), Column("name", 3, "char", length=9))
    keys = (Key("PRIMARY", True, True, (KeyColumn("id"),)), Key("name", True, False, (KeyColumn("name"),)))
    table = Table(TableKey("shop", "hits"), "MyISAM", columns, keys)
    window = of(f"UPDATE hits SET n = 1 {condition}", tables=schema(table))
    vars(window).update(source_tables=schema(table), may_reach_programs=False)
    assert (said(window, "kept-rows") != []) is is_named


def test_the_window_is_read_for_its_tables_once_and_not_for_each_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    made, window = list[int](), of(f"{UPSERT} LIMIT 1", tables=schema())
    [pair] = window.transactions_with(re.compile(b"LIMIT"))

    class Counted(RowOrder):
        def __init__(self, of_window: Situation) -> None:
            made.append(1)
            super().__init__(of_window)

    monkeypatch.setattr(kept_rows, "RowOrder", Counted)
    vars(window).update(transactions_with=lambda _: [pair] * 3)
    assert said(window, "kept-rows") != []
    assert len(made) == 1
