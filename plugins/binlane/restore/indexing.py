"""Makes the index of an archive, by processes of this machine: files that have none yet, or whose size has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from typing import Final

from binlane.errors import BinlogError, ExecutorsLostError, SourceError, WorkError
from binlane.lazy_dataclass import dataclass
from binlane.restore.archive_index import ArchiveIndex, folder_of, index_file, name_of
from binlane.source.archive import ArchiveSource
from binlane.work.plan_job.job import LocalProcesses

_STAGE: Final = "index"


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a file that had no index."""

    file: str
    log_bytes: int
    """Decompressed."""
    index_bytes: int
    fault: str = ""
    """Why it has none now."""


def make_index(uri: str, processes: int | None = None) -> Iterator[Made]:
    """Index the closed files of an archive that no index describes yet, in the log's order as each is done.

    ``processes``: at a time; None: as many as this machine has processors. Raises SourceError for a folder that is no
    archive of one log, and ExecutorsLostError for a process that was killed: what is made stays.
    """
    found = ArchiveIndex(ArchiveSource(uri))
    new = [each for each in map(found.of, found.files) if each.facts is None and not each.is_open]
    pool = LocalProcesses(processes or os.cpu_count() or 1)
    try:
        for row in pool.run(_STAGE, partial(_index_one, uri), [[f"{each.file}/{each.stored}"] for each in new]):
            yield Made(**json.loads(row))
    except ExecutorsLostError as exc:
        raise ExecutorsLostError(
            f"{uri}: a process that indexes is gone (kill -9, or out of memory); what is indexed stays: run it again"
        ) from exc
    finally:
        pool.close()


def _index_one(uri: str, names: str) -> bytes:
    """A task of ``LocalProcesses``. ``names``: the file's in the log and in the archive."""
    file, stored = names.split("/")
    source = ArchiveSource(uri)
    try:
        facts, data = index_file(source, file, stored)
    except (SourceError, BinlogError) as exc:
        if exc.retryable:
            raise
        return json.dumps({"file": file, "log_bytes": 0, "index_bytes": 0, "fault": str(exc)}).encode()
    folder = folder_of(uri)
    try:
        folder.replace(name_of(stored), data)
    except OSError as exc:
        raise WorkError(
            f"{folder.uri}: cannot be written: {exc.strerror or exc}; nothing of the archive was changed. Run `binlane "
            f"archive index` as an account that may write to that folder, and is trusted like the one that writes the "
            f"log, because a restore passes over what the index rules out; of {uri} it reads the files alone. A "
            "restore works without an index, and reads more"
        ) from exc
    return json.dumps({"file": file, "log_bytes": facts.bytes, "index_bytes": len(data)}).encode()
