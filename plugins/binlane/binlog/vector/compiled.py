"""The decorators of kernels: functions that numba compiles at their first call, once a machine (``machine_code``).

A process that finds a kernel in the cache does not start numba's compiler. Numba itself would: before it looks into its
cache, it imports all that a compilation may need and registers thousands of types, a third of a second of a core. It
does the same again before a compilation, so nothing is missing there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import config
from numba.core.runtime.nrt import rtsys
from numba.extending import intrinsic
from numpy.typing import NDArray

_Function = TypeVar("_Function", bound=Callable[..., Any])
_settings: Final[Any] = config
"""Its types do not have the settings, which numba reads from the environment."""
AHEAD: Final = 16
"""How many events, or rows, before its turn the bytes of one are fetched from memory."""
_compile: Final[Any] = partial(njit, cache=True, nogil=True)
"""Its types do not have the option ``_nrt`` (numba's runtime, which counts references to arrays), which numba uses
itself for functions that make none."""


def kernel(function: _Function) -> _Function:
    """A kernel that releases Python's lock while it runs. It makes no arrays, and assigns no range of one to another.

    So references to arrays need not be counted: numba would count each array that a kernel gives to another kernel, by
    two atomic instructions, which took a fifth of the plan job's time.
    """
    return cast(_Function, _started_late(_compile(_nrt=False)(function)))


def copying(function: _Function) -> _Function:
    """As ``kernel``, but it may make arrays and copy ranges."""
    return cast(_Function, _started_late(_compile()(function)))


def inlined(function: _Function) -> _Function:
    """A part of kernels, compiled into each of them."""
    return cast(_Function, _started_late(_compile(_nrt=False, inline="always")(function)))


def _prefetch(_: Any, data: Any, at: Any) -> Any:
    """Typing and LLVM code of ``prefetch``, as ``numba.extending.intrinsic`` takes them."""

    def llvm(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
        array = context.make_array(data)(context, builder, arguments[0])
        place = builder.gep(array.data, [arguments[1]])
        number = ir.IntType(32)
        shape = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        # to be read, into every level of the cache, of data: https://llvm.org/docs/LangRef.html#llvm-prefetch-intrinsic
        function = builder.module.declare_intrinsic("llvm.prefetch", [place.type], shape)
        builder.call(function, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(data, types.int64), llvm


def _no_prefetch(data: NDArray[np.uint8], at: int) -> None:
    """``prefetch`` where numba is switched off (NUMBA_DISABLE_JIT)."""


prefetch: Final[Callable[[NDArray[np.uint8], int], None]] = cast(
    Any, _no_prefetch if _settings.DISABLE_JIT else intrinsic(_prefetch)
)
"""``prefetch(data, at)`` in a kernel: the processor fetches the bytes around data[at] while the kernel goes on. An
offset outside the array does no harm.

Events and rows have no fixed length, so a processor does not guess where the next one begins, and waits for memory at
each: ``index`` took 62 ns an event of a segment of 64 MiB, and 15 with this.
"""


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


@inlined
def prefetch_row(data: NDArray[np.uint8], images: NDArray[np.int64], row: int) -> None:
    """Fetch the images of a later row; ``images``: a row's before start, before end, after start and after end."""
    later = min(row + AHEAD, images.shape[0] - 1)
    prefetch(data, images[later, 0])
    prefetch(data, images[later, 2])
