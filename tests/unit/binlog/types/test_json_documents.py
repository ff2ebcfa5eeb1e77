"""A document that MySQL has printed, read again with the types of its numbers, and written as SQL."""

from __future__ import annotations

from decimal import Decimal

import pytest

from binlane.binlog.types.json_binary import Json, JsonObject, Unsigned, json_text
from binlane.binlog.types.json_sql import document_of, expression


@pytest.mark.parametrize(
    ("text", "document"),
    [
        ("19.90", Decimal("19.90")),
        ("19.9", 19.9),
        ("0.00", Decimal("0.00")),
        ("-0.0", -0.0),
        ("1.0", 1.0),
        ("1e300", 1e300),
        ("1.4334335999999999", 1.4334335999999999),
        ("123456789012345678901234567890", Decimal(123456789012345678901234567890)),
        ("18446744073709551615", Unsigned((1 << 64) - 1)),
        ("-9223372036854775808", -(1 << 63)),
        ("5", 5),
        ('"a\\n"', "a\n"),
        ('{"b": [1.10, null, true], "aa": {}}', None),
    ],
)
def test_a_printed_document_is_read_with_the_types_of_its_numbers(text: str, document: Json) -> None:
    read = document_of(text)
    if document is not None:
        assert (type(read), read) == (type(document), document)
    assert json_text(read) == text


@pytest.mark.parametrize(
    ("document", "sql"),
    [
        (Decimal("19.90"), "CAST('19.90' AS DECIMAL(4,2))"),
        (Decimal("0.00"), "CAST('0.00' AS DECIMAL(2,2))"),
        (Decimal("-0.050"), "CAST('-0.050' AS DECIMAL(3,3))"),
        (9088544342.689999, "9088544342.689999e0"),
        (-1.4334335999999999, "-1.4334335999999999e0"),
        (1e300, "1e300"),
        (5e-324, "5e-324"),
    ],
)
def test_numbers_that_json_text_does_not_keep_are_sql_values(document: Json, sql: str) -> None:
    assert expression(document) == f"JSON_EXTRACT(JSON_ARRAY({sql}), '$[0]')"
    assert expression([document]) == f"JSON_ARRAY({sql})"
    assert expression(JsonObject((("p", document),))) == f"JSON_OBJECT(_utf8mb4 X'70', {sql})"


@pytest.mark.parametrize("number", [1.5, 0.1, 123456789012345.0, 1e15, 1e22, 1e-15])
def test_numbers_that_every_server_reads_exactly_stay_json_text(number: float) -> None:
    assert expression([number]).startswith("CAST(_utf8mb4 X'")
