"""programs.json: the routines, views and triggers that both servers have alike behind a window, for the next one.

It is only a memory: without it, statements that use what the window's own log replaces behind them are refused.
"""

from __future__ import annotations

import logging
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import ProgrammingError

from binlane.errors import PlanError, WorkError
from binlane.formats import require_formats
from binlane.json_codec.codec import Codec
from binlane.model import LogPosition
from binlane.schema.canonical import canonical_json
from binlane.sql.programs.known import NOTHING, KnownProgram, KnownPrograms, ProgramSet, on_source
from binlane.state.orders.skips import has_skips
from binlane.state.records.retention import newest_finished_work
from binlane.state.window_folders import WindowFolders
from binlane.work import files
from binlane.work.files import Digests, WorkFolder
from binlane.work.folder_formats import read_formats

_log = logging.getLogger(__name__)
FILE: Final = Codec("remove the file and run the task again", rows=frozenset({KnownProgram}))


def read_known(connection: Connection, folders: WindowFolders, source: str, first_seqno: int) -> ProgramSet:
    """What the window before has left, on the target's connection; nothing if an operator has ever had a transaction
    of the channel skipped, which may have made a program."""
    newest = newest_finished_work(connection, folders.channel)
    if newest is None or has_skips(connection, folders.channel):
        return NOTHING
    try:
        folder = folders.found(*newest)
        if folder is None or not folder.has(files.PROGRAMS) or (formats := read_formats(folder)) is None:
            return NOTHING
        require_formats(formats, folder.uri)
        found = FILE.read(KnownPrograms, folder.read(files.PROGRAMS), folder.path(files.PROGRAMS))
    except (PlanError, WorkError) as exc:
        _log.warning("precheck: what the window before knows of programs is left out: %s", exc)
        return NOTHING
    return on_source(found, source, first_seqno)


def keep_known(folder: WorkFolder, known: KnownPrograms) -> Digests:
    """Leave it in the window's folder; its digest."""
    return folder.replace(files.PROGRAMS, canonical_json(FILE.dump(known)))


def read_log_end(connection: Connection) -> LogPosition:
    """Where the server's log ends; the statement's name has changed with MySQL 8.4."""
    try:
        row = connection.exec_driver_sql("SHOW BINARY LOG STATUS").one()
    except ProgrammingError:
        row = connection.exec_driver_sql("SHOW MASTER STATUS").one()
    return LogPosition(str(row[0]), int(row[1]))
