"""Which way a block takes, and which one follows: the whole table, each way with each end."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Final, cast

import pymysql
import pytest

from binlane.apply.block import Applied, Obstacle
from binlane.apply.lane.ways.row_by_row import RowByRow
from binlane.apply.lane.ways.table import CLASSES, Ending, Read, following
from binlane.apply.lane.ways.task import BlockTask, FailedBlock, Rewrite, Stream
from binlane.apply.lane.ways.way import Way
from binlane.apply.nontransactional_tables import BlockItems
from binlane.apply.session.unlogged_null import UnloggedNullError
from binlane.errors import ApplyError, DriftError
from binlane.model import Barrier, Flavor, Item, ItemKind, RowCounts
from binlane.plan.window_plan import Block
from binlane.state.orders.orders import Orders
from binlane.state.positions import Counted
from tests.unit.apply.lane.scene import AT, FIRST, block_of, place_of, run_state

ONE: Final = replace(FIRST, last_seqno=FIRST.first_seqno, transactions=1)
LAST: Final = FIRST.last_seqno
BARRIER: Final = Barrier(AT + 1, AT + 4, 3, (0, 1, 2, 3), {}, together=True)
UNDONE: Final = (Way.TRANSACTION, Way.TRANSACTION_NULL_NOW, Way.ROW_BY_ROW, Way.ROW_BY_ROW_NULL_NOW)
"""A rollback undoes all that they do."""


def lane_of(
    *, has_note: bool = False, has_order: bool = False, stays: bool = False, was_now: bool = True, allows: bool = True,
    rewrites: bool = True,
) -> Any:  # fmt: skip
    """A lane of a MySQL target that has GTIDs."""
    warnings = [("Warning", 1196, "some changes could not be rolled back")] if stays else []
    return SimpleNamespace(
        session=SimpleNamespace(flavor=Flavor.MYSQL, value=lambda _: 1, rows=lambda _: warnings),
        source=SimpleNamespace(makes_null_now=lambda first, last: was_now),
        allows_nontransactional=allows,
        rewrites=rewrites,
        has_note=lambda lane, first, last: has_note,
        watched=lambda: None,
        needs_pieces=lambda header: has_order,
    )


def task_of(lane: Any, block: Block, barrier: Barrier | None = None, *, agrees: bool = False) -> BlockTask:
    place = place_of(run_state())
    if agrees:
        place = replace(place, agree=lambda _: True)
    return BlockTask.of(lane, place, block, Stream(iter(())), 20, barrier)


def ways_after(ending: Ending, task: BlockTask) -> dict[Way, Way]:
    then = {way: following(replace(task, way=way), ending) for way in Way}
    return {way: after for way, after in then.items() if after is not None}


REFUSED: Final = pymysql.err.OperationalError(1785, "refused")
CHANGED: Final = pymysql.err.OperationalError(1412, "table definition has changed")
NULL: Final = UnloggedNullError(1048, "cannot be null")
DRIFT: Final = DriftError("a row is missing")
DEADLOCK: Final = pymysql.err.OperationalError(1213, "deadlock")
LOST: Final = pymysql.err.OperationalError(2013, "lost")
SKIP: Final = Orders(skipped=frozenset({LAST}))
STOP: Final = Orders(stop_at=AT, skipped=frozenset({LAST}))


def to(way: Way, *ways: Way) -> dict[Way, Way]:
    return dict.fromkeys(ways, way)


FOLLOWS: Final[dict[str, tuple[Any, Ending, bool, dict[Way, Way], dict[Way, Way]]]] = {
    # the lane, the end, whether the block is a share; then of several transactions, and of one
    "a note": (
        lane_of(), Obstacle.NOTE, False,
        {Way.BARRIER: Way.BARRIER_NOTE, **to(Way.PIECES, *UNDONE)},
        {
            Way.BARRIER: Way.BARRIER_NOTE,
            **to(Way.NONTRANSACTIONAL, Way.TRANSACTION, Way.ROW_BY_ROW),
            **to(Way.NONTRANSACTIONAL_NULL_NOW, Way.TRANSACTION_NULL_NOW, Way.ROW_BY_ROW_NULL_NOW),
        },
    ),
    "1785": (
        lane_of(), REFUSED, False,
        to(Way.PIECES, Way.TRANSACTION, Way.TRANSACTION_NULL_NOW),
        {
            Way.TRANSACTION: Way.NONTRANSACTIONAL,
            Way.TRANSACTION_NULL_NOW: Way.NONTRANSACTIONAL_NULL_NOW,
        },
    ),
    "1785, and the channel does not allow it": (lane_of(allows=False), REFUSED, False, {}, {}),
    "a partition that the block has added": (lane_of(), CHANGED, False, to(Way.PIECES, *UNDONE), {}),
    "a NULL": (
        lane_of(), NULL, False,
        to(Way.PIECES, Way.TRANSACTION, Way.NONTRANSACTIONAL),
        {
            Way.TRANSACTION: Way.TRANSACTION_NULL_NOW,
            Way.NONTRANSACTIONAL: Way.NONTRANSACTIONAL_NULL_NOW,
        },
    ),
    "a NULL, and a part of the block has stayed": (lane_of(stays=True), NULL, False, {}, {}),
    "a NULL, and nothing is logged of the session": (lane_of(was_now=False), NULL, False, {}, {}),
    "drift": (
        lane_of(), DRIFT, False,
        {Way.TRANSACTION: Way.ROW_BY_ROW, Way.TRANSACTION_NULL_NOW: Way.ROW_BY_ROW_NULL_NOW},
        {Way.TRANSACTION: Way.ROW_BY_ROW, Way.TRANSACTION_NULL_NOW: Way.ROW_BY_ROW_NULL_NOW},
    ),
    "drift, and the policy is to stop": (lane_of(rewrites=False), DRIFT, False, {}, {}),
    "a skip": (
        lane_of(), SKIP, False, to(Way.PIECES, *UNDONE, Way.SHARES_ALONE), to(Way.PIECES, *UNDONE, Way.SHARES_ALONE)
    ),
    "a skip behind a stop": (lane_of(), STOP, False, {}, {}),
    "a deadlock": (lane_of(), DEADLOCK, False, {}, {}),
    "a deadlock of a share": (lane_of(), DEADLOCK, True, to(Way.SHARES_ALONE, *UNDONE), to(Way.SHARES_ALONE, *UNDONE)),
    "no agreement": (lane_of(), Obstacle.AGREEMENT, True, to(Way.NEW, *UNDONE), to(Way.NEW, *UNDONE)),
    "a lost connection": (lane_of(), LOST, True, {}, {}),
    "another error": (lane_of(), ApplyError("an event too long"), True, {}, {}),
    "other positions": (lane_of(), None, True, {}, {}),
    "the end": (lane_of(), Applied(LAST, Counted(RowCounts(), 1, 1)), True, {}, {}),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLLOWS)
def test_each_end_leads_to_one_way(case: str) -> None:
    lane, ending, agrees, several, single = FOLLOWS[case]
    assert ways_after(ending, task_of(lane, block_of(), agrees=agrees)) == several
    assert ways_after(ending, task_of(lane, block_of(ONE), agrees=agrees)) == single


@pytest.mark.parametrize(
    ("lane", "block", "barrier", "expected"),
    [
        pytest.param(lane_of(), block_of(), None, Way.TRANSACTION, id="a block"),
        pytest.param(lane_of(has_order=True), block_of(), None, Way.PIECES, id="a stop inside"),
        pytest.param(lane_of(has_order=True), block_of(ONE, planned=FIRST), None, Way.TRANSACTION, id="a piece"),
        pytest.param(lane_of(), block_of(replace(FIRST, first_seqno=AT)), None, Way.PIECES, id="a position inside"),
        pytest.param(lane_of(has_note=True), block_of(), None, Way.PIECES, id="a note"),
        pytest.param(lane_of(has_note=True), block_of(ONE), None, Way.NONTRANSACTIONAL, id="a note of its only one"),
        pytest.param(lane_of(), block_of(), BARRIER, Way.BARRIER, id="a barrier"),
        pytest.param(lane_of(has_order=True), block_of(), BARRIER, Way.BARRIER, id="a barrier is not taken apart"),
        pytest.param(lane_of(has_note=True), block_of(), BARRIER, Way.BARRIER_NOTE, id="a barrier with a note"),
    ],
)
@pytest.mark.parametrize("before", [Way.NEW, Way.SHARES_ALONE])
def test_a_block_that_was_read_takes_one_way(
    lane: Any, block: Block, barrier: Barrier | None, expected: Way, before: Way
) -> None:
    assert following(replace(task_of(lane, block, barrier), way=before), Read.BLOCK) is expected


@pytest.mark.parametrize("before", [Way.NONTRANSACTIONAL, Way.NONTRANSACTIONAL_NULL_NOW, Way.BARRIER_NOTE])
def test_a_way_that_is_known_already_lasts_over_a_new_connection(before: Way) -> None:
    barrier = BARRIER if before is Way.BARRIER_NOTE else None
    lane = lane_of(has_note=True, has_order=barrier is not None)
    assert following(replace(task_of(lane, block_of(ONE), barrier), way=before), Read.BLOCK) is None


def test_rows_that_differ_are_not_written_again_before_a_change_without_a_note() -> None:
    """The items are counted before anything is written: they end there."""
    changed = Item(ItemKind.ROWS, b"myisam", RowCounts(1))
    tables = SimpleNamespace(may_change=lambda item: item is changed)

    def rewrite(failed: FailedBlock) -> Rewrite:
        assert isinstance(failed.block.items, BlockItems)
        planned = failed.block.items.total()
        return Rewrite(cast("Any", None), failed.block, planned, lambda: pytest.fail("written without a note"))

    lane = lane_of()
    lane.writer, lane.watched, lane.rewrite = None, lambda: tables, rewrite
    task = task_of(lane, block_of(items=[Item(ItemKind.ROWS, b"rows", RowCounts(1)), changed]))
    assert RowByRow().apply(replace(task, cause=DRIFT)) is Obstacle.NOTE


def test_each_way_has_a_class_but_those_that_give_blocks() -> None:
    assert set(Way) - set(CLASSES) == {Way.NEW, Way.PIECES, Way.SHARES_ALONE}


def test_items_end_before_a_change_that_no_rollback_undoes() -> None:
    items = [Item(ItemKind.ROWS, payload, RowCounts(1)) for payload in (b"a", b"b", b"myisam", b"c")]
    tables: Any = SimpleNamespace(may_change=lambda item: item.payload == b"myisam")
    taken = BlockItems(items, tables)
    assert next(iter(taken)) is items[0]
    assert not taken.needs_note()
    assert taken.total() == RowCounts(2)
    assert taken.needs_note()
    assert list(taken) == [], "nothing behind it is taken"
    unwatched = BlockItems(items)
    assert (list(unwatched), unwatched.needs_note()) == (items, False)
