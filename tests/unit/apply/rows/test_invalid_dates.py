"""Rows that statements write: expressions take 31 February for a date where the source's session did, and nowhere
else."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from pymysql.constants import CLIENT

from binlane.apply.rows.sql import SqlRows
from binlane.apply.rows.table_guard import TableGuard
from binlane.errors import DriftError
from binlane.model import Flavor, Item, ItemKind, RowCounts, SessionContext, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.schema.model import Column, Generated, Table
from tests.unit.binlog.test_rows_payload import event

KEY: Final = TableKey("shop", "t")
ALLOWED: Final = 1 << 25
INSERT: Final = "INSERT INTO"
NO_DATE, OUT_OF_RANGE = 1292, 1264


class Session:
    """A target that takes each statement, with this warning."""

    flavor = Flavor.MYSQL
    version = (9, 7, 0)
    max_allowed_packet = 1 << 24
    connection = SimpleNamespace(client_flag=CLIENT.FOUND_ROWS)

    def __init__(self, warning: int | None) -> None:
        self.mode, self.modes = "", list[str]()
        self.cursor = SimpleNamespace(warning_count=0 if warning is None else 1)
        self.warning = warning

    def execute(self, sql: str) -> int:
        if "sql_mode = '" in sql:
            self.mode = sql.split("sql_mode = '")[1].split("'")[0]
        if sql.startswith(INSERT):
            self.modes.append(self.mode)
        return 1

    def rows(self, sql: str) -> list[tuple[str, int, str]]:
        return [("Warning", self.warning, "Incorrect date value")] if sql == "SHOW WARNINGS" and self.warning else []


def written(mode: int | None, expression: str, date: int, warning: int | None = None) -> str:
    """The sql_mode in which a row with a date is inserted; ``mode``: its session's, if the log has it."""
    columns = (
        Column("id", 1, "int"), Column("made", 2, "date"),
        Column("g", 3, "int", generated=Generated.STORED, expression=expression),
    )  # fmt: skip
    guard = TableGuard(Alterations(), Flavor.MYSQL, lambda _: Table(KEY, "InnoDB", columns))
    body = b"\x04shop\0\x01t\0\x03\x03\x0a\x03\0\0"
    row = b"\0" + (1).to_bytes(4, "little") + date.to_bytes(3, "little") + (2).to_bytes(4, "little")
    payload = event(19, 1, 0, body) + event(30, 1, 1, b"\x02\0\x03\xff" + row)
    context = None if mode is None else SessionContext(sql_mode=mode)
    session = Session(warning)
    SqlRows(cast(Any, session), guard).write(iter((Item(ItemKind.ROWS, payload, RowCounts(1), context),)), 1)
    (used,) = session.modes
    return used


USUAL, LAST_OF_FEBRUARY, NO_DAY = (2020 << 9 | month << 5 | day for month, day in ((2, 3), (2, 29), (2, 31)))


@pytest.mark.parametrize(
    ("mode", "expression", "date", "is_allowed"),
    [
        pytest.param(None, "(`id` + 1)", USUAL, True, id="no-expression-sees-dates"),
        pytest.param(None, "year(`made`)", USUAL, False, id="the-log-has-no-mode"),
        pytest.param(0, "year(`made`)", LAST_OF_FEBRUARY, False, id="a-usual-session"),
        pytest.param(ALLOWED, "year(`made`)", USUAL, True, id="a-session-that-allows-them"),
        pytest.param(None, "year(`made`)", NO_DAY, True, id="a-row-that-has-one"),
    ],
)
def test_an_expression_takes_an_invalid_date_where_the_session_did(
    mode: int | None, expression: str, date: int, is_allowed: bool
) -> None:
    assert ("ALLOW_INVALID_DATES" in written(mode, expression, date)) is is_allowed


def test_a_source_that_is_not_strict_has_computed_null_for_such_a_date() -> None:
    for mode in (0, ALLOWED):
        assert "STRICT" not in written(mode, "year(`made`)", USUAL, NO_DATE)
    with pytest.raises(DriftError, match="the target warned"):
        written(0, "year(`made`)", USUAL, OUT_OF_RANGE)
    with pytest.raises(DriftError, match="the target warned"):
        written(0, "(`id` + 1)", USUAL, NO_DATE)
