"""``pyarrow.compute``, loaded when its first function is needed: 0.06 s, as much as half of all that NumPy takes.

Only windows with statements, and channels with ``(pattern)``, need it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(import_module("pyarrow.compute"), name)
