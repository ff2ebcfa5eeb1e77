"""Logs whose events stand in an order, or say something, that no server's do: what comes apart for the target is of
the databases that the filter takes, or the log ends in an error of the project.

Attacker: whoever can write to the archive.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.errors import BinlaneError
from binlane.model import Flavor
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.decode import LogFormat, RowsPart, StatementPart, dissect
from binlane.shards.selection import Selection
from tests.unit.binlog.cases import MARIADB, MYSQL, T, log, mariadb_gtid, mysql_gtid, payload, query, wire

_STANDALONE, _IN_TRANSACTION = 1, 4
_XID: Final = wire(T.XID, struct.pack("<Q", 42))
_MOST_BITS: Final = 0xFFFF_FFFF
_FLAGS2: Final = b"\0"


def _sql(text: str, status: bytes = b"", error: int = 0) -> bytes:
    return query(text.encode(), database=b"app", status=status, error=error)


def _user_variable(name: bytes, value: bytes, kind: int = 0, collation: int = 45) -> bytes:
    head = struct.pack("<I", len(name)) + name + b"\0" + struct.pack("<BII", kind, collation, len(value))
    return wire(T.USER_VAR, head + value)


def _map(database: bytes, table: bytes, number: int = 7) -> bytes:
    names = bytes((len(database),)) + database + b"\0" + bytes((len(table),)) + table + b"\0"
    return wire(T.TABLE_MAP, number.to_bytes(6, "little") + b"\1\0" + names + b"\1\3\0\1")


def _row(number: int = 7, flags: int = 1) -> bytes:
    return wire(T.WRITE_ROWS_V1, number.to_bytes(6, "little") + flags.to_bytes(2, "little") + b"\1\xff\xfe\x2a\0\0\0")


_INSERT: Final = _sql("INSERT INTO t VALUES (1)")
_INTVAR: Final = wire(T.INTVAR, struct.pack("<BQ", 2, 7))
_RAND: Final = wire(T.RAND, struct.pack("<QQ", 1, 2))
INSIDE: Final[Mapping[str, Sequence[bytes]]] = {
    "a variable of no kind": (wire(T.INTVAR, struct.pack("<BQ", 3, 7)), _INSERT),
    "a number above all": (wire(T.INTVAR, struct.pack("<BQ", 2, (1 << 64) - 1)), _INSERT),
    "variables twice, and of rows": (_INTVAR, _RAND, _INTVAR, _map(b"app", b"t"), _row(), _INSERT),
    "variables of no statement": (_INSERT, _INTVAR, _RAND, _user_variable(b"x", b"1")),
    "a variable's name with an end": (_user_variable(b"x` := (SELECT 1), @`y", b"1"), _INSERT),
    "a variable that is a row": (_user_variable(b"x", b"1", 3), _INSERT),
    "a variable of no type": (_user_variable(b"x", b"1", 9), _INSERT),
    "a variable of no collation": (_user_variable(b"x", b"1", 0, 99999), _INSERT),
    "a number that is none": (_user_variable(b"x", struct.pack("<d", float("inf")), 1), _INSERT),
    "a DECIMAL of too many digits": (_user_variable(b"x", b"\x41\0" + b"\xff" * 40, 4), _INSERT),
    "every flag": (_sql("INSERT INTO t VALUES (1)", _FLAGS2 + struct.pack("<I", _MOST_BITS)),),
    "flags twice": (_sql("INSERT INTO t VALUES (1)", (_FLAGS2 + struct.pack("<I", 1)) * 2),),
    "an unknown status variable": (_sql("INSERT INTO t VALUES (1)", b"\x63abc"),),
    "a cut status variable": (_sql("INSERT INTO t VALUES (1)", b"\0\1"),),
    "a client of UTF-16": (_sql("INSERT INTO t VALUES (1)", b"\4" + struct.pack("<HHH", 54, 54, 54)),),
    "an end behind a comment": (_INSERT, _sql("/* x */COMMIT"), _sql("/*!COMMIT*/"), _INSERT),
    "an end with more": (_INSERT, _sql("COMMIT; INSERT INTO other.victim VALUES (1)")),
    "a beginning with more": (_sql("BEGIN; INSERT INTO other.victim VALUES (1)"), _INSERT),
    "two statements": (_sql("INSERT INTO t VALUES (1); INSERT INTO other.victim VALUES (1)"),),
    "a NUL": (_sql("INSERT INTO t VALUES (1)\0; DROP TABLE other.victim"),),
    "another default database": (_sql("USE other"), _sql("INSERT INTO victim VALUES (1)")),
    "two tables of one number": (_map(b"app", b"t"), _map(b"other", b"victim"), _row()),
    "the same the other way round": (_map(b"other", b"victim"), _map(b"app", b"t"), _row()),
    "rows of no table": (_map(b"app", b"t"), _row(9)),
    "rows without an end": (_map(b"app", b"t"), _row(flags=0), _map(b"other", b"victim", 8), _row(8)),
    "rows around a statement": (_map(b"app", b"t"), _row(flags=0), _INSERT, _row()),
    "an XA COMMIT in plain letters": (_INSERT, _sql("XA COMMIT 'a'")),
    "DDL inside": (_INSERT, _sql("CREATE TABLE u (a INT)")),
    "a note of another statement": (wire(T.ROWS_QUERY, b"\5DROP DATABASE other"), _INSERT),
    "an incident": (wire(T.INCIDENT, b"\1\0\3abc"), _INSERT),
    "a head of a file": (wire(T.START_ENCRYPTION, b"\1\1\0\0\0" + bytes(12)), _INSERT),
    "a heartbeat": (wire(T.HEARTBEAT, b"binlog.000001"), wire(T.HEARTBEAT_V2, b"\1\3abc\2\1\5\0"), _INSERT),
    "an unknown event that may be skipped": (wire(200, b"abc", flags=0x80), _INSERT),
    "a payload in a transaction": (payload(_sql("BEGIN"), _INSERT, _XID), _INSERT),
}
"""Events between a transaction's beginning and its end. A line more is an attack more."""
AROUND: Final[Mapping[str, Sequence[bytes]]] = {
    "variables in front": (_RAND, _INTVAR, _sql("BEGIN"), _INSERT, _XID),
    "two payloads in one": (payload(payload(_sql("BEGIN"), _INSERT, _XID)),),
    "two transactions in a payload": (payload(_sql("BEGIN"), _INSERT, _XID, _sql("BEGIN"), _INSERT, _XID),),
    "another file in a payload": (payload(wire(T.ROTATE, struct.pack("<Q", 4) + b"x"), _sql("BEGIN"), _INSERT, _XID),),
    "two beginnings": (_sql("BEGIN"), _sql("BEGIN"), _INSERT, _XID),
    "a view of group replication": (wire(T.VIEW_CHANGE, b"x" * 60),),
    "an XA COMMIT of nothing": (_sql("XA COMMIT X'61',X'',1"),),
    "an XA PREPARE of another name": (
        *(_sql("XA START X'61',X'',1"), _INSERT, _sql("XA END X'61',X'',1")),
        wire(T.XA_PREPARE, b"\0" + struct.pack("<III", 1, 1, 0) + b"b"),
    ),
}
"""Events behind a GTID. A line more is an attack more."""


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("attack", [*INSIDE, *AROUND])
def test_an_odd_log_reaches_nothing_that_the_filter_leaves_out(attack: str, flavor: Flavor) -> None:
    is_mariadb = flavor is Flavor.MARIADB
    if attack in INSIDE:
        begin = [mariadb_gtid(1, _IN_TRANSACTION)] if is_mariadb else [mysql_gtid(1), _sql("BEGIN")]
        events = (*begin, *INSIDE[attack], _XID)
    else:
        events = (mariadb_gtid(1, _STANDALONE) if is_mariadb else mysql_gtid(1), *AROUND[attack])
    rules = ChannelRules(Selection(exclude_databases=("other",)))
    found, said = list[RowsPart | StatementPart](), "binlog.000001:"
    try:
        reader = LogReader(memoryview(log(*events, log_format=MARIADB if is_mariadb else MYSQL)), "binlog.000001")
        for transaction in transactions(reader):
            parts = dissect(transaction, LogFormat(reader.format, reader.name, 0, flavor, rules))
            found += [part for part in parts if isinstance(part, RowsPart | StatementPart)]
    except BinlaneError as exc:
        # what came apart before it is looked at, too
        said = str(exc)
    assert said.startswith("binlog.000001:")
    for part in found:
        if isinstance(part, RowsPart):
            assert part.table.key.database == "app"
        else:
            assert {key.database for key in part.facts.tables} <= {"app"}
