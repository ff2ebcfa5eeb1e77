"""A lane's connection to the target, for its leases, its blocks and its DDL.

A raw PyMySQL connection, since BINLOG statements are bytes. It is in autocommit mode with an explicit BEGIN for each
block: after any error the only next statement is ROLLBACK, or the connection is closed. Waits and polls use other
connections: a REPEATABLE READ snapshot never sees progress. It is kept (``driver.kept``) until it is closed: a lane
reads files of any size, in the middle of a transaction, too, and waits for other lanes.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from binlane.apply.session.cached_state import NEUTRAL_DATABASE
from binlane.apply.session.event_variables import BINLOG_OF_VARIABLES, EventVariables
from binlane.binlog.rows_payload import announced, encoded, statement_of
from binlane.driver.kept import Keeper
from binlane.errors import ApplyError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.schema.letter_case import AS_TYPED, LetterCase
from binlane.servers.variables import version_number, with_number
from binlane.sessions.pins import MOST_WARNINGS, SessionKind

if TYPE_CHECKING:
    from pymysql.connections import Connection
    from pymysql.cursors import Cursor
    from sqlalchemy import Engine

AUTOMATIC: Final = "AUTOMATIC"
"""``gtid_next`` for transactions that the target numbers itself."""
_BINLOG_OVERHEAD: Final = len(b"BINLOG ''") + 1
_PAUSE: Final = 0.25
"""Of ``wait_timeout``, between two looks whether the session has to be kept."""


def clock_value(seconds: float) -> str:
    """A time of the log as ``SET SESSION timestamp`` takes it. For the variable 0 is the present time again, while a
    session of MariaDB may have logged the second 0; MySQL has no time below 1, neither in its logs nor as a value."""
    return f"{max(seconds, 0.000001):.6f}"


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """How long the server waits for this session, and this session for locks; seconds."""

    wait_timeout: int = 60
    """Of a machine that is lost: as long as the process lives, the session is kept."""
    lock_wait_timeout: int = 50
    innodb_lock_wait_timeout: int = 50


@dataclass(slots=True)
class LaneSession:
    """One connection, ready for BINLOG statements once ``use_format`` has sent a block's format."""

    connection: Connection[Cursor]
    flavor: Flavor
    limits: SessionLimits
    cursor: Cursor
    max_allowed_packet: int = 0
    version: tuple[int, int, int] = (0, 0, 0)
    letters: LetterCase = AS_TYPED
    """How the server compares names."""
    _format: bytes | None = None
    _clock_leaked: bool = False
    _is_replica: bool = False
    warnings: int = 0
    """The number of warnings of the source's last statement, 0 if it ended with an error."""
    _shown: list[tuple[Any, ...]] | None = None
    """These warnings, if later statements have replaced them on the server."""
    _gtid: str | None = None
    _begins: bool = False
    _database: str = ""
    """The default database; a failed ``select_database`` does not change it."""
    _keeper: Keeper | None = None
    _round_trip: float = math.inf
    """Seconds between this client and the server: those of the fastest statement so far."""
    _variables: EventVariables | None = None
    """None: this server's BINLOG takes a literal alone."""

    def is_at_work(self) -> None:
        """The lane sends nothing, and yet it looks round: it waits for somebody."""
        self.connection.is_at_work()  # type: ignore[attr-defined]

    @classmethod
    def open(cls, engine: Engine, limits: SessionLimits, longest: float = math.inf) -> LaneSession:
        """Connect, outside of the engine's pool. ``longest``: see ``Keeper``. Raises the driver's errors."""
        pooled = engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()
        flavor = Flavor.MARIADB if "MariaDB" in connection.get_server_info() else Flavor.MYSQL
        session = cls(connection, flavor, limits, connection.cursor())
        try:
            session._keeper = Keeper((connection,), limits.wait_timeout * _PAUSE, longest)
            connection.use_as(SessionKind.LANE)
            connection.autocommit(True)
            session._set_limits()
            [(packet, version, folds)] = session.rows(
                "SELECT @@max_allowed_packet, VERSION(), @@lower_case_table_names"
            )
            if flavor is Flavor.MARIADB:
                session._variables = EventVariables(connection)
            session.max_allowed_packet, session.letters = int(packet), LetterCase(int(folds) != 0)
            session.version = version_number(with_number(str(version)))
        except BaseException:
            session.close()
            raise
        return session

    @property
    def connection_id(self) -> int:
        """The connection's own id. CONNECTION_ID() would give ``pseudo_thread_id`` while a statement is replayed."""
        return int(self.connection.thread_id())  # type: ignore[no-untyped-call]

    def execute(self, statement: str, arguments: tuple[object, ...] = ()) -> int:
        """Run one statement; returns the number of rows that it matched."""
        begun = time.monotonic()
        rows = self.cursor.execute(statement, arguments or None)
        self._round_trip = min(self._round_trip, time.monotonic() - begun)
        return rows

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
        """Run one statement given as bytes, which may change ``@@timestamp``."""
        self.sending()
        with self.committing():
            self.cursor.execute(statement)  # type: ignore[call-overload]  # the stubs know no bytes
            self.warned(self.cursor.warning_count)

    def warned(self, warnings: int) -> None:
        """Note the warnings of a statement that has just run, inside of ``committing``."""
        self.warnings = warnings
        # what ends the unit of a GTID replaces them
        self._shown = self.rows("SHOW WARNINGS") if warnings and self._gtid is not None else None

    def shown_warnings(self) -> list[tuple[Any, ...]]:
        """(level, code, text) of the warnings of the source's last statement: ask before any other statement runs."""
        return self.rows("SHOW WARNINGS") if self._shown is None else self._shown

    @contextlib.contextmanager
    def under_gtid(self, gtid: str, *, begins: bool) -> Iterator[None]:
        """MySQL: the one statement sent in the ``with`` block commits by itself under this GTID.

        ``begins``: between BEGIN and COMMIT. Without them a temporary table that a routine or trigger of the statement
        makes would commit, use up the GTID and let the rest of the statement fail with 1837, or run without a GTID.
        The GTID is executed at the end of a statement on a table without transactions, not at the COMMIT.
        """
        self._gtid, self._begins = gtid, begins
        try:
            yield
        finally:
            self._gtid = None

    @contextlib.contextmanager
    def committing(self) -> Iterator[None]:
        """Around a statement of the source: only this statement gets the GTID of ``under_gtid``."""
        if self._gtid is None:
            yield
            return
        self.next_gtid(self._gtid)
        try:
            if self._begins:
                self.execute("BEGIN")
            yield
            if self._begins:
                self.execute("COMMIT")
        except BaseException:
            # a failed statement still owns the GTID; a lost connection needs no reset
            with contextlib.suppress(Exception):
                self._automatic()
            raise
        self._automatic()

    def _automatic(self) -> None:
        self.rollback()
        self.next_gtid(AUTOMATIC)

    def sending(self) -> None:
        """Note that the next statement is the source's: it may change ``@@timestamp``, and has its own warnings."""
        self._clock_leaked = True
        self.warnings, self._shown = 0, None

    def binlog(self, events: bytes) -> None:
        """Send events as one BINLOG statement. Raises ApplyError, before sending, if it is longer than the target's
        max_allowed_packet."""
        text = encoded(events)
        size, packet = len(text) + _BINLOG_OVERHEAD, self.max_allowed_packet
        if size > packet:
            raise ApplyError(
                f"{len(events):,} bytes of events need a BINLOG statement of {size - 1:,} bytes; the "
                f"target has max_allowed_packet = {packet:,}: raise it above {size - 1 + _BINLOG_OVERHEAD:,}"
            )
        variables = self._variables
        if (
            variables is not None
            and variables.are_worth_it(len(text), self._round_trip)
            and variables.store(text, packet)
        ):
            self.send(BINLOG_OF_VARIABLES)
        else:
            self.send(statement_of(text))

    def select_database(self, database: str) -> None:
        """Select the default database, with its present definition. Raises the driver's errors: 1049 if missing.

        MariaDB keeps the cached character set if a session selects its current database: the session must select
        another one first. ``lower_case_table_names`` may make two spellings one name.
        """
        if self.flavor is Flavor.MARIADB and self.letters.name(database) == self.letters.name(self._database):
            self.connection.select_db(NEUTRAL_DATABASE)
            self._database = NEUTRAL_DATABASE
        self.connection.select_db(database)
        self._database = database

    def use_format(self, format_event: bytes) -> None:
        """Send the FORMAT_DESCRIPTION that the next events need, unless this session has it; outside of a transaction.

        The servers demand this order: without a FORMAT_DESCRIPTION BINLOG fails with 1609, and on MySQL any statement
        after it fails with 1782 until ``gtid_next`` is AUTOMATIC. Raises PlanError for one that cannot be read.
        """
        if format_event == self._format:
            return
        self.binlog(announced(format_event))
        if self.flavor is Flavor.MYSQL:
            self.next_gtid(AUTOMATIC)
            self.act_as_replica()
        else:
            # MariaDB writes each BINLOG statement's text into its own binlog, once per event in it
            self.execute("SET SESSION binlog_annotate_row_events = 0")
        self._set_limits()
        self._format = format_event

    def act_as_replica(self) -> None:
        """MySQL: accept session values that older servers logged, such as removed sql_modes (otherwise 3899)."""
        if self.flavor is Flavor.MYSQL and not self._is_replica:
            # all warnings of a statement, since any of them may be the one that is looked for (``unlogged_null``)
            self.execute(f"SET SESSION pseudo_replica_mode = 1, max_error_count = {MOST_WARNINGS}")
            self._is_replica = True

    def next_gtid(self, gtid: str) -> None:
        """Set MySQL's ``gtid_next``. The introducer is needed: a replayed statement may have set
        ``collation_connection``, which is the character set of all literals without one."""
        self.execute(f"SET SESSION gtid_next = _ascii'{gtid}'")

    def at_time(self, seconds: int) -> None:
        """Run the next statements at this time, Unix seconds, until ``own_clock``."""
        self._clock_leaked = True
        self.execute(f"SET SESSION timestamp = {clock_value(seconds)}")

    def own_clock(self) -> None:
        """Undo what BINLOG or a replayed statement left in ``@@timestamp``: state rows must have the true time."""
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
        """Undo the block. After 1213 the server has done so, and ROLLBACK does no harm."""
        self.execute("ROLLBACK")

    def set_limits(self, limits: SessionLimits) -> None:
        """Wait as long as ``limits`` says from now on."""
        if limits != self.limits:
            self.limits = limits
            self._set_limits()

    def close(self) -> None:
        """Close the connection: its transaction rolls back, its leases are released. Raises nothing."""
        if self._keeper is not None:
            # it may wait for a server that does not answer
            self._keeper.end(waits=False)
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
