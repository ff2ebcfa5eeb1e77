"""A row without a key is found by exactly its values, where MySQL takes other values for equal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from binlane.apply.rows.statements import StatementBuilder
from binlane.binlog.row_values import Change
from binlane.binlog.rows import RowsKind
from binlane.binlog.types.columns import Column
from binlane.binlog.types.json_binary import JsonDocument, JsonObject, Opaque
from binlane.binlog.types.readers import Value
from binlane.binlog.types.type_codes import ColumnType
from binlane.model import Flavor, TableKey
from binlane.schema.binding import BoundTable
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.emptied import empty_target

pytestmark = requires_mysql
COLUMNS: Final = (
    Column(1, "j", ColumnType.JSON, 4, True, charset="utf8mb4", data_type="json"),
    Column(2, "f", ColumnType.FLOAT, 4, True, data_type="float"),
    Column(3, "d", ColumnType.DOUBLE, 8, True, data_type="double"),
)
ROWS: Final[tuple[tuple[str, tuple[Value, Value, Value]], ...]] = (
    ("'1', 1, 1", (JsonDocument(1), 1.0, 1.0)),
    ("'1.0', 1, 1", (JsonDocument(1.0), 1.0, 1.0)),
    ("""'{"p": 2.5}', 1, 1""", (JsonDocument(JsonObject((("p", 2.5),))), 1.0, 1.0)),
    (
        "JSON_OBJECT('p', 2.50), 1, 1",
        (JsonDocument(JsonObject((("p", Opaque(ColumnType.NEWDECIMAL, b"\x03\x02\x82\x32")),))), 1.0, 1.0),
    ),
    ("NULL, 0, 0", (None, 0.0, 0.0)),
    ("NULL, -0e0, 0", (None, -0.0, 0.0)),
    ("NULL, 0, -0e0", (None, 0.0, -0.0)),
    ("NULL, NULL, -0e0", (None, None, -0.0)),
)
"""As the source writes them, and as the log has them."""


@pytest.fixture
def server(mysql_target: PrivateServer) -> Iterator[PrivateServer]:
    empty_target(mysql_target)
    mysql_target.query("CREATE DATABASE own")
    mysql_target.query("CREATE TABLE own.t (id INT, j JSON, f FLOAT, d DOUBLE)")
    yield mysql_target
    mysql_target.query("DROP DATABASE own")


def test_a_row_is_deleted_by_its_values_and_no_row_that_equals_it(server: PrivateServer) -> None:
    table = BoundTable(TableKey("own", "t"), COLUMNS, frozenset({0, 1, 2}), (), frozenset())
    builder = StatementBuilder(table, Flavor.MYSQL)
    for number, (_, image) in enumerate(ROWS):
        server.query("TRUNCATE TABLE own.t")
        server.query(f"INSERT INTO own.t VALUES {', '.join(f'({n}, {row})' for n, (row, _) in enumerate(ROWS))}")
        [statement] = builder.statements(RowsKind.DELETE, [Change(RowsKind.DELETE, image, None)])
        server.query(statement.sql.removesuffix(" LIMIT 1"))
        rest = {row for (row,) in server.query("SELECT id FROM own.t")}
        assert {*range(len(ROWS))} - rest == {number}, statement.sql
