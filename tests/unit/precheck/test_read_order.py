"""In which order both servers read a table is known only where both definitions are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.model import TableKey
from binlane.precheck.statements.read_order import common_engine, is_in_key_order
from binlane.schema.model import Column, Key, KeyColumn, Schema, Table
from tests.unit.precheck.situations import schema, situation

TABLE = Table(
    TableKey("a", "p"),
    "InnoDB",
    (Column("id", 1, "int", nullable=False),),
    (Key("PRIMARY", True, True, (KeyColumn("id"),)),),
)


@pytest.mark.parametrize(
    ("source", "engine"),
    [
        (schema(TABLE), "innodb"),
        (schema(replace(TABLE, engine="MyISAM")), ""),
        (schema(), ""),
        (None, ""),
    ],
    ids=["the same", "another engine", "without the table", "an archive"],
)
def test_a_table_is_read_by_its_engine_if_both_servers_have_it_so(source: Schema | None, engine: str) -> None:
    of = situation(tables=schema(TABLE), source=source)
    assert common_engine(of, TABLE) == engine
    assert is_in_key_order(of, TABLE) is (engine == "innodb")


@pytest.mark.parametrize(("keys", "expected"), [(TABLE.keys, True), ((), False)], ids=["the same", "none"])
def test_rows_lie_in_the_order_of_a_key_that_both_servers_have(keys: tuple[Key, ...], expected: bool) -> None:
    of = situation(tables=schema(TABLE), source=schema(replace(TABLE, keys=keys)))
    assert is_in_key_order(of, TABLE) is expected
    assert not is_in_key_order(of, replace(TABLE, keys=()))


def test_a_window_that_is_begun_does_not_ask_the_source_again() -> None:
    assert is_in_key_order(situation(tables=schema(TABLE), begun=True), TABLE)
