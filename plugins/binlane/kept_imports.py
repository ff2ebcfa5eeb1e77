"""How a command imports what it needs: a window of a second has no time to spare for its start."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_imports() -> Iterator[None]:
    """Around a command's imports: they make a million objects that live as long as the process.

    The garbage collector does not look for garbage among them: not while they are made, not later, and not in processes
    that are forked from it, which would each copy the pages. Nor does it look for any when the process ends. That is a
    third of the CPU of the import of all modules of ``binlane run``, and most of that of its end.
    """
    # once, however often this is called
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
