"""Tables whose changes may be folded, and their key columns: from the target's schema and the window's own DDL."""

from __future__ import annotations

from collections.abc import Mapping

from binlane.binlog.types.sql_types import sql_type
from binlane.binlog.types.sql_values import INTEGER
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.letter_case import lower
from binlane.schema.model import Generated, Schema, Table, reducible_tables, why_not_reduced


@dataclass(frozen=True, slots=True)
class TableRule:
    """How a table's row images are folded. Columns are counted from 0, as TABLE_MAP orders them."""

    width: int
    primary: tuple[int, ...]
    unique: tuple[int, ...]
    """Columns of any unique key, the primary key included: a change of one of them is a delete and an insert."""
    counter: int | None = None
    """The AUTO_INCREMENT column."""
    counter_signed: bool = False


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Tables and databases that this window must not fold, with the reason."""

    tables: Mapping[TableKey, str]
    databases: Mapping[str, str]
    everything: str | None = None

    def reasons(self) -> _Reasons:
        """The reasons, prepared for lookups of many tables."""
        return _Reasons(
            {_lower(key): reason for key, reason in self.tables.items()},
            {lower(name): reason for name, reason in self.databases.items()},
            self.everything,
        )


@dataclass(frozen=True, slots=True)
class _Reasons:
    """Names in lower case: a server with lower_case_table_names compares so, and logs statements as typed."""

    tables: Mapping[TableKey, str]
    databases: Mapping[str, str]
    everything: str | None

    def of(self, key: TableKey) -> str | None:
        """The reason not to fold the table; None if there is none here."""
        name = _lower(key)
        return self.everything or self.tables.get(name) or self.databases.get(name.database)


def _lower(key: TableKey) -> TableKey:
    return TableKey(lower(key.database), lower(key.table))


def table_rules(schema: Schema, excluded: Exclusions) -> Mapping[TableKey, TableRule]:
    """The rules of all tables that may be folded."""
    reasons = excluded.reasons()
    # tables of tenants share their column and key objects (``schema.codec``), and so their rules
    made: dict[tuple[int, int], TableRule | None] = {}
    rules: dict[TableKey, TableRule] = {}
    for key in sorted(reducible_tables(schema), key=str):
        table = schema.tables[key]
        kind = id(table.columns), id(table.keys)
        if kind not in made:
            made[kind] = _rule(table) if _unfit_column(table) is None else None
        rule = made[kind]
        if rule is not None and reasons.of(key) is None:
            rules[key] = rule
    return rules


def why_not_folded(schema: Schema, excluded: Exclusions, key: TableKey) -> str | None:
    """The reason why a table is not folded, for the plan; None if it is folded."""
    reason = excluded.reasons().of(key) or why_not_reduced(schema, key)
    return _unfit_column(schema.tables[key]) if reason is None else reason


def _unfit_column(table: Table) -> str | None:
    """The reason in the table's columns not to fold it; None if there is none."""
    if any(column.has_unlogged_length for column in table.columns):
        return "the log does not tell the length of a column in MariaDB 5.3's format"
    counter = table.auto_increment
    if counter is not None and sql_type(counter.data_type).values is not INTEGER:
        return "its AUTO_INCREMENT column is not an integer"
    primary = table.primary_key
    names = {column.name.lower() for column in table.columns if column.generated is not Generated.VIRTUAL}
    if primary is not None and any(part.name is None or part.name.lower() not in names for part in primary.columns):
        return "the log does not hold its whole primary key"
    return None


def _rule(table: Table) -> TableRule:
    places = {column.name.lower(): place for place, column in enumerate(table.columns)}
    hidden = {column.name.lower() for column in table.columns if column.generated is Generated.VIRTUAL}
    primary, unique = set[int](), set[int]()
    for key in table.keys:
        if not key.unique:
            continue
        names = [column.name.lower() if column.name is not None else None for column in key.columns]
        if any(name is None or name in hidden or name not in places for name in names):
            # a virtual column or an expression, which images do not hold: a change of any column may change the key
            unique.update(places.values())
            continue
        columns = [places[name] for name in names if name is not None]
        unique.update(columns)
        if key.primary:
            primary.update(columns)
    counter = table.auto_increment
    return TableRule(
        width=len(table.columns),
        primary=tuple(sorted(primary)),
        unique=tuple(sorted(unique)),
        counter=None if counter is None else places[counter.name.lower()],
        counter_signed=counter is not None and not counter.unsigned,
    )
