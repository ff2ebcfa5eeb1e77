"""How a server tells names of databases, tables and views apart: by every letter, or whatever the letters' case.

With ``lower_case_table_names`` 1 or 2 a server takes ``Shop`` and ``shop`` for one name, logs rows in lower case (1)
and statements as they were typed, and its catalogue may answer in either. So names that are compared pass through one
``LetterCase`` first: those of the catalogue, of row events, of statements, and of the channel's own rules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from binlane.model import TableKey
from binlane.rename_rules import lower
from binlane.sql.parse.facts import StatementFacts

__all__ = ["AS_TYPED", "LetterCase", "lower"]


@dataclass(frozen=True, slots=True)
class LetterCase:
    """Names as they are compared."""

    folds: bool = False
    """``lower_case_table_names`` is set."""

    def name(self, name: str) -> str:
        """A database's name, or a pattern of one."""
        return lower(name) if self.folds else name

    def names(self, names: frozenset[str]) -> frozenset[str]:
        """Several of them."""
        return frozenset(map(lower, names)) if self.folds else names

    def table(self, key: TableKey) -> TableKey:
        """A table's or view's name."""
        return TableKey(lower(key.database), lower(key.table)) if self.folds else key

    def tables(self, keys: frozenset[TableKey]) -> frozenset[TableKey]:
        """Several of them."""
        return frozenset(map(self.table, keys)) if self.folds else keys

    def facts(self, facts: StatementFacts) -> StatementFacts:
        """What a statement says of itself."""
        if not self.folds:
            return facts
        made = facts.created_temporary
        return replace(
            facts,
            databases=self.names(facts.databases),
            tables=self.tables(facts.tables),
            written=self.tables(facts.written),
            references=self.names(facts.references),
            created_temporary=None if made is None else self.table(made),
            views=self.tables(facts.views),
            triggered=self.tables(facts.triggered),
            routine_databases=self.names(facts.routine_databases),
            renames=tuple((self.table(old), self.table(new)) for old, new in facts.renames),
            copies=tuple((self.table(old), self.table(new)) for old, new in facts.copies),
            union=self.tables(facts.union),
        )


AS_TYPED: Final = LetterCase()
"""Of a server that tells ``Shop`` from ``shop``."""
