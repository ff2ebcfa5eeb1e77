"""One lane of three that commit together, before others that are played: what they show it, moment after moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final, cast

from binlane.apply.block import BlockPlace
from binlane.apply.lane.options import ApplyOptions
from binlane.apply.lane.run_state import AttemptState, RunState
from binlane.apply.lane.together import Adoption, Together
from binlane.apply.lane.ways.task import BlockTask, Lane, Stream
from binlane.apply.session.connection import SessionLimits
from binlane.model import BlockHeader, Item, LogPosition, RowCounts
from binlane.plan.window_plan import Block, WindowPlan
from binlane.state.meetings import Seen

LANES: Final = 3
AT: Final = 10
HERE: Final = {0: AT, 1: AT, 2: AT}
"""All lanes stand before the block."""
FIRST: Final = BlockHeader(AT + 1, AT + 2, 2, LogPosition("log.1", 4), "", 0.0)
TIMEOUT: Final = 20.0
"""Seconds of the scene's clock."""
_OPTIONS: Final = ApplyOptions(commits_together=True, barrier_timeout=TIMEOUT)


def seen(
    ready: Iterable[int] = (), working: Iterable[int] = (), *, is_alone: bool = False, gives_way: Iterable[int] = ()
) -> Seen:
    return Seen(frozenset(ready), frozenset(working), is_alone, frozenset(gives_way))


@dataclass(slots=True)
class Clock:
    """In place of the module ``time``: passes by pauses and waits alone."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.now < 100 * TIMEOUT, "the lane waits for ever"


@dataclass(slots=True)
class Others:
    """The other lanes, as signals and positions show them; the last moment lasts. And what the lane does."""

    clock: Clock
    moments: list[tuple[dict[int, int], Seen]]
    gone: frozenset[int] = frozenset()
    """Lanes without a holder."""
    may_be_alone: list[bool] = field(default_factory=list)
    """The answers to ``begin_alone``; then True."""
    withdrawn: dict[int, int] | None = None
    """The positions once the lane has said that it is not ready."""
    done: list[str] = field(default_factory=list)
    limits: SessionLimits | None = None
    held: dict[int, int] = field(default_factory=dict)
    """Of the heartbeat: the lanes that the connection holds."""
    waits: int = 0
    failed: None = None
    stop_at: int | None = None
    lanes: range = range(LANES)
    connection: None = None

    def positions(self) -> dict[int, int]:
        return dict(self.moments[0][0])

    def is_abandoned(self, lane: int, position: int) -> bool:
        self.done.append(f"looks after {lane}")
        return lane in self.gone

    def describe(self, lane: int) -> str:
        return f"lane {lane}"

    def listen(self, _: object) -> None:
        self.done.append("listens")

    def set_limits(self, limits: SessionLimits) -> None:
        self.limits = limits

    def arrive(self, lane: int, seqno: int) -> None:
        self.done.append(f"arrives at {seqno}")

    def look(self, lane: int, seqno: int) -> Seen:
        self.done.append("looks")
        return self._next()

    def give_way(self, lane: int) -> None:
        self.done.append(f"lane {lane} gives way")

    def report(self, lane: int, seqno: int, following: int | None) -> Seen:
        self.done.append(f"is ready for {following}")
        return self._next()

    def wait(self, lane: int, seqno: int, others: Sequence[int]) -> Seen:
        if self.moments[0][1].working.intersection(others):
            # for a lane that does not work its lock is free
            self.clock.sleep(0.4)
        self.waits += 1
        assert self.waits < 10_000, "the lane asks without a pause"
        return self._next()

    def withdraw(self, lane: int, seqno: int) -> None:
        self.done.append("withdraws")
        if self.withdrawn is not None:
            self.moments = [(self.withdrawn, seen())]

    def leave(self, lane: int) -> None:
        self.done.append(f"leaves {lane}")

    def begin_alone(self, lane: int) -> bool:
        self.done.append("wants to be alone")
        return self.may_be_alone.pop(0) if self.may_be_alone else True

    def end_alone(self) -> None:
        self.done.append("is alone no more")

    def _next(self) -> Seen:
        _, found = self.moments[0]
        if len(self.moments) > 1:
            del self.moments[0]
        return found


class NoFiles:
    """No block is read."""

    def blocks(self, lane: int, after: int) -> Iterator[Block]:
        return iter(())

    def pieces(self, lane: int, block: BlockHeader) -> Iterator[Block]:
        return iter(())

    def makes_null_now(self, first: int, last: int) -> bool:
        return False


def run_state(options: ApplyOptions = _OPTIONS) -> RunState:
    """Lane 0 of a window of seqnos 11 to 20."""
    plan = WindowPlan(
        channel="c", window_id="w", digest="d", first_seqno=AT + 1, last_seqno=20, lanes=LANES, barriers=(),
        source="s", end=LogPosition("log.1", 900), end_gtid_set="", end_time=0.0,
        lane_rows=(RowCounts(),) * (LANES + 1),
    )  # fmt: skip
    return RunState(cast("Any", None), plan, 0, NoFiles(), options, None)


def attempt_of(others: Others) -> AttemptState:
    """An attempt of a lane that sees them."""
    played: Any = others
    session: Any = _Session(others.set_limits)
    # a channel without tables that have no transactions
    tables = SimpleNamespace(may_change=lambda item: False)
    notes: Any = SimpleNamespace(read=lambda: None, has_note=lambda *_: False, watched=lambda: None, tables=tables)
    return AttemptState(session, played, played, played, dict(HERE), played, notes)


@dataclass(slots=True)
class _Session:
    set_limits: Callable[[SessionLimits], None]
    cursor: None = None
    connection_id: int = 7

    def is_at_work(self) -> None:
        """See LaneSession."""


def place_of(state: RunState, lane: int = 0, lanes: tuple[int, ...] = (0,), expected: int = AT) -> BlockPlace:
    return BlockPlace(state.key, state.channel_uuid, lane, lanes, expected)


def block_of(header: BlockHeader = FIRST, items: Iterable[Item] = (), planned: BlockHeader | None = None) -> Block:
    return Block(header, b"", items, planned)


def together_of(
    state: RunState,
    others: Others,
    check_stop: Callable[[int], None] = lambda lane: None,
    adopt: Callable[[list[int], int], Adoption] = lambda lanes, goal: Adoption.NONE,
) -> Together:
    found = Together(state, attempt_of(others), check_stop, adopt)
    found.signals = cast("Any", others)
    return found


def task_of(lane: Lane, place: BlockPlace, block: Block | None = None, stream: Stream | None = None) -> BlockTask:
    block = block_of() if block is None else block
    return BlockTask.of(lane, place, block, Stream(iter(())) if stream is None else stream, 20)
