"""The names of a view's columns, put into its query."""

from __future__ import annotations

import json

import pytest

from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.view_columns import named_by, with_column_list

PRINTED = {
    "select `t`.`a` AS `a`,`t`.`b` AS `b` from `t`": "select `t`.`a` AS `x`,`t`.`b` AS `y``z` from `t`",
    "select distinct concat('AS, `q`',`t`.`a`) AS `a`,(select 1 AS `one`) AS `b` from `t` where (1 in (2))": (
        "select distinct concat('AS, `q`',`t`.`a`) AS `x`,(select 1 AS `one`) AS `y``z` from `t` where (1 in (2))"
    ),
    "with `c` (`k`) as (select 1 AS `1`,2 AS `2`) select `c`.`k` AS `k`,3 AS `3` from `c`": (
        "with `c` (`k`) as (select 1 AS `1`,2 AS `2`) select `c`.`k` AS `x`,3 AS `y``z` from `c`"
    ),
    "(select 1 AS `1`,2 AS `2`) union (select 3 AS `3`,4 AS `4`)": (
        "(select 1 AS `x`,2 AS `y``z`) union (select 3 AS `3`,4 AS `4`)"
    ),
    "select 1 AS `x`,2 AS `2`": "select 1 AS `x`,2 AS `y``z`",
    "values row(1,2)": "(`x`,`y``z`) as values row(1,2)",
    "select 1 AS `1` from `t`": "(`x`,`y``z`) as select 1 AS `1` from `t`",
    "select 'open": "(`x`,`y``z`) as select 'open",
}
LISTED = {
    "CREATE VIEW v (x, y) AS SELECT a, b + 1 c FROM t": "CREATE VIEW v (x, y) AS SELECT a AS x, b + 1 AS y FROM t",
    "CREATE SQL SECURITY INVOKER VIEW IF NOT EXISTS d.`v` (`x`, y) AS (SELECT a AS a, f(b, c) FROM t)": (
        "CREATE SQL SECURITY INVOKER VIEW IF NOT EXISTS d.`v` (`x`, y) AS (SELECT a AS x, f(b, c) AS y FROM t)"
    ),
    "ALTER VIEW v (x) AS WITH c AS (SELECT 1) SELECT k FROM c WITH CHECK OPTION": (
        "ALTER VIEW v (x) AS WITH c AS (SELECT 1) SELECT k AS x FROM c WITH CHECK OPTION"
    ),
    "CREATE VIEW v (x) AS SELECT a": "CREATE VIEW v (x) AS SELECT a AS x",
    "CREATE VIEW v AS SELECT a, b FROM t": "CREATE VIEW v AS SELECT a, b FROM t",
    "CREATE VIEW v (x, y) AS SELECT * FROM t": "CREATE VIEW v (x, y) AS SELECT * FROM t",
    "CREATE VIEW v (x, y) AS SELECT t.*, 1 FROM t": "CREATE VIEW v (x, y) AS SELECT t.*, 1 FROM t",
    "CREATE VIEW v (x": "CREATE VIEW v (x",
}


def tokens(text: str) -> list[Token]:
    found = list[Token]()
    lex(text, Dialect(Flavor.MYSQL), found)
    return found


@pytest.mark.parametrize(("definition", "named"), PRINTED.items())
def test_a_printed_query_gets_the_names_of_the_columns(definition: str, named: str) -> None:
    names = json.dumps({"2": "y`z", "1": "x"})
    assert named_by(definition, names) == named


def test_columns_stand_by_their_places_and_not_by_their_numbers_text() -> None:
    definition = f"select {','.join(f'{n} AS `{n}`' for n in range(1, 12))}"
    assert named_by(definition, json.dumps({str(n): f"c{n}" for n in (1, 10, 11, *range(2, 10))})).endswith("AS `c11`")


@pytest.mark.parametrize(("statement", "named"), LISTED.items())
def test_a_statement_gets_the_names_of_its_list(statement: str, named: str) -> None:
    found = [(token.text, token.upper) for token in with_column_list(tokens(statement))]
    assert [text for text, _ in found] == [token.text for token in tokens(named)]
