"""A program is another one if what it does is, whatever its server shows of it at the moment."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from binlane.model import Flavor, TableKey
from binlane.precheck.results import LEFT
from binlane.schema.programs import DEFINER, SECURITY, Program
from binlane.servers.programs import COLUMNS, _named
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.programs.marks import ProgramMark, ReachedPrograms, SentText, account_of, changed, mark_of
from binlane.sql.programs.reach import Text, folded, reach_of, routine_key

V = TableKey("shop", "v")
QUERY = "select `shop`.`b`.`x` AS `x` from `shop`.`b`"
BROKEN = Program(V, "view", None, {DEFINER: "a@%"})
WHOLE = Program(V, "view", QUERY, {DEFINER: "a@%"})
OTHER = Program(V, "view", "select `shop`.`f`() AS `x`", {DEFINER: "a@%"})


def of_mysql(text: str, *columns: str) -> Program:
    """A view as MySQL's catalogue shows it: without columns while it cannot be opened."""
    facts = {COLUMNS: json.dumps(dict(enumerate(columns, 1)))} if columns else {}
    return _named(Program(V, "view", text, {DEFINER: "a@%", **facts}))


@pytest.mark.parametrize(
    ("then", "now", "is_other"),
    [
        pytest.param(WHOLE, WHOLE, False, id="the same"),
        pytest.param(WHOLE, OTHER, True, id="another query"),
        pytest.param(WHOLE, Program(V, "view", QUERY, {DEFINER: "b@%"}), True, id="another definer"),
        pytest.param(WHOLE, BROKEN, False, id="its table has gone since, on MariaDB"),
        pytest.param(BROKEN, WHOLE, False, id="its table was made since, on MariaDB"),
        pytest.param(of_mysql(QUERY, "a"), of_mysql(QUERY), False, id="its table has gone since, on MySQL"),
        pytest.param(of_mysql(QUERY), of_mysql(QUERY, "a"), False, id="its table was made since, on MySQL"),
        pytest.param(of_mysql(QUERY), of_mysql(OTHER.text or "", "a"), True, id="broken, and another query, on MySQL"),
        pytest.param(of_mysql(QUERY, "a"), of_mysql(OTHER.text or ""), True, id="another query, broken, on MySQL"),
    ],
)
def test_a_view_is_another_one_by_its_query_and_not_by_what_its_tables_are(
    then: Program, now: Program, is_other: bool
) -> None:
    assert [each.key for each in changed([mark_of(then)], [now])] == ([V] if is_other else [])


def test_a_routine_whose_text_is_hidden_since_is_another_one() -> None:
    function = Program(V, "function", "RETURN 1")
    assert changed([mark_of(function)], [Program(V, "function", None)]) == [mark_of(function)]
    assert changed([mark_of(function)], []) == []


def _tokens(text: str) -> list[Token]:
    found = list[Token]()
    lex(text, Dialect(Flavor.MYSQL), found)
    return found


TABLE, HUB, LEAF, HIDDEN = TableKey("a", "t"), TableKey("util", "f"), TableKey("a", "v"), TableKey("b", "hidden")
REACH = reach_of(
    [Text(TABLE, "a", _tokens("SET NEW.n = util.f()"), calls_bare=False)],
    [
        Text(LEAF, "a", _tokens("select util.f() from other"), calls_bare=False),
        Text(routine_key(HUB.database, HUB.table), "util", _tokens("RETURN 1"), calls_bare=False),
        Text(routine_key("b", "g"), "b", _tokens("RETURN 1"), calls_bare=False),
        Text(HIDDEN, "b", None, calls_bare=False),
    ],
)
MARKS = [
    mark_of(Program(LEAF, "view", "select 1")),
    mark_of(Program(HUB, "function", "RETURN 1")),
    mark_of(Program(TableKey("b", "g"), "function", "RETURN 1")),
]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ([LEAF], {LEAF, HUB}),
        ([TABLE], {HUB}),
        ([routine_key("b", "G")], {TableKey("b", "g")}),
        ([TableKey("b", "g")], set()),
        ([TableKey("a", "other")], set()),
        ([HIDDEN], {LEAF, HUB, TableKey("b", "g")}),
        ([], set()),
    ],
)
def test_names_reach_the_same_by_what_a_lane_is_given_as_by_all(names: list[TableKey], found: set[TableKey]) -> None:
    left = ReachedPrograms.of(MARKS, REACH)
    given = LEFT.read(ReachedPrograms, json.dumps(LEFT.dump(left)), "reached.json")
    assert given == left
    of_name = {each.name: each for each in given.programs}
    assert {of_name[name].key for name in given.reach.reached(map(folded, names), of_name)} == found
    assert {of_name[name].key for name in REACH.reached(map(folded, names), of_name)} == found


def test_a_lane_is_given_no_name_that_leads_to_none_of_them_and_is_behind_none() -> None:
    left = ReachedPrograms.of(MARKS[2:], REACH)
    assert left.behind.keys() == {routine_key("b", "g")}
    left = ReachedPrograms.of(MARKS[:1], REACH)
    assert TableKey("a", "other") in left.behind[LEAF]
    assert routine_key("b", "g") not in left.behind
    assert ReachedPrograms.of((), REACH) == ReachedPrograms()


SENT = SentText(
    "CREATE DEFINER=`a`@`%` FUNCTION `shop`.`f`() RETURNS int\n    NO SQL\nBEGIN RETURN 'x'; END;", "a@%", "DEFINER"
)
MADE = Program(TableKey("shop", "f"), "function", "BEGIN RETURN 'x'; END", {DEFINER: "a@%", SECURITY: "DEFINER"})
BEFORE = replace(MADE, text="RETURN 1")


@pytest.mark.parametrize(
    ("mark", "now", "is_other"),
    [
        pytest.param(replace(mark_of(BEFORE), sent=(SENT,)), BEFORE, False, id="in front of the statement"),
        pytest.param(replace(mark_of(BEFORE), sent=(SENT,)), MADE, False, id="behind it"),
        pytest.param(ProgramMark("function", MADE.key, sent=(SENT,)), MADE, False, id="one that was not there"),
        pytest.param(
            ProgramMark("function", MADE.key, sent=(SENT,)), replace(MADE, text="RETURN 2"), True, id="another body"
        ),
        pytest.param(
            ProgramMark("function", MADE.key, sent=(SENT,)),
            replace(MADE, facts={DEFINER: "b@%", SECURITY: "DEFINER"}),
            True,
            id="another definer",
        ),
        pytest.param(
            ProgramMark("function", MADE.key, sent=(SENT,)),
            replace(MADE, facts={DEFINER: "a@%", SECURITY: "INVOKER"}),
            True,
            id="with the privileges of whoever calls it",
        ),
        pytest.param(
            ProgramMark("function", MADE.key, sent=(SENT, replace(SENT, sql="CREATE .. RETURN 2"))),
            replace(MADE, text="RETURN 2;"),
            False,
            id="one of several statements",
        ),
        pytest.param(ProgramMark("function", MADE.key, sent=(SENT,)), replace(MADE, text=None), False, id="not shown"),
        pytest.param(
            ProgramMark("view", V, sent=(replace(SENT, sql="CREATE VIEW v AS SELECT 1"),)),
            Program(V, "view", "select 1 AS `1`", {DEFINER: "a@%", SECURITY: "DEFINER"}),
            False,
            id="a view, by its account",
        ),
        pytest.param(
            ProgramMark("view", V, sent=(replace(SENT, sql="CREATE VIEW v AS SELECT 1"),)),
            Program(V, "view", "select 1 AS `1`", {DEFINER: "a@%", SECURITY: "INVOKER"}),
            True,
            id="a view of another account",
        ),
        pytest.param(ProgramMark("function", MADE.key), MADE, False, id="nothing is known of it"),
    ],
)
def test_what_the_window_makes_is_as_it_was_or_as_a_statement_of_it_says(
    mark: ProgramMark, now: Program, is_other: bool
) -> None:
    assert changed([mark], [now]) == ([mark] if is_other else [])


def test_accounts_of_a_text_and_of_a_catalogue_are_compared_in_one_spelling() -> None:
    assert account_of("r@") == account_of("r@%") == "r@%"
    assert account_of("a@b@LocalHost") == "a@b@localhost"
