"""A small summary of a window's plan, kept on the target as JSON after the window's files are gone.

It is stored with the plan's digest, so a running window has it too. Only the busiest shards and tables are listed; the
others are counted, and the window's totals include them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Final

from binlane.choices import MOST_LANES
from binlane.errors import PlanError
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.plan.window_plan import CROSS_LANE, WindowPlan, lanes_with_work

MAX_SHARDS: Final = 64
MAX_TABLES: Final = 40
_LEAST_SERIALIZED: Final = 100
_SHARE_SERIALIZED: Final = 0.1
_REMEDIES: Final[Mapping[str, str]] = {
    CROSS_LANE: (
        'if their databases belong together, make them one shard (lanes.assigner = "pattern") or place them in one '
        "lane (the shard list); a smaller lanes.fold_gap joins fewer of the transactions between them"
    ),
}
_OTHER_REMEDY: Final = "a smaller lanes.fold_gap joins fewer of the transactions between them"
_NAMED: Final = 3
"""Shards in the name of a lane, and causes in the name of the serialized lane."""


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """The work of a lane."""

    name: str
    transactions: int
    blocks: int
    rows: int
    """Row changes that the lane writes."""
    bytes: int


@dataclass(frozen=True, slots=True)
class ShardFacts:
    """The transactions and row changes of a shard."""

    name: str
    lane: int
    transactions: int
    rows: int


@dataclass(frozen=True, slots=True)
class TableFacts:
    """Row changes of a table, as read from the log and as written."""

    name: str
    read: int
    folded: int
    filtered: int
    written: int


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """Row changes and statements that a rule of the channel's filter leaves out."""

    rule: str
    rows: int
    statements: int


@dataclass(frozen=True, slots=True)
class WindowFacts:
    """Summary of a plan."""

    transactions: int
    read: int
    """Row changes in the log."""
    written: int
    """Row changes that the target receives."""
    folded: int
    filtered: int
    barriers: int
    serialized: int
    """Transactions inside barriers."""
    causes: Mapping[str, int]
    """Transactions that need a barrier, by cause."""
    kinds: Mapping[str, int]
    lanes: tuple[LaneFacts, ...]
    """The serialized lane last."""
    shards: tuple[ShardFacts, ...]
    """The busiest first."""
    more_shards: int
    tables: tuple[TableFacts, ...]
    """The busiest first."""
    more_tables: int
    rules: tuple[RuleFacts, ...]
    plan_engine: str = ""
    """The engine that ran the plan job, for people."""
    size: str | None = None
    """What was chosen for the channel's ``blocks``, and why; None if its file says it."""

    @property
    def lanes_with_work(self) -> tuple[int, ...]:
        """As the plan's."""
        return lanes_with_work([lane.blocks for lane in self.lanes], self.barriers)

    @property
    def reduction(self) -> float | None:
        """Row changes read for each one written; None if nothing was written."""
        return self.read / self.written if self.written else None

    def lane(self, number: int) -> LaneFacts | None:
        """None where the stored row has fewer lanes than the plan: another program has changed one of them."""
        return self.lanes[number] if 0 <= number < len(self.lanes) else None

    def to_json(self) -> str:
        """For the window's row on the target."""
        return json.dumps(FACTS.dump(self), ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> WindowFacts:
        """Raises PlanError for anything that ``to_json`` does not write."""
        facts = FACTS.load(cls, FACTS.parsed(text, _STORED), _STORED)
        for name, most in (("lanes", MOST_LANES + 1), ("shards", MAX_SHARDS), ("tables", MAX_TABLES)):
            if (found := len(getattr(facts, name))) > most:
                raise PlanError(f"{_STORED}: $.{name}: expected at most {most}, got {found:,}; {_TODO}")
        return facts


_STORED: Final = "a window's stored facts"
_TODO: Final = "they are of another version"
FACTS: Final = Codec(_TODO)


def facts_of(plan: WindowPlan, plan_engine: str = "") -> WindowFacts:
    """Summary of a plan that the engine has made."""
    counts = plan.tables.values()
    shards = busiest(plan)
    tables = sorted(plan.tables.items(), key=lambda entry: (-entry[1].read.total, str(entry[0])))
    return WindowFacts(
        transactions=plan.last_seqno - plan.first_seqno + 1,
        read=sum(each.read.total for each in counts),
        written=sum(each.written.total for each in counts),
        folded=sum(each.folded for each in counts),
        filtered=sum(each.filtered.total for each in counts),
        barriers=len(plan.barriers),
        serialized=plan.serialized_transactions,
        causes=dict(barrier_causes(plan).most_common()),
        kinds=dict(sorted(plan.kinds.items(), key=lambda kind: -kind[1])),
        lanes=tuple(_lane(plan, lane) for lane in plan.all_lanes),
        shards=tuple(
            ShardFacts(name, lane, plan.shards[name].transactions, plan.shards[name].rows)
            for name, lane in shards[:MAX_SHARDS]
        ),
        more_shards=len(shards[MAX_SHARDS:]),
        tables=tuple(
            TableFacts(str(key), each.read.total, each.folded, each.filtered.total, each.written.total)
            for key, each in tables[:MAX_TABLES]
        ),
        more_tables=len(tables[MAX_TABLES:]),
        rules=tuple(RuleFacts(rule, each.rows, each.statements) for rule, each in plan.filtered.items()),
        plan_engine=plan_engine,
        size=None if plan.size is None else str(plan.size),
    )


def _lane(plan: WindowPlan, lane: int) -> LaneFacts:
    files = plan.files[lane] if plan.files else ()
    return LaneFacts(
        name=lane_name(plan, lane),
        transactions=sum(file.transactions for file in files),
        blocks=sum(file.blocks for file in files),
        rows=plan.lane_rows[lane].total,
        bytes=sum(file.bytes for file in files),
    )


def lane_name(plan: WindowPlan, lane: int) -> str:
    """A lane as the UI names it: its number and the shards it moves, the busiest first."""
    if lane == plan.serialized:
        causes = ", ".join(cause for cause, _ in barrier_causes(plan).most_common(_NAMED))
        return f"serialized lane: {causes or 'nothing'}"
    shards = [name for name, its_lane in busiest(plan) if its_lane == lane or plan.is_divided(name)]
    shown = ", ".join(shards[:_NAMED])
    more = f" +{len(shards) - _NAMED}" if len(shards) > _NAMED else ""
    return f"lane {lane}: {shown or 'nothing'}{more}"


def serialization(transactions: int, serialized: int, causes: Mapping[str, int]) -> str | None:
    """One line on what barriers cost a window, with the remedies; None where they cost little.

    ``serialized``: transactions inside barriers; ``causes``: those that need one, by cause.
    """
    if serialized < _LEAST_SERIALIZED or serialized < transactions * _SHARE_SERIALIZED:
        return None
    needing = sum(causes.values())
    cause = max(causes, key=lambda each: causes[each], default="")
    return (
        f"{serialized:,} of {plural(transactions, 'transaction')} ({serialized / transactions:.0%}) are applied one "
        f"after another, because of {needing:,} ({needing / transactions:.1%}) that need a barrier, most of them for "
        f"'{cause}'; {_REMEDIES.get(cause, _OTHER_REMEDY)}"
    )


def busiest(plan: WindowPlan) -> list[tuple[str, int]]:
    """Shards with their lanes, by descending number of transactions."""
    ordered = sorted(plan.shards.items(), key=lambda entry: (-entry[1].transactions, entry[0]))
    return [(name, counts.lane) for name, counts in ordered]


def barrier_causes(plan: WindowPlan) -> Counter[str]:
    """Number of transactions that need a barrier, by cause."""
    causes: Counter[str] = Counter()
    for barrier in plan.barriers:
        causes.update(barrier.causes)
    return causes
