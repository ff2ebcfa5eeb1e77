"""Which tables a statement writes, apart from those that it reads."""

from __future__ import annotations

import itertools

import pytest

from binlane.model import Flavor
from binlane.sql.logged_kinds import SYSTEM_TABLES, not_logged
from binlane.sql.parse.analyze import analyze
from binlane.sql.parse.lexer import Dialect

CASES = [
    ("INSERT INTO a SELECT * FROM b", "d.a"),
    ("REPLACE x.a (id) VALUES ((SELECT MAX(id) FROM b))", "x.a"),
    ("INSERT INTO a (id) VALUES (1) ON DUPLICATE KEY UPDATE id = (SELECT 1 FROM b)", "d.a"),
    ("LOAD DATA INFILE 'f' INTO TABLE a SET id = (SELECT 1 FROM b)", "d.a"),
    ("UPDATE a SET x = (SELECT y FROM b LIMIT 1)", "d.a"),
    ("UPDATE LOW_PRIORITY a AS t SET t.x = 1, y = 2 WHERE z IN (SELECT z FROM b)", "d.a"),
    ("UPDATE a, b SET a.x = b.x", "d.a"),
    ("UPDATE a AS s JOIN x.b t USING (id) SET T.x = s.x, t.y = (SELECT 1 FROM c, e)", "x.b"),
    ("UPDATE (a JOIN b ON a.id = b.id) LEFT JOIN c ON TRUE SET b.x = 1, d.c.x = 2", "d.b d.c"),
    ("UPDATE a JOIN (SELECT id FROM b) s ON s.id = a.id SET x = 1", "d.a"),
    ("UPDATE a JOIN b SET x = 1", "d.a d.b"),
    ("WITH q AS (SELECT * FROM b) UPDATE a JOIN q ON a.id = q.id SET a.x = q.x", "d.a"),
    ("DELETE FROM a WHERE id IN (SELECT id FROM b)", "d.a"),
    ("DELETE a FROM a JOIN b ON a.id = b.id", "d.a"),
    ("DELETE t.*, x.c FROM a JOIN b AS t JOIN x.c", "d.b x.c"),
    ("DELETE FROM t USING a AS t JOIN b", "d.a"),
    ("DELETE FROM a PARTITION (p) WHERE id = 1", "d.a"),
    ("UPDATE x.t JOIN y.t ON x.t.id = y.t.id SET x.t.n = x.t.n + y.t.n", "x.t"),
    ("UPDATE x.t, y.t, y.z SET x.t.n = 1", "x.t"),
    ("UPDATE x.t, y.t, y.z SET t.n = 1", "x.t y.t"),
    ("UPDATE x.t AS s, y.t SET x.s.n = 1", "x.t"),
    ("UPDATE x.t AS s, y.t SET t.n = 1", "y.t"),
    ("UPDATE x.t, y.t SET Y.T.n = 1", "y.t"),
    ("UPDATE x.t, x.T, y.z SET x.t.n = 1", "x.t x.T"),
    ("UPDATE x.t, y.z SET other.t.n = 1", "x.t y.z"),
    ("DELETE x.t FROM x.t JOIN y.t", "x.t"),
    ("DELETE t FROM x.t JOIN y.t", "x.t y.t"),
    ("DELETE X.T FROM x.t JOIN y.z", "x.t"),
    ("DELETE MYSQL.user FROM mysql.user", "mysql.user"),
    ("DELETE FROM X.T USING x.t JOIN x.z", "x.t"),
    ("DELETE x.t FROM x.t AS s JOIN y.t", "x.t"),
    ("SELECT * FROM a", ""),
    ("CREATE TABLE a LIKE b", ""),
]


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(("sql", "written"), CASES)
def test_a_statement_tells_the_tables_that_it_writes(sql: str, written: str, flavor: Flavor) -> None:
    facts = analyze(sql, database="d", flavor=flavor)
    assert facts.reason is None
    assert {str(key) for key in facts.written} == set(written.split())
    assert facts.written <= facts.tables


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_table_of_the_servers_own_is_named_beside_one_of_its_name(flavor: Flavor) -> None:
    sql = "UPDATE mysql.global_priv, app.global_priv SET mysql.global_priv.priv = '..'"
    facts = analyze(sql, database="d", flavor=flavor)
    assert not_logged(sql, facts, Dialect(flavor), (10, 11, 0), "d") == SYSTEM_TABLES


KEYWORDS = ("where", "order", "limit", "set", "from", "using", "for", "join", "before", "returning", "select")
"""Behind a dot each is a plain column to both servers."""


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("word", KEYWORDS)
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE b FROM x.a a JOIN y ON a.{word} = y.z JOIN x.b b ON 1",
        "DELETE FROM b USING x.a a JOIN y ON a.{word} = y.z JOIN x.b b ON 1",
        "WITH q AS (SELECT 1 AS c) DELETE b FROM x.a a JOIN y ON a.{word} = y.z JOIN x.b b ON 1 JOIN q ON 1",
        "UPDATE x.a a JOIN y ON a.{word} = y.z JOIN x.b b ON 1 SET b.c = a.{word} WHERE a.{word} = 1",
        "UPDATE x.a a JOIN x.b b ON a.c = b.c SET b.{word} = 1, b.c = 2 ORDER BY a.{word}",
    ],
)
def test_a_column_with_the_name_of_a_clause_ends_no_list_of_tables(sql: str, word: str, flavor: Flavor) -> None:
    facts = analyze(sql.format(word=word), database="d", flavor=flavor)
    assert facts == analyze(sql.format(word=f"`{word}`"), database="d", flavor=flavor)
    assert {str(key) for key in facts.written} == {"x.b"}


def test_all_tables_count_as_changed_where_the_changed_one_is_not_in_the_list() -> None:
    facts = analyze(
        "DELETE b, x.a FROM x.a JOIN x.c ON x.a.i IN (SELECT i FROM x.e)", database="d", flavor=Flavor.MYSQL
    )
    assert {str(key) for key in facts.written} == {"x.a", "x.c", "x.e"}


TABLES = ("t", "x.t", "y.t", "x.T", "Y.u", "x.t AS s", "y.u AS S", "u v", "(SELECT 1) AS q")
QUALIFIERS = ("", "t.", "T.", "x.t.", "y.t.", "X.t.", "s.", "S.", "x.s.", "u.", "v.", "y.U.", "nowhere.", "a.b.")


@pytest.mark.parametrize("size", [1, 2, 3])
def test_whatever_the_qualifier_a_table_is_changed(size: int) -> None:
    for tables in itertools.permutations(TABLES, size):
        if tables == ("(SELECT 1) AS q",):
            continue
        for qualifier in QUALIFIERS:
            update = f"UPDATE {', '.join(tables)} SET {qualifier}n = 1"
            facts = analyze(update, database="x", flavor=Flavor.MARIADB)
            names = [each.partition(" ")[0] for each in tables if not each.startswith("(")]
            keys = [each if "." in each else f"x.{each}" for each in names]
            written = {str(key).lower() for key in facts.written}
            assert written, update
            meant = {key.lower() for key in keys if f"{key}.".lower() == qualifier.lower()}
            assert meant <= written, update
