"""Patterns of tables: where they divide, and the one that a single table matches."""

from __future__ import annotations

import itertools

import pytest

from binlane.config.kinds import TABLE_PATTERNS
from binlane.model import TableKey
from binlane.shards.selection import Selection, pattern_of, split_pattern

NAMES = ("a", "a.b", "b", "b.t", "t", "a*", "a?", "[a]", "[!a]", "a[.]b", "a]", "[", "[.", "[].]", "t_x", "t.x", "a?b")
KEYS = [TableKey(database, table) for database, table in itertools.product(NAMES, NAMES)]


def test_the_pattern_of_a_table_is_one_of_the_channel_file_and_matches_no_other_table() -> None:
    for key in KEYS:
        pattern = pattern_of(key)
        assert TABLE_PATTERNS.accepts([pattern]), pattern
        left_out = Selection(exclude_tables=(pattern,))
        assert [other for other in KEYS if left_out.table(other) is not None] == [key]


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("a.t", ("a", "t")),
        ("a[.]b.t", ("a[.]b", "t")),
        ("[!.].t", ("[!.]", "t")),
        ("[].].t", ("[].]", "t")),
        ("a[b.t", ("a[b", "t")),
        ("*.[a-c]", ("*", "[a-c]")),
    ],
)
def test_a_pattern_is_divided_at_its_dot_that_is_in_no_class(pattern: str, parts: tuple[str, str]) -> None:
    assert TABLE_PATTERNS.accepts([pattern])
    assert split_pattern(pattern) == parts


@pytest.mark.parametrize("pattern", ["a", "a.b.t", "a[.]t", "a[.t]", "a.", ".t", "[].t]"])
def test_a_pattern_without_one_dot_is_refused(pattern: str) -> None:
    assert not TABLE_PATTERNS.accepts([pattern])
