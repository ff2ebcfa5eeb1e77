"""The generator's model of the objects on the source, for which the next statements are written.

If a statement fails on the source, the model is wrong and later statements fail more often, which is a good test, too.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from binlane.model import Flavor

T = TypeVar("T")


def quoted(name: str) -> str:
    """An identifier in backticks."""
    return "`" + name.replace("`", "``") + "`"


class Dice(random.Random):
    """Random choices for generators."""

    def one_in(self, count: int) -> bool:
        """True once in ``count`` times."""
        return self.randrange(count) == 0

    def some(self, choices: Sequence[T], most: int) -> list[T]:
        """One to ``most`` of the choices, each at most once."""
        return self.sample(list(choices), min(len(choices), self.randint(1, most)))


@dataclass(frozen=True, slots=True)
class Column:
    """A column; ``kind`` is a name in ``values.VALUES``."""

    name: str
    kind: str
    extra: str = ""
    """The attributes behind the type: NOT NULL, DEFAULT, INVISIBLE ..."""
    computed: str = ""
    """The whole type and expression of a generated column."""

    @property
    def definition(self) -> str:
        """The column's definition in CREATE TABLE."""
        return f"{quoted(self.name)} {self.computed or self.kind} {self.extra}".rstrip()


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first column is ``id``, an integer."""

    database: str
    name: str
    columns: tuple[Column, ...]
    keys: tuple[str, ...] = ()
    id_is_key: bool = False
    auto: bool = False
    partitions: str = ""
    options: str = ""
    has_foreign_keys: bool = False
    versioned: bool = False

    @property
    def full(self) -> str:
        """``database.table``, quoted."""
        return f"{quoted(self.database)}.{quoted(self.name)}"

    @property
    def plain(self) -> tuple[Column, ...]:
        """Columns that statements may set, without ``id``."""
        return tuple(column for column in self.columns[1:] if not column.computed)

    def called(self, database: str, name: str) -> Table:
        """The same table with another name."""
        return replace(self, database=database, name=name)

    def create(self, how: str = "CREATE TABLE") -> str:
        """The table's CREATE TABLE."""
        parts = [*(column.definition for column in self.columns), *self.keys]
        return f"{how} {self.full} ({', '.join(parts)}) {self.options} {self.partitions}".rstrip()


@dataclass(slots=True)
class World:
    """Databases and their objects."""

    flavor: Flavor
    dice: Dice
    databases: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    views: list[tuple[str, str]] = field(default_factory=list)
    triggers: list[tuple[str, str]] = field(default_factory=list)
    routines: list[tuple[str, str, str]] = field(default_factory=list)
    """Kind, database, name."""
    events: list[tuple[str, str]] = field(default_factory=list)
    sequences: list[tuple[str, str]] = field(default_factory=list)
    families: list[tuple[Table, Table]] = field(default_factory=list)
    """Parents and children of ``edge_changes``."""
    prepared: list[str] = field(default_factory=list)
    numbers: int = 0

    @property
    def is_mysql(self) -> bool:
        """Whether the family is MySQL."""
        return self.flavor is Flavor.MYSQL

    def number(self) -> int:
        """A number that no name uses yet."""
        self.numbers += 1
        return self.numbers

    def table(self) -> Table:
        """A random table; the newest one more often."""
        return self.tables[-1] if self.dice.one_in(5) else self.dice.choice(self.tables)

    def database(self) -> str:
        """A random database."""
        return self.dice.choice(self.databases)

    def swap(self, old: Table, *new: Table) -> None:
        """Replace a dropped or changed table."""
        self.tables = [table for table in self.tables if table is not old]
        self.tables.extend(new)
