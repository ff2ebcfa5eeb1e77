"""History counts up to the time that the channel gives, not to one of the target's own periods."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from binlane.model import Flavor, TableKey
from binlane.schema.model import Column, Schema, Table
from binlane.verify.history import history_difference
from binlane.verify.rows.column_text import ComparedTable

KEY: Final = TableKey("app", "t")
COLUMNS: Final = (Column("id", 1, "int"),)


@pytest.mark.parametrize(("seconds", "where"), [(1_700_000_000.9, "FROM_UNIXTIME(1700000000)"), (0.0, "NOW(6)")])
def test_rows_that_have_ended_before_the_given_time_are_counted(seconds: float, where: str) -> None:
    asked: list[str] = []

    class Counting:
        """Both servers, of which nothing but the count of their past rows is asked."""

        def history(self, _: ComparedTable, condition: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
            asked.append(condition)
            return (2, 5), (1, 5)

    versioned = Schema(Flavor.MARIADB, "11.8.2", tables={KEY: Table(KEY, "InnoDB", COLUMNS, system_versioned=True)})
    flavors = Flavor.MARIADB, Flavor.MARIADB
    table = ComparedTable(KEY, KEY, COLUMNS, (), flavors)
    found = history_difference(cast(Any, Counting()), table, (versioned, versioned), seconds)
    assert asked == [f"`row_end` < {where}"]
    assert found is not None
    assert found.note.startswith("history: 2 rows on the source, 1 on the target")
