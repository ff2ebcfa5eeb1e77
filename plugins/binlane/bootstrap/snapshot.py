"""One snapshot of the source shared by many connections, with its position in the log.

Two locks. During the whole copy, a lock that blocks DDL but not changes of rows (MySQL: LOCK INSTANCE FOR BACKUP;
MariaDB: BACKUP STAGE BLOCK_DDL), so that definitions read later are those of the snapshot: InnoDB's snapshot does not
protect from a RENAME. While all connections begin their transactions, FLUSH TABLES WITH READ LOCK. Both end soon with
the machine of the copy (``kept_sessions``).
https://dev.mysql.com/doc/refman/9.0/en/lock-instance-for-backup.html, https://mariadb.com/kb/en/backup-stage/
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from binlane.activity import doing
from binlane.apply.session.retry_verdicts import error_code
from binlane.bootstrap import kept_sessions
from binlane.bootstrap.kept_sessions import end_without_client, kept_open
from binlane.bootstrap.sessions import Session, read_session
from binlane.connections import Endpoint
from binlane.errors import PrecheckError, SourceError, SourceUnavailableError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition

_T = TypeVar("_T")
_NO_DDL: Final = {
    Flavor.MARIADB: ("BACKUP STAGE START", "BACKUP STAGE BLOCK_DDL"),
    Flavor.MYSQL: ("LOCK INSTANCE FOR BACKUP",),
}
_LOCK_TIMEOUT: Final = 1205
_LOCKED_ALONE: Final = 30
"""Seconds after which the server gives up a client that blocks every commit and says nothing."""
_SNAPSHOT: Final = "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The source at ``position``, as all ``readers`` see it."""

    position: LogPosition
    readers: tuple[Session, ...]
    guard: Session
    """It holds the lock against DDL until the copy ends, and has nothing else to do."""

    def require_held(self) -> None:
        """Raise SourceUnavailableError if the lock was lost. Whoever records that a copy is complete asks first: the
        readers' transactions live on without it, and a DDL that only exchanges older tables fails none of them."""
        try:
            self.guard.texts("SELECT 1")
        except SourceError as exc:
            raise SourceUnavailableError(
                f"{self.guard.source}: expected the lock against DDL ({_NO_DDL[self.guard.flavor][-1]}) from the "
                "copy's beginning to its end, found that its session has ended (killed, or its connection is lost): a "
                "DDL may have exchanged what was copied; the copy is not recorded as complete, run the command again"
            ) from exc


@contextlib.contextmanager
def shared_snapshot(
    endpoint: Endpoint,
    readers: int,
    lock_seconds: int,
    while_locked: Callable[[Session], _T],
    *,
    compresses: bool = False,
) -> Iterator[tuple[Snapshot, _T]]:
    """Take the snapshot. ``while_locked`` is called while no session can commit, so its result belongs to the snapshot.
    ``compresses``: of the readers' connections.

    Raises SourceError if a lock is not granted within ``lock_seconds``, PrecheckError for prepared XA transactions.
    """
    with contextlib.ExitStack() as stack:
        guard = stack.enter_context(contextlib.closing(read_session(endpoint)))
        guard.execute(f"SET SESSION lock_wait_timeout = {lock_seconds}")
        _lock(endpoint, guard, _NO_DDL[guard.flavor])
        sessions = tuple(
            stack.enter_context(contextlib.closing(read_session(endpoint, compresses=compresses)))
            for _ in range(readers)
        )
        for session in sessions:
            session.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        stack.enter_context(kept_open(guard))
        stack.enter_context(kept_open(*sessions, seconds=kept_sessions.STREAMING_SECONDS))
        with contextlib.closing(read_session(endpoint)) as lock:
            lock.execute(f"SET SESSION lock_wait_timeout = {lock_seconds}, net_write_timeout = {_LOCKED_ALONE}")
            end_without_client(lock, _LOCKED_ALONE)
            _lock(endpoint, lock, ("FLUSH TABLES WITH READ LOCK",))
            # if anything fails, closing the connection releases the lock
            for session in sessions:
                session.execute(_SNAPSHOT)
            position = _position(lock)
            _refuse_prepared(endpoint, lock)
            found = while_locked(lock)
            lock.execute("UNLOCK TABLES")
        yield Snapshot(position, sessions, guard), found


def _lock(endpoint: Endpoint, session: Session, statements: Sequence[str]) -> None:
    for statement in statements:
        try:
            with doing(f"waiting for the source's lock, {statement}"):
                session.execute(statement)
        except SourceError as exc:
            if exc.__cause__ is None or error_code(exc.__cause__) != _LOCK_TIMEOUT:
                raise
            raise SourceError(
                f"{endpoint}: {statement}: expected the lock within --lock-seconds, but another session held it "
                "longer: a long statement, a DDL or a backup (see SHOW PROCESSLIST). The lock request is "
                "withdrawn and blocks no session; run again when that session has finished"
            ) from exc


def _position(session: Session) -> LogPosition:
    try:
        rows = session.texts("SHOW BINARY LOG STATUS")
    except SourceError:  # the name since MySQL 8.4
        rows = session.texts("SHOW MASTER STATUS")
    return LogPosition(rows[0][0], int(rows[0][1]))


def _refuse_prepared(endpoint: Endpoint, session: Session) -> None:
    """Refuse prepared XA transactions: logged before the position, they are in no snapshot and no window."""
    prepared = session.rows("XA RECOVER")
    if prepared:
        raise PrecheckError(
            f"{endpoint}: {len(prepared)} XA transactions are prepared and not ended: their changes are in the "
            "log before the snapshot and become visible after it; commit or roll them back (XA RECOVER lists "
            "them), then run again"
        )
