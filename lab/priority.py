"""The priority of trials that run for hours beside other work."""

from __future__ import annotations

import os
from typing import Final

_NICE: Final = 10


def in_background() -> None:
    """Give this process and its later children a low priority; a lower one, which the caller has chosen, stays."""
    os.setpriority(os.PRIO_PROCESS, 0, max(_NICE, os.getpriority(os.PRIO_PROCESS, 0)))
