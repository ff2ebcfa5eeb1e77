"""Every byte of small logs of every kind, damaged where no checksum guards it: an error of the project's own, no other.

Read as far as a window reads it: events, transactions, what their statements and rows are, and the values of the rows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.row_values import RowDecoder
from binlane.binlog.rows import RowsEvent
from binlane.binlog.table_map import columns_of
from binlane.binlog.transactions import IncompleteTail, transactions
from binlane.errors import BinlaneError
from binlane.model import Flavor
from binlane.plan.transaction.decode import LogFormat, RowsPart, StatementPart, dissect
from lab.servers import PrivateServer
from tests.unit.binlog.test_real_logs import logged

TABLE: Final = "CREATE TABLE t (id INT PRIMARY KEY, s VARCHAR(40), d DECIMAL(9,2), at DATETIME(3), j JSON)"
ROWS: Final = (
    """INSERT INTO t VALUES (1, 'one', 1.5, NOW(3), '{"a": [1, "x", null]}'), (2, NULL, NULL, NULL, NULL)""",
    "UPDATE t SET s = CONCAT(s, 'é'), j = JSON_SET(j, '$.a[0]', 2) WHERE id = 1",
    "DELETE FROM t WHERE id = 2",
)
STATEMENTS: Final = (
    "SET SESSION binlog_format = STATEMENT, @u = 'é', @n = 5, timestamp = 1700000000.25",
    "INSERT INTO t (id, s) VALUES (3 + @n, CONCAT(@u, RAND()))",
    "BEGIN",
    "SAVEPOINT a",
    "UPDATE t SET s = 'x'",
    "ROLLBACK TO a",
    "DELETE FROM t",
    "COMMIT",
)
LOADED: Final = ("SET SESSION binlog_format = STATEMENT", "LOAD DATA INFILE '{file}' INTO TABLE t (id, s)")
XA: Final = (
    *("XA START 'a', 'b', 7", "INSERT INTO t (id) VALUES (5)", "XA END 'a', 'b', 7", "XA PREPARE 'a', 'b', 7"),
    "XA COMMIT 'a', 'b', 7",
)
PACKED: Final = {
    Flavor.MARIADB: ("SET GLOBAL log_bin_compress_min_len = 10", "SET GLOBAL log_bin_compress = ON"),
    Flavor.MYSQL: ("SET SESSION binlog_transaction_compression = ON, binlog_row_value_options = PARTIAL_JSON",),
}
KINDS: Final = {"rows": ROWS, "statements": STATEMENTS, "load": LOADED, "xa": XA, "packed": (*ROWS, *STATEMENTS)}


@pytest.fixture(params=list(Flavor))
def source(request: pytest.FixtureRequest, clean_databases: Callable[[PrivateServer], None]) -> Iterator[PrivateServer]:
    """A source that writes no checksums and no names of columns: bytes that nothing guards, and few of them."""
    found: PrivateServer = request.getfixturevalue(f"{request.param}_source")
    clean_databases(found)
    names = ["binlog_checksum"] + ["log_bin_compress", "log_bin_compress_min_len"] * (found.flavor is Flavor.MARIADB)
    before = {name: found.query(f"SELECT @@GLOBAL.{name}")[0][0] for name in names}
    found.query("SET GLOBAL binlog_checksum = NONE")
    yield found
    for name, value in before.items():
        found.query(f"SET GLOBAL {name} = {value}")


def read(data: bytes, name: str) -> list[object]:
    """All that a window and ``inspect`` find in a log. Raises what they raise."""
    reader, tails = LogReader(data, name), list[IncompleteTail]()
    found: list[object] = []
    for transaction in transactions(reader, tails.append):
        log = LogFormat(reader.format, name, 0, reader.format.flavor)
        for part in dissect(transaction, log):
            match part:
                case RowsPart():
                    table = part.table.table
                    event = RowsEvent.parse(part.event[4], memoryview(part.event)[19:])
                    decoder = RowDecoder(table, columns_of(table, reader.format.flavor))
                    found += decoder.changes(event)
                case StatementPart():
                    found.append(part.sql)
    return [*found, *tails]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.paired
def test_a_damaged_byte_is_an_error_of_the_project_and_never_another(
    source: PrivateServer, kind: str, tmp_path: Path
) -> None:
    file = tmp_path / "loaded"
    file.write_text("7\tseven\n8\teight\n")
    file.chmod(0o644)
    packed = PACKED[source.flavor] if kind == "packed" else ()
    path = logged(source, TABLE, *packed, *(one.format(file=file) if kind == "load" else one for one in KINDS[kind]))
    data = path.read_bytes()
    assert len(read(data, path.name)) >= 2
    assert len(data) < 8_000
    unchanged = 0
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= (0x01, 0x80, 0xFF)[at % 3]
        with contextlib.suppress(BinlaneError):
            read(bytes(damaged), path.name)
            unchanged += 1
    assert 0 < unchanged < len(data)
