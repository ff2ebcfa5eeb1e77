"""Foreign keys to tables that the channel's filter leaves out: copies make their tables without them.

No window brings the rows of such a parent, so the target would refuse the first row of the child (1452). The source has
checked the key already.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from binlane.bootstrap.definition_copy import Definition
from binlane.model import TableKey
from binlane.schema.model import ForeignKey, Schema, Table
from binlane.shards.selection import Selection

FOREIGN_KEY: Final = re.compile(rb",\n  CONSTRAINT `(?P<name>(?:[^`]|``)+)` FOREIGN KEY [^\n]*?(?=,?\n)")
"""A foreign key in SHOW CREATE TABLE, behind another line of the list."""


def keys_left_out(table: Table, selection: Selection) -> tuple[ForeignKey, ...]:
    """The foreign keys of a table that is taken whose parents are not. In the source's names."""
    return tuple(each for each in table.foreign_keys if selection.table(each.parent) is not None)


def schema_without(schema: Schema, keys: Mapping[TableKey, Collection[ForeignKey]]) -> Schema:
    """The schema, without these foreign keys of its tables."""
    tables = {
        key: replace(table, foreign_keys=tuple(each for each in table.foreign_keys if each not in keys[key]))
        if keys.get(key)
        else table
        for key, table in schema.tables.items()
    }
    return replace(schema, tables=tables)


def definition_without(definition: Definition, keys: Collection[ForeignKey]) -> Definition:
    """A table's definition without these foreign keys; the indexes that their columns have stay."""
    names = {each.name.replace("`", "``").encode() for each in keys}

    def kept(found: re.Match[bytes]) -> bytes:
        return b"" if found["name"] in names else found[0]

    return replace(definition, statement=FOREIGN_KEY.sub(kept, definition.statement)) if names else definition


def notes_of(keys: Mapping[TableKey, Collection[ForeignKey]]) -> list[str]:
    """What a copy says of the tables that it has made without them."""
    return [
        f"table {table}: made without its foreign key {each.name} to {each.parent}, which the channel's filter leaves "
        "out: no window would bring the rows that it asks for"
        for table, found in sorted(keys.items(), key=lambda pair: str(pair[0]))
        for each in found
    ]
