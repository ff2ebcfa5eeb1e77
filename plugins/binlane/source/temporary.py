"""Tracks open temporary tables while a window is extracted, because a window cannot end while one is open."""

from __future__ import annotations

from typing import Final

from binlane.binlog.events import Query, parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.wire import EventType, RawEvent
from binlane.model import LogPosition
from binlane.plan.transaction.decode import is_of_its_connection, statement_facts
from binlane.plan.transaction.temporary_tables import (
    OpenTables,
    TemporaryStep,
    is_about_one,
    may_rename,
    open_text,
    opened_and_closed,
)

_QUERIES: Final = frozenset({EventType.QUERY, EventType.QUERY_COMPRESSED})


class TemporaryTracker:
    """Tracks open temporary tables. Pass it every event that is not a row event, in order."""

    def __init__(self) -> None:
        self._tables = OpenTables()
        self._since: LogPosition | None = None
        self.restarts: list[int] = []
        """Seqnos before which the source was restarted with open temporary tables."""

    @property
    def open_since(self) -> LogPosition | None:
        """The position of the transaction that created the first open table; None if no table is open."""
        return self._since if self._tables.tables else None

    @property
    def text(self) -> str:
        """The open tables, for a message."""
        return open_text(self._tables)

    def take(self, event: RawEvent, before: LogPosition, log_format: FormatDescription, name: str) -> None:
        """Take an event of the file ``name``, in a transaction that begins at ``before``.

        A DROP of a table whose CREATE was not seen is left to the plan step.
        """
        code = event.header.type_code
        if code not in _QUERIES or (code == EventType.QUERY and not self._concerns(event)):
            return
        query = parse_body(event, log_format, name)
        assert isinstance(query, Query)
        facts = statement_facts(query.sql, query.session(event.header), log_format.flavor)
        renamed = facts.renames if is_of_its_connection(event, facts, log_format.flavor) else ()
        if not facts.temporary and not renamed:
            return
        was_open = bool(self._tables.tables)
        opened, closed, if_exists = (None, (), False) if renamed else opened_and_closed(facts, query.error_code)
        session = (event.header.server_id, query.thread_id)
        where = f"{name}:{event.offset}"
        self._tables.take(TemporaryStep(0, session, where, opened, closed, if_exists, renamed=renamed))
        if not was_open:
            self._since = before

    def _concerns(self, event: RawEvent) -> bool:
        return is_about_one(event.body) or (bool(self._tables.tables) and may_rename(event.body))

    def restarted(self, seqno: int) -> None:
        """The source was restarted before transaction ``seqno``, after a crash that dropped all open tables."""
        if self._tables.tables:
            self.restarts.append(seqno)
            self._tables.tables.clear()
