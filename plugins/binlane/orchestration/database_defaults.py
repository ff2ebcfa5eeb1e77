"""CREATE TABLE without a character set takes its database's default, on either server its own: no log says it."""

from __future__ import annotations

from collections.abc import Iterator

from binlane.apply.finding import Finding
from binlane.apply.refusals import driver_errors
from binlane.connections import Endpoints
from binlane.plan.demands import DATABASE_DEFAULT, DATABASE_SET
from binlane.plan.renaming import name_of, sources_of
from binlane.plan.schema import Schema
from binlane.plan.schema_compare import Severity
from binlane.plan.window_plan import WindowPlan
from binlane.shards.renaming import Renaming
from binlane.source.server import translated
from binlane.state.catalog import read_default_collations
from binlane.state.engines import engine_of


def check_defaults(endpoints: Endpoints, plan: WindowPlan, target: Schema, renaming: Renaming) -> Iterator[Finding]:
    """Databases with statements that depend on a default which source and target do not share.

    A database that the window makes, alters or drops is passed over: what it was meanwhile, neither server knows. Of a
    default that the target does not know (another family's) the log is told only. An archive tells of none.
    """
    there = {str(key).lower() for key in target.tables}
    asked = {
        demand.subject: seqno
        for demand, seqno in plan.demands.items()
        if demand.feature == DATABASE_DEFAULT and demand.unless.lower() not in there
    }
    for demand in plan.demands:
        if demand.feature == DATABASE_SET:
            asked.pop(demand.subject, None)
    if not asked or endpoints.source is None:
        return
    with engine_of(endpoints.target).connect() as connection:
        ours = read_default_collations(connection, asked)
    with translated(str(endpoints.source)), driver_errors(), engine_of(endpoints.source).connect() as connection:
        logged = read_default_collations(connection, sources_of(renaming, asked))
    for source, theirs in sorted(logged.items()):
        name = name_of(renaming, source)
        if name in asked and ours.get(name, theirs) != theirs:
            charset = theirs.split("_")[0]
            todo = (
                f"the statement of seqno {asked[name]} makes what has the default: ALTER DATABASE `{name}` "
                f"CHARACTER SET {charset} COLLATE {theirs} on the target, which alters none of its tables"
            )
            severity = Severity.FATAL if theirs in target.collations else Severity.INFO
            yield Finding(severity, f"{name}: default collation", f"{theirs}, as on the source", ours[name], todo)
