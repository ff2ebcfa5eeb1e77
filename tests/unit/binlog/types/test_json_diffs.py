"""JSON diffs over a document: each kind at members and cells, and what does not fit."""

from __future__ import annotations

import json

import pytest

from binlane.binlog.types.json_binary import DiffKind, Json, JsonDiff, JsonDiffs, JsonDocument, JsonObject, json_text
from binlane.binlog.types.json_diffs import changed

DOCUMENT = '{"a": 1, "bb": [1, [2, 3], {"k": "v"}], "x y": {"\\"": null}}'
REPLACE, INSERT, REMOVE = DiffKind
CASES = [
    (REPLACE, "$", '"new"', '"new"'),
    (REPLACE, "$.a", "[]", '{"a": [], "bb": [1, [2, 3], {"k": "v"}], "x y": {"\\"": null}}'),
    (REPLACE, "$.bb[1][0]", "7", '{"a": 1, "bb": [1, [7, 3], {"k": "v"}], "x y": {"\\"": null}}'),
    (REPLACE, '$."x y"."\\""', "true", '{"a": 1, "bb": [1, [2, 3], {"k": "v"}], "x y": {"\\"": true}}'),
    (INSERT, "$.c", "2", '{"a": 1, "c": 2, "bb": [1, [2, 3], {"k": "v"}], "x y": {"\\"": null}}'),
    (INSERT, "$.bb[0]", "0", '{"a": 1, "bb": [0, 1, [2, 3], {"k": "v"}], "x y": {"\\"": null}}'),
    (INSERT, "$.bb[9]", "0", '{"a": 1, "bb": [1, [2, 3], {"k": "v"}, 0], "x y": {"\\"": null}}'),
    (INSERT, "$.bb[2].j", "0", '{"a": 1, "bb": [1, [2, 3], {"j": 0, "k": "v"}], "x y": {"\\"": null}}'),
    (REMOVE, "$.bb[1]", None, '{"a": 1, "bb": [1, {"k": "v"}], "x y": {"\\"": null}}'),
    (REMOVE, '$."x y"', None, '{"a": 1, "bb": [1, [2, 3], {"k": "v"}]}'),
]
UNFIT = [
    (REPLACE, "$.c", "1"), (REPLACE, "$.bb[3]", "1"), (INSERT, "$.a", "1"), (INSERT, "$.a.b", "1"),
    (INSERT, "$.bb.k", "1"), (REMOVE, "$.c", None), (REMOVE, "$.bb[3]", None), (REMOVE, "$", None), (INSERT, "$", "1"),
    (REPLACE, "a", "1"), (REPLACE, "$.", "1"), (REPLACE, "$[last]", "1"), (REPLACE, "$.a.b.c", "1"),
    # each [0] fits whatever is there
    (REPLACE, "$.a" + 5_000 * "[0]", "1"),
]  # fmt: skip


def document_of(text: str) -> Json:
    def read(value: object) -> Json:
        if isinstance(value, dict):
            return JsonObject(tuple((key, read(one)) for key, one in value.items()))
        if isinstance(value, list):
            return [read(one) for one in value]
        assert value is None or isinstance(value, str | int | float | bool)
        return value

    return read(json.loads(text))


def diffs(kind: DiffKind, path: str, value: str | None) -> JsonDiffs:
    return JsonDiffs((JsonDiff(kind, path, None if value is None else JsonDocument(document_of(value))),))


@pytest.mark.parametrize(("kind", "path", "value", "expected"), CASES)
def test_a_diff_makes_the_document_that_the_server_would(
    kind: DiffKind, path: str, value: str | None, expected: str
) -> None:
    before = document_of(DOCUMENT)
    assert json_text(changed(before, diffs(kind, path, value))) == expected
    assert json_text(before) == DOCUMENT


@pytest.mark.parametrize(("kind", "path", "value"), UNFIT)
def test_a_diff_that_does_not_fit_is_an_error(kind: DiffKind, path: str, value: str | None) -> None:
    with pytest.raises(ValueError, match="JSON diff"):
        changed(document_of(DOCUMENT), diffs(kind, path, value))


def test_diffs_are_applied_in_their_order() -> None:
    both = JsonDiffs((*diffs(REMOVE, "$.bb[0]", None).diffs, *diffs(REPLACE, "$.bb[0][0]", "9").diffs))
    assert json_text(changed(document_of(DOCUMENT), both)).startswith('{"a": 1, "bb": [[9, 3], ')
