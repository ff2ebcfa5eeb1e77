"""context.json: the lane of each transaction, decided for the whole window before any block is built.

A plain transaction changes rows of one database and runs no statement; it takes its database's route. All others
belong to classes, described by the facts that the filter looks at; the transactions of a class share their route.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Final

from binlane.errors import PlanError
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import Barrier, LogPosition, TableKey, TemporaryCopies
from binlane.plan.block.reducible_tables import Exclusions
from binlane.plan.block.size_choice import SizeChoice
from binlane.plan.division import Division, Placement
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.transaction.unseen_tables import UnseenTables
from binlane.plan.transaction.xa import PreparedGroup


@dataclass(frozen=True, slots=True)
class Route:
    """Shard and lane of transactions."""

    shard: str
    """The shard that counts them; several shards are joined by ``+``."""
    lane: int
    """Their lane; for transactions that need a barrier, the barrier's owner."""


@dataclass(frozen=True)
class Routing:
    """context.json: the facts of the whole window that each segment's map needs."""

    lanes: int
    databases: Mapping[str, Route]
    """Routes of plain transactions, by the database's name in TABLE_MAP."""
    classes: Mapping[str, Route]
    """Routes of all other transactions, by the key of their class."""
    barriers: tuple[Barrier, ...]
    excluded: Exclusions = field(default_factory=lambda: Exclusions({}, {}))
    """Tables and databases whose changes the window must not fold."""
    prepared: Mapping[int, PreparedGroup | None] = field(default_factory=dict)
    """The changes that each XA COMMIT commits, by its seqno; None if it applies nothing."""
    at_prepare: Mapping[int, bool] = field(default_factory=dict)
    """XA transactions that are applied at their XA PREPARE, by its seqno: whether they are committed."""
    carried_in: tuple[PreparedGroup, ...] = ()
    """XA transactions that earlier windows prepared and this one ends."""
    carried_out: tuple[PreparedGroup, ...] = ()
    """XA transactions that this window prepares and does not end."""
    division: Division | None = None
    """How the parallel lanes share their transactions; None if no shard is divided."""
    unseen: UnseenTables = field(default_factory=UnseenTables)
    """Statements of connections that may be older than the channel, with temporary tables."""
    size: SizeChoice | None = None
    """What "auto" stands for in ``blocks``; None if the channel's file says everything."""

    def lanes_of(self, queue: int) -> tuple[int, ...]:
        """The lanes that share a queue of blocks: the lane itself, or all parallel lanes if shards are divided."""
        return (queue,) if self.division is None or queue == self.lanes else tuple(range(self.lanes))

    def queue_of(self, lane: int) -> int:
        """The queue of a lane's blocks: the lowest lane that shares it."""
        return self.lanes_of(lane)[0]

    @cached_property
    def by_lane(self) -> tuple[tuple[Barrier, ...], ...]:
        """The barriers of each lane, the serialized lane last."""
        found: list[list[Barrier]] = [[] for _ in range(self.lanes + 1)]
        for barrier in self.barriers:
            for lane in barrier.participants:
                found[lane].append(barrier)
        return tuple(tuple(barriers) for barriers in found)

    def route_of(self, described: TransactionClass) -> Route:
        """The route of a transaction. Raises PlanError if the scan did not see its class."""
        route = self.find(described)
        if route is None:
            raise PlanError(f"no route for {described}: context.json is of another window; run the plan job again")
        return route

    def find(self, described: TransactionClass) -> Route | None:
        """The route of a transaction; None if the scan did not see its class."""
        plain = described.plain_database
        route = self.databases.get(plain) if plain is not None else None
        return self.classes.get(described.key) if route is None else route

    def to_json(self) -> bytes:
        """Canonical bytes."""
        return json.dumps(CONTEXT.dump(self), sort_keys=True).encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> Routing:
        """Raises PlanError, naming ``where``, for anything that ``to_json`` does not write."""
        return CONTEXT.load(cls, CONTEXT.parsed(data, where), where)


CONTEXT: Final = Codec(
    "run the plan job again",
    rows=frozenset({Barrier, LogPosition, Placement, PreparedGroup, Route, TableKey, TemporaryCopies}),
)
"""Codec of context.json."""


def first_appearance(named: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    """Shards by the seqno of their first transaction: round-robin gives them lanes in this order."""
    first: dict[str, int] = {}
    for seqno, shard in named:
        first[shard] = min(seqno, first.get(shard, seqno))
    return tuple(sorted(first, key=lambda shard: (first[shard], shard)))
