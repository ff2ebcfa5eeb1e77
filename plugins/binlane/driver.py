"""Connections by PyMySQL: their settings, rules for sending passwords, timeouts, the size of answers, and compression.

Every session of every command begins here, with the settings of its kind (``session_pins``), whatever the server's
global variables and its ``init_connect`` are.

The kernel of a frozen server (stopped, out of memory, its disk gone) still acknowledges packets, so neither TCP nor its
keepalive detects the failure, and a statement that runs for hours looks the same. So a connection that waits long for
an answer checks whether the server still accepts logins: running statements are never interrupted, and a dead server is
given up (docs/security.md#connections).
"""

from __future__ import annotations

import contextlib
import functools
import io
import ipaddress
import logging
import select
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pymysql import connections, err
from pymysql.constants import CLIENT, CR, SERVER_STATUS
from pymysql.cursors import Cursor
from pymysql.protocol import FieldDescriptorPacket, MysqlPacket

from binlane.answers import answered
from binlane.compression import InflatedStream, frames_of
from binlane.errors import BinlaneError, ConfigError, PrecheckError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, LogPosition
from binlane.server_proof import NO_LOG, ServerProof, TargetProof, state_query
from binlane.session_pins import READ_ONLY, Server, SessionKind, assignments, changes, is_as_pinned, pins_of
from binlane.state_guard import (
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
from binlane.table_hint import hinted_table
from binlane.table_hint import hold as hold_users
from binlane.table_hint import view_in_place as users_view_in_place
from binlane.view_guard import REFUSED, WHY, guard, opens_views, table_asked_for

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    Driver = connections.Connection[Cursor]
else:
    Driver = connections.Connection

GREETING_SECONDS: Final = 30
"""Seconds without a byte of an answer during login. A healthy server answers at once; its reverse DNS lookup may take
longer."""
WHOLE_LOGIN: Final = 2
"""Times the seconds for one answer, for all answers of a login together: a byte now and then is no login."""
SILENT_SECONDS: Final = 60
"""Seconds without a byte of an answer, after which new logins check whether the server still answers."""
ASKED: Final = 2
"""Failed logins, ``GREETING_SECONDS`` each, before the connection to a silent server is closed."""
WRITE_SECONDS: Final = 300
"""Seconds to send one packet of at most 16 MiB."""
LARGEST_ANSWER: Final = (1 << 30) + (1 << 20)
"""Limit in bytes for one packet of an answer, all pieces together: the servers' limit for max_allowed_packet, plus a
margin."""
LARGEST_RESULT: Final = 8 * LARGEST_ANSWER
"""Limit in bytes for an answer that is kept, by the memory that it takes there, not by its packets: a row of nothing
has 5 bytes in these."""
LARGEST_LOOK: Final = 1 << 28
"""The same where ``read_timeout`` is given: who looks at a server for seconds needs no more."""

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 35_000))
"""TCP keepalive: seconds, seconds, probes, milliseconds. An unreachable peer is given up after about 35 s."""
LEAST_PACKET: Final = 1 << 18
"""Bytes of a packet that a source must take."""
_ROW: Final = 128
_VALUE: Final = 64
"""Bytes of memory for a row, and for each of its values, besides what they are on the wire."""
_MOST_COLUMNS: Final = 4096
"""Of an answer: the limit of both families (1117)."""
_WHOLE_PACKET: Final = 0xFF_FFFF
"""A packet of this length continues in the next one."""
_HEAD: Final = 4
"""Bytes of a packet's header."""
_IN_CLEAR: Final = frozenset({b"mysql_clear_password", b"dialog"})
_OLD_PASSWORD: Final = b"mysql_old_password"
_UNREADABLE: Final = (struct.error, IndexError, AssertionError, AttributeError, TypeError, UnicodeError, ValueError)
"""What PyMySQL raises for packets that no server sends."""
_CLIENTS_OWN: Final = range(2000, 3000)
"""The client's own error numbers."""
_UNKNOWN: Final = frozenset({1193, 1286})
"""A variable that the server does not have; a storage engine that it does not have (MariaDB, innodb = OFF)."""
_NOT_SETTABLE: Final = _UNKNOWN | {1227, 1238}
"""And no privilege; read-only in this version."""
_LOGIN_REFUSED: Final = frozenset({1045, 1130, 1698, 3118, 3955, 4151})
_NO_GUARD: Final = _NOT_SETTABLE | {1231, 1971}
"""And a variable that SET STATEMENT does not take, or not with this value."""
_NO_ROOM: Final = frozenset({1040, 1203, 1226})
"""Limits of connections: the server's, and an account's."""
_NO_TABLE: Final = frozenset({NO_SUCH_KEY, 1049, 1146, 1356})
"""What has the name is a view, also one without its tables; there is no such database or table."""
_IN_TRANSACTION: Final = 1766
"""MySQL: a variable that an open transaction protects; ``init_connect`` has begun it."""
_INIT_CONNECT_FAILED: Final = 1184
_RESET_CONNECTION: Final = 0x1F
"""COM_RESET_CONNECTION: MySQL 5.7.3, MariaDB 10.2.4."""
_WARNINGS: Final = "SHOW WARNINGS"
_BOUNDS: Final = ("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK")
_PEM: Final = {"ca": "ssl_ca", "cert": "ssl_cert", "key": "ssl_key"}
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Unset:
    """Pins that the sessions of one account cannot set."""

    unknown: frozenset[str] = frozenset()
    """Variables that this server does not have, or whose value it does not have."""
    refused: frozenset[str] = frozenset()
    """Variables that have to be as pinned already."""

    @property
    def names(self) -> frozenset[str]:
        return self.unknown | self.refused


_NOTHING: Final = _Unset()
_unset: Final[dict[tuple[object, ...], _Unset]] = {}
"""By server and account, as it was when somebody tried."""


class LoginRefusedError(err.OperationalError):
    """The server refused the login: a wrong account or password, a host that may not connect, a locked account.

    Servers have the same numbers for privileges that are missing later.
    """


class SessionCursor(Cursor):
    """PyMySQL's cursor, for the session that answers (``Connection.answering``)."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._own = connection

    def execute(self, query: str | bytes, args: object = None) -> int:
        """As PyMySQL's. Raises StateSchemaError for a view in the place of a table of the state, and, where the session
        is not read-only, TableMismatchError for one in the place of a user's table that is read."""
        # what the last statement has left belongs to the session that answered it
        while self.nextset():
            pass
        text, touched = hinted(query) if isinstance(query, str) else (query, NOTHING)
        if isinstance(text, str) and self._own.kind not in READ_ONLY:
            text, table = hinted_table(text)
            if table:
                return self._read_table(text, args, table)
        return self._execute(text, args, touched)

    def _read_table(self, text: str, args: object, table: str) -> int:
        try:
            return self._execute(text, args, NOTHING)
        except err.MySQLError as exc:
            if exc.args[0] != NO_SUCH_KEY:
                raise
            raise users_view_in_place(table) from exc

    def _execute(self, text: str | bytes, args: object, touched: Touched) -> int:
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


class Connection(Driver):
    """PyMySQL's connection with the rules of this module.

    TLS without verification shares one context a process: PyMySQL would create one for each connection and load all
    certificate authorities of the machine into it, which takes 0.1 s of CPU.
    """

    if TYPE_CHECKING:
        # missing in the type stubs
        _result: Any
        _closed: bool
        _sock: socket.socket
        _secure: bool
        _rfile: io.BufferedReader
        _read_timeout: float | None
        _current_timeout: float | None
        _next_seq_id: int
        server_capabilities: int
        server_status: int
        client_flag: int

    def __init__(
        self,
        *,
        password: str | bytes = "",
        public_key_file: str | None = None,
        get_server_public_key: bool = False,
        read_timeout: float | None = None,
        write_timeout: float | None = WRITE_SECONDS,
        compresses: bool = False,
        kind: SessionKind = SessionKind.STATE,
        proof: ServerProof | TargetProof | None = None,
        **named: Any,
    ) -> None:
        """``public_key_file``: PEM file of the server's RSA key; ``get_server_public_key``: accept the key that the
        server sends.

        ``read_timeout``: seconds that each answer may take, from its statement to its last byte; None: as long as the
        server accepts logins.
        ``compresses``: both directions by zlib, after the login. ``kind``: decides the session's settings.
        ``proof``: what the server must be.
        """
        self.kind = kind
        self.proof = proof
        self._commits_itself = False
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
        self._again = {
            "password": password,
            "public_key_file": public_key_file,
            "get_server_public_key": get_server_public_key,
            **{name: value for name, value in named.items() if name != "connect_timeout"},
        }
        self._asked = read_timeout
        self._pinned = public_key_file is not None
        self._takes_key = get_server_public_key
        self._answer_bytes = 0
        self._result_bytes = 0
        self._columns = 0
        """Those of the present answer that were read."""
        self._is_unbuffered = False
        self._is_in_login = False
        self._deadline: float | None = None
        self._own: io.BufferedReader | None = None
        self._compresses = compresses
        self._has_frames = False
        self._frames_sent = 0
        self._is_in_packet = False
        if public_key_file is not None:
            named["server_public_key"] = _file(public_key_file, "server_public_key")
        # servers compare the password's bytes, which are utf8mb4 from CREATE USER; PyMySQL would send latin-1
        secret = password.encode() if isinstance(password, str) else password
        limits: dict[str, Any] = {"read_timeout": read_timeout, "write_timeout": write_timeout}
        super().__init__(password=secret, **{"cursorclass": SessionCursor, **limits, **named})

    def connect(self, sock: Any = None) -> None:
        """As PyMySQL's. Raises ConfigError, which is not retried, for a certificate that does not verify."""
        self._read_timeout = GREETING_SECONDS if self._asked is None else self._asked
        self._has_frames = False
        self._is_in_login, self._result_bytes = True, 0
        self._deadline = time.monotonic() + WHOLE_LOGIN * self._read_timeout
        try:
            super().connect(sock)
            self._keep_alive()
        except err.OperationalError as exc:
            cause = getattr(exc, "original_exception", None)
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise ConfigError(
                    f"{self._place}: the server's certificate does not verify: {cause.verify_message}; compare "
                    "ssl_ca and host of the connection with the certificate, and check that ssl_mode is the "
                    "intended one"
                ) from exc
            if exc.args[0] == CR.CR_SERVER_LOST and isinstance(exc.__context__, _LateError):
                raise err.OperationalError(
                    CR.CR_SERVER_LOST,
                    f"the server has not answered the whole login within {WHOLE_LOGIN * self._read_timeout:g} s: it is "
                    "overloaded, or it is no MySQL or MariaDB server; look at host and port of the connection",
                ) from exc
            if exc.args[0] == CR.CR_SERVER_LOST and isinstance(exc.__context__, TimeoutError):
                raise err.OperationalError(
                    CR.CR_SERVER_LOST,
                    f"the server accepts connections and sends nothing for {self._read_timeout:g} s: it is "
                    "frozen or overloaded",
                ) from exc
            if exc.args[0] in _LOGIN_REFUSED:
                raise LoginRefusedError(*exc.args) from exc
            if exc.args[0] == _INIT_CONNECT_FAILED:
                raise PrecheckError(
                    f"{self._place}: expected a session, found that the server ends it: init_connect, which the server "
                    f"runs for accounts without administrator's privileges, fails ({exc.args[1]}): mend it there, or "
                    "GRANT CONNECTION_ADMIN (MariaDB: CONNECTION ADMIN) ON *.* to the account, for which it does not "
                    "run"
                ) from exc
            raise
        except _UNREADABLE as exc:
            self._force_close()  # type: ignore[attr-defined]
            raise err.OperationalError(
                CR.CR_SERVER_HANDSHAKE_ERR,
                f"the server's answer to the login cannot be read ({exc}): it is no MySQL or MariaDB server, or a "
                "program between changes what it says; look at host and port of the connection",
            ) from exc
        finally:
            self._is_in_login, self._deadline = False, None
        if self._asked is None:
            self._read_timeout = SILENT_SECONDS
        if not self._secure and not _is_loopback(self._sock):
            _warn_in_clear(self._place)

    @property
    def flavor(self) -> Flavor:
        """The server's family, by the version in its handshake."""
        return self._server.flavor

    def set_character_set(self, charset: str, collation: str | None = None) -> None:
        """PyMySQL's first statement after the login: all of the session's settings, and the character set with them.

        Whatever ``init_connect`` did before is undone: its transaction, its temporary tables and its variables.
        """
        try:
            self._pin()
        except err.MySQLError as exc:
            if exc.args[0] != _IN_TRANSACTION:
                raise
            self._reset()
            self.prove()
            return
        # behind the settings, or one of them could hide the answer
        if self.prove("@@GLOBAL.init_connect"):
            self._reset()

    def _reset(self) -> None:
        self._execute_command(_RESET_CONNECTION, b"")
        self._read_ok_packet()  # type: ignore[attr-defined]
        self._pin()

    def autocommit(self, value: bool | None) -> None:
        """As PyMySQL's, which believes a flag of answers: MySQL has it on where the global value is OFF."""
        if bool(value) != self._commits_itself:
            self.query(f"SET autocommit = {int(bool(value))}")
            self._commits_itself = bool(value)
        self.autocommit_mode = value

    def query(self, sql: str | bytes, unbuffered: bool = False) -> int:
        """As PyMySQL's; a statement of binlane's own for which the server may open views changes nothing
        (``view_guard``). Statements of a log are bytes."""
        if self._guards is None and self.answering(sql) is not self:
            raise err.ProgrammingError(
                CR.CR_COMMANDS_OUT_OF_SYNC,
                f"{sql!r} opens views while a transaction is open: another session has to run it, and a cursor of the "
                "connection's own class finds it; call connection.cursor()",
            )
        guards, self._guards = self._guards, None
        if isinstance(sql, str):
            if guards:
                return self._guarded(sql, unbuffered)
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
            raise trigger_of(_text(table), _text(name))

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
        without = _unset.get(self._account, _NOTHING).names
        try:
            return self._query(guard(self._server, without, restores=self._restores) + sql, unbuffered)
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

    def _keep_alive(self) -> None:
        """Let the kernel find that the peer is gone, also while an answer is waited for."""
        if self._sock.family not in (socket.AF_INET, socket.AF_INET6):
            return
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE:
                option = getattr(socket, name, None)
                if option is not None:
                    self._sock.setsockopt(socket.IPPROTO_TCP, option, value)

    def ping(self, _reconnect: object = False) -> None:
        """As PyMySQL's, and never connects. Nothing is sent where the server has sent nothing since its last answer: a
        server that ends a session closes its socket, or says why before. For a peer that is gone without a word, the
        next statement waits as long as this one would."""
        if self._sock is None or self._has_sent():
            super().ping()

    def _has_sent(self) -> bool:
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        readable = select.poll()
        readable.register(self._sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        return bool(readable.poll(0))

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

    def use_as(self, kind: SessionKind) -> None:
        """Make the session one of another kind; its transaction goes on."""
        if kind is self.kind:
            return
        before, self.kind = self.kind, kind
        self._close_other()
        self._set(lambda without: changes(self._server, before, kind, without))

    def _pin(self) -> None:
        self._commits_itself = bool(self.autocommit_mode)
        login = (
            f"NAMES {self.charset} COLLATE {self.charset}_general_ci",
            f"autocommit = {int(self._commits_itself)}",
        )
        self._set(lambda without: (*login, *assignments(self._server, self.kind, without)))

    def _set(self, parts: Callable[[frozenset[str]], tuple[str, ...]]) -> None:
        """Set all ``parts`` by one statement, but what is known not to go: that has to be as pinned already."""
        unset = _unset.get(self._account, _NOTHING)
        try:
            self.query(f"SET {', '.join(parts(unset.names))}")
        except err.MySQLError as exc:
            if exc.args[0] not in _NOT_SETTABLE:
                raise
            unset = self._set_each(parts(unset.unknown), unset.unknown)
            _unset[self._account] = unset
        if unset.refused:
            self._prove(unset.refused)

    def _set_each(self, parts: Iterable[str], unknown: frozenset[str]) -> _Unset:
        """Set each part by a statement of its own; returns the names of those that cannot be set."""
        refused: set[str] = set()
        for part in parts:
            try:
                self.query(f"SET {part}")
            except err.MySQLError as exc:
                if exc.args[0] not in _NOT_SETTABLE:
                    raise
                name = part.partition(" ")[0].removeprefix("@@SESSION.")
                if exc.args[0] in _UNKNOWN:
                    unknown |= {name}
                else:
                    refused.add(name)
        return _Unset(unknown, frozenset(refused) | (_unset.get(self._account, _NOTHING).refused))

    def _prove(self, refused: Iterable[str]) -> None:
        names = ", ".join(f"'{name}'" for name in sorted(refused))
        rows = self._texts(f"SHOW SESSION VARIABLES WHERE variable_name IN ({names})")
        found = {name.lower(): value for name, value in rows}
        for pin in pins_of(self._server, self.kind):
            if pin.name in found and not is_as_pinned(pin, self.flavor, self.kind, found[pin.name]):
                _unset.pop(self._account, None)
                value = pin.value_of(self.flavor, self.kind)
                raise PrecheckError(
                    f"{self._place}: expected {pin.name} = {value} in binlane's session ({pin.reason}), found "
                    f"{found[pin.name]!r}, which this account may not change: SET GLOBAL {pin.name} = {value} on the "
                    "server, or give the account the privilege to change it (MySQL: SESSION_VARIABLES_ADMIN; MariaDB: "
                    "SUPER)"
                )

    @property
    def _server(self) -> Server:
        return Server.of(str(self.get_server_info()))  # type: ignore[no-untyped-call]

    @property
    def _account(self) -> tuple[object, ...]:
        return (self.host, self.port, self.user, self._server)

    def prove(self, besides: str = "''") -> str:
        """Ask the server whether it is the one that ``proof`` names; returns the value of ``besides``, an expression.

        Raises SourceIdentityError if it is another one, or one from before the watermark; TargetIdentityError for
        another target.
        """
        proof = self.proof
        columns, arguments = ("''", ()) if proof is None else proof.query(self.flavor)
        settings = "@@SESSION.max_allowed_packet, @@GLOBAL.log_bin"
        [values] = self._texts(f"SELECT {besides}, {settings}, {columns}", arguments)
        if proof is not None:
            if isinstance(proof, ServerProof) and values[2] != "1":
                raise PrecheckError(f"{self._place}: {NO_LOG}")
            if isinstance(proof, ServerProof) and int(values[1]) < LEAST_PACKET:
                raise PrecheckError(
                    f"{self._place}: expected max_allowed_packet of at least {LEAST_PACKET}, for statements that name "
                    f"many tables, found {values[1]}, with which the server ends the connection: SET GLOBAL "
                    "max_allowed_packet = 67108864 on the source"
                )
            why = proof.refusal(self.flavor, values[3:])
            if why is None and isinstance(proof, ServerProof) and proof.position is not None and not proof.gtid_set:
                why = proof.refused_end(self._log_end())
            if why is not None:
                raise proof.error(self._place, why)
        return values[0]

    def own_proof(self) -> ServerProof:
        """What every later connection must find to reach this server, no earlier than now."""
        [values] = self._texts(f"SELECT {state_query(self.flavor)}")
        try:
            end = self._log_end()
        except err.OperationalError:  # whoever reads the log says what privilege the account lacks
            end = LogPosition("", 0)
        return ServerProof.of(self.flavor, values, end if end.file else None)

    def _log_end(self) -> LogPosition:
        try:
            rows = self._texts("SHOW BINARY LOG STATUS")
        except err.ProgrammingError:
            rows = self._texts("SHOW MASTER STATUS")
        return LogPosition(rows[0][0], int(rows[0][1])) if rows else LogPosition("", 0)

    def _texts(self, query: str, arguments: tuple[str, ...] = ()) -> list[list[str]]:
        with self.cursor(Cursor) as cursor:
            cursor.execute(query, arguments or None)
            return [["" if value is None else _text(value) for value in row] for row in cursor.fetchall()]

    def _request_authentication(self) -> None:
        if self._compresses:
            if not self.server_capabilities & CLIENT.COMPRESS:
                raise ConfigError(
                    f"{self._place}: expected a server that compresses by zlib, found one that does not offer it: "
                    "SET GLOBAL protocol_compression_algorithms = 'zlib,uncompressed' there (MySQL), or do not "
                    "compress this connection"
                )
            self.client_flag |= CLIENT.COMPRESS
        super()._request_authentication()  # type: ignore[misc]  # the stubs leave it out
        # the server's answer to the login was the last one without a frame
        self._has_frames = self._compresses
        if self._has_frames:
            self._own = self._rfile = io.BufferedReader(InflatedStream(self._rfile))

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        super()._execute_command(command, sql)  # type: ignore[misc]  # the stubs leave it out
        self._result_bytes, self._is_unbuffered, self._has_ended = 0, False, False
        if self._asked is not None and not self._is_in_login:
            self._deadline = time.monotonic() + self._asked

    def seconds_left(self) -> float | None:
        """Seconds until the present answer must be complete, for the next wait; None: it has no such limit. Raises
        TimeoutError if none is left."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _LateError("the server sends, but not the whole answer in time")
        return left if self._read_timeout is None else min(left, self._read_timeout)

    def _write_bytes(self, data: bytes) -> None:
        if not self._has_frames:
            super()._write_bytes(data)  # type: ignore[misc]
            return
        for frame in frames_of(data, self._frames_sent):
            super()._write_bytes(frame)  # type: ignore[misc]
            self._frames_sent += 1

    def _create_ssl_ctx(self, sslp: Mapping[str, Any]) -> ssl.SSLContext:
        if not sslp:
            return _unverified()
        for part, extra in _PEM.items():
            if (name := sslp.get(part)) is not None:
                _file(name, extra)
        try:
            context: ssl.SSLContext = super()._create_ssl_ctx(sslp)  # type: ignore[misc]  # the stubs leave it out
        except ssl.SSLError as exc:
            files = ", ".join(f"{extra} {sslp[part]}" for part, extra in _PEM.items() if sslp.get(part) is not None)
            raise ConfigError(f"{files}: expected PEM, and the key that belongs to the certificate: {exc}") from exc
        if sslp.get("check_hostname") and context.verify_mode is ssl.CERT_REQUIRED:
            # PyMySQL does not check the host name with the machine's own certificate authorities
            context.check_hostname = True
        return context

    @property
    def server_public_key(self) -> bytes | None:
        """The RSA key that encrypts the password on an unencrypted connection; None: no key yet."""
        return self._public_key

    @server_public_key.setter
    def server_public_key(self, key: bytes | None) -> None:
        # PyMySQL sets the attribute at its start, and to every key that a server sends
        if self._closed or self._sock is None:
            self._public_key = key
        elif not self._takes_key and not self._pinned:
            raise ConfigError(
                f"{self._place}: the connection is not encrypted, and the server requests the password encrypted "
                "by an RSA key that it has just sent, which an attacker on the network can replace: enable TLS "
                "on the server (ssl_mode=required, better verify_identity), or name the server's key (extra "
                "server_public_key: a PEM file), or accept the risk (extra get_server_public_key: true)"
            )
        elif not self._pinned:
            self._public_key = key

    def _process_auth(self, plugin_name: bytes, auth_packet: Any, handler: Any = None) -> Any:
        if plugin_name in _IN_CLEAR and not self._secure:
            raise ConfigError(
                f"{self._place}: the server requests the password in clear text ({plugin_name.decode()}) over a "
                "connection that is not encrypted: enable TLS on the server (ssl_mode=required, better "
                "verify_identity), or use another authentication plugin for the account"
            )
        if plugin_name == _OLD_PASSWORD:
            raise ConfigError(
                f"{self._place}: the server asks for the password by mysql_old_password, whose hash is as good as the "
                "password itself, and which no server since MySQL 5.7 and MariaDB 10.4 needs: set the account's "
                "password again with mysql_native_password or a newer plugin; if its plugin is another one, this is "
                "not the server"
            )
        return super()._process_auth(plugin_name, auth_packet, handler)  # type: ignore[misc]

    def _read_query_result(self, unbuffered: bool = False) -> int:
        self._is_unbuffered, self._columns = unbuffered, 0
        try:
            return int(super()._read_query_result(unbuffered))  # type: ignore[misc]
        except RuntimeError as exc:
            # PyMySQL's answer to a server that asks for a file of this machine, and nothing was sent
            self._force_close()  # type: ignore[attr-defined]
            raise ConfigError(
                f"{self._place}: the server asks for a file of this machine (LOAD DATA LOCAL), which no statement of "
                "this connection has offered: it is not the expected server, or another program changes what it says. "
                "Nothing was sent; look at host, port and ssl_mode of the connection"
            ) from exc
        except _UNREADABLE as exc:
            self._force_close()  # type: ignore[attr-defined]
            raise err.OperationalError(
                CR.CR_MALFORMED_PACKET, f"an answer of the server cannot be read: {exc}"
            ) from exc

    def _read_packet(self, packet_type: type[MysqlPacket] = MysqlPacket) -> Any:
        if packet_type is FieldDescriptorPacket:
            self._columns += 1
            if self._columns > _MOST_COLUMNS:
                self._force_close()  # type: ignore[attr-defined]
                raise err.OperationalError(
                    CR.CR_MALFORMED_PACKET,
                    f"the server sends an answer of more than {_MOST_COLUMNS:,} columns, the limit of MySQL and "
                    "MariaDB: it is another program, or one between binlane and the server changes the stream; look at "
                    "host, port and ssl_mode of the connection",
                )
        else:
            self._result_bytes += _ROW + _VALUE * self._columns
        return super()._read_packet(packet_type)  # type: ignore[no-untyped-call]

    def _read_bytes(self, num_bytes: int) -> bytes:
        if num_bytes == _WHOLE_PACKET:
            self._answer_bytes += num_bytes
        elif self._answer_bytes and num_bytes != _HEAD:
            self._answer_bytes = 0
        if self._answer_bytes > LARGEST_ANSWER:
            self._force_close()  # type: ignore[attr-defined]
            raise err.OperationalError(
                CR.CR_NET_PACKET_TOO_LARGE,
                f"the server sends one packet of more than {LARGEST_ANSWER:,} bytes, more than any server "
                "accepts itself: this is not a MySQL or MariaDB server, or a program between binlane and the "
                "server changes the stream",
            )
        self._result_bytes += num_bytes
        if self._result_bytes > self._largest_result and not self._is_unbuffered:
            self._force_close()  # type: ignore[attr-defined]
            raise err.OperationalError(
                CR.CR_NET_PACKET_TOO_LARGE,
                f"the answer to one statement has more than {self._largest_result:,} bytes in memory, which no "
                "statement of this connection asks for: the server is not the expected one, or rows of the schema "
                "binlane were made by another program; look at host and port of the connection",
            )
        if self._rfile is not None and self._rfile is not self._own:
            # PyMySQL has just made it, and nothing was read by it
            self._own = self._rfile = io.BufferedReader(_Answers(self))
        data: bytes = super()._read_bytes(num_bytes)  # type: ignore[misc]
        if self._has_frames:
            # what is sent next begins a command, and with it the numbers of frames
            self._frames_sent = 0
            self._is_in_packet = not self._is_in_packet
            if self._is_in_packet:
                # servers number packets from the last frame's number on
                self._next_seq_id = data[3]
        return data

    @property
    def _largest_result(self) -> int:
        return LARGEST_RESULT if self._asked is None else LARGEST_LOOK

    def answers_others(self) -> bool:
        """Whether the server answers a new login now, also with an error."""
        limits: dict[str, Any] = dict.fromkeys(("read_timeout", "connect_timeout"), GREETING_SECONDS)
        for _ in range(ASKED):
            try:
                Connection(**self._again, **limits).close()
            except err.OperationalError as exc:
                if exc.args[0] in _CLIENTS_OWN:
                    continue
            except BinlaneError:
                # an error is an answer
                pass
            return True
        return False

    @property
    def _place(self) -> str:
        user = self.user.decode() if isinstance(self.user, bytes) else self.user
        return f"{user}@{self.host}:{self.port}"


class _LateError(TimeoutError):
    """The server sends, and has not sent all in time."""


class _Answers(io.RawIOBase):
    """The bytes that a server sends: up to the answer's deadline, or, without one, while the server accepts logins."""

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self._connection = connection
        self._socket = connection._sock

    def readable(self) -> bool:
        """The stream is readable."""
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        """Wait for bytes. Raises OSError if the connection breaks, no time is left, or the server no longer answers
        logins."""
        while True:
            left = self._connection.seconds_left()
            if left is not None:
                self._socket.settimeout(left)
                self._connection._current_timeout = left
                try:
                    return int(self._socket.recv_into(buffer))
                except TimeoutError:
                    self._connection.seconds_left()
                    raise
            try:
                return int(self._socket.recv_into(buffer))
            except TimeoutError as exc:
                if not self._connection.answers_others():
                    raise TimeoutError(
                        f"no answer for {self._socket.gettimeout():g} s, and {ASKED} new logins failed: the "
                        "server is frozen, overloaded or unreachable"
                    ) from exc


def _text(value: object) -> str:
    """A value of a connection with or without conversions."""
    return value.decode() if isinstance(value, bytes) else str(value)


def _file(name: str, extra: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as exc:
        raise ConfigError(f"extra {extra} of the connection: {name}: {exc.strerror}") from exc


def _is_loopback(peer: Any) -> bool:
    address = peer.getpeername()
    return not isinstance(address, tuple) or ipaddress.ip_address(address[0].partition("%")[0]).is_loopback


@functools.cache
def _warn_in_clear(place: str) -> None:
    """Warn once for each process and account."""
    _log.warning(
        "%s: the connection is not encrypted: an eavesdropper can read all rows, and an attacker who changes "
        "packets can take over the connection; enable TLS on the server and set ssl_mode=verify_identity "
        "(docs/security.md#connections)",
        place,
    )


@functools.cache
def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
