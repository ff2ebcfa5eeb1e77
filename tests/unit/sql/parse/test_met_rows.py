"""Statements whose result depends on rows that are there already."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.met_rows import met_rows


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("INSERT INTO hits VALUES (1, 1) ON DUPLICATE KEY UPDATE n = n + 1", "ON DUPLICATE KEY UPDATE"),
        ("INSERT IGNORE INTO hits VALUES (1, 1)", "IGNORE"),
        ("LOAD DATA INFILE 'x' IGNORE INTO TABLE hits", "IGNORE"),
        ("INSERT INTO daily SELECT day, COUNT(*) FROM hits GROUP BY day", "a query"),
        ("REPLACE INTO daily SELECT * FROM hits", "a query"),
        ("INSERT INTO daily TABLE hits", "a query"),
        ("REPLACE INTO daily TABLE hits", "a query"),
        ("INSERT INTO daily VALUES ((SELECT MAX(n) FROM hits))", "a query"),
        ("UPDATE daily SET n = (SELECT COUNT(*) FROM hits)", "a query"),
        ("UPDATE daily JOIN hits USING (id) SET daily.n = hits.n", "a join"),
        ("UPDATE daily, hits SET daily.n = hits.n, hits.n = 0 WHERE daily.id = hits.id", "a join"),
        ("UPDATE hits SET n = 0, m = 1 WHERE id = 1", None),
        ("UPDATE hits SET n = 0 ORDER BY id LIMIT 1", "LIMIT"),
        ("BEGIN DECLARE x INT; SELECT COUNT(*) INTO x FROM hits; END", "a query"),
        ("INSERT INTO hits VALUES (1, 1)", None),
        ("INSERT INTO hits SELECT 1, 2 FROM DUAL", None),
        ("INSERT INTO hits SET d = EXTRACT(YEAR FROM '2024-01-01')", None),
        ("LOAD DATA INFILE 'x' INTO TABLE hits", None),
        ("REPLACE INTO hits VALUES (1, 1)", None),
        ("UPDATE hits SET n = n + 1 WHERE id = 1", None),
        ("DELETE FROM hits WHERE id = 1", None),
        ("UPDATE hits SET s = CONVERT(s USING utf8mb4) WHERE id = 1", None),
        ("UPDATE hits SET s = CHAR(65 USING latin1) WHERE id = 1", None),
        ("UPDATE hits FORCE INDEX (a, b) SET n = 1 WHERE id = 1", None),
        ("UPDATE hits PARTITION (p0, p1) SET n = 1 WHERE id = 1", None),
        ("UPDATE (daily, hits) SET daily.n = 1", "a join"),
        ("SET STATEMENT max_statement_time = 1 FOR UPDATE daily, hits SET daily.n = hits.n", "a join"),
        ("BEGIN UPDATE hits SET n = 1; UPDATE daily, hits SET daily.n = hits.n; END", "a join"),
        ("DELETE FROM daily USING daily, hits WHERE daily.n = CHAR(hits.n USING latin1)", "a join"),
        (
            "CREATE TRIGGER x AFTER UPDATE ON t FOR EACH ROW"
            " BEGIN INSERT INTO hits VALUES (NEW.a, OLD.a); UPDATE daily SET n = 1 WHERE id = NEW.id; END",
            None,
        ),
        ("INSERT INTO hits SELECT EXTRACT(YEAR FROM NOW())", None),
        ("INSERT INTO hits VALUES ((SELECT TRIM('x' FROM 'xy')))", None),
        ("INSERT INTO hits SELECT SUBSTRING('abc' FROM 2) FROM DUAL", None),
        ("INSERT INTO hits SELECT TRIM('x' FROM (SELECT s FROM daily))", "a query"),
        ("INSERT INTO hits SELECT TRIM('x' FROM s) FROM daily", "a query"),
    ],
)
def test_what_finds_rows_that_are_there_is_read(sql: str, what: str | None) -> None:
    tokens: list[Token] = []
    lex(sql, Dialect(Flavor.MYSQL), tokens)
    assert met_rows(tokens) == what
