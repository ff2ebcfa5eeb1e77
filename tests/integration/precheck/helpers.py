"""What the tests of the precheck do with a server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import sqlalchemy

from binlane.precheck.situation.facts import Target
from binlane.schema.model import Schema
from binlane.servers.catalog import read_schema
from binlane.servers.engines import engine_at
from lab.servers import PrivateServer


@contextlib.contextmanager
def connected(server: PrivateServer, user: str | None = None) -> Iterator[sqlalchemy.Connection]:
    """A connection of the all-powerful user, or of another with the same password."""
    url = sqlalchemy.make_url(server.url())
    known = {"get_server_public_key": True}
    engine = engine_at(url if user is None else url.set(username=user), connect_args=known)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


@contextlib.contextmanager
def asked(server: PrivateServer, user: str | None = None) -> Iterator[Target]:
    """A server as a target that is checked with the account of the all-powerful user, or of another."""
    with connected(server, user) as connection, Target(connection.engine) as target:
        yield target


def schema_of(server: PrivateServer) -> Schema:
    """Everything on the server, as its all-powerful user sees it."""
    with connected(server) as connection:
        return read_schema(connection)


def run(server: PrivateServer, *statements: str) -> None:
    """Run statements one after another."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@contextlib.contextmanager
def setting(server: PrivateServer, name: str, value: str) -> Iterator[None]:
    """A global variable of the server, until the block ends."""
    ((before,),) = server.query(f"SELECT @@GLOBAL.{name}")
    run(server, f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        own = "NULL" if before is None else before if str(before).isdigit() else repr(before)
        run(server, f"SET GLOBAL {name} = {own}")
