"""The types of arrays for a whole segment, by the dtype of their entries."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.integer)
Bytes = NDArray[np.uint8]
"""Bytes of a log, and event types, which are one byte each."""
Ints = NDArray[np.int64]
"""Offsets, numbers of events, counts."""
Flags = NDArray[np.bool_]
Sizes = NDArray[np.uint32]
"""Fields of four bytes, such as an event's size and its time; CRC32s."""
Halves = NDArray[np.uint16]
"""Fields of two bytes: the flags of an event."""
Numbers = NDArray[np.int32]
"""Numbers of tables and of databases; -1: none."""
Words = NDArray[np.uint64]
"""Hashes, and parts of a GTID."""


def distinct(values: NDArray[_Number]) -> NDArray[_Number]:
    """The different entries of an array of whole numbers, sorted.

    As ``np.unique``, which loads NumPy's masked arrays in each process (0.015 s) and is five times as slow when it asks
    for the entries alone, because it looks them up one by one.
    """
    found: NDArray[_Number] = np.unique(values, return_counts=True)[0]
    return found
