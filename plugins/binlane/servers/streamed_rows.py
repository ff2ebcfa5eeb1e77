"""Rows of a query that are not kept: a whole table fits no memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pymysql import err
from pymysql.cursors import SSCursor


def streamed_rows(connection: Any, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, one by one as the server sends them, to be read to the end before the connection is asked
    anything else. Raises the driver's errors."""
    cursor = connection.cursor(SSCursor)
    try:
        cursor.execute(query)
        yield from cursor
    except err.MySQLError:
        if cursor._result is not None:
            # a lost connection has nothing left to read, which closing the cursor would try
            cursor._result.unbuffered_active = False
        raise
    finally:
        cursor.close()
