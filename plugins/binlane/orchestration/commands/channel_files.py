"""Writes files beside the channel files: only their owner can change them, whatever the umask is.

They decide which server a command writes to, and what it drops there.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from binlane.work import real_folders

_FILE: Final = 0o644
_FOLDER: Final = 0o755
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})
"""Errors of a file system without hard links."""


def make_folder(folder: Path) -> None:
    """The folder, with its missing parents. Those that are there keep their modes."""
    real_folders.make_folder(folder, _FOLDER)


def write_new(file: Path, text: str) -> None:
    """A new file, as a whole and on the disk, or none. Raises FileExistsError if there is one: two commands at once
    write one file."""
    temporary = _written(file, text)
    try:
        _link(temporary, file)
    finally:
        temporary.unlink(missing_ok=True)
    _sync(file.parent)


def replace_text(file: Path, text: str) -> None:
    """The file with another content, as a whole or not at all, and on the disk."""
    _written(file, text).replace(file)
    _sync(file.parent)


def _written(file: Path, text: str) -> Path:
    """The text on the disk, under a name of this process."""
    temporary = file.with_suffix(f".{os.getpid()}.new")
    # of a command that was killed
    temporary.unlink(missing_ok=True)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _link(temporary: Path, file: Path) -> None:
    try:
        os.link(temporary, file)
    except OSError as exc:
        if exc.errno not in _NO_LINKS:
            raise
        if file.exists():
            raise FileExistsError(str(file)) from exc
        temporary.replace(file)


def _sync(folder: Path) -> None:
    """A new name is on the disk with its folder alone."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        real_folders.sync(handle)
    finally:
        os.close(handle)
