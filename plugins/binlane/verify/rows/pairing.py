"""Finds the tables to compare, and those that cannot be: missing on one server, or defined differently."""

from __future__ import annotations

from functools import partial
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.plan.transaction.channel_rules import AS_LOGGED, ChannelRules
from binlane.plan.transaction.rename import name_of, renamed_schema
from binlane.schema.compare import Rules, Severity, compare
from binlane.schema.model import Schema, Table
from binlane.schema.normalize import SAME_COLLATION, across_families
from binlane.schema.shell_names import shell_name
from binlane.servers.variables import version_number
from binlane.state.records.verifications import AS_BEFORE
from binlane.verify.rows.column_text import ComparedTable, compared

ONLY_ON_TARGET: Final = "the table exists on the target and not on the source"
_ONLY_ON_SOURCE: Final = "the table exists on the source and not on the target"
_JSON_TABLE: Final = (8, 0, 14)
"""The first MySQL whose JSON_TABLE may name columns of an outer query."""


@dataclass(frozen=True, slots=True)
class Tables:
    """By the target's names, ascending."""

    compared: dict[TableKey, ComparedTable]
    not_comparable: dict[TableKey, str]
    """Why the rows of a table cannot be compared."""


def pair(source: Schema, target: Schema, channel: ChannelRules = AS_LOGGED) -> Tables:
    """All tables of the source's databases that the channel takes, from either server.

    A database that exists only on the target belongs to the channel if ``source.databases`` names it.
    """
    selection, renaming = channel.selection, channel.renaming
    both: dict[TableKey, ComparedTable] = {}
    not_comparable: dict[TableKey, str] = {}
    flavors = (source.flavor, target.flavor)
    rules = Rules(
        flavors[0] is flavors[1],
        target.collations,
        allow_non_transactional=True,
        collations=channel.collations.given,
    )
    types_json = all(
        each.flavor is Flavor.MYSQL and version_number(each.version) >= _JSON_TABLE for each in (source, target)
    )
    renamed = renamed_schema(source, partial(name_of, renaming)) if renaming else source
    for ours in source.tables.values():
        if selection.table(ours.key) is not None:
            continue
        named = renaming.table(ours.key)
        theirs = None if renaming.refusal(ours.key.database) is not None else target.table(named)
        if theirs is None:
            not_comparable[named] = _ONLY_ON_SOURCE
            continue
        # renamed, since foreign keys name databases
        fatal = [one for one in compare(renamed.tables[named], theirs, rules) if one.severity is Severity.FATAL]
        if fatal:
            not_comparable[theirs.key] = str(fatal[0])
        else:
            by_key = _same_key(ours, theirs, rules)
            both[theirs.key] = compared(ours, theirs, flavors, by_key=by_key, types_json=types_json)
    for table in target.tables.values():
        database = renaming.source(table.key.database)
        key = None if database is None else TableKey(database, table.key.table)
        if key is None or selection.table(key) is not None or table.key in both:
            continue
        if key.database in source.databases and source.table(key) is None:
            not_comparable[table.key] = ONLY_ON_TARGET
    return Tables(dict(sorted(both.items(), key=_by_name)), dict(sorted(not_comparable.items(), key=_by_name)))


def with_way_out(note: str, table: TableKey, channel: str) -> str:
    """A note with the next step, if it has one: of a table that only one server has, and of rows that are drift by
    their values alone."""
    if note == AS_BEFORE:
        copied = f"`binlane recopy {channel} --table {shell_name(table)}`"
        return f"{note}; verify while such changes pause (or log rows: binlog_format = ROW on the source), or {copied}"
    if note == ONLY_ON_TARGET:
        name = f"{identifier(table.database)}.{identifier(table.table)}"
        return f"{note}; DROP TABLE {name} on the target, unless somebody else needs it there"
    if note == _ONLY_ON_SOURCE:
        return f"{note}; `binlane recopy {channel} --table {shell_name(table)}` makes it with its rows"
    return note


def _by_name(entry: tuple[TableKey, object]) -> str:
    return str(entry[0])


def _same_key(source: Table, target: Table, rules: Rules) -> bool:
    """Whether both servers order the rows alike: a chunk must hold the same keys on both."""
    ours = _ordered_by(source)
    if not rules.same_flavor:
        ours = [(name, across_families(collation, rules.target_collations)) for name, collation in ours]
    return ours == _ordered_by(target)


def _ordered_by(table: Table) -> list[tuple[str, str]]:
    collations = {column.name: column.collation for column in table.columns}
    parts = () if table.primary_key is None else table.primary_key.columns
    names = [part.name or "" for part in parts]
    return [(name.lower(), SAME_COLLATION.get(found := collations.get(name) or "", found)) for name in names]
