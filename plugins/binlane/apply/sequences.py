"""Rows of sequences in BINLOG statements, which end a MariaDB server before MDEV-31779 with signal 11."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from binlane.apply.finding import Finding
from binlane.model import Flavor, TableKey
from binlane.plan.schema import Schema, Table
from binlane.plan.schema_compare import Severity
from binlane.plan.window_plan import WindowPlan
from binlane.state.catalog import version_number

_FIXED: Final[Mapping[tuple[int, int], int]] = {
    (10, 4): 33,
    (10, 5): 24,
    (10, 6): 17,
    (10, 11): 7,
    (11, 0): 5,
    (11, 1): 4,
    (11, 2): 3,
}
"""By series, the first release with the fix; 11.3 and newer have it all. Tried: 10.5.23 ends, 10.11.18 and 11.8.6 do
not."""
_ALL_FIXED: Final = (11, 3)
_NEVER: Final = 1 << 16
_FIRST_COLUMN: Final = "next_not_cached_value"
_TODO: Final = "upgrade the target; or leave the sequence out (docs/filters.md) and set it there by hand with SETVAL()"


def check_sequences(plan: WindowPlan, target: Schema, by_sql: Collection[TableKey]) -> Iterator[Finding]:
    """Sequences with rows in the window, for a target that would crash. ``by_sql``: what statements write."""
    number = version_number(target.version)
    if target.flavor is not Flavor.MARIADB or number[:2] >= _ALL_FIXED or number[2] >= _FIXED.get(number[:2], _NEVER):
        return
    made = {demand.subject for demand in plan.demands if demand.feature == "sequence"}
    for key in sorted(plan.table_maps, key=str):
        if key not in by_sql and (str(key) in made or _is_sequence(target.table(key))):
            expected = "a target that takes its rows"
            found = f"{target.version}, which ends with signal 11 at them (MDEV-31779)"
            yield Finding(Severity.FATAL, f"{key}: sequence", expected, found, _TODO)


def _is_sequence(table: Table | None) -> bool:
    return table is not None and bool(table.columns) and table.columns[0].name == _FIRST_COLUMN
