"""Which writer writes a channel's rows, and which tables' rows are written by statements.

"auto" is decided by the account's privileges alone, in the precheck and in each lane alike: both writers have the same
effect, so a grant between the two does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import Connection

from binlane.apply.rows.writers import sends_row_events
from binlane.binlog.types.column_types import by_statements
from binlane.choices import Writer
from binlane.model import Flavor, TableKey
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.account.privileges import Grants, global_needs, read_grants
from binlane.schema.model import Schema, Table
from binlane.servers.variables import server_version, version_number


def chosen_writer(connection: Connection, wanted: str) -> str:
    """``wanted``, or what "auto" means for this connection's account: "binlog" if it may send BINLOG statements."""
    if wanted != Writer.AUTO:
        return wanted
    flavor, version = server_version(connection)
    return writer_of(read_grants(connection), flavor, version_number(version))


def writer_of(grants: Grants, flavor: Flavor, number: tuple[int, int, int]) -> str:
    """What "auto" means for an account with these grants on such a server."""
    may = all(
        len(grants.missing((need.name, *need.substitutes))) <= len(need.substitutes)
        for need in global_needs(flavor, number)
    )
    return Writer.BINLOG if may else Writer.SQL


def written_by_sql(plan: WindowPlan, target: Schema, writer: str) -> frozenset[TableKey]:
    """The window's tables whose rows are written by statements: all of them, or what BINLOG cannot bring over.

    Between the families (``apply.rows.cross_family``) these are JSON, known by the window's statements where it makes
    the table, and MariaDB's compressed columns.
    """
    touched = frozenset({*plan.applied_tables, *plan.undone_tables})
    if not sends_row_events(writer):
        return touched
    if plan.flavor is target.flavor:
        return frozenset()
    asked = {
        requirement.subject.rpartition(".")[0]
        for requirement in plan.requirements
        if requirement.feature == "JSON column"
    }
    return frozenset(
        key
        for key in touched
        if str(key) in asked or _has_json(target.table(key)) or any(map(by_statements, _types(plan, key)))
    )


def _types(plan: WindowPlan, key: TableKey) -> Iterator[int]:
    for logged, _ in plan.logged(key):
        yield from logged.column_types


def _has_json(table: Table | None) -> bool:
    return table is not None and any(column.data_type == "json" for column in table.columns)
