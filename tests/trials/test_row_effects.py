"""Bodies that run once for each row, on servers that take the rows in another order: equal, or refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.window.conftest import ChannelOf, run_on

ROWS: Final = ("(1, 1)", "(2, 1)", "(3, 2)", "(4, 2)")
TABLES: Final = (
    "CREATE DATABASE tenant_1",
    "USE tenant_1",
    "CREATE TABLE k (v INT, w INT)",
    "CREATE TABLE kk (id INT PRIMARY KEY, v INT, s INT, KEY (s))",
    "CREATE TABLE o (id INT PRIMARY KEY, v INT, UNIQUE (v))",
    "CREATE TABLE u (a INT, b INT, n INT, UNIQUE (a))",
    "CREATE TABLE p (id INT PRIMARY KEY, v INT, f DOUBLE DEFAULT 0, t VARCHAR(99) DEFAULT '')",
    "INSERT INTO p (id, v) VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
    "INSERT INTO kk VALUES (1, 1, 1), (2, 2, 1), (3, 3, 1)",
)
UPDATE: Final = "UPDATE k SET w = w + 1"
AFTER: Final = "CREATE TRIGGER tr AFTER UPDATE ON k FOR EACH ROW "
BEFORE: Final = "CREATE TRIGGER tr BEFORE UPDATE ON k FOR EACH ROW "
MIRROR: Final = "CREATE TRIGGER tr AFTER UPDATE ON kk FOR EACH ROW "
FUNCTION: Final = "CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC "
FELT: Final = {
    f"{AFTER}REPLACE INTO o VALUES (NEW.v, 1)": UPDATE,
    "CREATE TRIGGER tr AFTER DELETE ON k FOR EACH ROW REPLACE INTO o VALUES (OLD.v, 1)": "DELETE FROM k",
    f"{AFTER}INSERT INTO u VALUES (1, NEW.v, 1) ON DUPLICATE KEY UPDATE b = NEW.v": UPDATE,
    f"{AFTER}INSERT INTO u VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE n = n + NEW.v": UPDATE,
    f"{AFTER}INSERT IGNORE INTO u VALUES (1, NEW.v, 1)": UPDATE,
    "CREATE TRIGGER tr AFTER INSERT ON p FOR EACH ROW REPLACE INTO o VALUES (NEW.id, 1)": (
        "INSERT INTO p (id, v) SELECT v + 10, w FROM k"
    ),
    f"{AFTER}UPDATE p SET v = NEW.v WHERE id = 1": UPDATE,
    f"{AFTER}UPDATE p SET v = v * 2 + NEW.v WHERE id = 1": UPDATE,
    f"{AFTER}UPDATE p SET t = CONCAT(t, NEW.v) WHERE id = 1": UPDATE,
    f"{AFTER}UPDATE p SET f = f + NEW.v / 3 WHERE id = 1": UPDATE,
    f"{AFTER}UPDATE p SET v = v - NEW.v WHERE v >= NEW.v AND id = 4": UPDATE,
    f"{AFTER}INSERT INTO o SELECT NEW.v, 1 FROM p WHERE id = 1 AND NOT EXISTS (SELECT 1 FROM o)": UPDATE,
    f"{AFTER}BEGIN IF NOT EXISTS (SELECT 1 FROM o) THEN INSERT INTO o VALUES (NEW.v, 1); END IF; END": UPDATE,
    f"{BEFORE}BEGIN DECLARE EXIT HANDLER FOR 1062 SET NEW.w = 99; INSERT INTO o VALUES (NEW.v, 1); END": UPDATE,
    f"{BEFORE}SET NEW.w = (SELECT SUM(w) FROM k)": UPDATE,
    f"{FUNCTION}MODIFIES SQL DATA BEGIN REPLACE INTO o VALUES (x, 1); RETURN 0; END": "UPDATE k SET w = f(v)",
    f"{FUNCTION}MODIFIES SQL DATA BEGIN UPDATE p SET v = x WHERE id = 1; RETURN 0; END": "UPDATE k SET w = f(v)",
    f"{FUNCTION}MODIFIES SQL DATA BEGIN INSERT INTO u VALUES (x, 1, 1); RETURN (SELECT COUNT(*) FROM u); END": (
        "UPDATE k SET w = f(v)"
    ),
    f"{FUNCTION}READS SQL DATA RETURN (SELECT SUM(w) FROM k)": "UPDATE k SET w = f(v) + v",
    f"{AFTER}BEGIN DELETE FROM u WHERE a = 1; INSERT INTO u VALUES (1, NEW.v, 1); END": UPDATE,
    f"{AFTER}BEGIN INSERT INTO o VALUES (NEW.v * 10 + NEW.w, NEW.v); DELETE FROM o WHERE v < NEW.w; END": UPDATE,
    f"{AFTER}BEGIN UPDATE p SET v = v + 10 - 5 * NEW.v WHERE id = 1; DELETE FROM p WHERE v > 9; END": UPDATE,
    f"{AFTER}BEGIN UPDATE u SET n = 0; INSERT INTO u VALUES (NEW.v, 1, 1); END": UPDATE,
    f"{AFTER}UPDATE p SET v = v + NEW.v ORDER BY v, id LIMIT 1": UPDATE,
    f"{AFTER}BEGIN UPDATE p SET v = v + NEW.v WHERE id = 1; UPDATE p SET f = f + 1 WHERE v < 6; END": UPDATE,
    f"{AFTER}DELETE FROM p WHERE id <= NEW.v ORDER BY id LIMIT 1": UPDATE,
    f"{FUNCTION}MODIFIES SQL DATA BEGIN DELETE FROM o; INSERT INTO o VALUES (x, 1); RETURN 0; END": (
        "UPDATE k SET w = f(v)"
    ),
}
SETTLED: Final = {
    f"{AFTER}DELETE FROM p WHERE id = NEW.v": UPDATE,
    f"{AFTER}INSERT INTO u (a, n) VALUES (NEW.w, NEW.v) ON DUPLICATE KEY UPDATE n = n + NEW.v": UPDATE,
    f"{AFTER}INSERT INTO u (a, n) VALUES (NEW.w, 1) ON DUPLICATE KEY UPDATE n = n + VALUES(n)": UPDATE,
    f"{AFTER}INSERT IGNORE INTO u (a, n) VALUES (NEW.w, 1)": UPDATE,
    f"{AFTER}INSERT INTO u (a, n) VALUES (NEW.w, 1) ON DUPLICATE KEY UPDATE a = a": UPDATE,
    f"{AFTER}IF EXISTS (SELECT 1 FROM u WHERE a = NEW.w) THEN UPDATE u SET n = n + NEW.v WHERE a = NEW.w; "
    "ELSE INSERT INTO u (a, n) VALUES (NEW.w, NEW.v); END IF": UPDATE,
    f"{AFTER}BEGIN INSERT IGNORE INTO u (a, n) VALUES (NEW.w, 0); UPDATE u SET n = n + NEW.v WHERE a = NEW.w; END": (
        UPDATE
    ),
    f"{AFTER}INSERT INTO u (a, n) VALUES (NEW.w, 5) ON DUPLICATE KEY UPDATE n = VALUES(n)": UPDATE,
    f"{AFTER}IF NEW.v > 1 THEN UPDATE p SET v = 7, t = 'x' WHERE id = NEW.w; "
    "ELSE UPDATE p SET t = 'x', v = 7 WHERE id = NEW.w; END IF": UPDATE,
    f"{AFTER}BEGIN DECLARE x INT; SELECT s INTO x FROM kk WHERE id = NEW.v LIMIT 1; "
    "UPDATE p SET v = v + x WHERE id = NEW.w; END": UPDATE,
    f"{AFTER}REPLACE INTO u VALUES (NEW.w, 1, 1)": UPDATE,
    f"{AFTER}UPDATE p SET v = v - OLD.w + NEW.w * 2 WHERE id = 1": UPDATE,
    f"{AFTER}UPDATE p SET v = IFNULL(v, 0) + IFNULL(NEW.w, 0) WHERE id = 1": UPDATE,
    f"{AFTER}UPDATE p SET v = GREATEST(v, NEW.v) WHERE id = 1": UPDATE,
    f"{BEFORE}SET NEW.w = (SELECT v FROM p WHERE id = NEW.v)": UPDATE,
    f"{MIRROR}REPLACE INTO u VALUES (NEW.id, NEW.v, 1)": "UPDATE kk SET v = v + 1 WHERE s = 1",
    f"{MIRROR}INSERT INTO u (a, b) VALUES (NEW.id, NEW.v) ON DUPLICATE KEY UPDATE b = NEW.v": (
        "UPDATE kk SET v = v + 1 WHERE s = 1"
    ),
    f"{AFTER}REPLACE INTO o VALUES (NEW.v, 1) ": "UPDATE k SET w = w + 1 ORDER BY v, w",
    "CREATE TRIGGER tr AFTER INSERT ON k FOR EACH ROW REPLACE INTO o VALUES (NEW.v, 1)": (
        "INSERT INTO k VALUES (7, 7), (8, 8), (6, 6)"
    ),
    f"{FUNCTION}READS SQL DATA RETURN (SELECT v FROM p WHERE id = x)": "UPDATE k SET w = f(v)",
    f"{MIRROR}BEGIN DELETE FROM u WHERE a = OLD.id; INSERT INTO u VALUES (NEW.id, NEW.v, 1); END": (
        "UPDATE kk SET v = v + 1 WHERE s = 1"
    ),
    f"{AFTER}BEGIN DELETE FROM u WHERE a = NEW.w; INSERT INTO u VALUES (NEW.w, 1, 1); END": UPDATE,
    f"{AFTER}BEGIN INSERT INTO u VALUES (NEW.v, NEW.w, 1); DELETE FROM u WHERE b > 2; END": UPDATE,
    f"{AFTER}BEGIN UPDATE p SET v = v - 1 WHERE id = NEW.w; DELETE FROM p WHERE id = NEW.w AND v = 0; END": UPDATE,
    f"{AFTER}DELETE FROM p ORDER BY id LIMIT 1": UPDATE,
}


@pytest.mark.parametrize("family", list(Flavor))
def test_what_a_body_leaves_in_any_order_passes_and_nothing_else(channel_of: ChannelOf, family: Flavor) -> None:
    found = {body: _outcome(channel_of, family, body, statement) for body, statement in {**FELT, **SETTLED}.items()}
    assert {body: told for body, told in found.items() if (told == "equal") != (body in SETTLED)} == {}
    assert {told for body, told in found.items() if body in FELT} == {"refused"}


def _outcome(channel_of: ChannelOf, family: Flavor, body: str, statement: str) -> str:
    channel = channel_of(family, family)
    _make(channel.source, body, ROWS)
    _make(channel.target, body, ROWS[::-1])
    run_on(channel.source, "USE tenant_1", "SET binlog_format = STATEMENT", statement)
    try:
        channel.run()
    except PrecheckError as exc:
        return "refused" if "[row-order]" in str(exc) else f"refused otherwise: {exc}"
    tables = ("k", "kk", "o", "u", "p")
    sides = [
        [sorted(map(repr, server.query(f"SELECT * FROM tenant_1.{name}"))) for name in tables]
        for server in (channel.source, channel.target)
    ]
    return "equal" if sides[0] == sides[1] else "different"


def _make(server: PrivateServer, body: str, rows: Sequence[str]) -> None:
    run_on(server, *TABLES, *(f"INSERT INTO k VALUES {row}" for row in rows), body, log=False)
