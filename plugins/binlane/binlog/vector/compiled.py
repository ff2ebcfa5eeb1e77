"""The decorators of kernels: functions that numba compiles at their first call, once a machine (``machine_code``).

A process that finds a kernel in the cache does not start numba's compiler. Numba itself would: before it looks into its
cache, it imports all that a compilation may need and registers thousands of types, a third of a second of a core. It
does the same again before a compilation, so nothing is missing there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

from numba import njit
from numba.core.runtime.nrt import rtsys

_Function = TypeVar("_Function", bound=Callable[..., Any])
_compile: Final[Any] = partial(njit, cache=True, nogil=True)
"""Its types do not have the option ``_nrt`` (numba's runtime, which counts references to arrays), which numba uses
itself for functions that make none."""


def kernel(function: _Function) -> _Function:
    """A kernel that releases Python's lock while it runs. It makes no arrays, and assigns no range of one to another.

    So references to arrays need not be counted: numba would count each array that a kernel gives to another kernel, by
    two atomic instructions, which took a fifth of the filter job's time.
    """
    return cast(_Function, _started_late(_compile(_nrt=False)(function)))


def copying(function: _Function) -> _Function:
    """As ``kernel``, but it may make arrays and copy ranges."""
    return cast(_Function, _started_late(_compile()(function)))


def inlined(function: _Function) -> _Function:
    """A part of kernels, compiled into each of them."""
    return cast(_Function, _started_late(_compile(_nrt=False, inline="always")(function)))


def is_loaded(function: Callable[..., Any]) -> bool:
    """Whether a kernel has machine code in this process, of whatever types."""
    return bool(getattr(function, "signatures", ()))


def _started_late(compiled: Any) -> Any:
    """The function, loaded from the cache without numba's compiler. Numba's cache has no public way to say so: where it
    is another one, or off, it stays as it is."""
    cache: Any = getattr(compiled, "_cache", None)
    if hasattr(cache, "_load_overload"):
        cache.load_overload = partial(_load, cache)
    return compiled


def _load(cache: Any, signature: Any, context: Any) -> Any:
    """As ``Cache.load_overload`` of numba, without ``context.refresh()``."""
    # the functions by which machine code holds arrays
    rtsys.initialize(context)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, context)
