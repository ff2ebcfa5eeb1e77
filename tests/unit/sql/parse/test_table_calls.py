"""Which functions the definition of a table calls that are not the server's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pytest

from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.table_calls import called_elsewhere, computed_interval

OWN: Final = (
    "CREATE TABLE `d`.`t` (`a` int(11) NOT NULL DEFAULT 7, `b` varchar(20) CHARACTER SET latin1 DEFAULT 'f(x)')",
    "CREATE TABLE IF NOT EXISTS t (a DOUBLE PRECISION(8,2), b CHARACTER VARYING(9), d ENUM('f('), e NATIONAL CHAR(3))",
    "CREATE TABLE t (a datetime(6) DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6), c vector(3))",
    "CREATE TABLE t (a CHAR(36) DEFAULT uuid_v7(), b INT DEFAULT (IF(a IN ('x'), 1, -(2))), c INT AS (a + (1)))",
    "CREATE TABLE t (PRIMARY KEY (`a`(10),`b`), UNIQUE KEY `k` (`c`(3)), KEY `l` (`d`) USING BTREE)",
    "CREATE TABLE t (KEY k USING HASH (e(2)), UNIQUE (f(9)), UNIQUE k (f(9)))",
    "CREATE TABLE t (FULLTEXT KEY `f` (`a`) /*!50100 WITH PARSER `n` */, SPATIAL KEY `s` (`g`), VECTOR KEY `v` (`v`))",
    "CREATE TABLE t (KEY `x` ((cast(json_extract(`j`,'$.a') as char(30) array))), KEY `y` ((lower(`n`)), `m`(5)))",
    "CREATE TABLE t (CONSTRAINT `c` FOREIGN KEY (`a`) REFERENCES `d`.`p` (`id`) ON DELETE CASCADE, CHECK (`a` > (0)))",
    "CREATE TABLE t (FOREIGN KEY `k` (`a`) REFERENCES p (id), PERIOD FOR `p` (`a`, `b`), "
    "PERIOD FOR SYSTEM_TIME (`s`, `e`))",
    "CREATE TABLE t (a INT) PARTITION BY RANGE COLUMNS(a) "
    "(PARTITION `p` VALUES LESS THAN (1), PARTITION q VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE t (a INT) PARTITION BY LIST (a) SUBPARTITION BY LINEAR KEY ALGORITHM=2 (b) "
    "(PARTITION p VALUES IN (1) (SUBPARTITION `s` ENGINE = InnoDB))",
    "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME INTERVAL 1 WEEK (PARTITION p HISTORY)",
    "CREATE TABLE t (a JSON, CHECK ((`a` member of (`b`))), c TEXT AS (trim(both (`d` + `e`) from `f`)))",
    "CREATE TABLE t (c TEXT AS (trim(leading (`d`) from trim(trailing (`e`) from substr(`f` from 1 for (`g`))))))",
    "CREATE TABLE t (a INT) ENGINE=MRG_MyISAM UNION=(`d`.`u`,`v`)",
    "ALTER TABLE `t` ADD KEY `k` (`a`(3)), ADD INDEX l (b), ADD COLUMN (c INT), ADD (d INT), ADD UNIQUE (e(9))",
)
ELSEWHERE: Final = (
    ("CREATE TABLE t (a TEXT DEFAULT sys_eval('id'))", "sys_eval()"),
    ("CREATE TABLE t (a TEXT DEFAULT (1 + `Sys_Eval` ('id')))", "Sys_Eval()"),
    ("CREATE TABLE t (a TEXT DEFAULT app.f(1))", "f()"),
    ("CREATE TABLE t (a TEXT DEFAULT (`abs`(f(1))))", "f()"),
    ("CREATE TABLE t (a TEXT DEFAULT mariadb_schema.sys_eval('id'))", "sys_eval()"),
    ("CREATE TABLE t (a TEXT DEFAULT app.oracle_schema.concat('id'))", "concat()"),
    ("CREATE TABLE t (a TEXT DEFAULT app.concat('id'))", "concat()"),
    ("CREATE TABLE t (a INT AS (f(1)) VIRTUAL)", "f()"),
    ("CREATE TABLE t (a INT CHECK (f(a)))", "f()"),
    ("CREATE TABLE t (a INT CHECK (EXISTS(f(1))))", "f()"),
    ("CREATE TABLE t (a TEXT DEFAULT (SUBSTRING('a' FROM 1 FOR f(1))))", "f()"),
    ("CREATE TABLE t (a INT DEFAULT (of(1)))", "of()"),
    ("CREATE TABLE t (KEY k ((f(1))))", "f()"),
    ("CREATE TABLE t (KEY k (a(3), (f(1))))", "f()"),
    ("CREATE TABLE t (a INT) PARTITION BY HASH (f(1))", "f()"),
    ("CREATE TABLE t (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (f(1)))", "f()"),
    ("ALTER TABLE t ADD a TEXT DEFAULT (f(1)), ADD KEY (a)", "f()"),
)


def _tokens(sql: str, flavor: Flavor) -> Sequence[Token]:
    tokens: list[Token] = []
    lex(sql, Dialect(flavor), tokens)
    return tokens


@pytest.mark.parametrize("sql", OWN)
def test_the_server_s_own_functions_and_names_are_no_calls(sql: str) -> None:
    flavor = Flavor.MARIADB if "uuid_v7" in sql else Flavor.MYSQL
    assert called_elsewhere(_tokens(sql, flavor), flavor) is None


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(("sql", "call"), ELSEWHERE)
def test_a_function_that_is_not_built_in_is_found(sql: str, call: str, flavor: Flavor) -> None:
    assert called_elsewhere(_tokens(sql, flavor), flavor) == call


@pytest.mark.parametrize("name", ["concat", "SUBSTR", "`replace`", "trim", "ltrim", "rtrim", "lpad", "rpad", "decode"])
@pytest.mark.parametrize("schema", ["oracle_schema", "`MARIADB_SCHEMA`", "maxdb_schema"])
def test_mariadb_s_own_functions_have_a_schema(schema: str, name: str) -> None:
    """As it shows them in sql_mode=ORACLE (seen on 10.11.18), and takes them in each."""
    sql = f"CREATE TABLE t (a TEXT GENERATED ALWAYS AS ({schema}.{name}(`b`,`c`)) VIRTUAL)"
    assert called_elsewhere(_tokens(sql, Flavor.MARIADB), Flavor.MARIADB) is None
    assert called_elsewhere(_tokens(sql, Flavor.MYSQL), Flavor.MYSQL) is not None


HISTORY: Final = "CREATE TABLE t (x INT) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME INTERVAL"
LITERALS: Final = (
    *("1 DAY", "1 WEEK STARTS '2020-01-01' AUTO PARTITIONS 3", "'1:30' HOUR_MINUTE", "(1 + 2) * 3 MONTH"),
    *("- -1 YEAR (PARTITION p0 HISTORY, PARTITION pn CURRENT)", "(7) DAY(PARTITION p HISTORY)", "2 day PARTITIONS 4"),
)
COMPUTED: Final = (
    *(("1 + 0*RELEASE_ALL_LOCKS() DAY", "RELEASE_ALL_LOCKS"), ("`sleep`(9) DAY", "sleep"), ("@a := 1 DAY", "@a")),
    *(("@@max_connections DAY", "@@max_connections"), ("(SELECT 1) DAY", "SELECT"), ("1 + DAY(SLEEP(9)) DAY", "DAY")),
    *(
        ("DAY(SLEEP(9)) DAY", "DAY"),
        ("app.f() DAY", "app"),
        ("x DAY", "x"),
        ("INTERVAL 1 DAY + SLEEP(9) DAY", "INTERVAL"),
    ),
    *(("1", "no unit"), ("1 `DAY`", "DAY")),
)


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("interval", LITERALS)
def test_an_interval_of_literals_computes_nothing(interval: str, flavor: Flavor) -> None:
    assert computed_interval(_tokens(f"{HISTORY} {interval}", flavor)) is None


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(("interval", "found"), COMPUTED)
def test_what_an_interval_computes_is_found(interval: str, found: str, flavor: Flavor) -> None:
    for text in (f"{HISTORY} {interval}", f"ALTER TABLE t PARTITION BY SYSTEM_TIME INTERVAL {interval}"):
        named = computed_interval(_tokens(text, flavor))
        assert named is not None
        assert named.partition(" in the INTERVAL")[0] == found
        assert called_elsewhere(_tokens(text, flavor), flavor) == named


def test_other_intervals_are_of_no_partitions() -> None:
    sql = "CREATE TABLE t (a DATETIME DEFAULT (NOW() + INTERVAL DAY(NOW()) DAY)) PARTITION BY SYSTEM_TIME LIMIT 3"
    assert computed_interval(_tokens(sql, Flavor.MARIADB)) is None
