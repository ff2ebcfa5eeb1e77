"""Changes that share a statement: any history that a server takes in its order it takes in the new order, too."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.apply.rows.change_order import ChangeOrder, Step


@dataclass(frozen=True)
class Row:
    key: str
    """Of a collation that takes "a" and "A" for one key."""
    unique: int
    """The value of another unique key."""
    number: int


@dataclass
class Table:
    rows: dict[str, Row] = field(default_factory=dict)

    def delete(self, row: Row) -> None:
        assert self.rows.pop(row.key.lower()).key == row.key

    def insert(self, row: Row) -> None:
        assert row.key.lower() not in self.rows
        assert row.unique not in {other.unique for other in self.rows.values()}
        self.rows[row.key.lower()] = row

    def change(self, before: Row | None, after: Row | None) -> None:
        if before is not None:
            self.delete(before)
        if after is not None:
            self.insert(after)


Change = tuple[Row | None, Row | None]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[Row], list[Change]]:
    """First rows, and changes that fit them."""
    table = Table()
    changes: list[Change] = []
    first: list[Row] = []
    for number in range(draw(st.integers(1, 25))):
        key, unique = draw(st.sampled_from("aAbBcC")), draw(st.integers(0, 4))
        before = table.rows.get(key.lower())
        others = {row.unique for row in table.rows.values() if row is not before}
        kind = draw(st.sampled_from(["first", "delete", "keep", "change"]))
        if kind == "delete" and before is not None:
            change: Change = before, None
        elif kind == "keep" and before is not None:
            change = before, Row(before.key, before.unique, number)
        elif unique not in others:
            change = before, Row(key, unique, number)
        else:
            continue
        table.change(*change)
        if kind == "first" and change[0] is None and not changes:
            first.append(change[1])  # type: ignore[arg-type]
        else:
            changes.append(change)
    return first, changes


def step_of(before: Row | None, after: Row | None) -> Step:
    if before is None:
        return Step.INSERT
    if after is None:
        return Step.DELETE
    return Step.UPDATE if (before.key, before.unique) == (after.key, after.unique) else Step.ALONE


def key_of(before: Row | None, after: Row | None) -> str:
    row = after if before is None else before
    assert row is not None
    return row.key


@given(histories())
def test_a_history_has_the_same_effect_in_the_new_order(history: tuple[list[Row], list[Change]]) -> None:
    first, changes = history
    ours, theirs = Table(), Table()
    for row in first:
        ours.insert(row)
        theirs.insert(row)
    order = ChangeOrder(keys_meet=True)
    placed = [(order.place(key_of(*change), step_of(*change)), number) for number, change in enumerate(changes)]
    for _, number in sorted(placed):
        ours.change(*changes[number])
    for change in changes:
        theirs.change(*change)
    assert ours == theirs


@given(histories())
def test_changes_with_one_position_are_of_one_kind_and_of_different_rows(
    history: tuple[list[Row], list[Change]],
) -> None:
    order, found = ChangeOrder(keys_meet=True), dict[int, list[str]]()
    for change in history[1]:
        at = order.place(key_of(*change), step_of(*change))
        assert at % len(Step) == step_of(*change)
        found.setdefault(at, []).append(key_of(*change))
    assert all(len(keys) == len(set(keys)) for keys in found.values())
    assert all(len(keys) == 1 for at, keys in found.items() if at % len(Step) == Step.ALONE)


@pytest.mark.parametrize(
    ("keys_meet", "positions"),
    [(True, [0, 2, 5, 8, 10]), (False, [0, 2, 5, 8, 2])],
)
def test_only_keys_that_can_meet_make_inserts_wait_for_deletes(keys_meet: bool, positions: list[int]) -> None:
    order = ChangeOrder(keys_meet)
    steps = [("x", Step.DELETE), ("x", Step.INSERT), ("x", Step.UPDATE), ("x", Step.DELETE), ("y", Step.INSERT)]
    assert [order.place(key, step) for key, step in steps] == positions


def test_rows_of_a_busy_table_share_few_positions() -> None:
    order = ChangeOrder(keys_meet=False)
    found = {order.place(number % 100, Step.UPDATE) for number in range(1_000)}
    assert len(found) == 10
