"""The shapes of the records that binlane stores, as text: one file for each version of each format.

    python -m lab.stored_shapes     write the shapes of versions that have no file yet; never changes a file

``tests/unit/test_formats.py`` compares them: a record that changes without its format's version fails there.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import typing
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from types import UnionType
from typing import Any, Final

from sqlalchemy.dialects import mysql
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from binlane.formats import FORMATS
from binlane.json_codec.codec import Codec
from binlane.json_codec.layout import hints_of
from binlane.model import ItemKind, SessionContext
from binlane.plan import database_activity, manifest, routing, settings, window_facts, window_plan
from binlane.precheck import results
from binlane.precheck.definitions import noted as definitions
from binlane.precheck.definitions import program_checks as programs
from binlane.repair import plan as repair_plan
from binlane.restore import archive_index, file_keys
from binlane.schema import codec as schema_codec
from binlane.schema.model import Schema
from binlane.shards import selection
from binlane.sql.programs import known, marks
from binlane.state import json_columns, tables
from binlane.work import lane_files

STORED: Final = Path(__file__).parents[1] / "tests" / "unit" / "stored_shapes"
_BINLANE: Final = Path(__file__).parents[1] / "plugins" / "binlane"
_READERS: Final = ("value_of", "optional_value_of")
"""What reads a column with JSON: the type comes first, the column last."""

RECORDS: Final[Mapping[str, tuple[tuple[Codec, Any], ...]]] = {
    "manifest.json": ((manifest.MANIFEST, manifest.Manifest),),
    "channel.json": ((settings.SETTINGS, settings.PlanSettings), (selection.SELECTION, selection.Selection)),
    "schema.json": ((schema_codec.SCHEMA, schema_codec.Document), (schema_codec.SCHEMA, Schema)),
    "definitions.json": ((definitions.FILE, definitions.ReadDefinitions),),
    "programs.json": ((programs.FILE, known.KnownPrograms),),
    "context.json": ((routing.CONTEXT, routing.Routing),),
    "lane files": ((lane_files.SESSION, SessionContext), (lane_files.SESSION, ItemKind)),
    "databases.json": ((database_activity.ACTIVITY, database_activity.WindowActivity),),
    "partitioned.json": ((results.LEFT, results.PartitionedTables),),
    "reached.json": ((results.LEFT, marks.ReachedPrograms),),
    "variables.json": ((results.LEFT, results.TargetVariables),),
    "plan.json": ((window_plan.PLAN, window_plan.WindowPlan),),
    "repair plans": ((repair_plan.REPAIR, repair_plan.RepairPlan),),
    "archive index": ((archive_index.INDEX, archive_index.IndexedFile),),
    "archive keys": (file_keys.HEAD,),
}
"""The records of each format, with the codec that writes them; segments are binlog files and have none."""


def shapes() -> dict[str, str]:
    """The shape of each format and of the tables on the target, by the name of its file."""
    of_files = {name: "".join(_texts(name)) for name in RECORDS}
    found = {f"{name}-{FORMATS[name].version}": text for name, text in of_files.items()}
    found[f"state-{tables.VERSION}"] = "".join(_state())
    return {f"{name.replace(' ', '-')}.txt": text for name, text in found.items()}


def _texts(name: str) -> Iterator[str]:
    if name == "lane files":
        yield f"{lane_files.SCHEMA.to_string()}\n\n"
    if name == "archive index":
        yield f"{archive_index.SCHEMA.to_string()}\n\n"
    for codec, kind in RECORDS[name]:
        yield from _of(codec, kind)


def _state() -> Iterator[str]:
    """The tables, and the records in columns with JSON."""
    made = list[ExecutableDDLElement]()
    for table in sorted(tables.metadata.tables.values(), key=lambda each: each.name):
        made += [CreateTable(table), *(CreateIndex(index) for index in table.indexes)]
    for each in made:
        yield str(each.compile(dialect=mysql.dialect())).replace("\t", "  ").strip() + "\n\n"
    for column, kind in sorted(json_kinds().items()):
        yield f"{column}: {_name(kind)}\n"
        yield from _of(json_columns.STATE, kind)
    yield from _of(window_facts.FACTS, window_facts.WindowFacts)
    yield from _of(manifest.MANIFEST, manifest.Segment)


def json_kinds() -> dict[str, Any]:
    """The type of each column with JSON, as the code that reads the column names it."""
    found = {}
    for file in sorted(_BINLANE.rglob("*.py")):
        module = ".".join(("binlane", *file.relative_to(_BINLANE).with_suffix("").parts))
        text = file.read_text()
        # few modules do: to parse all of them takes seconds
        tree = ast.parse(text if any(name in text for name in _READERS) else "")
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Name(id=name), args=[kind, _, column]) if name in _READERS:
                    if not isinstance(column, ast.Name):
                        known = vars(importlib.import_module(module)) | {"c": tables.verifications.c}
                        found[str(_value(column, known))] = _value(kind, known)
    return found


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<column>", "eval"), dict(names))


def _of(codec: Codec, kind: Any) -> Iterator[str]:
    """A record, its fields in order, and the records and words that they are made of."""
    seen = dict[Any, None]()
    _gather(kind, seen)
    for each in seen:
        if issubclass(each, Enum):
            yield f"{each.__name__}: {' | '.join(str(word.value) for word in each)}\n\n"
            continue
        yield f"{each.__name__}{' (row)' if each in codec.layout.rows else ''}\n"
        for name, hint in hints_of(each).items():
            notes = [note for note, names in _NOTES.items() if name in getattr(codec.layout, names)]
            yield f"  {name}: {_name(hint)}{''.join(f' ({note})' for note in notes)}\n"
        yield "\n"


_NOTES: Final = {"may be left out": "left_out", "0 or 1": "numbers", "sorted by text": "by_text"}


def _gather(hint: Any, seen: dict[Any, None]) -> None:
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or issubclass(hint, Enum)) and hint not in seen:
        seen[hint] = None
        if dataclasses.is_dataclass(hint):
            for each in hints_of(hint).values():
                _gather(each, seen)
    for each in typing.get_args(hint):
        _gather(each, seen)


def _name(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is UnionType:
        return " | ".join(_name(each) for each in arguments)
    if origin is Sequence:
        # the same in a file
        return f"tuple[{_name(arguments[0])}, ...]"
    if origin is not None:
        return f"{origin.__name__}[{', '.join('...' if each is Ellipsis else _name(each) for each in arguments)}]"
    return "None" if hint is type(None) else getattr(hint, "__name__", str(hint))


def main() -> None:
    """Write the shapes that have no file yet."""
    STORED.mkdir(exist_ok=True)
    for name, text in shapes().items():
        if not (STORED / name).exists():
            (STORED / name).write_text(text)


if __name__ == "__main__":
    main()
