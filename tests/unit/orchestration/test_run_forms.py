"""What a window is asked for, by a run's form or a command, and how what is wrong is said."""

import datetime as dt
import re
from typing import Any

import pytest

from binlane.choices import Compressed, PlanEngine, VerifyScope
from binlane.errors import ConfigError
from binlane.orchestration.request import WindowRequest, request_of
from binlane.orchestration.run_forms import BootstrapForm, RunForm

NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2026, 1, 31, tzinfo=dt.UTC)
GTIDS = ["0-1-99", "3e11fa47-71ca-11e1-9e33-c80aa9429562:23", "3e11fa47-71ca-11e1-9e33-c80aa9429562:tag:23"]
REQUESTS = [
    pytest.param(None, None, (None, None, True), id="by hand: now"),
    pytest.param(None, NOON, (NOON, None, False), id="the interval's end"),
    pytest.param("now", NOON, (None, None, True), id="now wins over the interval"),
    pytest.param("2026-01-31T12:00:00Z", None, (NOON, None, False), id="a time"),
    pytest.param("2026-01-31 13:00:00+01:00", None, (NOON, None, False), id="a time with a time zone"),
    pytest.param("2026-01-31T12:00:00", None, (NOON, None, False), id="no zone is UTC"),
    pytest.param("2026-01-31", None, (MIDNIGHT, None, False), id="a date is no GTID"),
    pytest.param("2026-12-31", None, (MIDNIGHT + dt.timedelta(334), None, False), id="a date without zeros"),
    pytest.param("20260131T12Z", None, (NOON, None, False), id="a time without separators"),
    pytest.param("2026-1-31", None, (None, "2026-1-31", False), id="a GTID like a date"),
    pytest.param(" 0-1-99 ", NOON, (None, "0-1-99", False), id="spaces from a form"),
    pytest.param("  ", None, (None, None, True), id="an empty field is no value"),
    *(pytest.param(gtid, NOON, (None, gtid, False), id=gtid) for gtid in GTIDS),
]


@pytest.mark.parametrize(("until", "interval_end", "expected"), REQUESTS)
def test_a_request_ends_at_exactly_one_thing(
    until: str | None, interval_end: dt.datetime | None, expected: object
) -> None:
    asked = request_of(RunForm.of({"until": until}), interval_end)
    assert (asked.until_time, asked.until_gtid, asked.until_now) == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"until": "yesterday"}, 'until: expected "now", a time such as'),
        ({"until": "9999-12-31T23:59:59-10:00"}, 'until: expected "now", a time such as'),
        ({"until": "0001-01-01T00:00+10:00"}, 'until: expected "now", a time such as'),
        ({"lanes": 0}, "lanes: expected an integer 1..256, got 0"),
        ({"lanes": 257}, "lanes: expected an integer 1..256, got 257"),
        ({"block_transactions": 0}, "block_transactions: expected an integer 1..1,000,000, got 0"),
        ({"interval_end": dt.datetime(2026, 1, 1)}, "interval_end: expected a time with a time zone"),
    ],
)
def test_a_request_that_cannot_be_meant_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match="^" + re.escape(message)):
        WindowRequest(**values)


def test_the_forms_values_reach_the_request() -> None:
    params = {"until": "now", "dry_run": True, "lanes": 2, "block_size": 50}
    assert request_of(RunForm.of(params), NOON) == WindowRequest("now", NOON, True, 2, 50)


@pytest.mark.parametrize(
    ("form", "params", "message"),
    [
        (RunForm, {"lanes": "2"}, "lanes: expected an integer 1..256, got '2'; trigger the run again"),
        (RunForm, {"block_size": 0}, "block_size: expected an integer 1..1,000,000, got 0; trigger"),
        (RunForm, {"verify": "rows"}, "verify: expected one of none, window, slice, full, got 'rows'; trigger"),
        (RunForm, {"verify": None}, "verify: expected one of none, window, slice, full, got None; trigger"),
        (RunForm, {"dry_run": "yes"}, "dry_run: expected true or false, got 'yes'; trigger"),
        (RunForm, {"until": 7}, "until: expected text, got 7; trigger"),
        (
            RunForm,
            {"verify": "window", "verify_accounts": True},
            "verify_accounts: expected verify to be 'full' or 'slice'",
        ),
        (BootstrapForm, {"databases": " "}, "databases: expected text, got ' '; trigger"),
        (BootstrapForm, {"jobs": 65}, "jobs: expected an integer 1..64, got 65; trigger"),
    ],
)
def test_a_value_that_a_form_does_not_take_is_refused_by_its_field(
    form: type[RunForm | BootstrapForm], params: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match="^" + re.escape(message)):
        form.of(params)


def test_a_form_without_values_has_its_defaults() -> None:
    assert RunForm.of({}) == RunForm(
        None, None, False, False, VerifyScope.NONE, False, False, None, None, PlanEngine.SPARK
    )
    assert BootstrapForm.of({}) == BootstrapForm("*", False, False, 4, 20_000, 30, 0, 0, 0, 0, Compressed.NONE)
