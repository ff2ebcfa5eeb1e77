"""When counts of statements say that no definition has changed, and when they say nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.schema.statement_counts import StatementCounts, may_change_definitions

THEN = StatementCounts("host 3306 1", at=1000, since=900, session=7, counts={"alter_table": 3, "drop_table": 0})
LATER = replace(THEN, at=2000, since=901, session=9)


def test_equal_counts_of_one_server_that_has_counted_all_the_time_hold() -> None:
    assert THEN.hold_until(LATER)
    assert THEN.hold_until(THEN)


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(None, id="not-told"),
        pytest.param(replace(LATER, counts={"alter_table": 4, "drop_table": 0}), id="altered"),
        pytest.param(replace(LATER, counts={"alter_table": 3}), id="a-kind-less"),
        pytest.param(replace(LATER, counts={**THEN.counts, "morph_table": 0}), id="a-kind-more"),
        pytest.param(replace(LATER, server="host 3307 1"), id="another-server"),
        pytest.param(replace(LATER, since=1000), id="started-within-the-same-second"),
        pytest.param(replace(LATER, since=1500), id="started-again"),
        pytest.param(replace(LATER, at=999), id="the-clock-was-set-back"),
        pytest.param(replace(LATER, session=6), id="sessions-begin-anew"),
    ],
)
def test_anything_else_does_not_hold(later: StatementCounts | None) -> None:
    assert not THEN.hold_until(later)


@pytest.mark.parametrize("kind", ["alter_table", "create_trigger", "rename_table", "grant", "flush", "never_heard_of"])
def test_a_kind_that_is_not_known_to_be_harmless_may_change_definitions(kind: str) -> None:
    assert may_change_definitions(kind)


@pytest.mark.parametrize("kind", ["select", "insert", "stmt_execute", "show_tables", "xa_prepare", "ha_read"])
def test_what_runs_all_day_may_not(kind: str) -> None:
    assert not may_change_definitions(kind)
