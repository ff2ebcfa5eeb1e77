"""Payloads of BINLOG statements: what is refused, how their events are walked, ended and rewritten."""

from __future__ import annotations

import base64
import itertools
import struct

import pytest

from binlane.binlog.rows import RowsKind
from binlane.binlog.rows_payload import (
    DEFINITION,
    cascading_tables,
    check_self_contained,
    encoded,
    ending_statement,
    ends_statement,
    events_of,
    is_table_map,
    parse_rows,
    parse_table_map,
    rows_with_tables,
    statement_of,
    table_maps_of,
    with_body,
    with_changes_apart,
    without_second_cascades,
)
from binlane.errors import PlanError
from binlane.model import Flavor, TableKey

HEADER = struct.Struct("<IBIIIH")
STMT_END = 1


def event(type_code: int, table_id: int, flags: int = 0, body: bytes = b"") -> bytes:
    data = table_id.to_bytes(6, "little") + flags.to_bytes(2, "little") + body
    return HEADER.pack(0, type_code, 1, HEADER.size + len(data), 0, 0) + data


def table_map(table_id: int, name: bytes = b"t") -> bytes:
    return event(19, table_id, 0, b"\x04shop\0" + bytes([len(name)]) + name + b"\0\x01\x03\0\0")


def rows(table_id: int, *, end: bool = True, type_code: int = 30, flags: int = 0) -> bytes:
    return event(type_code, table_id, flags | (STMT_END if end else 0), b"\x02\0\x01\xff\0\x01\0\0\0")


GOOD = [
    pytest.param(table_map(1) + rows(1), {"t"}, id="one"),
    pytest.param(table_map(1) + rows(1, end=False) + rows(1), {"t"}, id="several-events-of-a-statement"),
    pytest.param(
        table_map(1) + table_map(2, b"u") + rows(1, end=False) + rows(2, type_code=25), {"t", "u"}, id="two-tables"
    ),
    pytest.param(table_map(1) + rows(1) + table_map(2, b"u") + rows(2), {"t", "u"}, id="two-statements"),
]
BAD = [
    pytest.param(rows(1), "without its TABLE_MAP", id="rows-without-map"),
    pytest.param(table_map(1) + rows(2), "table id 2 without its TABLE_MAP", id="map-of-another-table"),
    pytest.param(table_map(1) + rows(1) + rows(1), "without its TABLE_MAP", id="map-ended-by-STMT_END_F"),
    pytest.param(
        table_map(1) + rows(1) + table_map(2) + rows(1), "table id 1 without", id="map-of-the-statement-before"
    ),
    pytest.param(table_map(1) + rows(1, end=False), "lacks STMT_END_F", id="statement-left-open"),
    pytest.param(table_map(1), "lacks STMT_END_F", id="map-alone"),
    pytest.param(table_map(1) + rows(1) + b"\0" * 5, "less than an event", id="bytes-left-over"),
    pytest.param((table_map(1) + rows(1))[:-1], r"event_size \d+ does not fit the \d+ bytes left", id="cut"),
    pytest.param(table_map(1)[:9] + bytes(4) + table_map(1)[13:], "event_size 0 does not fit", id="no-size"),
    pytest.param(event(160, 1), "neither TABLE_MAP nor a rows event", id="annotation"),
    pytest.param(table_map(1) + rows(1, type_code=2), "neither TABLE_MAP nor a rows event", id="query"),
]


@pytest.mark.parametrize(("payload", "names"), GOOD)
def test_a_self_contained_payload_names_its_tables(payload: bytes, names: set[str]) -> None:
    assert check_self_contained(payload) == {TableKey("shop", name) for name in names}


@pytest.mark.parametrize(("payload", "message"), BAD)
def test_a_payload_that_would_lose_rows_is_refused(payload: bytes, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        check_self_contained(payload)


@pytest.mark.parametrize(("payload", "names"), GOOD[:3])
def test_every_cut_of_a_statement_is_refused(payload: bytes, names: set[str]) -> None:
    for end in range(1, len(payload)):
        with pytest.raises(PlanError):
            check_self_contained(payload[:end])


@pytest.mark.parametrize(("payload", "names"), GOOD)
def test_a_corrupt_byte_raises_nothing_but_plan_errors(payload: bytes, names: set[str]) -> None:
    for at, value in itertools.product(range(len(payload)), (0, 1, 127, 255)):
        corrupt = payload[:at] + bytes([value]) + payload[at + 1 :]
        try:
            check_self_contained(corrupt)
        except PlanError:
            continue


TWO = table_map(1) + table_map(2, b"u") + rows(1, end=False) + rows(2)
AGAIN = TWO + table_map(1, b"v") + rows(1)
"""A table id that means another table in the second statement."""


def test_a_payload_is_its_events() -> None:
    found = list(events_of(AGAIN))
    assert b"".join(found) == AGAIN
    assert [is_table_map(one) for one in found] == [True, True, False, False, True, False]
    assert list(table_maps_of(AGAIN)) == [one[HEADER.size :] for one in found if is_table_map(one)]


def test_rows_come_with_the_table_that_their_id_means_then() -> None:
    named = [(parse_table_map(table, Flavor.MYSQL).table, event) for table, event in rows_with_tables(AGAIN, bytes)]
    assert named == [("t", rows(1, end=False)), ("u", rows(2)), ("v", rows(1))]


def test_a_table_map_is_looked_at_once() -> None:
    seen: list[bytes] = []
    assert len(list(rows_with_tables(table_map(1) + rows(1, end=False) * 3, seen.append))) == 3
    assert seen == [table_map(1)]


def test_an_ended_rows_event_differs_in_its_flag_alone() -> None:
    open_event = event(30, 7, 0x8002, b"rest")
    assert not ends_statement(open_event)
    assert ending_statement(open_event) == event(30, 7, 0x8003, b"rest")
    assert ends_statement(ending_statement(open_event))
    assert ending_statement(event(30, 7, 0x8003, b"rest")) == event(30, 7, 0x8003, b"rest")


def test_an_event_with_another_body_keeps_the_rest_of_its_header() -> None:
    old = HEADER.pack(11, 23, 22, HEADER.size + 3, 33, 44) + b"old"
    assert with_body(old, b"newer") == HEADER.pack(11, 23, 22, HEADER.size + 5, 33, 44) + b"newer"
    assert with_body(old, b"", 30) == HEADER.pack(11, 30, 22, HEADER.size, 33, 44)


def test_a_rows_event_and_its_table_are_parsed() -> None:
    parsed = parse_rows(rows(5, type_code=32))
    assert (parsed.table_id, parsed.kind, parsed.ends_statement) == (5, RowsKind.DELETE, True)
    assert parse_table_map(table_map(5), Flavor.MARIADB).database == "shop"


def test_a_table_is_known_by_all_of_its_map_but_the_id() -> None:
    assert table_map(1)[DEFINITION] == table_map(2)[DEFINITION] != table_map(1, b"u")[DEFINITION]


INSERT, UPDATE, DELETE = 30, 31, 32
UNCHECKED, LOGGED = 0x02, 0x10
NOT_AGAIN = UNCHECKED | LOGGED


@pytest.mark.parametrize("type_code", [UPDATE, DELETE, 24, 25, 39])
@pytest.mark.parametrize("others", [0, 0x04, 0x8008])
def test_a_change_whose_cascades_are_logged_is_sent_without_foreign_keys(type_code: int, others: int) -> None:
    payload, sent = (table_map(1) + rows(1, type_code=type_code, flags=flags | others) for flags in (LOGGED, NOT_AGAIN))
    assert without_second_cascades(payload) == (sent,)
    assert without_second_cascades(sent) == (sent,)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(AGAIN, id="an-older-log"),
        pytest.param(table_map(1) + rows(1, type_code=DELETE), id="a-deletion-of-an-older-log"),
        pytest.param(table_map(1) + rows(1, flags=LOGGED), id="insertions"),
        pytest.param(table_map(1) + rows(1, type_code=23, flags=LOGGED | 0x04), id="insertions-in-version-1"),
    ],
)
def test_all_other_changes_keep_their_flags(payload: bytes) -> None:
    assert without_second_cascades(payload) == (payload,)


@pytest.mark.parametrize(
    ("event", "cascades"),
    [
        (rows(1, type_code=DELETE), True),
        (rows(1, type_code=UPDATE, flags=0x04), True),
        (rows(1), False),
        (rows(1, type_code=DELETE, flags=LOGGED), False),
        (rows(1, type_code=UPDATE, flags=UNCHECKED), False),
    ],
)
def test_tables_of_which_others_follow_the_rows_where_they_are_executed(event: bytes, cascades: bool) -> None:
    payload = table_map(2, b"u") + rows(2) + table_map(1) + event
    assert cascading_tables(payload) == ({TableKey("shop", "t")} if cascades else set())


def test_a_statement_ends_where_rows_have_to_be_checked_again() -> None:
    """A server goes by the flags of a statement's first rows event."""
    before = table_map(1) + rows(1, flags=LOGGED)
    t, u, unused = table_map(1), table_map(2, b"u"), table_map(3, b"w")
    mixed = [
        rows(2, end=False, type_code=UPDATE, flags=NOT_AGAIN),
        rows(1, end=False, type_code=DELETE, flags=LOGGED),
        rows(1, end=False, flags=LOGGED),
        rows(1, type_code=UPDATE, flags=LOGGED),
    ]
    pieces = [
        u + t + rows(2, end=False, type_code=UPDATE, flags=NOT_AGAIN) + rows(1, type_code=DELETE, flags=NOT_AGAIN),
        t + rows(1, flags=LOGGED),
        t + rows(1, type_code=UPDATE, flags=NOT_AGAIN),
    ]
    payload = before + b"".join((t, u, unused, *mixed)) + before
    sent = without_second_cascades(payload)
    assert b"".join(sent) == before + b"".join(pieces) + before
    for part in sent:
        check_self_contained(part)


def test_what_gets_longer_is_cut_so_that_no_part_is_longer_than_before() -> None:
    one = [rows(1, end=False, type_code=code, flags=LOGGED) for code in (INSERT, UPDATE)] * 50
    payload = table_map(1) + b"".join(one) + rows(1, flags=LOGGED)
    sent = without_second_cascades(payload)
    assert len(sent) > 1
    assert max(map(len, sent)) <= len(payload)
    assert len([each for part in sent for each in events_of(part) if not is_table_map(each)]) == 101
    for part in sent:
        check_self_contained(part)


def test_a_statement_holds_the_payload_as_base64() -> None:
    before, sent, after = statement_of(encoded(AGAIN)).split(b"'")
    assert (before, base64.b64decode(sent), after) == (b"BINLOG ", AGAIN, b"")


@pytest.mark.parametrize("type_code", [UPDATE, DELETE, 24, 25])
@pytest.mark.parametrize("insert", [INSERT, 23])
def test_changes_behind_insertions_are_a_statement_of_their_own(insert: int, type_code: int) -> None:
    t, u, unused = table_map(1), table_map(2, b"u"), table_map(3, b"w")
    before = t + rows(1, type_code=type_code)
    events = rows(1, end=False, type_code=insert) + rows(2, end=False, type_code=type_code) + rows(1, type_code=insert)
    sent = with_changes_apart(before + t + u + unused + events + before)
    assert b"".join(sent) == b"".join(
        (
            before,
            t,
            rows(1, type_code=insert),
            u,
            t,
            rows(2, end=False, type_code=type_code),
            rows(1, type_code=insert),
            before,
        )
    )
    for part in sent:
        check_self_contained(part)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(table_map(1) + rows(1, end=False) + rows(1), id="insertions"),
        pytest.param(table_map(1) + rows(1, end=False, type_code=DELETE) + rows(1), id="insertions-behind"),
        pytest.param(table_map(1) + rows(1) + table_map(1) + rows(1, type_code=UPDATE), id="of-two-statements"),
    ],
)
def test_statements_whose_first_event_opens_the_children_stay_as_they_are(payload: bytes) -> None:
    assert with_changes_apart(payload) == (payload,)


def test_updates_and_deletions_are_statements_of_their_own() -> None:
    t = table_map(1)
    kinds = (UPDATE, INSERT, 24, DELETE, 25, UPDATE, INSERT)
    payload = t + b"".join(rows(1, end=at == len(kinds) - 1, type_code=kind) for at, kind in enumerate(kinds))
    pieces = ((UPDATE, INSERT, 24), (DELETE, 25), (UPDATE, INSERT))
    expected = b"".join(
        t + b"".join(rows(1, end=at == len(piece) - 1, type_code=kind) for at, kind in enumerate(piece))
        for piece in pieces
    )
    sent = with_changes_apart(payload)
    assert b"".join(sent) == expected
    for part in sent:
        check_self_contained(part)


def test_many_insertions_with_a_change_behind_are_cut_so_that_no_part_is_longer_than_before() -> None:
    payload = table_map(1) + b"".join([rows(1, end=False)] * 20) + rows(1, type_code=DELETE)
    sent = with_changes_apart(payload)
    assert len(sent) > 1
    assert max(map(len, sent)) <= len(payload)
    for part in sent:
        check_self_contained(part)
