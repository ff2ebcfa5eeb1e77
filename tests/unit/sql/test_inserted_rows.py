"""The rows that an INSERT has in its text, and the numbers that it gives and takes."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition
from binlane.sql.inserted_rows import gives_one_row, list_of_rows, numbers_in_between, rows_of_text
from binlane.sql.logged_statement import LoggedText

FIRST = 10


def read(sql: str) -> LoggedText:
    text = LoggedText.of(1, LogPosition("log.000001", 4), Item(ItemKind.STATEMENT, sql.encode()), Flavor.MYSQL)
    assert text is not None
    return text


@pytest.mark.parametrize(
    ("sql", "is_one"),
    [
        ("INSERT INTO t VALUES (1, 'a')", True),
        ("INSERT INTO t (a, b) VALUE (1, '),(')", True),
        ("REPLACE t SET a = 1, b = (SELECT MAX(a) FROM s)", True),
        ("INSERT INTO t VALUES (f(1), ((2))) ON DUPLICATE KEY UPDATE a = VALUES(a)", True),
        ("INSERT INTO t VALUES (1, 'a') /* , (2, 'b') */", True),
        ("INSERT INTO t VALUES (1, 'a'), (2, 'b')", False),
        ("INSERT INTO t VALUES (1, 'a') /* one */ , -- two\n (2, 'b')", False),
        ("INSERT INTO t VALUES (f(1), 'a'), (2, g(3))", False),
        ("INSERT INTO t VALUES (1, 'a') /*!80000 , (2, 'b') */", False),
        ("INSERT INTO t VALUES ROW(1, 'a'), ROW(2, 'b')", False),
        ("INSERT INTO t (a) (VALUES (1), (2))", False),
        ("INSERT INTO t SELECT 1, 'a'", False),
        ("UPDATE t SET a = 1", False),
    ],
)
def test_one_row_is_told_from_several(sql: str, is_one: bool) -> None:
    assert gives_one_row(read(sql)) is is_one


def test_values_are_whole_if_they_are_one_token() -> None:
    text = read(
        "INSERT INTO t (a, b, c) VALUES (NULL, 'x,(y', -1), (DEFAULT, NOW(), 900) ON DUPLICATE KEY UPDATE a = 1"
    )
    assert list(rows_of_text(text, list_of_rows(text.tokens) or 0)) == [
        ("NULL", "'x,(y'", ""),
        ("DEFAULT", "", "900"),
    ]


@pytest.mark.parametrize(
    ("values", "is_between"),
    [
        (["NULL", "NULL", "DEFAULT"], False),
        (["500", "NULL", "NULL"], False),
        (["NULL", "500"], False),
        (["NULL", "9", "NULL"], False),
        (["NULL", "10", "NULL"], True),
        (["NULL", "500", "0"], True),
        (["NULL", "", "3", "default"], True),
        (["NULL", "'500'", "'0'"], True),
    ],
)
def test_a_number_behind_one_that_a_row_gives(values: list[str], is_between: bool) -> None:
    assert numbers_in_between([("x", each) for each in values], 1, FIRST) is is_between


def test_a_row_without_values_takes_a_number() -> None:
    text = read("INSERT INTO t () VALUES (), ()")
    assert not numbers_in_between(rows_of_text(text, list_of_rows(text.tokens) or 0), 0, FIRST)
