"""The connections of the source that may be older than the place where a channel begins.

Such a connection may have temporary tables whose CREATE is in front of the place. A server numbers its connections
upwards until it is restarted; so one number, asked for behind the place, divides those that may be older from those
that are not (``plan.transaction.unseen_tables`` uses it).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Final

from binlane.model import LogPosition
from binlane.source.identity import described
from binlane.source.protocol import EVERY_SESSION, LOG_START, EventSource, LogChunk

_MOST_HEADERS: Final = 64
"""Files whose headers are read to find a restart of the server; behind more of them one is taken for granted."""


def highest_older_session(source: EventSource, position: LogPosition) -> int:
    """The highest id of a connection that may have been open at ``position``, until the next restart of the server.

    0: the server started there. EVERY_SESSION: nobody can tell. Raises SourceError, as reading the log does.
    """
    header = _header(source, position.file)
    if position.offset <= LOG_START + len(header.data) and _starts_server(source, header):
        return 0
    # before the files are listed: behind the answer a restart begins a file that is listed
    newest = source.newest_session()
    if newest == EVERY_SESSION:
        return EVERY_SESSION
    behind = _files_behind(source, position)
    if len(behind) > _MOST_HEADERS or _is_start_among(source, behind):
        return EVERY_SESSION
    return newest


def restarts_behind(source: EventSource, position: LogPosition) -> bool:
    """Whether one of the next files of the log was begun by a start of the server. Raises SourceError, as reading the
    log does."""
    return _is_start_among(source, _files_behind(source, position)[:_MOST_HEADERS])


def _files_behind(source: EventSource, position: LogPosition) -> tuple[str, ...]:
    files = source.state().files
    return files[files.index(position.file) + 1 :] if position.file in files else files


def _is_start_among(source: EventSource, files: Iterable[str]) -> bool:
    return any(_starts_server(source, _header(source, file)) for file in files)


def _header(source: EventSource, file: str) -> LogChunk:
    with contextlib.closing(source.read_log(LogPosition(file, LOG_START))) as chunks:
        return next(chunks)


def _starts_server(source: EventSource, header: LogChunk) -> bool:
    return described(header.data, f"{source.name}/{header.file}").created != 0
