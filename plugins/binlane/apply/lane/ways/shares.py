"""One lane applies the shares of all lanes, in one transaction (``lane.together`` says when)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import pymysql

from binlane.apply.block import Applied, BlockPlace, LaneShare, apply_shares
from binlane.apply.lane.ways.task import BlockTask, FailedBlock, Lane
from binlane.apply.nontransactional_tables import BlockItems
from binlane.errors import DriftError, PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import ItemKind

if TYPE_CHECKING:
    from binlane.model import BlockHeader
    from binlane.state.orders.orders import Orders

NextBlock: TypeAlias = Callable[[BlockPlace], BlockTask | None]
"""The next block of a lane at a place, or its next piece; None if there is none up to a limit."""


@dataclass(slots=True)
class SharesAlone:
    """The lane that applies blocks alone, with the files of all lanes; for one attempt."""

    lane: Lane
    read_anew: Callable[[int], None]
    """Lets a lane's blocks be read from its position."""
    _stands: int | None = None
    """The seqno at which the streams of the other lanes stand; None if it is not known."""

    def apply(
        self, place: BlockPlace, header: BlockHeader, next_block: NextBlock
    ) -> Mapping[int, Applied] | Orders | BlockTask | None:
        """Apply all shares of the block ``header``; ``place`` has all lanes that have one. Returns as ``apply_shares``.

        A share whose rows have drifted is applied again with all others, as the channel's policy says; raises its error
        if that does not help. A DDL would commit the shares before it. The other shares of its block are empty: the
        DDL's share is returned, to be applied as a block of its lane, and each lane applies its own. Raises PlanError
        for files that do not match.
        """
        failed = dict[int, Exception]()
        while True:
            if self._stands != place.expected:
                for lane in place.lanes:
                    self.read_anew(lane)
            self._stands = None
            shares = {lane: self._share_of(place, lane, header, next_block) for lane in place.lanes}
            if (ddl := self._ddl(shares)) is not None:
                for lane in place.lanes:
                    if lane != ddl.place.lane:
                        self.read_anew(lane)
                return ddl
            end, begun = shares[place.lane].end, [place.lane]
            planned = [self._planned(share, end, failed.get(lane)) for lane, share in shares.items()]
            for share in shares.values():
                share.stream.take()

            def begins(share: LaneShare, begun: list[int] = begun) -> None:
                # errors, and the rows that a policy records, name the lane of the share
                begun.append(share.lane)
                self.lane.begins(share.lane, share.block.header, place.expected)

            try:
                applied = apply_shares(self.lane.session, place, planned, end, begins)
            except (pymysql.err.MySQLError, DriftError) as exc:
                if not self.lane.rewrites or begun[-1] in failed:
                    raise
                failed[begun[-1]] = exc
                continue
            if isinstance(applied, Mapping):
                self._stands = next(iter(applied.values())).seqno
            return applied

    def _ddl(self, shares: dict[int, BlockTask]) -> BlockTask | None:
        """The share that is a DDL. Each share's first item is read."""
        for lane, share in shares.items():
            items = iter(share.block.items)
            first = next(items, None)
            block = replace(share.block, items=items if first is None else chain((first,), items))
            shares[lane] = replace(share, block=block, items=BlockItems(block.items, self.lane.watched()))
            if first is not None and first.kind is ItemKind.DDL:
                return shares[lane]
        return None

    def _share_of(self, place: BlockPlace, lane: int, header: BlockHeader, next_block: NextBlock) -> BlockTask:
        share = next_block(replace(place, lane=lane, lanes=(lane,)))
        if share is None or share.block.header != header:
            found = "none" if share is None else f"{share.block.header.first_seqno}..{share.block.header.last_seqno}"
            raise PlanError(
                f"{self.lane.where(lane)}: expected its share of the block {header.first_seqno}..{header.last_seqno}, "
                f"found {found}; the state or the plan's files were changed by hand"
            )
        return share

    def _planned(self, share: BlockTask, end: Callable[[], int], failed: Exception | None) -> LaneShare:
        lane, planned = share.place.lane, share.stream.planned
        block = replace(share.block, items=share.items)
        if failed is None:
            return LaneShare(lane, self.lane.writer, block, planned)
        again = self.lane.rewrite(FailedBlock(share.place, block, end, planned, failed))
        return LaneShare(lane, again.writer, again.block, again.planned, again.write)
