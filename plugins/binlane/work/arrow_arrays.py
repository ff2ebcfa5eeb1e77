"""Builds Arrow arrays from Python values.

``pyarrow.array`` imports pandas to check for pandas objects: a third of a second of CPU, and tens of MiB, in every
worker. Arrays built from buffers need no such check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

_NUMBERS: Final[Mapping[pa.DataType, Any]] = {pa.int32(): np.int32, pa.int64(): np.int64, pa.float64(): np.float64}
_LARGEST: Final = (1 << 31) - 1
"""Most bytes of all values of one binary or string array: offsets have 32 bits."""


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """``pyarrow.array`` for numbers, which are never None, and for binary and string.

    Raises OverflowError for a number that does not fit, and for values whose total length is too large.
    """
    if (number := _NUMBERS.get(kind)) is not None:
        return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.array(values, number))])
    if kind not in (pa.binary(), pa.string()):
        raise ValueError(f"expected a number, binary or string, got {kind}")
    data = [_bytes_of(value) for value in values]
    ends = np.zeros(len(values) + 1, np.int64)
    np.cumsum([len(each) for each in data], out=ends[1:])
    if ends[-1] > _LARGEST:
        raise OverflowError(f"{ends[-1]:,} bytes in one array, {_LARGEST:,} at most")
    is_there = np.array([value is not None for value in values], np.bool_)
    present = None if is_there.all() else pa.py_buffer(np.packbits(is_there, bitorder="little"))
    buffers = [present, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(data))]
    return pa.Array.from_buffers(kind, len(values), buffers)


def _bytes_of(value: Any) -> bytes:
    if value is None:
        return b""
    return value.encode() if isinstance(value, str) else value
