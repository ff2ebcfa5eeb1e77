"""Which writer writes a channel's rows, and what the SQL writer must not meet.

"auto" is decided by the account's privileges alone, in the precheck and in each lane alike: both writers have the same
effect, so a grant between the two does no harm.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlalchemy import Connection

from binlane.choices import Writer
from binlane.model import TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.finding import Finding
from binlane.precheck.privileges import global_needs, read_grants
from binlane.schema.compare import Severity
from binlane.schema.model import Schema, Table
from binlane.servers.catalog import server_version, version_number


def chosen_writer(connection: Connection, wanted: str) -> str:
    """``wanted``, or what "auto" means for this connection's account: "binlog" if it may send BINLOG statements."""
    if wanted != Writer.AUTO:
        return wanted
    flavor, version = server_version(connection)
    grants = read_grants(connection)
    may = all(
        len(grants.missing((need.name, *need.substitutes))) <= len(need.substitutes)
        for need in global_needs(flavor, version_number(version))
    )
    return Writer.BINLOG if may else Writer.SQL


def written_by_sql(plan: WindowPlan, target: Schema, writer: str) -> frozenset[TableKey]:
    """The window's tables whose rows are written by statements: all of them, or what BINLOG cannot bring over.

    That is JSON between the families (``apply.family_rows``); tables that the window makes are known by its statements.
    """
    touched = frozenset({*plan.applied_tables, *plan.undone})
    by_statements = writer != Writer.BINLOG
    if by_statements or plan.flavor is target.flavor:
        return touched if by_statements else frozenset()
    asked = {demand.subject.rpartition(".")[0] for demand in plan.demands if demand.feature == "JSON column"}
    return frozenset(key for key in touched if str(key) in asked or _has_json(target.table(key)))


def _has_json(table: Table | None) -> bool:
    return table is not None and any(column.data_type == "json" for column in table.columns)


def sql_findings(target: Schema, touched: Collection[TableKey], with_triggers: Collection[str]) -> Iterator[Finding]:
    """Tables that statements would write otherwise than row events do. ``with_triggers``: names that the channel
    allows, ``database.table``."""
    for key in sorted(touched, key=str):
        table = target.table(key)
        if table is not None:
            yield from _of_table(table, with_triggers)


def _of_table(table: Table, with_triggers: Collection[str]) -> Iterator[Finding]:
    if table.triggers and str(table.key) not in with_triggers:
        names = ", ".join(trigger.name for trigger in table.triggers)
        todo = (
            "statements fire them and the log holds their effects already: drop them on the target, or name the table "
            "in apply.allow_triggers if they change nothing that is replicated"
        )
        yield Finding(Severity.FATAL, f"{table.key}: triggers", "none under the SQL writer", names, todo)
    if table.system_versioned:
        todo = 'its history cannot be written by statements: apply.writer = "binlog"'
        yield Finding(Severity.FATAL, f"{table.key}: versioning", "none under the SQL writer", "system versioned", todo)
