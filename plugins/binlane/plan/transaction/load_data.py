"""LOAD DATA in statement format: the pieces of its file, and its statement as a LOCAL one.

A server logs the file as BEGIN_LOAD_QUERY and APPEND_BLOCK events of one file id and the statement behind them as
EXECUTE_LOAD_QUERY, or DELETE_FILE if it came to nothing. Its own replica writes the file to disk and puts that name in
the place that the event names (MySQL ``Execute_load_query_log_event::do_apply_event``, ``sql/log_event.cc``); here the
same place gets a LOCAL name, for which ``apply.load_data`` serves the pieces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from binlane.binlog.query import Duplicates, ExecuteLoadQuery

FILE_NAME: Final = "binlane"
"""What the target asks for; no file has to be there."""
_WORDS: Final[Mapping[Duplicates, bytes]] = {
    Duplicates.ERROR: b"",
    Duplicates.IGNORE: b" IGNORE",
    Duplicates.REPLACE: b" REPLACE",
}
_XML: Final = re.compile(rb"\sLINES TERMINATED BY '<[^']*>'")


@dataclass(slots=True)
class LoadedFiles:
    """The files of one transaction, by id, until their statement comes."""

    _pieces: dict[int, list[memoryview]] = field(default_factory=dict)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Ids of files whose statement has not come."""
        return tuple(self._pieces)

    def begin(self, file_id: int, data: memoryview) -> None:
        """Raises ValueError for a file that was begun before."""
        if file_id in self._pieces:
            raise ValueError(f"file {file_id} begins twice in this transaction")
        self._pieces[file_id] = [data]

    def append(self, file_id: int, data: memoryview) -> None:
        """Raises ValueError for a file that does not begin in this transaction."""
        self._known(file_id).append(data)

    def take(self, file_id: int) -> tuple[memoryview, ...]:
        """The whole file: for its statement, or to be forgotten. Raises ValueError as ``append``."""
        self._known(file_id)
        return tuple(self._pieces.pop(file_id))

    def _known(self, file_id: int) -> list[memoryview]:
        pieces = self._pieces.get(file_id)
        if pieces is None:
            raise ValueError(f"file {file_id} does not begin in this transaction, as servers before MySQL 5.5 log it,")
        return pieces


def local_statement(event: ExecuteLoadQuery) -> bytes:
    """The statement with LOCAL and the name that is served. Raises ValueError for what cannot be told from the log."""
    sql, start, end = event.query.sql, event.file_name_start, event.file_name_end
    if not re.fullmatch(rb" (?:LOCAL )?INFILE '.*'(?: IGNORE| REPLACE)? INTO", sql[start:end], re.DOTALL):
        raise ValueError(f"no file name at {start}..{end} of its statement")
    if _XML.search(sql, end):
        # both servers log LOAD XML as LOAD DATA: their own replicas read the tags as text
        raise ValueError("LINES TERMINATED BY a tag: servers log LOAD XML so, and what it loaded cannot be told")
    name = b" LOCAL INFILE '" + FILE_NAME.encode() + b"'"
    return sql[:start] + name + _WORDS[event.duplicates] + b" INTO" + sql[end:]
