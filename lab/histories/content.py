"""Everything that a history can leave on a server, row by row, for the comparison of both servers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any, Final

import pymysql

from binlane.model import plural
from lab.histories.world import quoted
from lab.servers import PrivateServer

SYSTEM: Final = ("mysql", "information_schema", "performance_schema", "sys", "binlane")
_NEXT: Final = re.compile(rb" AUTO_INCREMENT=(\d+)")
_NOT_HERE: Final = re.compile(rb" (DISABLE ON (SLAVE|REPLICA)|ENABLE)\b")
_OURS: Final = f"NOT IN ({', '.join(map(repr, SYSTEM))})"
_LISTS: Final = {
    "TABLE": f"SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema {_OURS}",
    "COLUMN": "SELECT table_schema, table_name, column_name, data_type, extra FROM information_schema.columns "
    f"WHERE table_schema {_OURS} ORDER BY 1, 2, ordinal_position",
    "PROCEDURE": "SELECT routine_schema, routine_name FROM information_schema.routines WHERE routine_type = "
    f"'PROCEDURE' AND routine_schema {_OURS}",
    "FUNCTION": "SELECT routine_schema, routine_name FROM information_schema.routines WHERE routine_type = "
    f"'FUNCTION' AND routine_schema {_OURS}",
    "TRIGGER": f"SELECT trigger_schema, trigger_name FROM information_schema.triggers WHERE trigger_schema {_OURS}",
    "EVENT": f"SELECT event_schema, event_name FROM information_schema.events WHERE event_schema {_OURS}",
    "DATABASE": "SELECT schema_name, default_character_set_name, default_collation_name FROM "
    f"information_schema.schemata WHERE schema_name {_OURS}",
}
_NO_DATABASE: Final = 1049
_CREATED: Final = {"TRIGGER": 6}
"""The column of SHOW CREATE with the creation time."""


def content_of(server: PrivateServer) -> dict[str, Any]:
    """By name: definitions (bytes), rows (sorted), and next values of AUTO_INCREMENT (``next of ...``)."""
    arguments = {"autocommit": True, "use_unicode": False, "conv": {}}
    with closing(server.connect(**arguments)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone = '+00:00', sql_mode = ''")
        if server.flavor.value == "mysql":
            cursor.execute("SET SESSION information_schema_stats_expiry = 0")
        return dict(_everything(cursor))


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """The names with differences, and both values, shortened to the differing parts."""
    return [
        f"{name}: {_shown(left.get(name), right.get(name))} | {_shown(right.get(name), left.get(name))}"
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    ]


def is_about_next(difference: str) -> bool:
    """Whether a difference is only one of AUTO_INCREMENT."""
    return difference.startswith("next of ")


def _rows(cursor: Any, statement: str) -> list[tuple[Any, ...]]:
    cursor.execute(statement)
    return list(cursor.fetchall())


def _names(cursor: Any, kind: str) -> list[tuple[str, ...]]:
    return [tuple(bytes(part or b"").decode() for part in row) for row in _rows(cursor, _LISTS[kind])]


def _everything(cursor: Any) -> Iterator[tuple[str, Any]]:
    for name, charset, collation in _names(cursor, "DATABASE"):
        yield f"database {name}", (charset, collation)
    columns: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for database, table, column, kind, extra in _names(cursor, "COLUMN"):
        columns.setdefault((database, table), []).append((column, kind, extra))
    for database, table, kind in _names(cursor, "TABLE"):
        yield from _table(cursor, database, table, kind, columns.get((database, table), []))
    for kind in ("PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"):
        for database, name in _names(cursor, kind):
            (row,) = _rows(cursor, f"SHOW CREATE {kind} {quoted(database)}.{quoted(name)}")
            said = [part for at, part in enumerate(row) if at != _CREATED.get(kind)]
            if kind == "EVENT":
                said = [_NOT_HERE.sub(b"", part) if part else part for part in said]
            yield f"{kind.lower()} {database}.{name}", tuple(said)


def _table(
    cursor: Any, database: str, table: str, kind: str, columns: list[tuple[str, str, str]]
) -> Iterator[tuple[str, Any]]:
    full, name = f"{quoted(database)}.{quoted(table)}", f"{database}.{table}"
    if "VIEW" in kind:
        yield f"view {name}", _view(cursor, full)
        return
    definition = _rows(cursor, f"SHOW CREATE TABLE {full}")[0][1]
    found = _NEXT.search(definition)
    yield f"table {name}", _NEXT.sub(b"", definition, count=1)
    if found is not None:
        yield f"next of {name}", int(found[1])
    # FLOAT prints six digits; as DOUBLE it prints all
    read = [f"{quoted(column)} + 0e0" if of == "float" else quoted(column) for column, of, _ in columns]
    everything = " FOR SYSTEM_TIME ALL" if kind == "SYSTEM VERSIONED" else ""
    if everything and b"`row_start`" not in definition and b"PERIOD FOR SYSTEM_TIME" not in definition:
        read += ["row_start", "row_end"]
    rows = _rows(cursor, f"SELECT {', '.join(read)} FROM {full}{everything}")
    yield f"rows of {name}", sorted(rows, key=repr)


def _view(cursor: Any, full: str) -> Any:
    try:
        return _rows(cursor, f"SHOW CREATE TABLE {full}")[0][1:]
    except pymysql.err.OperationalError as exc:
        # MySQL: a database that it needs is gone
        if exc.args[0] != _NO_DATABASE:
            raise
        return str(exc)


def _shown(one: Any, other: Any) -> str:
    if one is None:
        return "missing"
    if isinstance(one, list) and isinstance(other, list):
        left = [row for row in one if row not in other]
        return f"{plural(len(one), 'row')}, own: {left[:2]}"[:300]
    return repr(one)[:300]
