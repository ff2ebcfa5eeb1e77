"""schema.json: a ``Schema`` as canonical JSON. Equal values give equal bytes, so the file can be part of a digest.

Tenants have the same tables: a definition is written once, and of each table its name and its definition's number.
Every worker reads the file before it is at work, and a fleet has a hundred thousand tables.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import types
import typing
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final

from binlane.errors import PlanError
from binlane.model import TableKey
from binlane.schema.canonical import canonical_json
from binlane.schema.model import Schema, Table

FORMAT: Final = 2
"""Raised with every change that an older reader would misread."""

_PARTS: Final = {"format": None, "schema": None, "definitions": None, "tables": None}.keys()
_ANY: Final = TableKey("", "")
"""The name in a definition."""


def schema_to_json(schema: Schema) -> bytes:
    """As ``canonical_json``."""
    numbers: dict[Table, int] = {}
    tables: dict[str, dict[str, int]] = defaultdict(dict)
    for key in sorted(schema.tables, key=lambda key: (key.database, key.table)):
        number = numbers.setdefault(_definition(schema.tables[key]), len(numbers))
        tables[key.database][key.table] = number
    document = {
        "format": FORMAT,
        "schema": {name: value for name, value in _dump(replace(schema, tables={})).items() if name != "tables"},
        "definitions": [_dump(definition) for definition in numbers],
        "tables": tables,
    }
    return canonical_json(document)


def schema_from_json(data: bytes, where: str = "schema.json") -> Schema:
    """Read what ``schema_to_json`` wrote. Raises PlanError, naming ``where`` and the path, for anything else."""
    try:
        document = json.loads(data)
    except ValueError as exc:
        raise PlanError(f"{where}: expected JSON, got {exc}; extract the window again") from exc
    if not isinstance(document, dict) or "format" not in document:
        raise PlanError(f"{where}: $: expected an object with a format; extract the window again")
    if document["format"] != FORMAT:
        found = document["format"]
        raise PlanError(f"{where}: $.format: expected {FORMAT}, got {found!r}; read it with the binlane that wrote it")
    if document.keys() != _PARTS or not isinstance(document["schema"], dict):
        raise PlanError(f"{where}: $: expected the keys {', '.join(_PARTS)}; extract the window again")
    definitions = [
        _load(Table, item, f"{where}: $.definitions[{at}]")
        for at, item in enumerate(_list(document["definitions"], f"{where}: $.definitions"))
    ]
    numbers = _load(Mapping[str, Mapping[str, int]], document["tables"], f"{where}: $.tables")
    schema: Schema = _load(Schema, document["schema"] | {"tables": {}}, f"{where}: $.schema")
    return replace(schema, tables=dict(_tables(definitions, numbers, f"{where}: $.tables")))


def _definition(table: Table) -> Table:
    """What tables of several databases may have in common."""
    return replace(table, key=_ANY, foreign_keys=table.references)


def _tables(
    definitions: Sequence[Table], numbers: Mapping[str, Mapping[str, int]], where: str
) -> Iterator[tuple[TableKey, Table]]:
    for database, of_database in numbers.items():
        for name, number in of_database.items():
            if not 0 <= number < len(definitions):
                raise PlanError(
                    f"{where}.{database}.{name}: expected a definition below {len(definitions)}, got {number}"
                )
            table, key = definitions[number], TableKey(database, name)
            foreign_keys = tuple(
                replace(each, parent=TableKey(each.parent.database or database, each.parent.table))
                for each in table.foreign_keys
            )
            yield key, replace(table, key=key, foreign_keys=foreign_keys)


def _dump(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _dump(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _dump(item) for key, item in value.items()}
    if isinstance(value, frozenset):
        return sorted((_dump(item) for item in value), key=_order)
    if isinstance(value, tuple):
        return [_dump(item) for item in value]
    return value


def _order(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _load(kind: Any, value: object, where: str) -> Any:
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
        return _load_mapping(arguments[1], value, where)
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


def _load_mapping(kind: Any, value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise PlanError(f"{where}: expected an object, got {value!r}")
    return {key: _load(kind, item, f"{where}.{key}") for key, item in value.items()}


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
