"""Which tables are compared, how, and which cannot be: missing on one server, or defined in another way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from binlane.model import TableKey
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.plan.transaction.rename import name_of, renamed_schema
from binlane.schema.compare import Rules, Severity, compare
from binlane.schema.model import Schema, Table
from binlane.schema.normalize import SAME_COLLATION
from binlane.verify.column_text import Compared, compared


@dataclass(frozen=True, slots=True)
class Tables:
    """By the target's names, ascending."""

    compared: dict[TableKey, Compared]
    unlike: dict[TableKey, str]
    """What is different of the table itself."""


def pair(source: Schema, target: Schema, channel: ChannelRules = AS_LOGGED) -> Tables:
    """Every table of the source's databases that the channel takes, on either server.

    Databases of the target alone are somebody else's.
    """
    selection, renaming = channel.selection, channel.renaming
    both: dict[TableKey, Compared] = {}
    unlike: dict[TableKey, str] = {}
    flavors = (source.flavor, target.flavor)
    rules = Rules(
        flavors[0] is flavors[1],
        target.collations,
        allow_non_transactional=True,
        collations=channel.collations.given,
    )
    renamed = renamed_schema(source, partial(name_of, renaming)) if renaming else source
    for ours in source.tables.values():
        if selection.table(ours.key) is not None:
            continue
        named = renaming.table(ours.key)
        theirs = None if renaming.refusal(ours.key.database) is not None else target.table(named)
        if theirs is None:
            unlike[named] = "the table exists on the source and not on the target"
            continue
        # foreign keys name databases
        fatal = [one for one in compare(renamed.tables[named], theirs, rules) if one.severity is Severity.FATAL]
        if fatal:
            unlike[theirs.key] = str(fatal[0])
        else:
            both[theirs.key] = compared(ours, theirs, flavors, by_key=_same_key(ours, theirs))
    for table in target.tables.values():
        database = renaming.source(table.key.database)
        key = None if database is None else TableKey(database, table.key.table)
        if key is None or selection.table(key) is not None or table.key in both:
            continue
        if key.database in source.databases and source.table(key) is None:
            unlike[table.key] = "the table exists on the target and not on the source"
    return Tables(dict(sorted(both.items(), key=_by_name)), dict(sorted(unlike.items(), key=_by_name)))


def _by_name(entry: tuple[TableKey, object]) -> str:
    return str(entry[0])


def _same_key(source: Table, target: Table) -> bool:
    """Whether both servers put the rows in one order: a chunk must hold the same keys on both."""
    return _ordered_by(source) == _ordered_by(target)


def _ordered_by(table: Table) -> list[tuple[str, str | None]]:
    collations = {column.name: column.collation for column in table.columns}
    parts = () if table.primary_key is None else table.primary_key.columns
    names = [part.name or "" for part in parts]
    return [(name.lower(), SAME_COLLATION.get(found := collations.get(name) or "", found)) for name in names]
