"""Waits for what another process, thread or server brings about."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_until(
    reached: Callable[[], bool], seconds: float = 120.0, pause: float = 0.1, shown: Callable[[], object] = object
) -> None:
    """Look every ``pause`` seconds until a condition holds; fail after ``seconds``, with what is ``shown`` instead."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, f"not reached within {seconds:.0f} seconds: {shown()}"
        time.sleep(pause)
