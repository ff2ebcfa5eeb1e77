"""Tables that feel where a statement of the source ends: their statements are sent as logged, each with its own end.

A BINLOG statement for a MariaDB server usually joins the events of many statements into one (``join_statements``).
The server does two things once for each statement: it sets the clock by the statement's first event, and it chooses the
partition that gets its history. Row events have the history that their own table gets, but not its partition, and not
the history that cascades of foreign keys make in other tables. So there the number of statements shows (tried on
10.11):

- ``PARTITION BY SYSTEM_TIME LIMIT`` and ``INTERVAL ... AUTO``: all history of a joined statement would be in one
  partition, and a later DROP PARTITION would remove other rows than on the source.
- two cascades onto one row of a system-versioned table would end its version twice at one time: error 1761.

Folded tables are none of these: a table that is system-versioned, or at either end of a foreign key, is never folded.
Which tables feel where a *transaction* ends is in docs/consistency.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Final, Protocol

from binlane.model import Flavor, TableKey
from binlane.plan.block.reducible_tables import Exclusions
from binlane.schema.model import Schema, Table

RULES: Final[tuple[tuple[str, Callable[[Table], bool]], ...]] = (
    ("it is system-versioned", lambda table: table.system_versioned),
)
"""Why a table feels where a statement ends, and whether it does. Tables whose foreign keys cascade to such a table feel
it, too."""


class StatementRules(Protocol):
    """The tables whose statements keep their ends."""

    def why(self, key: TableKey) -> str | None:
        """Why the table's statements keep their ends; None if they may be joined."""
        ...


class EveryStatement:
    """Nothing is known of the target's tables."""

    def why(self, key: TableKey) -> str | None:
        """Any table may feel it."""
        return f"nothing is known of {key}"


class BoundStatements:
    """By the target's schema at the window's start. A table that the window changes may have become one."""

    def __init__(self, schema: Schema, excluded: Exclusions) -> None:
        self._schema, self._changed = schema, excluded.reasons()
        self._is_mariadb = schema.flavor is Flavor.MARIADB

    @property
    def any(self) -> bool:
        """Whether there is such a table: if not, no payload need be searched for one."""
        changed = self._changed
        return self._is_mariadb and bool(
            self._reasons or changed.tables or changed.databases or changed.everything is not None
        )

    def why(self, key: TableKey) -> str | None:
        """Why the table's statements keep their ends; None if they may be joined."""
        if not self._is_mariadb:
            return None
        changed = self._changed.of(key)
        table = self._schema.table(key)
        return changed if changed is not None or table is None else self._reasons.get(table.key)

    @cached_property
    def _reasons(self) -> dict[TableKey, str]:
        """By table, the parents of cascades included."""
        found = {table.key: reason for table in self._schema.tables.values() for reason in _own(table)}
        parents: dict[TableKey, set[TableKey]] = {}
        for child, parent in self._schema.references if found else ():
            parents.setdefault(child, set()).add(parent)
        left = list(found)
        while left:
            child = left.pop()
            more = parents.get(child, set()) - found.keys()
            found |= dict.fromkeys(more, f"a foreign key of {child} refers to it, and {found[child]}")
            left += more
        return found


def _own(table: Table) -> Iterator[str]:
    return (reason for reason, holds in RULES if holds(table))
