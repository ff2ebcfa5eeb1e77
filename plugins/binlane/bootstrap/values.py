"""The columns of a first copy: how each is read from the source and stored on the target."""

from __future__ import annotations

from collections.abc import Sequence

from binlane.binlog.types.literals import identifier
from binlane.binlog.types.sql_types import sql_type
from binlane.binlog.types.sql_values import Literal
from binlane.errors import PrecheckError
from binlane.model import TableKey
from binlane.schema.model import Column


def selected(table: TableKey, column: Column) -> tuple[str, Literal]:
    """The expression to select, and what makes a literal of its text. Raises PrecheckError for unknown types."""
    copied = sql_type(column.data_type).values.copied
    if copied is not None:
        return copied(column)
    raise PrecheckError(
        f"{table}: column {column.name}: expected a type that binlane can copy exactly, found {column.data_type}; "
        "leave its database out with --databases, and load that database from a backup instead"
    )


def faithful(columns: Sequence[Column]) -> str:
    """An expression that is 1 if a row's texts preserve its values. MySQL's JSON can hold an SQL date or bytes, whose
    text is another value."""
    checks = []
    for column in columns:
        if column.data_type == "json" and column.charset is None:
            name = identifier(column.name)
            checks.append(f"COALESCE({name} = CAST(CAST({name} AS CHAR CHARACTER SET utf8mb4) AS JSON), 1)")
    return " AND ".join(checks) or "1"
