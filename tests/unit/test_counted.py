"""A number and what it counts: one row, two rows, nowhere "1 rows"."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import transactions
from binlane.model import Flavor, RowCounts, plural
from binlane.plan.segment.pieces import summary
from binlane.plan.transaction.decode import LogFormat, dissect
from tests.unit.plan import logs

ROOT: Final = Path(__file__).parents[2]
NOUNS: Final = (
    "inserts|updates|deletes|rows|row changes|transactions|blocks|barriers|lanes|tables|databases|segments|shards|"
    "things|columns|attempts|accounts|prepared XA"
)


@pytest.mark.parametrize(
    ("count", "nouns", "expected"),
    [
        (0, ("row",), "0 rows"),
        (1, ("row",), "1 row"),
        (2, ("row change",), "2 row changes"),
        (1_204_117, ("row",), "1,204,117 rows"),
        (1, ("thing stands", "things stand"), "1 thing stands"),
        (3, ("thing stands", "things stand"), "3 things stand"),
    ],
)
def test_a_noun_goes_with_its_number(count: int, nouns: tuple[str, ...], expected: str) -> None:
    assert plural(count, *nouns) == expected


def test_row_changes_are_told_by_kind() -> None:
    assert str(RowCounts(1, 2, 0)) == "1 insert, 2 updates, 0 deletes"
    assert str(RowCounts(1_000, 1, 1)) == "1,000 inserts, 1 update, 1 delete"


@pytest.mark.parametrize(("count", "expected"), [(1, "a.t: 1 insert"), (2, "a.t: 2 inserts")])
def test_the_changes_of_a_skipped_transaction_are_counted_by_table(count: int, expected: str) -> None:
    data, segment = logs.segment_of([logs.rows(1, "a", count=count)])
    reader = LogReader(data, segment.source_file)
    parts = dissect(next(transactions(reader)), LogFormat(reader.format, "log", 0, Flavor.MARIADB))
    assert summary(list(parts)) == expected


def test_messages_form_plurals_by_one_function() -> None:
    """Constants in capitals are known to be many."""
    by_hand = re.compile(rf"\{{(?![A-Z_]+:)(?:[^{{}}]*:,|len\([^{{}}]*\)|[^{{}}]*\.lanes|count)\}} (?:{NOUNS})\b")
    found = [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for folder in ("plugins", "lab")
        for file in (ROOT / folder).rglob("*.py")
        for match in by_hand.finditer(file.read_text())
    ]
    assert found == []
