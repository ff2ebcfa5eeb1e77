"""A window over a table of every column type: inserted, updated from each value to the next, deleted; then equal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.values.types import OPAQUE, SCHEMA_TYPES, TYPES, UTF8, Type
from tests.integration.window.conftest import fresh_channel, run_on

SESSION: Final = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"

MEMBERS: Final = (
    "(SELECT GROUP_CONCAT(JSON_TYPE(v)) FROM"
    " JSON_TABLE(JSON_EXTRACT({0}, '$[*]', '$.*', '$.*[*]'), '$[*]' COLUMNS (v JSON PATH '$')) AS members)"
)
"""The types of the values in a MySQL document, which texts do not tell: a TIMESTAMP, a DATETIME; 5, an unsigned 5."""


def is_nullable(one: Type) -> bool:
    """Without NULL a TIMESTAMP may have none, as the servers have it by their old rule."""
    return "TIMESTAMP" not in one.definition or " NULL" in one.definition


def definition(number: int, one: Type) -> str:
    return f"CREATE TABLE tenant_1.t{number} (id INT PRIMARY KEY, n INT, c {one.definition}, d {one.definition})"


def changes(number: int, one: Type) -> Iterator[str]:
    """Every value inserted, changed into the next one and the last one, taken to NULL and back, and some deleted."""
    table, values = f"tenant_1.t{number}", (*one.values, *(("NULL",) if is_nullable(one) else ()))
    last = values[-1]
    rows = [f"({at}, 0, {value}, {last})" for at, value in enumerate((*values, *values))]
    yield f"INSERT INTO {table} VALUES {', '.join(rows)}"
    for at in range(len(values)):
        yield f"UPDATE {table} SET c = {values[(at + 1) % len(values)]} WHERE id = {at}"
    yield f"UPDATE {table} SET d = {values[0]}, n = n + 1 WHERE id % 2 = 0"
    yield f"DELETE FROM {table} WHERE id IN (0, {len(values)})"


def contents(server: PrivateServer, number: int, one: Type) -> list[tuple[Any, ...]]:
    """The rows, each value as its bytes."""
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(SESSION)
        members: list[tuple[Any, ...]] = []
        if one.values == OPAQUE:
            cursor.execute(f"SELECT id, {', '.join(map(MEMBERS.format, 'cd'))} FROM tenant_1.t{number} ORDER BY id")
            members = list(cursor.fetchall())
        # characters as the bytes that are stored; numbers and times as text: HEX() of a number is each family's own
        shown = [f"HEX({column})" if one.select == UTF8 else one.select.format(column) for column in ("c", "d")]
        cursor.execute(f"SELECT id, n, {', '.join(shown)} FROM tenant_1.t{number} ORDER BY id")
        return [*cursor.fetchall(), *members]


CASES: Final = [
    pytest.param(way, writer, reduce, marks=[] if way == ("mariadb", "mariadb") else requires_mysql)
    for way, ways_to_write in (
        (("mariadb", "mariadb"), (("binlog", "off"), ("sql", "block"))),
        (("mysql", "mysql"), (("binlog", "off"), ("sql", "block"))),
        (("mariadb", "mysql"), (("binlog", "block"), ("sql", "off"))),
        (("mysql", "mariadb"), (("binlog", "block"), ("sql", "off"))),
    )
    for writer, reduce in ways_to_write
]


def types_of(source: PrivateServer, target: PrivateServer) -> list[Type]:
    """Those that both servers have. Texts of JSON differ between families: test_families.py compares values."""
    families = {source.flavor, target.flavor}
    known = [one for one in (*TYPES, *SCHEMA_TYPES) if families <= one.servers]
    return known if len(families) == 1 else [one for one in known if one.definition != "JSON"]


@pytest.mark.parametrize(("way", "writer", "reduce"), CASES)
def test_every_type_arrives_through_a_window_as_it_was(
    way: tuple[str, str],
    writer: str,
    reduce: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> None:
    source, target = (
        request.getfixturevalue(f"{family}_{role}") for family, role in zip(way, ("source", "target"), strict=True)
    )
    channel = fresh_channel(source, target, tmp_path, clean_servers)
    channel.write_channel(f'writer = "{writer}"\n', f'reduce = "{reduce}"\n')
    types = types_of(source, target)
    # made beforehand on both: what a table of the window's own DDL is, is another test's
    made = ("CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci", SESSION)
    for server in (source, target):
        run_on(server, *made, *(definition(number, one) for number, one in enumerate(types)), log=False)
    run_on(source, SESSION, *(change for number, one in enumerate(types) for change in changes(number, one)))

    assert channel.run() is not None

    if source.flavor is target.flavor:
        channel.assert_equal()
    for number, one in enumerate(types):
        assert contents(target, number, one) == contents(source, number, one), one.definition
        assert len(contents(target, number, one)) > 0
