"""The kinds of ``[filter.kinds]`` that a statement has."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.parse.analyze import StatementKind, analyze
from binlane.sql.parse.lexer import Dialect
from binlane.sql.statement_kinds import kinds_of


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("ALTER TABLE app.t RENAME TO app.selected", {"alter", "rename"}),
        # behind a dot each word is a name
        ("ALTER TABLE app.t RENAME TO app.select", {"alter", "rename"}),
        ("ALTER TABLE app.t RENAME app.references", {"alter", "rename"}),
        ("ALTER TABLE app.rename ADD c INT", {"alter"}),
        ("ALTER TABLE app.t RENAME COLUMN a TO b", {"alter"}),
        ("WITH q AS (SELECT 1) UPDATE t JOIN q SET t.a = q.delete", set()),
    ],
)
def test_the_kinds_of_a_statement(sql: str, kinds: set[str], flavor: Flavor) -> None:
    assert kinds_of(sql, analyze(sql, database="d", flavor=flavor), Dialect(flavor)) == kinds


@pytest.mark.parametrize(
    ("sql", "kinds"),
    [
        ("ALTER TABLE t ADD c INT, RENAME TO u, ADD NOBODY KNOWS WHAT SELECT", {"alter", "rename"}),
        ("ALTER TABLE t RENAME INDEX a TO b, RENAME COLUMN c TO d, ADD NOBODY KNOWS WHAT SELECT", {"alter"}),
    ],
)
def test_an_alter_that_is_not_read_has_all_kinds_that_its_words_may_mean(sql: str, kinds: set[str]) -> None:
    facts = analyze(sql, database="d", flavor=Flavor.MYSQL)
    assert facts.kind is StatementKind.UNKNOWN
    assert kinds_of(sql, facts, Dialect(Flavor.MYSQL)) == kinds
