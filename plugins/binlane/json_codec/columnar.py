"""From many JSON values of one type to records at once, nearly all of it in C: a fleet's plan.json has 10,000 tables.

Values that do not all fit raise Mismatch without a path: ``reading`` takes them one by one then, which finds it.
"""

from __future__ import annotations

import dataclasses
import typing
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from itertools import chain, islice, repeat
from operator import itemgetter
from typing import Any

from binlane.json_codec.layout import LISTS, MAPPINGS, SCALARS, Layout, Mismatch, hints_of, shown
from binlane.lazy_dataclass import dataclass

Read = Callable[[Any], Any]
Column = Sequence[Any]
ReadColumn = Callable[[Column], Column]


@dataclass(frozen=True)
class Columns:
    """The functions of one layout, by type. Each raises Mismatch and nothing else."""

    layout: Layout
    one: Callable[[Any], Read]
    """Gives the function that reads one value of a type."""
    _made: dict[Any, ReadColumn] = field(default_factory=dict)

    def of(self, kind: Any) -> ReadColumn:
        """The function that reads values of a type."""
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    def _make(self, kind: Any) -> ReadColumn:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if kind in SCALARS:
            return lambda values: _all(kind, values)
        if dataclasses.is_dataclass(kind):
            return self._row(kind) if kind in self.layout.rows else self._object(kind)
        if origin in LISTS and (origin is not tuple or arguments[-1] is Ellipsis):
            return self._list(LISTS[origin], self.of(arguments[0]))
        if origin in MAPPINGS and arguments[0] is str:
            return self._mapping(self.of(arguments[1]))
        return _each(self.one(kind))

    def _fields(self, hints: Mapping[str, Any]) -> list[ReadColumn]:
        return [_each(flag) if name in self.layout.numbers else self.of(hint) for name, hint in hints.items()]

    def _object(self, kind: Any) -> ReadColumn:
        read = self._members(hints_of(kind))
        return lambda values: _records(kind, read(values))

    def _members(self, hints: Mapping[str, Any]) -> Callable[[Column], list[Column]]:
        """Of objects that have each of these fields, and no other."""
        fields = [*zip(map(itemgetter, hints), self._fields(hints), strict=True)]

        def read(values: Column) -> list[Column]:
            _all_of_length(len(fields), _all(dict, values))
            try:
                return [each([*map(get, values)]) for get, each in fields]
            except KeyError as exc:
                raise Mismatch(f"key {exc} is missing") from None

        return read

    def _row(self, kind: Any) -> ReadColumn:
        hints = hints_of(kind)
        fields = [*zip(map(self.layout.width, hints.values()), self._fields(hints), strict=True)]
        width = self.layout.width(kind)

        def read(values: Column) -> Column:
            places, columns = iter(_places(values, width)), []
            for span, each in fields:
                # what is spread is a row of its own
                column = [*map(list, zip(*islice(places, span), strict=True))] if span else next(places)
                columns.append(each(column))
            return _records(kind, columns)

        return read

    def entries(self, key: Any, item: Any) -> Callable[[Column], tuple[Column, Column]]:
        """Of the entries of a mapping whose keys are no texts: its keys and its items."""
        if self.layout.is_one_object(item):
            names = hints_of(key)
            members = self._members(names | hints_of(item))

            def read_objects(values: Column) -> tuple[Column, Column]:
                columns = members(values)
                return _records(key, columns[: len(names)]), _records(item, columns[len(names) :])

            return read_objects
        width = self.layout.width(key) or 1
        of_key, of_item = self._part(key, key in self.layout.rows), self._part(item, self.layout.is_spread(item))

        def read_rows(values: Column) -> tuple[Column, Column]:
            rows = _all(list, values)
            return of_key([row[:width] for row in rows]), of_item([row[width:] for row in rows])

        return read_rows

    def _part(self, kind: Any, is_spread: bool) -> ReadColumn:
        """Of parts of rows: a part is a value, or holds one."""
        each = self.of(kind)
        return each if is_spread else lambda parts: each(_places(parts, 1)[0])

    def _list(self, collect: Read, each: ReadColumn) -> ReadColumn:
        def read(values: Column) -> Column:
            items = iter(each([*chain.from_iterable(_all(list, values))]))
            return [collect(islice(items, len(value))) for value in values]

        return read

    def _mapping(self, each: ReadColumn) -> ReadColumn:
        def read(values: Column) -> Column:
            items = iter(each([*chain.from_iterable(map(dict.values, _all(dict, values)))]))
            return [dict(zip(value, items, strict=False)) for value in values]

        return read


def flag(value: Any) -> bool:
    """Of a field that is a flag, and written as a number."""
    if type(value) is not int or value not in (0, 1):
        raise Mismatch(f"expected 0 or 1, got {shown(value)}")
    return bool(value)


def _each(read: Read) -> ReadColumn:
    return lambda values: [*map(read, values)]


def _all(kind: type, values: Column) -> Column:
    """The values, which all have to be of the type."""
    if not {kind}.issuperset(map(type, values)):
        raise Mismatch(f"expected {kind.__name__} alone")
    return values


def _all_of_length(length: int, values: Column) -> None:
    if not {length}.issuperset(map(len, values)):
        raise Mismatch(f"expected {length} values in each")


def _places(rows: Column, width: int) -> list[Column]:
    """The columns of rows of one width."""
    _all_of_length(width, _all(list, rows))
    values = [*chain.from_iterable(rows)]
    return [values[at::width] for at in range(width)]


def _records(kind: Any, columns: Sequence[Column]) -> Column:
    """Records from their fields' columns. Slots are filled in C: the ``__init__`` of a frozen dataclass takes thrice as
    long to do the same."""
    if hasattr(kind, "__post_init__") or not hasattr(kind, "__slots__"):
        return [*map(kind, *columns)]
    records = [*map(object.__new__, repeat(kind, len(columns[0])))]
    for name, column in zip(hints_of(kind), columns, strict=True):
        deque(map(getattr(kind, name).__set__, records, column), maxlen=0)
    return records
