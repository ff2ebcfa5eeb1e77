"""Literals of statements that are no text in their client's character set: values of parameters in another one."""

from __future__ import annotations

import pytest

from binlane.binlog.types.collations import charset_id
from binlane.model import BlockHeader, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.situation.situation import Needs
from binlane.schema.model import Column, Table
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import applying, said, schema, situation

U = Table(TableKey("shop", "u"), "InnoDB", (Column("id", 1, "int"), Column("s", 2, "varchar", charset="utf8mb4")))
B = Table(TableKey("shop", "b"), "InnoDB", (Column("s", 1, "varchar", charset="utf8mb4"), Column("d", 2, "varbinary")))
ROWS = b", ".join([b"(1, 'a')"] * 100)


def found(statement: bytes, charset: str = "utf8mb4", *, allow_unsafe: bool = False) -> list[str]:
    made = situation(tables=schema(U, B), needs=Needs(statements=True), channel=applying(allow_unsafe=allow_unsafe))
    context = SessionContext(database="shop", charset_client=charset_id(charset))
    item = Item(ItemKind.STATEMENT, statement, context=context)
    header = BlockHeader(5, 5, 1, LogPosition("binlog.000007", 4711), "", 0.0)
    vars(made).update(
        transactions_with=lambda pattern: [(LaneStatement(0, header, item), header)] * bool(pattern.search(statement))
    )
    return said(made, "literal-characters")


@pytest.mark.parametrize(
    "statement",
    [
        b"INSERT INTO u VALUES (1, 'M\xfcller')",
        b"INSERT INTO u (id, s) VALUES (1, 'M\xc3\xbcller'), (2, 'M\xfcller'), (3, 'c')",
        b"INSERT INTO u VALUES " + ROWS + b", (2, 'M\xfcller')",
        b"INSERT INTO u VALUES (2, 'M\xfcller'), " + ROWS,
        b"UPDATE u SET id = 2 WHERE s = 'M\xfcller'",
        b"UPDATE u SET id = 2 WHERE (s = 'a' OR s IN ('b', 'M\xfcller'))",
        b"INSERT INTO u VALUES (1, '\\0M\\0\xfc')",
    ],
)
def test_a_literal_that_is_no_text_of_its_client_is_refused(statement: bytes) -> None:
    [one] = found(statement)
    assert "statement of seqno 5" in one
    assert "expected literals in utf8mb4, its client's character set" in one
    assert found(statement, allow_unsafe=True) == []


@pytest.mark.parametrize(
    "statement",
    [
        b"INSERT INTO u VALUES (1, 'M\xc3\xbcller')",
        b"INSERT INTO u VALUES (1, _latin1'M\xfcller')",
        b"INSERT INTO u VALUES (2, _latin1'M\xfcller'), " + ROWS,
        b"INSERT INTO u VALUES (1, HEX('M\xfcller'))",
        b"INSERT INTO u VALUES (1, CONCAT('a', (SELECT 'M\xfcller')))",
        b"INSERT INTO b VALUES ('a', 'M\xfcller')",
        b"INSERT INTO u SELECT 1, s FROM b WHERE d = 'M\xfcller'",
        b"INSERT INTO unknown VALUES (1, 'M\xfcller')",
        b"INSERT INTO u VALUES (1, 'a') /* M\xfcller */",
    ],
)
def test_bytes_that_a_client_may_have_written_itself_are_taken(statement: bytes) -> None:
    assert found(statement) == []


@pytest.mark.parametrize("charset", ["latin1", "binary"])
def test_bytes_of_a_client_to_which_each_is_a_character_are_taken(charset: str) -> None:
    assert found(b"INSERT INTO u VALUES (1, 'M\xfcller')", charset) == []
