"""One door for the comparison of names: a server's ``lower_case_table_names`` decides, and its folding of letters."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

import binlane
from binlane.model import TableKey
from binlane.schema.letter_case import ANY_CASE, AS_TYPED, LetterCase

ROOT: Final = Path(binlane.__file__).parent
_FOLDED: Final = re.compile(
    r"""casefold
    |\b(?:database|table|schema|default_database|parent)(?:\ or\ (?:""|''))?\)?\.lower\b
    |\bstr\((?:\w+\.)*(?:key|table|old|new|first|parent|missing)\)\.lower\b
    |\bmap\(str\.lower,\ (?:\w+\.)*(?:databases|tables)\)""",
    re.VERBOSE,
)
"""A name of a table or database that is folded by what Python, and no server, takes for lower case."""


@pytest.mark.parametrize("package", sorted(each.name for each in ROOT.iterdir() if (each / "__init__.py").exists()))
def test_names_are_folded_by_the_letter_case_of_a_server_alone(package: str) -> None:
    """``str.casefold`` takes \u00df for ss, which no server does, ``str.lower`` makes two letters of \u0130 and goes by
    a letter's neighbours; and either takes tables for one that a server with 0 has twice."""
    folding = [
        f"{file.relative_to(ROOT)}: {found[0]}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for found in _FOLDED.finditer(file.read_text("utf-8"))
    ]
    assert folding == []


@pytest.mark.parametrize(
    "code",
    [
        "key.database.lower()", "key.table.lower()", "str(key).lower()", "str(one.parent).lower()", "database.lower()",
        "name.casefold()", "map(str.lower, source.databases)", '(database or "").lower()', "fold = str.casefold",
    ],
)  # fmt: skip
def test_each_form_of_it_is_seen(code: str) -> None:
    assert _FOLDED.search(code) is not None


@pytest.mark.parametrize("code", ["table.engine.lower()", "key.name.lower()", "str(value).lower()", "lower(database)"])
def test_words_that_are_no_names_of_tables_are_left(code: str) -> None:
    assert _FOLDED.search(code) is None


@pytest.mark.parametrize(
    ("letters", "one", "other", "are_one"),
    [
        (AS_TYPED, "T", "t", False),
        (LetterCase(folds=True), "T", "t", True),
        (ANY_CASE, "T", "t", True),
        # a sigma at the end of a word, and an I with a dot: a server has one letter for each
        (ANY_CASE, "\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c3", True),
        (ANY_CASE, "\u0130", "i", True),
        (ANY_CASE, "stra\u00dfe", "strasse", False),
    ],
)
def test_letters_are_those_of_the_servers(letters: LetterCase, one: str, other: str, are_one: bool) -> None:
    keys = [letters.table(TableKey(name, name)) for name in (one, other)]
    assert (keys[0] == keys[1]) is are_one
