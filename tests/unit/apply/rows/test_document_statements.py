"""What stands before an UPDATE of a JSON document is as long as the UPDATE."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.apply.rows.sql import SqlRows
from binlane.apply.rows.statements import RowStatement, StatementBuilder
from binlane.binlog.row_values import Change
from binlane.binlog.rows import RowsKind
from binlane.binlog.types.columns import Column
from binlane.binlog.types.json_binary import JsonDocument
from binlane.binlog.types.type_codes import ColumnType
from binlane.errors import ApplyError
from binlane.model import Flavor, TableKey
from binlane.schema.binding import BoundTable

COLUMNS: Final = (
    Column(1, "id", ColumnType.LONG, 0, nullable=False, data_type="int"),
    Column(2, "j", ColumnType.JSON, 4, nullable=True, charset="utf8mb4", data_type="json"),
)
LENGTH: Final = 100_000


def test_a_document_stands_once_in_each_statement_of_its_update() -> None:
    table = BoundTable(TableKey("app", "t"), COLUMNS, frozenset({0, 1}), (0,), frozenset())
    change = Change(RowsKind.UPDATE, (1, JsonDocument("y")), (1, JsonDocument("x" * LENGTH)))
    [statement] = StatementBuilder(table, Flavor.MYSQL).statements(RowsKind.UPDATE, [change])
    assert len(statement.first) == 2
    for sql in (statement.sql, *statement.first):
        assert 2 * LENGTH < len(sql) < 2 * LENGTH + 1_000


def test_a_statement_in_front_of_an_update_that_is_too_long_is_named() -> None:
    class Session:
        max_allowed_packet = 5_000

    rows = SqlRows.__new__(SqlRows)
    rows.session = Session()  # type: ignore[assignment]
    statement = RowStatement(TableKey("app", "t"), "UPDATE t", RowsKind.UPDATE, 1, first=("x" * 5_000,))
    with pytest.raises(ApplyError, match=r"^app\.t: a row needs a statement of 5,000 bytes, .* 5,000: raise it"):
        rows.execute(statement, 0)
