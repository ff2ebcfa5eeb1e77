"""Engines that keep no connections: a task is short, and a lane has connections of its own."""

from __future__ import annotations

from sqlalchemy import Engine, NullPool, create_engine

from binlane.connections import Endpoint


def engine_of(endpoint: Endpoint) -> Engine:
    """An engine for the server; nothing is connected yet."""
    return create_engine(endpoint.sqlalchemy_url(), connect_args=endpoint.tls.arguments(), poolclass=NullPool)
