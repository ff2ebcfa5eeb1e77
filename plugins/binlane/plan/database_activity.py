"""What a window changes in each database: where a tenant is, and when it was last changed.

Beside the plan and not part of it: no step of a window depends on these figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import field
from typing import Final

from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import SPECIAL_SHARDS
from binlane.plan.transaction.parts import Part, RowsPart, StatementPart


@dataclass(frozen=True, slots=True)
class DatabaseActivity:
    """A database in one window, by its name on the target."""

    lane: int | None
    """The lane of its last transaction that is of this database alone; None: every one is shared or serialized, or its
    tables are divided over several lanes."""
    transactions: int
    """Those that change rows of it, or that have a statement on a table of it."""
    rows: int
    """Row changes in the log."""
    seqno: int
    """The last transaction's, and its commit time on the source in seconds since the epoch."""
    time: float

    def then(self, later: DatabaseActivity) -> DatabaseActivity:
        """With a later part of the same window."""
        lane = self.lane if later.lane is None else later.lane
        transactions, rows = self.transactions + later.transactions, self.rows + later.rows
        return DatabaseActivity(lane, transactions, rows, later.seqno, later.time)


@dataclass(frozen=True, slots=True)
class WindowActivity:
    """The databases that a window changes, by name."""

    databases: dict[str, DatabaseActivity] = field(default_factory=dict)

    def add(self, name: str, found: DatabaseActivity) -> None:
        """Add the next part of the window, in the log's order. Special shards are no databases."""
        if name not in SPECIAL_SHARDS:
            before = self.databases.get(name)
            self.databases[name] = found if before is None else before.then(found)

    def add_transaction(self, shard: str, lane: int | None, parts: Iterable[Part], seqno: int, time: float) -> None:
        """Add one transaction; ``lane``: that of ``shard``; None: several."""
        rows: dict[str, int] = {}
        for part in parts:
            if isinstance(part, RowsPart):
                rows[part.table.key.database] = rows.get(part.table.key.database, 0) + part.counts.total
            elif isinstance(part, StatementPart):
                facts = part.facts
                # a DDL may change a database without naming a table
                names = facts.databases if facts.commits_implicitly else {key.database for key in facts.tables}
                for name in names:
                    rows.setdefault(name, 0)
        for name, changed in rows.items():
            self.add(name, DatabaseActivity(lane if shard == name else None, 1, changed, seqno, time))

    def to_json(self) -> bytes:
        """For the plan's folder."""
        return json.dumps(ACTIVITY.dump(self), separators=(",", ":"), sort_keys=True).encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> WindowActivity:
        """Raises PlanError for anything that ``to_json`` does not write."""
        return ACTIVITY.read(cls, data, where)


ACTIVITY: Final = Codec("run the plan job again", rows=frozenset({DatabaseActivity}))
