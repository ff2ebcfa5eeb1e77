"""Canonical JSON: equal values give equal bytes, so a document can be part of a digest; one entry a line.

Written here because the standard library needs ten times as long for indented JSON, and a plan may have ten thousand
tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

_PIECE: Final = 1 << 16
"""Characters of a piece, about: short entries go together, because a piece costs as much to hand on as such an entry to
write."""


def canonical_json(document: Mapping[str, object]) -> bytes:
    """ASCII, keys sorted; one line for each member, and for each entry of a member that is a list or an object."""
    return b"".join(canonical_pieces(document))


def canonical_pieces(document: Mapping[str, object]) -> Iterator[bytes]:
    """The bytes of ``canonical_json``, some entries at a time. A member may be an iterator: a list's entries."""
    opening = "{"
    for name, value in sorted(document.items()):
        yield f"{opening}\n {_text(name)}: ".encode()
        for piece in _entries(value):
            yield piece.encode()
        opening = ","
    yield b"{}\n" if opening == "{" else b"\n}\n"


def _entries(value: object) -> Iterable[str]:
    if isinstance(value, Mapping):
        return _enclosed("{", (f"{_text(name)}: {_text(item)}" for name, item in sorted(value.items())), "}")
    if isinstance(value, list | tuple | Iterator):
        return _enclosed("[", map(_text, value), "]")
    return [_text(value)]


def _enclosed(opening: str, lines: Iterable[str], closing: str) -> Iterator[str]:
    between, some, size = f"{opening}\n ", list[str](), 0
    for line in lines:
        some.append(line)
        size += len(line)
        if size >= _PIECE:
            yield between + ",\n ".join(some)
            between, some, size = ",\n ", [], 0
    if some:
        yield between + ",\n ".join(some)
        between = ",\n "
    yield f"\n{closing}" if between == ",\n " else opening + closing


_text: Final = json.JSONEncoder(sort_keys=True).encode
