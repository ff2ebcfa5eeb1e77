"""JSON in the columns of the state: a text that nobody can read, show or send ends in an error of one line.

Attacker: whoever can UPDATE a column of the schema ``binlane``, or write a file of the work folder.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, Final

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from binlane.board import api
from binlane.board.board_reader import NotFound
from binlane.board.models import Answer, RowChange
from binlane.errors import PlanError
from binlane.state.channels import Watermark
from binlane.state.json_columns import STATE
from binlane.state.records.bootstraps import CopyResult
from binlane.state.records.restores import RestoreDefinition

KINDS: Final = (Watermark, CopyResult, RestoreDefinition, tuple[str, ...], dict[str, str | None])
TEXTS: Final = (
    *("[" * depth + "]" * depth for depth in (2, 500, 900, 960, 980, 990, 1_000, 100_000)),
    '{"a":' * 900 + "1" + "}" * 900,
    *(f'{{"seqno": {number}}}' for number in ("1e999", "-1e999", "1" + "0" * 400, "1" + "0" * 5_000, "NaN")),
    '"' + "x" * 5_000_000 + '"',
    '{"' + "x" * 5_000_000 + '": 1}',
    "[" + "1," * 1_000_000 + "1]",
)
"""A line more is an attack more."""
NUMBERS: Final = ("1e999", "-1e999", "1e30", "1" + "0" * 20, "-1" + "0" * 30)
HALVES: Final = ("\ud800", "a\udfff", "\udc80é")


@pytest.mark.parametrize(("kind", "place"), list(itertools.product(KINDS, range(len(TEXTS)))))
def test_a_text_of_an_attacker_is_an_error_of_one_line(kind: Any, place: int) -> None:
    with pytest.raises(PlanError, match="the column") as refused:
        STATE.read(kind, TEXTS[place], "the column")
    assert len(str(refused.value)) < 1_000
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("number", NUMBERS)
def test_no_number_is_larger_than_what_binlane_writes(number: str) -> None:
    text = '{"seqno": 1, "source": {"file": "a.1", "offset": 4}, "gtid_set": "", "source_time": %s, "fingerprint": ""}'
    assert STATE.read(Watermark, text % "12345678901.5e-1", "the column").source_time == 1234567890.15
    with pytest.raises(PlanError, match="the column"):
        STATE.read(Watermark, text % number, "the column")


@pytest.mark.parametrize("half", HALVES)
def test_half_a_character_is_shown_by_every_answer(half: str) -> None:
    row = RowChange(table=half, kind="insert", columns=[half], before=[None, half], after=None)
    shown = half.encode("utf-8", "backslashreplace").decode()
    assert json.loads(row.model_dump_json())["columns"] == [shown]
    app = FastAPI()
    app.add_exception_handler(NotFound, api._not_found)

    @app.get("/row")
    def answered() -> RowChange:
        return row

    @app.get("/error")
    def failed() -> Answer:
        raise NotFound(half)

    client = TestClient(app)
    assert client.get("/row").status_code == 200
    assert client.get("/error").status_code == 404
