"""The reading of a dump, for a process of its own with little memory."""

from __future__ import annotations

import resource
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

from binlane.bootstrap.sessions import Session
from binlane.errors import BinlaneError
from binlane.model import Flavor
from binlane.restore import dump_file, shell_rows
from binlane.restore.dump import dump_of
from binlane.restore.dump_load import DumpLoad

MOST_MEMORY: Final = 300 << 20
"""Of address space, on top of what the program has when it begins to read."""
LARGEST: Final = 32 << 20
"""Of a statement, in place of the servers' limit."""


def read_dump(path: str, answer: Connection) -> None:
    """What came of the place that the dump has recorded, and of its statements for the database shop."""
    begun = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (begun + MOST_MEMORY,) * 2)
    dump_file._LARGEST = shell_rows._LARGEST = LARGEST  # type: ignore[misc]
    try:
        dump = dump_of(Path(path), {"shop"})
        place = dump.place()
        load = DumpLoad(Session(None, Flavor.MARIADB, None), (10, 11, 6), path, {"shop": "back"}, place.definers)
        sent = [made for made in map(load.statement, dump.statements("")) if made is not None]
        counts = dump.row_counts()
        answer.send(f"{len(sent)} statements at {place.position}, {dump.digest[:0]}{len(counts)} counts")
    except BinlaneError as exc:
        answer.send(str(exc))
