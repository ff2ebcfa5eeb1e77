"""Which words of a body are calls of functions that nobody knows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, TableKey
from binlane.precheck.bodies.body_parts import Body
from binlane.precheck.bodies.function_names import _calls_of_body
from binlane.precheck.situation.situation import Needs
from binlane.sql.logged_statement import LoggedText
from binlane.sql.programs.comparison import Difference
from binlane.sql.temporary_routines import tokens_of
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import PLAN, said, situation, target_of


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("body", "called"),
    [
        ("RETURN (SELECT 1)", []),
        ("BEGIN DECLARE a DEC(5, 2); DECLARE b NUMERIC(5); DECLARE c, d MEDIUMINT(3); DECLARE e BLOB(4); END", []),
        ("BEGIN IF (a) THEN SET x = 1; ELSEIF (b) THEN SET x = 2; END IF; WHILE (a) DO SET a = 0; END WHILE; END", []),
        ("SET x = (SELECT 1 FROM t USE INDEX (a) WHERE MATCH (a) AGAINST ('x'))", []),
        ("BEGIN CREATE TEMPORARY TABLE t (a INT, UNIQUE (a), CHECK (a)); END", []),
        ("RETURN sys_exec('x')", ["sys_exec"]),
        ("RETURN `return` ('x')", ["return"]),
    ],
)
def test_a_word_of_the_grammar_is_no_function(body: str, called: list[str], flavor: Flavor) -> None:
    difference = Difference(TableKey("d", "f()"), "function d.f", "", "")
    found = _calls_of_body(Body(difference, "d", tokens_of(body, flavor) or (), True), frozenset(), flavor)
    assert [call.name for call in found] == called


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("statement", "has_finding"),
    [
        ("CREATE TABLE t (a TEXT DEFAULT (sys_eval('id')))", True),
        ("ALTER TABLE t ADD a TEXT AS (`sys_eval`('id')) VIRTUAL", True),
        ("CREATE TABLE t (a TEXT DEFAULT (other('id')))", False),
        ("CREATE TABLE t (a CHAR(36) DEFAULT (uuid()), sys_eval INT, KEY sys_eval (sys_eval, a(9)))", False),
        ("CREATE PROCEDURE p() SELECT sys_eval('id')", False),
        ("CREATE TABLE t SELECT a FROM b WHERE MATCH(a) AGAINST ('x')", False),
        ("CREATE TABLE t (c INT) WITH x (a) AS (SELECT 1) SELECT a FROM x WHERE a = ANY (SELECT 1)", False),
        ("CREATE TABLE t IGNORE (SELECT 1)", False),
        ("CREATE TABLE t (a JSON, CHECK (1 MEMBER OF (a)))", False),
        ("CREATE TABLE t (a TEXT DEFAULT (sys_eval('id'))) SELECT 1 AS b", True),
        ("CREATE TABLE t (`select` INT, c INT AS (t.select + 1), b TEXT DEFAULT (sys_eval('id')))", True),
        ("CREATE TABLE t (a INT, c INT AS ((SELECT 1)), b TEXT DEFAULT (sys_eval('id')))", True),
        ("ALTER TABLE t ADD c INT AS (t.select + 1), ADD b TEXT DEFAULT (sys_eval('id'))", True),
    ],
)
def test_a_column_computes_with_no_library_of_the_target_alone(
    statement: str, has_finding: bool, flavor: Flavor
) -> None:
    """Of an archive, which has no server to ask."""
    item = Item(ItemKind.DDL, statement.encode())
    text = LoggedText.of(5, LogPosition("binlog.000007", 4711), item, flavor)
    target = target_of(Flavor.MARIADB)
    grammar = {f"{word} ()" for word in ("AGAINST", "ANY", "IGNORE", "OF", "x")}
    own = frozenset({"sys_eval()", "`sys_eval`()", *grammar})
    object.__setattr__(target, "ask", lambda _read, spellings: own & {*spellings})
    made = situation(target, replace(PLAN, flavor=flavor), texts=[text])
    found = said(made, "function-names")
    assert bool(found) is has_finding
    assert all("sys_eval()" in each for each in found)


@pytest.mark.parametrize(
    ("call", "flavor", "is_refused"),
    [
        ("mariadb_schema.setval(1)", Flavor.MYSQL, True),
        ("`MariaDB_Schema`.`setval`(1)", Flavor.MYSQL, True),
        ("oracle_schema.setval (1)", Flavor.MYSQL, True),
        ("mariadb_schema.other(1)", Flavor.MYSQL, False),
        ("app.setval(1)", Flavor.MYSQL, False),
        ("x.mariadb_schema.setval(1)", Flavor.MARIADB, False),
        ("mariadb_schema.setval(1)", Flavor.MARIADB, False),
    ],
)
def test_a_function_behind_a_schema_of_mariadb_s_own_is_mariadb_s(call: str, flavor: Flavor, is_refused: bool) -> None:
    """A database of MySQL may have that name, and functions like MariaDB's."""
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000007", 4711), "", 0.0)
    logged = LaneStatement(0, header, Item(ItemKind.STATEMENT, f"INSERT INTO app.t VALUES ({call})".encode()))
    target, own = target_of(Flavor.MARIADB), frozenset({"setval()", "setval ()", "`setval`()"})
    object.__setattr__(target, "ask", lambda _read, spellings: own & {*spellings})
    made = situation(target, replace(PLAN, flavor=flavor), needs=Needs(statements=True))
    vars(made).update(
        # MySQL has a stored function of that name in its database
        source=SimpleNamespace(ask=lambda _read, spellings: own & {*spellings}),
        stored_triggers=((), ()),
        stored_programs=((), ()),
        program_names=frozenset({"setval", "other"}),
        transactions_with=lambda pattern: [(logged, header)] if pattern.search(logged.item.payload) else [],
    )
    found = said(made, "function-names")
    assert bool(found) is is_refused
    assert all("MariaDB calls its own functions behind this name" in each for each in found)
