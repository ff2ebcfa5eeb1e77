"""The bytes of a connection: deadlines and limits of answers, frames of the compressed protocol, keepalive, turns.

The kernel of a frozen server (stopped, out of memory, its disk gone) still acknowledges packets, so neither TCP nor its
keepalive detects the failure, and a statement that runs for hours looks the same. So a connection that waits long for
an answer checks whether the server still accepts logins: running statements are never interrupted, and a dead server is
given up (docs/security.md#connections).

A session belongs to one thread. Another one may ask its server to keep it, in turn (``WireConnection.stay``, which
``kept`` calls).
"""

from __future__ import annotations

import contextlib
import io
import math
import select
import socket
import ssl
import struct
import threading
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

from pymysql import connections, err
from pymysql.constants import CLIENT, CR
from pymysql.cursors import Cursor
from pymysql.protocol import FieldDescriptorPacket, MysqlPacket

from binlane.driver.compression import InflatedStream, frames_of
from binlane.driver.results import Result
from binlane.errors import BinlaneError, ConfigError

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
LARGEST_LOOK: Final = 1 << 26
"""The same where ``read_timeout`` is given: who looks at a server for seconds needs no more."""
LONGEST_ERROR: Final = 2_000
"""Characters of a server's error that are kept; MySQL and MariaDB send at most 512 bytes."""
UNREADABLE: Final = (struct.error, IndexError, AssertionError, AttributeError, TypeError, UnicodeError, ValueError)
"""What PyMySQL raises for packets that no server sends."""

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 35_000))
"""TCP keepalive: seconds, seconds, probes, milliseconds. An unreachable peer is given up after about 35 s."""
_ROW: Final = 128
_VALUE: Final = 64
"""Bytes of memory for a row, and for each of its values, besides what they are on the wire."""
_MOST_COLUMNS: Final = 4096
"""Of an answer: the limit of both families (1117)."""
_WHOLE_PACKET: Final = 0xFF_FFFF
"""A packet of this length continues in the next one."""
_HEAD: Final = 4
"""Bytes of a packet's header."""
_BUFFER: Final = 1 << 16
"""Bytes of an answer that are read at once, if they have come."""
_LAST: Final = 0xFE
"""From this first byte on a packet may be an answer's end or an error."""
_PING: Final = b"\x01\0\0\0\x0e"
"""The packet of a COM_PING."""
_CLIENTS_OWN: Final = range(2000, 3000)
"""The client's own error numbers."""


class Turn:
    """Of two threads the one that sends a statement and reads its answer; a lock that knows when it was last held."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth, self._holder = 0, 0
        self._ended_at = self.used_at = time.monotonic()
        """``used_at``: when who has not asked for a free turn last gave it back."""
        self._is_free = False

    def __enter__(self) -> None:
        self._lock.acquire()
        self._begin()

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._holder, self._ended_at = 0, time.monotonic()
            if not self._is_free:
                self.used_at = self._ended_at
            self._is_free = False
        self._lock.release()

    def take_free(self, idle: float) -> bool:
        """Take the turn, unless somebody has it, or has had it in the last ``idle`` seconds."""
        if not self._lock.acquire(blocking=False):
            return False
        if time.monotonic() - self._ended_at < idle:
            self._lock.release()
            return False
        self._begin()
        self._is_free = True
        return True

    def _begin(self) -> None:
        self._depth += 1
        self._holder = threading.get_ident()

    @property
    def is_mine(self) -> bool:
        """Whether this thread has it."""
        return self._holder == threading.get_ident()


class WireConnection(Driver):
    """PyMySQL's connection, whose answers have limits of time and of size."""

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

    _turn: Turn | None = None
    """Where another thread calls ``stay``."""
    _why_lost: str = ""
    """What ``stay`` has found instead of the session."""

    def __init__(
        self,
        *,
        again: dict[str, Any],
        read_timeout: float | None = None,
        write_timeout: float | None = WRITE_SECONDS,
        compresses: bool = False,
        **named: Any,
    ) -> None:
        """``again``: arguments of another connection to the same server by the same account.

        ``read_timeout``: seconds that each answer may take, from its statement to its last byte; None: as long as the
        server accepts logins.
        ``compresses``: both directions by zlib, after the login.
        """
        self._again = again
        self._asked = read_timeout
        self._answer_bytes = 0
        self._result_bytes = 0
        self._columns = 0
        """Those of the present answer that were read."""
        self._is_unbuffered = False
        self._is_in_login = False
        self._deadline: float | None = None
        self._own: io.BufferedReader | None = None
        self.unread = 0
        """Bytes that have come and that nobody has taken yet."""
        self._compresses = compresses
        self._has_frames = False
        self._frames_sent = 0
        self._is_in_packet = False
        super().__init__(read_timeout=read_timeout, write_timeout=write_timeout, **named)

    def connect(self, sock: Any = None) -> None:
        """As PyMySQL's, with a limit for the whole login."""
        self._read_timeout = self._greeting_seconds
        self._has_frames = False
        self._is_in_login, self._result_bytes = True, 0
        self._deadline = time.monotonic() + WHOLE_LOGIN * self._greeting_seconds
        try:
            super().connect(sock)
            self._keep_alive()
        finally:
            self._is_in_login, self._deadline = False, None
        if self._asked is None:
            self._read_timeout = SILENT_SECONDS

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
            with self.turn:
                super().ping()

    def query(self, sql: str | bytes, unbuffered: bool = False) -> int:
        """As PyMySQL's."""
        with self.turn:
            return int(super().query(sql, unbuffered))

    def select_db(self, db: str) -> None:
        """As PyMySQL's."""
        with self.turn:
            super().select_db(db)

    def begin(self) -> None:
        """As PyMySQL's."""
        with self.turn:
            super().begin()

    def commit(self) -> None:
        """As PyMySQL's."""
        with self.turn:
            super().commit()

    def rollback(self) -> None:
        """As PyMySQL's."""
        with self.turn:
            super().rollback()

    def take_turns(self) -> None:
        """From now on another thread may call ``stay``."""
        self._turn = Turn()

    @property
    def turn(self) -> contextlib.AbstractContextManager[None]:
        """To be held from a statement to the last byte of its answer. What sends one by ``query`` holds it already."""
        return contextlib.nullcontext() if self._turn is None else self._turn

    def stay(self, idle: float = 0.0, longest: float = math.inf) -> bool:
        """For another thread: the server's time for a client that says nothing begins anew. A session whose answer is
        still to come, or has rows left to read, or that was used in the last ``idle`` seconds, is left alone, and so is
        one whose own thread has not used it for ``longest`` seconds. False: the session is lost, and its next statement
        raises OperationalError."""
        turn = self._turn
        if turn is None or time.monotonic() - turn.used_at > longest or not turn.take_free(idle):
            return True
        try:
            if self._sock is None:
                return False
            # not by PyMySQL's ping, which forgets the last result: the session's own thread may still look at it
            if self._result is None or not self._result.unbuffered_active:
                self._write_bytes(_PING)
                self._begin_answer()
                self._next_seq_id = 1
                self._read_ok_packet()  # type: ignore[attr-defined]
        except (err.Error, OSError, *UNREADABLE) as exc:
            self._why_lost = f"the session was lost while it had nothing to do: {exc}"
            self._force_close()  # type: ignore[attr-defined]
            return False
        finally:
            turn.__exit__()
        return True

    def is_at_work(self) -> None:
        """The session's own thread gets on, though it sends nothing: see ``stay``."""
        if self._turn is not None:
            self._turn.used_at = time.monotonic()

    def _has_sent(self) -> bool:
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        readable = select.poll()
        readable.register(self._sock, select.POLLIN | select.POLLHUP | select.POLLERR)
        return bool(readable.poll(0))

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        if self._turn is not None and not self._turn.is_mine:
            # the other thread's question would come between the statement and its answer
            raise err.ProgrammingError(
                CR.CR_COMMANDS_OUT_OF_SYNC,
                f"command {command}: expected the session's turn, which another thread may have; send it in `with "
                "connection.turn`",
            )
        if self._sock is None and self._why_lost:
            raise err.OperationalError(CR.CR_SERVER_LOST, self._why_lost)
        super()._execute_command(command, sql)  # type: ignore[misc]  # the stubs leave it out
        # what reads the stream itself (``bootstrap.row_stream``) counts nothing
        self._result_bytes, self._is_unbuffered, self.unread = 0, False, 0
        self._begin_answer()

    def _begin_answer(self) -> None:
        if self._asked is not None and not self._is_in_login:
            self._deadline = time.monotonic() + self._asked

    def seconds_left(self) -> float | None:
        """Seconds until the present answer must be complete, for the next wait; None: it has no such limit. Raises
        TimeoutError if none is left."""
        if self._deadline is None:
            return None
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise LateError("the server sends, but not the whole answer in time")
        return left if self._read_timeout is None else min(left, self._read_timeout)

    def _write_bytes(self, data: bytes) -> None:
        if not self._has_frames:
            super()._write_bytes(data)  # type: ignore[misc]
            return
        for frame in frames_of(data, self._frames_sent):
            super()._write_bytes(frame)  # type: ignore[misc]
            self._frames_sent += 1

    def _read_query_result(self, unbuffered: bool = False) -> int:
        self._is_unbuffered, self._columns, self._result = unbuffered, 0, None
        result = Result(self)
        try:
            if unbuffered:
                result.init_unbuffered_query()
            else:
                result.read()
        except RuntimeError as exc:
            # PyMySQL's answer to a server that asks for a file of this machine, and nothing was sent
            self._force_close()  # type: ignore[attr-defined]
            raise ConfigError(
                f"{self._place}: the server asks for a file of this machine (LOAD DATA LOCAL), which no statement of "
                "this connection has offered: it is not the expected server, or another program changes what it says. "
                "Nothing was sent; look at host, port and ssl_mode of the connection"
            ) from exc
        except UNREADABLE as exc:
            self._force_close()  # type: ignore[attr-defined]
            raise err.OperationalError(
                CR.CR_MALFORMED_PACKET, f"an answer of the server cannot be read: {exc}"
            ) from exc
        self._result = result
        if result.server_status is not None:
            self.server_status = result.server_status
        return int(result.affected_rows or 0)

    def columns_here(self, most: int) -> list[bytes]:
        """Descriptions of columns that have come, at most so many; the next one that is not among them is for
        ``_read_packet``."""
        found = self._packets_here(min(most, _MOST_COLUMNS - self._columns))
        self._columns += len(found)
        return found

    def rows_here(self) -> list[bytes]:
        """Rows that have come; the next packet that is not among them is for ``_read_packet``."""
        found = self._packets_here(_BUFFER)
        self._result_bytes += len(found) * (_ROW + _VALUE * self._columns)
        return found

    def _packets_here(self, most: int) -> list[bytes]:
        found: list[bytes] = []
        if self._has_frames or self.unread <= 0:
            return found
        data, at, number = self._rfile.peek(), 0, self._next_seq_id
        while len(found) < most and at + _HEAD < len(data):
            end = at + _HEAD + (data[at] | data[at + 1] << 8 | data[at + 2] << 16)
            if not at + _HEAD < end <= len(data) or data[at + 3] != number or data[at + _HEAD] >= _LAST:
                break
            found.append(data[at + _HEAD : end])
            at, number = end, (number + 1) % 256
        self._rfile.read(at)
        self._next_seq_id = number
        self.unread -= at
        self._result_bytes += at
        return found

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
        try:
            return super()._read_packet(packet_type)  # type: ignore[no-untyped-call]
        except err.MySQLError as exc:
            exc.args = tuple(each[:LONGEST_ERROR] if isinstance(each, str) else each for each in exc.args)
            raise

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
            self._own, self.unread = io.BufferedReader(_Answers(self), _BUFFER), 0
            self._rfile = self._own
        data: bytes = super()._read_bytes(num_bytes)  # type: ignore[misc]
        self.unread -= num_bytes
        if self._has_frames:
            # what is sent next begins a command, and with it the numbers of frames
            self._frames_sent = 0
            self._is_in_packet = not self._is_in_packet
            if self._is_in_packet:
                # servers number packets from the last frame's number on
                self._next_seq_id = data[3]
        return data

    @property
    def _greeting_seconds(self) -> float:
        """Seconds for one answer of the login."""
        return GREETING_SECONDS if self._asked is None else self._asked

    @property
    def _largest_result(self) -> int:
        return LARGEST_RESULT if self._asked is None else LARGEST_LOOK

    def answers_others(self) -> bool:
        """Whether the server answers a new login now, also with an error."""
        limits: dict[str, Any] = dict.fromkeys(("read_timeout", "connect_timeout"), GREETING_SECONDS)
        for _ in range(ASKED):
            try:
                type(self)(**self._again, **limits).close()
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


def raise_error(packet: bytes) -> NoReturn:
    """Raise the server's error that a packet has, for who reads packets without a connection's help. Raises ValueError
    or struct.error if it has none."""
    err.raise_mysql_exception(packet[:LONGEST_ERROR])
    raise ValueError("expected the packet of an error")


class LateError(TimeoutError):
    """The server sends, and has not sent all in time."""


class _Answers(io.RawIOBase):
    """The bytes that a server sends: up to the answer's deadline, or, without one, while the server accepts logins."""

    def __init__(self, connection: WireConnection) -> None:
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
                    return self._received(buffer)
                except TimeoutError:
                    self._connection.seconds_left()
                    raise
            try:
                return self._received(buffer)
            except TimeoutError as exc:
                if not self._connection.answers_others():
                    raise TimeoutError(
                        f"no answer for {self._socket.gettimeout():g} s, and {ASKED} new logins failed: the "
                        "server is frozen, overloaded or unreachable"
                    ) from exc

    def _received(self, buffer: WriteableBuffer) -> int:
        count = int(self._socket.recv_into(buffer))
        self._connection.unread += count
        return count
