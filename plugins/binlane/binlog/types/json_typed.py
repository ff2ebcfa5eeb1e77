"""MySQL's JSON as text for comparisons, with the places of the values that are strings in JSON's text and no strings.

A date in a document has the text of a string, and so have a time, bytes and bits. Their own texts differ, so their
places say all. The text is length and SHA-256 of the document's text, and if it holds such values, ``+`` and a number
that stands for their places. Numbers are equal if their texts are, whether they are decimals, doubles or integers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import reduce
from operator import xor
from typing import Final

from binlane.binlog.types.json_binary import Json, JsonObject, Opaque, json_text
from binlane.binlog.types.literals import identifier
from binlane.binlog.types.type_codes import ColumnType

_OF_JSON: Final = (
    *("NULL", "BOOLEAN", "STRING", "ARRAY", "OBJECT"),
    *("INTEGER", "UNSIGNED INTEGER", "DOUBLE", "DECIMAL"),
)
"""Results of JSON_TYPE for values that JSON's text can express."""
_DIGITS: Final = 15
"""Hexadecimal digits of a place's SHA-256 that are used."""


def typed_json(column: str) -> str:
    """The SQL expression for a column of that name, in MySQL 8.0.14 or newer."""
    name = identifier(column)
    text = f"CAST({name} AS CHAR CHARACTER SET utf8mb4)"
    # parsing the text is cheaper than visiting each value, and most documents are what their text says
    found = f"IF({name} = CAST({text} AS JSON), NULL, NULLIF({places_of_other_types(name)}, 0))"
    return f"IF({name} IS NULL, NULL, CONCAT_WS('+', CONCAT(LENGTH({text}), ':', SHA2({text}, 256)), {found}))"


def places_of_other_types(name: str) -> str:
    """The SQL expression, in MySQL 8.0.14 or newer, of a number that stands for the places of a document's values that
    JSON's text cannot express; 0: it has none. ``name``: the column's, quoted."""
    of_json = ", ".join(f"'{each}'" for each in _OF_JSON)
    return (
        # JSON_TABLE makes NULL of JSON's null
        f"(SELECT BIT_XOR(IF(JSON_TYPE(v) NOT IN ({of_json}), "
        f"CAST(CONV(SUBSTR(SHA2(n, 256), 1, {_DIGITS}), 16, 10) AS UNSIGNED), 0)) "
        f"FROM JSON_TABLE(JSON_EXTRACT({name}, '$', '$**.*', '$**[*]'), '$[*]' "
        "COLUMNS (n FOR ORDINALITY, v JSON PATH '$')) each_value)"
    )


def spelled_with_types(document: Json) -> str:
    """The expression's value for a document."""
    text = json_text(document).encode()
    places = (hashlib.sha256(str(place).encode()).hexdigest()[:_DIGITS] for place in _places(document))
    found = reduce(xor, (int(digits, 16) for digits in places), 0)
    return f"{len(text)}:{hashlib.sha256(text).hexdigest()}" + (f"+{found}" if found else "")


def _places(document: Json) -> Iterator[int]:
    """The values that JSON's text cannot express, numbered as JSON_EXTRACT lists the paths ``$``, ``$**.*`` and
    ``$**[*]``."""
    containers = list(_containers(document))
    values = [document]
    values += [value for one in containers if isinstance(one, JsonObject) for _, value in one.members]
    values += [value for one in containers if isinstance(one, list) for value in one]
    for place, value in enumerate(values, 1):
        if isinstance(value, Opaque) and value.type_code != ColumnType.NEWDECIMAL:
            yield place


def _containers(document: Json) -> Iterator[JsonObject | list[Json]]:
    """Objects and arrays, each before those inside it."""
    if isinstance(document, JsonObject):
        yield document
        for _, value in document.members:
            yield from _containers(value)
    elif isinstance(document, list):
        yield document
        for value in document:
            yield from _containers(value)
