"""What a CREATE TABLE tells of the table's rows: its columns, and its primary key."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.made_table import MadeColumn, MadeTable, made_table

A_AND_B = (MadeColumn("a", "int"), MadeColumn("b", "varchar", 9))


@pytest.mark.parametrize(
    ("sql", "made"),
    [
        ("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9))", MadeTable(A_AND_B, (("a",),))),
        ("CREATE TEMPORARY TABLE IF NOT EXISTS t (a INT, b VARCHAR(9), PRIMARY KEY (b, `a` DESC))",
         MadeTable(A_AND_B, (("b", "a"),))),
        ("CREATE TABLE d.t (a INT, b VARCHAR(9), CONSTRAINT x PRIMARY KEY USING BTREE (a)) ENGINE=MyISAM",
         MadeTable(A_AND_B, (("a",),))),
        ("CREATE TABLE t (a INT, b VARCHAR(9), PRIMARY KEY (b(3)))", MadeTable(A_AND_B, ())),
        ("CREATE TABLE t (a INT DEFAULT (1 + (2)), b VARCHAR(9) COMMENT 'x, PRIMARY KEY', UNIQUE (a), KEY k (b))",
         MadeTable(A_AND_B, ())),
        ("CREATE TABLE t (`primary` INT, a INT PRIMARY KEY)",
         MadeTable((MadeColumn("primary", "int"), MadeColumn("a", "int")), (("a",),))),
        ("CREATE TABLE t (a DECIMAL(9,2), b DECIMAL(9))",
         MadeTable((MadeColumn("a", "decimal"), MadeColumn("b", "decimal", 9)), ())),
        ("CREATE TABLE t (a INT PRIMARY KEY) SELECT 1 AS b", None),
        ("CREATE TABLE t LIKE u", None),
        ("CREATE TABLE t (LIKE u)", None),
        ("ALTER TABLE t ADD PRIMARY KEY (a)", None),
        ("CREATE VIEW t (a) AS SELECT 1", None),
    ],
)  # fmt: skip
def test_columns_and_the_primary_key_are_read(sql: str, made: MadeTable | None) -> None:
    text = LoggedText.of(1, LogPosition("log.1", 4), Item(ItemKind.STATEMENT, sql.encode()), Flavor.MARIADB)
    assert text is not None
    assert made_table(text.tokens_with_numbers) == made
