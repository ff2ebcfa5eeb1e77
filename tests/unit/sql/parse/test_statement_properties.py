"""What holds for every text: no exception, a reason for what is unknown, equal facts for equal meaning, in time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlane.model import Flavor
from binlane.sql.parse.analyze import StatementFacts, StatementKind, analyze
from tests.tiers import examples

VOCABULARY = """
INSERT INTO UPDATE DELETE FROM SELECT WHERE SET VALUES WITH AS JOIN ON USING CREATE ALTER DROP RENAME TABLE
VIEW TRIGGER PROCEDURE FUNCTION INDEX LIKE TO EXISTS IF NOT TEMPORARY DEFINER = LOAD DATA INFILE CALL DO UNION
ALL PARTITION FOR OF RETURNING REFERENCES EXCHANGE CONVERT BEGIN XA COMMIT t u a.b `x`.`y` ( ) , . ; 1 'x' "y"
@v f( /*!50001 */ -- # ` ' * + DEFAULT DUPLICATE KEY NEXT VALUE NEXTVAL( EVENT DATABASE USER LOCK TABLES READ
STATEMENT PORTION BEFORE
"""
SOUP = st.lists(st.sampled_from([*VOCABULARY.split(), "\n"]), max_size=25).map(" ".join)


def read(sql: str, flavor: Flavor = Flavor.MARIADB, database: str | None = "d") -> StatementFacts:
    return analyze(sql, database=database, flavor=flavor)


def check(facts: StatementFacts) -> None:
    assert (facts.kind is StatementKind.UNKNOWN) == (facts.reason is not None)
    assert facts.reason != ""
    assert {table.database for table in facts.tables} <= facts.databases
    assert facts.references <= facts.databases
    assert facts.views | facts.triggered <= facts.tables


@settings(max_examples=examples(400), deadline=None)
@given(sql=st.text(max_size=80) | SOUP, flavor=st.sampled_from(Flavor), ansi=st.booleans(), plain=st.booleans())
def test_any_text_gives_facts_and_every_unknown_a_reason(sql: str, flavor: Flavor, ansi: bool, plain: bool) -> None:
    check(analyze(sql, database="d", sql_mode_ansi_quotes=ansi, no_backslash_escapes=plain, flavor=flavor))


STATEMENT = (
    "INSERT INTO `x`.t (a) SELECT f(b) FROM u JOIN c.d ON u.i = d.i WHERE z IN (1, 'q') "
    "ON DUPLICATE KEY UPDATE a = VALUES(a)"
)


def test_every_cut_of_a_statement_gives_facts() -> None:
    for end in range(len(STATEMENT)):
        check(read(STATEMENT[:end]))


@settings(max_examples=examples(100), deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_the_content_of_a_string_does_not_change_the_facts(text: str) -> None:
    literal = "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
    assert read(f"INSERT INTO t SELECT 1 FROM e.u WHERE a = {literal}") == read(
        "INSERT INTO t SELECT 1 FROM e.u WHERE a = 'x'"
    )
    assert read(f"INSERT INTO t VALUES ({literal}), (1)") == read("INSERT INTO t VALUES (1)")


@settings(max_examples=examples(100), deadline=None)
@given(name=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd"), min_size=1, max_size=20))
def test_any_quoted_name_is_read_as_itself(name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    for sql in (
        f"INSERT INTO {quoted}.t VALUES (1)",
        f"DROP TABLE {quoted}.t",
        f"UPDATE {quoted}.t SET a = (SELECT 1)",
    ):
        assert read(sql).databases == {name}
    assert read(f"INSERT INTO x.t SELECT 1 FROM {quoted}.{quoted}").databases == {"x", name}


MILLION = 1_000_000
INTO_T = "INSERT INTO t VALUES "


def rows(row: str) -> str:
    return ",".join([row] * (MILLION // len(row)))


@pytest.mark.parametrize(
    ("sql", "databases"),
    [
        pytest.param(INTO_T + rows("(1,'it''s \\' x',NULL,-1.5e3,x'41',NOW())"), {"d"}, id="literals"),
        pytest.param(INTO_T + rows("(1,'a')") + ",((SELECT 1 FROM e.u),1)", {"d", "e"}, id="query-last"),
        pytest.param(f"{INTO_T}((SELECT 1 FROM e.u)),{rows('(1,2)')},(x.f(1),2)", {"d", "e", "x"}, id="call-last"),
        pytest.param(
            "DELETE FROM t WHERE id IN (" + rows("12345") + ", (SELECT 1 FROM e.u))", {"d", "e"}, id="in-list"
        ),
        pytest.param("INSERT INTO t VALUES ('" + MILLION * "x" + "')", {"d"}, id="blob"),
        pytest.param("INSERT INTO t VALUES (1, '" + MILLION * "\\'", set(), id="open-blob"),
        pytest.param("INSERT INTO t SELECT " + 100_000 * "(", set(), id="parentheses"),
        pytest.param("SELECT " + 20_000 * "f(" + "1" + 20_000 * ")", set(), id="calls"),
        pytest.param("/*" * 500_000, set(), id="comments"),
        pytest.param("DELETE FROM t WHERE " + 50_000 * "a = 1 OR " + "b", set(), id="conditions"),
        pytest.param("SELECT " + 20_000 * "NOT " + "1", set(), id="operators"),
    ],
)
def test_a_huge_statement_takes_seconds_at_most(sql: str, databases: set[str]) -> None:
    started = time.process_time()
    facts = read(sql)
    assert time.process_time() - started < 10
    check(facts)
    assert facts.databases == databases


@pytest.mark.parametrize("depth", [20, 60, 95])
@pytest.mark.parametrize(
    ("left", "right"), [("(", ")"), ("(a = 1 OR ", ")"), ("CAST(", " AS CHAR)"), ("(SELECT ", ")")]
)
def test_nesting_is_read_alike_wherever_it_is_read(left: str, right: str, depth: int) -> None:
    """A parser that recurses must not depend on how deep its caller already is."""
    sql = f"DELETE FROM t WHERE {left * depth}b{right * depth}"

    def deeper(frames: int) -> StatementFacts:
        return deeper(frames - 1) if frames > 0 else analyze(sql + " ", database="d", flavor=Flavor.MYSQL)

    assert deeper(700) == analyze(sql, database="d", flavor=Flavor.MYSQL)
    assert deeper(0).reason is None


def test_nesting_beyond_the_bound_is_unknown() -> None:
    assert read("SELECT " + "(" * 101 + "1" + ")" * 101).reason == "a query nested too deeply"


def test_nested_operators_that_are_types_too_are_read_in_time() -> None:
    nested = "BINARY (" * 60 + "SELECT a FROM d1.t" + ")" * 60
    assert read(f"UPDATE d1.u SET a = {nested}").databases == {"d1"}
    assert read("SELECT CAST(a AS BINARY(5)), CONVERT(a, BINARY (5)), BINARY(a) FROM d1.t").reason is None
