"""The columns of a first copy: how each is read from the source and stored on the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from binlane.binlog.types.json_typed import places_of_other_types
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


FAITHFUL: Final = b"1"
UNFAITHFUL: Final = b"0"


def faithfulness(columns: Sequence[Column]) -> str:
    """An expression that is ``FAITHFUL`` if a row's texts preserve its values, ``UNFAITHFUL`` if they do not, and
    another number if they do once the numbers of its documents are written by type (``Literal.with_number_types``).

    MySQL's JSON can hold an SQL date or bytes, whose text is another value, and a DECIMAL such as 19.90, which the
    server parses as a double, takes for equal and prints as 19.9.
    """
    documents = (column for column in columns if column.data_type == "json" and column.charset is None)
    return " * ".join(_of_document(identifier(column.name)) for column in documents) or FAITHFUL.decode()


def _of_document(name: str) -> str:
    text = f"CAST({name} AS CHAR CHARACTER SET utf8mb4)"
    parsed = f"CAST({text} AS JSON)"
    again = f"CAST(CAST({parsed} AS CHAR CHARACTER SET utf8mb4) AS BINARY) = CAST({text} AS BINARY)"
    return (
        f"(CASE WHEN {name} IS NULL THEN 1 WHEN {name} = {parsed} THEN IF({again}, 1, 2) "
        # documents with long decimals do not equal their parsed text; earlier versions cannot look for other types
        f"/*!80014 WHEN {places_of_other_types(name)} = 0 THEN 2 */ ELSE 0 END)"
    )
