"""Writes files beside the channel files: only their owner can change them, whatever the umask is.

They decide which server a command writes to, and what it drops there.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_FILE: Final = 0o644
_FOLDER: Final = 0o755


def make_folder(folder: Path) -> None:
    """The folder, with its missing parents. Those that are there keep their modes."""
    for each in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        each.mkdir(_FOLDER, exist_ok=True)


def write_new(file: Path, text: str) -> None:
    """A new file. Raises FileExistsError if there is one: two commands at once write one file."""
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE)
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        out.write(text)


def replace_text(file: Path, text: str) -> None:
    """The file with another content, as a whole or not at all."""
    temporary = file.with_suffix(".new")
    # of a command that was killed
    temporary.unlink(missing_ok=True)
    write_new(temporary, text)
    temporary.replace(file)
