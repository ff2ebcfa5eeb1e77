"""Tracks prepared XA transactions with statements while a window is extracted: both halves belong in one window.

Such a transaction is applied at its XA PREPARE, by what its end says (``plan.window.xa_ends``).
"""

from __future__ import annotations

import re
import struct
from typing import Final

from binlane.binlog.events import ExecuteLoadQuery, MariadbGtid, Query, XaPrepare, parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import MariadbGtidFlag, XaName
from binlane.binlog.query import statement
from binlane.binlog.wire import EventType, RawEvent
from binlane.model import LogPosition
from binlane.plan.transaction.decode import statement_facts
from binlane.plan.transaction.filter import decide
from binlane.plan.transaction.xa import find
from binlane.shards.selection import EVERYTHING, Selection, Undecided
from binlane.sql.logged_query import logged_query

_FLAGS: Final = 12
"""Offset of ``flags2`` in the body of MariaDB's GTID event: behind seq_no and domain_id."""
_PREPARED: Final = int(MariadbGtidFlag.PREPARED_XA)
_STATEMENTS: Final = frozenset({EventType.QUERY, EventType.QUERY_COMPRESSED, EventType.EXECUTE_LOAD_QUERY})
_ABOUT_XA: Final = re.compile(rb"XA\s+(?P<verb>START|END|PREPARE|COMMIT|ROLLBACK)\b", re.IGNORECASE)


class XaStatements:
    """Tracks prepared transactions with statements. Pass it every event that is not a row event, in order."""

    inside = "between its XA PREPARE and its end"
    """Where a window cannot end, for a message, and when it can."""
    ends = "it is committed or rolled back on the source, where XA RECOVER lists it"

    def __init__(self, selection: Selection = EVERYTHING) -> None:
        """``selection``: the channel's; statements that it leaves out need no place."""
        self._selection = selection
        self._open: dict[XaName, LogPosition] = {}
        self._reading: LogPosition | None = None
        """Where the XA transaction begins that is being read."""
        self._has_statements = False
        """Whether it has statements. It is prepared by its XA PREPARE alone: a crash may have cut the log before it."""

    @property
    def open_since(self) -> LogPosition | None:
        """The position of the first transaction that has not ended; None if there is none."""
        return next(iter(self._open.values()), None)

    @property
    def text(self) -> str:
        """What is open, for a message."""
        return f"the XA transaction {next(iter(self._open))} is prepared here, with statements, and has not ended"

    def take(self, event: RawEvent, before: LogPosition, log_format: FormatDescription, name: str) -> None:
        """Take an event of the file ``name``, in a transaction that begins at ``before``."""
        code = event.header.type_code
        if code == EventType.MARIADB_GTID:
            # MariaDB's XA START; few events need to be read whole
            if any(flags & _PREPARED for flags in event.body[_FLAGS : _FLAGS + 1]):
                begun = parse_body(event, log_format, name)
                assert isinstance(begun, MariadbGtid)
                self._begin(None if begun.xa is None else before)
        elif code == EventType.XA_PREPARE:
            prepared = parse_body(event, log_format, name)
            assert isinstance(prepared, XaPrepare)
            if self._reading == before and self._has_statements and not prepared.one_phase:
                self._open[prepared.name] = before
            self._begin(None)
        elif code == EventType.QUERY and _is_about_xa(event, log_format):
            query = parse_body(event, log_format, name)
            assert isinstance(query, Query)
            self._take_xa(query, before)
        elif self._reading == before and not self._has_statements and code in _STATEMENTS:
            parsed = parse_body(event, log_format, name)
            assert isinstance(parsed, Query | ExecuteLoadQuery)
            query = parsed if isinstance(parsed, Query) else parsed.query
            self._has_statements = self._is_taken(event, query, log_format)

    def _begin(self, where: LogPosition | None) -> None:
        self._reading, self._has_statements = where, False

    def _take_xa(self, query: Query, before: LogPosition) -> None:
        about, named = _ABOUT_XA.match(query.sql), XaName.of_statement(query.sql)
        if about is None or named is None:
            return
        verb = about["verb"].upper()
        if verb == b"START":
            self._begin(before)
        elif verb in {b"COMMIT", b"ROLLBACK"}:
            key = find(named, self._open)
            if key is not None:
                del self._open[key]

    def _is_taken(self, event: RawEvent, query: Query, log_format: FormatDescription) -> bool:
        executed = logged_query(query, log_format)
        if executed is None:
            # the plan job refuses it by name
            return True
        context = executed.session(event.header)
        facts = statement_facts(executed.sql, context, log_format.flavor)
        try:
            return decide(self._selection, executed, facts, context, log_format.flavor) is None
        except Undecided:
            # the plan job refuses it by name
            return True


def _is_about_xa(event: RawEvent, log_format: FormatDescription) -> bool:
    """Whether it may be a statement about an XA transaction; also True for a damaged event, which nobody can read."""
    try:
        return bytes(statement(event.body, log_format.post_header_length(EventType.QUERY))[:3]).upper() == b"XA "
    except struct.error:
        return True
