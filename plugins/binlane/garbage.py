"""What the cyclic garbage collector leaves alone: objects that all live as long as the work that makes them."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_imports() -> Iterator[None]:
    """Around a command's imports: a million objects that live as long as the process.

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


@contextmanager
def uncollected() -> Iterator[None]:
    """Without the cyclic garbage collector: it would walk over all the objects again and again, and finds nothing.

    For bounded work alone, such as a step over a window's tables or a segment's events, because what cycles there are
    stay until its end. Over 10,000 tables the collector takes a quarter of the CPU. It is off for all threads until the
    first one that has entered leaves.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
