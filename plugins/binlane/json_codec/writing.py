"""From records to JSON values: one function a type, made once. A fleet's plan has ten thousand tables."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Any, Final

from binlane.json_codec.layout import LISTS, MAPPINGS, Layout, hints_of
from binlane.lazy_dataclass import dataclass

Write = Callable[[Any], Any]
_COLLECTIONS: Final = (tuple, list, dict)


@dataclass(frozen=True)
class Writers:
    """The functions of one layout, by type."""

    layout: Layout
    _made: dict[Any, Write | None] = field(default_factory=dict)

    def of(self, kind: Any) -> Write | None:
        """None for a type whose values are JSON values already."""
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    def _make(self, kind: Any) -> Write | None:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if dataclasses.is_dataclass(kind):
            return self._row(kind) if kind in self.layout.rows else self._object(kind)
        if origin is types.UnionType:
            write = self.of(arguments[0])
            return None if write is None else lambda value: None if value is None else write(value)
        if origin is tuple and arguments[-1] is not Ellipsis:
            writers = [self.of(each) for each in arguments]
            return lambda value: [_written(write, each) for write, each in zip(writers, value, strict=True)]
        if origin in LISTS:
            each = self.of(arguments[0])
            sort = (lambda items: sorted(items, key=self.layout.order)) if origin is frozenset else list
            return sort if each is None else lambda value: sort(map(each, value))
        return self._mapping(*arguments) if origin in MAPPINGS else None

    def _object(self, kind: Any) -> Write:
        hints = hints_of(kind)
        get = attrgetter(*hints) if len(hints) > 1 else lambda record: (getattr(record, next(iter(hints))),)
        fields = [(name, self._field(name, hint), name in self.layout.left_out) for name, hint in hints.items()]

        def write(record: object) -> dict[str, Any]:
            return {
                name: value if each is None else each(value)
                for (name, each, may_lack), value in zip(fields, get(record), strict=True)
                if not may_lack or value or not _is_empty(value)
            }

        return write

    def _row(self, kind: Any) -> Write:
        """Only the last field can be left out of a row."""
        hints = hints_of(kind)
        get, last = attrgetter(*hints), [*hints][-1]
        fields = [(self._field(name, hint), hint in self.layout.rows) for name, hint in hints.items()]
        if last not in self.layout.left_out and all(each is None for each, _ in fields):
            return get

        def write(record: object) -> list[Any]:
            row: list[Any] = []
            for value, (each, is_spread) in zip(get(record), fields, strict=True):
                row.extend(_written(each, value)) if is_spread else row.append(_written(each, value))
            if last in self.layout.left_out and _is_empty(getattr(record, last)):
                row.pop()
            return row

        return write

    def _field(self, name: str, hint: Any) -> Write | None:
        if name in self.layout.numbers:
            return int
        if name in self.layout.by_text:
            entries = self._entries(*typing.get_args(hint))
            return lambda value: entries(sorted(value.items(), key=lambda entry: str(entry[0])))
        if typing.get_origin(hint) is Sequence:
            each = self.of(typing.get_args(hint)[0])
            return iter if each is None else lambda value: map(each, value)
        return self.of(hint)

    def _mapping(self, key: Any, item: Any) -> Write:
        each = self.of(item)
        if key is str:
            return dict if each is None else lambda value: dict(zip(value, map(each, value.values()), strict=True))
        entries = self._entries(key, item)
        if self.layout.is_one_object(item):
            order = attrgetter(*hints_of(key))
            return lambda value: entries(sorted(value.items(), key=lambda entry: order(entry[0])))
        return lambda value: sorted(entries(value.items()))  # by the keys: they are unlike each other

    def _entries(self, key: Any, item: Any) -> Write:
        """Of pairs, in their order."""
        each = self.of(item)
        if self.layout.is_one_object(item):
            whole = self._object(key)
            return lambda pairs: [whole(name) | _written(each, value) for name, value in pairs]
        front = self._row(key) if dataclasses.is_dataclass(key) else lambda name: (name,)
        if self.layout.is_spread(item):
            return lambda pairs: [(*front(name), *_written(each, value)) for name, value in pairs]
        return lambda pairs: [(*front(name), _written(each, value)) for name, value in pairs]


def _written(write: Write | None, value: Any) -> Any:
    return value if write is None else write(value)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, _COLLECTIONS) and not value)
