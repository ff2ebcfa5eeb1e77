"""Rows of system-versioned tables between MariaDB servers that keep the end of time at different times.

A row that is current ends at the greatest TIMESTAMP: 2038-01-19 03:14:07.999999 up to 11.4, 2106-02-07 06:28:15.999999
from 11.5 on (MDEV-32188, 64-bit servers). Row events carry it as any other value, so to a newer server the current rows
of an older one would be history (tried on 10.11 and 11.8: SELECT finds none of them), without any error.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from binlane.model import Flavor
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.finding import Finding
from binlane.schema.compare import Severity
from binlane.schema.model import Generated, Schema, Table
from binlane.servers.catalog import version_number

ENDS_IN_2106: Final = (11, 5, 1)
_ENDS: Final = {False: "2038-01-19 03:14:07.999999", True: "2106-02-07 06:28:15.999999"}
_TODO: Final = (
    "current rows of the one are history to the other: leave the table out (docs/filters.md), or let both servers be "
    "older than 11.5, or both newer"
)


def check_versioning(plan: WindowPlan, target: Schema, logged_by: Collection[str]) -> Iterator[Finding]:
    """System-versioned tables with rows in the window, where source and target differ in it.

    ``logged_by``: the versions of the servers that wrote the log.
    """
    if (plan.flavor, target.flavor) != (Flavor.MARIADB, Flavor.MARIADB):
        return
    ours = version_number(target.version) >= ENDS_IN_2106
    others = sorted(version for version in logged_by if (version_number(version) >= ENDS_IN_2106) is not ours)
    if not others:
        return
    made = {demand.subject for demand in plan.demands if demand.feature == "system versioning"}
    for key in sorted(plan.table_maps, key=str):
        table = target.table(key)
        if str(key) in made or (table is not None and _ends_by_time(table)):
            expected = f"{_ENDS[not ours]}, as {others[0]} has it"
            yield Finding(
                Severity.FATAL, f"{key}: end of current rows", expected, f"{_ENDS[ours]} on {target.version}", _TODO
            )


def _ends_by_time(table: Table) -> bool:
    """Not by transaction ids, which end alike everywhere."""
    ends = [column.data_type for column in table.columns if column.generated is Generated.ROW_END]
    return table.system_versioned and ends != ["bigint"]
