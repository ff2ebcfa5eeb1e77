"""What a file holds does not depend on how it is cut, and what is not surely of other databases is of any."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from binlane.binlog.vector import inflated_segment
from binlane.binlog.wire import MAGIC, EventType
from binlane.restore import file_content
from binlane.restore.file_content import FileContent
from binlane.source.protocol import LOG_START, LogChunk
from tests.unit.binlog.cases import crc, mariadb_gtid, payload, query, wire
from tests.unit.plan.logs import HEAD, IN_TRANSACTION, XID, alone, ends, insert, prepare, rows, statements, table_map

Events = tuple[bytes, ...]


def read(events: Events, sizes: list[int]) -> FileContent:
    """In chunks of so many events."""
    content, at, first = FileContent("w"), len(HEAD), 0
    content.take(LogChunk("binlog.000007", LOG_START, HEAD[len(MAGIC) :]))
    for size in sizes:
        data = b"".join(map(crc, events[first : first + size]))
        content.take(LogChunk("binlog.000007", at, data))
        at, first = at + len(data), first + size
    return content


def found(content: FileContent) -> tuple[dict[tuple[str, str], int], Counter[str], set[str], int]:
    changes, transactions = np.zeros(len(content.tables), np.int64), Counter[str]()
    for piece in content.pieces:
        changes[piece.tables] += piece.rows
        transactions.update(piece.transactions)
    return dict(zip(content.tables, changes.tolist(), strict=True)), transactions, content.named, content.of_any


def test_any_cut_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    # a statement over two tables whose rows are in several events
    wide = (
        mariadb_gtid(3, IN_TRANSACTION), query(b"BEGIN"), table_map(1, "a"), table_map(2, "b"),
        insert(1, range(3), ends=False), insert(2, range(4), ends=False), insert(1, range(5)), table_map(3, "c"),
        insert(3, [1]), table_map(1, "a"), insert(1, [1]), query(b"COMMIT"),
    )  # fmt: skip
    events = (*rows(1, "a", "b"), *rows(2, "a", count=2), *wide, *alone(4, "CREATE TABLE d.t (i INT)"), *rows(5, "b"))
    expected = (
        {("a", "t"): 1 + 2 + 8 + 1, ("b", "t"): 1 + 4 + 1, ("c", "t"): 1}, Counter({"a": 3, "b": 3, "c": 1}), {"d"}, 0
    )  # fmt: skip
    assert found(read(events, [len(events)])) == expected
    choose = random.Random(1)
    for _ in range(30):
        monkeypatch.setattr(file_content, "_MOST", choose.choice([1, 100, 1 << 22]))
        monkeypatch.setattr(file_content, "_PIECE", choose.choice([1, 200, 1 << 20]))
        sizes = list[int]()
        while sum(sizes) < len(events):
            sizes.append(choose.randint(1, 6))
        content = read(events, sizes)
        assert found(content) == expected, sizes
        assert all(one.end == other.start for one, other in zip(content.pieces, content.pieces[1:], strict=False))


def test_compressed_transactions_are_inflated_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is inflated together has a limit; what is beyond it would be of any database."""
    events = [payload(query(b"BEGIN"), table_map(1, name), insert(1, range(9)), XID) for name in "abab"]
    monkeypatch.setattr(inflated_segment, "_BUDGET", 400)
    monkeypatch.setattr(file_content, "_PIECE", 1)
    content = read(tuple(events), [4])
    assert found(content)[0] == {("a", "t"): 18, ("b", "t"): 18}
    assert content.of_any == 0
    assert len(content.pieces) == 4


def test_a_piece_has_the_tables_of_its_own_events_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_content, "_PIECE", 1)
    events = (*rows(1, "a"), *rows(2, "b"))
    content = read(events, [len(events)])
    assert [piece.tables.tolist() for piece in content.pieces] == [[], [0], [0], [], [], [1], [1], []]


KNOWN = {
    "CREATE TABLE b.t (i INT)": {"b"},
    "ALTER TABLE t ADD COLUMN j INT": {"a"},
    "DROP TABLE IF EXISTS b.t, c.t": {"b", "c"},
    "RENAME TABLE b.t TO c.t": {"b", "c"},
    "CREATE TABLE b.t (i INT, FOREIGN KEY (i) REFERENCES c.p (i))": {"b", "c"},
    "CREATE VIEW b.v AS SELECT * FROM c.t": {"b", "c"},
    "TRUNCATE TABLE b.t": {"b"},
    "DROP DATABASE b": {"b"},
}
OF_ANY = (
    "INSERT INTO b.t VALUES (1)",
    "UPDATE b.t SET i = 1",
    "CREATE TEMPORARY TABLE b.t (i INT)",
    "CREATE TABLE b.t AS SELECT * FROM b.s",
    "CREATE USER u",
    "FLUSH PRIVILEGES",
    "CALL b.p()",
    "XA COMMIT X'31',X'',1",
    "ROLLBACK",
    "SAVEPOINT s",
    "this is no statement",
    # as the end of a BEGIN
    "DROP TABLE x /*\0BEGIN",
)


@pytest.mark.parametrize("text", KNOWN)
def test_ddl_is_of_the_databases_that_it_names(text: str) -> None:
    content = read(alone(1, text), [2])
    assert (content.named, content.of_any) == (KNOWN[text], 0)


@pytest.mark.parametrize("text", OF_ANY)
def test_statements_that_may_change_more_than_they_name_are_of_any_database(text: str) -> None:
    for events in (alone(1, text), statements(1, text)):
        assert read(events, [len(events)]).of_any == 1


def test_events_that_are_not_read_here_are_of_any_database() -> None:
    variable = wire(EventType.INTVAR, b"\2" + (7).to_bytes(8, "little"))
    for events in (prepare(1, "x", "a"), ends(1, "COMMIT", "x"), (variable,), (wire(200, b"new", flags=0x80),)):
        assert read(events, [len(events)]).of_any == 1
    assert read((*rows(1, "a"), XID), [5]).of_any == 0
