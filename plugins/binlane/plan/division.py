"""Divided shards: one database over several lanes. The lane of each row change, decided once a window.

A window with divided shards has one queue of blocks for all parallel lanes. Each block is folded once, and its
remaining row changes are dealt to the lanes by table. A lane's part of a block, its share, commits with its position.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from binlane.errors import PlanError
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.block.deal import Deal
from binlane.schema.letter_case import lower
from binlane.shards.shard_list import hash_lane

BY_NAME: Final = "by its name"


def table_lane(table: TableKey, lanes: int) -> int:
    """The lane of a table that is placed by its name."""
    return hash_lane(str(table), lanes)


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the row changes of a table of a divided shard go."""

    lane: int | None
    """None: each row change goes by its primary key."""
    reason: str


@dataclass(frozen=True, slots=True)
class Division:
    """The lanes of a window's row changes."""

    lanes: int
    """Number of parallel lanes."""
    shards: tuple[str, ...]
    """The divided shards, ascending."""
    databases: Mapping[str, int | None]
    """The lane of each database with row changes, by its name in TABLE_MAP; None: it is divided."""
    placements: Mapping[TableKey, Placement]
    """Tables of divided databases that are not placed by their own name."""
    folds_names: bool
    """The target compares names without regard to case; names in ``placements`` are in lower case then."""
    ranged: Mapping[TableKey, int] = field(default_factory=dict)
    """Of tables that go by key, the place of the key's integer column whose neighbouring values go to one lane: their
    rows are in the same pages, and lanes that insert into one page wait for each other."""
    commits_together: bool = False
    """The shares of a block commit when all are executed, so a transaction of rows alone needs no barrier."""

    def placed(self, table: TableKey) -> Placement:
        """The placement of a table of a divided database."""
        name = self._name(table)
        found = self.placements.get(name)
        return Placement(table_lane(name, self.lanes), BY_NAME) if found is None else found

    @property
    def deal(self) -> Deal:
        """The division for the reducer."""
        return Deal(self.lanes, self.lane_of, lambda table: self.ranged.get(self._name(table)))

    def lane_of(self, table: TableKey) -> int | None:
        """The lane of a table's row changes; None: by primary key. Raises PlanError for a database that the scan has
        not seen."""
        if table.database not in self.databases:
            raise PlanError(f"{table}: no lane for its database: context.json is of another window; run the plan "
                            "job again")  # fmt: skip
        lane = self.databases[table.database]
        return self.placed(table).lane if lane is None else lane

    def _name(self, table: TableKey) -> TableKey:
        """A table's name as the target compares it."""
        return TableKey(lower(table.database), lower(table.table)) if self.folds_names else table
