"""Which lane a transaction belongs to: the window's routes, folded from all its segments before any block is built.

A plain transaction changes rows of one database and runs no statement; its route is its database's. Every other one
belongs to a class, described by what the filter looks at; transactions of one class share their route.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from binlane.errors import PlanError
from binlane.json_codec.codec import Codec
from binlane.model import Barrier, LogPosition, TableKey, TemporaryCopies
from binlane.plan.block.reducible_tables import Excluded
from binlane.plan.transaction.route_key import TransactionClass
from binlane.plan.transaction.xa import PreparedGroup


@dataclass(frozen=True, slots=True)
class Route:
    """Where transactions go, and what they count as."""

    shard: str
    """The shard they are reported under; several are joined by ``+``."""
    lane: int
    """Their lane; for those that need a barrier, the lane that owns it."""


@dataclass(frozen=True)
class Routing:
    """context.json: what the map over segments needs to know of the whole window."""

    lanes: int
    databases: Mapping[str, Route]
    """Routes of plain transactions, by database as TABLE_MAP names it."""
    classes: Mapping[str, Route]
    """Routes of all others, by the key of their class."""
    barriers: tuple[Barrier, ...]
    excluded: Excluded = field(default_factory=lambda: Excluded({}, {}))
    """What the window makes unfit for folding."""
    prepared: Mapping[int, PreparedGroup | None] = field(default_factory=dict)
    """What each XA COMMIT commits, by its seqno; None for what the target has already."""
    carried_in: tuple[PreparedGroup, ...] = ()
    """XA transactions that earlier windows have prepared and this one ends."""
    carried_out: tuple[PreparedGroup, ...] = ()
    """XA transactions that this window prepares and does not end."""

    @cached_property
    def by_lane(self) -> tuple[tuple[Barrier, ...], ...]:
        """The barriers that each lane takes part in, the serialized lane last."""
        found: list[list[Barrier]] = [[] for _ in range(self.lanes + 1)]
        for barrier in self.barriers:
            for lane in barrier.participants:
                found[lane].append(barrier)
        return tuple(tuple(barriers) for barriers in found)

    def route_of(self, described: TransactionClass) -> Route:
        """Raises PlanError for a transaction that the scan did not see."""
        route = self.find(described)
        if route is None:
            raise PlanError(f"no route for {described}: context.json is of another window; run the filter step again")
        return route

    def find(self, described: TransactionClass) -> Route | None:
        """None for a transaction that the scan did not see."""
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
    "run the filter step again",
    rows=frozenset({Barrier, LogPosition, PreparedGroup, Route, TableKey, TemporaryCopies}),
    left_out=frozenset({"temporary"}),
)
"""context.json."""


def first_appearance(named: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    """Shards by the seqno they first appear at: the order that round-robin deals them out in."""
    first: dict[str, int] = {}
    for seqno, shard in named:
        first[shard] = min(seqno, first.get(shard, seqno))
    return tuple(sorted(first, key=lambda shard: (first[shard], shard)))
