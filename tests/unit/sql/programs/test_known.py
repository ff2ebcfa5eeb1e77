"""What a window knows of the programs that the next one's log replaces."""

from __future__ import annotations

from typing import Any

import pytest

from binlane.model import LogPosition, TableKey
from binlane.schema.programs import BODY, MODE, Program
from binlane.sql.programs.changes import ProgramChange
from binlane.sql.programs.known import (
    NOTHING,
    KnownProgram,
    KnownPrograms,
    ProgramSet,
    behind,
    digest_of,
    found_alike,
    on_source,
)

F = TableKey("shop", "f")
NAME = ("function", F)
TARGET = Program(F, "function", "RETURN 1", {MODE: ""})
SEEN = LogPosition("binlog.000009", 500)
MADE = KnownProgram("function", F)
VIEW, TRIGGER = KnownProgram("view", TableKey("shop", "v")), KnownProgram("trigger", TableKey("shop", "tr"))


def change(kind: str = "", name: str = "", *, makes: bool = False, **others: Any) -> ProgramChange:
    return ProgramChange(kind, TableKey("shop", name) if name else None, makes)._replace(**others)


@pytest.mark.parametrize(
    ("at", "holds"),
    [
        (LogPosition("binlog.000009", 499), False),
        (SEEN, True),
        (LogPosition("binlog.000010", 4), True),
        (LogPosition("binlog.1000000", 4), True),
        (LogPosition("binlog.000008", 900), False),
        (None, False),
    ],
)
def test_a_text_counts_up_to_a_change_that_was_logged_behind_its_reading(at: LogPosition | None, holds: bool) -> None:
    """A later reading has seen the text behind the change."""
    [compared] = found_alike([("function", F, TARGET)], SEEN)
    assert ProgramSet({NAME: compared}).holds("function", F, TARGET, at) is holds
    assert ProgramSet({NAME: MADE}).holds("function", F, TARGET, at)


def test_another_text_on_the_target_since_then_is_not_known() -> None:
    [compared] = found_alike([("function", F, TARGET)], SEEN)
    for other in (
        Program(F, "function", "RETURN 2", {MODE: ""}),
        Program(F, "function", "RETURN 1", {MODE: "ANSI_QUOTES"}),
        None,
    ):
        assert not ProgramSet({NAME: compared}).holds("function", F, other, SEEN)
        assert other is None or digest_of(other) != digest_of(TARGET)
    assert not NOTHING.holds("function", F, TARGET, SEEN)
    assert not ProgramSet({NAME: compared}).holds("procedure", F, TARGET, SEEN)
    assert BODY not in TARGET.facts


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ([], [MADE, TRIGGER, VIEW]),
        ([change("function", "f")], [TRIGGER, VIEW]),
        ([change("function", "f"), change("function", "f", makes=True)], [MADE, TRIGGER, VIEW]),
        ([change("function", "f", makes=True, settles=False)], [TRIGGER, VIEW]),
        ([change("procedure", "f")], [MADE, TRIGGER, VIEW]),
        ([change(replaced=frozenset({TableKey("shop", "t")}))], [MADE, VIEW]),
        ([change(replaced=frozenset({TableKey("shop", "")}))], []),
        ([change(replaced=frozenset({TableKey("other", "")}))], [MADE, TRIGGER, VIEW]),
        ([change(renames=((TableKey("shop", "V"), TableKey("shop", "w")),))], [MADE, TRIGGER]),
        ([change(renames=((TableKey("shop", "w"), TableKey("shop", "v")),))], [MADE, TRIGGER]),
    ],
)
def test_the_log_takes_away_what_it_touches_and_adds_what_it_makes(
    changes: list[ProgramChange], left: list[KnownProgram]
) -> None:
    before = {(each.kind, each.key): each for each in (MADE, VIEW, TRIGGER)}
    assert behind(before, (), changes) == tuple(left)


def test_a_window_takes_only_what_the_one_before_it_has_left() -> None:
    left = KnownPrograms("mariadb server_id 1", 20, (MADE,))
    assert on_source(left, "mariadb server_id 1", 21).programs == {NAME: MADE}
    assert on_source(left, "mariadb server_id 2", 21) is NOTHING
    assert on_source(left, "mariadb server_id 1", 22) is NOTHING
