"""Warnings of a statement that writes rows: which tell of a changed value, and whether all of them are read."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from binlane.bootstrap.sessions import Session
from binlane.bootstrap.value_warnings import require_unchanged, value_warnings
from binlane.errors import ApplyError
from binlane.model import Flavor, TableKey
from binlane.sessions.pins import MOST_WARNINGS, PINS, SessionKind, is_as_pinned, pinned

TABLE: Final = TableKey("shop", "t")
ERROR_VALUE: Final = (b"Warning", b"1265", b"Data truncated for column 'e' at row 1")


class Answered:
    """A session whose last statement has ``count`` warnings, of which the server lists at most ``most``."""

    def __init__(self, count: int, most: int, one: tuple[bytes, bytes, bytes] = ERROR_VALUE) -> None:
        # the count of an answer has 16 bits
        self.warnings = min(count, 0xFFFF)
        self._listed = [one] * min(count, most)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        assert statement == "SHOW WARNINGS"
        return list(self._listed)


def answered(count: int, most: int = MOST_WARNINGS) -> Session:
    return cast(Session, Answered(count, most))


def enums() -> list[str]:
    return ["e"]


@pytest.mark.parametrize("flavor", Flavor)
def test_a_writer_s_session_lists_all_warnings_that_a_statement_may_have(flavor: Flavor) -> None:
    [pin] = (each for each in PINS if each.name == "max_error_count")
    assert pinned("max_error_count", flavor, SessionKind.WRITE) == str(MOST_WARNINGS)
    # an account that may not set it on MySQL has the default
    assert is_as_pinned(pin, flavor, SessionKind.WRITE, "1024")
    assert not is_as_pinned(pin, flavor, SessionKind.WRITE, "64")


@pytest.mark.parametrize("count", [0, 1, 1_025, MOST_WARNINGS - 1])
def test_any_number_of_an_enum_s_error_values_is_stored_unchanged(count: int) -> None:
    require_unchanged(answered(count), TABLE, enums)


@pytest.mark.parametrize(("count", "most"), [(1_025, 1_024), (MOST_WARNINGS, MOST_WARNINGS), (90_000, MOST_WARNINGS)])
def test_warnings_that_are_not_listed_are_named_with_the_setting(count: int, most: int) -> None:
    listed = f"{min(count, MOST_WARNINGS):,} warnings or more, of which it lists {most:,}"
    assert value_warnings(answered(count, most), enums) == [(0, listed)]
    with pytest.raises(ApplyError, match=rf"^shop\.t: expected all warnings .*found {listed}: SET GLOBAL max_error"):
        require_unchanged(answered(count, most), TABLE, enums)


def test_a_changed_value_is_named() -> None:
    with pytest.raises(ApplyError, match="would not store the source's value unchanged: Data truncated for column 'e'"):
        require_unchanged(answered(1), TABLE, list)
