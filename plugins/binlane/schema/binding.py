"""A logged table bound to the target's table: the target's column for each logged one, and the key that finds a row.

A TABLE_MAP tells the layout of the bytes; the target's schema tells names, signs, character sets and the types that
share a type code in the log. ``logged`` has compared the two before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from binlane.binlog.table_map import TableMap, columns_of
from binlane.binlog.types.charsets import BINARY
from binlane.binlog.types.column_types import LOGGED_TYPES
from binlane.binlog.types.columns import Column as LoggedColumn
from binlane.binlog.types.literals import identifier
from binlane.errors import TableMismatchError
from binlane.lazy_dataclass import dataclass
from binlane.model import Flavor, TableKey, plural
from binlane.schema.logged import hidden_columns
from binlane.schema.model import Column, Generated, Table

_JSON_TEXT = "utf8mb4"
"""The character set in which MariaDB's JSON text is sent to MySQL, which parses it."""


@dataclass(frozen=True, slots=True)
class BoundTable:
    """A table whose rows can be written by statements. Columns are numbered from 0, as in an image."""

    key: TableKey
    columns: tuple[LoggedColumn, ...]
    written: frozenset[int]
    """Columns that a statement may set: all but generated and hidden ones."""
    primary_key: tuple[int, ...]
    """Columns of the primary key; empty if there is none."""
    renewed: frozenset[int]
    """Columns with ON UPDATE CURRENT_TIMESTAMP: an UPDATE changes them unless it sets them."""
    row_end: int | None = None
    """The ROW END column of a system-versioned table."""

    @property
    def name(self) -> str:
        """The table's name, quoted for a statement."""
        return f"{identifier(self.key.database)}.{identifier(self.key.table)}"


def bind(logged: TableMap, source: Flavor, target: Table) -> BoundTable:
    """Bind the TABLE_MAP of a ``source`` server. Raises TableMismatchError if the number of columns differs."""
    wanted = [*target.columns, *hidden_columns(target)]
    if len(wanted) != logged.width:
        raise TableMismatchError(
            f"{target.key}: the logged rows have {plural(logged.width, 'column')}, the target's table {len(wanted)}; "
            "no row was written: apply the DDL between the two definitions first"
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
        row_end=_row_end(wanted) if target.system_versioned else None,
    )


def _row_end(columns: Sequence[Column]) -> int | None:
    shown = (number for number, column in enumerate(columns) if column.generated is Generated.ROW_END)
    hidden = (number for number, column in enumerate(columns) if column.name == "row_end")
    return next(shown, next(hidden, None))


def _bound(logged: LoggedColumn, target: Column) -> LoggedColumn:
    kind = LOGGED_TYPES.get(logged.type_code)
    has_digits = kind is not None and kind.with_digits is not None and target.has_unlogged_length
    return replace(
        logged,
        fsp=(target.fsp or 0) if has_digits else 0,
        name=target.name,
        unsigned=target.unsigned,
        charset=target.charset or (_JSON_TEXT if target.data_type == "json" else BINARY),
        data_type=target.data_type,
    )
