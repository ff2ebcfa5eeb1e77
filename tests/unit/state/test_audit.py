"""Which rows of the audit a new one pushes out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Delete, Select
from sqlalchemy.dialects import mysql

from binlane.state.records.audit import begin_entry


class Target:
    """A target whose channel has more rows than are kept, of which this is the first young one."""

    def __init__(self, first_young: int | None) -> None:
        self.answers: list[int | None] = [900, first_young]
        self.deleted = ""

    def execute(self, statement: Any) -> SimpleNamespace:
        if isinstance(statement, Delete):
            dialect = mysql.dialect()
            self.deleted = str(statement.compile(dialect=dialect, compile_kwargs={"literal_binds": True}))
        answer = self.answers.pop(0) if isinstance(statement, Select) else None
        return SimpleNamespace(inserted_primary_key=(10_900,), scalar_one_or_none=lambda: answer)


@pytest.mark.parametrize(("first_young", "last"), [(7, 7), (2_000, 900), (None, 900)])
def test_the_rows_in_front_of_the_first_young_one_go_and_no_other_is_looked_at(
    first_young: int | None, last: int
) -> None:
    target: Any = Target(first_young)
    begin_entry(target, "c", "stop", {}, by="u")

    [condition] = target.deleted.split("WHERE ")[1:]
    assert condition.replace("binlane.", "").replace("`", "") == f"audit.channel = 'c' AND audit.id < {last}"
