"""Which tables' rows are written by statements: of a source of the other family those that BINLOG cannot bring over."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.binlog.types.type_codes import ColumnType
from binlane.model import Flavor, RowCounts, TableKey
from binlane.plan.window_plan import TableCounts
from binlane.precheck.account.row_writer import written_by_sql
from binlane.schema.model import Column, Schema, Table
from tests.unit.binlog.row_events import EVERY_COLUMN, table_map_body
from tests.unit.binlog.row_events import Column as LoggedColumn
from tests.unit.precheck.situations import PLAN

PLAIN, PACKED, DOCUMENTS = (TableKey("shop", name) for name in ("plain", "packed", "documents"))
ALL = frozenset({PLAIN, PACKED, DOCUMENTS})


def body(column: LoggedColumn) -> str:
    return table_map_body(0, [column])[6:].hex()


@pytest.mark.parametrize(
    ("target", "writer", "expected"),
    [
        (Flavor.MYSQL, "binlog", {PACKED, DOCUMENTS}),
        (Flavor.MARIADB, "binlog", set()),
        (Flavor.MYSQL, "sql", ALL),
        (Flavor.MARIADB, "sql", ALL),
    ],
)
def test_json_and_compressed_columns_go_to_the_other_family_by_statements(
    target: Flavor, writer: str, expected: set[TableKey]
) -> None:
    count = RowCounts(inserts=1)
    packed = replace(EVERY_COLUMN["blob"], code=ColumnType.BLOB_COMPRESSED)
    plan = replace(
        PLAN,
        flavor=Flavor.MARIADB,
        tables={key: TableCounts(read=count, written=count) for key in ALL},
        table_maps={PLAIN: {body(EVERY_COLUMN["blob"]): 1}, PACKED: {body(packed): 2}},
    )
    documents = Table(DOCUMENTS, "InnoDB", (Column("j", 1, "json"),))
    assert written_by_sql(plan, Schema(target, "", tables={DOCUMENTS: documents}), writer) == expected
