"""Which tables a statement writes, apart from those that it reads."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.parse.analyze import analyze

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
