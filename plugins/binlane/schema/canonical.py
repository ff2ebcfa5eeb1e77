"""Canonical JSON: equal values give equal bytes, so a document can be part of a digest; one entry a line.

Written here because the standard library needs ten times as long for indented JSON, and a plan may have ten thousand
tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Final


def canonical_json(document: Mapping[str, object]) -> bytes:
    """ASCII, keys sorted; one line for each member, and for each entry of a member that is a list or an object."""
    return (_object((_text(name), _entries(value)) for name, value in sorted(document.items())) + "\n").encode()


def _entries(value: object) -> str:
    if isinstance(value, Mapping):
        return _object((_text(name), _text(item)) for name, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return _enclosed("[", (_text(item) for item in value), "]")
    return _text(value)


def _object(members: Iterable[tuple[str, str]]) -> str:
    return _enclosed("{", (f"{name}: {value}" for name, value in members), "}")


def _enclosed(opening: str, lines: Iterable[str], closing: str) -> str:
    inside = ",\n ".join(lines)
    return f"{opening}\n {inside}\n{closing}" if inside else opening + closing


_text: Final = json.JSONEncoder(sort_keys=True).encode
