"""What feels the order of rows is told from what a key settles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, TableKey
from binlane.schema.common_values import UNKNOWN_CHARSET
from binlane.schema.model import Column, Key, KeyColumn, Table
from binlane.schema.order_proof import is_settled
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.lexer import Token
from binlane.sql.parse.row_order import fed, feeding, order_felt


def table(name: str, *keys: Key) -> Table:
    columns = (
        *(Column("id", 1, "int", nullable=False), Column("v", 2, "int"), Column("w", 3, "int")),
        *(Column("d", 4, "double"), text("c", 5, "utf8mb4_general_ci"), Column("u", 6, "int", nullable=False)),
        *(text("b", 7, "utf8mb4_bin"), text("s", 8, "utf8mb4_0900_bin"), text("l", 9, "utf8mb4_bin", 2_000)),
        *(Column("j", 10, "json"), Column("x", 11, "varbinary", octets=64), Column("y", 12, "varbinary", octets=2_000)),
        *(Column("made", 13, "varchar", octets=256, charset=UNKNOWN_CHARSET), text("h", 14, "utf8mb4_bin", 9, "char")),
    )
    return Table(TableKey("a", name), "InnoDB", columns, keys)


def text(name: str, ordinal: int, collation: str, length: int = 64, kind: str = "varchar") -> Column:
    return Column(name, ordinal, kind, length=length, octets=4 * length, charset="utf8mb4", collation=collation)


def key(name: str, *columns: str, unique: bool = True) -> Key:
    parts = tuple(KeyColumn(each) for each in columns)
    return Key(name, unique=unique, primary=name == "PRIMARY", columns=parts)


PRIMARY = key("PRIMARY", "id")
TABLES = {
    each.key: each
    for each in (
        table("k"),
        table("p", PRIMARY),
        table("q", PRIMARY),
        replace(table("p", PRIMARY), key=TableKey("o", "p")),
        replace(table("K", PRIMARY), key=TableKey("a", "K")),
        table("i", PRIMARY, key("v", "v", unique=False)),
        table("covered", PRIMARY, key("vw", "v", "w", unique=False), Key("c", False, False, (KeyColumn("c", 3),))),
        table("n", key("v", "v"), key("u", "u")),
        table("two", key("PRIMARY", "v", "w")),
        table("text", key("PRIMARY", "c")),
        Table(TableKey("a", "only"), "InnoDB", (text("c", 1, "utf8mb4_general_ci"),), ()),
        Table(TableKey("a", "numbers"), "InnoDB", (Column("v", 1, "int"), Column("w", 2, "decimal")), ()),
        table("long", key("PRIMARY", "l")),
        table("bytes", key("PRIMARY", "y")),
        table("made", key("PRIMARY", "made")),
        table("prefix", Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("c", 3),))),
    )
}
_SUM = "SUM() of floating-point numbers"
_DISTINCT = "DISTINCT of equal values that may differ"
_MIN = "MIN() of equal values that may differ"
_UNION = "UNION of equal values that may differ"
_JOINED = "an UPDATE by a join that may find several rows for one"
OUTER = (
    "n LEFT JOIN q ON q.id = n.u",
    "n LEFT OUTER JOIN q ON (q.id = n.u)",
    "q RIGHT JOIN n ON q.id = n.u",
    "(n LEFT JOIN q ON q.id = n.u)",
    "n LEFT JOIN (q) ON q.id = n.u",
    "n NATURAL LEFT JOIN q",
)
"""Rows of ``n`` without a partner, all equal to a sort by the other table."""
SEVERAL_ROWS = (
    "UPDATE p JOIN (SELECT v, w FROM k) x ON x.v = p.id SET p.w = x.w",
    "UPDATE p, (SELECT v, w FROM k) x SET p.w = x.w WHERE x.v = p.id",
    "UPDATE p JOIN (SELECT v, w FROM k) AS x ON x.v = p.id SET w = x.w",
    "UPDATE p JOIN (SELECT id, w FROM q UNION ALL SELECT id, v FROM q) x ON x.id = p.id SET p.w = x.w",
    "UPDATE p JOIN (SELECT DAY(c + 1) y, MAX(w) w FROM k GROUP BY DAY(c + 2)) x ON x.y = p.id SET p.w = x.w",
    "UPDATE p JOIN (SELECT v, w FROM k UNION SELECT v, w FROM q) x ON x.v = p.id SET p.w = x.w",
    "UPDATE p JOIN (SELECT v, w FROM k GROUP BY v, w) x ON x.v = p.id SET p.w = x.w",
    "UPDATE p JOIN (SELECT DISTINCT v, w FROM k) x ON x.v = p.id SET p.w = x.w",
    "UPDATE p JOIN (SELECT v, MAX(w) AS w FROM k GROUP BY u) x ON x.v = p.id SET p.w = x.w",
    "UPDATE p JOIN (SELECT v DIV 2 AS y, MAX(w) AS w FROM k GROUP BY v DIV 3) x ON x.y = p.id SET p.w = x.w",
    "UPDATE p JOIN (SELECT v, MAX(w) AS w FROM k GROUP BY v WITH ROLLUP) x ON x.v <=> p.v SET p.w = x.w",
    "UPDATE p JOIN (SELECT q.id, k.w FROM q JOIN k ON k.v = q.id) x ON x.id = p.id SET p.w = x.w",
    "UPDATE p JOIN (SELECT q.id, k.w FROM q LEFT JOIN k ON k.v = q.id) x ON x.id = p.id SET p.w = x.w",
    "UPDATE p JOIN LATERAL (SELECT k.w FROM k WHERE k.v = p.id) x SET p.w = x.w",
    "WITH x AS (SELECT v, w FROM k) UPDATE p JOIN x ON x.v = p.id SET p.w = x.w",
    "WITH q AS (SELECT v AS id, w FROM k) UPDATE p JOIN q ON q.id = p.id SET p.w = q.w",
    "UPDATE p JOIN unknown x ON x.id = p.id SET p.w = x.w",
    "UPDATE p JOIN unknown x ON x.id = p.id SET p.w = other",
    "UPDATE p JOIN k ON k.v = p.id SET p.w = (SELECT k.w)",
    "UPDATE p RIGHT JOIN k ON k.v = p.id SET p.w = k.w",
    "UPDATE p LEFT JOIN q ON q.id = p.v SET q.w = p.w",
    "UPDATE p LEFT JOIN k ON k.v = p.w RIGHT JOIN q ON q.id = p.v SET p.w = k.w",
    "UPDATE p LEFT JOIN k ON k.v = p.w LEFT JOIN q ON q.id = k.u SET p.w = q.w",
)
"""Each row of ``p`` gets a value of one of several others."""
ONE_ROW = (
    "UPDATE p JOIN (SELECT v, SUM(w) AS s, MAX(u) AS m FROM k GROUP BY v) x ON x.v = p.id SET p.w = x.s, p.u = x.m",
    "UPDATE p JOIN (SELECT k.v AS y, COUNT(*) FROM k GROUP BY y) x ON x.y = p.id SET p.w = x.y",
    "UPDATE p JOIN (SELECT v, u, MAX(w) AS m FROM k GROUP BY 1, 2) x ON x.v = p.id AND x.u = p.v SET p.w = x.m",
    "UPDATE p JOIN (SELECT DAYOFYEAR(c) AS y, COUNT(*) n FROM k GROUP BY DAYOFYEAR(c)) x ON x.y = p.id SET p.w = n",
    "UPDATE p JOIN (SELECT DISTINCT v FROM k) x ON x.v = p.id SET p.w = x.v",
    "UPDATE p JOIN (SELECT MAX(v) AS m FROM k) x SET p.w = x.m",
    "UPDATE p JOIN (SELECT id, w FROM q WHERE v = 3) x ON x.id = p.v SET p.w = x.w",
    "UPDATE p JOIN (SELECT * FROM q) x ON x.id = p.v SET p.w = IF(x.w > 3, x.w, NULL)",
    "UPDATE p JOIN (SELECT q.*, n.w AS y FROM q JOIN n ON n.u = q.v) x ON x.id = p.v SET p.w = x.y",
    "UPDATE p JOIN (SELECT q.id, n.w AS y FROM q LEFT JOIN n ON n.u = q.v) x ON x.id = p.v SET p.w = x.y",
    "UPDATE p JOIN (SELECT u, w FROM n WHERE u = 3) x SET p.w = x.w",
    "UPDATE p LEFT JOIN q ON q.id = p.v SET p.w = q.w",
    "UPDATE p RIGHT JOIN q ON q.id = p.v SET p.w = q.w",
    "UPDATE q LEFT JOIN p ON p.v = q.id AND p.u > 3 SET p.w = q.w",
    "UPDATE p LEFT JOIN k ON k.v = p.w RIGHT JOIN q ON q.id = p.v SET p.w = q.w",
    "UPDATE p LEFT JOIN q ON q.id = p.v AND q.w > p.w SET p.w = q.w",
    "WITH x AS (SELECT v, SUM(w) AS s FROM k GROUP BY v) UPDATE p JOIN x ON x.v = p.id SET p.w = x.s",
    "UPDATE p JOIN unknown x ON x.id = p.id SET p.w = 3",
    "UPDATE p JOIN q ON q.id = p.v SET p.w = CASE WHEN q.w > 3 THEN q.w ELSE NULL END",
    "UPDATE p JOIN q ON q.id = p.v SET p.w = (SELECT MAX(k.w) FROM k WHERE k.v = q.id)",
)
OPEN = [
    ("DELETE FROM k ORDER BY v LIMIT 3", "LIMIT"),
    ("DELETE FROM two WHERE CASE WHEN w > 1 AND v = 3 AND w > 2 THEN 1 ELSE 1 END ORDER BY w LIMIT 3", "LIMIT"),
    ("DELETE FROM two WHERE w BETWEEN 0 AND v = 1 ORDER BY w LIMIT 3", "LIMIT"),
    ("DELETE FROM p ORDER BY v LIMIT 3", "LIMIT"),
    ("DELETE FROM n ORDER BY v LIMIT 3", "LIMIT"),
    ("DELETE FROM two ORDER BY v LIMIT 3", "LIMIT"),
    ("DELETE FROM p WHERE id = 3 OR v = 1 ORDER BY v LIMIT 1", "LIMIT"),
    ("DELETE FROM text WHERE c = 0 ORDER BY v LIMIT 1", "LIMIT"),
    ("DELETE FROM unknown ORDER BY id LIMIT 1", "LIMIT"),
    ("INSERT INTO t SELECT v, w FROM k ORDER BY v LIMIT 1", "LIMIT"),
    ("INSERT INTO t SELECT v FROM p ORDER BY v + id LIMIT 1", "LIMIT"),
    ("INSERT INTO t SELECT v AS id, w FROM p ORDER BY id LIMIT 1", "LIMIT"),
    ("INSERT INTO t SELECT v, id AS x, w FROM p ORDER BY 1, 3 LIMIT 3", "LIMIT"),
    ("INSERT INTO t SELECT v, id + v FROM p ORDER BY 1 LIMIT 3", "LIMIT"),
    ("INSERT INTO t VALUES (1, (SELECT w FROM k ORDER BY v LIMIT 1))", "LIMIT"),
    ("INSERT INTO t SELECT p.v, k.w FROM p JOIN k ON p.id = k.v ORDER BY p.id LIMIT 1", "LIMIT"),
    ("INSERT INTO t SELECT v, w FROM p ORDER BY v FETCH FIRST 2 ROWS ONLY", "LIMIT"),
    ("INSERT INTO t SELECT v, w FROM p UNION SELECT v, w FROM q ORDER BY id LIMIT 3", "LIMIT"),
    ("UPDATE joined SET h = o", _JOINED),
    ("UPDATE a.joined AS j SET j.h = j.h + o WHERE h = 3", _JOINED),
    ("UPDATE above SET m = o", _JOINED),
    ("INSERT IGNORE INTO t SELECT v, w FROM k ORDER BY v", "INSERT IGNORE"),
    ("REPLACE INTO t SELECT v, w FROM k ORDER BY v", "REPLACE ... SELECT"),
    ("REPLACE INTO t (SELECT v, w FROM k ORDER BY v)", "REPLACE ... SELECT"),
    ("UPDATE IGNORE p SET v = 1 ORDER BY v", "UPDATE IGNORE"),
    ("UPDATE k SET v = (@a := @a + 1)", "@a, which rows set in turn"),
    ("UPDATE i SET v = (@a := @a + 1) WHERE v > 3", "@a, which rows set in turn"),
    ("UPDATE p SET v = RAND()", "RAND() of each row"),
    ("DELETE FROM p WHERE RAND() < 0.5", "RAND() of each row"),
    ("INSERT INTO t SELECT NEXT VALUE FOR s, v FROM p", "NEXT() of each row"),
    ("INSERT INTO t SELECT w, ROW_NUMBER() OVER () FROM k", "ROW_NUMBER() OVER"),
    ("INSERT INTO t SELECT w, LAG(w) OVER (PARTITION BY v ORDER BY d) FROM k", "LAG() OVER"),
    ("INSERT INTO t SELECT w, LAG(w) OVER x FROM k WINDOW x AS (ORDER BY v)", "LAG() OVER"),
    ("INSERT INTO t SELECT w, SUM(w) OVER (ORDER BY v ROWS 2 PRECEDING) FROM k", "SUM() OVER"),
    ("INSERT INTO t SELECT v, JSON_ARRAYAGG(w) OVER (PARTITION BY v) FROM k", "JSON_ARRAYAGG() OVER"),
    ("INSERT INTO t SELECT v, GROUP_CONCAT(w) FROM k GROUP BY v", "GROUP_CONCAT()"),
    ("INSERT INTO t SELECT v, GROUP_CONCAT(c ORDER BY c) FROM k GROUP BY v", "GROUP_CONCAT()"),
    ("INSERT INTO t SELECT JSON_ARRAYAGG(w) FROM k", "JSON_ARRAYAGG()"),
    ("INSERT INTO t SELECT v, w FROM k GROUP BY v", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT v, w FROM k GROUP BY 1", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT v + 1 AS x, w FROM k GROUP BY 1", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT v, w FROM k GROUP BY 3", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT w, MAX(v) FROM k", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT SUM(d) FROM k", "SUM() of floating-point numbers"),
    ("INSERT INTO t SELECT DISTINCT c FROM k", _DISTINCT),
    ("INSERT INTO t SELECT MAX(c) FROM k", "MAX() of equal values that may differ"),
    ("INSERT INTO t SELECT c, COUNT(*) FROM k GROUP BY c", "GROUP BY of equal values that may differ"),
    ("INSERT INTO t SELECT c AS y, COUNT(*) FROM k GROUP BY y", "GROUP BY of equal values that may differ"),
    ("INSERT INTO t SELECT c, COUNT(*) FROM k GROUP BY 1", "GROUP BY of equal values that may differ"),
    ("INSERT INTO t SELECT d, COUNT(*) FROM k GROUP BY d", "GROUP BY of equal values that may differ"),
    ("INSERT INTO t SELECT k.c, COUNT(*) FROM k GROUP BY c", "GROUP BY of equal values that may differ"),
    ("INSERT INTO t SELECT c, COUNT(*) FROM k GROUP BY k.c", "GROUP BY of equal values that may differ"),
    ("INSERT INTO t SELECT w + v, COUNT(*) FROM p GROUP BY v", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT c, w FROM p GROUP BY c", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT CONCAT(c, w), COUNT(*) FROM p GROUP BY c", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT q.c, COUNT(*) FROM p JOIN q ON q.v = p.v GROUP BY p.c", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT (SELECT c FROM p GROUP BY o.c) FROM q o", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT c, COUNT(*) FROM unknown GROUP BY v", "a column beside GROUP BY"),
    ("INSERT INTO t SELECT MAX(d) FROM k", "MAX() of equal values that may differ"),
    ("INSERT INTO t SELECT DISTINCT d FROM k", _DISTINCT),
    ("INSERT INTO t SELECT d FROM k ORDER BY d LIMIT 1", "LIMIT"),
    ("INSERT INTO t SELECT c FROM k UNION SELECT s FROM k", _UNION),
    ("INSERT INTO t SELECT s FROM k UNION (SELECT d FROM k)", _UNION),
    ("INSERT INTO t SELECT c FROM k UNION ALL SELECT v FROM k UNION SELECT v FROM k", _UNION),
    ("INSERT INTO t SELECT * FROM k UNION SELECT * FROM k", _UNION),
    ("INSERT INTO t SELECT MAX(x) FROM (SELECT c AS x FROM k) q", "MAX() of equal values that may differ"),
    ("INSERT INTO t SELECT SUM(y) FROM (SELECT x AS y FROM (SELECT d AS x FROM k) r) q", _SUM),
    ("INSERT INTO t WITH q AS (SELECT c FROM k) SELECT MIN(c) FROM q", "MIN() of equal values that may differ"),
    ("INSERT INTO t SELECT DISTINCT * FROM (SELECT c FROM k) q", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT * FROM k", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT v, k.* FROM k", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT v * 0e0 FROM k", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT v * '0' FROM k", _DISTINCT),
    ("INSERT INTO t SELECT MAX(v / 1E5) FROM k", "MAX() of equal values that may differ"),
    ("INSERT INTO t SELECT MIN(CAST(v AS DOUBLE)) FROM k", "MIN() of equal values that may differ"),
    ("INSERT INTO t SELECT v * 0e0, COUNT(*) FROM k GROUP BY v * 0e0", "GROUP BY of equal values that may differ"),
    ("INSERT INTO t SELECT v * 0e0 AS y, COUNT(*) FROM k GROUP BY y", "GROUP BY of equal values that may differ"),
    ("INSERT INTO t SELECT v * 0e0 FROM k UNION SELECT v FROM k", _UNION),
    ("INSERT INTO t SELECT DISTINCT x FROM (SELECT v * 0e0 AS x FROM k) q", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT * FROM (SELECT v * 0e0 FROM k) q", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT IF(v = 1, 'a', 'A') FROM k", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT CASE v WHEN 1 THEN 'a' ELSE 'A' END FROM k", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT SUBSTRING('aA', v, 1) FROM k", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT s COLLATE utf8mb4_general_ci FROM k", _DISTINCT),
    ("INSERT INTO t SELECT MAX(CONVERT(x USING utf8mb4)) FROM k", "MAX() of equal values that may differ"),
    ("INSERT INTO t TABLE k UNION TABLE k", _UNION),
    ("INSERT INTO t (SELECT v FROM k) UNION (TABLE only)", _UNION),
    ("INSERT IGNORE INTO t TABLE k ORDER BY v", "INSERT IGNORE"),
    ("INSERT INTO t (a) TABLE k ORDER BY v LIMIT 1", "LIMIT"),
    ("CREATE TABLE t AS TABLE k ORDER BY v LIMIT 1", "LIMIT"),
    ("INSERT INTO t SELECT MAX(e) FROM shown", "MAX() of equal values that may differ"),
    ("INSERT INTO t SELECT DISTINCT e FROM nested AS n", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT * FROM nested", _DISTINCT),
    ("INSERT INTO t SELECT DISTINCT f FROM shown", _DISTINCT),
    ("INSERT INTO t SELECT e FROM shown UNION SELECT e FROM shown", _UNION),
    ("INSERT INTO t SELECT SUM(n) FROM (SELECT g AS n FROM shown) q", _SUM),
    ("INSERT INTO t SELECT c FROM k INTERSECT SELECT c FROM q", _UNION),
    ("UPDATE p JOIN k ON p.id = k.v SET p.w = k.w", _JOINED),
    ("UPDATE p, k SET p.w = k.w", _JOINED),
    ("INSERT INTO t (a) SELECT b FROM k ORDER BY b LIMIT 1", "LIMIT"),
    ("INSERT INTO t (a) SELECT j FROM k ORDER BY j LIMIT 1", "LIMIT"),
    ("INSERT INTO t (a) SELECT made FROM k ORDER BY made LIMIT 1", "LIMIT"),
    ("INSERT INTO t (a) SELECT y FROM k ORDER BY y LIMIT 1", "LIMIT"),
    ("INSERT INTO t SELECT GROUP_CONCAT(v) FROM i", "GROUP_CONCAT()"),
    ("INSERT INTO t SELECT GROUP_CONCAT(i.v, id) FROM i", "GROUP_CONCAT()"),
    ("INSERT INTO t SELECT GROUP_CONCAT(v) AS w FROM i", "GROUP_CONCAT()"),
    ("INSERT INTO t SELECT GROUP_CONCAT(v) w FROM i", "GROUP_CONCAT()"),
    ("INSERT INTO t SELECT JSON_ARRAYAGG(v), COUNT(*) FROM i", "JSON_ARRAYAGG()"),
    ("INSERT INTO t SELECT JSON_ARRAYAGG(v), w(1) FROM i", "JSON_ARRAYAGG()"),
    ("INSERT INTO t SELECT JSON_ARRAYAGG(v), v * v, DEFAULT(w) FROM i", "JSON_ARRAYAGG()"),
    ("INSERT INTO t SELECT v, ROW_NUMBER() OVER () FROM i", "ROW_NUMBER() OVER"),
    ("INSERT INTO t SELECT v, GROUP_CONCAT(w) FROM i GROUP BY v", "GROUP_CONCAT()"),
    ("UPDATE t SET w = (SELECT GROUP_CONCAT(v) FROM i)", "GROUP_CONCAT()"),
    ("UPDATE t SET w = (SELECT GROUP_CONCAT(v, t.w) FROM i)", "GROUP_CONCAT()"),
    ("INSERT INTO t SELECT GROUP_CONCAT(w) FROM covered", "GROUP_CONCAT()"),
    ("INSERT INTO t (a) SELECT DISTINCT b FROM k", _DISTINCT),
    ("INSERT INTO t (a) SELECT DISTINCT j FROM k", _DISTINCT),
    ("INSERT INTO t (a) SELECT MIN(made) FROM k", "MIN() of equal values that may differ"),
    ("INSERT INTO t (a) SELECT c FROM only ORDER BY c LIMIT 1", "LIMIT"),
    ("INSERT INTO t (a) SELECT c, 1 FROM only ORDER BY c LIMIT 1", "LIMIT"),
    ("DELETE FROM only ORDER BY c LIMIT 1", "LIMIT"),
    ("DELETE FROM long ORDER BY l LIMIT 1", "LIMIT"),
    ("DELETE FROM bytes ORDER BY y LIMIT 1", "LIMIT"),
    ("DELETE FROM prefix ORDER BY c LIMIT 1", "LIMIT"),
    ("DELETE FROM made WHERE made = 0 ORDER BY v LIMIT 1", "LIMIT"),
    ("UPDATE p JOIN made ON made.made = p.made SET p.w = made.w", _JOINED),
    ("UPDATE p JOIN k ON k.c = p.c SET p.w = k.c", _JOINED),
    ("UPDATE p JOIN k ON k.d = p.d SET p.w = k.d", _JOINED),
    ("UPDATE text JOIN q ON q.id = text.c SET text.w = q.w", _JOINED),
    ("UPDATE a.p JOIN o.p ON a.p.id = o.p.v SET a.p.w = o.p.w", _JOINED),
    ("UPDATE p JOIN o.p ON a.p.id = o.p.v SET a.p.w = o.p.w", _JOINED),
    ("UPDATE A.p JOIN o.p ON a.P.id = O.p.v SET a.p.w = o.P.w", _JOINED),
    ("UPDATE a.p AS x JOIN o.p AS y ON a.x.id = o.y.v SET a.x.w = o.y.w", _JOINED),
    ("UPDATE k JOIN K ON k.v = K.id SET K.w = k.w", _JOINED),
    ("UPDATE p JOIN q ON q.id = p.v SET u = p.w, q.w = p.w", _JOINED),
    ("UPDATE p JOIN k ON p.id = k.v SET p.w = k.w, k.w = 1", _JOINED),
    ("INSERT INTO t SELECT a.p.v, o.p.w FROM a.p JOIN o.p ON a.p.id = o.p.v ORDER BY a.p.id LIMIT 3", "LIMIT"),
    ("INSERT INTO t SELECT a.p.v, o.p.w FROM a.p JOIN o.p ON a.p.id = o.p.v ORDER BY p.id LIMIT 3", "LIMIT"),
    ("INSERT INTO t SELECT (SELECT p.w FROM p WHERE o.p.id = p.v ORDER BY o.p.id LIMIT 1) FROM o.p", "LIMIT"),
    *((f"INSERT INTO t SELECT n.w FROM {join} ORDER BY q.id LIMIT 5", "LIMIT") for join in OUTER),
    ("INSERT INTO t SELECT n.w FROM n JOIN p ON p.id = n.u LEFT JOIN q ON q.id = p.v ORDER BY q.id LIMIT 5", "LIMIT"),
    ("INSERT INTO t SELECT n.w FROM q LEFT JOIN n ON n.v = q.id AND q.w = 1 ORDER BY n.v LIMIT 5", "LIMIT"),
    ("INSERT INTO t SELECT q.w FROM n LEFT JOIN q ON q.id = n.v AND n.w = 1 ORDER BY n.v, q.d LIMIT 5", "LIMIT"),
    ("INSERT INTO t SELECT n.w FROM n LEFT JOIN q USING (id) LEFT JOIN p USING (id) ORDER BY p.id LIMIT 5", "LIMIT"),
    ("INSERT INTO t SELECT i.w FROM p LEFT JOIN q USING (id) JOIN i USING (id) ORDER BY q.id LIMIT 5", "LIMIT"),
    ("INSERT INTO t SELECT x.w FROM p, LATERAL (SELECT w FROM q WHERE q.id = p.v) x ORDER BY x.w + 0 LIMIT 1", "LIMIT"),
    ("INSERT INTO t SELECT GROUP_CONCAT(n.w ORDER BY q.id) FROM n LEFT JOIN q ON q.id = n.u", "GROUP_CONCAT()"),
    (
        "INSERT INTO t SELECT n.w, ROW_NUMBER() OVER (ORDER BY q.id) FROM n LEFT JOIN q ON q.id = n.u",
        "ROW_NUMBER() OVER",
    ),
    ("INSERT INTO t SELECT w, v, ROW_NUMBER() OVER (ORDER BY w) FROM p", "ROW_NUMBER() OVER"),
    ("INSERT INTO t SELECT w, ROW_NUMBER() OVER (PARTITION BY v) FROM p", "ROW_NUMBER() OVER"),
    ("INSERT INTO t SELECT ROW_NUMBER() OVER (ORDER BY w + 1) FROM p", "ROW_NUMBER() OVER"),
    ("INSERT INTO t SELECT GROUP_CONCAT(v ORDER BY w) FROM p", "GROUP_CONCAT()"),
    ("INSERT INTO t SELECT w, GROUP_CONCAT(v) FROM p GROUP BY w", "GROUP_CONCAT()"),
    ("INSERT INTO t SELECT w, v FROM p GROUP BY w", "a column beside GROUP BY"),
    ("UPDATE p SET v = (@a := @a + 1) WHERE id IN (SELECT v FROM k)", "@a, which rows set in turn"),
    ("UPDATE p SET v = (@a := @a + 1) WHERE EXISTS (SELECT 1 FROM k WHERE k.v = p.id)", "@a, which rows set in turn"),
    *((sql, _JOINED) for sql in SEVERAL_ROWS),
    ("INSERT INTO t SELECT c FROM (SELECT c FROM k) x ORDER BY c LIMIT 1", "LIMIT"),
    ("INSERT INTO t WITH x (y) AS (SELECT c FROM k) SELECT MAX(y) FROM x", "MAX() of equal values that may differ"),
    ("INSERT INTO t SELECT MIN(y) FROM (SELECT v AS y FROM k UNION ALL SELECT c FROM k) x", _MIN),
]
SETTLED = [
    "INSERT INTO t SELECT GROUP_CONCAT(w) FROM i",
    "INSERT INTO t SELECT GROUP_CONCAT(w ORDER BY v, id), ROW_NUMBER() OVER () FROM i",
    "INSERT INTO t SELECT GROUP_CONCAT(v), MAX(x.w) FROM i AS x",
    "INSERT INTO t SELECT *, ROW_NUMBER() OVER () FROM i",
    "INSERT INTO t SELECT GROUP_CONCAT(u) FROM covered",
    "INSERT INTO t SELECT GROUP_CONCAT(c) FROM covered",
    "INSERT INTO t SELECT GROUP_CONCAT(v) FROM p",
    "UPDATE i SET v = (@a := @a + 1)",
    "DELETE FROM p ORDER BY id LIMIT 3",
    "DELETE FROM p ORDER BY v, p.id DESC LIMIT 3",
    "DELETE FROM text ORDER BY c LIMIT 3",
    "DELETE FROM made ORDER BY made LIMIT 3",
    "DELETE FROM made WHERE made = 'x' ORDER BY v LIMIT 3",
    "DELETE FROM long WHERE l = 'x' ORDER BY v LIMIT 3",
    "INSERT INTO t (a) SELECT s FROM k ORDER BY s LIMIT 1",
    "INSERT INTO t (a) SELECT x FROM k ORDER BY x LIMIT 1",
    "INSERT INTO t (a) SELECT h FROM k ORDER BY h LIMIT 1",
    "INSERT INTO t (a) SELECT DISTINCT s FROM k",
    "UPDATE p JOIN k ON k.v = p.v SET p.w = k.v",
    "UPDATE p JOIN text ON text.c = p.c SET p.w = text.w",
    "DELETE FROM n ORDER BY u LIMIT 3",
    "DELETE FROM n WHERE v = 3 ORDER BY w LIMIT 3",
    "DELETE FROM two WHERE v = 3 ORDER BY w LIMIT 3",
    "DELETE FROM two WHERE w BETWEEN 0 AND 9 AND v = 3 ORDER BY w LIMIT 3",
    "DELETE FROM two WHERE v = 3 AND CASE w WHEN 1 THEN 2 END = 2 ORDER BY w LIMIT 3",
    "DELETE FROM text WHERE (c = 'x') ORDER BY v LIMIT 1",
    "INSERT INTO t SELECT v, w FROM k ORDER BY w, v LIMIT 1",
    "INSERT INTO t SELECT v, w FROM p ORDER BY id LIMIT 2 OFFSET 3",
    "INSERT INTO t SELECT p.v, q.w FROM p JOIN q ON p.v = q.id ORDER BY p.id LIMIT 1",
    "INSERT INTO t SELECT p.v, q.w FROM p JOIN q USING (id) ORDER BY p.id LIMIT 1",
    "INSERT INTO t SELECT x.id FROM a.p AS x WHERE x.v > 3 ORDER BY x.id LIMIT 1",
    "INSERT INTO t SELECT v, w FROM k ORDER BY v LIMIT 0",
    "INSERT INTO t SELECT v FROM k ORDER BY v FETCH FIRST 2 ROWS WITH TIES",
    "INSERT IGNORE INTO t SELECT v, w FROM p ORDER BY id",
    "INSERT INTO t SELECT v, id AS x, w FROM p ORDER BY 1, 2 DESC LIMIT 3",
    "INSERT INTO t SELECT v FROM k ORDER BY 1 LIMIT 3",
    "UPDATE IGNORE p SET v = 1 ORDER BY id",
    "UPDATE p SET v = (@a := @a + 1)",
    "UPDATE p SET v = (@a := @a + 1) WHERE v > 3",
    "UPDATE p SET v = @a",
    "UPDATE p SET v = RAND() WHERE id = 3",
    "UPDATE p SET v = RAND() ORDER BY id",
    "INSERT INTO t VALUES (RAND(), 1)",
    "INSERT INTO t SELECT w, ROW_NUMBER() OVER (ORDER BY id) FROM i",
    "INSERT INTO t SELECT w, ROW_NUMBER() OVER (PARTITION BY v ORDER BY id) FROM i",
    "INSERT INTO t SELECT w, LAG(w) OVER x FROM i WINDOW x AS (ORDER BY id)",
    "INSERT INTO t SELECT w, RANK() OVER (ORDER BY v), SUM(w) OVER (ORDER BY v) FROM k",
    "INSERT INTO t SELECT v, GROUP_CONCAT(w ORDER BY w) FROM k GROUP BY v",
    "INSERT INTO t SELECT v, GROUP_CONCAT(c ORDER BY id SEPARATOR ';') FROM i GROUP BY v",
    "INSERT INTO t SELECT v, COUNT(*), MAX(w), SUM(w) FROM k GROUP BY v",
    "INSERT INTO t SELECT v + 1, COUNT(*) FROM k GROUP BY v + 1",
    "INSERT INTO t SELECT v + 1 AS y, COUNT(*) FROM k GROUP BY y",
    "INSERT INTO t SELECT v, COUNT(*), MAX(w) FROM k GROUP BY 1",
    "INSERT INTO t SELECT COUNT(*), v + 1 AS x FROM k GROUP BY 2",
    "INSERT INTO t SELECT v AS x, COUNT(*), v + 1 FROM k GROUP BY 1",
    "INSERT INTO t SELECT k.v x, COUNT(*), w FROM k GROUP BY 1, 3",
    "INSERT INTO t SELECT p.id, p.w, COUNT(*) FROM p JOIN k ON k.v = p.id GROUP BY p.id",
    "INSERT INTO t SELECT c, COUNT(*) FROM p GROUP BY c",
    "INSERT INTO t SELECT x.c, d, COUNT(*) FROM p AS x GROUP BY c, x.d",
    "INSERT INTO t SELECT CONCAT(c, '-'), COUNT(*) FROM i GROUP BY c",
    "INSERT INTO t SELECT p.c, q.v FROM p JOIN q ON q.id = p.v GROUP BY p.c, q.v",
    "INSERT INTO t SELECT c, COUNT(*) FROM (SELECT c, v FROM p) x GROUP BY c",
    "INSERT INTO t SELECT SUM(d), MAX(c) FROM p",
    "INSERT INTO t SELECT DISTINCT v FROM k",
    "INSERT INTO t SELECT c FROM k UNION ALL SELECT d FROM k",
    "INSERT INTO t SELECT * FROM numbers UNION SELECT * FROM numbers",
    "INSERT INTO t SELECT DISTINCT v * 2, COUNT(*) FROM k GROUP BY v",
    "INSERT INTO t SELECT DISTINCT * FROM p",
    "INSERT INTO t SELECT DISTINCT c FROM (SELECT c FROM p) q",
    "INSERT INTO t SELECT DISTINCT * FROM (SELECT v, COUNT(*) FROM k GROUP BY v) q",
    "INSERT INTO t SELECT SUM(n) FROM (SELECT v AS n FROM k) q",
    "INSERT INTO t SELECT MAX(n) FROM (SELECT COUNT(c) AS n FROM k GROUP BY v) q",
    "INSERT INTO t WITH q AS (SELECT v FROM k) SELECT DISTINCT v FROM q",
    "INSERT INTO t SELECT c FROM p UNION SELECT c FROM q",
    "INSERT INTO t SELECT v FROM k UNION SELECT s FROM k",
    "INSERT INTO t SELECT MAX(d), MIN(c) FROM p",
    "UPDATE p JOIN q ON q.id = p.v SET p.w = q.w",
    "UPDATE p, q SET p.w = p.w + 1 WHERE q.v = p.v",
    "UPDATE p JOIN (SELECT v, COUNT(*) AS n FROM k GROUP BY v) x ON x.v = p.v SET p.w = x.n",
    "DELETE p FROM p JOIN k ON k.v = p.id",
    "INSERT INTO t SELECT DISTINCT v * 0e0 FROM p",
    "INSERT INTO t SELECT DISTINCT v * 0e0 FROM (SELECT v FROM p) q",
    "INSERT INTO t SELECT DISTINCT v * 2 FROM k",
    "INSERT INTO t SELECT DISTINCT CONCAT(v, '-', w) FROM k",
    "INSERT INTO t SELECT DISTINCT CAST(v AS CHAR) FROM k",
    "INSERT INTO t SELECT SUM(v) * 1e0 FROM k",
    "INSERT INTO t SELECT v, SUM(v) * 1e0 FROM k GROUP BY v",
    "INSERT INTO t TABLE p UNION TABLE p",
    "INSERT INTO t TABLE numbers UNION TABLE numbers",
    "INSERT INTO t (a) TABLE p ORDER BY id LIMIT 1",
    "INSERT INTO t SELECT MAX(e) FROM keyed",
    "INSERT INTO t SELECT DISTINCT h FROM shown",
    "INSERT INTO t SELECT MAX(n) FROM shown",
    "UPDATE joined SET h = h + 1",
    "UPDATE joined SET h = o WHERE h = 3 AND i = 4 AND o = 7",
    "UPDATE joined SET o = h",
    "UPDATE a.p JOIN o.p ON a.p.v = o.p.id SET a.p.w = o.p.w",
    "UPDATE a.p JOIN o.p ON a.p.id = o.p.id SET a.p.w = o.p.w, o.p.v = a.p.v",
    "INSERT INTO t SELECT a.p.v, o.p.w FROM a.p JOIN o.p ON a.p.v = o.p.id ORDER BY a.p.id LIMIT 3",
    "INSERT INTO t SELECT a.p.v, o.p.w FROM a.p JOIN o.p USING (id) ORDER BY a.p.id LIMIT 3",
    "CREATE TABLE t LIKE k",
    *ONE_ROW,
    "INSERT INTO t SELECT n.w, q.w FROM n LEFT JOIN q ON q.id = n.v ORDER BY n.u LIMIT 5",
    "INSERT INTO t SELECT n.w, q.w FROM q RIGHT JOIN n ON q.id = n.v AND q.v > 3 ORDER BY n.u LIMIT 5",
    "INSERT INTO t SELECT n.w, q.w FROM n LEFT JOIN q ON q.id = n.v WHERE n.v = 3 ORDER BY n.u LIMIT 5",
    "INSERT INTO t SELECT n.w, q.w FROM n LEFT JOIN q USING (id) ORDER BY n.u LIMIT 5",
    "INSERT INTO t SELECT w, ROW_NUMBER() OVER () FROM p WHERE v > (SELECT MAX(w) FROM k)",
]
VIEWS = {
    TableKey("a", name): text
    for name, text in (
        ("shown", "SELECT c AS e, v * 0e0 AS f, d AS g, v AS h, COUNT(*) AS n FROM a.k"),
        ("nested", "SELECT e AS e, h AS h FROM a.shown"),
        ("keyed", "SELECT c AS e FROM a.p"),
        ("joined", "SELECT `p`.`id` AS `i`,`p`.`v` AS `h`,`k`.`w` AS `o` FROM (`p` JOIN `k` ON(`k`.`v` = `p`.`id`))"),
        ("above", "SELECT i AS i, h AS m, o AS o FROM a.joined"),
    )
}


def tokens_of(sql: str) -> Sequence[Token]:
    item = Item(ItemKind.STATEMENT, sql.encode())
    text = LoggedText.of(1, LogPosition("log.000001", 4), item, Flavor.MARIADB)
    assert text is not None
    return text.tokens_with_places


def felt(sql: str, *, full_group_by: bool = False) -> list[str]:
    def view_of(key: TableKey) -> Sequence[Token] | None:
        return tokens_of(VIEWS[key]) if key in VIEWS else None

    parts = order_felt(tokens_of(sql), "a", full_group_by=full_group_by, view_of=view_of)
    return [part.what for part in parts if not is_settled(part, TABLES.get)]


@pytest.mark.parametrize(("sql", "what"), OPEN)
def test_what_feels_an_order_that_no_key_settles_is_named(sql: str, what: str) -> None:
    assert what in felt(sql)


@pytest.mark.parametrize("sql", SETTLED)
def test_what_a_key_settles_is_exact(sql: str) -> None:
    assert felt(sql) == []


@pytest.mark.parametrize(
    ("sql", "is_fixed"),
    [
        ("DELETE FROM p", True),
        ("DELETE FROM k", False),
        ("DELETE FROM i WHERE v = 3", False),
        ("DELETE FROM p ORDER BY id", True),
        ("DELETE FROM p ORDER BY v", False),
        ("DELETE FROM p WHERE id = 7", True),
        ("INSERT INTO t SELECT v FROM p ORDER BY id", True),
        ("INSERT INTO t (SELECT v FROM k)", False),
        ("INSERT INTO t SELECT v FROM i", False),
        ("INSERT INTO t SELECT id FROM i", False),
        ("INSERT INTO t SELECT 1 + v AS w FROM i", False),
        ("INSERT INTO t SELECT v, CONVERT(v, CHAR) FROM i", False),
        ("INSERT INTO t SELECT DISTINCT v FROM i", False),
        ("INSERT INTO t SELECT v, w FROM i", True),
        ("INSERT INTO t SELECT * FROM i", True),
        ("INSERT INTO t SELECT i.* FROM i", True),
        ("INSERT INTO t SELECT v * w FROM i", True),
        ("INSERT INTO t SELECT v FROM p", True),
        ("INSERT INTO t SELECT f(1)", True),
        ("INSERT INTO t SELECT f(v) + 1, w FROM unknown ORDER BY 1, w", True),
        ("INSERT INTO t SELECT f(v) + 1, w FROM unknown ORDER BY 1", False),
        ("INSERT INTO t SELECT c FROM k ORDER BY c", False),
    ],
)
def test_the_rows_that_a_statement_takes_are_in_an_order(sql: str, is_fixed: bool) -> None:
    blocks = list(feeding(tokens_of(sql), "a"))
    assert len(blocks) == 1
    assert is_settled(fed(blocks[0]), TABLES.get) is is_fixed


def test_columns_beside_a_group_are_not_looked_for_where_the_server_refuses_them() -> None:
    assert felt("INSERT INTO t SELECT v, w FROM k GROUP BY v", full_group_by=True) == []


@pytest.mark.parametrize("is_full", [False, True])
def test_a_column_that_groups_shows_one_of_equal_values_in_every_sql_mode(is_full: bool) -> None:
    of_equal = ["GROUP BY of equal values that may differ"]
    assert felt("INSERT INTO t SELECT c, COUNT(*) FROM p GROUP BY c", full_group_by=is_full) == []
    assert felt("INSERT INTO t SELECT c, COUNT(*) FROM k GROUP BY c", full_group_by=is_full) == of_equal
    assert felt("INSERT INTO t SELECT k.c, COUNT(*) FROM k GROUP BY c", full_group_by=is_full) == of_equal
