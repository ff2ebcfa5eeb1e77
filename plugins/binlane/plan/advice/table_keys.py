"""The keys of a segment's tables, as columns of their row images: from the target's schema, or from the log alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from binlane.binlog.table_map import TableMap
from binlane.binlog.vector.arrays import Flags, Ints, Words
from binlane.kernels.write_sets import KEY, REFERENCE, WHOLE_ROW
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.letter_case import lower
from binlane.schema.model import ForeignKey, Generated, Key, Schema, Table


@dataclass(frozen=True, slots=True)
class KeyOfRow:
    """A key that a row change writes or reads."""

    name: str
    """Equal for keys whose equal values are one key: of a parent and of its children."""
    kind: int
    places: tuple[int, ...]
    """Columns, counted from 0 as TABLE_MAP orders them."""
    prefixes: tuple[int, ...]
    """Bytes of each column that count; 0: all. A prefix in characters is at least as many bytes."""


@dataclass(frozen=True, slots=True)
class KeyLayout:
    """The keys of a segment's tables in the form that the kernel takes."""

    is_told: Flags
    key_at: Ints
    seed: Words
    kind: Ints
    place_at: Ints
    place: Ints
    prefix: Ints

    @classmethod
    def of(cls, tables: Sequence[tuple[KeyOfRow, ...] | None]) -> KeyLayout:
        """``tables``: by number; None: not all keys of the table are known."""
        keys = [key for found in tables for key in found or ()]
        places = [place for key in keys for place in key.places]
        return cls(
            np.array([found is not None for found in tables], np.bool_),
            _edges([len(found or ()) for found in tables]),
            np.array([_seed(key.name) for key in keys], np.uint64),
            np.array([key.kind for key in keys], np.int64),
            _edges([len(key.places) for key in keys]),
            np.array(places, np.int64),
            np.array([prefix for key in keys for prefix in key.prefixes], np.int64),
        )


def _edges(lengths: Sequence[int]) -> Ints:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


def _seed(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class TableKeys:
    """The keys of logged tables. ``schema``: the target's; None: the log alone tells of keys."""

    # no slots: cached_property keeps the foreign keys

    schema: Schema | None

    def of(self, logged: TableMap) -> tuple[KeyOfRow, ...] | None:
        """The keys of a row, first one that identifies it; None if one of them is not known, or not in the log."""
        name = TableKey(logged.database, logged.table)
        if self.schema is None:
            return (_logged_key(name, logged),)
        table = self.schema.table(name)
        if table is None or len(table.columns) != logged.width:
            return None
        name = self.schema.letter_case.table(table.key)
        unique = [key for key in table.keys if key.unique]
        unique.sort(key=lambda key: (not key.primary, not _identifies(table, key), key.name))
        found = [
            *(_key(table, name, [part.name for part in key.columns], prefixes=_prefixes(key)) for key in unique),
            *(_key(table, name, columns) for columns in sorted(self._referenced.get(name, ()))),
            *(self._reference(table, foreign) for foreign in table.foreign_keys),
        ]
        if None in found:
            return None
        whole = () if unique and _identifies(table, unique[0]) else (_whole_row(name, logged.width),)
        return (*whole, *{(each.name, each.kind): each for each in found if each is not None}.values())

    def _reference(self, table: Table, foreign: ForeignKey) -> KeyOfRow | None:
        assert self.schema is not None
        parent = self.schema.letter_case.table(foreign.parent)
        return _key(table, parent, foreign.parent_columns, foreign.columns, REFERENCE)

    @cached_property
    def _referenced(self) -> Mapping[TableKey, set[tuple[str, ...]]]:
        """By parent: the columns that foreign keys refer to, sorted."""
        found: dict[TableKey, set[tuple[str, ...]]] = {}
        assert self.schema is not None
        for table in self.schema.tables.values():
            for foreign in table.foreign_keys:
                name = self.schema.letter_case.table(foreign.parent)
                found.setdefault(name, set()).add(tuple(sorted(map(lower, foreign.parent_columns))))
        return found


def _logged_key(name: TableKey, table: TableMap) -> KeyOfRow:
    """The primary key of a log with binlog_row_metadata = FULL, else all columns."""
    parts = table.optional.primary_key
    if not parts:
        return _whole_row(name, table.width)
    places, prefixes = zip(*sorted(parts), strict=True)
    return KeyOfRow(f"{name}:{places}", KEY, places, prefixes)


def _whole_row(name: TableKey, width: int) -> KeyOfRow:
    return KeyOfRow(f"{name}:row", WHOLE_ROW, tuple(range(width)), (0,) * width)


def _identifies(table: Table, key: Key) -> bool:
    """Whether each row has a value of the key that no other row has: none of its columns is NULL."""
    nullable = {lower(column.name) for column in table.columns if column.nullable}
    return key.primary or nullable.isdisjoint(lower(part.name or "") for part in key.columns)


def _prefixes(key: Key) -> tuple[int, ...]:
    return tuple(part.prefix or 0 for part in key.columns)


def _key(
    table: Table,
    of: TableKey,
    names: Sequence[str | None],
    columns: Sequence[str] | None = None,
    kind: int = KEY,
    *,
    prefixes: Sequence[int] | None = None,
) -> KeyOfRow | None:
    """The key ``names`` of the table ``of`` in the rows of ``table``, whose ``columns`` hold it (by the same names);
    None if images lack one of them: an expression, or a virtual column."""
    places = {
        lower(column.name): place
        for place, column in enumerate(table.columns)
        if column.generated is not Generated.VIRTUAL
    }
    parts = []
    for name, column, prefix in zip(names, columns or names, prefixes or [0] * len(names), strict=True):
        if name is None or column is None or lower(column) not in places:
            return None
        parts.append((lower(name), prefix, places[lower(column)]))
    parts.sort()
    told = ", ".join(f"{name}({prefix})" if prefix else name for name, prefix, _ in parts)
    return KeyOfRow(f"{of}:{told}", kind, tuple(part[2] for part in parts), tuple(part[1] for part in parts))
