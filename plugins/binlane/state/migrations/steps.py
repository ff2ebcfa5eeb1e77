"""The steps from each version of the schema ``binlane`` to the next, in order: a literal table.

A step reads the present state of the schema, so an interrupted step resumes with the statements that are still needed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, Protocol

from sqlalchemy import Column, Connection, Executable, Table, text
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from binlane.lazy_dataclass import dataclass
from binlane.state import tables
from binlane.state.consistent_view import CONSISTENT, CONSISTENT_COLUMNS, CONSISTENT_VIEW
from binlane.state.migrations.check import StoredSchema
from binlane.state.tables import SCHEMA

_Statement = tuple[str, Executable]
"""The privilege on the schema that a statement needs, and the statement."""


class Action(Protocol):
    """A part of a step."""

    @property
    def names(self) -> Collection[str]:
        """The tables (``skips``) and columns (``skips.sha256``) that the action creates or changes."""

    def statements(self, connection: Connection, found: StoredSchema) -> Iterator[_Statement]:
        """The statements that are still needed, in order."""


_ROW_FORMAT: Final = "ROW_FORMAT=DYNAMIC"
"""The keys over names are longer than a server takes whose ``innodb_default_row_format`` is COMPACT."""


@dataclass(frozen=True, slots=True)
class AddTable:
    """Creates a table with its indexes."""

    table: Table

    @property
    def names(self) -> Collection[str]:
        """The table and its indexed columns: indexes are created after the table."""
        indexed = (column for index in self.table.indexes for column in index.columns)
        return (self.table.name, *(f"{self.table.name}.{column.name}" for column in indexed))

    def statements(self, connection: Connection, found: StoredSchema) -> Iterator[_Statement]:
        """See ``Action``."""
        is_there = self.table.name in found.engines
        if not is_there:
            made = str(CreateTable(self.table).compile(dialect=connection.dialect)).rstrip()
            yield "CREATE", text(f"{made} {_ROW_FORMAT}")
        for index in self.table.indexes:
            first = found.columns.get((self.table.name, next(iter(index.columns)).name))
            if first is None or first.key == "":
                yield "INDEX", CreateIndex(index)


@dataclass(frozen=True, slots=True)
class AddView:
    """Creates a view, or replaces one that has other columns."""

    name: str
    columns: Collection[str]
    definition: str

    @property
    def names(self) -> Collection[str]:
        """See ``Action``."""
        return (self.name,)

    def statements(self, connection: Connection, found: StoredSchema) -> Iterator[_Statement]:
        """See ``Action``."""
        if self.name not in found.views:
            yield "CREATE VIEW", text(f"CREATE {self.definition}")
        elif found.views[self.name] != tuple(self.columns):
            yield "CREATE VIEW", text(f"CREATE OR REPLACE {self.definition}")


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Adds a column. ``values`` sets the value in existing rows of a NOT NULL column."""

    column: Column[Any]
    values: Callable[[Connection], None] | None = None

    @property
    def names(self) -> Collection[str]:
        """See ``Action``."""
        return (f"{self.column.table.name}.{self.column.name}",)

    def statements(self, connection: Connection, found: StoredSchema) -> Iterator[_Statement]:
        """The column allows NULL until every row has its value, so that a resumed step finds the rows without one."""
        column, table = self.column, self.column.table.name
        has = found.columns.get((table, column.name))
        whole = str(CreateColumn(column).compile(dialect=connection.dialect)).strip()
        alter = f"ALTER TABLE {SCHEMA}.{table}"
        if self.values is None:
            if has is None:
                yield "ALTER", text(f"{alter} ADD COLUMN {whole}")
            return
        if has is None:
            kind = column.type.compile(dialect=connection.dialect)
            yield "ALTER", text(f"{alter} ADD COLUMN {column.name} {kind} NULL")
        if has is None or has.is_nullable:
            self.values(connection)
            yield "ALTER", text(f"{alter} MODIFY {whole}")


@dataclass(frozen=True, slots=True)
class Step:
    """The actions from one version to the next; its number is its index in ``STEPS``."""

    name: str
    actions: tuple[Action, ...]


VIEW: Final = AddView(CONSISTENT, CONSISTENT_COLUMNS, CONSISTENT_VIEW)
"""Also behind the steps, whatever the version: it holds no data, so one that was dropped by hand is created again."""
STEPS: Final = (
    Step(
        "the first schema",
        (*(AddTable(each) for each in tables.metadata.sorted_tables if each is not tables.migrations), VIEW),
    ),
)
