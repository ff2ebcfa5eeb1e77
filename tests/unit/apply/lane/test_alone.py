"""The lane that applies the shares of all lanes: its files, its errors, and what the others are told of it.

The transaction is played; ``integration/window/readers/test_together.py`` runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import pymysql
import pytest

from binlane.apply.block import Applied, BlockPlace, LaneShare, Obstacle
from binlane.apply.lane import barriers, blocks
from binlane.apply.lane.barriers import LaneAttempt
from binlane.apply.lane.run_state import AttemptState, RunState
from binlane.apply.lane.together import Adoption, Turn
from binlane.apply.lane.ways import shares
from binlane.apply.lane.ways.shares import SharesAlone
from binlane.apply.lane.ways.task import BlockTask, FailedBlock, Stream
from binlane.apply.lane.ways.transaction import Transaction
from binlane.choices import OnConflict
from binlane.errors import DriftError, PlanError, PositionError
from binlane.model import BlockHeader, Item, ItemKind, RowCounts
from binlane.plan.window_plan import Block
from binlane.state.orders.orders import Orders
from binlane.state.positions import Counted
from tests.unit.apply.lane.scene import (
    AT,
    FIRST,
    HERE,
    LANES,
    Clock,
    Others,
    attempt_of,
    block_of,
    place_of,
    run_state,
    seen,
    task_of,
)

ALL: Final = tuple(range(LANES))
NEXT: Final = replace(FIRST, first_seqno=AT + 3, last_seqno=AT + 4)
ROWS: Final = Item(ItemKind.ROWS, b"rows", RowCounts(1))
MORE: Final = Item(ItemKind.ROWS, b"more", RowCounts(2))
DDL: Final = Item(ItemKind.DDL, b"ALTER TABLE t ADD c INT", RowCounts())


@dataclass(slots=True)
class Scene:
    """Files of lanes, and a target that takes their shares."""

    monkeypatch: pytest.MonkeyPatch
    blocks: Mapping[int, Sequence[Block]]
    outcomes: list[BaseException | Orders | None] = field(default_factory=list)
    """What becomes of one transaction after the other; then they commit."""
    shares: list[dict[int, list[Item]]] = field(default_factory=list)
    """The items of each lane, for each transaction."""
    opened: list[int] = field(default_factory=list)
    """Lanes whose files were opened, one after the other."""
    state: RunState = field(default_factory=run_state)
    attempt: AttemptState = field(init=False)
    lane: SharesAlone = field(init=False)

    def __post_init__(self) -> None:
        self.attempt = attempt_of(Others(Clock(), [(HERE, seen())]))
        self.lane = SharesAlone(blocks.lane_of(self.state, self.attempt), self.attempt.forget_stream)
        self.monkeypatch.setattr(shares, "apply_shares", self._transaction)

    def apply(self, header: BlockHeader = FIRST, at: int = AT) -> Mapping[int, Applied] | Orders | BlockTask | None:
        place = replace(place_of(self.state, lanes=ALL), expected=at)
        return self.lane.apply(place, header, self._next)

    def _next(self, place: BlockPlace) -> BlockTask | None:
        streams = self.attempt.streams
        if place.lane not in streams:
            self.opened.append(place.lane)
            behind = [each for each in self.blocks[place.lane] if each.header.last_seqno > place.expected]
            streams[place.lane] = Stream(iter(behind))
        stream = streams[place.lane]
        block = stream.peek()
        return None if block is None else task_of(blocks.lane_of(self.state, self.attempt), place, block, stream)

    def _transaction(
        self,
        _: object,
        place: BlockPlace,
        shares: Sequence[LaneShare],
        end: object,
        begins: Callable[[LaneShare], None],
    ) -> Mapping[int, Applied] | Orders | None:
        outcome = self.outcomes.pop(0) if self.outcomes else self
        self.shares.append({})
        for share in shares:
            begins(share)
            self.shares[-1][share.lane] = list(share.block.items)
            if isinstance(outcome, BaseException) and share.lane == 1:
                raise outcome
        if outcome is None or isinstance(outcome, Orders):
            return outcome
        seqno = shares[0].block.header.last_seqno
        return {share.lane: Applied(seqno, Counted(RowCounts(), 1, 1)) for share in shares}


def files(*items: Iterable[Item]) -> dict[int, list[Block]]:
    """Two blocks of each lane, each with these items."""
    return {lane: [block_of(header, list(each)) for header in (FIRST, NEXT)] for lane, each in enumerate(items)}


def test_the_shares_of_all_lanes_are_applied_whole_and_their_files_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, files([ROWS, MORE], [MORE], []))
    applied = scene.apply()
    assert isinstance(applied, Mapping)
    assert set(applied) == set(ALL)
    scene.apply(NEXT, AT + 2)
    assert scene.shares == [{0: [ROWS, MORE], 1: [MORE], 2: []}] * 2
    assert scene.opened == [0, 1, 2], "each file is opened once"
    assert scene.state.current == (2, NEXT, AT + 2), "an error of the last share names its lane"


def test_files_that_stand_elsewhere_are_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(monkeypatch, files([ROWS], [MORE], []))
    scene.apply()
    # an order has taken the lanes back, or the lane has applied blocks together with the others
    scene.apply(FIRST, AT)
    assert scene.opened == [0, 1, 2] * 2
    assert scene.shares[0] == scene.shares[1]


@pytest.mark.parametrize("outcome", [None, Orders(stop_at=AT)], ids=["another was faster", "an order"])
def test_files_of_shares_that_were_not_applied_are_read_anew(
    monkeypatch: pytest.MonkeyPatch, outcome: Orders | None
) -> None:
    scene = Scene(monkeypatch, files([ROWS], [MORE], []))
    scene.apply()
    scene.outcomes = [outcome]
    assert scene.apply(NEXT, AT + 2) == outcome
    scene.apply(NEXT, AT + 2)
    assert scene.shares[1] == scene.shares[2]
    assert scene.opened == [0, 1, 2] * 2


@pytest.mark.parametrize("others", [[], [block_of(NEXT)]], ids=["no block", "another block"])
def test_files_whose_blocks_do_not_match_are_refused(monkeypatch: pytest.MonkeyPatch, others: list[Block]) -> None:
    scene = Scene(monkeypatch, {**files([ROWS], [MORE], []), 2: others})
    found = "found none" if not others else r"found 13\.\.14"
    with pytest.raises(PlanError, match=rf"lane 2: expected its share of the block 11\.\.12, {found}"):
        scene.apply()
    assert scene.shares == [], "nothing was written"


def test_a_ddl_is_a_block_of_its_own_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would commit the shares before it. Each lane reads on by itself then."""
    scene = Scene(monkeypatch, files([], [DDL], []))
    share = scene.apply()
    assert isinstance(share, BlockTask)
    assert (share.place.lane, share.place.lanes, share.place.expected) == (1, (1,), AT)
    assert list(share.block.items) == [DDL]
    assert scene.shares == [], "nothing was written"
    assert set(scene.attempt.streams) == {1}


@pytest.mark.parametrize("policy", list(OnConflict))
def test_drift_is_an_error_or_is_written_again_once(monkeypatch: pytest.MonkeyPatch, policy: OnConflict) -> None:
    drift = DriftError("a row is missing")
    again = list[tuple[int, ...]]()

    class Rewriting:
        rewrites = policy.overwrites

        def rewrite(self, _state: object, _attempt: object, failed: FailedBlock) -> Any:
            again.append(failed.place.lanes)
            return LaneShare(failed.place.lane, cast("Any", None), failed.block, None)

    monkeypatch.setattr(blocks, "CONFLICT_POLICIES", {policy: Rewriting()})
    state = run_state()
    state.options = replace(state.options, on_conflict=policy)
    scene = Scene(monkeypatch, files([ROWS], [MORE], []), [drift, drift], state=state)
    with pytest.raises(DriftError, match="a row is missing"):
        scene.apply()
    # the second time by the policy, with the whole block; a share that fails then has an error
    assert again == ([(1,)] if policy.overwrites else [])
    assert scene.shares == [{0: [ROWS], 1: [MORE]}] * (2 if policy.overwrites else 1)


def attempt(monkeypatch: pytest.MonkeyPatch, positions: dict[int, int]) -> tuple[LaneAttempt, Others]:
    others = Others(Clock(), [(positions, seen())], frozenset({2}))
    found = LaneAttempt(run_state(), attempt_of(others))
    found.blocks.together.signals = cast("Any", others)
    monkeypatch.setattr(barriers, "take", lambda cursor, name: True)
    monkeypatch.setattr(barriers, "release", lambda cursor, name: others.done.append("releases"))
    return found, others


def on_its_way(lane: LaneAttempt, stream: Stream | None = None) -> BlockTask:
    return lane.blocks.on_its_way(task_of(lane.blocks.lane, place_of(lane.state), block_of(), stream))


def _ended(end: BaseException | Obstacle | None) -> Any:
    if isinstance(end, BaseException):
        raise end
    return end


@pytest.mark.parametrize("whole", [True, False], ids=["a block", "a share"])
@pytest.mark.parametrize("reached", [AT, AT + 1, AT + 2])
def test_another_lane_may_have_moved_all_of_them_into_the_block(
    monkeypatch: pytest.MonkeyPatch, reached: int, whole: bool
) -> None:
    """It has applied a piece alone: a stop is inside the block, or a transaction is skipped."""
    lane, _ = attempt(monkeypatch, dict.fromkeys(HERE, reached))
    monkeypatch.setattr(Transaction, "apply", lambda *_: None)
    monkeypatch.setattr(SharesAlone, "apply", lambda *_: None)
    lane.state.current = (0, FIRST, AT)
    task = on_its_way(lane)

    def run() -> None:
        if whole:
            lane.blocks._apply_alone(task)
        else:
            lane.blocks.apply(task)

    if reached == AT:
        with pytest.raises(PositionError, match="expected lanes"):
            run()
    else:
        run()
        assert lane.attempt.positions[0] == reached
        assert lane.state.current is None


def test_an_order_that_the_lane_finds_when_it_is_alone_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, _ = attempt(monkeypatch, dict(HERE))
    lane.attempt.streams[0] = Stream(iter(()))
    orders = Orders(stop_at=AT + 1, skipped=frozenset({AT + 1}))
    monkeypatch.setattr(SharesAlone, "apply", lambda *_: orders)
    lane.blocks._apply_alone(on_its_way(lane))
    assert (lane.state.goal, lane.attempt.streams) == (AT + 1, {})
    assert lane.state.needs_pieces(FIRST)
    assert lane.attempt.positions == HERE


def test_a_stop_that_is_cancelled_before_the_lane_has_reached_it_ends_no_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    lane, _ = attempt(monkeypatch, dict(HERE))
    end = lane.state.goal
    for stop_at, goal in ((AT + 1, AT + 1), (AT + 2, AT + 2), (None, end)):
        lane.attempt.heartbeat.stop_at = stop_at
        lane.blocks.check_stop(0)
        assert lane.state.goal == goal


def test_a_lane_that_was_adopted_leaves_no_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal that is held for it on would keep its next holder from saying anything."""
    lane, others = attempt(monkeypatch, dict(HERE))

    def moves(other: int) -> bool:
        others.done.append(f"moves {other}")
        return True

    monkeypatch.setattr(LaneAttempt, "_advance", lambda self, other, goal: moves(other))
    assert lane._adopt_one([2], AT) is Adoption.MOVED
    assert [each for each in others.done if not each.startswith("looks")] == ["moves 2", "releases", "leaves 2"]
    assert lane.attempt.heartbeat.held == {}


def test_an_adopted_lane_that_needs_a_new_connection_ends_the_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lane's session may be closed: it releases nothing any more."""
    lane, others = attempt(monkeypatch, dict(HERE))
    monkeypatch.setattr(LaneAttempt, "_advance", lambda *_: False)
    assert lane._adopt_one([2], AT) is Adoption.RECONNECT
    assert "releases" not in others.done


@pytest.mark.parametrize(
    "end",
    [
        Obstacle.AGREEMENT,
        pymysql.err.OperationalError(1213, "deadlock"),
        pymysql.err.IntegrityError(1062, "duplicate"),
    ],
    ids=str,
)
def test_a_share_that_steps_back_is_read_again_and_has_no_error(
    monkeypatch: pytest.MonkeyPatch, end: BaseException | Obstacle
) -> None:
    lane, _ = attempt(monkeypatch, dict(HERE))
    state, stream = lane.state, Stream(iter([block_of()]))
    monkeypatch.setattr(type(lane.blocks.together), "turn", lambda *_: Turn.TOGETHER)
    lane.attempt.streams[0] = stream
    monkeypatch.setattr(Transaction, "apply", lambda *_: _ended(end))
    task = on_its_way(lane, stream)
    if isinstance(end, pymysql.err.IntegrityError):
        with pytest.raises(pymysql.err.IntegrityError):
            lane.blocks._apply_share(task)
        assert state.current == (0, FIRST, AT), "the error has a place"
    else:
        assert lane.blocks._apply_share(task)
        assert state.current is None
        assert lane.attempt.streams == {}


@pytest.mark.parametrize("applied", [None, {0: Applied(AT + 2, Counted(RowCounts(), 1, 2))}])
def test_whoever_was_alone_says_when_it_is_not_any_more(
    monkeypatch: pytest.MonkeyPatch, applied: Mapping[int, Applied] | None
) -> None:
    lane, others = attempt(monkeypatch, dict.fromkeys(HERE, AT + 2))
    monkeypatch.setattr(type(lane.blocks.together), "turn", lambda *_: Turn.ALONE)
    monkeypatch.setattr(SharesAlone, "apply", lambda *_: applied)
    lane.blocks._apply_share(on_its_way(lane))
    assert others.done[-1] == "is alone no more"
    assert lane.state.transactions == (2 if applied else 0)
