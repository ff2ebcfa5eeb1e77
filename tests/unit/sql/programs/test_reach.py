"""What statements reach by the texts behind their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from binlane.model import TableKey
from binlane.sql.programs.reach import Reach


class Counted(Mapping[TableKey, frozenset[TableKey]]):
    """Names of views, of which one is looked up at a time."""

    def __init__(self, views: Mapping[TableKey, frozenset[TableKey]]) -> None:
        self.views, self.passes = views, 0

    def __getitem__(self, key: TableKey) -> frozenset[TableKey]:
        return self.views[key]

    def __iter__(self) -> Iterator[TableKey]:
        self.passes += 1
        return iter(self.views)

    def __len__(self) -> int:
        return len(self.views)


def test_all_views_are_passed_once_however_many_triggers_statements_may_fire() -> None:
    tables = [TableKey("a", f"t{number}") for number in range(20)]
    views = Counted({TableKey("a", f"v{number}"): frozenset({table}) for number, table in enumerate(tables)})
    writer = TableKey("a", "p()")
    reach = Reach(
        {}, executed={writer: frozenset({TableKey("a", "v7")})}, meant=views, events={writer: frozenset({"INSERT"})}
    )

    fired = [table for table in tables for _ in range(3) if reach.fires(table, frozenset({"INSERT"}), (writer,))]

    assert fired == [TableKey("a", "t7")] * 3
    assert views.passes == 1
