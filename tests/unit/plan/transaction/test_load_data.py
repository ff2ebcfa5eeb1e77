"""LOAD DATA in the log: its file's pieces find their statement, and whatever does not fit is refused."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.binlog.wire import EventType
from binlane.errors import UnsupportedEventError
from binlane.model import Flavor, ItemKind
from binlane.plan.transaction.decode import LogFormat, StatementPart, dissect
from binlane.plan.transaction.load_data import LaterLoads
from tests.unit.binlog.cases import mariadb_gtid, query, wire
from tests.unit.plan.logs import IN_TRANSACTION, XID, ends, filtered, prepare, rows, segment_of, settings

T = EventType
GTID = mariadb_gtid(1, IN_TRANSACTION)
SPAN = b" INFILE '/tmp/a.csv' INTO"


def begin(file_id: int, data: bytes) -> bytes:
    return wire(T.BEGIN_LOAD_QUERY, struct.pack("<I", file_id) + data)


def append(file_id: int, data: bytes) -> bytes:
    return wire(T.APPEND_BLOCK, struct.pack("<I", file_id) + data)


def delete(file_id: int) -> bytes:
    return wire(T.DELETE_FILE, struct.pack("<I", file_id))


def execute(
    file_id: int,
    span: bytes = SPAN,
    duplicates: int = 0,
    tail: bytes = b" TABLE `t` (`a`)",
    error: int = 0,
    shift: int = 0,
    status: bytes = b"",
) -> bytes:
    sql = b"LOAD DATA" + span + tail
    body = struct.pack("<IIBHH", 6, 0, 1, error, len(status))
    body += struct.pack("<IIIB", file_id, 9 + shift, 9 + len(span), duplicates)
    return wire(T.EXECUTE_LOAD_QUERY, body + status + b"a\0" + sql)


def parts(*events: bytes, flavor: Flavor = Flavor.MARIADB) -> tuple[StatementPart, ...]:
    data, segment = segment_of([(GTID, *events, XID)])
    reader = LogReader(data, segment.source_file)
    (transaction,) = transactions(reader)
    version = reader.format.server_version if flavor is Flavor.MARIADB else "9.7.0"
    log_format = replace(reader.format, server_version=version)
    found = dissect(transaction, LogFormat(log_format, segment.source_file, 0, flavor))
    return tuple(part for part in found if isinstance(part, StatementPart))


def content(part: StatementPart) -> bytes:
    assert part.file is not None
    return b"".join(part.file)


@pytest.mark.parametrize(
    ("span", "duplicates", "expected"),
    [
        (SPAN, 0, b"LOAD DATA LOCAL INFILE 'binlane' INTO TABLE `t` (`a`)"),
        (b" LOCAL INFILE 'x' IGNORE INTO", 1, b"LOAD DATA LOCAL INFILE 'binlane' IGNORE INTO TABLE `t` (`a`)"),
        (b" INFILE 'it\\'s' REPLACE INTO", 2, b"LOAD DATA LOCAL INFILE 'binlane' REPLACE INTO TABLE `t` (`a`)"),
    ],
)
def test_the_place_that_the_event_names_gets_the_local_name(span: bytes, duplicates: int, expected: bytes) -> None:
    (part,) = parts(begin(1, b"1\n"), execute(1, span, duplicates))
    assert part.sql == expected
    assert content(part) == b"1\n"


NO_BACKSLASH_ESCAPES = b"\x01" + struct.pack("<Q", 0x100000)
LATIN1 = b"\x04" + struct.pack("<HHH", 8, 8, 8)
SEPARATORS = b" FIELDS TERMINATED BY '%b' OPTIONALLY  ENCLOSED BY '%b' ESCAPED BY '%b' LINES TERMINATED BY '%b' (`a`)"

DEFAULTS = b" TABLE `t`" + SEPARATORS % (rb"\t", b"", rb"\\", rb"\n")


@pytest.mark.parametrize(
    ("status", "separators", "expected"),
    [
        (b"", (rb"\t", b"", rb"\\", rb"\n"), (rb"'\t'", b"''", rb"'\\'", rb"'\n'")),
        (NO_BACKSLASH_ESCAPES, (rb"\t", b"", rb"\\", rb"\n"), (b"X'09'", b"''", b"X'5c'", b"X'0a'")),
        (NO_BACKSLASH_ESCAPES, (rb"\'\0", b'"', b"", rb"\r\n"), (b"X'2700'", b"'\"'", b"''", b"X'0d0a'")),
        (LATIN1, (b"\xe4", b"", rb"\\", rb"\n"), (b"X'e4'", b"''", rb"'\\'", rb"'\n'")),
    ],
)
def test_separators_are_read_alike_in_every_session(
    status: bytes, separators: tuple[bytes, ...], expected: tuple[bytes, ...]
) -> None:
    tail = b" TABLE `t`" + SEPARATORS % separators + rb" SET `b` = '\n'"
    (part,) = parts(begin(1, b"1\n"), execute(1, tail=tail, status=status))
    said = (SEPARATORS.replace(b"'%b'", b"%b") % expected).decode("latin-1")
    assert part.sql.decode("latin-1") == f"LOAD DATA LOCAL INFILE 'binlane' INTO TABLE `t`{said} SET `b` = '\\n'"


UTF8, LATIN = "ä".encode(), "ä".encode("latin-1")
IN_SETS = [
    (Flavor.MARIADB, b"", UTF8, 45),
    (Flavor.MARIADB, UTF8, UTF8, 45),
    (Flavor.MARIADB, LATIN, b"", None),
    (Flavor.MARIADB, UTF8, b"', _latin1'" + UTF8, None),
    (Flavor.MYSQL, b"", LATIN, 8),
    (Flavor.MYSQL, UTF8, b"", 45),
    (Flavor.MYSQL, UTF8, LATIN, None),
    (Flavor.MYSQL, UTF8, UTF8, None),
]


@pytest.mark.parametrize(("flavor", "name", "value", "expected"), IN_SETS)
def test_names_and_values_are_in_one_character_set(
    flavor: Flavor, name: bytes, value: bytes, expected: int | None
) -> None:
    """A session of latin1: both servers log names in UTF-8, MariaDB the rest, too."""
    tail = b" TABLE `t%b` (`a`) SET `b`= concat('%b')" % (name, value)
    events = (begin(1, b"1\n"), execute(1, tail=tail, status=LATIN1))
    if expected is None:
        with pytest.raises(UnsupportedEventError, match="another character set than the rest"):
            parts(*events, flavor=flavor)
        return
    (part,) = parts(*events, flavor=flavor)
    assert part.context.charset_client == expected


@pytest.mark.parametrize("form", ["`{}`", '"{}"', "{}"])
def test_the_values_are_found_in_each_form_of_a_name(form: str) -> None:
    column, hidden = form.format("b").encode(), form.format("c SET `b").encode()
    named = (column,) if form == "{}" else (column, hidden.replace(b" `b`", b" ``b`"))
    for name in named:
        tail = b" TABLE t%b (%b) SET %b= concat('%b')"
        (part,) = parts(
            begin(1, b"1\n"), execute(1, tail=tail % (b"", name, column, LATIN), status=LATIN1), flavor=Flavor.MYSQL
        )
        assert part.context.charset_client == 8
        for value in (LATIN, UTF8):
            events = (begin(1, b"1\n"), execute(1, tail=tail % (UTF8, name, column, value), status=LATIN1))
            with pytest.raises(UnsupportedEventError, match="another character set than the rest"):
                parts(*events, flavor=Flavor.MYSQL)


def test_files_of_several_ids_may_come_in_between_each_other() -> None:
    first, second, plain = parts(
        *(begin(1, b"a"), begin(2, b"x"), append(1, b"b"), begin(3, b"failed"), append(2, b"y"), delete(3)),
        *(execute(2), append(1, b"c"), execute(1), query(b"INSERT INTO t VALUES (1)")),
    )
    assert (content(first), content(second), plain.file) == (b"xy", b"abc", None)


def test_a_load_that_came_to_nothing_is_nothing() -> None:
    assert parts(begin(1, b"a"), append(1, b"b"), delete(1)) == ()


REFUSED = [
    pytest.param((begin(1, b"a"),), "not in this transaction", id="without-its-statement"),
    pytest.param((execute(1),), "file 1 of a LOAD DATA that does not begin", id="statement-alone"),
    pytest.param((append(1, b"a"), execute(1)), "file 1 of a LOAD DATA that does not begin", id="block-alone"),
    pytest.param((delete(4),), "file 4 of a LOAD DATA that does not begin", id="deletion-alone"),
    pytest.param((begin(1, b"a"), begin(1, b"b"), execute(1)), "LOAD DATA, which begins twice", id="begun-twice"),
    pytest.param((begin(1, b"a"), execute(1, shift=1)), "without a file name at bytes 10..34", id="another-place"),
    pytest.param((begin(1, b"a"), execute(1, error=1062)), "ended with error 1062", id="ended-with-an-error"),
    pytest.param(
        (begin(1, b"a"), execute(1, tail=b" TABLE `t` FIELDS TERMINATED BY '\\t' LINES TERMINATED BY '<row>' (`a`)")),
        "LOAD XML", id="load-xml",
    ),
    pytest.param(
        (begin(1, b"a"), append(1, b"\\N"), execute(1, tail=DEFAULTS, status=NO_BACKSLASH_ESCAPES)),
        "logged with escapes that its sql_mode does not have", id="escapes-or-not",
    ),
    pytest.param((query(b"LOAD DATA INFILE '/x' INTO TABLE t"),), "without the events of its file", id="by-its-text"),
    pytest.param((wire(T.CREATE_FILE, bytes(60)),), "CREATE_FILE", id="mysql-4"),
]  # fmt: skip


@pytest.mark.parametrize(("events", "what"), REFUSED)
def test_load_data_that_cannot_be_applied_is_refused_with_a_reason(events: tuple[bytes, ...], what: str) -> None:
    with pytest.raises(UnsupportedEventError, match=r"^binlog\.000007:\d+: ") as refused:
        parts(*events)
    assert what in str(refused.value)


SPLIT = (
    (GTID, begin(1, b"a"), append(1, b"b"), XID),
    (GTID, begin(2, b"x"), XID),
    rows(7, "a"),
    (GTID, append(1, b"c"), begin(3, b"dropped"), XID),
    (GTID, delete(3), query(b"INSERT INTO t VALUES (1)"), XID),
    (GTID, execute(2), XID),
    (GTID, execute(1, tail=b" TABLE `u` (`a`)"), XID),
)


def found_in(transaction: int, *events: tuple[bytes, ...]) -> list[StatementPart]:
    """The statements of one transaction of a log, whatever was read before it."""
    data, segment = segment_of(events)
    reader = LogReader(data, segment.source_file)
    log = LogFormat(reader.format, segment.source_file, 0, Flavor.MARIADB, loads=LaterLoads(reader))
    one = list(transactions(LogReader(data, segment.source_file)))[transaction]
    return [part for part in dissect(one, log) if isinstance(part, StatementPart)]


@pytest.mark.parametrize(
    ("transaction", "expected"), [(0, []), (1, []), (3, []), (4, [None]), (5, [b"x"]), (6, [b"abc"])]
)
def test_a_statement_finds_its_file_in_earlier_transactions(transaction: int, expected: list[bytes | None]) -> None:
    found = found_in(transaction, *SPLIT)
    assert [None if part.file is None else content(part) for part in found] == expected


NOT_FOUND = [
    pytest.param(1, ((GTID, begin(1, b"a"), XID), (GTID, execute(2), XID)), "file 2", id="another-file"),
    pytest.param(0, ((GTID, begin(1, b"a"), XID), (GTID, append(1, b"b"), XID)), "file 1", id="no-statement"),
    pytest.param(0, ((GTID, execute(1), XID), (GTID, begin(1, b"a"), XID)), "file 1", id="statement-before-it"),
    pytest.param(1, ((GTID, execute(1), XID), (GTID, begin(1, b"a"), XID)), "file 1", id="file-behind-it"),
    pytest.param(0, ((GTID, begin(1, b"a"), XID), (GTID, begin(1, b"b"), execute(1), XID)), "file 1", id="begun-anew"),
    pytest.param(
        2, ((GTID, begin(1, b"a"), XID), (GTID, execute(1), XID), (GTID, execute(1), XID)), "file 1", id="loaded-twice"
    ),
    pytest.param(
        2, ((GTID, begin(1, b"a"), XID), (GTID, delete(1), XID), (GTID, append(1, b"b"), XID)), "file 1", id="dropped"
    ),
    pytest.param(
        1,
        ((GTID, begin(1, b"a"), XID), (GTID, execute(1), *prepare(9, "x")[-1:]), ends(10, "COMMIT", "x")),
        "file 1 of a LOAD DATA that does not begin in this transaction",
        id="in-a-prepared-transaction",
    ),
    pytest.param(
        0,
        ((GTID, begin(1, b"a"), *prepare(9, "x")[-1:]), (GTID, execute(1), XID), ends(10, "COMMIT", "x")),
        "file 1 of a LOAD DATA that is not in this transaction",
        id="of-a-prepared-transaction",
    ),
]


@pytest.mark.parametrize(("transaction", "events", "what"), NOT_FOUND)
def test_a_file_without_its_statement_in_the_segment_is_refused(
    transaction: int, events: tuple[tuple[bytes, ...], ...], what: str
) -> None:
    with pytest.raises(UnsupportedEventError, match=r"^binlog\.000007:\d+: ") as refused:
        found_in(transaction, *events)
    assert what in str(refused.value)


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_files_of_earlier_transactions_are_in_the_block_of_their_statement(columnar: bool) -> None:
    found = filtered(SPLIT, settings(lanes=1, block_transactions=1), columnar=columnar)
    loads = [
        (header.first_seqno, b"".join(item.payload for item in items[1:]))
        for header, items in found.lanes[0]
        if items and items[0].kind is ItemKind.LOAD
    ]
    assert loads == [(6, b"x"), (7, b"abc")]
    with pytest.raises(UnsupportedEventError, match="file 1 of a LOAD DATA"):
        filtered(SPLIT, settings(lanes=1), cuts=(4,), columnar=columnar)


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_a_lane_gets_the_statement_and_its_file_in_pieces_behind_it(columnar: bool) -> None:
    large = bytes(range(256)) * 5000
    events = (GTID, begin(1, large), append(1, b"end"), execute(1), XID)
    found = filtered([events], settings(lanes=1, block_bytes=1 << 30), columnar=columnar)
    ((header, items),) = found.lanes[0]
    assert header.transactions == 1
    assert [item.kind for item in items] == [ItemKind.LOAD, ItemKind.FILE, ItemKind.FILE, ItemKind.FILE]
    assert b"".join(item.payload for item in items[1:]) == large + b"end"
    assert {str(key) for key in found.plan.loaded} == {"a.t"}
