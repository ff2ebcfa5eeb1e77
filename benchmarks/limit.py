"""The fastest way that a server itself has: LOAD DATA of the rows that are left of a log after folding.

What the source has and the target does not have yet is read from both before the clock starts, and written to one file
a table, in the order of its primary key. Then as many sessions as lanes load them, each table in one statement.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pymysql.converters import encoders
from pymysql.cursors import SSCursor

if TYPE_CHECKING:
    from lab.servers import PrivateServer

_BINARY_TYPES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit"})
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\0": "\\0"})
_NULL: Final = "\\N"


@dataclass(frozen=True, slots=True)
class TableChange:
    """The net rows of one table, as two files of LOAD DATA's default form."""

    database: str
    table: str
    columns: tuple[str, ...]
    binary: frozenset[str]
    """Columns whose values stand in the files as hexadecimal digits."""
    keys: tuple[str, ...]
    """The columns of the primary key."""
    rows_file: Path
    """Rows that are new or have other values."""
    rows: int
    gone_file: Path
    """Primary keys of rows that are gone."""
    gone: int

    @property
    def name(self) -> str:
        """Quoted."""
        return f"`{self.database}`.`{self.table}`"


def net_changes(source: PrivateServer, target: PrivateServer, folder: Path) -> list[TableChange]:
    """What the target lacks of the source, table by table, those with the most rows first; unchanged tables are left
    out. Every table has a primary key, and both servers have the same tables."""
    tables = source.query(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' AND "
        "table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema') ORDER BY 1, 2"
    )
    columns: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for database, table, *column in source.query(
        "SELECT table_schema, table_name, column_name, data_type, column_key FROM information_schema.columns "
        "ORDER BY table_schema, table_name, ordinal_position"
    ):
        columns.setdefault((database, table), []).append((column[0], column[1], column[2]))
    changes = []
    with contextlib.closing(_reading(source)) as ours, contextlib.closing(_reading(target)) as theirs:
        for number, (database, table) in enumerate(tables):
            change = _change(ours, theirs, database, table, columns[database, table], folder / str(number))
            if change.rows or change.gone:
                changes.append(change)
    return sorted(changes, key=lambda change: -(change.rows + change.gone))


def load(target: PrivateServer, changes: Sequence[TableChange], sessions: int) -> float:
    """Bring the changes onto the target by so many sessions, which are open before the clock starts; the seconds."""
    waiting: Iterator[TableChange] = iter(changes)
    connections = [_writing(target) for _ in range(sessions)]
    try:
        with ThreadPoolExecutor(sessions) as pool:
            began = time.monotonic()
            list(pool.map(lambda connection: _load_all(connection, waiting), connections))
            return time.monotonic() - began
    finally:
        for connection in connections:
            connection.close()


def _load_all(connection: Any, waiting: Iterator[TableChange]) -> None:
    # next() of a list's iterator is one step of the interpreter: no table is given to two sessions
    with connection.cursor() as cursor:
        for change in waiting:
            for statement in statements(change):
                cursor.execute(statement)


def statements(change: TableChange) -> Iterator[str]:
    """What loads one table: rows that are gone first, then REPLACE, which also settles values of unique keys that were
    handed over, since every row that gives one up is in the file, too."""
    if change.gone:
        keys = ", ".join(f"`{key}`" for key in change.keys)
        yield f"CREATE TEMPORARY TABLE `{change.database}`.`_gone` AS SELECT {keys} FROM {change.name} LIMIT 0"
        yield _load(change.gone_file, f"`{change.database}`.`_gone`", change.keys, change.binary, "")
        yield f"DELETE t FROM {change.name} t JOIN `{change.database}`.`_gone` USING ({keys})"
        yield f"DROP TEMPORARY TABLE `{change.database}`.`_gone`"
    if change.rows:
        yield _load(change.rows_file, change.name, change.columns, change.binary, "REPLACE ")


def _load(file: Path, table: str, columns: Sequence[str], binary: frozenset[str], how: str) -> str:
    targets = ", ".join(f"@`{name}`" if name in binary else f"`{name}`" for name in columns)
    values = ", ".join(f"`{name}` = UNHEX(@`{name}`)" for name in columns if name in binary)
    return (
        f"LOAD DATA LOCAL INFILE '{file}' {how}INTO TABLE {table} CHARACTER SET utf8mb4 ({targets})"
        f"{f' SET {values}' if values else ''}"
    )


def _change(
    ours: Any, theirs: Any, database: str, table: str, described: list[tuple[str, str, str]], place: Path
) -> TableChange:
    columns = tuple(name for name, _, _ in described)
    binary = frozenset(name for name, kind, _ in described if kind in _BINARY_TYPES)
    keys = tuple(name for name, _, key in described if key == "PRI")
    at = [columns.index(key) for key in keys]
    read = ", ".join(f"HEX(`{name}`)" if name in binary else f"`{name}`" for name in columns)
    order = ", ".join(f"`{key}`" for key in keys)
    query = f"SELECT {read} FROM `{database}`.`{table}` ORDER BY {order}"
    before = {_key(row, at): row for row in _rows(theirs, query)}
    rows_file, gone_file = place.with_suffix(".rows"), place.with_suffix(".gone")
    rows = 0
    with rows_file.open("w", encoding="utf-8", newline="") as file:
        for row in _rows(ours, query):
            if before.pop(_key(row, at), None) != row:
                file.write(_line(row))
                rows += 1
    with gone_file.open("w", encoding="utf-8", newline="") as file:
        file.writelines(map(_line, before))
    return TableChange(database, table, columns, binary, keys, rows_file, rows, gone_file, len(before))


def _key(row: tuple[str | None, ...], at: list[int]) -> tuple[str | None, ...]:
    return tuple(row[place] for place in at)


def _line(values: tuple[str | None, ...]) -> str:
    return "\t".join(_NULL if value is None else value.translate(_ESCAPES) for value in values) + "\n"


def _rows(connection: Any, query: str) -> Iterator[tuple[str | None, ...]]:
    with connection.cursor(SSCursor) as cursor:
        cursor.execute(query)
        yield from cursor


def _reading(server: PrivateServer) -> Any:
    # without decoders every value stays the text that the server has written
    return server.connect(conv=dict(encoders))


def _writing(server: PrivateServer) -> Any:
    return server.connect(autocommit=True, local_infile=True)
