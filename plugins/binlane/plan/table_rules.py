"""Which tables' changes may be folded, and by which columns: from the target's schema and the window's own DDL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from binlane.model import TableKey
from binlane.plan.schema import Generated, Schema, Table, reducible_tables, why_not_reduced

_COUNTERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})


@dataclass(frozen=True, slots=True)
class TableRule:
    """How a table's row images are folded. Columns are counted from 0, as TABLE_MAP orders them."""

    width: int
    primary: tuple[int, ...]
    unique: tuple[int, ...]
    """Columns of any unique key, the primary one included: a change of one of them is a delete and an insert."""
    counter: int | None = None
    """The AUTO_INCREMENT column."""
    counter_signed: bool = False


@dataclass(frozen=True, slots=True)
class Excluded:
    """What the window itself makes unfit for folding, with the reason."""

    tables: Mapping[TableKey, str]
    databases: Mapping[str, str]
    everything: str | None = None

    def reason(self, key: TableKey) -> str | None:
        """Why the table is not folded; None if nothing here speaks against it."""
        if self.everything is not None:
            return self.everything
        return self.tables.get(key) or self.databases.get(key.database)


def table_rules(schema: Schema, excluded: Excluded) -> Mapping[TableKey, TableRule]:
    """The rules of all tables that may be folded."""
    return {
        key: _rule(schema.tables[key])
        for key in sorted(reducible_tables(schema), key=str)
        if excluded.reason(key) is None and _counter_fits(schema.tables[key])
    }


def why_not_folded(schema: Schema, excluded: Excluded, key: TableKey) -> str | None:
    """The reason why a table's changes keep their order, for the plan; None if they are folded."""
    reason = excluded.reason(key) or why_not_reduced(schema, key)
    if reason is None and not _counter_fits(schema.tables[key]):
        return "its AUTO_INCREMENT column is not an integer"
    return reason


def _counter_fits(table: Table) -> bool:
    counter = table.auto_increment
    return counter is None or counter.data_type in _COUNTERS


def _rule(table: Table) -> TableRule:
    places = {column.name.lower(): place for place, column in enumerate(table.columns)}
    hidden = {column.name.lower() for column in table.columns if column.generated is Generated.VIRTUAL}
    primary, unique = set[int](), set[int]()
    for key in table.keys:
        if not key.unique:
            continue
        names = [column.name.lower() if column.name is not None else None for column in key.columns]
        if any(name is None or name in hidden or name not in places for name in names):
            # its value is not in the image, or made of others: any change may change it
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
