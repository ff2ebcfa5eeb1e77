"""The transaction of a repair on the target: it holds the channel's row, so no window writes or can begin to."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from sqlalchemy import Connection, Engine

from binlane.bootstrap.kept_sessions import kept_open
from binlane.bootstrap.sessions import Session
from binlane.errors import BinlaneError, WindowBusyError
from binlane.model import Flavor
from binlane.sessions.pins import SessionKind
from binlane.state.channels import Channel, read_channel
from binlane.state.records.journal import read_status, standing
from binlane.state.windows import read_open_window


def lock_at_watermark(
    connection: Connection,
    engine: Engine,
    name: str,
    watermark: tuple[str, int],
    refusal: Callable[[Channel], BinlaneError],
) -> None:
    """Lock the channel's row, as the opening of a window does, and the row of a window that has no plan yet, as the
    storing of its plan does: it has written nothing, and writes nothing before the transaction ends.

    ``watermark``: the channel's UUID and the seqno at which the target has to be; another one raises ``refusal`` of the
    channel that is there. Raises WindowBusyError if a window has begun.
    """
    channel = read_channel(connection, name, for_update=True)
    window = read_open_window(connection, name, for_update=True)
    if window is not None and window.plan_digest is not None:
        raise WindowBusyError(
            f"channel {name}: {standing(read_status(engine, name), window)}; a repair cannot write while a window is "
            "open: when the window is finished, run the same command again"
        )
    if (channel.uuid, channel.watermark.seqno) != watermark:
        raise refusal(channel)


@contextlib.contextmanager
def writing(connection: Connection, flavor: Flavor) -> Iterator[Session]:
    """The transaction's connection as a session that stores the source's values unchanged; foreign keys and checks do
    not refuse them, and do not cascade. The transaction ends soon with this machine."""
    driver: Any = connection.connection.driver_connection
    driver.use_as(SessionKind.WRITE)
    session = Session(driver, flavor, None)
    with kept_open(session):
        yield session


@contextlib.contextmanager
def bytes_as_sent(session: Session) -> Iterator[None]:
    """Within the context the session returns values as bytes; the state's statements need the driver's conversions."""
    connection = session.connection
    usual = connection.use_unicode, connection.decoders
    connection.use_unicode, connection.decoders = False, {}
    try:
        yield
    finally:
        connection.use_unicode, connection.decoders = usual
