"""A server's tables as values in one spelling for both families, with the properties that the plan needs.

``normalize`` makes the spelling the same, ``compare`` compares source and target, ``logged`` compares a TABLE_MAP with
a table, ``codec`` writes and reads schema.json.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Set
from dataclasses import field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey
from binlane.schema.dependencies import SchemaFacts
from binlane.schema.letter_case import LetterCase, lower
from binlane.schema.normalize import OLD_FORMAT

TRANSACTIONAL_ENGINES: Final = frozenset({"innodb", "rocksdb", "tokudb", "ndbcluster"})
"""Engines whose rows commit and roll back together with the position (invariant 2). Lower case."""
REDUCIBLE_ENGINES: Final = frozenset({"innodb"})
MERGE_ENGINE: Final = "mrg_myisam"
ENGINES_WITHOUT_KEYS: Final = frozenset(
    {"blackhole", "merge", MERGE_ENGINE}
    | {"cassandra", "connect", "federated", "mroonga", "oqgraph", "s3", "sequence", "sphinx", "spider"}
)
"""Engines that may take two rows of one unique key: they keep none, or those of other tables or servers. Lower case."""


class Generated(StrEnum):
    """How the server computes a column's value."""

    VIRTUAL = "virtual"
    STORED = "stored"
    ROW_START = "row_start"
    """MariaDB's ROW START: when this version of the row began."""
    ROW_END = "row_end"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Names of types, character sets and collations as ``normalize`` writes them."""

    name: str
    ordinal: int
    """Position in the table, from 1."""
    data_type: str
    """``int``, ``varchar``, ``json`` ...; without length, sign and display width."""
    unsigned: bool = False
    length: int | None = None
    """Characters of CHAR and VARCHAR, bytes of BINARY and VARBINARY, dimensions of VECTOR."""
    octets: int | None = None
    """Maximum bytes of a string value."""
    precision: int | None = None
    """Digits of DECIMAL and of FLOAT(m, d), bits of BIT."""
    scale: int | None = None
    fsp: int | None = None
    """Digits of a second's fraction in TIME, DATETIME and TIMESTAMP."""
    charset: str | None = None
    """None for binary strings and all types that are not text. MariaDB's JSON is text, MySQL's is not."""
    collation: str | None = None
    members: tuple[str, ...] = ()
    """ENUM and SET members, in order: a row holds their numbers."""
    nullable: bool = True
    generated: Generated | None = None
    expression: str | None = None
    default: str | None = None
    """A literal in single quotes, or an expression; None for no default and for NULL."""
    on_update: bool = False
    """ON UPDATE CURRENT_TIMESTAMP."""
    auto_increment: bool = False
    invisible: bool = False
    compressed: bool = False
    """MariaDB's column compression; such columns have their own type codes in a TABLE_MAP."""

    @property
    def has_unlogged_length(self) -> bool:
        """Whether it is a column with a fraction in MariaDB 5.3's format, whose values are longer or shorter than its
        type in a TABLE_MAP says: whoever reads rows by the log alone takes other bytes for the columns behind it."""
        return bool(self.fsp) and self.data_type.endswith(OLD_FORMAT)


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """One part of a key: a column, or an expression of a functional key."""

    name: str | None
    prefix: int | None = None
    descending: bool = False
    expression: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """An index."""

    name: str
    unique: bool
    primary: bool
    columns: tuple[KeyColumn, ...]
    kind: str = "BTREE"
    """BTREE, HASH, FULLTEXT or SPATIAL, as the server says. MariaDB's unique keys over long columns are HASH."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key, seen from the child. ``NO ACTION`` is written ``RESTRICT``: InnoDB treats them alike."""

    name: str
    columns: tuple[str, ...]
    parent: TableKey
    parent_columns: tuple[str, ...]
    on_update: str
    on_delete: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger's name, timing and event."""

    name: str
    timing: str
    event: str


@dataclass(frozen=True, slots=True)
class Table:
    """A base table, or a MariaDB sequence (its changes are logged as row events)."""

    key: TableKey
    engine: str
    columns: tuple[Column, ...]
    keys: tuple[Key, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    system_versioned: bool = False
    without_overlaps: bool = False

    @property
    def primary_key(self) -> Key | None:
        """The primary key, if there is one."""
        return next((key for key in self.keys if key.primary), None)

    @property
    def transactional(self) -> bool:
        """Whether a ROLLBACK undoes this table's changes."""
        return self.engine.lower() in TRANSACTIONAL_ENGINES

    @property
    def kind(self) -> Hashable:
        """All but the names: equal for tenants' tables of one schema, which share the objects. Valid as long as the
        schema is; tables of two schemas that are the same have others."""
        return (
            *(self.engine, id(self.columns), id(self.keys), self.references, self.triggers),
            *(self.system_versioned, self.without_overlaps),
        )

    @property
    def references(self) -> tuple[ForeignKey, ...]:
        """The foreign keys; parents in the same database without its name, so that tenants' tables are equal."""
        return tuple(
            replace(each, parent=TableKey("", each.parent.table)) if each.parent.database == self.key.database else each
            for each in self.foreign_keys
        )

    def named(self, key: TableKey) -> Table:
        """The table of this definition with that name; a parent without a database is in the same one."""
        foreign_keys = tuple(
            replace(each, parent=TableKey(each.parent.database or key.database, each.parent.table))
            for each in self.foreign_keys
        )
        # ``replace`` takes five times as long, and a fleet has ten thousand tables
        return Table(
            key,
            self.engine,
            self.columns,
            self.keys,
            foreign_keys,
            self.triggers,
            self.system_versioned,
            self.without_overlaps,
        )

    @property
    def auto_increment(self) -> Column | None:
        """The AUTO_INCREMENT column, if there is one."""
        return next((column for column in self.columns if column.auto_increment), None)


@dataclass(frozen=True)
class Schema:
    """The definitions on one server at one moment. Names as that server stores them."""

    # no slots: cached_property keeps the lookups over ten thousand tables

    flavor: Flavor
    version: str
    settings: Mapping[str, str] = field(default_factory=dict)
    """Server variables that the plan depends on, as SHOW GLOBAL VARIABLES spells them."""
    collations: frozenset[str] = frozenset()
    """Every collation that the server has; empty if it was not queried."""
    databases: frozenset[str] = frozenset()
    tables: Mapping[TableKey, Table] = field(default_factory=dict)
    views: frozenset[TableKey] = frozenset()
    routines: frozenset[tuple[str, str]] = frozenset()
    """Database and name of every procedure and function."""
    events: frozenset[tuple[str, str]] = frozenset()
    """Database and name of every ENABLED event."""
    references: frozenset[tuple[TableKey, TableKey]] = frozenset()
    """(child, parent) of every foreign key with a child or parent in these databases, and each MERGE table with every
    table of its UNION."""

    def of(self, databases: Set[str]) -> Schema:
        """The part that is about these databases."""
        return replace(
            self,
            databases=self.databases & databases,
            tables={key: table for key, table in self.tables.items() if key.database in databases},
            views=frozenset(key for key in self.views if key.database in databases),
            routines=frozenset(pair for pair in self.routines if pair[0] in databases),
            events=frozenset(pair for pair in self.events if pair[0] in databases),
            references=frozenset(pair for pair in self.references if any(key.database in databases for key in pair)),
        )

    def with_more(self, other: Schema) -> Schema:
        """These definitions, and those of further databases of the same server."""
        return replace(
            self,
            databases=self.databases | other.databases,
            tables={**self.tables, **other.tables},
            views=self.views | other.views,
            routines=self.routines | other.routines,
            events=self.events | other.events,
            references=self.references | other.references,
        )

    @property
    def folds_names(self) -> bool:
        """Whether the server takes ``Shop`` and ``shop`` for one name (``lower_case_table_names`` 1 and 2)."""
        return self.settings.get("lower_case_table_names", "0") != "0"

    @property
    def max_allowed_packet(self) -> int | None:
        """``max_allowed_packet`` in bytes; None if the server was not queried."""
        value = self.settings.get("max_allowed_packet")
        return None if value is None else int(value)

    def table(self, key: TableKey) -> Table | None:
        """The table that this server finds by that name; None if there is none."""
        found = self.tables.get(key)
        return self._by_lower_case.get(_lower_case(key)) if found is None and self.folds_names else found

    @cached_property
    def _by_lower_case(self) -> Mapping[tuple[str, str], Table]:
        return {_lower_case(key): table for key, table in self.tables.items()}

    @property
    def letter_case(self) -> LetterCase:
        """How the server compares names."""
        return LetterCase(self.folds_names)

    def known(self) -> SchemaFacts:
        """The objects that statements use implicitly."""
        merges = {key for key, table in self.tables.items() if table.engine.lower() == MERGE_ENGINE}
        return SchemaFacts.of(
            self.letter_case,
            self.views,
            self.tables_with_triggers,
            frozenset(database for database, _ in self.routines),
            (pair for pair in self.references if pair[0] not in merges),
            (pair for pair in self.references if pair[0] in merges),
        )

    @cached_property
    def linked(self) -> frozenset[TableKey]:
        """The tables at either end of a foreign key."""
        return frozenset(key for pair in self.references for key in pair)

    @property
    def tables_with_triggers(self) -> frozenset[TableKey]:
        """Tables with triggers: statements that write them may change other tables."""
        return frozenset(key for key, table in self.tables.items() if table.triggers)


def why_not_reduced(schema: Schema, key: TableKey) -> str | None:
    """Why the row images of table ``key`` must not be reduced; None if they may be.

    By the target's schema alone. A block may have reasons of its own (column bitmaps, partial updates, an earlier DDL),
    and so may a difference between the keys of source and target (``compare``).
    """
    table = schema.table(key)
    if table is None:
        return "it is not in the target's schema"
    if table.key in schema.linked:
        return _LINKED
    return own_reason(table)


def reducible_tables(schema: Schema) -> frozenset[TableKey]:
    """All tables for which ``why_not_reduced`` gives None, in one pass."""
    return frozenset(
        key for key, table in schema.tables.items() if key not in schema.linked and own_reason(table) is None
    )


_LINKED: Final = "a foreign key begins or ends at it"


def own_reason(table: Table) -> str | None:
    """The reason in the table itself not to change the order of its row changes; None if there is none.

    A foreign key of another table, which refers to this one, is not seen here.
    """
    reasons = (
        (table.engine.lower() not in REDUCIBLE_ENGINES, f"its engine is {table.engine}, not InnoDB"),
        (table.primary_key is None, "it has no primary key"),
        (table.system_versioned, "it is system-versioned: folding would lose history"),
        (table.without_overlaps, "it may have a key WITHOUT OVERLAPS: final states in another order can collide"),
        (bool(table.foreign_keys), _LINKED),
    )
    return next((reason for holds, reason in reasons if holds), None)


def _lower_case(key: TableKey) -> tuple[str, str]:
    return lower(key.database), lower(key.table)
