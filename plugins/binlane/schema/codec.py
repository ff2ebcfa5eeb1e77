"""schema.json: a ``Schema`` as canonical JSON. Equal values give equal bytes, so the file can be part of a digest.

Tenants have the same tables, so each definition is written once, and each table as its name and the number of its
definition. Every worker reads the file at its start, and a fleet may have a hundred thousand tables.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from binlane.errors import PlanError
from binlane.formats import FORMATS
from binlane.json_codec.codec import Codec
from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.schema.canonical import canonical_json
from binlane.schema.model import Schema, Table

_FORMAT: Final = FORMATS["schema.json"]
_ANY: Final = TableKey("", "")
"""The table name in a definition that several tables share."""


@dataclass(frozen=True, slots=True)
class Document:
    """The file: a schema without its tables, their definitions, and each table's definition by number."""

    format: int
    schema: Mapping[str, Any]
    definitions: tuple[Table, ...]
    tables: Mapping[str, Mapping[str, int]]


def schema_to_json(schema: Schema) -> bytes:
    """The schema as canonical JSON."""
    numbers: dict[Table, int] = {}
    # comparing whole definitions takes longer than writing them
    known: dict[Hashable, int] = {}
    tables: dict[str, dict[str, int]] = defaultdict(dict)
    for key in sorted(schema.tables, key=lambda key: (key.database, key.table)):
        table = schema.tables[key]
        number = known.get(kind := table.kind)
        if number is None:
            number = known[kind] = numbers.setdefault(_definition(table), len(numbers))
        tables[key.database][key.table] = number
    document = {
        "format": _FORMAT.version,
        "schema": {name: value for name, value in SCHEMA.dump(replace(schema, tables={})).items() if name != "tables"},
        "definitions": [SCHEMA.dump(definition) for definition in numbers],
        "tables": tables,
    }
    return canonical_json(document)


def schema_from_json(data: bytes, where: str = "schema.json") -> Schema:
    """Read what ``schema_to_json`` wrote. Raises PlanError, naming ``where`` and the path, for anything else."""
    document = SCHEMA.parsed(data, where)
    if "format" not in document:
        raise PlanError(f"{where}: $: expected an object with a format; extract the window again")
    if not _FORMAT.reads(found := document["format"]):
        expected = _FORMAT.versions
        raise PlanError(
            f"{where}: $.format: expected {expected}, got {found!r}; read it with the binlane that wrote it"
        )
    parts = SCHEMA.load(Document, document, where)
    schema: Schema = SCHEMA.load(Schema, {**parts.schema, "tables": []}, where, "$.schema")
    return replace(schema, tables=dict(_tables(parts.definitions, parts.tables, f"{where}: $.tables")))


def _definition(table: Table) -> Table:
    """The table without its database and name, so that tables of several databases can share it."""
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
            key = TableKey(database, name)
            yield key, definitions[number].named(key)


def _json_order(written: object) -> str:
    return json.dumps(written, sort_keys=True)


SCHEMA: Final = Codec("extract the window again", order=_json_order)
