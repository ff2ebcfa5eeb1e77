"""Arrays of a whole segment."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlog.vector.arrays import distinct

NUMBERS = st.lists(st.integers(-3, 3) | st.integers(-(1 << 63), (1 << 63) - 1), max_size=40)


@given(NUMBERS)
def test_the_different_entries_are_sorted_and_each_is_there_once(values: list[int]) -> None:
    found = distinct(np.array(values, np.int64))
    assert found.dtype == np.int64
    assert found.tolist() == sorted(set(values))


def test_masked_arrays_are_not_loaded() -> None:
    loaded = "print('numpy.ma' in sys.modules)"
    program = f"""
import sys
import numpy as np
from binlane.binlog.vector.arrays import distinct
distinct(np.arange(3)); {loaded}
np.unique(np.arange(3)); {loaded}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    # and NumPy's own function does still load them, or else ours is of no use any more
    assert done.stdout.split() == ["False", "True"]
