"""The cache of numba's compiled kernels: a folder named by a digest of the source text of all modules they depend on.

Numba checks only whether a kernel's own module has changed. But a compiled kernel includes functions and constants of
other modules, and would keep their old versions after an upgrade.

And what else machine code needs at its start: none of NumPy's threads.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

CACHE_VARIABLE: Final = "NUMBA_CACHE_DIR"
_PARTS: Final = ("binlog", "bootstrap", "source")
"""The packages with kernels, and the packages that the kernels depend on."""
_BLAS_THREADS: Final = "OPENBLAS_NUM_THREADS"


def choose_cache(package: Path) -> None:
    """Set numba's cache folder for the kernels of ``package``, before numba is imported; an existing setting is kept.

    If no folder can be created, numba uses its own default.
    """
    if CACHE_VARIABLE not in os.environ and (folder := cache_folder(package)) is not None:
        os.environ[CACHE_VARIABLE] = str(folder)


def cache_folder(package: Path) -> Path | None:
    """A folder beside the package's modules or, if that is read-only, in the user's cache; None if neither is
    possible."""
    text = hashlib.sha256()
    for part in _PARTS:
        for module in sorted((package / part).rglob("*.py")):
            text.update(module.read_bytes())
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for base in (package / "__pycache__", Path(user) / "binlane"):
        try:
            # RuntimeError: a container's user may have neither a home nor a name
            folder = base.expanduser() / f"machine-code-{text.hexdigest()[:16]}"
            # its files are executed, so no other account may write to it
            folder.mkdir(0o700, parents=True, exist_ok=True)
        except (OSError, RuntimeError):
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None


def load_cached(*kernels: Any) -> None:
    """Load the machine code of functions under ``numba.njit(cache=True)`` for all types of arguments that the cache
    has; compiles nothing.

    Numba's index of a function's cached versions is not public: where it is another one, nothing is loaded ahead.
    """
    for kernel in kernels:
        try:
            cache, codegen = kernel._cache, kernel.targetctx.codegen()
            cached = [key for key in cache._cache_file._load_index() if key == cache._index_key(key[0], codegen)]
        except (AttributeError, TypeError, LookupError):
            return
        for key in cached:
            kernel.compile(key[0])


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
