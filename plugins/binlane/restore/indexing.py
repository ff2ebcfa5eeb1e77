"""Makes the index of an archive, by processes of this machine or on Spark: files that have none yet, or whose size has
changed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from binlane.errors import BinlogError, ExecutorsLostError, SourceError, WorkError
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.restore.archive_index import ArchiveIndex, folder_of, index_file, keys_name_of, name_of
from binlane.source.archive import ArchiveSource
from binlane.work.plan_job.job import Engine, LocalProcesses
from binlane.work.plan_job.wire import from_wire, to_wire

_STAGE: Final = "index"
_MARK: Final = "binlane has indexed: "
_TOLD: Final = Codec("run the job with the binlane that waits for it")


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a file that had no index."""

    file: str
    log_bytes: int
    """Decompressed."""
    index_bytes: int
    fault: str = ""
    """Why it has none now."""

    def as_line(self) -> str:
        """As a line for a job to print, to the process that waits for it."""
        return _MARK + json.dumps(_TOLD.dump(self))


def made_in(line: str) -> Made | None:
    """What a line of ``as_line`` tells; None for any other line. Raises PlanError for one that is not as it is made."""
    if not line.startswith(_MARK):
        return None
    return _TOLD.read(Made, line.removeprefix(_MARK), "what the index job has printed")


def make_index(uri: str, engine: Engine | None = None) -> Iterator[Made]:
    """Index the closed files of an archive that no index describes yet, in the log's order as each is done.

    ``engine``: runs a task for each file; None: as many processes as this machine has processors. Raises SourceError
    for a folder that is no archive of one log, and ExecutorsLostError for workers that are gone: what is made stays.
    """
    names = [f"{file}/{stored}" for file, stored in unindexed(uri)]
    pool = LocalProcesses(os.cpu_count() or 1) if engine is None else engine
    try:
        for row in pool.run(_STAGE, partial(_index_one, uri), [[name] for name in names]):
            yield from_wire(Made, row)
    except ExecutorsLostError as exc:
        raise ExecutorsLostError(
            f"{uri}: a process that indexes is gone (kill -9, or out of memory); what is indexed stays: run it again"
        ) from exc
    finally:
        pool.close()


def unindexed(uri: str) -> dict[tuple[str, str], int]:
    """The closed files of an archive that no index describes, by their names in the log and in the archive, with their
    bytes there. Raises as ``make_index``."""
    source = ArchiveSource(uri)
    found = ArchiveIndex(source)
    files = map(found.of, found.files)
    new = [(each.file, each.stored) for each in files if each.facts is None and not each.is_open]
    return {(file, stored): source.stored_size(stored) for file, stored in new}


def made_elsewhere(uri: str, before: Iterable[tuple[str, str]], told: Iterable[Made]) -> Iterator[Made]:
    """What became of the files of ``unindexed`` behind a job of another machine: as their index is now, whatever the
    job has told; a fault is what it has told of a file without one."""
    faults = {each.file: each.fault for each in told}
    found, folder = ArchiveIndex(ArchiveSource(uri)), folder_of(uri)
    for file, stored in before:
        facts = found.of(file).facts
        if facts is None:
            fault = faults.get(file) or f"{file}: the job has made no index of it; the output of its driver says why"
            yield Made(file, 0, 0, fault)
        else:
            size = folder.size(name_of(stored)) + folder.size(keys_name_of(stored))
            yield Made(file, facts.bytes, size)


def _index_one(uri: str, names: str) -> bytes:
    """A task of an engine. ``names``: the file's in the log and in the archive."""
    file, stored = names.split("/")
    made = Made(file, 0, 0)
    try:
        facts, data, keys = index_file(ArchiveSource(uri), file, stored)
    except (SourceError, BinlogError) as exc:
        if exc.retryable:
            raise
        return to_wire(Made, replace(made, fault=str(exc)))
    folder = folder_of(uri)
    try:
        # in front of the index, which says that the file is done
        folder.replace(keys_name_of(stored), keys)
        folder.replace(name_of(stored), data)
    except OSError as exc:
        raise WorkError(
            f"{folder.uri}: cannot be written: {exc.strerror or exc}; nothing of the archive was changed. Run `binlane "
            f"archive index` as an account that may write to that folder, and is trusted like the one that writes the "
            f"log, because a restore passes over what the index rules out; of {uri} it reads the files alone. A "
            "restore works without an index, and reads more"
        ) from exc
    return to_wire(Made, replace(made, log_bytes=facts.bytes, index_bytes=len(data) + len(keys)))
