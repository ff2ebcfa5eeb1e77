"""Which statements take rows by the name of a partition, and which change what a partition has."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, TableKey
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.partitions import changed_partitions, divides_anew, tables_by_partition, takes_partition


def tokens_of(sql: str) -> list[Token]:
    tokens: list[Token] = []
    lex(sql, Dialect(Flavor.MARIADB), tokens)
    return tokens


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("DELETE FROM t PARTITION (p0) WHERE n = 1", ["a.t"]),
        ("DELETE FROM `b`.`t` PARTITION(`p0`, p1)", ["b.t"]),
        ("UPDATE t /* PARTITION */ PARTITION /* x */ (p0) AS x SET n = 1", ["a.t"]),
        ("INSERT INTO t SELECT * FROM b.u PARTITION (p0) JOIN v PARTITION (q0, q1) USING (id)", ["b.u", "a.v"]),
        ("LOAD DATA INFILE 'x' INTO TABLE t PARTITION (p0) FIELDS TERMINATED BY ','", ["a.t"]),
        ("INSERT INTO t SELECT ROW_NUMBER() OVER (PARTITION BY n ORDER BY id) FROM u", []),
        ("INSERT INTO t SELECT SUM(n) OVER (w PARTITION BY n) FROM u", []),
        ("ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (3))", ["a.ADD"]),
        ("INSERT INTO `partition` (id) VALUES (1)", []),
        ("INSERT INTO t SELECT 1, PARTITION (p0) FROM u", []),
    ],
)
def test_the_tables_of_which_a_statement_takes_single_partitions_are_read(sql: str, tables: list[str]) -> None:
    """ALTER TABLE is none of these statements."""
    assert list(map(str, tables_by_partition(tokens_of(sql), "a"))) == tables
    assert all(isinstance(each, TableKey) for each in tables_by_partition(tokens_of(sql), "a"))


@pytest.mark.parametrize(
    ("sql", "takes", "changed"),
    [
        ("ALTER TABLE t TRUNCATE PARTITION p0, P1", True, ""),
        ("ALTER TABLE t TRUNCATE PARTITION ALL", False, ""),
        ("ALTER TABLE t TRUNCATE PARTITION `ALL`", True, ""),
        ("ALTER TABLE t DROP PARTITION IF EXISTS P0", True, "p0"),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u", True, ""),
        ("ALTER TABLE t CONVERT PARTITION p0 TO TABLE u", True, "p0"),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p9 VALUES LESS THAN (9)", False, "p9"),
        ("ALTER TABLE t ADD PARTITION (PARTITION p9 VALUES LESS THAN (9))", False, "p9"),
        ("ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION s0 VALUES LESS THAN (9))", False, "p0 s0"),
        ("ALTER TABLE t DROP PARTITION p0, `P1`", True, "p0 p1"),
        ("ALTER TABLE t REBUILD PARTITION p0", False, ""),
        ("ALTER TABLE t ADD COLUMN p0 INT, DROP COLUMN `partition`", False, ""),
    ],
)
def test_what_an_alter_table_does_with_partitions_is_read(sql: str, takes: bool, changed: str) -> None:
    assert takes_partition(tokens_of(sql)) is takes
    found = changed_partitions(tokens_of(sql))
    assert found == set(changed.split())


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("ALTER TABLE t PARTITION BY HASH (id) PARTITIONS 8", True),
        ("ALTER TABLE t REMOVE PARTITIONING", True),
        ("CREATE TABLE t (id INT) PARTITION BY KEY (id)", True),
        ("ALTER TABLE t ADD PARTITION PARTITIONS 4", True),
        ("ALTER TABLE t ADD PARTITION NO_WRITE_TO_BINLOG PARTITIONS 4", True),
        ("ALTER TABLE t COALESCE PARTITION 4", True),
        ("ALTER TABLE t ADD PARTITION (PARTITION p9 VALUES LESS THAN (9))", False),
        ("ALTER TABLE t DROP PARTITION p0", False),
    ],
)
def test_what_divides_all_rows_anew_is_read(sql: str, expected: bool) -> None:
    assert divides_anew(tokens_of(sql)) is expected
