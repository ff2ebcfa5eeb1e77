"""Sessions that hold a lock for long: their servers end them soon when their machine is lost.

A machine that loses its power or its network closes no connection. Its server keeps the session, with all locks, until
``wait_timeout`` has passed or its kernel gives the peer up, which takes two hours and more. So a session that holds a
lock has a ``wait_timeout`` of a minute or two, and where it may have nothing to do for longer, a thread asks its server
to keep it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from binlane.bootstrap.sessions import Session
from binlane.driver.kept import Keeper
from binlane.errors import WindowBusyError
from binlane.state.leases import held_by

ALONE_SECONDS: Final = 120
"""Seconds without a packet of its client after which the server ends a kept session."""
STREAMING_SECONDS: Final = 4 * 3600
"""The same of a session that sends rows. Nobody can ask its server to keep it while a result is not read to its end,
and a limit on the source's load may hold the reading for hours."""
_PAUSE: Final = 20.0


def end_without_client(session: Session, seconds: int) -> None:
    """Have the server end the session when its client has said nothing for so long between two statements, or in the
    middle of one."""
    session.execute(f"SET SESSION wait_timeout = {seconds}, net_read_timeout = {seconds}")


def take_lease(session: Session, lease: str, seconds: int, busy: str) -> None:
    """Take a lock of this name on the session, waiting for so long. Raises WindowBusyError, with ``busy`` and the
    connection that has it."""
    [(taken,)] = session.texts(f"SELECT GET_LOCK('{lease}', {seconds})")
    if taken != "1":
        [(holder,)] = session.texts(f"SELECT IS_USED_LOCK('{lease}')")
        raise WindowBusyError(f"{busy}: {held_by(int(holder) if holder else None)}")


@contextlib.contextmanager
def kept_open(*sessions: Session, seconds: int | None = None) -> Iterator[None]:
    """Keep sessions of one server for as long as this process runs, and not ``seconds`` (None: ``ALONE_SECONDS``)
    longer. If one is lost, its next statement says so."""
    for session in sessions:
        end_without_client(session, ALONE_SECONDS if seconds is None else seconds)
    keeper = Keeper([session.connection for session in sessions], _PAUSE)
    try:
        yield
    finally:
        keeper.end()
