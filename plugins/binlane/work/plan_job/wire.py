"""Results of the plan job's tasks as JSON, for workers that are not processes of this program's own.

Whoever can run code on an executor of Spark can send any bytes to the process that waits for the job, and that process
holds the passwords of both servers. So nothing that comes from an executor is unpickled: it is JSON, and becomes values
of the types that the result's class declares, and of no others.

A record is a list of its fields' values in their order, a mapping a list of pairs, bytes are text of their own numbers.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, Final, NewType, TypeVar

import zstandard

from binlane.errors import PlanError

T = TypeVar("T")
Convert = Callable[[Any], Any]

_LEVEL: Final = 1
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
        return typing.cast(T, _reader(typing.cast(Any, kind))(json.loads(text)))
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
        return lambda value: [_writer(each)(one) for each, one in zip(arguments, value, strict=True)]
    if origin in _LISTS:
        write = _writer(arguments[0])
        return lambda value: list(map(write, value))
    if origin in _MAPPINGS:
        key, item = _writer(arguments[0]), (_writer(int) if origin is Counter else _writer(arguments[1]))
        return lambda value: [[key(name), item(one)] for name, one in value.items()]
    if hint is bytes:
        return lambda value: value.decode("latin-1")
    if isinstance(hint, type) and issubclass(hint, Enum):
        return lambda value: value.value
    return lambda value: value


def _union_writer(choices: tuple[Any, ...]) -> Convert:
    if len(choices) > 1:
        raise TypeError(f"a union of {choices} has no form on the wire")
    if getattr(choices[0], "__name__", "") in _STAYS:
        return lambda _: None
    write = _writer(choices[0])
    return lambda value: None if value is None else write(value)


@cache
def _reader(hint: Any) -> Convert:
    hint = _plain(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _record_reader(hint)
    if origin in (types.UnionType, typing.Union):
        [choice] = _choices(hint)
        if getattr(choice, "__name__", "") in _STAYS:
            return lambda value: _only(value, types.NoneType)
        read = _reader(choice)
        return lambda value: None if value is None else read(value)
    if origin is tuple and arguments[-1] is not Ellipsis:
        readers = [_reader(each) for each in arguments]
        return lambda value: tuple(read(one) for read, one in zip(readers, _only(value, list), strict=True))
    if origin in _LISTS:
        collect, each = _LISTS[origin], _reader(arguments[0])
        return lambda value: collect(map(each, _only(value, list)))
    if origin in _MAPPINGS:
        make, key = _MAPPINGS[origin], _reader(arguments[0])
        item = _reader(int) if origin is Counter else _reader(arguments[1])
        return lambda value: make({key(name): item(one) for name, one in _only(value, list)})
    if hint is bytes:
        return lambda value: _only(value, str).encode("latin-1")
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint
    return lambda value: _only(value, *_SCALARS[hint])


def _record_reader(kind: Any) -> Convert:
    def read(value: Any) -> Any:
        fields = _field_readers(kind)
        if len(_only(value, list)) != len(fields):
            raise ValueError(f"a {kind.__name__} has {len(fields)} values, not {len(value)}")
        return kind(**{name: each(one) for (name, each), one in zip(fields, value, strict=True)})

    return read


@cache
def _field_readers(kind: Any) -> tuple[tuple[str, Convert], ...]:
    return tuple((name, _reader(hint)) for name, hint in _hints(kind))


@cache
def _field_writers(kind: Any) -> tuple[tuple[str, Convert], ...]:
    return tuple((name, _writer(hint)) for name, hint in _hints(kind))


def _only(value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise ValueError(f"expected {kinds[0].__name__}, got {type(value).__name__}")
    return value
