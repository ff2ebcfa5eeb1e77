"""Rows that differ, as an operator reads them: keys and values as text, whatever their bytes are."""

from __future__ import annotations

import pytest

from binlane.model import TableKey
from binlane.schema.model import Column, Generated, Key, KeyColumn, Table
from binlane.verify.rows.column_text import as_text
from binlane.verify.rows.row_text import changed_values, key_values, words

HASH = "ab12" * 16
CASES: list[tuple[Column, str | None, str | None]] = [
    (Column("a", 1, "int"), "-7", "-7"),
    (Column("a", 1, "int"), None, None),
    (Column("a", 1, "varchar", charset="latin1"), "E927", "'é'''"),
    (Column("a", 1, "varchar", charset="utf8mb4"), "FF", "X'ff'"),
    (Column("a", 1, "char", charset="utf8mb4"), "1B5B324A", "'\x1b[2J'"),
    (Column("a", 1, "varbinary"), "00FF", "X'00ff'"),
    (Column("a", 1, "text", charset="utf8mb4"), f"12:{HASH}", "12 bytes of SHA-256 ab12ab12ab12..."),
    (Column("a", 1, "text", charset="utf8mb4"), "C39F", "'ß'"),
    (Column("a", 1, "json"), f"1:{HASH}", "1 byte of SHA-256 ab12ab12ab12..."),
    (Column("a", 1, "json"), '{"a": "ß"}', '\'{"a": "ß"}\''),
    (Column("a", 1, "point"), f"50:{HASH}", "25 bytes of SHA-256 ab12ab12ab12..."),
    (Column("a", 1, "varchar", charset="latin1"), HASH.upper(), f"'{bytes.fromhex(HASH).decode('latin-1')}'"),
    (Column("a", 1, "datetime"), "2026-01-02 03:04:05", "'2026-01-02 03:04:05'"),
    (Column("a", 1, "bit", precision=9), "5", "b'101'"),
    (Column("a", 1, "enum", members=("x", "y'")), "2", "'y'''"),
    (Column("a", 1, "enum", members=("x", "y")), "0", "''"),
    (Column("a", 1, "set", members=("x", "y", "z")), "5", "'x,z'"),
    (Column("a", 1, "decimal", precision=5, scale=2), "1.50", "1.50"),
    (Column("a", 1, "year"), "2026", "2026"),
]


@pytest.mark.parametrize(("column", "value", "expected"), CASES)
def test_a_value_is_text_in_the_form_of_inspect(column: Column, value: str | None, expected: str | None) -> None:
    assert as_text(column, value) == expected


COLUMNS = (
    Column("n", 1, "int"),
    Column("code", 2, "varchar", charset="latin1"),
    Column("v", 3, "int", generated=Generated.VIRTUAL),
    Column("note", 4, "varchar", charset="utf8mb4"),
)
PRIMARY = Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("code"), KeyColumn("n")))
TABLE = Table(TableKey("shop", "t"), "InnoDB", COLUMNS, (PRIMARY,))


def test_a_key_is_named_by_its_columns_in_the_key_s_order() -> None:
    assert key_values(TABLE, ("E9", "7")) == (("code", "'é'"), ("n", "7"))
    assert words(key_values(TABLE, ("E9", "7"))) == "code='é' n=7"
    assert key_values(TABLE, ("7",)) == key_values(None, ("E9", "7")) == ()


def test_an_update_shows_the_changed_columns_and_a_lone_row_all_but_its_key() -> None:
    ours, theirs = ("7", "E9", "61"), ("7", "E9", None)
    assert changed_values(TABLE, ours, theirs, ("note",)) == (("note", None, "'a'"),)
    assert changed_values(TABLE, ours, None, ()) == (("note", None, "'a'"),)
    assert changed_values(TABLE, None, ours, ()) == (("note", "'a'", None),)
    bare = Table(TABLE.key, "InnoDB", COLUMNS)
    assert [name for name, *_ in changed_values(bare, ours, None, ())] == ["n", "code", "note"]
    # it was altered since
    assert changed_values(TABLE, ("7", "E9"), None, ()) == changed_values(None, ours, None, ()) == ()


def test_long_values_and_rows_are_cut() -> None:
    assert words([("a", "x" * 81), ("b", None)]) == f"a={'x' * 80}... b=NULL"
    assert len(words([("a", "x" * 70)] * 9)) == 403
