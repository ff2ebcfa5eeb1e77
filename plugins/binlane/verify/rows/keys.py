"""Distinct keys of one table. Keys of integers stay arrays, and become texts only where single keys are asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from binlane.binlog.vector.arrays import distinct
from binlane.lazy_dataclass import dataclass
from binlane.verify.rows.column_text import ComparedTable, Key, is_integer

Integers: TypeAlias = NDArray[np.integer[Any]]
"""A column of keys: of 64 bits, without a sign if the table's column has none."""


@dataclass(frozen=True, slots=True, eq=False)
class IntegerKeys(Sequence[Key]):
    """Keys of integer columns: a sequence of their texts, which are made when they are taken."""

    columns: tuple[Integers, ...]

    @classmethod
    def of(cls, table: ComparedTable, keys: Iterable[Key]) -> IntegerKeys:
        """Keys of a table whose key's columns all are integers. Raises OverflowError if a key is of a time when a
        column had another sign."""
        texts = list(zip(*keys, strict=True)) or [()] * len(table.key)
        return cls(tuple(np.array(list(map(int, each)), kind) for each, kind in zip(texts, _kinds(table), strict=True)))

    @classmethod
    def distinct(cls, parts: Sequence[tuple[Integers, ...]]) -> IntegerKeys:
        """All keys of the parts once, in the order of an index."""
        columns = tuple(np.concatenate(each) for each in zip(*parts, strict=True))
        if len(columns) == 1:
            return cls((distinct(columns[0]),))
        # the last of these is what it sorts by first
        order = np.lexsort(columns[::-1])
        columns = tuple(each[order] for each in columns)
        is_new = np.ones(order.size, np.bool_)
        is_new[1:] = np.any([each[1:] != each[:-1] for each in columns], axis=0)
        return cls(tuple(each[is_new] for each in columns))

    def __len__(self) -> int:
        return int(self.columns[0].size)

    def __iter__(self) -> Iterator[Key]:
        return zip(*(map(str, each.tolist()) for each in self.columns), strict=True)

    @overload
    def __getitem__(self, place: int) -> Key: ...
    @overload
    def __getitem__(self, place: slice) -> IntegerKeys: ...
    def __getitem__(self, place: int | slice) -> Key | IntegerKeys:
        if isinstance(place, slice):
            return IntegerKeys(tuple(each[place] for each in self.columns))
        return tuple(str(each[place]) for each in self.columns)


class KeySet(Set[Key]):
    """The keys that a log names. Its arrays become texts as soon as it is read as a set."""

    __slots__ = ("_numbers", "_texts")

    def __init__(self, keys: Iterable[Key] = ()) -> None:
        self._numbers: list[tuple[Integers, ...]] = []
        self._texts: set[Key] = set()
        self.update(keys)

    def update(self, keys: Iterable[Key]) -> None:
        """Add keys."""
        if isinstance(keys, IntegerKeys):
            self._numbers.append(keys.columns)
        else:
            self._texts.update(keys)

    def in_order(self, table: ComparedTable) -> Sequence[Key]:
        """The keys of ``table`` as ``in_order`` has them."""
        kinds = _kinds(table)
        # arrays with and without a sign have no common type but floating point
        if self._numbers and all([each.dtype.type for each in columns] == kinds for columns in self._numbers):
            with contextlib.suppress(OverflowError):
                return IntegerKeys.distinct([*self._numbers, IntegerKeys.of(table, self._texts).columns])
        return in_order(table, self._as_texts())

    def __contains__(self, key: object) -> bool:
        return key in self._as_texts()

    def __iter__(self) -> Iterator[Key]:
        return iter(self._as_texts())

    def __len__(self) -> int:
        return len(self._as_texts())

    def __bool__(self) -> bool:
        return bool(self._texts) or any(columns[0].size for columns in self._numbers)

    def __repr__(self) -> str:
        return f"KeySet({self._as_texts()!r})"

    def _as_texts(self) -> set[Key]:
        for columns in self._numbers:
            self._texts.update(IntegerKeys(columns))
        self._numbers.clear()
        return self._texts


def in_order(table: ComparedTable, keys: Iterable[Key]) -> Sequence[Key]:
    """Keys as an index has them, nearly: integers by value, all others by their text."""
    given = list(keys)
    if all(map(is_integer, table.key)):
        # a stored key may be of a time when its column had another sign
        with contextlib.suppress(OverflowError):
            return IntegerKeys.distinct([IntegerKeys.of(table, given).columns])
    columns = zip(*given, strict=True)
    values = (
        map(int, texts) if is_integer(column) else texts for column, texts in zip(table.key, columns, strict=False)
    )
    return [entry[-1] for entry in sorted(zip(*values, given, strict=True))]


def _kinds(table: ComparedTable) -> list[type[np.integer[Any]]]:
    """The types of the arrays of a key's columns, if they are integers."""
    return [np.uint64 if column.unsigned else np.int64 for column in table.key]
