"""Tracks open temporary tables while a window is extracted, because a window cannot end while one is open.

A prepared XA transaction that makes or drops one keeps it open until it ends: its changes are applied there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from binlane.binlog.events import ExecuteLoadQuery, Query, XaPrepare, parse_body
from binlane.binlog.format_description import FormatDescription
from binlane.binlog.gtids import XaName
from binlane.binlog.wire import EventType, RawEvent
from binlane.errors import PrecheckError
from binlane.model import LogPosition
from binlane.plan.transaction.decode import is_marked, is_of_its_connection, statement_facts
from binlane.plan.transaction.filter import decide
from binlane.plan.transaction.temporary_tables import (
    OpenTables,
    Session,
    TemporaryStep,
    is_about_one,
    may_rename,
    open_text,
    opened_and_closed,
)
from binlane.plan.transaction.xa import find
from binlane.schema.letter_case import LetterCase
from binlane.shards.selection import EVERYTHING, Selection, Undecided
from binlane.source.older_tables import OlderTables
from binlane.source.session_end import SessionEnd
from binlane.sql.logged_query import logged_query
from binlane.sql.parse.facts import StatementFacts, StatementKind

_QUERIES: Final = frozenset({EventType.QUERY, EventType.QUERY_COMPRESSED})
_STATEMENTS: Final = frozenset({*_QUERIES, EventType.EXECUTE_LOAD_QUERY})
_ENDS_XA: Final = re.compile(rb"XA\s+(?:COMMIT|ROLLBACK)\b", re.IGNORECASE)
_Since = tuple[int, LogPosition]
"""A position with its number, since positions of different files have no order."""


class TemporaryTracker:
    """Tracks open temporary tables. Pass it every event that is not a row event, in order."""

    inside = "while this table exists"
    """Where a window cannot end, for a message, and when it can."""
    ends = "the connection has dropped the table or has ended"

    def __init__(
        self, selection: Selection = EVERYTHING, ends: Iterable[SessionEnd] = (), older_sessions: int = 0
    ) -> None:
        """``selection``: the channel's; a table that it leaves out is none of the target's. ``ends``: connections that
        have ended, as an operator says. ``older_sessions``: see ``Manifest``."""
        self._selection, self._ends = selection, {end.session: end for end in ends}
        self.older = OlderTables(older_sessions)
        """What connections that are older than the channel use, and drop."""
        self._tables = OpenTables(LetterCase(selection.folds_names))
        self._begins: dict[str, LogPosition] = {}
        """Before each transaction that has created an open table, by the place of its CREATE."""
        self._since: _Since | None = None
        self._in_transaction: tuple[LogPosition, _Since] | None = None
        """The last transaction with a temporary table, and since when one had been open at its first."""
        self._prepared: dict[XaName, _Since] = {}
        """Prepared XA transactions that have made or dropped temporary tables."""
        self.restarts: list[int] = []
        """Seqnos before which the source was restarted with open temporary tables."""
        self.users: set[Session] = set()
        """The connections with a statement that may use a temporary table, if they are followed."""
        self._follows_users = False
        self.lost: frozenset[Session] | None = None
        """If users are followed: the connections that the first restart of the source has ended, with open tables that
        they have not used since this reading began. None: it was not restarted."""

    @property
    def open_since(self) -> LogPosition | None:
        """The position of the transaction that created the first open table; None if no table is open."""
        waiting = [*self._prepared.values()]
        if self._tables.tables and self._since is not None:
            waiting.append(self._since)
        return min(waiting, key=lambda since: since[0])[1] if waiting else None

    @property
    def text(self) -> str:
        """The open tables, for a message."""
        if self._tables.tables:
            return open_text(self._tables)
        return f"a temporary table of the prepared XA transaction {next(iter(self._prepared))}, which has not ended"

    def take(self, event: RawEvent, before: LogPosition, log_format: FormatDescription, name: str) -> None:
        """Take an event of the file ``name``, in a transaction that begins at ``before``.

        A DROP of a table whose CREATE was not seen is left to the plan step.
        """
        code = event.header.type_code
        if code == EventType.XA_PREPARE:
            self._prepare(event, before, log_format, name)
        if (self._follows_users or self._ends) and code in _STATEMENTS and is_marked(event):
            self._take_user(event, before, log_format, name)
        if self.older.highest and code in _STATEMENTS and self._may_be_of_older(event):
            self._take_older(event, log_format, name)
        if code not in _QUERIES or (code == EventType.QUERY and not self._concerns(event)):
            return
        query = parse_body(event, log_format, name)
        assert isinstance(query, Query)
        if self._prepared and _ENDS_XA.match(query.sql) is not None:
            ended = XaName.of_statement(query.sql)
            key = None if ended is None else find(ended, self._prepared)
            if key is not None:
                del self._prepared[key]
            return
        executed = logged_query(query, log_format)
        if executed is None:
            # the plan job refuses it by name
            return
        query = executed
        facts = statement_facts(query.sql, query.session(event.header), log_format.flavor)
        renamed = facts.moves if is_of_its_connection(event, facts, log_format.flavor) else ()
        if (not facts.temporary and not renamed) or self._is_left_out(event, query, facts, log_format):
            return
        was_open = bool(self._tables.tables)
        opened, closed, if_exists = (None, (), False) if renamed else opened_and_closed(facts, query.error_code)
        session = (event.header.server_id, query.thread_id)
        where = f"{name}:{event.offset}"
        self._begins[where] = before
        unknown = self._tables.take(TemporaryStep(0, session, where, opened, closed, if_exists, renamed=renamed))
        self.older.take_definition(session, opened, unknown)
        if self._follows_users:
            # RENAME TABLE has no mark
            self.users.add(session)
        if not was_open:
            self._since = (0 if self._since is None else self._since[0] + 1, before)
        assert self._since is not None
        if self._in_transaction is None or self._in_transaction[0] != before:
            self._in_transaction = (before, self._since)

    def _take_user(self, event: RawEvent, before: LogPosition, log_format: FormatDescription, name: str) -> None:
        """Take a statement that uses a temporary table, perhaps one that was created in front of this reading."""
        parsed = parse_body(event, log_format, name)
        assert isinstance(parsed, Query | ExecuteLoadQuery)
        query = parsed if isinstance(parsed, Query) else parsed.query
        session = (event.header.server_id, query.thread_id)
        self.users.add(session)
        end = self._ends.get(session)
        if end is None or not end.is_before(before) or self._tables.has(session):
            return
        executed = logged_query(query, log_format) or query
        if statement_facts(executed.sql, executed.session(event.header), log_format.flavor).temporary:
            # a CREATE or DROP uses none that was there
            return
        where = f"{name}:{event.offset}: expected no more statements of connection {session[1]}, "
        found = "found one that uses a temporary table; nothing of the window was written."
        if not end.is_named:
            raise PrecheckError(
                f"{where}whose temporary tables an earlier window has dropped, because the source's list of "
                f"connections did not have it ({end}: a connection that sets pseudo_thread_id is not there), {found} "
                "What it changes from here on is lost with these tables: begin the channel again when that connection "
                "has ended (`Begin a channel again` in docs/recovery.md)"
            )
        raise PrecheckError(
            f"{where}which has ended by source.ended_sessions of the channel ({end}), {found} If the server was "
            "restarted in between, this is another connection: take the entry out. Else the tables that it changes are "
            "lost: begin the channel behind this connection, and keep the entry for connections that have ended"
        )

    def _may_be_of_older(self, event: RawEvent) -> bool:
        if is_marked(event):
            return True
        # RENAME TABLE has no mark
        code = event.header.type_code
        return code == EventType.QUERY_COMPRESSED or (code == EventType.QUERY and may_rename(event.body))

    def _take_older(self, event: RawEvent, log_format: FormatDescription, name: str) -> None:
        """Take a statement that may be of a connection that is older than the channel."""
        parsed = parse_body(event, log_format, name)
        assert isinstance(parsed, Query | ExecuteLoadQuery)
        query = parsed if isinstance(parsed, Query) else parsed.query
        session = (event.header.server_id, query.thread_id)
        if not self.older.has(session):
            return
        executed = logged_query(query, log_format)
        if executed is None:
            self.older.take_call(session)
            return
        query = executed
        facts = statement_facts(query.sql, query.session(event.header), log_format.flavor)
        if facts.temporary:
            # the caller follows those
            return
        if facts.moves:
            self.older.take_rename(session, (name for pair in facts.moves for name in pair))
        if not is_marked(event):
            return
        if facts.routines_used or facts.kind is StatementKind.UNKNOWN:
            self.older.take_call(session)
        unseen = {each for each in facts.tables if self._tables.find(session, each) is None}
        self.older.names |= unseen
        self.older.take_use(session, unseen)

    def _prepare(self, event: RawEvent, before: LogPosition, log_format: FormatDescription, name: str) -> None:
        if self._in_transaction is not None and self._in_transaction[0] == before:
            prepared = parse_body(event, log_format, name)
            assert isinstance(prepared, XaPrepare)
            if not prepared.one_phase:
                self._prepared[prepared.name] = self._in_transaction[1]

    def _concerns(self, event: RawEvent) -> bool:
        if self._prepared and b"XA" in bytes(event.body).upper():
            return True
        return is_about_one(event.body) or (bool(self._tables.tables) and may_rename(event.body))

    def _is_left_out(self, event: RawEvent, query: Query, facts: StatementFacts, log_format: FormatDescription) -> bool:
        try:
            context = query.session(event.header)
            return decide(self._selection, query, facts, context, log_format.flavor) is not None
        except Undecided:
            # the plan job refuses it by name
            return False

    def owners(self) -> frozenset[Session]:
        """The connections of the open tables; none if a prepared XA transaction has one, which may end later."""
        return frozenset() if self._prepared else frozenset(session for session, _ in self._tables.tables)

    def open_since_of(self, sessions: Collection[Session]) -> LogPosition | None:
        """Before the first transaction that has created an open table of these connections; None if there is none."""
        found = {where for (session, _), where in self._tables.tables.items() if session in sessions}
        return next((before for where, before in self._begins.items() if where in found), None)

    def possible_ends(self) -> tuple[SessionEnd, ...]:
        """What an operator may say of the connections of ``owners``."""
        created = ((session, self.open_since_of({session})) for session in sorted(self.owners()))
        return tuple(SessionEnd(session, where) for session, where in created if where is not None)

    def named_ends(self) -> frozenset[Session]:
        """The connections of ``owners`` that have ended, as an operator says."""
        ends = self._ends.values()
        return frozenset(end.session for end in self.possible_ends() if end in ends)

    def copied(self) -> TemporaryTracker:
        """A tracker with the same open tables, to read on with, which takes down who uses one."""
        other = TemporaryTracker(self._selection)
        other._follows_users = True
        other.older = self.older.behind()
        other._tables, other._begins = OpenTables(self._tables.letters, dict(self._tables.tables)), dict(self._begins)
        other._since = self._since
        return other

    def restarted(self, seqno: int) -> None:
        """The source was restarted before transaction ``seqno``, after a crash that dropped all open tables."""
        self.older.restart()
        # their numbers are those of other connections now
        self._ends = {session: end for session, end in self._ends.items() if end.is_named}
        if self._follows_users and self.lost is None:
            self.lost = self.owners() - self.users
        if self._tables.tables:
            self.restarts.append(seqno)
            self._tables.tables.clear()
