"""What many checks ask about a window's statements is found once: one pass over them, one reading of all texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from binlane.model import TableKey
from binlane.precheck.situation.situation import Needs
from binlane.schema.programs import Program
from binlane.sql import temporary_routines
from tests.unit.precheck.situations import said, schema, situation

F = Program(TableKey("shop", "f"), "function", "RETURN USER()")
CHECKS = ("fired-triggers", "stored-programs", "account-programs", "unsafe-bodies")


def test_checks_share_one_search_for_names_and_one_reading_of_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    passes, read = list[bytes](), list[object]()
    tokens_of = temporary_routines.tokens_of

    def reading(text: str | None, *rest: Any) -> Any:
        read.append(text)
        return tokens_of(text, *rest)

    def statements(pattern: re.Pattern[bytes]) -> Iterator[Any]:
        passes.append(pattern.pattern)
        return iter(())

    monkeypatch.setattr(temporary_routines, "tokens_of", reading)
    made = situation(needs=Needs(statements=True), source=schema())
    vars(made).update(
        stored_programs=((F,), (F,)), stored_triggers=((), ()), program_names=frozenset({"f"}),
        transactions_with=statements,
    )  # fmt: skip
    assert said(made, *CHECKS) == []
    by_names = [each for each in passes if each.startswith(b"f|")]
    assert len(by_names) == 1
    assert made.reach is made.reach
    assert read.count(F.text) == 2
