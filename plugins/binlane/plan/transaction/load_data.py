"""LOAD DATA in statement format: the blocks of its file, and its statement as LOAD DATA LOCAL.

A server logs the file as BEGIN_LOAD_QUERY and APPEND_BLOCK events of one file id, and behind them the statement as
EXECUTE_LOAD_QUERY, or DELETE_FILE if nothing was loaded. A replica writes the file to disk and puts its path into the
statement, at the offsets that the event names (MySQL ``Execute_load_query_log_event::do_apply_event``,
``sql/log_event.cc``). binlane puts a LOCAL file name there, for which ``apply.rows.load_data`` serves the blocks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from binlane.binlog.query import Duplicates, ExecuteLoadQuery

FILE_NAME: Final = "binlane"
"""The file name that the target asks for; no such file exists."""
_WORDS: Final[Mapping[Duplicates, bytes]] = {
    Duplicates.ERROR: b"",
    Duplicates.IGNORE: b" IGNORE",
    Duplicates.REPLACE: b" REPLACE",
}
_XML: Final = re.compile(rb"\sLINES TERMINATED BY '<[^']*>'")


@dataclass(slots=True)
class LoadedFiles:
    """The files of one transaction, by file id, until their statement follows."""

    _pieces: dict[int, list[memoryview]] = field(default_factory=dict)

    @property
    def waiting(self) -> tuple[int, ...]:
        """Ids of files without a statement so far."""
        return tuple(self._pieces)

    def begin(self, file_id: int, data: memoryview) -> None:
        """Begin a file. Raises ValueError if it has begun before."""
        if file_id in self._pieces:
            raise ValueError(f"file {file_id} of a LOAD DATA, which begins twice in this transaction,")
        self._pieces[file_id] = [data]

    def append(self, file_id: int, data: memoryview) -> None:
        """Add a block. Raises ValueError if the file does not begin in this transaction."""
        self._known(file_id).append(data)

    def take(self, file_id: int) -> tuple[memoryview, ...]:
        """Remove the whole file: for its statement, or to drop it. Raises ValueError as ``append``."""
        self._known(file_id)
        return tuple(self._pieces.pop(file_id))

    def _known(self, file_id: int) -> list[memoryview]:
        pieces = self._pieces.get(file_id)
        if pieces is None:
            what = f"file {file_id} of a LOAD DATA that does not begin in this transaction"
            raise ValueError(f"{what}, as servers before MySQL 5.5 log it,")
        return pieces


def local_statement(event: ExecuteLoadQuery) -> bytes:
    """The statement with LOCAL and the served file name. Raises ValueError if the log does not allow an exact one."""
    sql, start, end = event.query.sql, event.file_name_start, event.file_name_end
    if not re.fullmatch(rb" (?:LOCAL )?INFILE '.*'(?: IGNORE| REPLACE)? INTO", sql[start:end], re.DOTALL):
        raise ValueError(f"a LOAD DATA without a file name at bytes {start}..{end} of its statement")
    if _XML.search(sql, end):
        # both servers log LOAD XML as LOAD DATA with the tag, and their replicas load the tags as text
        raise ValueError("LOAD XML, which servers log as LOAD DATA with LINES TERMINATED BY a tag,")
    name = b" LOCAL INFILE '" + FILE_NAME.encode() + b"'"
    return sql[:start] + name + _WORDS[event.duplicates] + b" INTO" + sql[end:]
