"""Tables without a usable key: what both servers have is forgotten as soon as both have sent it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import pytest

from binlane.model import Flavor, TableKey
from binlane.schema.model import Column
from binlane.verify.rows.column_text import ComparedTable
from binlane.verify.rows.sides import Pair, Side

TABLE: Final = TableKey("app", "t")
COLUMNS: Final = (Column("n", 1, "int", nullable=True), Column("j", 2, "json", nullable=True))
Rows = Sequence[tuple[Any, ...]]


@dataclass
class Server:
    """Answers sums, and streams its rows; it gives no list of them."""

    rows: Rows
    total: int
    streams: int = 0

    def side(self, *, is_source: bool) -> Side:
        return Side(self.execute, self.stream, lambda _sql: [], is_source)

    def execute(self, sql: str) -> Rows:
        assert "COUNT(*)" in sql
        return [(len(self.rows), self.total)]

    def stream(self, sql: str) -> Iterator[tuple[Any, ...]]:
        assert "COUNT" not in sql
        self.streams += 1
        yield from self.rows


def whole(source: Server, target: Server, *flavors: Flavor) -> tuple[int, list[tuple[Any, Any]]]:
    table = ComparedTable(TABLE, TABLE, COLUMNS, (), cast(Any, flavors or (Flavor.MYSQL, Flavor.MYSQL)))
    pair = Pair(source.side(is_source=True), target.side(is_source=False))
    rows, found = pair.whole(table)
    assert all((each.table, each.key) == (TABLE, ()) for each in found)
    return rows, [(each.source, each.target) for each in found]


ONE, TWO, NONE = ("1", "{}"), ("2", "{}"), (None, None)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ([ONE, TWO], [TWO, ONE], []),
        ([ONE, ONE, ONE, TWO], [ONE, TWO], [(ONE, None), (ONE, None)]),
        ([ONE], [ONE, ONE, NONE], [(None, ONE), (None, NONE)]),
        ([NONE, ONE], [TWO, ONE], [(NONE, None), (None, TWO)]),
        ([("1", "{}'")], [("1,'{}'", "")], [(("1", "{}'"), None), (None, ("1,'{}'", ""))]),
    ],
)
def test_each_row_counts_as_often_as_a_server_has_it(source: Rows, target: Rows, expected: list[Any]) -> None:
    servers = Server(source, 1), Server(target, 2)
    assert whole(*servers) == (len(target), expected)
    # no row differs: none is read once more
    assert {each.streams for each in servers} == {1 + bool(expected)}


def test_equal_sums_read_no_row() -> None:
    servers = Server([ONE], 7), Server([ONE], 7)
    assert whole(*servers) == (1, [])
    assert [each.streams for each in servers] == [0, 0]


def test_documents_of_two_families_are_equal_by_their_values() -> None:
    mariadbs = [(str(number), f'{{"b":1,"a":{number}}}') for number in range(1_000)]
    mysqls = [(str(number), f'{{"a": {number}, "b": 1}}') for number in range(1_000)]
    other = [*mysqls[:-1], ("999", '{"a": 999, "b": 2}')]
    flavors = Flavor.MARIADB, Flavor.MYSQL
    assert whole(Server(mariadbs, 1), Server(mysqls, 2), *flavors) == (1_000, [])
    rows, found = whole(Server(mariadbs, 1), Server(other, 2), *flavors)
    assert (rows, [(ours is None, theirs is None) for ours, theirs in found]) == (1_000, [(False, True), (True, False)])
    assert {(ours or theirs)[0] for ours, theirs in found} == {"999"}
