"""Which statements and rows events change tables whose engine has no transactions: a rollback leaves their changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING, Final

from binlane.binlog.rows_payload import check_self_contained
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, Item, ItemKind, RowCounts, SessionContext, TableKey
from binlane.plan.transaction.decode import statement_facts
from binlane.servers.names import is_named
from binlane.sql.parse.facts import StatementKind

if TYPE_CHECKING:
    from sqlalchemy import Connection

_ENGINE: Final = (
    "SELECT t.table_type LIKE '%%VIEW%%', COALESCE(e.transactions, 'NO') <> 'YES' "
    "FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine "
    "WHERE t.table_schema = %s AND t.table_name = %s"
)
_TRIGGERS: Final = (
    "SELECT trigger_name FROM information_schema.triggers "
    f"WHERE {is_named('event_object_schema', '%s')} AND {is_named('event_object_table', '%s')}"
)


@dataclass(frozen=True, slots=True)
class _Table:
    """What the target has by a name; a temporary table, or nothing, has none of this."""

    is_view: bool = False
    is_nontransactional: bool = False
    has_triggers: bool = False


@dataclass(slots=True)
class NontransactionalTables:
    """The tables without transactions, on the target as it is now.

    They are read on a connection of their own: the lane's has the source's session.
    """

    connection: Connection
    source: Flavor
    fires_triggers: bool
    """Rows are written by statements."""
    _tables: dict[TableKey, _Table] = field(default_factory=dict)

    def forget(self) -> None:
        """Ask anew: a DDL may have given tables another engine."""
        self._tables.clear()

    def may_change(self, item: Item) -> bool:
        """Whether the item may change such a table, so that a rollback leaves a part of it.

        Tables that the target does not have are temporary ones.
        """
        if item.kind in (ItemKind.FILE, ItemKind.DDL):
            return False
        if item.kind is ItemKind.ROWS:
            return any(self._is_changed(key, fires=self.fires_triggers) for key in check_self_contained(item.payload))
        facts = statement_facts(item.payload, item.context or SessionContext(), self.source)
        if facts.kind is StatementKind.TRANSACTION:
            return False
        if facts.kind is StatementKind.UNKNOWN or facts.routines_used or facts.reason is not None:
            return True
        changed = facts.written or facts.tables
        # a view may call a function
        return any(self._of(key).is_view for key in facts.tables) or any(
            self._is_changed(key, fires=True) for key in changed
        )

    def _is_changed(self, key: TableKey, *, fires: bool) -> bool:
        table = self._of(key)
        return table.is_view or table.is_nontransactional or (fires and table.has_triggers)

    def _of(self, key: TableKey) -> _Table:
        found = self._tables.get(key)
        if found is None:
            names = (key.database, key.table)
            rows = self.connection.exec_driver_sql(_ENGINE, names).all()
            is_view, is_nontransactional = map(bool, rows[0]) if rows else (False, False)
            # asked where it matters: the query makes a table on disk
            fires = bool(rows) and not (is_view or is_nontransactional)
            triggers = (
                self.connection.exec_driver_sql(_TRIGGERS, tuple(name for name in names for _ in range(3))).all()
                if fires
                else ()
            )
            found = self._tables[key] = _Table(is_view, is_nontransactional, bool(triggers))
        return found


class BlockItems:
    """A block's items, up to the first that may change a table without transactions; counted while they are taken."""

    def __init__(self, items: Iterable[Item], tables: NontransactionalTables | None = None) -> None:
        """``tables``: None if no item needs a note."""
        self._items = iter(items)
        self._tables = tables
        self._rows = RowCounts()
        self._needs_note = False

    def __iter__(self) -> Iterator[Item]:
        if self._needs_note:
            return
        for item in self._items:
            if self._tables is not None and self._tables.may_change(item):
                self._needs_note = True
                return
            self._rows += item.rows
            yield item
            if self._tables is not None and item.kind is ItemKind.DDL:
                self._tables.forget()

    def needs_note(self) -> bool:
        """Whether the items have ended before one whose transaction needs a note (``change_notes``)."""
        return self._needs_note

    def total(self) -> RowCounts:
        """Take the rest of the items and return the sum of all: then the next block can be read."""
        for _ in self:
            pass
        return self._rows
