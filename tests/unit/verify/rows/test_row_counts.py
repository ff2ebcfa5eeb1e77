"""Rows without a key: a difference is explained by the log as often as the log has a change that explains it."""

from __future__ import annotations

import pytest

from binlane.binlog.row_values import ABSENT, Change, Image
from binlane.binlog.rows import RowsKind
from binlane.binlog.types.json_binary import JsonDiffs
from binlane.model import Flavor, TableKey
from binlane.schema.model import Column
from binlane.verify.rows.column_text import ComparedTable, Row
from binlane.verify.rows.row_counts import RowCounts
from binlane.verify.rows.row_states import ImageTexts, same_cell
from binlane.verify.rows.sides import Difference

NAME = TableKey("d", "t")
COLUMNS = (Column("a", 1, "int"), Column("b", 2, "double"))
MYSQL = Flavor.MYSQL, Flavor.MYSQL


def counts(*changes: tuple[Image | None, Image | None], flavors: tuple[Flavor, Flavor] = MYSQL) -> RowCounts:
    texts = ImageTexts(ComparedTable(NAME, NAME, COLUMNS, (), flavors), (0, 1), ())
    found = RowCounts()
    for before, after in changes:
        kind = RowsKind.INSERT if before is None else RowsKind.DELETE if after is None else RowsKind.UPDATE
        found.take(texts, Change(kind, before, after))
    return found


def missing(*row: str | None) -> Difference:
    return Difference(NAME, (), row, None)


def extra(*row: str | None) -> Difference:
    return Difference(NAME, (), None, row)


ZERO, NEGATIVE = missing("1", "0"), missing("1", "-0")


@pytest.mark.parametrize(
    ("changes", "explained", "drift"),
    [
        pytest.param([(None, (1, None))], missing("1", None), extra("1", None), id="added"),
        pytest.param([((1, None), None)], extra("1", None), missing("1", None), id="removed"),
        pytest.param([((1, 2.5), (3, 2.5))], extra("1", "2.5"), missing("1", "2.5"), id="changed-old"),
        pytest.param([((1, 2.5), (3, 2.5))], missing("3", "2.5"), extra("3", "2.5"), id="changed-new"),
        pytest.param([((1, 2.5), (3, ABSENT))], missing("3", "2.5"), missing("3", None), id="partial-image"),
        pytest.param([(None, (1, 1e22))], missing("1", "1e22"), missing("1", "1e21"), id="spelled-otherwise"),
        pytest.param([(None, (1, 1.0))], missing("1", "1"), missing("2", "1"), id="another-row"),
    ],
)
def test_what_the_log_explains(
    changes: list[tuple[Image | None, Image | None]], explained: Difference, drift: Difference
) -> None:
    found = counts(*changes)
    assert not found.take_back(COLUMNS, drift)
    assert found.take_back(COLUMNS, explained)
    assert not found.take_back(COLUMNS, explained), "one change explains one row"


@pytest.mark.parametrize("value", [0.0, -0.0])
def test_zeros_of_both_signs_are_two_values_of_mysql_alone(value: float) -> None:
    ours, other = (ZERO, NEGATIVE) if str(value) == "0.0" else (NEGATIVE, ZERO)
    assert [counts((None, (1, value))).take_back(COLUMNS, one) for one in (ours, other)] == [True, False]
    # MariaDB, and MySQL beside it, show -0 as 0
    for flavors in ((Flavor.MARIADB, Flavor.MARIADB), (Flavor.MYSQL, Flavor.MARIADB)):
        assert counts((None, (1, value)), flavors=flavors).take_back(COLUMNS, ZERO)


def test_a_zero_of_the_other_sign_is_another_cell() -> None:
    assert same_cell(COLUMNS[1], "-0.0", "-0")
    assert same_cell(COLUMNS[1], "1e+22", "1e22")
    assert not same_cell(COLUMNS[1], "0.0", "-0")


def test_equal_rows_are_explained_as_often_as_the_log_adds_them() -> None:
    row: Row = ("1", None)
    found = counts((None, (1, None)), (None, (1, None)))
    assert [found.take_back(COLUMNS, missing(*row)) for _ in range(3)] == [True, True, False]


def test_a_value_that_the_log_does_not_tell_may_explain_any_row() -> None:
    found = counts(((1, None), (1, JsonDiffs(()))))
    assert not found.is_complete
    assert found.take_back(COLUMNS, missing("7", "8"))
