"""Engines that keep no connections, or within a step one a server, which goes from use to use.

A step's reads and writes of the state follow each other, so one connection does; a lane's session, its polls and its
pulse are used side by side and so have one each, as what holds a lease is apart from any pool (``LaneSession.open``).
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from typing import Any, Final, TypeVar

from pymysql.constants import CLIENT
from sqlalchemy import Engine, NullPool, create_engine, event

from binlane.connections import Endpoint
from binlane.driver import Connection

_Answer = TypeVar("_Answer")

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 35_000))
"""Seconds, seconds, probes, milliseconds: a black-holed peer is given up after about 35 s."""
_KEPT: Final[ContextVar[dict[Endpoint, Engine] | None]] = ContextVar("kept engines", default=None)


@contextlib.contextmanager
def kept_connections() -> Iterator[None]:
    """Within it ``engine_of`` gives this thread one engine a server, which keeps a connection for its next use.

    What was begun on it is rolled back between uses, and one that the server has ended meanwhile is made anew. At the
    end all are closed.
    """
    engines: dict[Endpoint, Engine] = {}
    token = _KEPT.set(engines)
    try:
        yield
    finally:
        _KEPT.reset(token)
        for engine in engines.values():
            engine.dispose()


def engine_of(endpoint: Endpoint, *, timeout: int | None = None) -> Engine:
    """An engine for the server; nothing is connected yet. ``timeout``: seconds that connecting and each answer take."""
    kept = _KEPT.get()
    if kept is None or timeout is not None:
        return _engine(endpoint, timeout, poolclass=NullPool)
    if endpoint not in kept:
        kept[endpoint] = _engine(endpoint, None, pool_size=1, max_overflow=-1, pool_pre_ping=True)
    return kept[endpoint]


@contextlib.contextmanager
def in_background(ask: Callable[[], _Answer]) -> Iterator[Callable[[], _Answer]]:
    """Call ``ask`` in a thread while the block runs; the yielded function waits for its answer, or raises its error.

    So source and target are asked at the same time: each takes seconds for the definitions of ten thousand tables. The
    thread uses the step's kept connections, as the block does: the two must ask different servers.
    """
    with ThreadPoolExecutor(1, "binlane-background") as pool:
        yield pool.submit(copy_context().run, ask).result


def _engine(endpoint: Endpoint, timeout: int | None, **pool: Any) -> Engine:
    """Connections say that they can serve files, or LOAD DATA LOCAL would be refused; the driver itself, without
    ``local_infile``, serves none."""
    limits = {} if timeout is None else dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), timeout)
    # given here it replaces SQLAlchemy's own flag, without which rows that match but do not change are not counted
    flags = CLIENT.FOUND_ROWS | CLIENT.LOCAL_FILES
    arguments = {**endpoint.tls.arguments(), **limits, "client_flag": flags}
    engine = create_engine(endpoint.sqlalchemy_url(), connect_args=arguments, **pool)

    @event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, _positional: list[Any], named: dict[str, Any]) -> Connection:
        return Connection(**named)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _record: object) -> None:
        keep_alive(connection)

    return engine


def keep_alive(connection: Any) -> None:
    """Let the kernel find out that a PyMySQL connection's peer is gone, also while an answer is waited for."""
    peer: socket.socket = connection._sock
    if peer.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with contextlib.suppress(OSError):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            option = getattr(socket, name, None)
            if option is not None:
                peer.setsockopt(socket.IPPROTO_TCP, option, value)
