"""JSON whose bytes say whether two documents are equal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.schema.canonical import canonical_json, canonical_pieces

TEXT = st.text(max_size=5)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT
VALUES = st.recursive(LEAVES, lambda inside: st.lists(inside) | st.dictionaries(TEXT, inside), max_leaves=20)


@given(st.dictionaries(TEXT, VALUES))
def test_canonical_json_is_json(document: dict[str, Any]) -> None:
    data = canonical_json(document)
    assert json.loads(data) == document
    assert data.isascii()


@given(st.dictionaries(TEXT, VALUES))
def test_the_order_of_keys_does_not_matter(document: dict[str, Any]) -> None:
    assert canonical_json(_reversed(document)) == canonical_json(document)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({}, "{}\n"),
        ({"b": 1, "a": [], "c": {}}, '{\n "a": [],\n "b": 1,\n "c": {}\n}\n'),
        ({"a": [[1, 2], {"y": 1, "x": 2}]}, '{\n "a": [\n [1, 2],\n {"x": 2, "y": 1}\n]\n}\n'),
        ({"a": {"d": "é", "c": [1]}}, '{\n "a": {\n "c": [1],\n "d": "\\u00e9"\n}\n}\n'),
    ],
    ids=["empty", "members", "a-list", "an-object"],
)
def test_an_entry_is_a_line(document: dict[str, Any], expected: str) -> None:
    assert canonical_json(document).decode() == expected


def test_an_iterator_is_a_list_whose_entries_are_made_when_their_turn_comes() -> None:
    made, long = list[int](), ["x" * 100_000, "y" * 100_000]

    def entries() -> Iterator[str]:
        for number, entry in enumerate(long):
            made.append(number)
            yield entry

    pieces = canonical_pieces({"a": entries(), "b": 0})
    begun = next(pieces) + next(pieces)
    assert (begun, made) == (b'{\n "a": [\n "%s"' % long[0].encode(), [0])
    assert begun + b"".join(pieces) == canonical_json({"a": long, "b": 0})


def test_short_entries_are_pieces_together() -> None:
    pieces = [*canonical_pieces({"a": [*range(1000)], "b": {"c": 1}})]
    assert len(pieces) < 10
    assert b"".join(pieces) == canonical_json({"a": iter(range(1000)), "b": {"c": 1}})


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _reversed(value[name]) for name in reversed(value)}
    return [_reversed(item) for item in value] if isinstance(value, list) else value
