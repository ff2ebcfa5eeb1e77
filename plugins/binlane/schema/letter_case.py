"""How a server compares names of databases, tables and views: with or without regard to letter case.

With ``lower_case_table_names`` 1 or 2 a server takes ``Shop`` and ``shop`` for one name, logs row events in lower case
(1) and statements as typed; its catalogue may show either. So every name passes through one ``LetterCase`` before it is
compared: names from the catalogue, row events, statements and the channel's rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.rename_rules import is_system, lower
from binlane.sql.parse.facts import StatementFacts

__all__ = ["ANY_CASE", "AS_TYPED", "LetterCase", "is_system", "lower"]


@dataclass(frozen=True, slots=True)
class LetterCase:
    """Converts names to the form in which they are compared."""

    folds: bool = False
    """``lower_case_table_names`` is set."""

    def name(self, name: str) -> str:
        """A database's name, or a pattern for names."""
        return lower(name) if self.folds else name

    def names(self, names: frozenset[str]) -> frozenset[str]:
        """Several database names."""
        return frozenset(map(lower, names)) if self.folds else names

    def table(self, key: TableKey) -> TableKey:
        """A table's or view's name."""
        return TableKey(lower(key.database), lower(key.table)) if self.folds else key

    def tables(self, keys: frozenset[TableKey]) -> frozenset[TableKey]:
        """Several tables' or views' names."""
        return frozenset(map(self.table, keys)) if self.folds else keys

    def facts(self, facts: StatementFacts) -> StatementFacts:
        """A statement's facts with all their names converted."""
        if not self.folds:
            return facts
        made = facts.created_temporary
        return replace(
            facts,
            databases=self.names(facts.databases),
            tables=self.tables(facts.tables),
            written=self.tables(facts.written),
            defines=self.tables(facts.defines),
            references=self.names(facts.references),
            first=None if facts.first is None else self.table(facts.first),
            created_temporary=None if made is None else self.table(made),
            views=self.tables(facts.views),
            triggered=self.tables(facts.triggered),
            dropped_triggers=self.tables(facts.dropped_triggers),
            dropped=self.tables(facts.dropped),
            replaced=self.tables(facts.replaced),
            dropped_in=self.names(facts.dropped_in),
            routine_databases=self.names(facts.routine_databases),
            default_database=None if facts.default_database is None else self.name(facts.default_database),
            renames=tuple((self.table(old), self.table(new)) for old, new in facts.renames),
            exchanges=tuple((self.table(old), self.table(new)) for old, new in facts.exchanges),
            copies=tuple((self.table(old), self.table(new)) for old, new in facts.copies),
            union=self.tables(facts.union),
        )


AS_TYPED: Final = LetterCase()
"""For a server that distinguishes ``Shop`` from ``shop``."""
ANY_CASE: Final = LetterCase(folds=True)
"""Where no server is known, or any will do: at worst two names are taken for one."""
