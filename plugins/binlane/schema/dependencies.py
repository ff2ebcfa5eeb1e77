"""The objects that a window's statements use implicitly: views, triggers, routines, foreign keys, MERGE tables.

Read from the target's schema at the window's start and from the window's own statements. Dropped objects stay in the
facts, because an earlier statement may have used them: at worst there is a needless barrier, or two databases share a
lane for one window. So the order of the statements does not matter.

A window whose folder is lost is planned again, and its plan must be the same, while the target's schema may be the one
behind the window's own DDL. So what a statement drops counts as something that other statements may use, whatever it
was, and what a table, a view or a foreign key is under one of its names, it is under all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from functools import cached_property
from operator import attrgetter
from typing import Any, Final, TypeVar

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.letter_case import AS_TYPED, LetterCase
from binlane.sql.parse.facts import StatementFacts, StatementKind

_CHANGES: Final = (StatementKind.DML, StatementKind.LOAD_DATA, StatementKind.UNKNOWN)
T = TypeVar("T")
Tables = frozenset[TableKey]
"""Tables that one change may write together: a child and its parent, or a MERGE table and one of its UNION; or all
tables of a statement that creates a foreign key or a MERGE table."""


@dataclass(frozen=True)
class SchemaFacts:
    """All objects that exist at some time of the window; names as ``letter_case`` gives them (``of``)."""

    # no slots: cached_property keeps the groups

    views: frozenset[TableKey] = frozenset()
    triggered_tables: frozenset[TableKey] = frozenset()
    routine_databases: frozenset[str] = frozenset()
    """Databases that hold stored procedures or functions."""
    foreign_keys: frozenset[Tables] = frozenset()
    """All foreign keys, also those inside one database: a RENAME may move either end into another database."""
    merges: frozenset[Tables] = frozenset()
    """MERGE tables with the tables of their UNION. Apart from foreign keys: CREATE TABLE ... LIKE copies a UNION, but
    no foreign key."""
    renames: frozenset[tuple[TableKey, TableKey]] = frozenset()
    """Old and new name of each table that the window renames."""
    copies: frozenset[tuple[TableKey, TableKey]] = frozenset()
    """Original and copy of each CREATE TABLE ... LIKE in the window."""
    dropped: frozenset[TableKey] = frozenset()
    """What the window drops or replaces: tables, perhaps with triggers, and views."""
    dropped_in: frozenset[str] = frozenset()
    """Databases that the window drops or replaces, or of which it drops a routine or a trigger."""
    uncertain: bool = False
    """The window has a statement that could not be read and may have created any of these objects."""
    changes_by_statements: bool = False
    """The window has statements that change rows, which may reach views and routines."""
    may_join: bool = False
    """An unreadable statement may have created a foreign key or renamed a table of one."""
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
        """The facts of a server's catalogue; ``references``: child and parent of each foreign key; ``merges``: each
        MERGE table with every table of its UNION."""
        return cls(
            views=letter_case.tables(views),
            triggered_tables=letter_case.tables(triggered_tables),
            routine_databases=letter_case.names(routine_databases),
            foreign_keys=frozenset(frozenset(map(letter_case.table, pair)) for pair in references),
            merges=frozenset(frozenset(map(letter_case.table, pair)) for pair in merges),
            letter_case=letter_case,
        )

    def group_of(self, database: str) -> str:
        """The representative of the database's foreign key group: the database itself if no foreign key leaves it."""
        name = self.letter_case.name(database)
        return self.foreign_key_groups.get(name, name)

    def after(self, *statements: StatementFacts) -> SchemaFacts:
        """These facts and those of ``statements``, in any order."""
        seen = [self.letter_case.facts(facts) for facts in statements]
        definitions = [facts for facts in seen if facts.kind is StatementKind.DDL]
        renames = self.renames.union(*(facts.moves for facts in definitions))
        moved = _moved(_both_ways(renames))
        unread = [facts for facts in seen if facts.kind is StatementKind.UNKNOWN and facts.commits_implicitly]
        return replace(
            self,
            views=_carried(self.views.union(*(facts.views for facts in definitions)), moved),
            triggered_tables=_carried(self.triggered_tables.union(*(facts.triggered for facts in definitions)), moved),
            routine_databases=self.routine_databases.union(*(facts.routine_databases for facts in definitions)),
            dropped=self.dropped.union(
                *(facts.dropped | facts.replaced for facts in definitions if not facts.temporary)
            ),
            dropped_in=self.dropped_in.union(*(facts.dropped_in for facts in definitions)),
            foreign_keys=self.foreign_keys | {facts.tables for facts in definitions if facts.references},
            merges=self.merges | {facts.tables for facts in definitions if facts.union},
            renames=renames,
            copies=self.copies.union(*(facts.copies for facts in definitions)),
            uncertain=self.uncertain or bool(unread),
            changes_by_statements=self.changes_by_statements
            or any(facts.kind in _CHANGES or facts.create_select for facts in seen),
            may_join=self.may_join or any(facts.may_define_any for facts in unread),
        )

    @cached_property
    def foreign_key_groups(self) -> Mapping[str, str]:
        """Databases joined by foreign keys and MERGE tables, each with its group's representative: the smallest name.

        Databases without foreign keys to others are left out. A group goes to one lane: a child's INSERT applied before
        its parent's would fail (1452), and one applied before the parent's DELETE could be deleted by the cascade. A
        table keeps its foreign keys under each name that the window gives it.
        """
        return _groups(({key.database for key in tables} for tables in self._joined), str)

    @cached_property
    def table_groups(self) -> Mapping[TableKey, TableKey]:
        """Tables joined by foreign keys and MERGE tables, each with its group's representative."""
        return _groups(self._joined, attrgetter("database", "table"))

    @property
    def _joined(self) -> Iterator[Tables]:
        """Tables that belong together, each under every name that it may have in the window."""
        renames = _both_ways(self.renames)
        moved, copied = _moved(renames), _moved(renames | self.copies)
        yield from (_carried(tables, moved) for tables in self.foreign_keys)
        yield from (_carried(tables, copied) for tables in self.merges)


def _groups(joined: Iterable[Set[T]], order: Callable[[T], Any]) -> Mapping[T, T]:
    """Names that are joined, directly or by others, each with its group's smallest name."""
    root: dict[T, T] = {}

    def find(name: T) -> T:
        while root.setdefault(name, name) != name:
            name = root[name]
        return name

    for names in joined:
        ordered = sorted(names, key=order)
        for name in ordered[1:]:
            low, high = sorted((find(ordered[0]), find(name)), key=order)
            root[high] = low
    return {name: find(name) for name in sorted(root, key=order)}


def _both_ways(renames: Set[tuple[TableKey, TableKey]]) -> frozenset[tuple[TableKey, TableKey]]:
    """The target's schema may be the one before them, or behind."""
    return frozenset(renames) | {(new, old) for old, new in renames}


def _moved(renames: Iterable[tuple[TableKey, TableKey]]) -> Mapping[TableKey, frozenset[TableKey]]:
    """New names by old name."""
    moved: dict[TableKey, set[TableKey]] = defaultdict(set)
    for old, new in renames:
        moved[old].add(new)
    return {old: frozenset(new) for old, new in moved.items()}


def _carried(tables: frozenset[TableKey], moved: Mapping[TableKey, frozenset[TableKey]]) -> frozenset[TableKey]:
    """These tables under every name that they may have in the window."""
    if moved.keys().isdisjoint(tables):
        return tables
    found, left = set(tables), list(tables)
    while left:
        for new in moved.get(left.pop(), frozenset()) - found:
            found.add(new)
            left.append(new)
    return frozenset(found)
