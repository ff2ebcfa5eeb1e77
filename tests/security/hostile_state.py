"""A channel whose state has rows in every table, and what commands and the board make of hostile values in them."""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pymysql
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from sqlalchemy import Column, Table

from binlane.state.carried.temporary_tables import copy_name
from binlane.state.tables import metadata, migrations
from tests.integration.window.board.test_board import API, EDIT, client_of, half_way
from tests.integration.window.conftest import CHANNEL, Channel
from tests.security.test_recorded_folders import SMALL

Rows = tuple[tuple[Any, ...], ...]
_DEEP: Final = "[" * 50_000
HOSTILE: Final[tuple[Any, ...]] = (
    "../../../../etc/passwd",
    "http://127.0.0.1:9/x",
    "'; DROP DATABASE binlane; -- \\",
    "`\"\\'\u202e\x1b[31m<script>",
    "",
    "NaN",
    _DEEP,
    '{"a": ' * 20_000,
    "[NaN, Infinity]",
    "null",
    "x" * 200_000,
    0,
    -1,
    2**31 - 1,
    2**63 - 1,
    2**64 - 1,
    1e300,
    "0000-00-00 00:00:00",
    "9999-12-31 23:59:59.999999",
    b"\x00\xff\xfe",
)
"""Values that a column is set to, as far as the server takes them. A line more is an attack on every column."""
_TEXTS: Final[Mapping[str, Any]] = {
    "state": {
        "windows": "open", "skips": "requested", "ddl": "asked", "verifications": "clean", "suspects": "drift",
        "repairs": "done", "bootstrap_objects": "planned", "drills": "equal",
    },
    "kind": {"conflicts": "overwritten", "verifications": "full", "bootstrap_objects": "table"},
    "change_kind": "insert",
    "step": "plan",
    "sha256": "a" * 64,
    "digest": "b" * 64,
    "uuid": "00000000-0000-0000-0000-000000000000",
    "copy": copy_name(CHANNEL, 1, 1, "0a0a0a0a"),
    "recent": "[]",
    "row_key": '["1"]',
    "column_names": '["a"]',
    "database_names": '["a"]',
    "xid": "X'61',X'',1",
    "gtid": "",
    "gtid_set": "",
    "segment": "",
    "command": "stop",
    "arguments": '{"values": []}',
    "results": '{"tenants": []}',
    "result": "begun",
    "error": "",
    "note": "",
}  # fmt: skip
"""Of rows that the sweep adds: values of columns that do not take any text."""
COMMANDS: Final = (
    ("status", CHANNEL, "--json"),
    ("conflicts", CHANNEL),
    ("audit", CHANNEL),
    ("drill", CHANNEL, "--list"),
    ("skip", CHANNEL, "--list"),
    ("xa", CHANNEL),
)


@dataclass(frozen=True, slots=True)
class State:
    """The rows of every table, to put them back."""

    rows: Mapping[str, Rows]
    window: str


def state_of(channel: Channel) -> State:
    """A finished window, one whose plan is adopted, and a row in every other table."""
    channel.traffic(10, mix=SMALL)
    channel.run()
    channel.traffic(10, seed=2, mix=SMALL)
    window = half_way(channel)["window"]
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        for table in metadata.sorted_tables:
            if table is not migrations and cursor.execute(f"SELECT 1 FROM {table.fullname} LIMIT 1") == 0:
                row = _row_of(table, window)
                marks = ", ".join(["%s"] * len(row))
                cursor.execute(f"INSERT INTO {table.fullname} ({', '.join(row)}) VALUES ({marks})", (*row.values(),))
        rows = {}
        for table in metadata.sorted_tables:
            cursor.execute(f"SELECT {_columns(table)} FROM {table.fullname}")
            rows[table.name] = tuple(cursor.fetchall())
    return State(rows, window)


def _columns(table: Table) -> str:
    return ", ".join(f"`{column.name}`" for column in table.c)


def _row_of(table: Table, window: str) -> dict[str, Any]:
    return {column.name: _value(table, column, window) for column in table.c if not column.nullable}


def _value(table: Table, column: Column[Any], window: str) -> Any:
    if column.name in ("channel", "window_id"):
        return CHANNEL if column.name == "channel" else window
    if column.name in _TEXTS:
        known = _TEXTS[column.name]
        return known[table.name] if isinstance(known, Mapping) else known
    samples: dict[type, Any] = {int: 1, float: 1.0, str: "x", bytes: b"x", dt.datetime: dt.datetime(2026, 1, 1)}
    return samples[column.type.python_type]


def attacked(channel: Channel, state: State, table: Table) -> list[str]:
    """Set every column of a table to every value that its type takes, in turn; what has ended in a traceback."""
    client, found = client_of(channel), []
    for column in table.c:
        for value in HOSTILE:
            if _fits(column, value) and _set(channel, table, column, value):
                where = f"{table.name}.{column.name} = {value!r:.40}"
                found += [f"{where}: {each}" for each in answered(channel, client, state)]
                _put_back(channel, table, state.rows[table.name])
    return found


def _fits(column: Column[Any], value: Any) -> bool:
    """Whether the server would keep the value as it is, or nearly so."""
    kind = column.type.python_type
    if kind is str:
        return isinstance(value, str)
    if kind is dt.datetime:
        return isinstance(value, str) and value[4:5] == "-"
    return isinstance(value, bytes) if kind is bytes else type(value) in (int, float)


def _set(channel: Channel, table: Table, column: Column[Any], value: Any) -> bool:
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0, sql_mode = ''")
        try:
            return bool(cursor.execute(f"UPDATE IGNORE {table.fullname} SET `{column.name}` = %s", (value,)))
        except pymysql.err.MySQLError:
            return False


def _put_back(channel: Channel, table: Table, rows: Rows) -> None:
    with channel.target.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'")
        cursor.execute(f"DELETE FROM {table.fullname}")
        marks = ", ".join(["%s"] * len(table.c))
        cursor.executemany(f"INSERT INTO {table.fullname} ({_columns(table)}) VALUES ({marks})", rows)


def answered(channel: Channel, client: TestClient, state: State) -> Iterator[str]:
    """What has ended in a traceback, of every command that reads and every page."""
    for command in COMMANDS:
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                channel.cli(*command)
        except Exception as exc:  # that is what the sweep looks for
            yield f"{' '.join(command)}: {_last(exc)}"
        if "Traceback" in said.getvalue():
            yield f"{' '.join(command)}: {said.getvalue()[-300:]}"
    values = {"name": CHANNEL, "window_id": state.window, "lane": 0, "first_seqno": 1, "seqno": 1}
    for route in client.app.routes:  # type: ignore[attr-defined]
        if isinstance(route, APIRoute) and "GET" in route.methods and route.path.startswith("/api/channels"):
            path = route.path.format(**values)
            try:
                code = client.get(path, headers=EDIT).status_code
                if code >= 500 and code != 503:
                    yield f"{path}: {code}"
            except Exception as exc:
                yield f"{path.removeprefix(API)}: {_last(exc)}"


def _last(exc: Exception) -> str:
    [*_, frame] = traceback.extract_tb(exc.__traceback__)
    return f"{type(exc).__name__}: {exc!s:.80} at {frame.filename.rpartition('/')[2]}:{frame.lineno}"
