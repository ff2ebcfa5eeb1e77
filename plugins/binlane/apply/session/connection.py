"""A lane's connection to the target: its leases, its blocks and its DDL all go through this one.

A raw PyMySQL connection, since BINLOG statements are bytes. It is in autocommit mode with an explicit BEGIN for each
block: after any error the only next statement is ROLLBACK, or the connection is thrown away. Waits and polls do not
belong here: a REPEATABLE READ snapshot never sees progress.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from binlane.apply.session.cached_state import NEUTRAL_DATABASE
from binlane.binlog.rows_payload import statement_of
from binlane.errors import ApplyError
from binlane.model import Flavor
from binlane.servers.engines import keep_alive
from binlane.servers.variables import version_number

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor
    from sqlalchemy import Engine

AUTOMATIC: Final = "AUTOMATIC"
"""``gtid_next`` for what the target numbers itself."""
_INVISIBLE_KEYS: Final = (8, 0, 30)
_BINLOG_OVERHEAD: Final = len(b"BINLOG ''") + 1


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How long the server waits for this session, and this session for locks; seconds."""

    wait_timeout: int = 60
    lock_wait_timeout: int = 50
    innodb_lock_wait_timeout: int = 50


@dataclass(slots=True)
class LaneSession:
    """One connection, set up for BINLOG statements once ``use_format`` has seen a block's format."""

    connection: Connection[Cursor]
    flavor: Flavor
    limits: SessionLimits
    cursor: Cursor
    max_allowed_packet: int = 0
    _format: bytes | None = None
    _clock_leaked: bool = False
    _is_replica: bool = False
    _gtid: str | None = None
    _database: str = ""
    """Where it is; a failed ``select_database`` does not change that."""
    _used_at: float = field(default_factory=time.monotonic)

    @classmethod
    def open(cls, engine: Engine, limits: SessionLimits) -> LaneSession:
        """Connect, apart from the engine's pool. Raises the driver's errors."""
        pooled = engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()
        try:
            flavor = Flavor.MARIADB if "MariaDB" in connection.get_server_info() else Flavor.MYSQL
            session = cls(connection, flavor, limits, connection.cursor())
            keep_alive(connection)
            connection.autocommit(True)
            session._set_limits()
            session.max_allowed_packet = int(session.value("SELECT @@max_allowed_packet"))
        except BaseException:
            connection.close()
            raise
        return session

    @property
    def connection_id(self) -> int:
        """The connection's own id. CONNECTION_ID() would give ``pseudo_thread_id`` while a statement is replayed."""
        return int(self.connection.thread_id())  # type: ignore[no-untyped-call]

    def execute(self, statement: str, arguments: tuple[object, ...] = ()) -> int:
        """Run one statement; the number of rows it matched."""
        self._used_at = time.monotonic()
        return self.cursor.execute(statement, arguments or None)

    def value(self, statement: str, arguments: tuple[object, ...] = ()) -> Any:
        """The first column of the only row of a query, None if it has no row."""
        self.execute(statement, arguments)
        row = self.cursor.fetchone()
        return None if row is None else row[0]

    def rows(self, statement: str, arguments: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        self.execute(statement, arguments)
        return list(self.cursor.fetchall())

    def send(self, statement: bytes) -> None:
        """Run one statement given as bytes, whose effect on ``@@timestamp`` is unknown."""
        self.sending()
        with self.committing():
            self.connection.query(statement)

    @contextlib.contextmanager
    def under_gtid(self, gtid: str) -> Iterator[None]:
        """MySQL: let the one statement that is sent meanwhile commit by itself under this GTID."""
        self._gtid = gtid
        try:
            yield
        finally:
            self._gtid = None

    @contextlib.contextmanager
    def committing(self) -> Iterator[None]:
        """Around a statement of the source's: it gets the GTID that was chosen for it, and no other statement does."""
        if self._gtid is None:
            yield
            return
        self.next_gtid(self._gtid)
        try:
            yield
        except BaseException:
            # one that failed still owns the GTID; on a connection that is gone there is nothing to set
            with contextlib.suppress(Exception):
                self._automatic()
            raise
        self._automatic()

    def _automatic(self) -> None:
        self.rollback()
        self.next_gtid(AUTOMATIC)

    def sending(self) -> None:
        """Something is about to run whose effect on ``@@timestamp`` is unknown."""
        self._clock_leaked = True
        self._used_at = time.monotonic()

    def binlog(self, events: bytes) -> None:
        """Send events as one BINLOG statement. Raises ApplyError, before sending, if the target would not take its
        size."""
        statement = statement_of(events)
        if len(statement) + 1 > self.max_allowed_packet:
            raise ApplyError(
                f"{len(events):,} bytes of events need a BINLOG statement of {len(statement):,} bytes; the "
                f"target has max_allowed_packet = {self.max_allowed_packet:,}: raise it above "
                f"{len(statement) + _BINLOG_OVERHEAD:,}"
            )
        self.send(statement)

    def select_database(self, database: str) -> None:
        """Make it the default database, as it is now. Raises the driver's errors: 1049 where there is none.

        MariaDB keeps the character set that it had for a session that selects the database which it is in: it has to
        leave it first. ``lower_case_table_names`` may make two spellings one name.
        """
        if self.flavor is Flavor.MARIADB and database.casefold() == self._database.casefold():
            self.connection.select_db(NEUTRAL_DATABASE)
            self._database = NEUTRAL_DATABASE
        self.connection.select_db(database)
        self._database = database

    def use_format(self, format_event: bytes) -> None:
        """Send the FORMAT_DESCRIPTION that the next events need, unless this session has it already; outside a
        transaction.

        The order is the servers': without a FORMAT_DESCRIPTION BINLOG fails with 1609, and on MySQL anything behind
        it fails with 1782 until ``gtid_next`` is AUTOMATIC.
        """
        if format_event == self._format:
            return
        self.binlog(format_event)
        if self.flavor is Flavor.MYSQL:
            self.next_gtid(AUTOMATIC)
            self.act_as_replica()
        else:
            # MariaDB writes each BINLOG statement's text into its own binlog, once per event in it
            self.execute("SET SESSION binlog_annotate_row_events = 0")
        self._set_limits()
        self._format = format_event

    def act_as_replica(self) -> None:
        """MySQL: let the session be set to what older servers logged, such as sql_modes that are gone (else 3899)."""
        if self.flavor is Flavor.MYSQL and not self._is_replica:
            self.execute("SET SESSION pseudo_replica_mode = 1")
            if version_number(str(self.value("SELECT VERSION()"))) >= _INVISIBLE_KEYS:
                # a source that gives tables such a key logs it
                self.execute("SET SESSION sql_generate_invisible_primary_key = OFF")
            self._is_replica = True

    def next_gtid(self, gtid: str) -> None:
        """MySQL's ``gtid_next``. A statement's session may be set, whose ``collation_connection`` all literals without
        an introducer are in."""
        self.execute(f"SET SESSION gtid_next = _ascii'{gtid}'")

    def at_time(self, seconds: int) -> None:
        """Let the next statements run at this time, until ``own_clock``."""
        self._clock_leaked = True
        self.execute(f"SET SESSION timestamp = {int(seconds)}")

    def own_clock(self) -> None:
        """Undo what BINLOG or a replayed statement left in ``@@timestamp``: state rows tell the true time."""
        if self._clock_leaked:
            self.execute("SET SESSION timestamp = DEFAULT")
            self._clock_leaked = False

    def begin(self) -> None:
        """Begin a block's transaction, with the session's own clock."""
        self.own_clock()
        self.execute("BEGIN")

    def commit(self) -> None:
        """End the block's transaction."""
        self.execute("COMMIT")

    def rollback(self) -> None:
        """Undo the block. After 1213 there is nothing left to undo, and ROLLBACK is right as well."""
        self.execute("ROLLBACK")

    def keep_alive(self) -> None:
        """Show the server a sign of life if a third of ``wait_timeout`` has passed without one."""
        if time.monotonic() - self._used_at > self.limits.wait_timeout / 3:
            self.value("SELECT 1")

    def close(self) -> None:
        """Throw the connection away: its transaction rolls back, its leases are free. Raises nothing."""
        # an already closed connection raises, and so does a broken one
        with contextlib.suppress(Exception):
            self.connection.close()

    def _set_limits(self) -> None:
        limits = self.limits
        self.execute(
            f"SET SESSION wait_timeout = {int(limits.wait_timeout)}, "
            f"lock_wait_timeout = {int(limits.lock_wait_timeout)}, "
            f"innodb_lock_wait_timeout = {int(limits.innodb_lock_wait_timeout)}"
        )
