"""Where compiled kernels are kept on disk: a folder named by the text of all modules that they are made of.

Numba asks only whether the module of a kernel is the one that it was compiled from. But a kernel holds what it calls,
and constants, of other modules: after an upgrade it would go on as before.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

CACHE_VARIABLE: Final = "NUMBA_CACHE_DIR"
_PARTS: Final = ("binlog", "source")
"""Parts that have kernels, and all that these are made of."""


def choose_cache(package: Path) -> None:
    """Tell numba, which must not be imported yet, where to keep the kernels of ``package``; who has told it, knows why.

    Where there is no room for a folder, numba finds a place of its own.
    """
    if CACHE_VARIABLE not in os.environ and (folder := cache_folder(package)) is not None:
        os.environ[CACHE_VARIABLE] = str(folder)


def cache_folder(package: Path) -> Path | None:
    """A folder beside the package's modules or, where these cannot be written to, at the user's; None if neither."""
    text = hashlib.sha256()
    for part in _PARTS:
        for module in sorted((package / part).rglob("*.py")):
            text.update(module.read_bytes())
    user = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    for base in (package / "__pycache__", Path(user) / "binlane"):
        try:
            # RuntimeError: a container's user may have neither a home nor a name
            folder = base.expanduser() / f"machine-code-{text.hexdigest()[:16]}"
            # what stands in it is run: nobody else may write there
            folder.mkdir(0o700, parents=True, exist_ok=True)
        except (OSError, RuntimeError):
            continue
        if os.access(folder, os.W_OK):
            return folder
    return None
