"""The statements of a segment that a verification has to read: all but BEGIN, told by the length of their text."""

from __future__ import annotations

import struct

import pytest

from binlane.binlog.vector.frames import frame
from binlane.verify.segment_keys import statements
from tests.unit.binlog.cases import T, query, wire

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
