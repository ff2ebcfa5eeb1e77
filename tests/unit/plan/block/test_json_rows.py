"""JSON documents that need more than JSON text where statements write rows: known before anything is written."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

import pytest

from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.types.json_binary import Json, JsonObject, Opaque, Unsigned, json_text, parse_diffs
from binlane.binlog.types.json_sql import expression, needs_json_table
from binlane.binlog.types.literals import literal
from binlane.binlog.types.type_codes import ColumnType
from binlane.binlog.wire import EventType
from binlane.model import Flavor, TableKey
from binlane.plan.block.row_size import RowMeter
from binlane.plan.row_accounting import Tally
from binlane.sql.requirements import JSON_TABLE, UNSPELLED
from tests.unit.binlog.row_events import EVERY_COLUMN, image, rows_body, table_map_body
from tests.unit.precheck.situations import PLAN, said, situation, target_of

_KEY: Final = TableKey("db", "t")
_COLUMNS: Final = (EVERY_COLUMN["long"], EVERY_COLUMN["json"])


_LOGGED: Final = TableMap.parse(memoryview(table_map_body(1, _COLUMNS)), flavor=Flavor.MYSQL)


def opaque(kind: int, data: bytes) -> bytes:
    """A document that is one value without a JSON type."""
    return bytes([15, kind, len(data)]) + data


def timestamp(year: int) -> bytes:
    """The first second of a year."""
    return opaque(ColumnType.TIMESTAMP, struct.pack("<q", ((year * 13 + 1) << 5 | 1) << 41))


def tallied(document: bytes, *, before: bytes | None = None, target: Flavor = Flavor.MYSQL) -> Tally:
    """What a plan knows of an insert (or of an update) of the document."""
    kind = EventType.WRITE_ROWS_V2 if before is None else EventType.UPDATE_ROWS_V2
    documents = [document] if before is None else [before, document]
    rows = b"".join(image(_COLUMNS, (True, True), (struct.pack("<i", 7), each)) for each in documents)
    tally = Tally(meter=RowMeter(Flavor.MYSQL, target, 1 << 24))
    for seqno in (6, 5):
        tally.add_rows(_LOGGED, kind, memoryview(rows_body(kind, 1, 2, [b"\3"] * len(documents), rows)), seqno)
    return tally


_BLOB: Final = opaque(ColumnType.BLOB, b"x")
_OLD: Final = opaque(ColumnType.VAR_STRING, b"x")


@pytest.mark.parametrize(
    ("document", "asked"),
    [
        pytest.param(_BLOB, {JSON_TABLE: ""}, id="blob"),
        pytest.param(opaque(ColumnType.BIT, b"\1"), {JSON_TABLE: ""}, id="bit"),
        pytest.param(opaque(ColumnType.STRING, b"x"), {JSON_TABLE: ""}, id="binary"),
        pytest.param(timestamp(2020), {JSON_TABLE: ""}, id="timestamp"),
        pytest.param(timestamp(1969), {UNSPELLED: "a TIMESTAMP that is none between"}, id="timestamp-elsewhere"),
        pytest.param(_OLD, {UNSPELLED: "a value of type 253"}, id="bytes-of-5.7"),
        pytest.param(opaque(ColumnType.BIT, bytes(9)), {UNSPELLED: "a value of type 16"}, id="too-many-bits"),
        pytest.param(opaque(ColumnType.DATE, b"1"), {UNSPELLED: "a date of 1 bytes"}, id="damaged"),
        pytest.param(b"\x0f", {UNSPELLED: "bytes at byte"}, id="cut"),
        pytest.param(opaque(ColumnType.VARCHAR, b"x"), {}, id="varbinary"),
        pytest.param(opaque(ColumnType.DATE, bytes(8)), {}, id="date"),
        pytest.param(b"\x0c\x02\x0fx", {}, id="text"),
    ],
)
def test_a_plan_knows_what_a_document_asks_for(document: bytes, asked: dict[str, str]) -> None:
    found = tallied(document).requirements
    assert {requirement.feature for requirement in found} == set(asked)
    for requirement, seqno in found.items():
        assert seqno == 5
        assert requirement.subject.startswith("db.t.")
        assert asked[requirement.feature] in requirement.detail


def test_images_before_a_change_count_as_well() -> None:
    assert {one.feature for one in tallied(b"\x04\0", before=_BLOB).requirements} == {JSON_TABLE}


def test_mariadb_takes_the_text_of_every_document() -> None:
    assert tallied(_OLD, target=Flavor.MARIADB).requirements == {}


@pytest.mark.parametrize(
    ("document", "version", "expected"),
    [
        (_OLD, "9.7.0", "a value of type 253"),
        (_BLOB, "8.0.3", "8.0.3: it came with 8.0.4"),
        (_BLOB, "8.0.4", None),
    ],
)
def test_the_precheck_names_what_statements_cannot_write(document: bytes, version: str, expected: str | None) -> None:
    plan = replace(PLAN, requirements=tallied(document).requirements)
    found = said(situation(target_of(version=version), plan, by_sql={_KEY}), "features")
    if expected is None:
        assert found == []
    else:
        [one] = found
        assert one.startswith("db.t.")
        assert "in the rows of seqno 5" in one
        assert expected in one
        assert 'apply.writer = "binlog"' in one
    assert said(situation(target_of(version="5.7.0"), plan, by_sql={TableKey("db", "t2")}), "features") == []


def test_differences_of_documents_keep_the_types_of_their_values() -> None:
    blob = b"\0\3$.a" + bytes([len(_BLOB)]) + _BLOB
    [column] = (one for one in columns_of(_LOGGED, Flavor.MYSQL) if one.type_code == ColumnType.JSON)
    column = replace(column, name="j")
    exact = literal(column, parse_diffs(blob, text=False))
    assert exact == f"JSON_REPLACE(`j`, '$.a', {expression(Opaque(ColumnType.BLOB, b'x'))})"
    assert literal(column, parse_diffs(blob)) == "JSON_REPLACE(`j`, '$.a', CAST('\"base64:type252:eA==\"' AS JSON))"


def test_documents_are_text_where_text_is_the_same_value() -> None:
    document: Json = JsonObject((("a", [1, -5, Unsigned(1 << 32), 1.0, "x", None, True]),))
    assert expression(document) == f"CAST(_utf8mb4 X'{json_text(document).encode().hex()}' AS JSON)"
    assert expression([Unsigned(5)]) == "JSON_ARRAY(CAST(5 AS UNSIGNED))"
    assert expression(1 << 32) == "JSON_EXTRACT(JSON_ARRAY(CAST(4294967296 AS SIGNED)), '$[0]')"
    assert not needs_json_table([Unsigned(5), Opaque(ColumnType.VARCHAR, b"")])
    assert needs_json_table([JsonObject((("a", Opaque(ColumnType.BLOB, b"")),))])
