"""What keeps a block's transaction from being committed, although no statement of it failed.

The target is played; ``integration/window/statements/test_nontransactional.py`` and ``test_together.py`` run it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from binlane.apply import block
from binlane.apply.block import Applied, BlockPlace, Obstacle, Outcome, apply_block
from binlane.apply.nontransactional_tables import BlockItems
from binlane.errors import ApplyError, DriftError
from binlane.model import Item, ItemKind, RowCounts
from binlane.state.orders.orders import Orders
from tests.unit.apply.lane.scene import FIRST, block_of, place_of, run_state

ROWS: Final = Item(ItemKind.ROWS, b"rows", RowCounts(1))
MYISAM: Final = Item(ItemKind.ROWS, b"myisam", RowCounts(1))
TABLES: Final = cast("Any", SimpleNamespace(may_change=lambda item: item is MYISAM))


@dataclass(slots=True)
class Target:
    """Writes down what is done to it, in order."""

    failure: Exception | None = None
    """The error of the last item that it gets."""
    done: list[str] = field(default_factory=list)
    cursor: None = None

    def begin(self) -> None:
        self.done.append("BEGIN")

    def commit(self) -> None:
        self.done.append("COMMIT")

    def rollback(self) -> None:
        self.done.append("ROLLBACK")

    def begin_block(self, _: bytes) -> None:
        """Its format is sent."""

    def write(self, items: Iterable[Item], _: int) -> RowCounts:
        written = sum((item.rows for item in items), RowCounts())
        self.done.append("rows")
        if self.failure is not None:
            raise self.failure
        return written


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block, "move_position", lambda *_: True)
    monkeypatch.setattr(block, "read_orders", lambda *_, **__: Orders())
    monkeypatch.setattr(block, "settle", lambda *_: None)


def applied(target: Target, items: list[Item], place: BlockPlace | None = None) -> Outcome:
    session: Any = target
    taken = BlockItems(items, TABLES)
    at = place_of(run_state()) if place is None else place
    return apply_block(
        session, session, at, replace(block_of(), items=taken), lambda: FIRST.last_seqno, needs_note=taken.needs_note
    )


def test_a_block_commits_behind_its_last_item() -> None:
    target = Target()
    assert isinstance(applied(target, [ROWS, ROWS]), Applied)
    assert target.done == ["BEGIN", "rows", "COMMIT"]


def test_items_that_end_before_a_change_without_a_note_are_rolled_back() -> None:
    target = Target()
    assert applied(target, [ROWS, MYISAM, ROWS]) is Obstacle.NOTE
    assert target.done == ["BEGIN", "rows", "ROLLBACK"]


def test_before_the_first_item_nothing_has_to_be_rolled_back() -> None:
    target = Target()
    assert applied(target, [MYISAM, ROWS]) is Obstacle.NOTE
    assert target.done == []


@pytest.mark.parametrize("failure", [DriftError("a row is missing"), ApplyError("an event too long")], ids=str)
def test_an_error_of_the_items_before_is_met_again_in_their_own_transaction(failure: Exception) -> None:
    target = Target(failure)
    assert applied(target, [ROWS, MYISAM]) is Obstacle.NOTE
    assert target.done[-1] == "ROLLBACK"
    with pytest.raises(type(failure)):
        applied(Target(failure), [ROWS, ROWS])


@pytest.mark.parametrize("agrees", [True, False])
def test_a_share_commits_only_if_the_other_lanes_agree(agrees: bool) -> None:
    target = Target()

    def agree(end: int) -> bool:
        target.done.append(f"asks at {end}")
        return agrees

    outcome = applied(target, [ROWS], replace(place_of(run_state()), agree=agree))
    assert isinstance(outcome, Applied) if agrees else outcome is Obstacle.AGREEMENT
    # last of all, with the locks of all rows
    asked = f"asks at {FIRST.last_seqno}"
    assert target.done == ["BEGIN", "rows", asked, "COMMIT" if agrees else "ROLLBACK"]
