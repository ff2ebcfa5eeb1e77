"""Tables whose rows follow those of others by foreign keys, and whether they do so on both servers.

The log of MariaDB, and of MySQL up to 9.5, lacks what ON DELETE CASCADE and its like change: each server does it by its
own keys. So the keys of a table count where another one's rows change, and none of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from binlane.model import TableKey
from binlane.schema.compare import Difference, Severity, foreign_key_differences
from binlane.schema.letter_case import LetterCase
from binlane.schema.model import ForeignKey, Schema

_KEEPING: Final = frozenset({"RESTRICT"})
"""What a foreign key does without changing the child."""


def acts(key: ForeignKey) -> bool:
    """Whether a foreign key changes rows of its child with those of its parent."""
    return not {key.on_update, key.on_delete} <= _KEEPING


def databases_of_followers(parents: Iterable[TableKey], schemas: Collection[Schema], letters: LetterCase) -> set[str]:
    """The databases of tables that no schema has, and whose rows may follow those of ``parents`` by a foreign key, at
    any distance."""
    known = {letters.table(key) for schema in schemas for key in schema.tables}
    children = defaultdict[TableKey, set[TableKey]](set)
    for schema in schemas:
        for child, parent in schema.references:
            if letters.table(child) not in known:
                children[letters.table(parent)].add(child)
        for table in schema.tables.values():
            for key in filter(acts, table.foreign_keys):
                children[letters.table(key.parent)].add(table.key)
    reached = _reached(parents, children, letters)
    return {child.database for child in reached if letters.table(child) not in known}


def compare_followers(
    source: Schema,
    target: Schema,
    parents: Iterable[TableKey],
    letters: LetterCase,
    is_compared: Callable[[TableKey], bool],
) -> Iterator[Difference]:
    """The foreign keys by which rows of other tables follow those of ``parents``, at any distance, on one server only,
    or otherwise than on the other one. Tables that one server lacks are left out. ``is_compared``: whether the
    definition of a child, by the target's name, counts."""
    sides = [_keys_by_parent(schema, letters) for schema in (source, target)]
    children = defaultdict[TableKey, set[TableKey]](set)
    for side in sides:
        for (child, parent), keys in side.items():
            if any(map(acts, keys)):
                children[parent].add(child)
    reached = {*map(letters.table, parents), *_reached(parents, children, letters)}
    ours, theirs = ({letters.table(key): key for key in schema.tables} for schema in (source, target))
    for child, parent in sorted({pair for side in sides for pair in side}, key=str):
        if parent not in reached or child not in ours or child not in theirs or not is_compared(theirs[child]):
            continue
        one, other = (side.get((child, parent), ()) for side in sides)
        for each in foreign_key_differences(theirs[child], one, other, letters):
            if each.severity is Severity.FATAL:
                yield each


def _keys_by_parent(schema: Schema, letters: LetterCase) -> Mapping[tuple[TableKey, TableKey], list[ForeignKey]]:
    """The foreign keys by child and parent, as names are compared."""
    found = defaultdict[tuple[TableKey, TableKey], list[ForeignKey]](list)
    for table in schema.tables.values():
        for key in table.foreign_keys:
            found[letters.table(table.key), letters.table(key.parent)].append(key)
    return found


def _reached(
    parents: Iterable[TableKey], children: Mapping[TableKey, Collection[TableKey]], letters: LetterCase
) -> set[TableKey]:
    found, left = set[TableKey](), list(map(letters.table, parents))
    while left:
        for child in children.get(left.pop(), ()):
            if child not in found:
                found.add(child)
                left.append(letters.table(child))
    return found
