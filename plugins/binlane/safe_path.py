"""Keeps modules of the current folder out of the interpreters that binlane starts.

``python -c`` and ``python -m`` look for every module in the current folder first: a file ``signal.py`` there, which
anybody has put into a shared folder, would run as the account of who calls binlane, with the servers' passwords.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

_SAFE_PATH: Final = "PYTHONSAFEPATH"
"""https://docs.python.org/3/using/cmdline.html#envvar-PYTHONSAFEPATH"""


def with_safe_path(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a program that starts interpreters."""
    return {**environment, _SAFE_PATH: "1"}


@contextmanager
def safe_path() -> Iterator[None]:
    """Around the start of an interpreter that gets this process's environment. Programs of the user's, which are
    started later, do not get the setting."""
    if _SAFE_PATH in os.environ:
        yield
        return
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        os.environ.pop(_SAFE_PATH, None)
