"""JSON in the columns of the state: text of older builds is read, and written alike."""

from __future__ import annotations

import re

import pytest

from binlane.errors import PlanError
from binlane.model import LogPosition, RowCounts
from binlane.state.channels import Watermark
from binlane.state.json_columns import optional_value_of, text_of, value_of
from binlane.state.records.bootstraps import CopyResult
from binlane.state.tables import conflicts, suspects, verifications, windows

START = (
    '{"seqno": 41, "source": {"file": "binlog.000007", "offset": 4294967400}, "gtid_set": "0-1-41", '
    '"source_time": 1700000000.25, "fingerprint": "ab12"}'
)
STORED = [
    (Watermark, Watermark(41, LogPosition("binlog.000007", 4294967400), "0-1-41", 1700000000.25, "ab12"), START),
    (RowCounts, RowCounts(3, 0, 1), '{"inserts": 3, "updates": 0, "deletes": 1}'),
    (tuple[str, ...], ("1", "\u00fc"), '["1", "\\u00fc"]'),
    (tuple[str | None, ...], ("1", None), '["1", null]'),
    (tuple[str, tuple[str, ...] | None], ("shop.orders", ("9",)), '["shop.orders", ["9"]]'),
    (tuple[str, tuple[str, ...] | None], ("shop.orders", None), '["shop.orders", null]'),
    (dict[str, str | None], {"id": "1", "note": None}, '{"id": "1", "note": null}'),
    (
        CopyResult,
        CopyResult(2, 9, 1, 5000, 4, 1, ("account x@% exists",), 2, (("od*", "shop"), True)),
        '{"databases": 2, "tables": 9, "kept": 1, "rows": 5000, "others": 4, "accounts": 1, '
        '"notes": ["account x@% exists"], "attempts": 2, "asked": [["od*", "shop"], true], "resumed": 0, '
        '"channel_uuid": ""}',
    ),
]
"""As columns hold them."""


@pytest.mark.parametrize(("kind", "value", "text"), STORED)
def test_a_stored_text_is_read_and_written_alike(kind: type, value: object, text: str) -> None:
    assert value_of(kind, text, windows.c.start) == value
    assert text_of(value) == text


def test_null_is_no_value() -> None:
    assert optional_value_of(RowCounts, None, windows.c.totals) is None
    assert optional_value_of(RowCounts, text_of(RowCounts(1)), windows.c.totals) == RowCounts(1)


@pytest.mark.parametrize(
    ("kind", "text", "column", "message"),
    [
        (Watermark, START.replace("41,", '"41",'), windows.c.start, "binlane.windows.start: $.seqno: expected int"),
        (RowCounts, '{"inserts": 3}', windows.c.totals, "binlane.windows.totals: $: key 'deletes' is missing"),
        (tuple[str, ...], "[1]", suspects.c.row_key, "binlane.suspects.row_key: $[0]: expected str, got 1"),
        (dict[str, str | None], "[]", conflicts.c.found, "binlane.conflicts.found: $: expected an object, got []"),
        (tuple[str, ...], "[", verifications.c.progress, "binlane.verifications.progress: expected JSON: "),
    ],
)
def test_an_error_names_the_column_and_the_way_out(kind: type, text: str, column: object, message: str) -> None:
    with pytest.raises(PlanError, match=f"^{re.escape(message)}.*; another program has changed it: restore binlane's"):
        value_of(kind, text, column)  # type: ignore[arg-type]
