"""What the precheck asks of the log behind a window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from binlane.errors import SourceError
from binlane.precheck.situation import facts
from binlane.sql.logged_statement import LoggedText
from tests.unit.precheck.situations import PLAN


@pytest.mark.parametrize("can_be_told", [True, False])
def test_the_log_behind_a_window_is_read_once_for_its_definitions(
    monkeypatch: pytest.MonkeyPatch, *, can_be_told: bool
) -> None:
    read = list[int]()

    def behind(*_: object) -> Iterator[LoggedText]:
        read.append(1)
        if not can_be_told:
            raise SourceError("no answer")
        yield from ()

    monkeypatch.setattr(facts, "definitions_behind", behind)
    monkeypatch.setattr(facts.Source, "_log", None)
    monkeypatch.setattr(facts.Source, "_end", None)
    nothing = cast("Any", None)
    source = facts.Source(nothing, nothing, PLAN, nothing, nothing)
    assert [source.definitions_behind() for _ in range(2)] == [() if can_be_told else None] * 2
    assert len(read) == 1
