"""From JSON values to records: one function a type, made once. A value of another type is an error with its path.

Lists and mappings are first tried as ``columns``: value by value takes four times as long, and finds what does not fit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from itertools import repeat
from typing import Any

from binlane.json_codec.columnar import Columns, Read, flag
from binlane.json_codec.layout import LISTS, MAPPINGS, Layout, Mismatch, hints_of, shown
from binlane.lazy_dataclass import dataclass

Typed = tuple[Any, Read]
"""A type whose values need no reading, and the function for all others."""


@dataclass(frozen=True)
class Readers:
    """The functions of one layout, by type. Each raises Mismatch and nothing else."""

    layout: Layout
    _made: dict[Any, Read] = field(default_factory=dict)

    def of(self, kind: Any) -> Read:
        """The function that reads values of a type."""
        if kind not in self._made:
            self._made[kind] = self._make(kind)
        return self._made[kind]

    @cached_property
    def _columns(self) -> Columns:
        return Columns(self.layout, self.of)

    def _make(self, kind: Any) -> Read:
        origin, arguments = typing.get_origin(kind), typing.get_args(kind)
        if kind is Any:
            return lambda value: value
        if dataclasses.is_dataclass(kind):
            return self._row(kind) if kind in self.layout.rows else self._object(kind)
        if origin is types.UnionType:
            read = self.of(arguments[0])
            return lambda value: None if value is None else read(value)
        if origin is tuple and arguments[-1] is not Ellipsis:
            readers = [self._typed(each) for each in arguments]
            return lambda value: tuple(_each(readers, _list(value, len(readers))))
        if origin in LISTS:
            return self._list(LISTS[origin], arguments[0])
        if origin in MAPPINGS:
            return self._mapping(arguments[1]) if arguments[0] is str else self._entries(*arguments)
        return _word(kind) if issubclass(kind, StrEnum) else _scalar(kind)

    def _object(self, kind: Any) -> Read:
        fields = self._fields(hints_of(kind))
        return lambda value: kind(**fields(value))

    def _fields(self, hints: Mapping[str, Any]) -> Callable[[Any], dict[str, Any]]:
        """Of an object: its values by name."""
        fields = {name: self._field(name, hint) for name, hint in hints.items()}
        known, needed = fields.keys(), fields.keys() - self.layout.left_out

        def read(value: Any) -> dict[str, Any]:
            if _object(value).keys() != known and not known >= value.keys() >= needed:
                raise _other_keys(value, fields, needed)
            given, name = {}, ""
            try:
                for name, item in value.items():
                    scalar, each = fields[name]
                    given[name] = item if type(item) is scalar else each(item)
            except Mismatch as exc:
                raise exc.inside(f".{name}") from None
            return given

        return read

    def _row(self, kind: Any) -> Read:
        hints = hints_of(kind)
        readers = [self._field(name, hint) for name, hint in hints.items()]
        spans = [self.layout.width(hint) for hint in hints.values()]
        width, may_be_short = sum(span or 1 for span in spans), [*hints][-1] in self.layout.left_out
        lengths = (width - 1, width) if may_be_short else (width,)

        def read(value: Any) -> object:
            return kind(*_each(readers, _gathered(_list(value, *lengths), spans)))

        return read

    def _field(self, name: str, hint: Any) -> Typed:
        return (None, flag) if name in self.layout.numbers else self._typed(hint)

    def _typed(self, hint: Any) -> Typed:
        is_optional = typing.get_origin(hint) is types.UnionType
        return typing.get_args(hint)[0] if is_optional else hint, self.of(hint)

    def _list(self, collect: Read, item: Any) -> Read:
        each, column = self._typed(item), self._columns.of(item)

        def read(value: Any) -> Any:
            items = _list(value)
            try:
                return collect(column(items))
            except Mismatch:
                return collect(_each(repeat(each), items))

        return read

    def _mapping(self, item: Any) -> Read:
        each, column = self.of(item), self._columns.of(item)

        def read(value: Any) -> dict[str, Any]:
            items = [*_object(value).values()]
            with contextlib.suppress(Mismatch):
                return dict(zip(value, column(items), strict=True))
            name, found = "", {}
            try:
                for name, one in value.items():
                    found[name] = each(one)
            except Mismatch as exc:
                raise exc.inside(f".{name}") from None
            return found

        return read

    def _entries(self, key: Any, item: Any) -> Read:
        """Of a mapping whose keys are records or numbers."""
        each = self._object_entry(key, item) if self.layout.is_one_object(item) else self._row_entry(key, item)
        columns = self._columns.entries(key, item)

        def read(value: Any) -> dict[Any, Any]:
            entries = _list(value)
            try:
                return dict(zip(*columns(entries), strict=True))
            except Mismatch:
                return dict(_each(repeat((None, each)), entries))

        return read

    def _object_entry(self, key: Any, item: Any) -> Read:
        """One object holds the fields of both."""
        names = hints_of(key)
        fields = self._fields(names | hints_of(item))

        def read(entry: Any) -> tuple[Any, Any]:
            given = fields(entry)
            return key(*(given.pop(name) for name in names)), item(**given)

        return read

    def _row_entry(self, key: Any, item: Any) -> Read:
        """One row holds both."""
        of_key, of_item, is_spread = self.of(key), self.of(item), self.layout.is_spread(item)
        width = self.layout.width(key)

        def read(entry: Any) -> tuple[Any, Any]:
            if len(_list(entry)) < (width or 1):
                raise Mismatch(f"expected {(width or 1) + 1} values, got {len(entry)}")
            front, *more = _gathered(entry, [width])
            if not is_spread and len(more) != 1:
                raise Mismatch(f"expected {(width or 1) + 1} values, got {len(entry)}")
            return of_key(front), of_item(more if is_spread else more[0])

        return read


def _each(readers: Iterable[Typed], items: Iterable[Any]) -> list[Any]:
    """Each item by its reader; there may be more readers than items."""
    found: list[Any] = []
    try:
        for item, (kind, read) in zip(items, readers, strict=False):
            found.append(item if type(item) is kind else read(item))
    except Mismatch as exc:
        raise exc.inside(f"[{len(found)}]") from None
    return found


def _gathered(row: list[Any], spans: Sequence[int]) -> list[Any]:
    """A row with the records that are spread in it as lists of their own. ``spans``: widths of its first values."""
    if not any(spans):
        return row
    found, at = [], 0
    for span in spans:
        found.append(row[at : at + span] if span else row[at])
        at += span or 1
    return [*found, *row[at:]]


def _other_keys(value: Mapping[str, Any], known: Mapping[str, Any], needed: Iterable[str]) -> Mismatch:
    if unknown := [name for name in value if name not in known]:
        return Mismatch(f"unknown key {shown(unknown[0])}; known: {', '.join(known)}")
    return Mismatch(f"key {min(name for name in needed if name not in value)!r} is missing")


def _object(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise Mismatch(f"expected an object, got {shown(value)}")
    return value


def _list(value: Any, *lengths: int) -> list[Any]:
    if type(value) is not list:
        raise Mismatch(f"expected a list, got {shown(value)}")
    if lengths and len(value) not in lengths:
        raise Mismatch(f"expected {lengths[-1]} values, got {len(value)}")
    return value


def _scalar(kind: type) -> Read:
    """Of text, whole numbers, flags (a flag is no number) and numbers, which stay whole where they are."""
    accepted = (int, float) if kind is float else (kind,)

    def read(value: Any) -> Any:
        if type(value) not in accepted:
            raise Mismatch(f"expected {kind.__name__}, got {shown(value)}")
        return value

    return read


def _word(kind: type[StrEnum]) -> Read:
    def read(value: Any) -> StrEnum:
        if value not in list(kind):
            raise Mismatch(f"expected one of {', '.join(kind)}, got {shown(value)}")
        return kind(value)

    return read
