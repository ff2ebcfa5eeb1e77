"""JSON that is one value has one spelling, whichever server wrote its text."""

from __future__ import annotations

import pytest

from binlane.binlog.types.json_equality import spelled_by_value


@pytest.mark.parametrize(
    ("mariadb", "mysql"),
    [
        ('{"b":1,"a":[1,2]}', '{"a": [1, 2], "b": 1}'),
        ('{"a":1,"a":2}', '{"a": 2}'),
        ("1.50", "1.5"),
        ("1e2", "100.0"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("-9223372036854775809", "-9.223372036854776e18"),
        ("1" + "0" * 40, "1e40"),
        (' "\\u00df" ', '"ß"'),
    ],
)
def test_one_value_has_one_spelling(mariadb: str, mysql: str) -> None:
    assert spelled_by_value(mariadb) == spelled_by_value(mysql)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"),
        ("1", "true"),
        ("1", '"1"'),
        ("[1,2]", "[2,1]"),
        ("null", "[]"),
        ("9007199254740993", "9007199254740992"),
        ("no json", "no Json"),
        ("[" * 100_000, "[" * 100_001),
        ('"\\ud800"', '"\\ud801"'),
    ],
)
def test_different_values_have_different_spellings(one: str, other: str) -> None:
    assert spelled_by_value(one) != spelled_by_value(other)
