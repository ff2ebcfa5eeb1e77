"""Arrays made of buffers are those that pyarrow makes of the values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.work import arrow_arrays

INTS = st.integers(-(1 << 31), (1 << 31) - 1)
CASES = st.one_of(
    st.tuples(st.lists(INTS), st.just(pa.int32())),
    st.tuples(st.lists(INTS.map(lambda value: value << 32)), st.just(pa.int64())),
    st.tuples(st.lists(st.floats(allow_nan=False)), st.just(pa.float64())),
    st.tuples(st.lists(st.one_of(st.none(), st.binary())), st.just(pa.binary())),
    st.tuples(st.lists(st.one_of(st.none(), st.text())), st.just(pa.string())),
)


@given(CASES)
def test_an_array_is_the_one_that_pyarrow_makes(case: tuple[list[Any], pa.DataType]) -> None:
    values, kind = case
    found = arrow_arrays.array(values, kind)
    found.validate(full=True)
    assert found.equals(pa.array(values, kind))
    assert found.null_count == values.count(None)
    assert found.to_pylist() == values


def test_values_that_do_not_fit_an_arrow_type_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OverflowError):
        arrow_arrays.array([1 << 31], pa.int32())
    with pytest.raises(ValueError, match="expected a number, binary or string, got bool"):
        arrow_arrays.array([True], pa.bool_())
    monkeypatch.setattr(arrow_arrays, "_LARGEST", 3)
    assert arrow_arrays.array([b"abc"], pa.binary()).to_pylist() == [b"abc"]
    with pytest.raises(OverflowError, match="4 bytes in one array, 3 at most"):
        arrow_arrays.array([b"ab", b"cd"], pa.binary())
