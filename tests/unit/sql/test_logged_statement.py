from __future__ import annotations

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext
from binlane.sql.logged_statement import LoggedText
from binlane.sql.programs.changes import defined_keys, object_of, program_changes

CLAUSES = (
    "SET STATEMENT max_sort_length = 5 FOR ",
    "SET STATEMENT max_sort_length = (SELECT 5), old_mode = '' FOR SET STATEMENT optimizer_switch = 'x' FOR ",
)
STATEMENTS = (
    "ALTER FUNCTION app.view SQL SECURITY INVOKER",
    "ALTER FUNCTION view SQL SECURITY INVOKER",
    "CREATE DEFINER=`u`@`h` FUNCTION app.f() RETURNS INT SQL SECURITY INVOKER BEGIN DELETE FROM x; RETURN 1; END",
    "DROP FUNCTION sys_eval",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TABLE app.t (a INT) ENGINE=MyISAM",
    "ALTER TABLE app.t ENGINE=MyISAM",
    "DROP TABLE a, b",
    "DROP DATABASE app",
    "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW DELETE FROM app.x",
)


def logged(sql: str) -> LoggedText:
    item = Item(ItemKind.DDL, sql.encode(), context=SessionContext(database="app"))
    found = LoggedText.of(7, LogPosition("b.000001", 4), item, Flavor.MARIADB)
    assert found is not None
    return found


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("clause", CLAUSES)
def test_a_clause_in_front_changes_nothing_of_what_a_statement_is(clause: str, statement: str) -> None:
    plain, behind = logged(statement), logged(clause + statement)

    assert behind.words == plain.words
    assert object_of(behind.tokens) == object_of(plain.tokens) != ""
    for of in (program_changes, defined_keys):
        assert list(of(behind.tokens, behind.facts, "app")) == list(of(plain.tokens, plain.facts, "app"))
    assert behind.dropped_databases == plain.dropped_databases
    assert [behind.sql[slice(*place)] for place in behind.places] == [
        plain.sql[slice(*place)] for place in plain.places
    ]
    assert behind.sql == clause + statement


def test_what_a_clause_calls_is_named() -> None:
    text = logged("SET STATEMENT max_sort_length = (SELECT app.f()) FOR DROP TABLE t")

    assert [token.text for token in text.every_token][:5] == ["max_sort_length", "=", "(", "SELECT", "app"]
    assert text.words == ("DROP", "TABLE", "T")


def test_a_function_that_is_called_view_is_a_function() -> None:
    assert object_of(logged("ALTER FUNCTION view SQL SECURITY INVOKER").tokens) == "FUNCTION"
    assert object_of(logged("CREATE OR REPLACE ALGORITHM=MERGE DEFINER=u@h VIEW function AS SELECT 1").tokens) == "VIEW"
