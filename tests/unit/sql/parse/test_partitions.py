"""Which statements take rows by the name of a partition, and which change what a partition has."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.partitions import changed_partitions, divides_anew, tables_by_partition, taken_partitions


def tokens_of(sql: str) -> list[Token]:
    tokens: list[Token] = []
    lex(sql, Dialect(Flavor.MARIADB), tokens)
    return tokens


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("DELETE FROM t PARTITION (p0) WHERE n = 1", ["a.t p0"]),
        ("DELETE FROM `b`.`t` PARTITION(`P0`, p1)", ["b.t p0 p1"]),
        ("UPDATE t /* PARTITION */ PARTITION /* x */ (p0) AS x SET n = 1", ["a.t p0"]),
        (
            "INSERT INTO t SELECT * FROM b.u PARTITION (p0) JOIN v PARTITION (q0, q1) USING (id)",
            ["b.u p0", "a.v q0 q1"],
        ),
        ("LOAD DATA INFILE 'x' INTO TABLE t PARTITION (p0) FIELDS TERMINATED BY ','", ["a.t p0"]),
        ("INSERT INTO t SELECT ROW_NUMBER() OVER (PARTITION BY n ORDER BY id) FROM u", []),
        ("INSERT INTO t SELECT SUM(n) OVER (w PARTITION BY n) FROM u", []),
        ("ALTER TABLE t ADD PARTITION (PARTITION p1 VALUES LESS THAN (3))", []),
        ("DELETE FROM b.add PARTITION (p0)", ["b.add p0"]),
        ("DELETE FROM `add` PARTITION (p0)", ["a.add p0"]),
        ("INSERT INTO `partition` (id) VALUES (1)", []),
        ("INSERT INTO t SELECT 1, PARTITION (p0) FROM u", []),
    ],
)
def test_the_tables_of_which_a_statement_takes_single_partitions_are_read(sql: str, tables: list[str]) -> None:
    found = [f"{key} {' '.join(sorted(names))}" for key, names in tables_by_partition(tokens_of(sql), "a")]
    assert found == tables


@pytest.mark.parametrize(
    ("sql", "taken", "changed"),
    [
        ("ALTER TABLE t TRUNCATE PARTITION p0, P1", "p0 p1", ""),
        ("ALTER TABLE t TRUNCATE PARTITION ALL", None, ""),
        ("ALTER TABLE t TRUNCATE PARTITION `ALL`", "all", ""),
        ("ALTER TABLE t DROP PARTITION IF EXISTS P0", "p0", "p0"),
        ("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u", "p0", ""),
        ("ALTER TABLE t CONVERT PARTITION p0 TO TABLE u", "p0", "p0"),
        ("ALTER TABLE t CONVERT TABLE u TO PARTITION p9 VALUES LESS THAN (9)", None, "p9"),
        ("ALTER TABLE t ADD PARTITION (PARTITION p9 VALUES LESS THAN (9))", None, "p9"),
        ("ALTER TABLE t REORGANIZE PARTITION p0 INTO (PARTITION s0 VALUES LESS THAN (9))", None, "p0 s0"),
        ("ALTER TABLE t DROP PARTITION p0, `P1`", "p0 p1", "p0 p1"),
        ("ALTER TABLE t REBUILD PARTITION p0", None, ""),
        ("ALTER TABLE t ADD COLUMN p0 INT, DROP COLUMN `partition`", None, ""),
    ],
)
def test_what_an_alter_table_does_with_partitions_is_read(sql: str, taken: str | None, changed: str) -> None:
    names = taken_partitions(tokens_of(sql))
    assert names == (None if taken is None else set(taken.split()))
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
