"""Rows that statements write: expressions take 31 February for a date where the source's session did, and nowhere
else."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, cast

import pymysql
import pytest
from pymysql.constants import CLIENT

from binlane.apply.rows.conflict_overwrite import OverwritingRows
from binlane.apply.rows.sql import SqlRows
from binlane.apply.rows.table_guard import TableGuard
from binlane.errors import DriftError
from binlane.model import Flavor, Item, ItemKind, RowCounts, SessionContext, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.schema.model import Column, Generated, Key, KeyColumn, Table
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
        self.mode, self.modes, self.set = "", list[str](), 0
        self.cursor = SimpleNamespace(warning_count=0 if warning is None else 1)
        self.warning = warning

    def execute(self, sql: str) -> int:
        if "sql_mode = '" in sql:
            self.mode, self.set = sql.split("sql_mode = '")[1].split("'")[0], self.set + 1
        if sql.startswith(INSERT):
            self.modes.append(self.mode)
        return 1

    def rows(self, sql: str) -> list[tuple[str, int, str]]:
        return [("Warning", self.warning, "Incorrect date value")] if sql == "SHOW WARNINGS" and self.warning else []


def written(mode: int | None, expression: str, date: int, warning: int | None = None) -> str:
    """The sql_mode in which a row with a date is inserted; ``mode``: its session's, if the log has it."""
    session = Session(warning)
    write(SqlRows, session, mode, expression, date)
    (used,) = session.modes
    return used


def write(rows: Callable[..., SqlRows], session: Session, mode: int | None, expression: str, *dates: int) -> None:
    """Insert rows with these dates, an event each."""
    columns = (
        Column("id", 1, "int"), Column("made", 2, "date"),
        Column("g", 3, "int", generated=Generated.STORED, expression=expression),
    )  # fmt: skip
    table = Table(KEY, "InnoDB", columns, (Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("id"),)),))
    guard = TableGuard(Alterations(), Flavor.MYSQL, lambda _: table)
    body = b"\x04shop\0\x01t\0\x03\x03\x0a\x03\0\0"
    payload = event(19, 1, 0, body)
    for number, date in enumerate(dates, 1):
        row = b"\0" + (1).to_bytes(4, "little") + date.to_bytes(3, "little") + (2).to_bytes(4, "little")
        payload += event(30, 1, int(number == len(dates)), b"\x02\0\x03\xff" + row)
    context = None if mode is None else SessionContext(sql_mode=mode)
    item = Item(ItemKind.ROWS, payload, RowCounts(len(dates)), context)
    rows(cast(Any, session), guard).write(iter((item,)), 1)


USUAL, LAST_OF_FEBRUARY, NO_DAY = (2020 << 9 | month << 5 | day for month, day in ((2, 3), (2, 29), (2, 31)))
OF_YEAR_0 = 2 << 5 | 29


@pytest.mark.parametrize(
    ("mode", "expression", "date", "is_allowed"),
    [
        pytest.param(None, "(`id` + 1)", USUAL, True, id="no-expression-sees-dates"),
        pytest.param(None, "year(`made`)", USUAL, False, id="the-log-has-no-mode"),
        pytest.param(0, "year(`made`)", LAST_OF_FEBRUARY, False, id="a-usual-session"),
        pytest.param(ALLOWED, "year(`made`)", USUAL, True, id="a-session-that-allows-them"),
        pytest.param(None, "year(`made`)", NO_DAY, True, id="a-row-that-has-one"),
        pytest.param(0, "year(`made`)", OF_YEAR_0, True, id="year-0-is-no-leap-year"),
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


class EventByEvent(SqlRows):
    many_rows = False


def test_the_mode_is_set_where_it_changes() -> None:
    session = Session(None)
    write(EventByEvent, session, 0, "year(`made`)", USUAL, LAST_OF_FEBRUARY, NO_DAY, NO_DAY, USUAL)

    assert ["ALLOW_INVALID_DATES" in mode for mode in session.modes] == [False, False, True, True, False]
    assert session.set == 5  # with those that begin and end the writing


def test_a_row_in_the_way_is_looked_for_where_each_date_is_one() -> None:
    class Taken(Session):
        def execute(self, sql: str) -> int:
            super().execute(sql)
            if len(self.modes) == 1 and sql.startswith(INSERT):
                raise pymysql.err.IntegrityError(1062, "Duplicate entry")
            return 1

        def rows(self, sql: str) -> list[tuple[str, int, str]]:
            looked.append(self.mode)
            return []

    looked = list[str]()
    write(partial(OverwritingRows, note=lambda _: None), Taken(None), 0, "year(`made`)", USUAL)
    assert looked
    assert all("ALLOW_INVALID_DATES" in mode for mode in looked)
