"""What the precheck leaves for the lanes."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from binlane.errors import SourceError
from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, RowCounts, SessionContext, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import TableCounts
from binlane.precheck.results import checked_of, keep_for_lanes
from binlane.precheck.situation.parser import ParserAnswers
from binlane.precheck.situation.situation import Needs
from binlane.schema.model import Column, Schema, Table
from binlane.schema.programs import Program
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.facts import StatementKind
from binlane.sql.programs.reach import Reach
from binlane.work.files import WorkFolder
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import PLAN, applying, schema, situation

KEY = TableKey("shop", "t")
THEN = schema(Table(KEY, "InnoDB", (Column("a", 1, "int"),)))
NOW = schema(Table(KEY, "InnoDB", (Column("a", 1, "bigint"),)))
ALTERED = replace(PLAN, written=frozenset({KEY}), altered=Alterations({KEY: (5,)}))


def kept(folder: WorkFolder, source: Schema, *, begun: bool, behind: Alterations | None = None) -> WorkFolder:
    """The folder behind the check of a window that alters the table."""
    made = situation(plan=ALTERED, tables=source, source=source, plans=folder, begun=begun)
    vars(made).update(source=SimpleNamespace(altered_behind=lambda **_: behind or Alterations()))
    return replace(folder, digests={**(folder.digests or {}), **keep_for_lanes(made)})


def test_a_window_that_is_begun_keeps_what_the_check_before_it_has_left(tmp_path: Path) -> None:
    folder = kept(WorkFolder(str(tmp_path), digests={}), THEN, begun=False)
    assert checked_of(kept(folder, NOW, begun=True), selects=False).definitions == THEN


@pytest.mark.parametrize(("behind", "found"), [(Alterations(), THEN), (Alterations({KEY: (0,)}), None)])
def test_the_definitions_are_asked_again_where_the_folder_of_a_begun_window_was_lost(
    tmp_path: Path, behind: Alterations, found: Schema | None
) -> None:
    folder = kept(WorkFolder(str(tmp_path), digests={}), THEN, begun=True, behind=behind)
    assert checked_of(folder, selects=False).definitions == found


@pytest.mark.parametrize("begun", [True, False])
def test_only_a_window_that_is_begun_goes_on_without_its_source(tmp_path: Path, begun: bool) -> None:
    made = situation(plan=ALTERED, tables=THEN, plans=WorkFolder(str(tmp_path), digests={}), begun=begun)
    vars(made).update(source=SimpleNamespace(read_schema=_gone))
    if begun:
        assert keep_for_lanes(made) == {}
    else:
        with pytest.raises(SourceError, match="no answer"):
            keep_for_lanes(made)


@pytest.mark.parametrize(
    ("needs", "allow_unsafe", "is_kept"),
    [(Needs(statements=True), False, True), (Needs(statements=True), True, False), (Needs(), False, False)],
)
def test_the_target_s_own_variables_are_those_of_the_first_check(
    tmp_path: Path, needs: Needs, allow_unsafe: bool, is_kept: bool
) -> None:
    folder = WorkFolder(str(tmp_path), digests={})
    for value, begun in (("8", False), ("4", True)):
        made = situation(plan=PLAN, plans=folder, needs=needs, begun=begun, channel=applying(allow_unsafe=allow_unsafe))
        vars(made).update(may_reach_programs=False)
        vars(made.target).update(ask=lambda *_: (), variables={"div_precision_increment": value, "port": "3306"})
        folder = replace(folder, digests={**(folder.digests or {}), **keep_for_lanes(made)})
    left = checked_of(folder, selects=False)
    assert left.variables == ({"div_precision_increment": "8"} if is_kept else {})


VARIABLES = {
    "div_precision_increment": "4", "group_concat_max_len": "1024", "ft_min_word_len": "4", "max_allowed_packet": "64",
    "time_zone": "SYSTEM", "default_week_format": "0",
}  # fmt: skip
TRIGGER = Program(KEY, "trigger", "SET @n = 1", name="tr", time="BEFORE INSERT")
HALF = Column("half", 2, "decimal(9,4)", expression="`a` / 2")
STRICT = 1 << 22


@pytest.mark.parametrize(
    ("ddl", "sql_mode", "columns", "kept_names"),
    [
        ("CREATE TABLE u (a INT)", 0, (), {"time_zone"}),
        ("ALTER TABLE u ADD FULLTEXT (s)", 0, (), {"time_zone", "ft_min_word_len"}),
        ("CREATE TABLE u (a INT, b INT AS (a / 2))", 0, (), {"time_zone", "div_precision_increment"}),
        ("CREATE TABLE u (a INT)", 0, (HALF,), {"time_zone", "div_precision_increment"}),
        # a table of which no row is written
        ("ALTER TABLE other FORCE", 0, (), {"time_zone", "div_precision_increment"}),
        ("", 0, (HALF,), {"time_zone", "div_precision_increment"}),
        ("ALTER TABLE u ADD b TEXT AS (REPEAT(a, 9))", 0, (), {"time_zone", "max_allowed_packet"}),
        ("ALTER TABLE u ADD b TEXT AS (REPEAT(a, 9))", STRICT, (), {"time_zone"}),
        # its query may run any body
        ("CREATE TABLE u SELECT f() AS a", 0, (), VARIABLES.keys()),
    ],
)
def test_of_a_window_without_other_statements_only_what_it_sees_is_kept(
    tmp_path: Path, ddl: str, sql_mode: int, columns: tuple[Column, ...], kept_names: Set[str]
) -> None:
    tables = schema(
        Table(KEY, "InnoDB", (Column("a", 1, "int"), *columns)),
        *((Table(TableKey("shop", "other"), "InnoDB", (HALF,)),) if "other" in ddl else ()),
    )
    item = Item(ItemKind.DDL, ddl.encode(), context=SessionContext(database="shop", sql_mode=sql_mode))
    text = LoggedText.of(1, LogPosition("log", 1), item, Flavor.MYSQL)
    plan = replace(PLAN, tables={KEY: TableCounts(read=RowCounts(1), written=RowCounts(1))})
    folder, texts = WorkFolder(str(tmp_path), digests={}), [text] if ddl else ()
    made = situation(plan=plan, tables=tables, needs=Needs(ddl=bool(ddl)), texts=texts, plans=folder)
    vars(made.target).update(ask=lambda *_: (), variables=VARIABLES)
    left = checked_of(replace(folder, digests=keep_for_lanes(made)), selects=False)
    assert left.variables.keys() == kept_names


@pytest.mark.parametrize(
    ("sql", "changes", "kept_names"),
    [
        ("INSERT INTO t VALUES (1)", {}, {"time_zone"}),
        ("UPDATE t SET a = a / 2", {}, {"time_zone", "div_precision_increment"}),
        ("UPDATE t SET a = (SELECT JSON_ARRAYAGG(b) FROM u)", {}, {"time_zone", "group_concat_max_len"}),
        ("UPDATE t SET a = REPEAT(a, 9)", {}, {"time_zone", "max_allowed_packet"}),
        ("UPDATE t SET a = WEEK(at, 3)", {}, {"time_zone"}),
        # a form has lists of literals of any length
        ("UPDATE t SET a = WEEK('2026-01-01', 3)", {}, {"time_zone", "default_week_format"}),
        ("INSERT INTO t () VALUES ()", {"default": "(9 / 5)"}, {"time_zone", "div_precision_increment"}),
        ("INSERT INTO t VALUES (1)", {"may_reach_programs": True}, VARIABLES.keys()),
        ("INSERT INTO t VALUES (1)", {"triggers": (TRIGGER,)}, VARIABLES.keys()),
        ("INSERT INTO t VALUES (1)", {"triggers": (replace(TRIGGER, key=TableKey("shop", "u")),)}, {"time_zone"}),
        ("INSERT INTO t VALUES (1)", {"is_known": False}, VARIABLES.keys()),
        ("INSERT INTO t VALUES (1)", {"kinds": {StatementKind.UNKNOWN: 1}}, VARIABLES.keys()),
        (
            "SET STATEMENT auto_increment_offset = (10 / 4) FOR INSERT INTO t VALUES (1)",
            {},
            {"time_zone", "div_precision_increment"},
        ),
    ],
)
def test_of_a_window_with_statements_that_run_no_body_only_what_they_see_is_kept(
    tmp_path: Path, sql: str, changes: dict[str, Any], kept_names: Set[str]
) -> None:
    header = BlockHeader(1, 1, 1, LogPosition("log", 1), "", 0.0)
    item = Item(ItemKind.STATEMENT, sql.encode(), context=SessionContext(database="shop"))
    answers = ParserAnswers(forms=[LaneStatement(0, header, item)] if changes.get("is_known", True) else None)
    tables = schema(Table(KEY, "InnoDB", (Column("a", 1, "int", default=changes.get("default")),)))
    folder = WorkFolder(str(tmp_path), digests={})
    made = situation(
        plan=replace(PLAN, written=frozenset({KEY}), kinds=changes.get("kinds", PLAN.kinds)),
        tables=tables, needs=Needs(statements=True), plans=folder,
        read_statements=lambda: answers,
    )  # fmt: skip
    vars(made).update(may_reach_programs=changes.get("may_reach_programs", False), reach=Reach({}))
    vars(made.target).update(ask=lambda *_: (), variables=VARIABLES, triggers=changes.get("triggers", ()), programs=())
    left = checked_of(replace(folder, digests=keep_for_lanes(made)), selects=False)
    assert left.variables.keys() == kept_names


def _gone() -> None:
    raise SourceError("no answer")
