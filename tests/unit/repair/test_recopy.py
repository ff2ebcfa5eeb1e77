"""How a table is compared behind its copy: a table with JSON between the families fits no memory as a whole."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from binlane.model import Flavor, TableKey
from binlane.repair.recopy import compared_rows
from binlane.schema.model import Column
from binlane.verify.rows.column_text import ComparedTable
from binlane.verify.rows.sides import Difference

TABLE: Final = TableKey("app", "t")
ID: Final = Column("id", 1, "int")
JSON: Final = Column("j", 2, "json", nullable=True)
ONE: Final = Difference(TABLE, ("1",), ("1", "1"), ("1", "2"), ("j",))
ENDS: Final = {None: ("10",), ("10",): ("20",), ("20",): None}


class Servers:
    """A pair of servers whose table has 25 rows in ranges of 10; the second range shows ``differing``."""

    def __init__(self, *differing: Difference) -> None:
        self.differing, self.read = differing, list[object]()

    def end_of_chunk(self, table: ComparedTable, after: Any, rows: int) -> Any:
        return ENDS[after]

    def in_range(self, table: ComparedTable, after: Any, end: Any) -> tuple[int, list[Difference]]:
        self.read.append((after, end))
        return 5 if end is None else 10, list(self.differing) if after == ("10",) else []

    def whole(self, table: ComparedTable) -> tuple[int, list[Difference]]:
        self.read.append("whole")
        return 25, list(self.differing)


def table(*flavors: Flavor, has_key: bool = True) -> ComparedTable:
    return ComparedTable(TABLE, TABLE, (ID, JSON), (ID,) if has_key else (), cast(Any, flavors))


RANGES: Final[list[object]] = [(None, ("10",)), (("10",), ("20",)), (("20",), None)]


@pytest.mark.parametrize(
    ("flavors", "has_key", "differing", "expected", "read"),
    [
        ((Flavor.MARIADB, Flavor.MYSQL), True, (), (25, 0), RANGES),
        ((Flavor.MARIADB, Flavor.MYSQL), True, (ONE,), (25, 1), [*RANGES, "whole"]),
        ((Flavor.MARIADB, Flavor.MYSQL), False, (), (25, 0), ["whole"]),
        ((Flavor.MYSQL, Flavor.MYSQL), True, (), (25, 0), ["whole"]),
    ],
    ids=["equal", "different", "no key", "one family"],
)
def test_rows_are_compared_range_by_range_where_their_texts_differ(
    flavors: tuple[Flavor, ...],
    has_key: bool,
    differing: tuple[Difference, ...],
    expected: tuple[int, int],
    read: list[object],
) -> None:
    servers = Servers(*differing)
    assert compared_rows(cast(Any, servers), table(*flavors, has_key=has_key), 25) == expected
    assert servers.read == read


def test_rows_that_no_range_shows_are_compared_as_a_whole() -> None:
    servers = Servers()
    assert compared_rows(cast(Any, servers), table(Flavor.MARIADB, Flavor.MYSQL), 26) == (25, 0)
    assert servers.read == [*RANGES, "whole"]
