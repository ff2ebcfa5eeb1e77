"""What NumPy needs at its start: none of the threads of its linear algebra."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_BLAS_THREADS: Final = "OPENBLAS_NUM_THREADS"


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Around the first import of NumPy: its linear algebra, which binlane does not use, gets no threads.

    OpenBLAS would start one for each core, and they spin for some time: with two cores that is 0.05 s of CPU, a tenth
    of what the imports of `binlane run` take. It reads the setting at its import alone, so programs that the command
    starts do not get it; a setting of the user's is kept.
    """
    if _BLAS_THREADS in os.environ:
        yield
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        yield
    finally:
        os.environ.pop(_BLAS_THREADS, None)
