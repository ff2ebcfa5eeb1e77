"""Rows of sequences in BINLOG statements, which end a MariaDB server without the fix of MDEV-31779 with signal 11."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final

from binlane.model import Flavor, TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.finding import Finding
from binlane.schema.compare import Severity
from binlane.schema.model import Schema, Table
from binlane.servers.catalog import version_number

_FIXED: Final[Mapping[tuple[int, int], int]] = {
    (10, 5): 25,
    (10, 6): 18,
    (10, 11): 8,
    (11, 0): 6,
    (11, 1): 6,
    (11, 2): 5,
    (11, 4): 3,
    (11, 8): 2,
}
"""By series, the first release that is known to have the fix: the release notes of 10.5.25 and 11.0.6 name it, and the
changelogs of the others include one of these, some by way of another. Tried: 10.5.23 ends; 10.11.18 and 11.8.6 do not.
What is older, and a series that is not here, may end, too, and is refused."""
_NEWER: Final = (11, 9)
"""Later series were branched from ones with the fix."""
_NEVER: Final = 1 << 16
_FIRST_COLUMN: Final = "next_not_cached_value"
_TODO: Final = "upgrade the target; or leave the sequence out (docs/filters.md) and set it there by hand with SETVAL()"


def check_sequences(plan: WindowPlan, target: Schema, by_sql: Collection[TableKey]) -> Iterator[Finding]:
    """Sequences with rows in the window, for a target that may crash. ``by_sql``: what statements write."""
    if target.flavor is not Flavor.MARIADB or takes_sequence_rows(target.version):
        return
    made = {demand.subject for demand in plan.demands if demand.feature == "sequence"}
    for key in sorted(plan.table_maps, key=str):
        if key not in by_sql and (str(key) in made or _is_sequence(target.table(key))):
            expected = "a target that takes its rows"
            found = f"{target.version}, not known to have the fix of MDEV-31779: without it the server ends at them"
            yield Finding(Severity.FATAL, f"{key}: sequence", expected, found, _TODO)


def takes_sequence_rows(version: str) -> bool:
    """Whether a MariaDB of that version is known to have the fix."""
    number = version_number(version)
    return number[:2] >= _NEWER or number[2] >= _FIXED.get(number[:2], _NEVER)


def _is_sequence(table: Table | None) -> bool:
    return table is not None and bool(table.columns) and table.columns[0].name == _FIRST_COLUMN
