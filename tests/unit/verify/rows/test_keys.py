"""Keys of one table, in arrays and as texts: the same set, and the order of an index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.model import Flavor, TableKey
from binlane.schema.model import Column
from binlane.verify.rows.column_text import ComparedTable, Key
from binlane.verify.rows.keys import IntegerKeys, KeySet

NAME = TableKey("d", "t")
SIGNED, UNSIGNED = Column("a", 1, "bigint"), Column("b", 2, "bigint", unsigned=True)
SHAPES = {
    "signed": (SIGNED,),
    "unsigned": (UNSIGNED,),
    "both": (UNSIGNED, SIGNED),
    "three": (SIGNED, UNSIGNED, Column("c", 3, "tinyint")),
}
VALUES = {
    "a": st.sampled_from((-(2**63), -2, -1, 0, 1, 9, 10, 2**63 - 1)),
    "b": st.sampled_from((0, 1, 9, 10, 2**63 - 1, 2**63, 2**64 - 1)),
    "c": st.integers(-2, 1),
}


def table(shape: str) -> ComparedTable:
    return ComparedTable(NAME, NAME, SHAPES[shape], SHAPES[shape], (Flavor.MYSQL, Flavor.MARIADB))


def arrays(shape: str, keys: Sequence[tuple[int, ...]]) -> IntegerKeys:
    """Keys as a segment's reading gives them."""
    kinds = (np.uint64 if column.unsigned else np.int64 for column in SHAPES[shape])
    columns = zip(*keys, strict=True) if keys else [()] * len(SHAPES[shape])
    return IntegerKeys.distinct([tuple(np.array(each, kind) for each, kind in zip(columns, kinds, strict=True))])


def text(key: tuple[int, ...]) -> Key:
    return tuple(map(str, key))


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_arrays_and_texts_are_one_set_in_the_order_of_an_index(shape: str, data: st.DataObject) -> None:
    key = st.tuples(*(VALUES[column.name] for column in SHAPES[shape]))
    parts = data.draw(st.lists(st.lists(key, max_size=12), max_size=3))
    single = data.draw(st.lists(key, max_size=12))
    found = KeySet(map(text, single))
    for part in parts:
        found.update(arrays(shape, part))
    everything = {*single, *(one for part in parts for one in part)}
    assert bool(found) == bool(everything)
    ordered = found.in_order(table(shape))
    assert list(ordered) == [text(one) for one in sorted(everything)]
    assert len(ordered) == len(everything)
    assert list(ordered[1:4]) == list(ordered)[1:4]
    if everything:
        assert (ordered[0], ordered[-1]) == (text(min(everything)), text(max(everything)))
    assert set(found) == {text(one) for one in everything}
    assert list(found.in_order(table(shape))) == list(ordered)


def test_a_key_is_in_the_set_however_it_came() -> None:
    found = KeySet([("7",)])
    found.update(arrays("signed", [(1,), (-2,), (1,)]))
    assert [(key in found) for key in (("7",), ("1",), ("-2",), ("2",))] == [True, True, True, False]
    assert len(found) == 3
    found.update(arrays("signed", [(2,)]))
    assert set(found) == {("7",), ("1",), ("-2",), ("2",)}


def test_keys_of_other_types_are_in_the_order_of_their_texts() -> None:
    column = Column("a", 1, "varbinary")
    by_text = ComparedTable(NAME, NAME, (column, SIGNED), (column, SIGNED), (Flavor.MYSQL, Flavor.MYSQL))
    found = KeySet([("30", "10"), ("30", "9"), ("2F", "-1")])
    assert list(found.in_order(by_text)) == [("2F", "-1"), ("30", "9"), ("30", "10")]


@pytest.mark.parametrize("single", [(), (-3,)])
def test_keys_of_a_column_that_had_another_sign_keep_their_values(single: tuple[int, ...]) -> None:
    """Arrays with and without a sign together would become floating point, which has no place for all of them."""
    found = KeySet(text((one,)) for one in single)
    found.update(arrays("signed", [(2**63 - 1,), (-2,)]))
    found.update(arrays("unsigned", [(2**64 - 1,), (2**64 - 2,)]))
    expected = [text((one,)) for one in (*single, -2, 2**63 - 1, 2**64 - 2, 2**64 - 1)]
    assert list(found.in_order(table("unsigned"))) == expected
