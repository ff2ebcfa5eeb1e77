"""Rows whose columns the target computes: in the modes of their sessions, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from binlane.apply.rows.computed_values import computed_otherwise
from binlane.apply.rows.conflict_detect import RowComparison
from binlane.apply.rows.sql import SqlRows
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.context import ContextSetter
from binlane.model import Flavor, Item, ItemKind, RowCounts, SessionContext, TableKey
from binlane.schema.model import Column, Generated, Table

KEY: Final = TableKey("shop", "t")
CUT: Final = 1 << 32
DATES: Final = 1 << 25
"""ALLOW_INVALID_DATES, which statements keep."""
MYSQL, MARIADB = Flavor.MYSQL, Flavor.MARIADB


class Session:
    """A target that notes what has been set when events arrive."""

    flavor = MYSQL
    connection = SimpleNamespace(client_flag=2)

    def __init__(self) -> None:
        self.zone, self.mode = "DEFAULT", "usual"
        self.at_events = list[tuple[str, str]]()

    def execute(self, sql: str) -> int:
        for part in sql.removeprefix("SET SESSION ").split(", "):
            name, _, value = part.partition(" = ")
            if name == "time_zone":
                self.zone = value
            elif name == "sql_mode":
                self.mode = value
        return 0

    def value(self, sql: str) -> str:
        assert sql == "SELECT @@session.sql_mode"
        return self.mode


def test_row_events_have_the_modes_of_their_session_behind_a_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session()

    class Rows:
        def write(self, items: Iterator[Item], _: int) -> RowCounts:
            session.at_events += [(session.zone, session.mode) for _ in items]
            return RowCounts(1)

    context = SessionContext(sql_mode=CUT, time_zone="+09:00")
    writer = BlockWriter(cast(Any, session), ContextSetter(cast(Any, session))).with_rows(cast(Any, Rows()))
    sql = SqlRows.__new__(SqlRows)
    sql.session, sql.guard, sql._held = cast(Any, session), None, set()
    writer.comparison = RowComparison(sql, note=lambda _: None, transactions=lambda _: iter(()))
    monkeypatch.setattr(RowComparison, "_compare", lambda *_: None)
    monkeypatch.setattr("binlane.apply.rows.conflict_detect.users_tables", lambda *_: None)

    writer.write([Item(ItemKind.ROWS, b"", RowCounts(1), context)] * 2, 1)

    assert [zone for zone, _ in session.at_events] == ["'+09:00'"] * 2
    assert all("TIME_TRUNCATE_FRACTIONAL" in mode for _, mode in session.at_events)
    assert session.zone == "DEFAULT"


def table(kind: str, expression: str, generated: Generated | None = Generated.STORED) -> Table:
    columns = (
        Column("id", 1, "int", nullable=False),
        Column("made", 2, kind),
        Column("g", 3, "varchar", generated=generated, expression=expression),
    )
    return Table(KEY, "InnoDB", columns, ())


AT: Final = table("timestamp", "cast(`made` as char)")
TIME: Final = table("double", "cast(`made` as time)")
JSON: Final = table("json", "json_keys(`made`)")
PLAIN: Final = table("int", "`made` + 1")


@pytest.mark.parametrize(
    ("of", "context", "source", "target", "found"),
    [
        pytest.param(AT, SessionContext(sql_mode=0, time_zone="+09:00"), MYSQL, MYSQL, "time zone +09:00", id="zone"),
        pytest.param(AT, SessionContext(sql_mode=0), MYSQL, MYSQL, "no time zone in the log", id="no-zone"),
        pytest.param(AT, SessionContext(sql_mode=0, time_zone="+00:00"), MYSQL, MYSQL, None, id="utc"),
        pytest.param(AT, None, MYSQL, MYSQL, None, id="rows-that-see-nothing"),
        pytest.param(AT, None, MARIADB, MARIADB, "no time zone in the log", id="mariadb-logs-none"),
        pytest.param(TIME, SessionContext(sql_mode=CUT, time_zone="+00:00"), MYSQL, MYSQL, "TIME_TRUNC", id="mode"),
        pytest.param(TIME, SessionContext(sql_mode=DATES, time_zone="+00:00"), MYSQL, MYSQL, None, id="kept-mode"),
        pytest.param(TIME, None, MARIADB, MARIADB, None, id="without-zone"),
        pytest.param(PLAIN, SessionContext(sql_mode=CUT, time_zone="+09:00"), MYSQL, MYSQL, None, id="sees-nothing"),
        pytest.param(JSON, None, MYSQL, MARIADB, "JSON_KEYS", id="other-family"),
        pytest.param(JSON, None, MYSQL, MYSQL, None, id="same-family"),
    ],
)
def test_statements_write_no_row_that_they_would_compute_otherwise(
    of: Table, context: SessionContext | None, source: Flavor, target: Flavor, found: str | None
) -> None:
    said = computed_otherwise(of, context, source, target, allow_unsafe=False)
    assert (found is None and said is None) or (found is not None and found in str(said))


def test_a_channel_that_allows_it_takes_other_zones_and_no_other_modes() -> None:
    zone = SessionContext(sql_mode=0, time_zone="+09:00")
    assert computed_otherwise(AT, zone, MYSQL, MYSQL, allow_unsafe=True) is None
    assert computed_otherwise(TIME, SessionContext(sql_mode=CUT), MYSQL, MYSQL, allow_unsafe=True)
