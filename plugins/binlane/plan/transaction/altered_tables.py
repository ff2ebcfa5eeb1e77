"""Which statements of a window change which tables: what a table's definition is worth at a seqno."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from binlane.model import TableKey
from binlane.schema.letter_case import lower
from binlane.schema.model import ForeignKey, Schema, Table

_RENAMED = TableKey("", "(a table that was altered)")


@dataclass(frozen=True)
class Alterations:
    """The seqnos, ascending, of the window's statements that name a table and commit by themselves.

    Names are compared without regard to case: a server with lower_case_table_names logs statements as typed and rows in
    lower case. Two tables that differ in case only are then both taken for altered, which costs a look.
    """

    tables: Mapping[TableKey, tuple[int, ...]] = field(default_factory=dict)
    unread: tuple[int, ...] = ()
    """Of statements that could not be read: they may alter any table."""

    def __bool__(self) -> bool:
        return bool(self.tables or self.unread)

    def names(self, key: TableKey) -> bool:
        """Whether any statement of the window may alter the table."""
        return bool(self.unread) or _lower(key) in self._lower

    def before(self, key: TableKey, seqno: int) -> int:
        """How many statements may have altered the table once ``seqno`` is applied: its definition's number."""
        return bisect_right(self._lower.get(_lower(key), ()), seqno) + bisect_right(self.unread, seqno)

    @cached_property
    def _lower(self) -> Mapping[TableKey, tuple[int, ...]]:
        found: dict[TableKey, set[int]] = defaultdict(set)
        for key, seqnos in self.tables.items():
            found[_lower(key)].update(seqnos)
        return {key: tuple(sorted(seqnos)) for key, seqnos in found.items()}


def without_altered_parents(schema: Schema, *alterations: Alterations) -> Schema:
    """The schema with foreign keys that do not tell to which table they lead, if that is one of the altered ones.

    RENAME changes the foreign keys of tables that it does not name: a definition from before it and one from behind it
    are the same but for that.
    """

    def parent(one: ForeignKey) -> ForeignKey:
        altered = any(each.names(one.parent) for each in alterations)
        return replace(one, parent=_RENAMED) if altered else one

    def changed(table: Table) -> Table:
        keys = tuple(map(parent, table.foreign_keys))
        return table if keys == table.foreign_keys else replace(table, foreign_keys=keys)

    if not any(alterations):
        return schema
    return replace(schema, tables={key: changed(table) for key, table in schema.tables.items()})


def _lower(key: TableKey) -> TableKey:
    return TableKey(lower(key.database), lower(key.table))
