"""Applies the diffs of a partial JSON update to the document before it.

MySQL logs paths in one spelling: ``$``, then ``.name`` or ``."any text"`` for members and ``[n]`` for array cells
(``sql-common/json_path.cc``, ``Json_path_leg::to_string``; ``sql-common/json_diff.cc``, ``apply_json_diffs``).
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from binlane.binlog.types.json_binary import MAX_DEPTH, DiffKind, Json, JsonDiff, JsonDiffs, JsonDocument, JsonObject

_LEG: Final = re.compile(r'\.(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<name>[^.\[\]"\s]+))|\[(?P<cell>\d+)\]', re.DOTALL)
Leg = str | int
"""A member's key, or an array cell's number."""
_Edit = Callable[[Json, Leg, Json], Json]


def changed(document: Json, diffs: JsonDiffs) -> Json:
    """The document with all diffs applied; their values must be documents. Raises ValueError if a diff does not fit."""
    for diff in diffs.diffs:
        # one more than there may be, of a path of any length
        legs = tuple(itertools.islice(_legs(diff.path), MAX_DEPTH + 1))
        if len(legs) > MAX_DEPTH:
            raise ValueError(f"JSON diff: a path of more than {MAX_DEPTH} legs")
        value = diff.value.root if isinstance(diff.value, JsonDocument) else None
        if legs:
            document = _at(document, legs, value, _EDITS[diff.kind], diff)
        elif diff.kind is DiffKind.REPLACE:
            document = value
        else:
            raise _unfit(diff, "the whole document")
    return document


def _legs(path: str) -> Iterator[Leg]:
    at = 1
    if not path.startswith("$"):
        raise ValueError(f"JSON diff: the path {path!r} does not begin with $")
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise ValueError(f"JSON diff: the path {path!r} has no member and no cell at character {at}")
        at = match.end()
        if match["cell"] is not None:
            yield int(match["cell"])
        else:
            yield match["name"] if match["quoted"] is None else str(json.loads(f'"{match["quoted"]}"'))


def _at(document: Json, legs: tuple[Leg, ...], value: Json, edit: _Edit, diff: JsonDiff) -> Json:
    """The document, a copy where it changes, with the place at ``legs`` edited."""
    first, *rest = legs
    try:
        if not rest:
            return edit(document, first, value)
        inner = _at(_child(document, first), tuple(rest), value, edit, diff)
        return _replaced(document, first, inner)
    except LookupError:
        raise _unfit(diff, f"{first!r}") from None


def _unfit(diff: JsonDiff, what: str) -> ValueError:
    return ValueError(f"JSON diff: {diff.kind.name} at {diff.path}: {what} is not in the document before it")


def _child(document: Json, leg: Leg) -> Json:
    match document, leg:
        case JsonObject(), str():
            return dict(document.members)[leg]
        case list(), int():
            return document[leg]
        # in a path, [0] of a value that is no array is the value itself
        case _, 0:
            return document
    raise LookupError


def _replaced(document: Json, leg: Leg, value: Json) -> Json:
    _child(document, leg)
    match document, leg:
        case JsonObject(), str():
            return JsonObject(tuple((key, value if key == leg else old) for key, old in document.members))
        case list(), int():
            return [*document[:leg], value, *document[leg + 1 :]]
    return value


def _inserted(document: Json, leg: Leg, value: Json) -> Json:
    match document, leg:
        case JsonObject(), str() if leg not in dict(document.members):
            return JsonObject(tuple(sorted((*document.members, (leg, value)), key=_order)))
        case list(), int():
            return [*document[:leg], value, *document[leg:]]
    raise LookupError


def _removed(document: Json, leg: Leg, _: Json) -> Json:
    match document, leg:
        case JsonObject(), str() if leg in dict(document.members):
            return JsonObject(tuple(member for member in document.members if member[0] != leg))
        case list(), int() if leg < len(document):
            return [*document[:leg], *document[leg + 1 :]]
    raise LookupError


def _order(member: tuple[str, Json]) -> tuple[int, bytes]:
    """The server's order of members: shorter keys first."""
    key = member[0].encode()
    return len(key), key


_EDITS: Final[Mapping[DiffKind, _Edit]] = {
    DiffKind.REPLACE: _replaced,
    DiffKind.INSERT: _inserted,
    DiffKind.REMOVE: _removed,
}
