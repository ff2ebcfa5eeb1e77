"""SQLAlchemy engines without a pool, or, within a step, with one kept connection a server.

A step reads and writes the state sequentially, so one connection is enough. A lane's session, its polls and its
heartbeat run concurrently and have a connection each; the connection of a lease is never pooled (``LaneSession.open``).
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import field
from typing import Any, Final, TypeVar

from pymysql.constants import CLIENT
from sqlalchemy import URL, Engine, NullPool, create_engine, event, make_url

from binlane.connections import Endpoint
from binlane.driver.connection import Connection
from binlane.lazy_dataclass import dataclass
from binlane.sessions.pins import SessionKind

_Answer = TypeVar("_Answer")


@dataclass(slots=True)
class _ContextEngines:
    """The engines of one context."""

    make: Callable[[Endpoint], Engine]
    engines: dict[Endpoint, Engine] = field(default_factory=dict)


_KEPT: Final[ContextVar[_ContextEngines | None]] = ContextVar("kept engines", default=None)


@contextlib.contextmanager
def kept_connections() -> Iterator[None]:
    """Within the context ``engine_of`` gives this thread one engine a server, which keeps its connection between uses.

    Open transactions are rolled back between uses, and a connection that the server has closed is replaced. All
    connections are closed at the end of the context, and with them their sessions; the next context of the thread has
    the same engines, which know the servers and the compiled statements.
    """
    is_nested = _KEPT.get() is not None
    kept = _ContextEngines(_keeping if is_nested else functools.partial(_known, os.getpid(), threading.get_ident()))
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)
        for engine in kept.engines.values():
            engine.dispose()


def engine_of(endpoint: Endpoint, *, timeout: int | None = None) -> Engine:
    """An engine for the server; does not connect yet. ``timeout``: seconds for connecting and for each answer, of
    sessions that only read."""
    kept = _KEPT.get()
    if timeout is not None:
        return _looked_at(endpoint, timeout)
    if kept is None:
        return _engine(endpoint, None, poolclass=NullPool)
    if endpoint not in kept.engines:
        kept.engines[endpoint] = kept.make(endpoint)
    return kept.engines[endpoint]


def _keeping(endpoint: Endpoint) -> Engine:
    return _engine(endpoint, None, pool_size=1, max_overflow=-1, pool_pre_ping=True)


@functools.lru_cache(maxsize=64)
def _known(_process: int, _thread: int, endpoint: Endpoint) -> Engine:
    """Its connections end with their context, and no other thread or nested context has it: sessions are not shared."""
    return _keeping(endpoint)


@functools.lru_cache(maxsize=256)
def _looked_at(endpoint: Endpoint, timeout: int) -> Engine:
    """Whoever looks, looks again, at many targets: a kept engine knows the server and the compiled statements, which
    cost more than the queries. It keeps no connection."""
    return _engine(endpoint, timeout, poolclass=NullPool)


@contextlib.contextmanager
def in_background(ask: Callable[[], _Answer]) -> Iterator[Callable[[], _Answer]]:
    """Call ``ask`` in a thread while the with block runs; the yielded function returns its result or raises its error.

    So source and target are queried at the same time: each needs seconds for the definitions of ten thousand tables.
    The thread shares the step's kept connections with the with block, so the two must query different servers.
    """
    with ThreadPoolExecutor(1, "binlane-background") as pool:
        yield pool.submit(copy_context().run, ask).result


def _engine(endpoint: Endpoint, timeout: int | None, **pool: Any) -> Engine:
    """Connections announce LOCAL_FILES, or the server would refuse LOAD DATA LOCAL; the driver itself, without
    ``local_infile``, sends no file."""
    limits: dict[str, Any] = {}
    if timeout is not None:
        limits = dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), timeout)
        limits["kind"] = SessionKind.LOOK
    # client_flag replaces SQLAlchemy's value, so FOUND_ROWS (matched rows count, changed or not) is repeated here
    flags = CLIENT.FOUND_ROWS | CLIENT.LOCAL_FILES
    arguments = {**endpoint.driver_arguments(), **limits, "client_flag": flags}
    return engine_at(endpoint.sqlalchemy_url(), connect_args=arguments, **pool)


def engine_at(url: str | URL, *, driver: Callable[..., Connection] = Connection, **named: Any) -> Engine:
    """An engine whose connections are ``driver.Connection``, or what ``driver`` makes of its arguments. ``named``: as
    for ``create_engine``."""
    # the dialect's module is long to import, and this one is imported by programs that connect to nothing
    from binlane.servers.dialect import COMPILED, NAME

    engine = create_engine(make_url(url).set(drivername=NAME), execution_options={"compiled_cache": COMPILED}, **named)
    # what has ended a connection's use is raised; the pool prints a traceback of the ROLLBACK behind it
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)

    # of several listeners only the first one's connection is used: a test that injects faults gives a ``driver``
    @event.listens_for(engine, "do_connect")
    def connect(_dialect: object, _record: object, _positional: list[Any], named: dict[str, Any]) -> Connection:
        return driver(**named)

    return engine
