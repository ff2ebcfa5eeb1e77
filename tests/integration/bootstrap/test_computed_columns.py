"""Stored generated columns, which each session of the source computes in its own mode, and the target in one."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from tests.integration.window.conftest import CHANNEL, Channel, run_on

BOTH = tuple(Flavor)
MYSQL = (Flavor.MYSQL,)
DATES = "s VARCHAR(20), g DATE AS (CAST(s AS DATE)) STORED"
PADDED = "s CHAR(5), g INT AS (CHAR_LENGTH(s)) STORED"
CUT = "s DOUBLE, g TIME(1) AS (s) STORED"
SHOWN = "s TIMESTAMP NULL, g VARCHAR(40) AS (CAST(s AS CHAR)) STORED"
SMALL = "s VARCHAR(20), g TINYINT AS (s) STORED"


def filled(channel: Channel, columns: str, *rows: tuple[str, str], key: str = "id INT PRIMARY KEY, ") -> None:
    """A table on the source; each row with the setting of the session that writes it."""
    run_on(channel.source, "CREATE DATABASE d", f"CREATE TABLE d.t ({key}{columns})")
    names = "id, s" if key else "s"
    for number, (setting, value) in enumerate(rows):
        values = f"{number}, {value}" if key else value
        run_on(channel.source, f"SET SESSION {setting}", f"INSERT INTO d.t ({names}) VALUES ({values})")


def copy(channel: Channel) -> int:
    return channel.cli("bootstrap", CHANNEL, "--lock-seconds", "60", "--chunk-rows", "1")


@pytest.mark.parametrize(
    ("flavors", "columns", "rows", "usual"),
    [
        pytest.param(BOTH, DATES, (("sql_mode = ''", "'2020-02-31'"), ("sql_mode = ''", "'2020-2-3'")), "", id="dates"),
        pytest.param(BOTH, DATES, (("sql_mode = 'ALLOW_INVALID_DATES'", "'2020-02-31'"),), "", id="invalid dates"),
        pytest.param(BOTH, SMALL, (("sql_mode = ''", "'999'"), ("sql_mode = ''", "'7'")), "", id="out of range"),
        pytest.param(
            MYSQL, PADDED, (("sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'", "'ab'"), ("sql_mode = ''", "'cd'")),
            "PAD_CHAR_TO_FULL_LENGTH", id="padded",
        ),
        pytest.param(
            MYSQL, CUT, (("sql_mode = 'TIME_TRUNCATE_FRACTIONAL'", "1.55"), ("sql_mode = ''", "1.55")),
            "TIME_TRUNCATE_FRACTIONAL,STRICT_TRANS_TABLES", id="cut",
        ),
    ],
)  # fmt: skip
def test_values_are_those_of_the_sessions_that_have_computed_them(
    either: Channel, flavors: tuple[Flavor, ...], columns: str, rows: tuple[tuple[str, str], ...], usual: str
) -> None:
    if either.source.flavor not in flavors:
        return  # MariaDB refuses such a column, or has no such mode
    filled(either, columns, *rows)
    ((before,),) = either.source.query("SELECT @@GLOBAL.sql_mode")
    either.source.query(f"SET GLOBAL sql_mode = '{usual}'")
    try:
        assert copy(either) == 0
    finally:
        either.source.query(f"SET GLOBAL sql_mode = '{before}'")
    either.assert_equal()


@pytest.mark.parametrize("key", ["id INT PRIMARY KEY, ", ""], ids=["keyed", "without a key"])
@pytest.mark.parametrize(
    ("flavors", "columns", "row"),
    [
        pytest.param(BOTH, SHOWN, ("time_zone = '+05:00'", "'2020-01-01 12:00:00'"), id="time zone"),
        pytest.param(MYSQL, PADDED, ("sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'", "'ab'"), id="padded"),
    ],
)
def test_values_that_the_target_does_not_compute_are_named(
    either: Channel,
    capsys: pytest.CaptureFixture[str],
    flavors: tuple[Flavor, ...],
    columns: str,
    row: tuple[str, str],
    key: str,
) -> None:
    if either.source.flavor not in flavors:
        return  # MariaDB refuses such a column, or has no such mode
    filled(either, columns, row, key=key)
    assert copy(either) == 1
    assert "d.t: column g: the target computes other values than the source has stored" in capsys.readouterr().err
    # as the message says
    either.source.query("ALTER TABLE d.t DROP COLUMN g")
    run_on(either.source, "SET time_zone = '+00:00'", f"ALTER TABLE d.t ADD COLUMN {columns.split(', ', 1)[1]}")
    assert copy(either) == 0
    either.assert_equal()
