"""Conditions for the names of databases, tables and programs in queries over a catalogue: they compare bytes.

MariaDB's ``information_schema`` compares names by ``utf8mb3_general_ci``, for which ``Shop``, ``shop`` and ``SHÖP`` are
one, although a server with ``lower_case_table_names = 0`` has three databases. And a list of names that are all one to
that collation it looks up by the first of them alone. So each list has the plain condition, by which both families find
the databases without opening all tables, and one over bytes.

A table's own name needs none of this: ``table_schema = .. AND table_name = ..`` is looked up by its path on MariaDB,
and MySQL's dictionary compares bytes.
"""

from __future__ import annotations

from collections.abc import Iterable

from binlane.binlog.types.literals import quoted
from binlane.schema.letter_case import lower


def among(column: str, values: str, folded: str | None = None) -> str:
    """Whether a column has one of some names.

    ``values``: of ``values_of`` or ``literals``, as SQL: in parentheses, or an expanding parameter. ``folded``: the
    same in lower case, for names as somebody has typed them: a server that takes ``Shop`` and ``shop`` for one shows
    either.
    """
    exact = f"({column} IN {values} AND CAST({column} AS BINARY) IN {values})"
    return exact if folded is None else f"IF(@@lower_case_table_names = 0, {exact}, LOWER({column}) IN {folded})"


def other_than(column: str, values: str) -> str:
    """Whether a column has none of some names."""
    return f"CAST({column} AS BINARY) NOT IN {values}"


def is_named(column: str, value: str) -> str:
    """Whether a column has a name, as the server compares names. ``value``: its SQL, which the condition has thrice."""
    column_bytes, value_bytes = (
        f"CAST(IF(@@lower_case_table_names = 0, {each}, LOWER({each})) AS BINARY)" for each in (column, value)
    )
    return f"({column} = {value} AND {column_bytes} = {value_bytes})"


def values_of(names: Iterable[str]) -> list[str]:
    """The values of a list for ``among``. The empty one keeps MariaDB from taking several for one."""
    found = sorted(names)
    return found if len(found) == 1 else [*found, ""]


def folded_values(names: Iterable[str]) -> list[str]:
    """Those of ``values_of`` in lower case."""
    return values_of(set(map(lower, names)))


def literals(names: Iterable[str]) -> str:
    """The same as SQL in parentheses."""
    return f"({', '.join(map(quoted, values_of(names)))})"
