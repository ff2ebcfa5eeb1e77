"""Conditions for keys: an SQL engine finds the rows with these keys by them, and no other row."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlog.types.sql_types import SQL_TYPES
from binlane.errors import DriftError
from binlane.model import Flavor, TableKey
from binlane.schema.model import Column
from binlane.verify.rows.column_text import ComparedTable, Key, is_key, is_of, key_shape, literal, one_of
from binlane.verify.rows.keys import in_order

NAME = TableKey("d", "t")
COLUMNS = {
    "number": (Column("a", 1, "bigint"), [str(n) for n in (-(2**63), *range(-2, 13), 2**63 - 1)]),
    "bytes": (Column("b", 2, "varbinary"), ["", "30", "31", "32", "3031"]),
    "year": (Column("c", 3, "year"), ["0", "2025", "2026", "2027"]),
    "other number": (Column("d", 4, "int"), [str(n) for n in range(-1, 7)]),
}
SHAPES = [("number",), ("bytes",), ("other number", "number"), ("bytes", "year", "other number"), ("number", "bytes")]


def table(shape: tuple[str, ...]) -> ComparedTable:
    key = tuple(COLUMNS[name][0] for name in shape)
    return ComparedTable(NAME, NAME, key, key, (Flavor.MYSQL, Flavor.MARIADB))


def stored(shape: tuple[str, ...], key: Key) -> tuple[object, ...]:
    return tuple(
        bytes.fromhex(text) if COLUMNS[name][0].data_type == "varbinary" else int(text)
        for name, text in zip(shape, key, strict=True)
    )


@pytest.mark.parametrize("ranges", [False, True])
@given(data=st.data())
def test_the_rows_of_a_condition_are_those_with_its_keys(ranges: bool, data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    rows = list(itertools.product(*(COLUMNS[name][1] for name in shape)))
    keys = data.draw(st.sets(st.sampled_from(rows), min_size=1, max_size=40))
    compared = table(shape)
    ordered = in_order(compared, keys)
    assert len(ordered) == len(keys)
    assert set(ordered) == keys
    with contextlib.closing(sqlite3.connect(":memory:")) as engine:
        names = ", ".join(column.name for column in compared.key)
        engine.execute(f"CREATE TABLE t ({names})")
        engine.executemany(
            f"INSERT INTO t VALUES ({', '.join('?' * len(shape))})", [stored(shape, row) for row in rows]
        )
        found = engine.execute(f"SELECT * FROM t WHERE {one_of(compared, ordered, Flavor.MYSQL, ranges=ranges)}")
        assert sorted(map(repr, found)) == sorted(repr(stored(shape, key)) for key in keys)


@pytest.mark.parametrize("data_type", SQL_TYPES)
@pytest.mark.parametrize(
    "text", ["7) OR (1", "7') OR ('7", "7 + f()", "7\\') OR 1 -- ", "7e0-f()", "X", "\n", "\u0667"]
)
def test_a_text_is_one_literal_or_an_error(data_type: str, text: str) -> None:
    column = Column("a", 1, data_type)
    compared = ComparedTable(NAME, NAME, (column,), (column,), (Flavor.MYSQL, Flavor.MYSQL))
    if is_key(compared, (text,)):
        escaped = text.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n")
        assert literal(column, text, Flavor.MYSQL) == f"'{escaped}'"
    else:
        with pytest.raises(DriftError, match=r"column a: expected the text of a .* in a primary key, found "):
            literal(column, text, Flavor.MYSQL)


def test_a_key_has_a_value_for_each_column() -> None:
    assert is_key(table(("bytes", "year")), ("30", "2026"))
    assert not is_key(table(("bytes", "year")), ("30",))
    assert not is_key(table(("bytes", "year")), ("30", "2026", "1"))


def test_consecutive_integers_are_one_range_where_that_is_asked_for() -> None:
    compared = table(("number",))
    keys = in_order(compared, [(str(n),) for n in (7, 10, 9, 11, 3, 100)])
    assert one_of(compared, keys, Flavor.MYSQL, ranges=True) == "(`a` BETWEEN 9 AND 11 OR `a` IN (3, 7, 100))"
    assert one_of(compared, keys, Flavor.MYSQL) == "`a` IN (3, 7, 9, 10, 11, 100)"
    compared = table(("other number", "number"))
    keys = in_order(compared, [("2", "1"), ("2", "2"), ("1", "3"), ("2", "10"), ("7", "3")])
    assert one_of(compared, keys, Flavor.MYSQL, ranges=True) == (
        "((`d` IN (1, 7) AND `a` IN (3)) OR (`d` IN (2) AND (`a` BETWEEN 1 AND 2 OR `a` IN (10))))"
    )
    assert (
        one_of(compared, keys[::-1], Flavor.MYSQL)
        == "((`d` IN (7, 1) AND `a` IN (3)) OR (`d` IN (2) AND `a` IN (10, 2, 1)))"
    )


def test_a_key_of_a_time_when_its_column_had_another_sign_has_a_place_too() -> None:
    numbers = [-(1 << 63), -5, 7, (1 << 64) - 1]
    keys = [(str(n),) for n in numbers]
    assert in_order(table(("number",)), keys[::-1]) == keys


def test_no_keys_are_in_order_too() -> None:
    assert list(in_order(table(("number",)), ())) == []


def test_a_key_of_an_earlier_primary_key_is_told_by_that_key_s_definition() -> None:
    then, now = table(("bytes",)), table(("number",))
    assert is_of(then, key_shape(then))
    assert not is_of(now, key_shape(then))
