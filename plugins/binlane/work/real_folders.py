"""Folders of this machine below a work folder, entered one after another: none of them is a symbolic link.

Others may be able to write to the work folder. A link in place of a folder would lead what is written there, or what is
removed, to wherever it points; looking first and opening then would leave a moment in between.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from binlane.errors import PlanError

PRIVATE_FOLDER: Final = 0o700
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
"""Of one that gets files, and is fsynced behind them."""
_PASSED: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
"""Of all others: this account may be allowed to enter them and no more (mode 0711). macOS has no O_PATH."""
_NO_FSYNC: Final = frozenset({errno.EINVAL, errno.EBADF, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})
"""Errors of a file system that syncs no folders (CIFS, FUSE): what it does with new names is its own affair."""


def make_folder(folder: Path, mode: int = PRIVATE_FOLDER) -> None:
    """The folder, with its missing parents, all of this mode less the umask (``mkdir`` gives parents that of the umask
    alone). Those that are there keep their modes."""
    for each in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        each.mkdir(mode, exist_ok=True)


@contextlib.contextmanager
def entered(root: Path, names: Sequence[str], *, makes: bool = False, mode: int = PRIVATE_FOLDER) -> Iterator[int]:
    """A descriptor of the folder ``names``, each below the one before it and the first below ``root``, which alone may
    be a link. ``makes``: missing ones, with this mode below ``root``, whatever the umask is; the descriptor can be
    fsynced then.

    A window's hold every row of the source's log. An existing folder keeps its mode, which an administrator may have
    chosen.
    Raises PlanError for something else than a folder, and FileNotFoundError for a missing one.
    """
    if makes:
        make_folder(root)
    here = os.open(root, _FOLDER if makes and not names else _PASSED)
    try:
        for depth, name in enumerate(names, 1):
            is_made = makes and _is_made(name, here)
            how = _FOLDER if makes and depth == len(names) else _PASSED
            try:
                below = os.open(name, how | os.O_NOFOLLOW, dir_fd=here)
            except NotADirectoryError:
                raise _not_a_folder(root.joinpath(*names[:depth])) from None
            os.close(here)
            here = below
            if is_made and mode != PRIVATE_FOLDER:
                os.chmod(".", mode, dir_fd=here)
        yield here
    finally:
        os.close(here)


def sync(folder: int) -> None:
    """Names that were made in a folder, by its descriptor, are on the disk then."""
    try:
        os.fsync(folder)
    except OSError as exc:
        if exc.errno not in _NO_FSYNC:
            raise


def _is_made(name: str, above: int) -> bool:
    """Makes the folder, unless it is there."""
    try:
        os.mkdir(name, PRIVATE_FOLDER, dir_fd=above)
    except FileExistsError:
        return False
    return True


def remove_tree(root: Path, names: Sequence[str]) -> None:
    """Remove what is at ``names`` below ``root``: a folder with everything in it, or a link without what is behind it.
    Raises as ``entered``."""
    with entered(root, names[:-1]) as parent:
        if stat.S_ISDIR(os.stat(names[-1], dir_fd=parent, follow_symlinks=False).st_mode):
            shutil.rmtree(names[-1], dir_fd=parent)
        else:
            os.unlink(names[-1], dir_fd=parent)


def _not_a_folder(place: Path) -> PlanError:
    found = "a symbolic link" if place.is_symlink() else "something else"
    return PlanError(
        f"{place}: expected a folder, found {found}, which another program has put there: below the work folder "
        "(work.uri, which may be a link itself) none is followed; find out who can write to the work folder, remove "
        f"{place}, and run again"
    )
