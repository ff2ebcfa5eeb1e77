"""Which words of a body are calls of functions that nobody knows."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, TableKey
from binlane.precheck.statements.body_parts import Body
from binlane.precheck.statements.function_names import _calls_of_body
from binlane.sql.programs.comparison import Difference
from binlane.sql.temporary_routines import tokens_of


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
