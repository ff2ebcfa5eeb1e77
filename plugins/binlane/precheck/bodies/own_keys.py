"""Whether rows that fire a trigger have to do with rows of their own in another table, by a unique key of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from binlane.schema.model import Column as Definition
from binlane.schema.model import Key, Table
from binlane.sql.parse.lexer import Token
from binlane.sql.parse.query_blocks import Column, plain_column
from binlane.sql.parse.row_effects import FIRING, Upsert

Pairs: TypeAlias = Sequence[tuple[Definition, Column]]
"""Columns of a table with the values that a change of it finds, or makes, its row by."""
Ways: TypeAlias = frozenset[frozenset[tuple[str, str]]]
"""By each unique key of the firing table: names of columns of the changed table and of its own."""


def meet_nowhere(ways: Iterable[Ways]) -> bool:
    """Whether no two rows that fire a trigger have to do with one row of a table: each change of it finds its row
    by the same unique key of theirs. One whose new values are the old ones of another row comes behind it anyway,
    by that key."""
    common: Ways | None = None
    for each in ways:
        common = each if common is None else common & each
        if not common:
            return False
    return bool(common)


def ways_of(fired: Table | None, pairs: Pairs, agree: Callable[[Definition, Definition], bool]) -> Ways:
    """The unique keys of the firing table of which a change has all columns, as pairs of names.

    ``agree``: whether different values of the second column are different ones of the first one.
    """
    found = set[frozenset[tuple[str, str]]]()
    if fired is None:
        return frozenset()
    for qualifier in FIRING:
        of_row = [(column, column_of(fired, name.name)) for column, name in pairs if name.qualifier == qualifier]
        for key in fired.keys:
            names = names_of(key)
            way = {
                (column.name.lower(), own.name.lower())
                for column, own in of_row
                if own is not None and own.name.lower() in names and agree(column, of_key(own, key))
            }
            if names and names == {own for _, own in way}:
                found.add(frozenset(way))
    return frozenset(found)


def definitions(found_by: Iterable[tuple[str, Column]], changed: Table | None) -> Pairs:
    """The columns by which a change finds its rows, as far as the table has them."""
    found = [(column_of(changed, name), value) for name, value in found_by]
    return [(column, value) for column, value in found if column is not None]


def given_to(upsert: Upsert, written: Table | None) -> Mapping[str, Sequence[Token]] | None:
    """The values of the row, by column; None if they are not known."""
    if upsert.values is None or written is None:
        return None
    columns = upsert.columns or tuple(each.name.lower() for each in written.columns)
    return dict(zip(columns, upsert.values, strict=True)) if len(columns) == len(upsert.values) else None


def _selected(upsert: Upsert, written: Table | None) -> Mapping[str, Sequence[Token]]:
    """What of the row at hand all rows of an INSERT's query have, by column."""
    columns = upsert.columns or tuple(each.name.lower() for each in (() if written is None else written.columns))
    if len(columns) != len(upsert.selected):
        return {}
    pairs = zip(columns, upsert.selected, strict=True)
    return {name: value for name, value in pairs if (plain := plain_column(value)) and plain.qualifier in FIRING}


def given_columns(upsert: Upsert, written: Table | None) -> Pairs:
    """The columns of a new row that get a value of the row at hand, or another name's, as it is."""
    given = given_to(upsert, written) or _selected(upsert, written)
    return definitions(
        ((name, value) for name, value in ((name, plain_column(each)) for name, each in given.items()) if value),
        written,
    )


def in_key_of(key: Key, upsert: Upsert, written: Table) -> Pairs:
    """What a key has in full of a row."""
    names = {(part.name or "").lower() for part in key.columns if part.prefix is None}
    pairs = given_columns(upsert, written)
    return [(of_key(column, key), value) for column, value in pairs if column.name.lower() in names]


def of_key(column: Definition, key: Key) -> Definition:
    """A column as a key has it: one that the window makes does not say that its primary key takes no NULL."""
    return replace(column, nullable=column.nullable and not key.primary)


def names_of(key: Key) -> frozenset[str]:
    """The columns that tell rows apart by a key; none if it has the beginning of one, or an expression: equal texts may
    begin with letters that are not."""
    if not key.unique or any(part.name is None or part.prefix is not None for part in key.columns):
        return frozenset()
    return frozenset((part.name or "").lower() for part in key.columns)


def column_of(table: Table | None, name: str | None) -> Definition | None:
    """A column of a table by its name, in any letters; None if the table is not known or has none."""
    columns = () if table is None else table.columns
    return next((each for each in columns if each.name.lower() == (name or "").lower()), None)
