"""Routines, views and triggers behind statements: what is reached, what the log does to them, what is alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.schema.programs import (
    CLIENT,
    CONNECTION,
    DATABASE,
    DEFINER,
    MODE,
    PARAMETERS,
    RETURNED,
    SECURITY,
    Program,
)
from binlane.sql.logged_statement import LoggedText
from binlane.sql.programs.changes import ProgramChange, Since, Then, defined_keys, program_changes
from binlane.sql.programs.comparison import Alike, Comparison
from binlane.sql.programs.equivalence import Equivalence
from binlane.sql.programs.reach import Text, names_in, reach_of, routine_key
from binlane.sql.programs.spelling import bare
from binlane.sql.temporary_routines import tokens_of

F: Final = TableKey("d", "f")
V: Final = TableKey("d", "v")
FACTS: Final = {
    MODE: "STRICT_ALL_TABLES",
    CLIENT: "utf8mb4",
    CONNECTION: "utf8mb4_general_ci",
    DATABASE: "utf8mb4_general_ci",
    DEFINER: "a@h",
    SECURITY: "DEFINER",
    PARAMETERS: "IN a int",
    RETURNED: "int",
}


def statement(sql: str) -> LoggedText:
    item = Item(ItemKind.DDL, sql.encode(), context=SessionContext(database="d"))
    found = LoggedText.of(5, LogPosition("binlog.000007", 4711), item, Flavor.MARIADB)
    assert found is not None
    return found


def changes(*statements: str) -> list[ProgramChange]:
    texts = [statement(sql) for sql in statements]
    return [change for text in texts for change in program_changes(text.tokens, text.facts, "d")]


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("BEGIN  RETURN 1; END", "BEGIN\n\tRETURN 1;\nEND", True),
        ("RETURN 1 -- one\n", "RETURN 1", True),
        ("RETURN 1 # one", "/* 1 */ RETURN 1", True),
        ("RETURN a+1", "RETURN a + 1", True),
        ("RETURN 'a  b'", "RETURN 'a b'", False),
        ("RETURN 'a /* b */'", "RETURN 'a '", False),
        ("RETURN /*! 1 + */ 1", "RETURN 1", False),
        ("SELECT /*+ SET_VAR(sql_mode='') */ 1", "SELECT 1", False),
        ("SELECT b'1'", "SELECT b '1'", False),
        ("SELECT now ()", "SELECT now()", False),
        ("RETURN 1 - -1", "RETURN 1 --1", False),
        ("INSERT INTO t VALUES ('a -- b'), (2), (3)", "INSERT INTO t VALUES ('a -- c'), (2), (3)", False),
        ("INSERT INTO t VALUES (1), (2)", "INSERT INTO t VALUES (1), (3)", False),
        ("RETURN 'a", "RETURN 'b", False),
    ],
)
def test_only_comments_and_blanks_are_no_difference(one: str, other: str, *, alike: bool) -> None:
    assert (bare(one, Flavor.MARIADB, "") == bare(other, Flavor.MARIADB, "")) is alike


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT f FROM t", []),
        ("SELECT f(1)", [routine_key("d", "f")]),
        ("SELECT F (1)", [routine_key("d", "f")]),
        ("SELECT `f`(1)", [routine_key("d", "f")]),
        ("SELECT e.f(1)", [routine_key("d", "e"), routine_key("e", "f")]),
        ("SELECT e . p . f(1)", [routine_key("d", "e"), routine_key("e", "p")]),
        ("BEGIN CALL p; END", [routine_key("d", "p")]),
    ],
)
def test_a_routine_is_reached_where_it_is_called(sql: str, found: list[TableKey]) -> None:
    tokens = tokens_of(sql, Flavor.MARIADB)
    assert tokens is not None
    assert [key for key in names_in(tokens, "d") if key.table.endswith("()")] == found


def behind(name: TableKey, sql: str | None) -> Text:
    return Text(name, "d", tokens_of(sql, Flavor.MARIADB), calls_bare=False)


def test_a_call_without_call_is_one_in_oracle_mode() -> None:
    tokens = tokens_of("BEGIN p; END", Flavor.MARIADB)
    assert tokens is not None
    for calls_bare in (False, True):
        reach = reach_of((), [Text(routine_key("d", "f"), "d", tokens, calls_bare)])
        assert (routine_key("d", "p") in reach.of([routine_key("d", "f")])) is calls_bare


@pytest.mark.parametrize(
    ("sql", "asks"),
    [
        ("RETURN CURRENT_USER", True),
        ("RETURN (SELECT COUNT(*) FROM `information_schema`.`tables`)", True),
        ("BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END; RETURN 1; END", True),
        ("RETURN LOAD_FILE('x')", True),
        ("RETURN g()", True),
        ("RETURN USER()", False),
        ("RETURN 'CURRENT_USER'", False),
    ],
)
def test_texts_that_ask_for_the_account_are_found_also_behind_others(sql: str, *, asks: bool) -> None:
    texts = [behind(routine_key("d", "f"), sql), behind(routine_key("d", "g"), None)]
    assert reach_of((), texts).asks_for_account(routine_key("d", "f")) is asks


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("CREATE FUNCTION f() RETURNS INT RETURN 1", [("function", "f", True, True)]),
        ("CREATE FUNCTION IF NOT EXISTS f() RETURNS INT RETURN 1", [("function", "f", True, False)]),
        ("CREATE OR REPLACE PROCEDURE p() SELECT 1", [("procedure", "p", True, False)]),
        ("CREATE FUNCTION f RETURNS INTEGER SONAME 'f.so'", []),
        ("ALTER FUNCTION f COMMENT 'x'", []),
        ("DROP FUNCTION d.f", [("function", "f", False, True)]),
        ("DROP VIEW v, d.w", [("view", "v", False, True), ("view", "w", False, True)]),
        ("DROP VIEW IF EXISTS v", [("view", "v", False, False)]),
        ("ALTER VIEW v AS SELECT 1", [("view", "v", False, True)]),
        (
            "CREATE OR REPLACE ALGORITHM=UNDEFINED DEFINER=`a`@`h` SQL SECURITY DEFINER VIEW `d`.`v` AS SELECT 1",
            [("view", "v", True, False)],
        ),
        ("CREATE PACKAGE BODY p AS END", [("package body", "p", True, True)]),
        ("DROP PACKAGE p", [("package", "p", False, True), ("package body", "p", False, False)]),
        ("CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = 1", [("trigger", "g", True, True)]),
    ],
)
def test_what_a_statement_makes_or_drops(sql: str, found: list[tuple[str, str, bool, bool]]) -> None:
    named = [
        (each.kind, each.name.table, each.makes, each.is_certain) for each in changes(sql) if each.name is not None
    ]
    assert named == found


@pytest.mark.parametrize(
    ("kind", "statements", "then"),
    [
        ("function", ["DROP PROCEDURE v"], Then.AS_NOW),
        ("function", ["DROP FUNCTION v", "CREATE FUNCTION v() RETURNS INT RETURN 1"], Then.THERE),
        ("view", ["CREATE VIEW v AS SELECT 1", "DROP VIEW v"], Then.MISSING),
        ("view", ["RENAME TABLE v TO w", "ALTER VIEW w AS SELECT 1"], Then.THERE),
        ("view", ["RENAME TABLE v TO w", "ALTER VIEW v AS SELECT 1"], Then.AS_NOW),
        ("view", ["CREATE OR REPLACE VIEW v AS SELECT 1"], Then.UNKNOWN),
        ("function", ["DROP DATABASE d"], Then.UNKNOWN),
    ],
)
def test_the_log_tells_what_was_there_at_the_window_s_beginning(kind: str, statements: list[str], then: Then) -> None:
    assert Since(changes(*statements), lambda key: key).then(kind, V, V) is then


def test_a_view_that_the_log_has_made_is_none_of_the_window_s_beginning() -> None:
    since = Since(changes("RENAME TABLE v TO w", "CREATE VIEW v AS SELECT 1"), lambda key: key)
    assert since.name_then(TableKey("d", "w")) == V
    assert since.name_then(V) is None


def compared(text: str, ours: Mapping[str, str], theirs: Mapping[str, str], *since: str) -> list[str]:
    flavors = (Flavor.MARIADB, Flavor.MARIADB)
    alike = Alike(Equivalence(flavors, frozenset({"utf8mb4_bin", "utf8mb4_general_ci"})), is_exact=True)
    comparison = Comparison(Since(changes(*since), lambda key: key), alike)
    source, target = (Program(F, "function", text, {**FACTS, **facts}) for facts in (ours, theirs))
    found = [each.found for each in comparison.programs([source], [target]) if not each.by_account]
    return [each.split(",")[0] for each in found]


@pytest.mark.parametrize(
    ("text", "what", "theirs", "differs"),
    [
        ("RETURN a", MODE, "", True),
        ("RETURN a", CLIENT, "latin1", False),
        ("RETURN 'ä'", CLIENT, "latin1", True),
        ("RETURN 'a' = a", CONNECTION, "utf8mb4_bin", True),
        ("INSERT INTO u (a) VALUES ('a')", CONNECTION, "utf8mb4_bin", False),
        ("INSERT INTO u (a) VALUES ('a')", CONNECTION, "latin1_bin", True),
        ("INSERT INTO u (a) VALUES (g('a'))", CONNECTION, "utf8mb4_bin", True),
        ("RETURN a = 1", CONNECTION, "latin1_bin", False),
        ("RETURN a", DATABASE, "utf8mb4_bin", False),
        ("BEGIN DECLARE b CHAR(1); RETURN b; END", DATABASE, "utf8mb4_bin", True),
        ("RETURN a", PARAMETERS, "IN b int", True),
        ("RETURN a", RETURNED, "bigint", True),
        ("RETURN a", DEFINER, "b@h", False),
        ("RETURN a", SECURITY, "INVOKER", False),
    ],
)
def test_facts_are_compared_where_they_can_decide(text: str, what: str, theirs: str, *, differs: bool) -> None:
    assert compared(text, {}, {what: theirs}) == ([f"another {what}"] if differs else [])


REPLACED = "one that may be another: the source's log replaces or drops it behind its use"


@pytest.mark.parametrize(
    ("since", "found"),
    [
        ("DROP TABLE f", ["another sql_mode"]),
        ("DROP PROCEDURE f", ["another sql_mode", "none"]),
        ("ALTER FUNCTION f COMMENT 'x'", ["another sql_mode"]),
        ("CREATE OR REPLACE FUNCTION f() RETURNS INT RETURN 1", [REPLACED]),
    ],
)
def test_only_what_the_log_does_to_a_routine_explains_a_difference(since: str, found: list[str]) -> None:
    assert compared("RETURN a", {}, {MODE: ""}, since) == found


@pytest.mark.parametrize(
    ("sql", "then"),
    [
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE u", {"t": "t", "u": "u"}),
        ("ALTER TABLE t CONVERT PARTITION p TO TABLE u", {"t": "t", "u": None}),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p VALUES LESS THAN (5)", {"t": "t", "u": None}),
        ("RENAME TABLE t TO x, u TO t, x TO u", {"t": "u", "u": "t"}),
    ],
)
def test_a_table_keeps_its_triggers_when_its_rows_change_places(sql: str, then: dict[str, str | None]) -> None:
    since = Since(changes(sql), lambda key: key)
    names = {name: since.name_then(TableKey("d", name)) for name in then}
    assert {name: None if key is None else key.table for name, key in names.items()} == then


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("CREATE DEFINER=view@localhost FUNCTION f() RETURNS INT RETURN 1", "f"),
        ("CREATE OR REPLACE DEFINER = trigger @ localhost PROCEDURE IF NOT EXISTS d.p() SELECT 1", "p"),
        ("CREATE FUNCTION d.if() RETURNS INT RETURN 1", "if"),
        ("CREATE FUNCTION IF NOT EXISTS d.exists() RETURNS INT RETURN 1", "exists"),
    ],
)
def test_a_routine_is_found_whatever_its_definer_and_it_are_called(sql: str, name: str) -> None:
    text = statement(sql)
    assert [key for key, _ in defined_keys(text.tokens, text.facts, "d")] == [routine_key("d", name)]


def test_a_view_and_a_trigger_are_reached_by_each_name_of_their_table_in_the_window() -> None:
    (u, v, w), (t, then, last) = ([TableKey("d", name) for name in names] for names in ("uvw", ("t", "then", "last")))
    view, trigger, hidden = behind(v, "SELECT a FROM t"), behind(t, "SET @x = f()"), behind(u, None)
    reach = reach_of([trigger], [view, hidden], renames=[(t, then), (then, last), (v, w), (u, TableKey("d", "x"))])
    assert {v, t, routine_key("d", "f")} <= reach.of([w])
    assert {t, routine_key("d", "f")} <= reach.of([last])
    assert w in reach.called
    assert last not in reach.called
    assert u in reach.unread
    assert {last, then, w} <= reach.leading_to([t])
