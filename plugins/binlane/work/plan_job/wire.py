"""Results of the plan job's tasks as JSON, whichever engine runs the tasks.

Whoever can run code on an executor of Spark can send any bytes to the process that waits for the job, and that process
holds the passwords of both servers. So no result is unpickled: it is JSON, and becomes values of the types that the
result's class declares, and of no others.

A record is a list of its fields' values in their order, a mapping a list of pairs, bytes are text of their own numbers.
Numbers and texts are converted many at once: a fleet's segment has tens of thousands.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final, NewType, TypeVar

import zstandard

from binlane.errors import PlanError

T = TypeVar("T")
Convert = Callable[[Any], Any]
ConvertAll = Callable[[Sequence[Any]], Iterable[Any]]
"""Converts many values of one type."""

_LEVEL: Final = 1
"""zstd's fastest: a fifth to an eighth of the bytes, in half a millisecond."""
_MOST_BYTES: Final = 1 << 30
"""Of a result in JSON: what a segment's facts never have."""
_SETS: Final = (frozenset, set)
_LISTS: Final = {tuple: tuple, list: list, Sequence: tuple, **dict.fromkeys(_SETS, frozenset), set: set}
_MAPPINGS: Final = {dict: dict, Mapping: dict, Counter: Counter}
_SCALARS: Final = {str: (str,), int: (int,), bool: (bool,), float: (float, int)}
_STAYS: Final = frozenset({"RowMeter"})
"""Classes whose values are of use to the task alone."""


def to_wire(kind: type[T], record: T) -> bytes:
    """A record as compressed JSON."""
    return zstandard.compress(
        json.dumps(_writer(typing.cast(Any, kind))(record), separators=(",", ":")).encode(), _LEVEL
    )


def from_wire(kind: type[T], data: bytes) -> T:
    """What ``to_wire`` has made of a record of this class. Raises PlanError for anything else."""
    try:
        if zstandard.frame_content_size(data) > _MOST_BYTES:
            raise ValueError("it is too large")
        text = zstandard.ZstdDecompressor().decompress(data, max_output_size=_MOST_BYTES)
        return typing.cast(T, _reader(kind)(json.loads(text)))
    except (ValueError, TypeError, KeyError, RecursionError, zstandard.ZstdError) as exc:
        raise PlanError(
            f"the plan job: expected a {kind.__name__} from an executor, got something else ({exc}): an executor has "
            "another binlane, or is not to be trusted; look at who can use the cluster, then run the job again"
        ) from exc


def _plain(hint: Any) -> Any:
    return _plain(hint.__supertype__) if isinstance(hint, NewType) else hint


@cache
def _hints(kind: Any) -> tuple[tuple[str, Any], ...]:
    hints = typing.get_type_hints(kind)
    return tuple((each.name, _plain(hints[each.name])) for each in dataclasses.fields(kind))


def _choices(hint: Any) -> tuple[Any, ...]:
    """The classes of a union, without None."""
    return tuple(each for each in typing.get_args(hint) if each is not types.NoneType)


@cache
def _writer(hint: Any) -> Convert:
    hint = _plain(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        kind: Any = hint
        # made when it is used: a class can name itself
        return lambda record: [each(getattr(record, name)) for name, each in _field_writers(kind)]
    if origin in (types.UnionType, typing.Union):
        return _union_writer(_choices(hint))
    if origin is tuple and arguments[-1] is not Ellipsis:
        writers = [_writer(each) for each in arguments]
        if all(write is _as_it_is for write in writers):
            return _as_it_is
        return lambda value: [write(one) for write, one in zip(writers, value, strict=True)]
    if origin in _LISTS:
        write = _writer(arguments[0])
        return list if write is _as_it_is else lambda value: list(map(write, value))
    if origin in _MAPPINGS:
        key, item = _writer(arguments[0]), (_writer(int) if origin is Counter else _writer(arguments[1]))
        if key is item is _as_it_is:
            return lambda value: list(value.items())
        return lambda value: [[key(name), item(one)] for name, one in value.items()]
    if hint is bytes:
        return lambda value: value.decode("latin-1")
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda value: value.value
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    """What JSON has, and a tuple of it."""
    return value


def _union_writer(choices: tuple[Any, ...]) -> Convert:
    if len(choices) > 1:
        raise TypeError(f"a union of {choices} has no form on the wire")
    if getattr(choices[0], "__name__", "") in _STAYS:
        return lambda _: None
    write = _writer(choices[0])
    return lambda value: None if value is None else write(value)


def _reader(hint: Any) -> Convert:
    read = _reader_of_all(hint)

    def read_one(value: Any) -> Any:
        [found] = read([value])
        return found

    return read_one


@cache
def _reader_of_all(hint: Any) -> ConvertAll:
    """Reads many values of one type: records and tuples by their columns, scalars without a call for each."""
    hint = _plain(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        kind: Any = hint
        # the readers are made when they are used: a class can name itself
        return lambda values: map(kind, *_columns(kind.__name__, _field_readers(kind), values))
    if origin in (types.UnionType, typing.Union):
        return _union_reader(*_choices(hint))
    if origin is tuple and arguments[-1] is not Ellipsis:
        readers = tuple(_reader_of_all(each) for each in arguments)
        return lambda values: zip(*_columns("tuple", readers, values), strict=True)
    if origin in _LISTS:
        collect, elements = _LISTS[origin], _reader_of_all(arguments[0])
        return lambda values: [collect(elements(each)) for each in _all_only(values, list)]
    if origin in _MAPPINGS:
        make, pairs = _MAPPINGS[origin], (arguments[0], int if origin is Counter else arguments[1])
        key_and_item = tuple(_reader_of_all(each) for each in pairs)
        return lambda values: [
            make(dict(zip(*columns, strict=True)))
            for columns in (_columns("pair", key_and_item, each) for each in _all_only(values, list))
        ]
    if hint is bytes:
        return lambda values: [value.encode("latin-1") for value in _all_only(values, str)]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda values: map(hint, values)
    return lambda values: _all_only(values, *_SCALARS[hint])


def _union_reader(choice: Any) -> ConvertAll:
    if getattr(choice, "__name__", "") in _STAYS:
        return lambda values: _all_only(values, types.NoneType)
    read = _reader(choice)
    return lambda values: [None if value is None else read(value) for value in values]


def _columns(name: str, readers: Sequence[ConvertAll], rows: Sequence[Any]) -> list[Iterable[Any]]:
    """The values of rows that are lists of as many values as there are ``readers``, column by column."""
    for length in {*map(len, _all_only(rows, list))} - {len(readers)}:
        raise ValueError(f"a {name} has {len(readers)} values, not {length}")
    columns = zip(*rows, strict=True) if rows else [()] * len(readers)
    return [read(column) for read, column in zip(readers, columns, strict=True)]


@cache
def _field_readers(kind: Any) -> tuple[ConvertAll, ...]:
    return tuple(_reader_of_all(hint) for _, hint in _hints(kind))


@cache
def _field_writers(kind: Any) -> tuple[tuple[str, Convert], ...]:
    return tuple((name, _writer(hint)) for name, hint in _hints(kind))


def _all_only(values: Sequence[Any], *kinds: type) -> Sequence[Any]:
    for other in {*map(type, values)} - {*kinds}:
        raise ValueError(f"expected {kinds[0].__name__}, got {other.__name__}")
    return values
