"""A logged table bound to the target's: what each of its columns is there, and how a statement finds a row.

A TABLE_MAP says how bytes are laid out, the target's schema what they mean: names, signs, character sets, and the types
that no log tells apart. Both were held against each other before (``logged``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.types.charsets import BINARY
from binlane.binlog.types.columns import Column as LoggedColumn
from binlane.errors import TableMismatchError
from binlane.model import Flavor, TableKey, plural
from binlane.schema.logged import hidden_columns
from binlane.schema.model import Column, Table

_JSON_TEXT = "utf8mb4"
"""What text of MariaDB's JSON is in, which MySQL parses."""


@dataclass(frozen=True, slots=True)
class BoundTable:
    """A table whose rows can be written by statements. Columns are numbered from 0, as in an image."""

    key: TableKey
    columns: tuple[LoggedColumn, ...]
    written: frozenset[int]
    """Columns that a statement may set: neither generated nor hidden."""
    primary_key: tuple[int, ...]
    """Columns of the primary key; empty if there is none."""
    renewed: frozenset[int]
    """ON UPDATE CURRENT_TIMESTAMP: they change unless they are set."""


def bind(logged: TableMap, source: Flavor, target: Table) -> BoundTable:
    """Bind the TABLE_MAP of a ``source`` server. Raises TableMismatchError if the number of columns differs."""
    wanted = [*target.columns, *hidden_columns(target)]
    if len(wanted) != logged.width:
        raise TableMismatchError(
            f"{target.key}: the rows have {plural(logged.width, 'column')}, the target's table {len(wanted)}; none of "
            "them was written: apply the DDL between the two definitions first"
        )
    shown = frozenset(range(len(target.columns)))
    place = {column.name: number for number, column in enumerate(target.columns)}
    key = target.primary_key
    names = () if key is None else tuple(part.name for part in key.columns)
    return BoundTable(
        key=target.key,
        columns=tuple(map(_bound, columns_of(logged, source), wanted)),
        written=frozenset(number for number in shown if wanted[number].generated is None),
        primary_key=tuple(place[name] for name in names if name is not None),
        renewed=frozenset(number for number in shown if wanted[number].on_update),
    )


def _bound(logged: LoggedColumn, target: Column) -> LoggedColumn:
    return replace(
        logged,
        name=target.name,
        unsigned=target.unsigned,
        charset=target.charset or (_JSON_TEXT if target.data_type == "json" else BINARY),
        data_type=target.data_type,
    )
