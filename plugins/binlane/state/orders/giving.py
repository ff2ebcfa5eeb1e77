"""The transaction of an operator's order: it locks rows that lanes lock for as long as a block takes, and waits for
them for a limited time, whatever the target's own limit is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from binlane.errors import TargetUnavailableError

WAIT_SECONDS: Final = 50
"""While it waits, the order holds the rows of other lanes, which wait for it."""
_LOCK_WAIT_TIMEOUT: Final = 1205
_OPEN: Final = text(
    "SELECT trx_mysql_thread_id, trx_started FROM information_schema.innodb_trx "
    "WHERE trx_mysql_thread_id <> CONNECTION_ID() ORDER BY trx_started LIMIT 5"
)


@contextmanager
def giving_order(engine: Engine, channel: str) -> Iterator[Connection]:
    """A transaction for an order to the channel. Raises TargetUnavailableError if a session keeps its rows locked."""
    try:
        with engine.begin() as connection:
            connection.execute(text(f"SET SESSION innodb_lock_wait_timeout = {WAIT_SECONDS}"))
            yield connection
    except DBAPIError as exc:
        if exc.orig is None or exc.orig.args[:1] != (_LOCK_WAIT_TIMEOUT,):
            raise
        raise TargetUnavailableError(
            f"channel {channel}: the order is not given, nothing was changed: for {WAIT_SECONDS} s another session has "
            f"kept the channel's rows in the schema binlane locked ({_who(engine)}): a lane in a long block, which "
            "ends by itself, or a transaction that was left open; give the order again"
        ) from exc


def _who(engine: Engine) -> str:
    try:
        with engine.connect() as connection:
            found = connection.execute(_OPEN).all()
    except DBAPIError:
        return "grant PROCESS to the account to see which"
    return "open transactions, oldest first: " + ", ".join(
        f"connection {number} since {since}" for number, since in found
    )
