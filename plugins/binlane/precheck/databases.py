"""Databases: new names that meet, letters' case, and defaults that source and target do not share."""

from __future__ import annotations

from collections.abc import Iterator

from binlane.plan.transaction.rename import name_of, sources_of, without_own_name
from binlane.plan.window.fold import EMPTY
from binlane.precheck.finding import Finding
from binlane.precheck.situation import Situation
from binlane.schema.compare import Severity, letter_case
from binlane.shards.selection import Extent
from binlane.sql.requirements import DATABASE_DEFAULT, DATABASE_SET


def check_renamed_databases(situation: Situation) -> Iterator[Finding]:
    """Databases that would have the same name on the target after renaming."""
    present = frozenset() if situation.source_as_named is None else situation.source_as_named.databases
    taken = [name for name in present if situation.selection.database(name)[0] is not Extent.NONE]
    for name, why in without_own_name(situation.renaming, taken):
        todo = "rename it, too, or leave it out (filter.exclude_databases): docs/renames.md"
        yield Finding(Severity.FATAL, f"{name}: database", "a name of its own on the target", why, todo)


def check_letter_case(situation: Situation) -> Iterator[Finding]:
    """Names with capital letters, where ``lower_case_table_names`` differs between source and target."""
    plan, source = situation.plan, situation.source_tables
    if source is not None:
        tables = (str(key) for key in (*plan.applied_tables, *plan.altered.tables, *plan.undone))
        shards = (name for shard in plan.shards for name in shard.split("+") if not name.startswith("#"))
        databases = (name for name in shards if name != EMPTY)
        for name, expected, found, todo in letter_case(source, situation.tables, [*tables, *databases]):
            yield Finding(Severity.FATAL, f"{name}: letters' case", f"{expected} as on the source", found, todo)


def check_default_collations(situation: Situation) -> Iterator[Finding]:
    """Databases whose default collation differs on the target, where a statement depends on it.

    CREATE TABLE without a character set takes its database's default, on either server its own: no log says it.
    A database that the window makes, alters or drops is passed over: what it was meanwhile, neither server knows. Of a
    default that the target does not know (another family's) the log is told only. An archive tells of none.
    """
    plan, target, rules = situation.plan, situation.tables, situation.settings.rules
    there = {str(key).lower() for key in target.tables}
    asked = {
        demand.subject: seqno
        for demand, seqno in plan.demands.items()
        if demand.feature == DATABASE_DEFAULT and demand.unless.lower() not in there
    }
    for demand in plan.demands:
        if demand.feature == DATABASE_SET:
            asked.pop(demand.subject, None)
    # of a window that is begun some of it may have run
    if not asked or situation.source is None or situation.begun:
        return
    ours = situation.target.default_collations(asked)
    logged = situation.source.default_collations(sources_of(rules.renaming, asked))
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
