"""CREATE TABLE without a character set takes its database's default, on either server its own: no log says it."""

from __future__ import annotations

from collections.abc import Iterator

from binlane.apply.refusals import driver_errors
from binlane.connections import Endpoints
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.rename import name_of, sources_of
from binlane.plan.window_plan import WindowPlan
from binlane.precheck.finding import Finding
from binlane.schema.compare import Severity
from binlane.schema.model import Schema
from binlane.servers.catalog import read_default_collations
from binlane.servers.engines import engine_of
from binlane.source.server import translated
from binlane.sql.requirements import DATABASE_DEFAULT, DATABASE_SET


def check_defaults(endpoints: Endpoints, plan: WindowPlan, target: Schema, rules: ChannelRules) -> Iterator[Finding]:
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
        logged = read_default_collations(connection, sources_of(rules.renaming, asked))
    for source, theirs in sorted(logged.items()):
        name, expected = name_of(rules.renaming, source), rules.collations.given.get(theirs, theirs)
        if name in asked and ours.get(name, expected) != expected:
            charset = expected.split("_")[0]
            todo = (
                f"the statement of seqno {asked[name]} makes what has the default: ALTER DATABASE `{name}` "
                f"CHARACTER SET {charset} COLLATE {expected} on the target, which alters none of its tables"
            )
            severity = Severity.FATAL if expected in target.collations else Severity.INFO
            given = "as on the source" if expected == theirs else f"which [collations] gives for {theirs}"
            yield Finding(severity, f"{name}: default collation", f"{expected}, {given}", ours[name], todo)
