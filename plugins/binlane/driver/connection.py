"""What a statement of a session may open, write and hold: binlane's guards around transactions.

Statements of binlane's own are text, those of a log are bytes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

from pymysql import err
from pymysql.constants import CR, SERVER_STATUS
from pymysql.cursors import Cursor

from binlane.answers import answered
from binlane.driver.pinned import NOT_SETTABLE, PinnedConnection, text_of
from binlane.model import Flavor
from binlane.sessions.pins import SessionKind
from binlane.sessions.server_proof import ServerProof, TargetProof
from binlane.sessions.state_guard import (
    NO_SUCH_KEY,
    NOTHING,
    Touched,
    hinted,
    hold,
    look,
    opens_a_snapshot,
    trigger_of,
    view_in_place,
)
from binlane.sessions.table_hint import hinted_table
from binlane.sessions.table_hint import hold as hold_users
from binlane.sessions.table_hint import view_in_place as users_view_in_place
from binlane.sessions.view_guard import REFUSED, WHY, guard, opens_views, table_asked_for

_NO_GUARD: Final = NOT_SETTABLE | {1231, 1971}
"""A variable that the server does not have, or may not set, or that SET STATEMENT does not take, or not with this
value."""
_NO_ROOM: Final = frozenset({1040, 1203, 1226})
"""Limits of connections: the server's, and an account's."""
_NO_TABLE: Final = frozenset({NO_SUCH_KEY, 1049, 1146, 1356})
"""What has the name is a view, also one without its tables; there is no such database or table."""
_WARNINGS: Final = "SHOW WARNINGS"
_NOT_AGAIN: Final = frozenset({"connect_timeout", "read_timeout", "write_timeout", "compresses"})
"""Arguments that another connection of the same account gets anew, or does without."""
_BOUNDS: Final = ("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK")


class SessionCursor(Cursor):
    """PyMySQL's cursor, for the session that answers (``Connection.answering``)."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._own = connection

    def execute(self, query: str | bytes, args: object = None) -> int:
        """As PyMySQL's. Raises StateSchemaError for a view in the place of a table of the state, and as
        ``Connection.query``."""
        # what the last statement has left belongs to the session that answered it
        while self.nextset():
            pass
        text, touched = hinted(query) if isinstance(query, str) else (query, NOTHING)
        statement = self.mogrify(text, args)  # type: ignore[arg-type]  # the stubs know no bytes
        answering = self._own.answering(statement)
        self.connection = answering
        if not (touched.tables or touched.written):
            return super().execute(statement)
        with answering.holding(touched):
            return super().execute(statement)

    def executemany(self, query: str, args: Any) -> int | None:
        """As PyMySQL's, which makes bytes of an INSERT."""
        with self._own.holding(hinted(query)[1]):
            return super().executemany(query, args)


class Connection(PinnedConnection):
    """A session of binlane: PyMySQL's connection with the rules of this package."""

    def __init__(
        self,
        *,
        kind: SessionKind = SessionKind.STATE,
        proof: ServerProof | TargetProof | None = None,
        **named: Any,
    ) -> None:
        """``kind``: decides the session's settings. ``proof``: what the server must be. The others: as those of the
        layers below (``LoginConnection``, ``WireConnection``) and PyMySQL's."""
        self._reads_only = False
        self._has_ended = False
        """Whether COMMIT or ROLLBACK was the session's last statement: it has no transaction then."""
        self._restores = True
        self._other: Connection | None = None
        self._other_limits: tuple[str, str] | None = None
        self._is_answered_by_other = False
        self._held: set[str] = set()
        """The tables of the state that are held until the transaction's end (``state_guard``)."""
        self._written: set[str] = set()
        """Those that the transaction has written."""
        self._looked: set[str] = set()
        """Those of which a look, while they were held, has told no trigger."""
        self._has_snapshot = False
        """Whether the transaction may see everything as it was at a statement before."""
        self._sees_late = False
        """Whether it has written a table that it had not held when it began to see so."""
        self._guards: bool | None = None
        """Whether the next statement gets the guard of ``view_guard``; None: ``answering`` has not decided."""
        again = {name: value for name, value in named.items() if name not in _NOT_AGAIN}
        super().__init__(kind=kind, proof=proof, again=again, **{"cursorclass": SessionCursor, **named})

    def use_as(self, kind: SessionKind) -> None:
        """Make the session one of another kind; its transaction goes on."""
        if kind is not self.kind:
            self._close_other()
            super().use_as(kind)

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        super()._execute_command(command, sql)
        self._has_ended = False

    def query(self, sql: str | bytes, unbuffered: bool = False) -> int:
        """As PyMySQL's, for every kind of cursor; a statement of binlane's own for which the server may open views
        changes nothing (``view_guard``), and one that reads a user's table reads no view (``table_hint``). Statements
        of a log are bytes. Raises TableMismatchError for a view in the table's place."""
        if self._guards is None and self.answering(sql) is not self:
            raise err.ProgrammingError(
                CR.CR_COMMANDS_OUT_OF_SYNC,
                f"{sql!r} opens views while a transaction is open: another session has to run it, and a cursor of the "
                "connection's own class finds it; call connection.cursor()",
            )
        guards, self._guards = self._guards, None
        if not isinstance(sql, str):
            return self._query(sql, unbuffered)
        text, table = hinted_table(sql)
        try:
            return self._guarded(text, unbuffered) if guards else self._own_query(text, unbuffered)
        except err.MySQLError as exc:
            if not table or exc.args[0] != NO_SUCH_KEY:
                raise
            raise users_view_in_place(table) from exc

    def _own_query(self, sql: str, unbuffered: bool) -> int:
        if sql.startswith(_BOUNDS):
            if sql.startswith("COMMIT"):
                self._refuse_triggers()
            self._forget_transaction()
            self._reads_only = sql.startswith("START") and sql.endswith("READ ONLY")
        return self._query(sql, unbuffered)

    def _query(self, sql: str | bytes, unbuffered: bool = False) -> int:
        try:
            rows = int(super().query(sql, unbuffered))
        except BaseException:
            # the server may have rolled the transaction back, and what it held is free then; most errors leave it open,
            # with what it has written and sees
            self._held.clear()
            self._looked.clear()
            raise
        if not self._is_in_transaction:
            self._forget_transaction()
        elif not self._has_snapshot and isinstance(sql, str):
            self._has_snapshot = opens_a_snapshot(sql)
        answered(self._place, sql)
        return rows

    def _looked_at(self, query: str) -> tuple[Any, ...]:
        self._query(query)
        [row] = self._result.rows
        return tuple(row)

    def _looked_at_now(self, query: str) -> tuple[Any, ...]:
        """The same by another session: MySQL's catalogue is as old as what the transaction sees. A lane, which asks at
        each of its epochs, keeps that session. A server that has no room for one more session answers for the time at
        which the transaction began to see."""
        is_kept = self._other is not None
        try:
            found = self._opened_other()._looked_at(query)
        except err.OperationalError as exc:
            self._close_other()
            if is_kept:
                # the server may have ended it, as it ends idle ones
                return self._looked_at_now(query)
            if exc.args[0] not in _NO_ROOM:
                raise
            return self._looked_at(query)
        if self.kind is not SessionKind.LANE:
            self._close_other()
        return found

    def _forget_transaction(self) -> None:
        self._held.clear()
        self._written.clear()
        self._looked.clear()
        self._has_snapshot = self._sees_late = False

    def _refuse_triggers(self) -> None:
        """Before COMMIT: raises StateSchemaError if a table of the state that the transaction has written has a
        trigger, which has run in this session; the transaction is rolled back then, and the session begun anew."""
        tables = self._written - self._looked
        if not tables:
            return
        is_late = self._sees_late and self.flavor is Flavor.MYSQL
        count, table, name = self._looked_at_now(look(tables)) if is_late else self._looked_at(look(tables))
        if int(count):
            self.rollback()
            if self.kind is SessionKind.LANE:
                # what it knows of its session is lost with it
                self._force_close()  # type: ignore[attr-defined]
            else:
                self._reset()
            # a raw session has bytes
            raise trigger_of(text_of(table), text_of(name))

    @property
    def _is_in_transaction(self) -> bool:
        """Whether the server keeps locks of tables behind the present statement, by the last answer without rows."""
        return not self._commits_itself or bool(self.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    @contextlib.contextmanager
    def holding(self, touched: Touched) -> Iterator[None]:
        """Around a statement of binlane's own: the tables of the state that it touches are tables, and stay that to the
        transaction's end, which is this statement's if the session is in none. Raises StateSchemaError for a view."""
        ends = False
        try:
            needs_hold = not touched.is_hinted and not touched.tables <= self._held
            if needs_hold or touched.written:
                ends = not self._is_in_transaction
                if ends:
                    self.begin()
            if needs_hold:
                self._query(hold(touched))
            if self._has_snapshot and not touched.written <= self._held:
                self._sees_late = True
            yield
        except err.MySQLError as exc:
            if ends:
                self._ended()
            if exc.args[0] == NO_SUCH_KEY and (view := self._view_of(touched)) is not None:
                raise view_in_place(view) from exc
            raise
        except BaseException:
            if ends:
                self._ended()
            raise
        if ends or self._is_in_transaction:
            self._held |= touched.tables
            self._looked |= touched.looked & self._held
            self._written |= touched.written
        if ends:
            self.commit()

    def _view_of(self, touched: Touched) -> str | None:
        """The first of these tables that is a view now; None: the statement's own hint has named no key."""
        for name in sorted(touched.tables):
            try:
                self._query(hold(Touched(frozenset({name}))))
            except err.MySQLError as exc:
                if exc.args[0] == NO_SUCH_KEY:
                    return name
        return None

    def _ended(self) -> None:
        """End the transaction of a statement that has failed: its error is the one to raise."""
        try:
            self.rollback()
        except (err.Error, OSError):
            self._force_close()  # type: ignore[attr-defined]

    def answering(self, sql: str | bytes) -> Connection:
        """The session for the next statement: a statement that opens views runs in a read-only transaction of its own,
        or of this session's. If this session has begun another one, a second session runs it: no transaction that has
        begun becomes a read-only one. But a lane's session asks for a table itself,
        which it holds first."""
        follows, self._is_answered_by_other = self._is_answered_by_other, False
        self._guards = False
        if not isinstance(sql, str):
            return self
        if follows and sql == _WARNINGS:
            return self._answered_by_other(guards=False)
        if not opens_views(sql) or self.flavor is not Flavor.MARIADB:
            return self
        if self._has_ended:
            self._guards = True
            return self
        [(begun, wait, length)] = self._texts(
            "SELECT @@in_transaction, @@SESSION.lock_wait_timeout, @@SESSION.group_concat_max_len"
        )
        if begun == "0" or self._reads_only:
            self._guards = True
            return self
        if self.kind is SessionKind.LANE and ((table := table_asked_for(sql)) is None or self._holds(table)):
            # no other session can open its temporary tables, and a sequence that it has written
            return self
        other = self._opened_other()
        if self._other_limits != (wait, length):
            other._query(f"SET SESSION lock_wait_timeout = {wait}, group_concat_max_len = {length}")
            self._other_limits = (wait, length)
        return self._answered_by_other(guards=True)

    def _holds(self, table: str) -> bool:
        """Hold a user's table to the transaction's end; False for a view, and where there is nothing of that name."""
        if not table:
            return False
        try:
            self._query(hold_users(table))
        except err.MySQLError as exc:
            if exc.args[0] not in _NO_TABLE:
                raise
            return False
        return True

    def _answered_by_other(self, *, guards: bool) -> Connection:
        other = self._opened_other()
        other.use_unicode, other.decoders = self.use_unicode, self.decoders
        other._guards, self._guards, self._is_answered_by_other = guards, None, True
        return other

    def _guarded(self, sql: str, unbuffered: bool) -> int:
        try:
            return self._query(guard(self._server, self._unsettable, restores=self._restores) + sql, unbuffered)
        except err.MySQLError as exc:
            if exc.args[0] == REFUSED:
                raise err.OperationalError(REFUSED, f"{exc.args[1]}: {WHY}") from exc
            if not self._restores or exc.args[0] not in _NO_GUARD:
                raise
            self._restores = False
        return self._guarded(sql, unbuffered)

    def _opened_other(self) -> Connection:
        if self._other is None:
            again = {**self._again, "autocommit": True, "read_timeout": self._asked}
            self._other = Connection(**again, kind=self.kind, proof=self.proof)
        return self._other

    def commit(self) -> None:
        """As PyMySQL's. Raises StateSchemaError for a trigger of a table of the state that was written."""
        self._refuse_triggers()
        self._forget_transaction()
        self._reads_only = False
        super().commit()
        self._has_ended = True

    def rollback(self) -> None:
        """As PyMySQL's; behind COMMIT or ROLLBACK, whose chains are pinned off, it sends nothing: a pool rolls back
        what a transaction's end has left, and each answer of a distant server is waited for."""
        self._forget_transaction()
        self._reads_only = False
        if not self._has_ended:
            super().rollback()
            self._has_ended = True

    def _close_other(self) -> None:
        if self._other is not None:
            # of one that is lost nothing is left to close
            with contextlib.suppress(err.Error):
                self._other.close()
            self._other = self._other_limits = None

    def close(self) -> None:
        """As PyMySQL's."""
        self._close_other()
        super().close()
