"""schema.json: a ``Schema`` as canonical JSON. Equal values give equal bytes, so the file can be part of a digest."""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from binlane.errors import PlanError
from binlane.plan.schema import Schema

FORMAT: Final = 1
"""Raised with every change that an older reader would misread."""


def schema_to_json(schema: Schema) -> bytes:
    """UTF-8, sorted keys, one line feed at the end."""
    document = {"format": FORMAT, "schema": _dump(schema)}
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False)
    return f"{text}\n".encode()


def schema_from_json(data: bytes, where: str = "schema.json") -> Schema:
    """Read what ``schema_to_json`` wrote. Raises PlanError, naming ``where`` and the path, for anything else."""
    try:
        document = json.loads(data)
    except ValueError as exc:
        raise PlanError(f"{where}: expected JSON, got {exc}; extract the window again") from exc
    if not isinstance(document, dict) or document.keys() != {"format", "schema"}:
        raise PlanError(f"{where}: $: expected the keys format and schema; extract the window again")
    if document["format"] != FORMAT:
        found = document["format"]
        raise PlanError(f"{where}: $.format: expected {FORMAT}, got {found!r}; read it with the binlane that wrote it")
    schema = _load(Schema, document["schema"], f"{where}: $.schema")
    assert isinstance(schema, Schema)
    return schema


def _dump(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _dump(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        # a list where the values name themselves: JSON's keys are text only
        if any(not isinstance(key, str) for key in value):
            return sorted((_dump(item) for item in value.values()), key=_order)
        return {key: _dump(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted((_dump(item) for item in value), key=_order)
    if isinstance(value, tuple):
        return [_dump(item) for item in value]
    return value


def _order(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _load(kind: Any, value: object, where: str) -> object:
    if type(value) is kind:
        # most of a schema, which a worker has to read before it is at work; no kind is a list or an object
        return value
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return None if value is None else _load(arguments[0], value, where)
    if dataclasses.is_dataclass(kind):
        return _load_dataclass(kind, value, where)
    if origin is tuple:
        items = _list(value, where)
        kinds = [arguments[0]] * len(items) if arguments[-1] is Ellipsis else list(arguments)
        if len(kinds) != len(items):
            raise PlanError(f"{where}: expected {len(kinds)} values, got {len(items)}")
        return tuple(
            _load(kind, item, f"{where}[{at}]") for at, (kind, item) in enumerate(zip(kinds, items, strict=True))
        )
    if origin is frozenset:
        return frozenset(_load(arguments[0], item, f"{where}[{at}]") for at, item in enumerate(_list(value, where)))
    if origin is Mapping:
        return _load_mapping(arguments, value, where)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if value not in list(kind):
            raise PlanError(f"{where}: expected one of {', '.join(kind)}, got {value!r}")
        return kind(str(value))
    raise PlanError(f"{where}: expected {kind.__name__}, got {value!r}")


def _load_dataclass(kind: Any, value: object, where: str) -> object:
    hints = _hints(kind)
    if not isinstance(value, dict) or value.keys() != hints.keys():
        found = ", ".join(sorted(value)) if isinstance(value, dict) else repr(value)
        raise PlanError(f"{where}: expected the keys {', '.join(hints)}, got {found}")
    return kind(**{name: _load(hint, value[name], f"{where}.{name}") for name, hint in hints.items()})


def _load_mapping(arguments: tuple[Any, ...], value: object, where: str) -> object:
    if arguments[0] is str:
        if not isinstance(value, dict):
            raise PlanError(f"{where}: expected an object, got {value!r}")
        return {key: _load(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    loaded: dict[object, object] = {}
    # an empty mapping has no key to tell the two forms apart when it is written
    for at, item in enumerate(_list([] if value == {} else value, where)):
        entry: Any = _load(arguments[1], item, f"{where}[{at}]")
        if entry.key in loaded:
            raise PlanError(f"{where}[{at}]: {entry.key} is there twice")
        loaded[entry.key] = entry
    return loaded


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise PlanError(f"{where}: expected a list, got {value!r}")
    return value


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    """The fields, in order. ``get_type_hints`` evaluates every annotation anew: too slow for each of a hundred thousand
    columns."""
    hints = typing.get_type_hints(kind)
    return {item.name: hints[item.name] for item in dataclasses.fields(kind)}
