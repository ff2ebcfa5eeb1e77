"""Row values, decoded from real logs, against what the servers themselves SELECT."""

from __future__ import annotations

import contextlib
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.row_values import ABSENT, Change, RowDecoder
from binlane.binlog.rows import ROWS_KINDS, RowsEvent
from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.transactions import transactions
from binlane.binlog.types.charsets import decode_text
from binlane.binlog.types.columns import Column
from binlane.binlog.types.decimals import spell_decimal
from binlane.binlog.types.json_binary import DiffKind, JsonDiff, JsonDiffs
from binlane.binlog.types.literals import spell
from binlane.binlog.types.readers import Value
from binlane.binlog.wire import EventType, RawEvent
from binlane.errors import BinlogError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.integration.values.types import BYTES, FLOAT, SCHEMA_TYPES, TYPES, Type

SESSION = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"


@pytest.fixture(params=list(Flavor))
def server(request: pytest.FixtureRequest, clean_databases: Callable[[PrivateServer], None]) -> Iterator[PrivateServer]:
    found: PrivateServer = request.getfixturevalue(f"{request.param}_source")
    clean_databases(found)
    before = found.query("SELECT @@GLOBAL.binlog_row_metadata")[0][0]
    found.query("SET GLOBAL binlog_row_metadata = FULL")
    yield found
    found.query(f"SET GLOBAL binlog_row_metadata = {before}")


def logged(server: PrivateServer, *statements: str) -> bytes:
    """The log of the statements alone, run in a new database ``v``."""
    server.query("FLUSH BINARY LOGS")
    name = str(server.query("SHOW BINARY LOGS")[-1][0])
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in ("CREATE DATABASE v CHARACTER SET utf8mb4", "USE v", SESSION, *statements):
            cursor.execute(statement)
    server.query("FLUSH BINARY LOGS")
    return (server.datadir / name).read_bytes()


@dataclass(frozen=True)
class Rows:
    """One ROWS event and its table."""

    map_event: RawEvent
    event: RawEvent
    table: TableMap

    def changes(self, columns: Sequence[Column], *, text: bool = True) -> list[Change]:
        rows = RowsEvent.parse(self.event.header.type_code, self.event.body, "log:4: ")
        return list(RowDecoder(self.table, columns, text=text).changes(rows, "log:4: "))


def row_events(data: bytes, flavor: Flavor) -> Iterator[Rows]:
    maps: dict[int, tuple[RawEvent, TableMap]] = {}
    for transaction in transactions(LogReader(data, "log")):
        for event in transaction.events:
            if event.header.type_code == EventType.TABLE_MAP:
                table = TableMap.parse(event.body, "", flavor)
                maps[table.table_id] = event, table
            elif event.header.type_code in ROWS_KINDS:
                map_event, table = maps[int.from_bytes(event.body[:6], "little")]
                yield Rows(map_event, event, table)


def tables(types: Sequence[Type]) -> Iterator[str]:
    for number, one in enumerate(types):
        yield f"CREATE TABLE t{number} (id INT PRIMARY KEY AUTO_INCREMENT, c {one.definition}) ENGINE=InnoDB"
        yield f"INSERT INTO t{number} (c) VALUES {', '.join(f'({value})' for value in one.values)}"
        if " NULL" in one.definition or "TIMESTAMP" not in one.definition:
            yield f"INSERT INTO t{number} (c) VALUES (NULL)"


def selected(server: PrivateServer, number: int, one: Type) -> list[object]:
    with contextlib.closing(server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute(SESSION)
        cursor.execute(f"SELECT {one.select.format('c')} FROM v.t{number} ORDER BY id")
        return [row[0] for row in cursor.fetchall()]


def as_selected(column: Column, value: Value, one: Type) -> object:
    """The value in the form in which the server was asked for it."""
    if value is None or one.select == FLOAT:
        return value
    if one.select == BYTES:
        assert isinstance(value, bytes)
        return value.hex().upper()
    if isinstance(value, Decimal):
        return spell_decimal(value)
    if isinstance(value, int):
        return value if "+ 0" in one.select else spell(column, value)
    return value


def described(columns: Sequence[Column], one: Type) -> list[Column]:
    """With what only a schema tells."""
    kind = one.definition.lower()
    return [replace(column, data_type=kind) if column.name == "c" else column for column in columns]


def check(server: PrivateServer, types: Sequence[Type], data: bytes) -> None:
    found: dict[int, list[object]] = {number: [] for number in range(len(types))}
    for rows in row_events(data, server.flavor):
        number = int(rows.table.table[1:])
        columns = described(columns_of(rows.table, server.flavor), types[number])
        for change in rows.changes(columns):
            assert change.after is not None
            value = change.after[1]
            assert value is not ABSENT
            found[number].append(as_selected(columns[1], value, types[number]))
    for number, one in enumerate(types):
        assert found[number] == selected(server, number, one), one.definition


def test_every_type_has_the_value_that_the_server_selects(server: PrivateServer) -> None:
    types = [one for one in (*TYPES, *SCHEMA_TYPES) if server.flavor in one.servers]
    check(server, types, logged(server, *tables(types)))


def test_types_of_mariadb_5_3_are_read_with_the_digits_that_a_schema_tells(
    mariadb_source: PrivateServer, clean_databases: Callable[[PrivateServer], None]
) -> None:
    clean_databases(mariadb_source)
    times = "'838:59:59'", "'-838:59:59'", "'-00:00:00.000001'", "'12:34:56.123456'", "'-12:34:56.123456'", "'0:0:0'"
    dates = "'0000-00-00'", "'9999-12-31 23:59:59.999999'", "'2024-02-29 01:02:03.040506'"
    stamps = "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07.999999'", "'0000-00-00 00:00:00'"
    for fsp in range(7):
        columns = f"a TIME({fsp}), b DATETIME({fsp}), c TIMESTAMP({fsp}) NULL"
        rows = [f"({a}, {b}, {c})" for a, b, c in zip(times, (*dates, *dates), (*stamps, *stamps), strict=True)]
        mariadb_source.query("SET GLOBAL mysql56_temporal_format = OFF")
        try:
            data = logged(mariadb_source, f"CREATE TABLE t ({columns})", f"INSERT INTO t VALUES {', '.join(rows)}")
        finally:
            mariadb_source.query("SET GLOBAL mysql56_temporal_format = ON")
        with contextlib.closing(mariadb_source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute(SESSION)
            cursor.execute("SELECT CAST(a AS CHAR), CAST(b AS CHAR), CAST(c AS CHAR) FROM v.t")
            expected = list(cursor.fetchall())
        found = [
            change.after
            for rows_event in row_events(data, Flavor.MARIADB)
            for change in rows_event.changes(
                [replace(column, fsp=fsp) for column in columns_of(rows_event.table, Flavor.MARIADB)]
            )
        ]
        assert found == expected, fsp
        mariadb_source.query("DROP DATABASE v")


def test_null_and_absent_are_told_apart(server: PrivateServer) -> None:
    data = logged(
        server,
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b VARCHAR(9), c INT DEFAULT 7)",
        "SET SESSION binlog_row_image = MINIMAL",
        "INSERT INTO t (id, a) VALUES (1, NULL)",
        "UPDATE t SET b = NULL, c = 8",
        "DELETE FROM t",
    )
    changes = [
        c for rows in row_events(data, server.flavor) for c in rows.changes(columns_of(rows.table, server.flavor))
    ]
    insert, update, delete = changes
    assert insert.before is None
    assert insert.after is not None
    assert insert.after[:2] == (1, None)
    assert update.before == delete.before == (1, ABSENT, ABSENT, ABSENT)
    assert update.after is not None
    assert update.after[0] is update.after[1] is ABSENT
    assert update.after[3] == 8
    assert delete.after is None


def test_a_log_without_metadata_gives_what_it_says_and_nothing_else(server: PrivateServer) -> None:
    server.query("SET GLOBAL binlog_row_metadata = MINIMAL")
    if server.flavor is Flavor.MARIADB:
        server.query("SET GLOBAL binlog_row_metadata = NO_LOG")
    data = logged(
        server,
        "CREATE TABLE t (a INT UNSIGNED, e ENUM('x', 'y'), s SET('x', 'y', 'z'), v VARCHAR(9), b VARBINARY(9))",
        "INSERT INTO t VALUES (4294967295, 'y', 'x,z', 'é', X'ff00')",
    )
    (rows,) = row_events(data, server.flavor)
    columns = columns_of(rows.table, server.flavor)
    (change,) = rows.changes(columns)
    known = server.flavor is Flavor.MYSQL
    assert change.after == (4294967295 if known else -1, 2, 5, "é", b"\xff\x00")
    assert spell(columns[0], change.after[0]) == ("4294967295" if known else "-1 (4294967295)")
    assert [column.label for column in columns] == ["@1", "@2", "@3", "@4", "@5"]


def test_partial_updates_of_json_are_their_diffs(
    mysql_source: PrivateServer, clean_databases: Callable[[PrivateServer], None]
) -> None:
    clean_databases(mysql_source)
    data = logged(
        mysql_source,
        "SET SESSION binlog_row_value_options = PARTIAL_JSON, binlog_row_image = MINIMAL",
        "CREATE TABLE t (id INT PRIMARY KEY, a JSON, b JSON)",
        """INSERT INTO t VALUES (1, '{"k": [1, 2, 3], "long": "xxxxxxxxxxxxxxxxxxx"}', '{"m": 1, "n": 22222222}')""",
        "UPDATE t SET b = JSON_REPLACE(b, '$.m', CAST('2.50' AS DECIMAL(5,2)))",
        "UPDATE t SET a = JSON_REMOVE(JSON_SET(a, '$.k[1]', 'new'), '$.k[0]'), b = NULL",
    )
    found = [
        change
        for rows in row_events(data, Flavor.MYSQL)
        if rows.event.header.type_code == EventType.PARTIAL_UPDATE_ROWS
        for change in rows.changes(columns_of(rows.table, Flavor.MYSQL))
    ]
    first, second = (change.after for change in found)
    assert first == (ABSENT, ABSENT, JsonDiffs((JsonDiff(DiffKind.REPLACE, "$.m", "2.50"),)))
    removed = JsonDiff(DiffKind.REPLACE, "$.k[1]", '"new"'), JsonDiff(DiffKind.REMOVE, "$.k[0]", None)
    assert second == (ABSENT, JsonDiffs(removed), None)


AROUND = (
    "a VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_german1_ci, b ENUM('x') CHARACTER SET latin2, c {},"
    " d TEXT CHARACTER SET cp1251, e SET('y') CHARACTER SET greek, f CHAR(3) CHARACTER SET hebrew, g INT UNSIGNED,"
    " h ENUM('z') CHARACTER SET cp850",
    # the servers log a default and what differs from it where that is shorter
    "a TEXT, b VARCHAR(9), c {}, d TEXT, e CHAR(9), f TINYTEXT CHARACTER SET latin1, g VARCHAR(9), h BIGINT UNSIGNED,"
    " i ENUM('x'), j ENUM('y'), k SET('z'), l ENUM('y') CHARACTER SET latin1, m LONGTEXT, n VARCHAR(300)",
)
"""Columns around one of each type: each list of the optional metadata leaves out the columns that it is not about."""


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_a_type_moves_nothing_that_the_log_says_of_the_columns_behind_it(server: PrivateServer, metadata: str) -> None:
    server.query(f"SET GLOBAL binlog_row_metadata = {metadata}")
    mine = (one.definition for one in (*TYPES, *SCHEMA_TYPES) if server.flavor in one.servers)
    # one length of each
    types = list({re.sub(r"\(.*\)", "", kind): kind for kind in mine}.values())
    statements = []
    for number, (kind, around) in enumerate((kind, around) for kind in types for around in AROUND):
        statements += [f"CREATE TABLE t{number} ({around.format(kind)})", f"INSERT INTO t{number} (a) VALUES ('x')"]
    data = logged(server, "SET SESSION sql_mode = 'ALLOW_INVALID_DATES'", *statements)
    places = {
        Flavor.MYSQL: "SELECT id, collation_name FROM information_schema.collations",
        Flavor.MARIADB: "SELECT id, full_collation_name FROM information_schema.collation_character_set_applicability",
    }
    names = dict(server.query(places[server.flavor]))
    found = defaultdict(list)
    for table, *column in server.query(
        "SELECT table_name, column_type, collation_name FROM information_schema.columns WHERE table_schema = 'v' "
        "ORDER BY table_name, ordinal_position"
    ):
        found[table].append(column)
    checked = 0
    for rows in row_events(data, server.flavor):
        expected = found[rows.table.table]
        collations, unsigned = rows.table.optional.collations, rows.table.optional.unsigned
        assert collations is not None
        assert unsigned is not None
        kinds = [str(kind) for kind, _ in expected]
        said = [None if number in (None, 63) else names[number] for number in collations]
        # those of ENUM and SET are in the full metadata alone
        is_logged = [metadata == "FULL" or not kind.startswith(("enum", "set")) for kind in kinds]
        assert said == [name if is_in else None for (_, name), is_in in zip(expected, is_logged, strict=True)], kinds
        words = ("unsigned", "year", "zerofill")
        assert [bool(sign) for sign in unsigned] == [any(word in kind for word in words) for kind in kinds], kinds
        checked += 1
    assert checked == len(types) * len(AROUND)


EIGHT_BIT = (
    *(
        "armscii8",
        "ascii",
        "cp1250",
        "cp1251",
        "cp1256",
        "cp1257",
        "cp850",
        "cp852",
        "cp866",
        "dec8",
        "geostd8",
        "greek",
    ),
    *(
        "hebrew",
        "hp8",
        "keybcs2",
        "koi8r",
        "koi8u",
        "latin1",
        "latin2",
        "latin5",
        "latin7",
        "macce",
        "macroman",
        "swe7",
    ),
    "tis620",
)
WIDE = ("big5", "cp932", "eucjpms", "euckr", "gb2312", "gbk", "sjis", "ujis")


def converted(server: PrivateServer, charset: str, values: Sequence[bytes]) -> list[str]:
    cells = (f"HEX(CONVERT(CONVERT(X'{value.hex()}' USING {charset}) USING utf8mb4))" for value in values)
    return [bytes.fromhex(str(cell or "")).decode("utf-8") for cell in server.query(f"SELECT {', '.join(cells)}")[0]]


@pytest.mark.parametrize("charset", [*EIGHT_BIT, *WIDE])
def test_text_is_read_as_the_server_converts_it_or_not_at_all(server: PrivateServer, charset: str) -> None:
    values = [bytes([byte]) for byte in range(0x80 if charset in WIDE else 0x100)]
    if charset in WIDE:
        values += [
            bytes([lead, trail]) for lead in range(0x81, 0xFF, 5) for trail in (0x40, 0x5C, 0x7E, 0xA1, 0xC1, 0xFE)
        ]
        values += [bytes.fromhex(pair) for pair in ("815f", "a1c0", "a1c1", "a1dd", "a15a", "a1c3", "8160")]
    read = [decode_text(value, charset) for value in values]
    expected = converted(server, charset, values)
    wrong = [(v.hex(), r, e) for v, r, e in zip(values, read, expected, strict=True) if r is not None and r != e]
    assert not wrong
    assert sum(text is not None for text in read) > 30


def test_damage_of_any_byte_is_an_error_of_the_project_or_a_value(server: PrivateServer) -> None:
    types = [one for one in TYPES if server.flavor in one.servers and len(one.definition) < 200]
    short = [replace(one, values=tuple(value for value in one.values if "REPEAT" not in value)) for one in types]
    columns = ", ".join(f"c{number} {one.definition}" for number, one in enumerate(short) if one.values)
    values = ", ".join(one.values[-1] for one in short if one.values)
    data = logged(server, f"CREATE TABLE t ({columns}) ENGINE=InnoDB", f"INSERT INTO t VALUES ({values})")
    (rows,) = row_events(data, server.flavor)
    good = rows.changes(columns_of(rows.table, server.flavor))
    assert len(good) == 1
    for body, is_map in ((bytes(rows.map_event.body), True), (bytes(rows.event.body), False)):
        for at in range(len(body)):
            damaged = bytearray(body)
            damaged[at] ^= (0x01, 0x10, 0x80, 0xFF)[at % 4]
            with contextlib.suppress(BinlogError):
                table = TableMap.parse(memoryview(damaged), "", server.flavor) if is_map else rows.table
                image = rows.event if is_map else rows.event._replace(body=memoryview(damaged))
                replace(rows, table=table, event=image).changes(columns_of(table, server.flavor))


def test_an_error_names_file_offset_table_and_column(server: PrivateServer) -> None:
    data = logged(server, "CREATE TABLE t (id INT, d DATETIME)", "INSERT INTO t VALUES (1, '2024-01-02 03:04:05')")
    (rows,) = row_events(data, server.flavor)
    body = bytearray(rows.event.body)
    body[-5:] = b"\xff\xff\xff\x00\x00"
    damaged = replace(rows, event=rows.event._replace(body=memoryview(body)))
    with pytest.raises(BinlogError, match=r"^log:4: WRITE_ROWS_V\d: v\.t, column d: a date of year \d+"):
        damaged.changes(columns_of(rows.table, server.flavor))
