"""The list of copies of the source's temporary tables, in rows that commit together with the lane's position.

Each copy has a table of its own in the schema ``binlane``, ``copies_<channel>_<seqno>_<number>_<attempt>``. Another
connection creates the table, then the lane's transaction fills it. That connection is not the lane's and is killed by
nobody, so an attempt drops no table but its own: what a process does that was paused and wakes up cannot hit the copy
that its successor has committed. A copy without a row in ``binlane.temporary`` is left over from a killed attempt, or
out of date.
"""

from __future__ import annotations

import re
import secrets
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.state.json_columns import text_of, value_of
from binlane.state.stored_values import unexpected
from binlane.state.tables import UTC_NOW, temporary

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

_COPIES: Final = "copies_"
_ATTEMPT: Final = re.compile(r"[0-9a-f]{8}")
REHEARSAL: Final = f"{_COPIES}rehearsal"
"""A table of a first copy's rehearsal (``bootstrap.rehearsal``), which is none of binlane's own either."""


@dataclass(frozen=True, slots=True)
class Copy:
    """A temporary table as of a seqno."""

    number: int
    seqno: int
    thread_id: int
    table: TableKey
    definition: str
    columns: tuple[str, ...]
    name: str
    """Name of the table that holds the rows."""
    rows: int


def new_attempt() -> str:
    """What distinguishes an attempt's copies from those of all others."""
    return secrets.token_hex(4)


def copy_name(channel: str, seqno: int, number: int, attempt: str) -> str:
    """The name of a copy's table: at most 64 characters, whatever the channel's name."""
    return f"{_prefix(channel)}{seqno}_{number}_{attempt}"


def is_copy(table: str) -> bool:
    """Whether a table name of the schema ``binlane`` is that of a copy."""
    return table.startswith(_COPIES)


def _prefix(channel: str) -> str:
    return f"{_COPIES}{zlib.crc32(channel.encode()):08x}_"


def read_copies(cursor: Cursor, channel: str) -> tuple[Copy, ...]:
    """The channel's copies, in the order of their creation."""
    cursor.execute(
        "SELECT number, seqno, thread_id, database_name, table_name, definition, column_names, copy, copied_rows "
        "FROM binlane.temporary WHERE channel = %s ORDER BY number",
        (channel,),
    )
    return tuple(_copy(channel, *row) for row in cursor.fetchall())


def _copy(
    channel: str, number: int, seqno: int, thread: int, database: str, table: str, definition: str, columns: str,
    name: str, rows: int,
) -> Copy:  # fmt: skip
    """Raises StateSchemaError, PlanError. The name is a part of statements that drop tables: it must be the copy's."""
    attempt = name.rpartition("_")[2]
    expected = copy_name(channel, int(seqno), int(number), attempt)
    if name != expected or _ATTEMPT.fullmatch(attempt) is None:
        raise unexpected(
            f"binlane.{temporary.c.copy}", f"{expected.removesuffix(attempt)} and eight hexadecimal digits", name
        )
    names = value_of(tuple[str, ...], columns, temporary.c.column_names)
    return Copy(int(number), int(seqno), int(thread), TableKey(database, table), definition, names, name, int(rows))


def forget_copies(cursor: Cursor, channel: str) -> None:
    """Delete the channel's rows, in the transaction that writes the new ones, if any."""
    cursor.execute("DELETE FROM binlane.temporary WHERE channel = %s", (channel,))


def add_copy(cursor: Cursor, channel: str, copy: Copy) -> None:
    """Record a copy, in the transaction that fills it."""
    cursor.execute(
        "INSERT INTO binlane.temporary (channel, number, seqno, thread_id, database_name, table_name, definition, "
        f"column_names, copy, copied_rows, at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, {UTC_NOW})",
        (
            *(channel, copy.number, copy.seqno, copy.thread_id, copy.table.database, copy.table.table),
            *(copy.definition, text_of(copy.columns), copy.name, copy.rows),
        ),
    )


def stale_copies(cursor: Cursor, channel: str, seqno: int) -> Iterator[str]:
    """Tables of copies up to ``seqno`` that have no row."""
    kept = {copy.name for copy in read_copies(cursor, channel)}
    prefix = _prefix(channel)
    cursor.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'binlane' AND table_name LIKE %s",
        (prefix.replace("_", "\\_") + "%",),
    )
    for (name,) in cursor.fetchall():
        begun = name.removeprefix(prefix).partition("_")[0]
        if name not in kept and begun.isdecimal() and int(begun) <= seqno:
            yield str(name)


def make_copy(cursor: Cursor, name: str, types: Sequence[str]) -> None:
    """Create the empty table of a copy, on another connection than the lane's, since DDL commits. ``types``: of its
    columns."""
    columns = "".join(f", `c{at}` {kind} NULL" for at, kind in enumerate(types))
    cursor.execute(f"CREATE TABLE {_place(name)} (n BIGINT AUTO_INCREMENT PRIMARY KEY{columns}) ENGINE=InnoDB")


def fill_copy(cursor: Cursor, name: str, table: str, columns: Sequence[str]) -> int:
    """Fill a copy with a table's rows, in a transaction, to whose end the copy stays a table; the number of rows.
    ``table`` and ``columns``: quoted names. Raises the driver's error of an index hint for a view."""
    cursor.execute(f"SELECT 1 FROM {_place(name)} USE INDEX () LIMIT 0 FOR UPDATE")
    return cursor.execute(f"INSERT INTO {_place(name)} ({_copied(columns)}) SELECT {', '.join(columns)} FROM {table}")


def read_copy(cursor: Cursor, name: str, table: str, columns: Sequence[str]) -> int:
    """Fill a table with the rows of its copy, in their order; the number of rows. Arguments and errors as for
    ``fill_copy``."""
    return cursor.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {_copied(columns)} FROM {_place(name)} "
        "FORCE INDEX (PRIMARY) ORDER BY n"
    )


def drop_copy(cursor: Cursor, name: str) -> None:
    """Drop the table that holds a copy's rows, if there is one."""
    cursor.execute(f"DROP TABLE IF EXISTS {_place(name)}")


def _place(name: str) -> str:
    """A copy's table in a statement: of a stale one the name is any that somebody has given a table of the schema."""
    return f"binlane.`{name.replace('`', '``')}`"


def _copied(columns: Sequence[str]) -> str:
    return ", ".join(f"`c{at}`" for at in range(len(columns)))
