"""Which transactions need a barrier, for which lanes, who applies them, and why. ``plan.barriers`` joins what is near.

Rules (docs/invariants.md, 3):

- a transaction over several databases of one lane needs no barrier;
- a transaction over several lanes makes a barrier of these lanes; the lowest of them applies it;
- a transaction of a critical shard, of ``#GLOBAL`` or of ``#UNKNOWN`` makes a barrier of all lanes; the serialized lane
  applies it, or the lane that the shard list names. ``shards.event_filter`` says which transactions these are;
- where a shard is divided, each barrier is of all lanes and the serialized lane's: statements on a divided shard, and
  transactions over it and another shard, make one, too. If shares commit together, rows alone make none, of whatever
  shards: all lanes have the same blocks, in the source's order;
- the first transaction of an epoch makes a barrier of all lanes, which joins none before it: all lanes stand at the end
  of the epoch before;
- temporary tables make one barrier from the first to the last transaction that needs them;
- a window of one lane, and one whose schema may join any two databases, is a single barrier of all lanes.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from binlane.binlog.vector.arrays import Ints
from binlane.lazy_dataclass import dataclass
from binlane.model import FILTERED_SHARD, Barrier
from binlane.plan.barriers import BarrierRequest, joined
from binlane.plan.division import Division
from binlane.plan.manifest import Manifest
from binlane.plan.settings import PlanSettings
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.transaction.temporary_stretches import stretches
from binlane.plan.transaction.temporary_tables import lives
from binlane.plan.window.known_tables import may_be_permanent
from binlane.plan.window.scanned import ScannedWindow
from binlane.plan.window_plan import CROSS_LANE
from binlane.schema.dependencies import SchemaFacts
from binlane.schema.model import Schema
from binlane.shards.shard_list import Partitioner

EPOCH = "epoch"
CRITICAL = "reference shard"
TEMPORARY = "temporary tables"
UNREAD = "unknown: a definition that could not be read may join databases by a foreign key"
DIVIDED = "statement of a divided shard"


@dataclass(frozen=True)
class BarrierRules:
    """Finds the barriers of a window."""

    manifest: Manifest
    scans: ScannedWindow
    settings: PlanSettings
    schema: Schema
    """The target's, at the window's start."""
    known: SchemaFacts
    """What is known of the schema at any time of the window."""
    partitioner: Partitioner
    classes: Mapping[TransactionClass, tuple[frozenset[str], str | None]]
    """Shards of each class of transactions, and why it is serialized, if it is."""
    shards: frozenset[str]
    """Those of all databases that only plain transactions write."""
    division: Division | None

    def barriers(self) -> Iterator[Barrier]:
        """Barriers of temporary tables, and between them those of the requests, or one barrier over everything."""
        serial = self._why_serial()
        fold_gap = min(self.settings.fold_gap, _transactions_of(self.settings.block_bytes, self.manifest))
        first, last = self.manifest.first_seqno, self.manifest.last_seqno
        for stretch in (*self._of_temporary_tables(), None):
            end = last if stretch is None else stretch.first - 1
            if serial is not None:
                begins = (epoch.seqno + 1 for epoch in self.manifest.epochs if first <= epoch.seqno < end)
                for begin, behind in pairwise([first, *begins, end + 1] if first <= end else []):
                    yield self._serial(begin, behind - 1, serial)
            else:
                yield from joined(self._requests(first, end), serialized=self._serialized, fold_gap=fold_gap)
            if stretch is not None:
                yield stretch
                first = stretch.last + 1

    def _serial(self, first: int, last: int, cause: str) -> Barrier:
        return Barrier(first, last, self._serialized, tuple(range(self._serialized + 1)), {cause: last - first + 1})

    def _of_temporary_tables(self) -> Iterator[Barrier]:
        """Barriers for open temporary tables. Raises UnsupportedEventError for uses that cannot be replayed exactly."""
        steps = self.scans.temporary
        if not steps:
            return
        is_known, letters = may_be_permanent(self.scans, self.schema), self.schema.letter_case
        found = lives(steps, self.manifest.restarts, is_known, letters)
        commits = self._commits() if found else []
        for life in found:
            for stretch in stretches(life, steps, commits, letters):
                yield dataclasses.replace(
                    self._serial(stretch.first, stretch.last, TEMPORARY),
                    together=stretch.together,
                    leftovers=tuple(
                        (each.thread_id, each.table.database, each.table.table) for each in stretch.leftovers
                    ),
                    temporary=stretch.copies,
                )

    def _commits(self) -> list[int]:
        """Seqnos of transactions that commit implicitly."""
        committing = [
            described
            for described in self.classes
            if any(statement.facts.commits_implicitly for statement in described.statements)
        ]
        seqnos: list[int] = self.scans.transactions(committing)[0].tolist()
        return seqnos

    def _why_serial(self) -> str | None:
        """Why the whole window goes through the serialized lane; None if it does not."""
        if self.settings.level.serial:
            return self.settings.consistency
        if self.known.may_join:
            return UNREAD
        if any(self.partitioner.is_critical(shard) for shard in self.shards):
            # the scan did not know that they are critical, so it has not listed their transactions
            return "reference shard joined by a foreign key of this window"
        return None

    @property
    def _serialized(self) -> int:
        return self.settings.lanes

    @property
    def _all_lanes(self) -> frozenset[int]:
        return frozenset(range(self.settings.lanes))

    def home(self, shards: frozenset[str] | set[str]) -> int:
        """The lane that applies transactions of these shards: the owner of their barrier if they need one."""
        if FILTERED_SHARD in shards:
            return 0
        critical = [self.partitioner.lane_of(shard) for shard in shards if self.partitioner.is_critical(shard)]
        if critical and not self._deals_rows:
            return max(critical)
        lanes = (self.partitioner.lane_of(shard) for shard in shards)
        # one that a barrier brings to the serialized lane has a parallel one here, which nobody asks for
        return min((lane for lane in lanes if lane < self._serialized or not self._deals_rows), default=0)

    @property
    def _deals_rows(self) -> bool:
        """Whether the rows of every transaction are dealt to lanes that commit together."""
        return self.division is not None and self.division.commits_together

    def _requests(self, first: int, last: int) -> Iterator[BarrierRequest]:
        """Barrier requests of a range of seqnos, ascending: of transactions, and of the first transaction of each
        epoch."""
        epochs = deque(each for each in self._of_epochs if first <= each.seqno <= last)
        requests, seqnos, places = self._of_transactions
        for at in range(int(np.searchsorted(seqnos, first)), int(np.searchsorted(seqnos, last, "right"))):
            seqno = int(seqnos[at])
            while epochs and epochs[0].seqno < seqno:
                yield epochs.popleft()
            request = requests[places[at]]
            if epochs and epochs[0].seqno == seqno:
                request = dataclasses.replace(epochs.popleft(), cause=request.cause)
            yield dataclasses.replace(request, seqno=seqno)
        yield from epochs

    @cached_property
    def _of_transactions(self) -> tuple[Sequence[BarrierRequest], Ints, Ints]:
        """The requests of classes, and the transactions that need one: seqno, and place of the request. Only barriers
        become objects: a window may have a request for every transaction."""
        found = {described: self._request(described) for described in self.classes}
        needed = {described: request for described, request in found.items() if request is not None}
        return [*needed.values()], *self.scans.transactions(needed)

    def _request(self, described: TransactionClass) -> BarrierRequest | None:
        """What each transaction of a class asks for, without its seqno."""
        shards, cause = self.classes[described]
        if self.division is not None:
            return self._request_of_all(described)
        if any(self.partitioner.is_critical(shard) for shard in shards):
            return BarrierRequest(0, self._all_lanes, self.home(shards), cause or CRITICAL)
        lanes = frozenset(self.partitioner.lane_of(shard) for shard in shards)
        return BarrierRequest(0, lanes, min(lanes), CROSS_LANE) if len(lanes) > 1 else None

    def _request_of_all(self, described: TransactionClass) -> BarrierRequest | None:
        """As ``_request``, in a window whose parallel lanes share one queue of blocks: each barrier is of all lanes."""
        shards, cause = self.classes[described]
        if self._deals_rows and not described.statements:
            return None
        if any(self.partitioner.is_critical(shard) for shard in shards):
            cause = cause or CRITICAL
        elif len({self.partitioner.lane_of(shard) for shard in shards}) > 1:
            cause = CROSS_LANE
        elif any(self.partitioner.is_divided(shard) for shard in shards) and (described.statements or len(shards) > 1):
            cause = DIVIDED if described.statements else CROSS_LANE
        else:
            return None
        return BarrierRequest(0, self._all_lanes, self._serialized, cause)

    @cached_property
    def _of_epochs(self) -> list[BarrierRequest]:
        """Ascending. All lanes stand at the window's start, so its first epoch needs no barrier."""
        meeting = BarrierRequest(0, self._all_lanes, self._serialized, EPOCH, begins_epoch=True)
        return [dataclasses.replace(meeting, seqno=epoch.seqno + 1) for epoch in self.manifest.epochs]


def _transactions_of(size: int, manifest: Manifest) -> int:
    """Average number of this window's transactions in ``size`` bytes of log."""
    return size * manifest.transactions // max(sum(segment.bytes for segment in manifest.segments), 1)
