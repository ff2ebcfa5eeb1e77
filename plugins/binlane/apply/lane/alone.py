"""One lane applies the shares of all lanes, in one transaction (``together`` says when)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import pymysql

from binlane.apply.block import Applied, BlockPlace, LaneShare, apply_shares
from binlane.apply.lane.conflict_policies import CONFLICT_POLICIES, CountedItems, FailedBlock
from binlane.apply.lane.run_state import AttemptState, RunState, Stream
from binlane.errors import DriftError, PlanError
from binlane.model import ItemKind

if TYPE_CHECKING:
    from binlane.model import BlockHeader
    from binlane.plan.window_plan import Block
    from binlane.state.orders.orders import Orders

NextBlock: TypeAlias = Callable[[BlockPlace], tuple[Stream, "Block | None"]]
"""The blocks of a lane at a place, and the next one, or its next piece; None if there is none up to a limit."""


@dataclass(slots=True)
class AloneLane:
    """The lane that applies blocks alone, with the files of all lanes; for one attempt."""

    state: RunState
    attempt: AttemptState
    apply_one: Callable[[BlockPlace, Block, Stream, int], None]
    """Applies the block of one lane, up to a limit."""
    _stands: int | None = None
    """The seqno at which the streams of the other lanes stand; None if it is not known."""

    def apply(
        self, place: BlockPlace, header: BlockHeader, limit: int, following: NextBlock
    ) -> Mapping[int, Applied] | Orders | None:
        """Apply all shares of the block ``header``; ``place`` has all lanes that have one. Returns as ``apply_shares``.

        A share whose rows have drifted is applied again with all others, as the channel's policy says; raises its error
        if that does not help. A DDL, which would commit the shares before it, is applied as a block of its lane, whose
        other shares are empty: then nothing is returned, and each lane applies its own. Raises PlanError for files that
        do not match.
        """
        failed = dict[int, Exception]()
        while True:
            if self._stands != place.expected:
                for lane in place.lanes:
                    self.attempt.forget_stream(lane)
            self._stands = None
            found = {lane: self._found(place, lane, header, following) for lane in place.lanes}
            if (ddl := self._ddl(found)) is not None:
                stream, block = found[ddl]
                for lane in place.lanes:
                    if lane != ddl:
                        self.attempt.forget_stream(lane)
                stream.take()
                self.apply_one(replace(place, lane=ddl, lanes=(ddl,)), block, stream, limit)
                return {}
            own, _ = found[place.lane]

            def end(stream: Stream = own) -> int:
                return stream.end(header, limit)

            shares = [self._share(place, lane, *each, end, failed.get(lane)) for lane, each in found.items()]
            for stream, _ in found.values():
                stream.take()
            try:
                applied = apply_shares(self.attempt.session, place, shares, end, self._begins(place))
            except (pymysql.err.MySQLError, DriftError) as exc:
                assert self.state.current is not None
                lane = self.state.current[0]
                if not CONFLICT_POLICIES[self.state.options.on_conflict].rewrites or lane in failed:
                    raise
                failed[lane] = exc
                continue
            if isinstance(applied, Mapping):
                self._stands = next(iter(applied.values())).seqno
            return applied

    def _ddl(self, found: dict[int, tuple[Stream, Block]]) -> int | None:
        """The lane whose share is a DDL. Each share's first item is read."""
        for lane, (stream, block) in found.items():
            items = iter(block.items)
            first = next(items, None)
            found[lane] = stream, replace(block, items=items if first is None else chain((first,), items))
            if first is not None and first.kind is ItemKind.DDL:
                return lane
        return None

    def _found(self, place: BlockPlace, lane: int, header: BlockHeader, following: NextBlock) -> tuple[Stream, Block]:
        stream, block = following(replace(place, lane=lane, lanes=(lane,)))
        if block is None or block.header != header:
            found = "none" if block is None else f"{block.header.first_seqno}..{block.header.last_seqno}"
            raise PlanError(
                f"{self.state.where(lane)}: expected its share of the block {header.first_seqno}..{header.last_seqno}, "
                f"found {found}; the state or the plan's files were changed by hand"
            )
        return stream, block

    def _share(
        self,
        place: BlockPlace,
        lane: int,
        stream: Stream,
        block: Block,
        end: Callable[[], int],
        failed: Exception | None,
    ) -> LaneShare:
        state, attempt = self.state, self.attempt
        policy = CONFLICT_POLICIES[state.options.on_conflict]
        given = replace(block, items=CountedItems(block.items)) if policy.rewrites else block
        if failed is None:
            return LaneShare(lane, attempt.writer, given, stream.planned)
        at = replace(place, lane=lane, lanes=(lane,))
        again = policy.rewrite(state, attempt, FailedBlock(at, given, end, stream.planned, failed))
        return LaneShare(lane, again.writer, again.block, again.planned, again.write)

    def _begins(self, place: BlockPlace) -> Callable[[LaneShare], None]:
        def begins(share: LaneShare) -> None:
            # errors, and the rows that a policy records, name the lane of the share
            self.state.current = (share.lane, share.block.header, place.expected)

        return begins
