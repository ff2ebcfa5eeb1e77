"""The statements of a segment that a verification has to read: all but BEGIN, told by the length of their text."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from binlane.binlog.table_map import columns_of
from binlane.binlog.vector.frames import frame, index_rows, table_maps
from binlane.binlog.wire import CHECKSUM_LENGTH, LOG_BEGIN
from binlane.model import Flavor
from binlane.schema.model import Column
from binlane.verify.segment_keys import KeyColumns, distinct_keys, statements
from tests.unit.binlog.cases import T, query, wire
from tests.unit.plan.logs import rows, segment_of

READ = {
    "a statement": query(b"INSERT INTO t VALUES (1)"),
    "COMMIT": query(b"COMMIT"),
    "a text that ends like BEGIN": query(b"DROP TABLE t -- \0BEGIN"),
    "a text behind a database of that name": query(b"DROP TABLE t --\0BEGIN", database=b"BEGIN"),
    "a text of five characters": query(b"begin"),
    "too short": wire(T.QUERY, b"short"),
    "status variables beyond the end": wire(T.QUERY, struct.pack("<IIBHH", 1, 0, 0, 0, 0xFFFF) + b"\0BEGIN"),
    "XA PREPARE": wire(T.XA_PREPARE, b"\0" + struct.pack("<III", 1, 1, 0) + b"x"),
    "compressed": wire(T.QUERY_COMPRESSED, struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0BEGIN"),
}
PASSED = {
    "BEGIN": query(b"BEGIN"),
    "BEGIN without a database": query(b"BEGIN", database=b"", status=bytes((0, 0, 0, 0, 0))),
    "XID": wire(T.XID, bytes(8)),
    "a table map": wire(T.TABLE_MAP, bytes(12)),
    "a note": wire(T.ANNOTATE_ROWS, b"insert"),
}


@pytest.mark.parametrize("name", [*READ, *PASSED])
def test_every_statement_but_begin_is_read(name: str) -> None:
    event = {**READ, **PASSED}[name]
    log = PASSED["BEGIN"] + event + PASSED["XID"]
    assert statements(frame(log, 0, 0), 13).tolist() == ([1] if name in READ else [])


def test_the_distinct_keys_of_a_segment_are_found_once_each() -> None:
    data, _ = segment_of((rows(1, "a", count=3), rows(2, "a", count=2)))
    frames = frame(data, LOG_BEGIN, CHECKSUM_LENGTH)
    index = index_rows(frames, "log")
    maps = table_maps(frames, index, "log")
    first = columns_of(maps[0], Flavor.MARIADB)[:1]
    key = KeyColumns((Column("id", 1, "int"),), first, (str,), (0,), maps[0].column_length_spec())
    found = distinct_keys(frames, index, maps, [key], "log")
    assert found is not None
    assert list(found[0]) == [("0",), ("1",), ("2",)]
    # by its definition, a column behind the key is longer than the log says: the rows are read one by one
    longer = replace(key, rules=(*key.rules[:-1], (0, 6)))
    assert distinct_keys(frames, index, maps, [longer], "log") is None
