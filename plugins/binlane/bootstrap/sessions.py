"""Connections of a first copy: raw PyMySQL connections, whose values are the bytes that the server sends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from pymysql import err
from pymysql.constants import CR

from binlane.connections import Endpoint
from binlane.driver.connection import Connection
from binlane.driver.wire import raise_error
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor
from binlane.servers.streamed_rows import streamed_rows
from binlane.sessions.pins import SessionKind
from binlane.sessions.server_proof import ServerProof
from binlane.source.server import translated

_RECEIVED: Final = 256 << 10


@dataclass(frozen=True, slots=True)
class Session:
    """One connection, in autocommit mode."""

    connection: Any
    flavor: Flavor
    source: str | None
    """The source's name, for its errors (SourceError and subclasses); None: the target, whose driver errors stay."""

    def execute(self, statement: str | bytes | memoryview) -> int:
        """Run one statement; returns the number of rows that it changed. Raises StateSchemaError as
        ``driver.SessionCursor``."""
        with self._named():
            if not isinstance(statement, str):
                return int(self.connection.query(statement))
            # a cursor holds a table of the state, and notes that it is written
            with contextlib.closing(self.connection.cursor()) as cursor:
                return int(cursor.execute(statement))

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of a query, with values as bytes."""
        with self._named(), contextlib.closing(self.connection.cursor()) as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def each_row(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a query one by one, to be read to the end, with values as bytes."""
        with self._named():
            yield from streamed_rows(self.connection, query)

    def named_rows(self, statement: str) -> list[dict[str, bytes | None]]:
        """All rows of a query as values by column."""
        with self._named(), contextlib.closing(self.connection.cursor()) as cursor:
            cursor.execute(statement)
            names = [column[0] if isinstance(column[0], str) else column[0].decode() for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def texts(self, statement: str) -> list[tuple[str, ...]]:
        """All rows of a query, with values as text; NULL as an empty string."""
        return [tuple("" if one is None else one.decode() for one in row) for row in self.rows(statement)]

    def begin_stream(self, query: str) -> None:
        """Run a query whose packets of rows the caller reads with ``receive_into``, up to the end of the result set."""
        with self._named():
            self.connection.query(query, unbuffered=True)
            self.connection._sock.settimeout(self.connection._read_timeout)

    def receive_into(self, buffer: memoryview) -> int:
        """Wait for bytes of the stream; their number, at least 1."""
        with self._named():
            try:
                # not readinto1, which waits for more although it has bytes in its buffer
                received = self.connection._rfile.read1(min(len(buffer), _RECEIVED))
            except OSError as exc:
                raise self._lost(exc) from exc
            if not received:
                raise self._lost("the server closed it")
            buffer[: len(received)] = received
            return len(received)

    def end_stream(self, error: bytes | None = None) -> None:
        """The stream was read to its end: the session can run statements again. Raises the server's ``error``."""
        self.connection._result.unbuffered_active = False
        if error is not None:
            with self._named():
                raise_error(error)

    def _lost(self, why: object) -> err.OperationalError:
        self.connection._force_close()
        return err.OperationalError(CR.CR_SERVER_LOST, f"lost the connection to the server during a query ({why})")

    @property
    def is_open(self) -> bool:
        """Whether the session can still run statements: no error has ended its connection."""
        return bool(self.connection.open)

    def holds(self, lease: str) -> bool:
        """Whether the session still has the lock that it has taken. Raises driver errors if its connection is lost."""
        [(held,)] = self.texts(f"SELECT IS_USED_LOCK('{lease}') = CONNECTION_ID()")
        return held == "1"

    @property
    def warnings(self) -> int:
        """Number of warnings of the last statement."""
        return int(self.connection._result.warning_count)

    def prove(self) -> None:
        """Ask the server once more whether it is the one that the endpoint names. Raises SourceIdentityError."""
        with self._named():
            self.connection.prove()

    def own_proof(self) -> ServerProof:
        """What proves that a connection is answered by this session's server."""
        with self._named():
            found: ServerProof = self.connection.own_proof()
        return found

    def prove_as(self, proof: ServerProof) -> None:
        """Ask the server whether it is the one of ``proof``. Raises SourceIdentityError."""
        self.connection.proof = proof
        self.prove()

    def close(self) -> None:
        """Close the connection. Raises nothing."""
        with contextlib.suppress(Exception):
            self.connection.close()

    def _named(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.source is None else translated(self.source)


def answering(endpoint: Endpoint) -> Endpoint:
    """The endpoint, of which every later connection must be answered by the server that answers now: a name with
    several servers behind it gives rows of one and the place in the log of another. Raises SourceError."""
    with contextlib.closing(read_session(endpoint)) as session:
        return replace(endpoint, proof=session.own_proof())


def read_session(endpoint: Endpoint, *, compresses: bool = False) -> Session:
    """A session on the source: values as stored, no conversion, no time limit. ``compresses``: as ``Connection``'s."""
    return _session(endpoint, str(endpoint), SessionKind.READ, compresses)


def definition_session(endpoint: Endpoint) -> Session:
    """A session on the target that reads definitions in the bytes of their client's character set, as stored."""
    return _session(endpoint, None, SessionKind.READ, compresses=False)


def write_session(endpoint: Endpoint, *, compresses: bool = False) -> Session:
    """A session on the target, in which neither foreign keys nor constraints refuse the source's rows.
    ``compresses``: as ``Connection``'s."""
    return _session(endpoint, None, SessionKind.WRITE, compresses)


def _session(endpoint: Endpoint, source: str | None, kind: SessionKind, compresses: bool) -> Session:
    # no decoders, no unicode: bytes come as bytes
    arguments = {**endpoint.pymysql_arguments(), "compresses": compresses, "kind": kind}
    with contextlib.nullcontext() if source is None else translated(source):
        connection = Connection(**arguments, autocommit=True, use_unicode=False, conv={})
    return Session(connection, connection.flavor, source)
