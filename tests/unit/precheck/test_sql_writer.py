"""What the precheck expects of ``max_allowed_packet``: never less than the statement needs, and hardly more."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any, Final

import pytest

from binlane.apply.rows.statements import StatementBuilder
from binlane.binlog.row_values import RowDecoder
from binlane.binlog.rows import RowsEvent
from binlane.binlog.rows_payload import PACKET_SHARE
from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.wire import EventType
from binlane.model import Flavor, LogPosition, TableKey
from binlane.plan.block.row_size import RowMeter, Widest
from binlane.plan.settings import PlanSettings
from binlane.precheck.situation.parser import ParserAnswers
from binlane.precheck.situation.situation import Situation
from binlane.schema.binding import BoundTable
from binlane.schema.model import Column, Key, KeyColumn, Schema, Table
from binlane.sql.logged_statement import LoggedText
from tests.integration.apply.capture import ddl_item
from tests.unit.binlog.row_events import EVERY_COLUMN, image, rows_body, table_map_body
from tests.unit.plan.logs import settings
from tests.unit.precheck.situations import PLAN, findings, said, schema, situation

KEY: Final = TableKey("db", "t")
PACKET: Final = 1 << 20
PRIMARY: Final = Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("id"),))
INSERT, UPDATE, DELETE = EventType.WRITE_ROWS_V2, EventType.UPDATE_ROWS_V2, EventType.DELETE_ROWS_V2


def array(entries: list[bytes], tail: bytes = b"") -> bytes:
    """A large JSON array of inlined values (type and 4 bytes each), and what the offsets in them lead to."""
    body = struct.pack("<II", len(entries), 8 + 5 * len(entries) + len(tail)) + b"".join(entries) + tail
    return b"\x03" + body


def text_of(length: int) -> bytes:
    """A JSON string of control characters."""
    head = b""
    rest = length
    while rest > 0x7F:
        head, rest = head + bytes([rest & 0x7F | 0x80]), rest >> 7
    return b"\x0c" + head + bytes([rest]) + b"\x01" * length


def null_and_date(count: int) -> bytes:
    """Nulls and one date: every member is an expression then."""
    at = 8 + 5 * (count + 1)
    date = bytes([12, 8]) + struct.pack("<q", ((2020 * 13 + 5) << 5 | 6) << 41)
    return array([b"\x04\0\0\0\0"] * count + [b"\x0f" + struct.pack("<I", at)], date)


def empty_blobs(count: int) -> bytes:
    """Opaque values of type TINYBLOB, all of them at one place."""
    entries = b"".join(b"\x0f" + struct.pack("<H", 4 + 3 * count + 2 * number) for number in range(count))
    return b"\x02" + struct.pack("<HH", count, 4 + 5 * count) + entries + b"\xf9\0" * count


BLOB: Final = EVERY_COLUMN["longblob"], b"\x80" * 300_000
DOCUMENTS: Final = {
    "control characters": text_of(60_000),
    "small numbers": array([b"\x07" + struct.pack("<i", number % 10) for number in range(30_000)]),
    "nulls beside a date": null_and_date(9_000),
    "unsigned numbers": array([b"\x08" + struct.pack("<I", number % 10) for number in range(9_000)]),
    "empty blobs": empty_blobs(12_000),
}
VALUES: Final = {"bytes": BLOB, **{name: (EVERY_COLUMN["json"], data) for name, data in DOCUMENTS.items()}}


def measured(name: str, kind: int, *, keyed: bool) -> tuple[int, int]:
    """Bytes of the statement for a row with a value, and what the precheck says that it needs."""
    wide, value = VALUES[name]
    columns = (EVERY_COLUMN["long"], wide)
    logged = TableMap.parse(memoryview(table_map_body(1, columns)), flavor=Flavor.MYSQL)
    row = image(columns, (True, True), (struct.pack("<i", 7), value))
    bitmaps, images = ([b"\3", b"\3"], row + row) if kind == UPDATE else ([b"\3"], row)
    body = memoryview(rows_body(kind, 1, 2, bitmaps, images))
    widest = RowMeter(Flavor.MYSQL, Flavor.MYSQL, PACKET).measure(logged, kind, body, 5)
    assert widest is not None
    named = tuple(replace(one, name=f"c{one.number}") for one in columns_of(logged, Flavor.MYSQL))
    if wide is EVERY_COLUMN["json"]:
        named = named[0], replace(named[1], data_type="json")
    bound = BoundTable(KEY, named, frozenset({0, 1}), (0,) if keyed else (), frozenset())
    event = RowsEvent.parse(kind, body)
    changes = RowDecoder(logged, named, text=False).changes(event)
    [statement] = StatementBuilder(bound, Flavor.MYSQL).statements(event.kind, changes)
    table = Table(KEY, "InnoDB", (Column("c1", 1, "int"), Column("c2", 2, "x")), (PRIMARY,) if keyed else ())
    [asked] = found({KEY: widest}, table, have=100)
    assert asked[0] == "db.t: a row of seqno 5, as a statement"
    return len(statement.sql) + 1, asked[1]


def found(widest: dict[TableKey, Widest], table: Table | None, have: int, **plan: Any) -> list[tuple[str, int]]:
    target = Schema(
        Flavor.MYSQL, "9.0.0", {"max_allowed_packet": str(have)}, tables={} if table is None else {KEY: table}
    )
    of = situation(None, replace(PLAN, widest=widest, **plan), target, by_sql=[KEY], settings=planned(have))
    return [(one.where, int(one.expected.split()[2])) for one in findings(of, "long-statements")]


def planned(packet: int) -> PlanSettings:
    """Of a window for such a packet."""
    return settings(largest_bytes=int(packet * PACKET_SHARE))


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize(("kind", "keyed"), [(INSERT, True), (UPDATE, True), (UPDATE, False), (DELETE, False)])
def test_the_estimated_length_covers_the_statement_and_little_more(name: str, kind: int, keyed: bool) -> None:
    takes, asked = measured(name, kind, keyed=keyed)
    assert takes <= asked < takes + 16_384


def test_a_row_of_a_table_that_is_not_there_yet_is_taken_for_one_without_a_key() -> None:
    widest = {KEY: Widest(1_000, 3, 2_000_000, 4)}
    table = Table(KEY, "InnoDB", (Column("c1", 1, "int"),), (PRIMARY,))
    assert [where for where, _ in found(widest, None, PACKET)] == ["db.t: a row of seqno 4, as a statement"]
    assert found(widest, table, PACKET) == []


def test_a_logged_statement_that_is_too_long_is_named() -> None:
    assert found({}, None, PACKET, longest_statement=(PACKET - 64, 8)) == []
    assert found({}, None, PACKET, longest_statement=(PACKET, 8)) == [("statement of seqno 8", PACKET + 64)]


def test_a_packet_that_was_lowered_under_what_the_window_was_planned_for_is_named() -> None:
    lower, same = (Schema(Flavor.MYSQL, "9", {"max_allowed_packet": str(have)}) for have in (PACKET // 2, PACKET))
    [found] = said(situation(tables=lower, settings=planned(PACKET)), "long-statements")
    assert f"SET GLOBAL max_allowed_packet = {planned(PACKET).packet}" in found
    assert said(situation(tables=same, settings=planned(PACKET)), "long-statements") == []


@pytest.mark.parametrize("name", VALUES)
def test_rows_that_are_not_measured_need_less_than_three_quarters_of_the_packet(name: str) -> None:
    """Each kind of value at its limit, on a target of the size at which it would be measured."""
    wide, value = VALUES[name]
    columns = (EVERY_COLUMN["long"], wide)
    logged = TableMap.parse(memoryview(table_map_body(1, columns)), flavor=Flavor.MYSQL)
    row = image(columns, (True, True), (struct.pack("<i", 7), value))
    body = memoryview(rows_body(INSERT, 1, 2, [b"\3"], row))
    share = RowMeter(Flavor.MYSQL, Flavor.MYSQL, PACKET * 8)
    packet = len(body) * share.packet // share.limit(logged)
    assert RowMeter(Flavor.MYSQL, Flavor.MYSQL, packet + 64).measure(logged, INSERT, body, 1) is None
    takes, _ = measured(name, INSERT, keyed=False)
    assert takes < packet * 3 // 4


def test_the_wider_of_two_is_kept_with_its_first_seqno() -> None:
    assert Widest(5, 3, 9, 3) | Widest(7, 4, 9, 2) == Widest(7, 4, 9, 2)
    assert Widest(7, 4, 9, 2) | Widest(5, 3, 9, 3) == Widest(7, 4, 9, 2)


TRIGGER: Final = "CREATE TRIGGER {} BEFORE INSERT ON {} FOR EACH ROW SET @a = 1"


@pytest.mark.parametrize(
    ("folds", "statements", "is_named"),
    [
        (False, [TRIGGER.format("db.g", "db.t")], True),
        (False, [TRIGGER.format("g", "t"), "DROP TRIGGER IF EXISTS db.G"], False),
        (False, [TRIGGER.format("db.g", "db.t"), "DROP TRIGGER g"], False),
        (False, [TRIGGER.format("db.g", "db.t"), "DROP TRIGGER crm.g"], True),
        (False, [TRIGGER.format("g", "db.t"), "DROP TRIGGER g", TRIGGER.format("g", "db.t")], True),
        (False, [TRIGGER.format("DB.g", "DB.T")], False),
        (True, [TRIGGER.format("DB.g", "DB.T")], True),
        (True, [TRIGGER.format("DB.g", "DB.T"), "DROP TRIGGER g"], False),
    ],
)
def test_a_trigger_ends_by_its_database_and_is_found_by_its_table_s_name(
    monkeypatch: pytest.MonkeyPatch, folds: bool, statements: list[str], is_named: bool
) -> None:
    """Rows at seqno 8, behind all statements."""
    texts = [
        LoggedText.of(seqno, LogPosition("b", seqno), ddl_item(sql, "db"), Flavor.MARIADB)
        for seqno, sql in enumerate(statements, 1)
    ]
    monkeypatch.setattr(Situation, "first_rows", lambda _, key, after: 8 if key == KEY else None)
    case = {"lower_case_table_names": str(int(folds))}
    tables = schema(flavor=Flavor.MARIADB, settings=case)
    # the parser is asked about each text once
    of = situation(tables=tables, texts=texts, by_sql=[KEY], read_statements=lambda: ParserAnswers(texts=[]))
    assert [each.endswith(" [new-triggers]") for each in said(of, "new-triggers")] == [True] * is_named
