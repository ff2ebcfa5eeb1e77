"""LOAD DATA on the target: a LOCAL statement whose file is served from the lane file, block by block.

The client library would open any file that the server names. Here no file on disk is ever opened, and any name except
the one in the statement is refused. Protocol: https://dev.mysql.com/doc/dev/mysql-server/latest/
page_protocol_com_query_response_local_infile_request.html (MariaDB's is the same).

LOCAL skips rows with duplicate keys, and rows and values that the table refuses, since a server cannot stop the client:
exactly the effect of IGNORE. On the source no row was skipped, or the statement would have ended with an error. So the
server's count of skipped rows must be 0, unless the source used IGNORE.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from pymysql.constants import COMMAND
from pymysql.protocol import OKPacketWrapper

from binlane.errors import ApplyError, DriftError, PlanError
from binlane.model import Item, ItemKind, plural
from binlane.plan.transaction.load_data import FILE_NAME

if TYPE_CHECKING:
    from binlane.apply.session.connection import LaneSession

_PIECE: Final = 64 << 10
"""Bytes in one packet, at most: far below any usual max_allowed_packet."""
_STATEMENT: Final = re.compile(
    rb"LOAD DATA(?: LOW_PRIORITY| CONCURRENT)? LOCAL INFILE '"
    + FILE_NAME.encode()
    + rb"'(?P<skips> IGNORE| REPLACE)? INTO"
)
_TOLD: Final = 3
"""Warnings in an error about them."""
_COUNTS: Final = 4
"""Numbers in ``Records: 4  Deleted: 0  Skipped: 1  Warnings: 1``, in the language of ``lc_messages``, in this order."""


class Loads:
    """LOAD items, each followed by the FILE items of its file, which are read while they are sent."""

    def __init__(self, items: Iterator[Item]) -> None:
        self._items = items
        self._next = next(items, None)

    def __iter__(self) -> Iterator[Item]:
        while self._next is not None:
            item, self._next = self._next, None
            if item.kind is not ItemKind.LOAD:
                raise PlanError("a block holds a piece of a file without its LOAD DATA; run the plan job again")
            yield item

    def pieces(self) -> Iterator[bytes]:
        """The blocks of the file that belongs to the last LOAD item."""
        for item in self._items:
            if item.kind is ItemKind.LOAD:
                self._next = item
                return
            yield item.payload


def load(session: LaneSession, statement: bytes, pieces: Iterable[bytes]) -> None:
    """Run the statement and serve its file.

    Raises PlanError, ApplyError, the driver's errors; DriftError for skips.
    """
    match = _STATEMENT.match(statement)
    if match is None:
        raise PlanError("a LOAD DATA with another file name than the served one; it was not sent")
    session.sending()
    connection: Any = session.connection
    with session.committing():
        with connection.turn:
            said = bytes(_served(session, statement, pieces))
        counts = [int(number) for number in re.findall(rb"\d+", said)[-_COUNTS:]]
        if len(counts) != _COUNTS:
            raise ApplyError(f"LOAD DATA: expected the number of written rows from the target, found {said!r}")
        records, _, skipped, warnings = counts
        session.warned(warnings)
    if skipped and match["skips"] is None:
        why = "; ".join(str(text) for _, _, text in session.shown_warnings()[:_TOLD])
        raise DriftError(
            f"LOAD DATA: the target skipped {skipped} of {plural(records, 'row')}, the source none ({why}); "
            "compare the rows of both tables"
        )


def _served(session: LaneSession, statement: bytes, pieces: Iterable[bytes]) -> Any:
    """Send statement and file; returns the text of the server's answer."""
    connection: Any = session.connection
    connection._execute_command(COMMAND.COM_QUERY, statement)
    answer = connection._read_packet()
    asked = answer.get_all_data()[1:] if answer.is_load_local_packet() else None
    if asked != FILE_NAME.encode():
        # otherwise the server would read the next statement as the file
        session.close()
        raise ApplyError(f"LOAD DATA: the target requests the file {asked!r}, not {FILE_NAME!r}; nothing was sent")
    try:
        size = min(_PIECE, session.max_allowed_packet // 2)
        for piece in pieces:
            for at in range(0, len(piece), size):
                connection.write_packet(piece[at : at + size])
        connection.write_packet(b"")
    except BaseException:
        # half a file must not end as a complete one
        session.close()
        raise
    return OKPacketWrapper(connection._read_packet()).message
