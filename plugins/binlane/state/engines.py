"""Engines that keep no connections: a task is short, and a lane has connections of its own."""

from __future__ import annotations

from pymysql.constants import CLIENT
from sqlalchemy import Engine, NullPool, create_engine

from binlane.connections import Endpoint


def engine_of(endpoint: Endpoint, *, timeout: int | None = None) -> Engine:
    """An engine for the server; nothing is connected yet. ``timeout``: seconds that connecting and each answer take.

    Connections say that they can serve files, or LOAD DATA LOCAL would be refused; the driver itself, without
    ``local_infile``, serves none.
    """
    limits = {} if timeout is None else dict.fromkeys(("connect_timeout", "read_timeout", "write_timeout"), timeout)
    # given here it replaces SQLAlchemy's own flag, without which rows that match but do not change are not counted
    flags = CLIENT.FOUND_ROWS | CLIENT.LOCAL_FILES
    arguments = {**endpoint.tls.arguments(), **limits, "client_flag": flags}
    return create_engine(endpoint.sqlalchemy_url(), connect_args=arguments, poolclass=NullPool)
