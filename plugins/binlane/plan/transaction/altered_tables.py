"""The seqnos at which a window's own statements may alter tables: a table's definition holds between two of them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.letter_case import lower
from binlane.schema.model import ForeignKey, Schema, Table

_RENAMED = TableKey("", "(a table that was altered)")
_A_COLUMN = "(a column)"


@dataclass(frozen=True)
class Alterations:
    """The seqnos, ascending, of the window's statements that may change a table's definition or existence.

    Names are compared without regard to case: a server with lower_case_table_names logs statements as typed and rows in
    lower case. Two tables whose names differ in case only then both count as altered, which costs one more comparison.
    """

    tables: Mapping[TableKey, tuple[int, ...]] = field(default_factory=dict)
    unread: tuple[int, ...] = ()
    """Seqnos of statements that could not be parsed: they may alter any table."""

    def __bool__(self) -> bool:
        return bool(self.tables or self.unread)

    def names(self, key: TableKey) -> bool:
        """Whether any statement of the window may alter the table."""
        return bool(self.unread) or (bool(self.tables) and _lower(key) in self._lower)

    def before(self, key: TableKey, seqno: int) -> int:
        """Number of statements that may have altered the table up to ``seqno``: identifies its definition there."""
        named = self._lower.get(_lower(key), ()) if self.tables else ()
        return bisect_right(named, seqno) + bisect_right(self.unread, seqno)

    @cached_property
    def _lower(self) -> Mapping[TableKey, tuple[int, ...]]:
        found: dict[TableKey, set[int]] = defaultdict(set)
        for key, seqnos in self.tables.items():
            found[_lower(key)].update(seqnos)
        return {key: tuple(sorted(seqnos)) for key, seqnos in found.items()}


def without_altered_parents(schema: Schema, *alterations: Alterations) -> Schema:
    """The schema, with placeholders for parent and its columns in all foreign keys to altered tables.

    A new name of a table, or of a column, changes the foreign keys of tables that the statement does not name:
    definitions from before and after it would differ in these alone.
    """

    def parent(one: ForeignKey) -> ForeignKey:
        if not any(each.names(one.parent) for each in alterations):
            return one
        return replace(one, parent=_RENAMED, parent_columns=(_A_COLUMN,) * len(one.parent_columns))

    def changed(table: Table) -> Table:
        keys = tuple(map(parent, table.foreign_keys))
        return table if keys == table.foreign_keys else replace(table, foreign_keys=keys)

    if not any(alterations):
        return schema
    return replace(schema, tables={key: changed(table) for key, table in schema.tables.items()})


def without_triggers(schema: Schema, dropped: Alterations | None) -> Schema:
    """The schema, without the triggers that are dropped; None: without any.

    DROP TRIGGER does not name the trigger's table, so that does not count as altered; but of its definitions from
    before and after the statement only one has the trigger.
    """

    def changed(table: Table) -> Table:
        left = tuple(one for one in table.triggers if not is_dropped(TableKey(table.key.database, one.name)))
        return table if len(left) == len(table.triggers) else replace(table, triggers=left)

    def is_dropped(name: TableKey) -> bool:
        return dropped is None or dropped.names(name)

    return replace(schema, tables={key: changed(table) for key, table in schema.tables.items()})


def _lower(key: TableKey) -> TableKey:
    return TableKey(lower(key.database), lower(key.table))
