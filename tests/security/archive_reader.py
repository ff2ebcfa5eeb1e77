"""The reading of an archive's folder, for a process of its own, which need not make the data of all attacks."""

from __future__ import annotations

import resource
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from binlane.errors import BinlaneError
from binlane.source.archive import ArchiveSource
from binlane.source.end_position import UntilLogEnd
from binlane.source.segments import extract
from binlane.source.start_position import begin
from binlane.work.files import WorkFolder

MOST_MEMORY: Final = 1 << 30
"""Of address space, on top of what the program has when it begins to read."""


def read_archive(folder: str, work: str, answer: Connection) -> None:
    """What came of a window of the folder's log."""
    begun = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (begun + MOST_MEMORY,) * 2)
    source = ArchiveSource(folder)
    try:
        place = WorkFolder(work)
        made = extract(source, begin(source, "oldest"), UntilLogEnd(), place, channel="c", window="w")
        answer.send(f"{made.transactions} transactions")
    except BinlaneError as exc:
        answer.send(str(exc))
