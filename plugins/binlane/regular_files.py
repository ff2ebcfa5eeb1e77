"""Opens files of folders in which others may write: a regular file, or an error that says what is there instead.

Behind a file's name there may be a FIFO, for which a reader waits for ever, or a device without an end. Looking first
and opening then would leave a moment in between: so the open file itself is asked what it is.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO, Final

_KINDS: Final = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_NOT_OPENED: Final = {errno.ENXIO: "a socket", errno.ELOOP: "a loop of symbolic links"}
"""What the system does not open at all, by its error."""


class NotRegularFileError(OSError):
    """Something else than a file has the file's name: ``strerror`` says what, ``filename`` where."""


def open_regular(path: str | Path) -> IO[bytes]:
    """The file, for reading; a symbolic link to a file is one. Raises NotRegularFileError, and OSError as ``open``."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as exc:
        if exc.errno not in _NOT_OPENED:
            raise
        raise _not_regular(path, _NOT_OPENED[exc.errno]) from exc
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise _not_regular(path, _KINDS.get(kind, "something else"))
    return os.fdopen(descriptor, "rb")


def _not_regular(path: str | Path, found: str) -> NotRegularFileError:
    return NotRegularFileError(errno.EINVAL, f"expected a file, found {found}", str(path))
