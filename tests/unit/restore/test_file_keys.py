"""The filter of a file's keys never says that a value is not there which `binlane inspect --rows` prints."""

from __future__ import annotations

import json
import random
import struct
from typing import NoReturn

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.row_values import Absent
from binlane.binlog.transactions import transactions
from binlane.errors import BinlogError, PlanError, UnsupportedEventError
from binlane.orchestration.commands.inspection.rows import Contents, LoggedStatement, plain_texts
from binlane.plan.transaction.decode import LogFormat
from binlane.restore import file_keys
from binlane.restore.file_content import FileContent
from binlane.restore.file_keys import KeyFilter
from binlane.source.protocol import LOG_START, LogChunk
from tests.unit.binlog.cases import mariadb_gtid, wire
from tests.unit.binlog.row_events import EVERY_COLUMN, Column, bitmap, image, rows_body, table_map_body
from tests.unit.plan.logs import HEAD, IN_TRANSACTION, XID, T, segment_of

INTEGERS = {"tiny": 1, "short": 2, "int24": 3, "long": 4, "longlong": 8}
TEXTS = ("varchar-255", "varchar-256", "char-80", "char-1020")


SIGNS = b"\x01\x01"
"""Of the numbers of a table: this many bytes of optional metadata, highest bit first."""
BINARY, LATIN1, UTF16, UTF8MB4 = 63, 8, 54, 45
OPTIONAL = {
    "nothing": b"",
    "unsigned": SIGNS + b"\xc0",
    "signed": SIGNS + b"\x00",
    **{f"collation {each}": SIGNS + b"\x00\x02\x01" + bytes((each,)) for each in (BINARY, LATIN1, UTF16, UTF8MB4)},
}
"""What ``binlog_row_metadata`` adds."""


def log_of(column: Column, values: list[bytes | None], kind: int = T.WRITE_ROWS_V1, optional: bytes = b"") -> bytes:
    """Transactions of a row each, of a table with the column and an integer behind it."""
    columns, both = (column, EVERY_COLUMN["long"]), [True, True]
    found = []
    for number, value in enumerate(values, 1):
        one = image(columns, both, [value, struct.pack("<i", number)])
        data = one if kind == T.WRITE_ROWS_V1 else one + one
        bitmaps = [bitmap(both)] * (1 if kind == T.WRITE_ROWS_V1 else 2)
        found.append(
            (
                mariadb_gtid(number, IN_TRANSACTION),
                wire(T.TABLE_MAP, table_map_body(1, columns, "shop", optional)),
                wire(kind, rows_body(kind, 1, 2, bitmaps, data)),
                XID,
            )
        )
    return segment_of(found)[0]


def filter_of(log: bytes) -> KeyFilter:
    content = FileContent("w")
    content.take(LogChunk("binlog.000007", LOG_START, HEAD[4:]))
    content.take(LogChunk("binlog.000007", len(HEAD), log[len(HEAD) :]))
    return KeyFilter.parse(content.keys.finish(100 * len(log), "d"), "d", "w")


def printed(log: bytes) -> set[str]:
    """The first column's values, as a person sees them."""
    reader, found = LogReader(log, "w"), set[str]()
    contents = Contents(LogFormat(reader.format, "w", 0, reader.format.flavor))
    for transaction in transactions(reader):
        for one in contents.of(transaction):
            assert not isinstance(one, LoggedStatement)
            table, change = one
            for each in (change.before, change.after):
                if each is not None and not isinstance(each[0], Absent):
                    found.update(plain_texts(table.columns[0], each[0]))
    return found


def value(column: Column, choose: random.Random) -> bytes:
    prefix, fixed = column.length
    if prefix == 0:
        return choose.choice((bytes(fixed), b"\xff" * fixed, choose.randbytes(fixed)))
    size = choose.choice((0, 1, 5, 31, 32, 33, 64, 70))
    return bytes(choose.randint(0x20, 0x7E) for _ in range(size)) if choose.random() < 0.9 else choose.randbytes(size)


@pytest.mark.parametrize("optional", OPTIONAL.values(), ids=OPTIONAL)
@pytest.mark.parametrize("name", EVERY_COLUMN)
def test_each_value_that_is_printed_may_be_there(name: str, optional: bytes) -> None:
    column, choose = EVERY_COLUMN[name], random.Random(name)
    for kind in (T.WRITE_ROWS_V1, T.UPDATE_ROWS_V1):
        for with_null in (False, True):
            values: list[bytes | None] = [value(column, choose) for _ in range(60)]
            log = log_of(column, [*values, None] if with_null else values, kind, optional)
            try:
                seen = printed(log)
            except (BinlogError, UnsupportedEventError, ValueError):
                # random bytes are no value of this type
                continue
            keys = filter_of(log)
            assert [each for each in seen if not keys.may_have("SHOP.t", each)] == []


def test_a_value_of_fixed_length_is_printed_with_the_zeros_that_the_log_leaves_out() -> None:
    log = log_of(EVERY_COLUMN["char-80"], [b"AB12"], optional=OPTIONAL[f"collation {BINARY}"])
    [value] = printed(log)
    assert value == f"X'{b'AB12'.ljust(80, bytes(1)).hex().upper()}'"
    assert filter_of(log).may_have("shop.t", value)
    texts = filter_of(log_of(EVERY_COLUMN["char-80"], [b"AB12"], optional=OPTIONAL[f"collation {UTF8MB4}"]))
    assert [texts.may_have("shop.t", each) for each in ("AB12", "AB13")] == [True, False]


@pytest.mark.parametrize("name", [*INTEGERS, *TEXTS])
def test_most_values_that_are_not_there_are_told(name: str) -> None:
    choose, size = random.Random(1), INTEGERS.get(name, 0)
    texts = [str(choose.randrange(100)) if size else f"key {choose.randrange(10**9)}" for _ in range(50)]
    raw = [int(each).to_bytes(size, "little") if size else each.encode() for each in texts]
    keys = filter_of(log_of(EVERY_COLUMN[name], [*raw]))
    others = [str(100 + each) if size == 1 else str(each) for each in range(1000, 1900)] if size > 1 else ["-5", "101"]
    told = [each for each in others if not keys.may_have("shop.t", each)]
    assert len(told) > 0.9 * len(others)
    assert keys.may_have("shop.t", texts[0])
    assert keys.may_have("shop.t", "\u00e4")
    assert not all(keys.may_have(f"shop.u{number}", texts[0]) for number in range(20))


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", b"{}\n", b"[" * 100_000, b"\xff\n",
        *(json.dumps({"version": 1, "blake3": "d", "bits": 8, "hashes": 4, "unkeyed": [], **change}).encode() + b"\n\0"
          for change in ({"version": 2}, {"blake3": "e"}, {"bits": 16}, {"bits": -8}, {"hashes": 0}, {"hashes": 10**9},
                         {"unkeyed": 1}, {"bits": "8"})),
    ],
    ids=range(13),
)  # fmt: skip
def test_a_filter_that_is_none_or_of_another_file_is_refused(content: bytes) -> None:
    with pytest.raises(PlanError, match=r"^w: "):
        KeyFilter.parse(content, "d", "w")


def test_too_many_keys_are_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(EVERY_COLUMN["long"], [struct.pack("<i", number) for number in range(50)])
    assert not filter_of(log).may_have("shop.t", "77")
    for limit, value in (("_MOST", 10), ("_SHARE", 100_000)):
        with monkeypatch.context() as patch:
            patch.setattr(file_keys, limit, value)
            assert filter_of(log).may_have("shop.t", "77")


def test_a_table_whose_images_lack_columns_may_have_any_value() -> None:
    """Where their first column would be read, there is something else."""
    columns, both = (EVERY_COLUMN["long"], EVERY_COLUMN["long"]), [True, True]
    events = [
        rows_body(T.WRITE_ROWS_V1, 1, 2, [bitmap(part)], image(columns, part, [bytes(4), bytes(4)]))
        for part in ([False, True], both)
    ]
    logs = [
        segment_of(
            [
                (
                    mariadb_gtid(1, IN_TRANSACTION),
                    wire(T.TABLE_MAP, table_map_body(1, columns, "shop")),
                    wire(T.WRITE_ROWS_V1, body),
                    XID,
                )
            ]
        )[0]
        for body in events
    ]
    assert [filter_of(log).may_have("shop.t", "77") for log in logs] == [True, False]


def test_tables_whose_rows_are_not_in_the_log_as_they_are_may_have_any_value(monkeypatch: pytest.MonkeyPatch) -> None:
    log = log_of(EVERY_COLUMN["long"], [bytes(4)])

    def refused(*_: object) -> NoReturn:
        raise UnsupportedEventError("compressed")

    monkeypatch.setattr("binlane.binlog.vector.frames.row_images", refused)
    assert filter_of(log).may_have("shop.t", "77")
