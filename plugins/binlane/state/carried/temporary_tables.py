"""Which copies of the source's temporary tables there are: rows that commit with the lane's position.

A copy's rows are in a table of the schema ``binlane`` of its own, ``copies_<channel>_<seqno>_<number>``. It is made
before it is filled, by another connection, and filled by the lane's transaction; so one that no row of
``binlane.temporary`` names is left over from an attempt that was rolled back, or out of date.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from binlane.model import TableKey

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

_COPIES: Final = "copies_"


@dataclass(frozen=True, slots=True)
class Copy:
    """A temporary table as it was behind a seqno."""

    number: int
    seqno: int
    thread_id: int
    table: TableKey
    definition: str
    columns: tuple[str, ...]
    name: str
    """Of the table that holds its rows."""
    rows: int


def copy_name(channel: str, seqno: int, number: int) -> str:
    """Fits into 64 characters whatever the channel's name."""
    return f"{_prefix(channel)}{seqno}_{number}"


def is_copy(table: str) -> bool:
    """Whether a table of the schema ``binlane`` is named as a copy's."""
    return table.startswith(_COPIES)


def _prefix(channel: str) -> str:
    return f"{_COPIES}{zlib.crc32(channel.encode()):08x}_"


def read_copies(cursor: Cursor, channel: str) -> tuple[Copy, ...]:
    """The channel's copies, in the order they were made."""
    cursor.execute(
        "SELECT number, seqno, thread_id, database_name, table_name, definition, column_names, copy, copied_rows "
        "FROM binlane.temporary WHERE channel = %s ORDER BY number",
        (channel,),
    )
    return tuple(
        Copy(int(number), int(seqno), int(thread), TableKey(database, table), definition, tuple(json.loads(columns)),
             name, int(rows))
        for number, seqno, thread, database, table, definition, columns, name, rows in cursor.fetchall()
    )  # fmt: skip


def forget_copies(cursor: Cursor, channel: str) -> None:
    """In the transaction that makes others, or none, take their place."""
    cursor.execute("DELETE FROM binlane.temporary WHERE channel = %s", (channel,))


def add_copy(cursor: Cursor, channel: str, copy: Copy) -> None:
    """In the transaction that fills it."""
    cursor.execute(
        "INSERT INTO binlane.temporary (channel, number, seqno, thread_id, database_name, table_name, definition, "
        "column_names, copy, copied_rows, at) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, UTC_TIMESTAMP(6))",
        (
            *(channel, copy.number, copy.seqno, copy.thread_id, copy.table.database, copy.table.table),
            *(copy.definition, json.dumps(copy.columns), copy.name, copy.rows),
        ),
    )


def stale_copies(cursor: Cursor, channel: str, seqno: int) -> Iterator[str]:
    """Tables of copies made up to ``seqno`` that no row names."""
    kept = {copy.name for copy in read_copies(cursor, channel)}
    prefix = _prefix(channel)
    cursor.execute(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = 'binlane' AND table_name LIKE %s",
        (prefix.replace("_", "\\_") + "%",),
    )
    for (name,) in cursor.fetchall():
        if name not in kept and int(name.removeprefix(prefix).partition("_")[0]) <= seqno:
            yield str(name)


def make_copy(cursor: Cursor, name: str, types: Sequence[str]) -> None:
    """An empty table for the rows of a copy, beside the lane's transaction: it commits. ``types``: of its columns."""
    columns = "".join(f", `c{at}` {kind} NULL" for at, kind in enumerate(types))
    drop_copy(cursor, name)
    cursor.execute(f"CREATE TABLE binlane.`{name}` (n BIGINT AUTO_INCREMENT PRIMARY KEY{columns}) ENGINE=InnoDB")


def fill_copy(cursor: Cursor, name: str, table: str, columns: Sequence[str]) -> int:
    """Copy a table's rows, and how many they are; ``table`` and its ``columns`` are quoted names."""
    return cursor.execute(f"INSERT INTO binlane.`{name}` ({_copied(columns)}) SELECT {', '.join(columns)} FROM {table}")


def read_copy(cursor: Cursor, name: str, table: str, columns: Sequence[str]) -> int:
    """Give a table the rows of its copy, in their order, and how many they are; see ``fill_copy``."""
    return cursor.execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {_copied(columns)} FROM binlane.`{name}` ORDER BY n"
    )


def drop_copy(cursor: Cursor, name: str) -> None:
    """Drop the table that holds a copy's rows, if there is one."""
    cursor.execute(f"DROP TABLE IF EXISTS binlane.`{name}`")


def _copied(columns: Sequence[str]) -> str:
    return ", ".join(f"`c{at}`" for at in range(len(columns)))
