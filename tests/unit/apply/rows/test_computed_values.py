"""Rows whose columns the target computes: in the modes of their sessions, or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest
from pymysql.constants import CLIENT

from binlane.apply.rows.binlog import BinlogRows
from binlane.apply.rows.computed_values import computed_otherwise
from binlane.apply.rows.conflict_detect import RowComparison
from binlane.apply.rows.cross_family import FamilyRows
from binlane.apply.rows.sql import SqlRows
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.context import ContextSetter
from binlane.errors import TableMismatchError
from binlane.model import Flavor, Item, ItemKind, RowCounts, SessionContext, TableKey
from binlane.schema.model import Column, Generated, Table
from binlane.sessions.pins import USUAL_MODE
from tests.unit.binlog.test_rows_payload import rows, table_map

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
        self.zone, self.mode, self.locale = "DEFAULT", "usual", "'en_US'"
        self.at_events = list[tuple[str, str]]()
        self.sent = list[str]()

    def execute(self, sql: str) -> int:
        self.sent.append(sql)
        for part in sql.removeprefix("SET SESSION ").split(", "):
            name, _, value = part.partition(" = ")
            if name == "time_zone":
                self.zone = value
            elif name == "sql_mode":
                self.mode = value
            elif name == "lc_time_names":
                self.locale = value
        return 0


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
    # the comparison's two and one for the rows of each item, and one behind them all
    assert len(session.sent) == 3 * 2 + 1


def test_rows_of_another_session_take_back_what_they_do_not_have_in_the_same_statement() -> None:
    session = Session()
    setter = ContextSetter(cast(Any, session))
    usual = f"'{USUAL_MODE[MYSQL]}'"
    setter.enter_rows(SessionContext(sql_mode=CUT, time_zone="+09:00", lc_time_names=1))
    assert (session.zone, "TIME_TRUNCATE_FRACTIONAL" in session.mode, session.locale) == ("'+09:00'", True, "1")
    setter.enter_rows(SessionContext(sql_mode=CUT, time_zone="+01:00"))
    assert (session.zone, "TIME_TRUNCATE_FRACTIONAL" in session.mode, session.locale) == ("'+01:00'", True, "'en_US'")
    setter.enter_rows(None)
    assert (session.zone, session.mode, session.locale) == ("DEFAULT", usual, "'en_US'")
    assert len(session.sent) == 3
    setter.enter_rows(None)
    setter.leave()
    assert len(session.sent) == 3


def test_rows_of_the_other_family_keep_their_session_where_statements_write_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = SimpleNamespace(flavor=MARIADB, connection=SimpleNamespace(client_flag=CLIENT.FOUND_ROWS))
    writer = FamilyRows(cast(Any, session), cast(Any, SimpleNamespace(source=MYSQL)))
    written = list[Item]()
    monkeypatch.setattr("binlane.apply.rows.cross_family.users_tables", lambda *_: None)
    monkeypatch.setattr(FamilyRows, "_is_by_sql", lambda _, logged: logged.table == "t")

    def write(_: object, items: Iterable[Item], __: object) -> RowCounts:
        written.extend(items)
        return RowCounts()

    for kind in (SqlRows, BinlogRows):
        monkeypatch.setattr(kind, "write", write)

    context = SessionContext(sql_mode=0, time_zone="+09:00")
    payload = b"".join(table_map(n, name) + rows(n) for n, name in enumerate((b"t", b"u", b"t")))
    writer.write(iter((Item(ItemKind.ROWS, payload, RowCounts(inserts=3), context),)), 1)

    assert [(item.rows, item.context) for item in written] == [(RowCounts(inserts=1), context)] * 3


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


@pytest.mark.parametrize(("source", "way_on"), [(MYSQL, 'apply.writer = "binlog"'), (MARIADB, "binlane skip")])
def test_the_way_on_of_rows_that_no_statement_can_write_leads_out(source: Flavor, way_on: str) -> None:
    """Between the families statements write some columns under either writer."""
    writer = SqlRows(cast(Any, Session()), cast(Any, SimpleNamespace(source=source, allow_unsafe=False)))
    table = cast(Any, SimpleNamespace(target=TIME))
    with pytest.raises(TableMismatchError, match=r"other values than the source has: .*TIME_TRUNC") as refused:
        writer._require_same_values(table, SessionContext(sql_mode=CUT, time_zone="+00:00"), 7)
    ways = {each for each in ('apply.writer = "binlog"', "binlane skip") if each in str(refused.value)}
    assert ways == {way_on}
