"""What stands behind the names of a window's statements: views, triggers, routines, foreign keys, MERGE tables.

From the target's schema at the window's start, and from the window's own statements. Nothing is ever forgotten: what
a statement drops, or a key that it takes away, may still have been there for an earlier one, so at worst there is a
barrier too many or two databases share a lane for one window. The order of the statements means nothing for the same
reason.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from binlane.model import TableKey
from binlane.schema.letter_case import AS_TYPED, LetterCase
from binlane.sql.parse.definitions import LOADABLE_OR_STORED
from binlane.sql.parse.facts import StatementFacts, StatementKind

Tables = frozenset[TableKey]
"""Tables that a change of one may change: a child and its parent, a MERGE table and one that it is made of; or all that
a statement names that makes such a thing."""


@dataclass(frozen=True)
class SchemaFacts:
    """What is known of the schema at any time of the window; names as ``letter_case`` gives them (``of``)."""

    # without slots: the groups are made once

    views: frozenset[TableKey] = frozenset()
    triggered_tables: frozenset[TableKey] = frozenset()
    routine_databases: frozenset[str] = frozenset()
    """Databases that hold stored procedures or functions."""
    foreign_keys: frozenset[Tables] = frozenset()
    """All of them, those inside one database, too: a RENAME may carry either end into another database."""
    merges: frozenset[Tables] = frozenset()
    """Of MERGE tables, which CREATE TABLE ... LIKE copies together with their UNION; foreign keys it does not copy."""
    renames: frozenset[tuple[TableKey, TableKey]] = frozenset()
    """Old and new name of tables that the window moves."""
    copies: frozenset[tuple[TableKey, TableKey]] = frozenset()
    """Old and new name of tables that it makes LIKE others."""
    uncertain: bool = False
    """A statement that could not be read may have created any of these."""
    may_join: bool = False
    """Such a statement may have joined any databases, or moved a table that others are joined to."""
    letter_case: LetterCase = AS_TYPED

    @classmethod
    def of(
        cls,
        letter_case: LetterCase = AS_TYPED,
        views: frozenset[TableKey] = frozenset(),
        triggered_tables: frozenset[TableKey] = frozenset(),
        routine_databases: frozenset[str] = frozenset(),
        references: Iterable[tuple[TableKey, TableKey]] = (),
        merges: Iterable[tuple[TableKey, TableKey]] = (),
    ) -> SchemaFacts:
        """Of a server's catalogue; ``references``: child and parent of each foreign key; ``merges``: each MERGE table
        with every table that it is made of."""
        return cls(
            views=letter_case.tables(views),
            triggered_tables=letter_case.tables(triggered_tables),
            routine_databases=letter_case.names(routine_databases),
            foreign_keys=frozenset(frozenset(map(letter_case.table, pair)) for pair in references),
            merges=frozenset(frozenset(map(letter_case.table, pair)) for pair in merges),
            letter_case=letter_case,
        )

    def group_of(self, database: str) -> str:
        """The representative of the database's foreign key group: itself, if no foreign key joins it to another."""
        name = self.letter_case.name(database)
        return self.foreign_key_groups.get(name, name)

    def after(self, *statements: StatementFacts) -> SchemaFacts:
        """What is known once these statements have run, in any order."""
        seen = [self.letter_case.facts(facts) for facts in statements]
        definitions = [facts for facts in seen if facts.kind is StatementKind.DDL]
        renames = self.renames.union(*(facts.renames for facts in definitions))
        moved = _moved(renames)
        unread = {facts.reason for facts in seen if facts.kind is StatementKind.UNKNOWN and facts.commits_implicitly}
        return replace(
            self,
            views=_carried(self.views.union(*(facts.views for facts in definitions)), moved),
            triggered_tables=_carried(self.triggered_tables.union(*(facts.triggered for facts in definitions)), moved),
            routine_databases=self.routine_databases.union(*(facts.routine_databases for facts in definitions)),
            foreign_keys=self.foreign_keys | {facts.tables for facts in definitions if facts.references},
            merges=self.merges | {facts.tables for facts in definitions if facts.union},
            renames=renames,
            copies=self.copies.union(*(facts.copies for facts in definitions)),
            uncertain=self.uncertain or bool(unread),
            may_join=self.may_join or bool(unread - {LOADABLE_OR_STORED}),
        )

    @cached_property
    def foreign_key_groups(self) -> Mapping[str, str]:
        """Databases joined by foreign keys and MERGE tables, each with its group's representative: the smallest name.

        Databases that none leaves or enters are not in it. One group goes to one lane: a child's row that is
        applied before its parent's is refused (1452), and one before its parent's DELETE is deleted with it. A table
        keeps its keys under each name that the window gives it.
        """
        root: dict[str, str] = {}

        def find(name: str) -> str:
            while root.setdefault(name, name) != name:
                name = root[name]
            return name

        moved, copied = _moved(self.renames), _moved(self.renames | self.copies)
        carried = chain(
            (_carried(tables, moved) for tables in self.foreign_keys),
            (_carried(tables, copied) for tables in self.merges),
        )
        for tables in carried:
            databases = sorted({key.database for key in tables})
            for database in databases[1:]:
                low, high = sorted((find(databases[0]), find(database)))
                root[high] = low
        return {name: find(name) for name in sorted(root)}


def _moved(renames: Iterable[tuple[TableKey, TableKey]]) -> Mapping[TableKey, frozenset[TableKey]]:
    """By old name, the new ones."""
    moved: dict[TableKey, set[TableKey]] = defaultdict(set)
    for old, new in renames:
        moved[old].add(new)
    return {old: frozenset(new) for old, new in moved.items()}


def _carried(tables: frozenset[TableKey], moved: Mapping[TableKey, frozenset[TableKey]]) -> frozenset[TableKey]:
    """These tables under all names that they may have had in the window."""
    if moved.keys().isdisjoint(tables):
        return tables
    found, left = set(tables), list(tables)
    while left:
        for new in moved.get(left.pop(), frozenset()) - found:
            found.add(new)
            left.append(new)
    return frozenset(found)
