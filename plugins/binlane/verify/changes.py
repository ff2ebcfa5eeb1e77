"""Changes in a range of a log: keys of changed rows, and tables with changes that row events do not show.

Such changes come from statements and DDL; from foreign keys, whose cascades the servers do not log; from rows of
another shape than the table has now. If a statement's changes cannot be determined, everything counts as changed.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.letter_case import AS_TYPED, LetterCase
from binlane.state.records.verifications import BY_FOREIGN_KEYS, BY_STATEMENTS
from binlane.verify.rows.column_text import Key
from binlane.verify.rows.keys import KeySet

_OF_ACCOUNTS: Final = TableKey("", "")
"""The name of an account's ``SchemaObject``."""


@dataclass(slots=True)
class Changes:
    """The changes of a log, by the target's names. Those that statements name are as ``letter_case`` gives them: rows
    events have a catalogue's names, statements have whatever was typed."""

    letter_case: LetterCase = AS_TYPED
    keys: dict[TableKey, KeySet] = field(default_factory=lambda: defaultdict(KeySet))
    touched: set[TableKey] = field(default_factory=set)
    """Tables with row events, whose keys may be left out here."""
    tables: set[TableKey] = field(default_factory=set)
    """Tables in which any row may have changed."""
    databases: set[str] = field(default_factory=set)
    everything: bool = False
    prepares: bool = False
    """Whether it holds an XA PREPARE, whose rows change only when the transaction ends."""
    defined: set[TableKey] = field(default_factory=set)
    """Tables and views that a DDL names, and the children of such tables."""
    defined_in: set[str] = field(default_factory=set)
    """Databases in which a DDL concerns another object: a routine, an event, the database itself."""
    followed: set[TableKey] = field(default_factory=set)
    """Tables whose rows may have changed at places that the log does not show: foreign keys have followed others."""
    stated: set[TableKey] = field(default_factory=set)
    """Tables that statements change which are no DDL."""
    stated_in: set[str] = field(default_factory=set)
    """Databases in which they may change any table."""
    stated_anywhere: bool = False
    """Whether they may change any table: their texts do not tell."""
    unplaced: bool = False
    """Whether rows of any table may have changed at such places."""
    made: set[str] = field(default_factory=set)
    """Databases that may have been dropped and created again."""
    all_defined: bool = False
    accounts: bool = False
    """Whether there are statements about accounts."""

    def covers(self, table: TableKey, key: Key) -> bool:
        """Whether the row may have changed; with an empty key: anything of the table."""
        if self.covers_table(table):
            return True
        return bool(self.keys.get(table)) if key == () else key in self.keys.get(table, ())

    def covers_definition(self, name: TableKey, *, is_named: bool) -> bool:
        """Whether an object's definition may have changed; ``is_named``: DDL names it, as tables and views."""
        name = self.letter_case.table(name)
        if self.all_defined or name in self.defined or name.database in self.made:
            return True
        if name == _OF_ACCOUNTS:
            return self.accounts
        return not is_named and name.database in self.defined_in

    def covers_table(self, table: TableKey) -> bool:
        """Whether any row of the table may have changed."""
        table = self.letter_case.table(table)
        return self.everything or table in self.tables or table.database in self.databases

    def unshown(self, table: TableKey) -> str:
        """What changes the table's rows without showing them, if that may go on behind every watermark; else empty."""
        table = self.letter_case.table(table)
        if self.stated_anywhere or table in self.stated or table.database in self.stated_in:
            return BY_STATEMENTS
        return BY_FOREIGN_KEYS if table in self.followed else ""

    def shows_first(self, table: TableKey) -> bool:
        """Whether the rows that the log has shown before it covered the table had not changed before that."""
        return not self.unplaced and self.letter_case.table(table) not in self.followed
