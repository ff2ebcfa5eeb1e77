"""What others on a machine see of Spark's processes: their arguments, and to the same account their environments."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType


class Onlooker:
    """Looks at this process's descendants that are Spark's, again and again, while a ``with`` lasts.

    ``files``: of ``--properties-file``, with the modes they had.
    """

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self.files: dict[str, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Onlooker:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def shows(self, text: str) -> bool:
        """Whether some process had this among its arguments or in its environment."""
        return any(text.encode() in each for each in self.seen)

    def _run(self) -> None:
        while not self._ended.is_set():
            for pid in descendants(os.getpid()):
                # gone meanwhile
                with contextlib.suppress(OSError):
                    self._look(Path(f"/proc/{pid}"))
            self._ended.wait(0.5)

    def _look(self, process: Path) -> None:
        arguments = (process / "cmdline").read_bytes()
        if b"spark" not in arguments:
            return
        self.seen |= {arguments, (process / "environ").read_bytes()}
        words = arguments.decode(errors="replace").split("\0")
        if "--properties-file" in words:
            path = words[words.index("--properties-file") + 1]
            self.files[path] = Path(path).stat().st_mode & 0o777


def descendants(pid: int) -> Iterator[int]:
    """The processes that this one has started, and theirs."""
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield int(child)
                yield from descendants(int(child))
