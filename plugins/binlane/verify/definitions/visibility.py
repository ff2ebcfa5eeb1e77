"""What a verification cannot compare, because an account does not see it.

A catalogue leaves out what its reader has no privilege on, so a table that is not shown looks like one that is not
there. The accounts' privileges tell the two apart. What one of the accounts does not see is taken out of both servers'
definitions, by name: it is neither equal nor different.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field, replace
from typing import Final

from binlane.binlog.types.literals import identifier
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.schema.letter_case import LetterCase
from binlane.schema.model import Schema
from binlane.shards.selection import Extent

READS: Final = "SELECT"


@dataclass(frozen=True, slots=True)
class Visibility:
    """What the channel's two accounts see; the first argument: whether the source's is meant."""

    holds: Callable[[bool, str, str], bool] = lambda _is_source, _privilege, _database: True
    """A privilege on a database, by its server's name."""
    shows: Callable[[bool, TableKey], bool] = lambda _is_source, _key: True
    """A table with all its columns."""


@dataclass(frozen=True, slots=True)
class UnseenObjects:
    """What is not compared, by the target's names, with the reason."""

    databases: Mapping[str, str] = field(default_factory=dict)
    """Databases of which an account may not see all tables."""
    accepted: frozenset[str] = frozenset()
    """Those of ``databases`` that the channel's file names in ``apply.allow_unseen``."""
    letter_case: LetterCase = field(default_factory=LetterCase)
    """How the target compares names."""

    def hides(self, table: TableKey, compared: Collection[TableKey]) -> bool:
        """Whether nothing is known of a table; ``compared``: those whose rows can be compared."""
        name = self.letter_case.name(table.database)
        return name in self.databases and table not in compared

    @property
    def reasons(self) -> tuple[str, ...]:
        """For each database a line."""
        return tuple(f"database {name}: {why}" for name, why in sorted(self.databases.items()))

    @property
    def is_gap(self) -> bool:
        """Whether there is anything that the channel's file does not accept."""
        return not self.databases.keys() <= self.accepted


def without_unseen(
    schemas: tuple[Schema, Schema],
    rules: ChannelRules,
    visibility: Visibility,
    known: Collection[str],
    accepted: Collection[str] = (),
) -> tuple[tuple[Schema, Schema], UnseenObjects]:
    """The definitions of source and target without what one of the accounts does not see, and what that is.

    ``known``: the databases of the channel's records, by the target's names; ``accepted``: by the source's.
    """
    source, target = schemas
    names = _databases(schemas, rules, known)
    reasons = {theirs: why for ours, theirs in names.items() if (why := _why(visibility, ours, theirs))}
    if not reasons:
        return schemas, UnseenObjects()
    case = target.letter_case
    left = [
        {
            key: table
            for key, table in schema.tables.items()
            if case.name(rules.renaming.target(key.database) if is_source else key.database) not in reasons
            or all(visibility.shows(of, each) for of, each in _on_both(rules, key, is_source=is_source))
        }
        for schema, is_source in ((source, True), (target, False))
    ]
    taken = frozenset(theirs for ours, theirs in names.items() if ours in accepted)
    unseen = UnseenObjects(reasons, taken & reasons.keys(), case)
    return (replace(source, tables=left[0]), replace(target, tables=left[1])), unseen


def _databases(schemas: tuple[Schema, Schema], rules: ChannelRules, known: Collection[str]) -> dict[str, str]:
    """The channel's databases: the source's names, each with the target's as that compares it."""
    renaming, case = rules.renaming, schemas[1].letter_case
    found = {*schemas[0].databases, *(name for each in known if (name := renaming.source(each)) is not None)}
    return {
        name: case.name(renaming.target(name))
        for name in sorted(found)
        if rules.selection.database(name)[0] is not Extent.NONE and renaming.refusal(name) is None
    }


def _why(visibility: Visibility, ours: str, theirs: str) -> str:
    lacking = [
        f"the {server}'s account lacks {READS} on {identifier(name)}.*"
        for server, is_source, name in (("source", True, ours), ("target", False, theirs))
        if not visibility.holds(is_source, READS, name)
    ]
    return f"{' and '.join(lacking)}: tables that it may not read are not compared" if lacking else ""


def _on_both(rules: ChannelRules, key: TableKey, *, is_source: bool) -> Iterator[tuple[bool, TableKey]]:
    """A table of one server under the names of both."""
    if is_source:
        yield from ((True, key), (False, rules.renaming.table(key)))
        return
    yield False, key
    if (database := rules.renaming.source(key.database)) is not None:
        yield True, TableKey(database, key.table)
