"""Generated columns are named where rows are not written in the modes of their sessions, and only there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binlane.choices import OnConflict
from binlane.model import Flavor, RowCounts, TableKey
from binlane.plan.window_plan import TableCounts
from binlane.precheck.situation.situation import Situation
from binlane.schema.model import Column, Generated, Table
from binlane.sql.requirements import COMPUTED_MODE, Requirement
from tests.unit.precheck.situations import PLAN, applying, said, schema, situation, target_of

KEY = TableKey("shop", "t")
CUT, LESS, DATES = "TIME_TRUNCATE_FRACTIONAL", "NO_UNSIGNED_SUBTRACTION", "ALLOW_INVALID_DATES"
TABLE = Table(
    KEY,
    "InnoDB",
    (
        Column("id", 1, "int", unsigned=True),
        Column("computed", 2, "time", generated=Generated.STORED, expression="(`id` - 1)"),
    ),
)
LOGGED = {CUT: 5, "": 7}
"""The first seqno by the modes of a session."""


def window(logged: dict[str, int], own: str = "", flavor: Flavor = Flavor.MYSQL, **changes: Any) -> Situation:
    requirements = {Requirement(COMPUTED_MODE, "session", names): seqno for names, seqno in logged.items()}
    counts = {KEY: TableCounts(read=RowCounts(1), written=RowCounts(1))}
    plan = replace(PLAN, tables=counts, requirements=requirements)
    target = target_of(flavor, variables={"sql_mode": own})
    return situation(target, plan, schema(TABLE, flavor=flavor), **changes)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        pytest.param(window(LOGGED), None, id="row-events"),
        pytest.param(window(LOGGED, own=CUT), None, id="row-events-whatever-the-targets-mode"),
        pytest.param(
            window(LOGGED, channel=applying(writer="sql"), by_sql=[KEY]),
            f"found sql_mode {CUT} in a transaction of seqno 5;",
            id="sql",
        ),
        pytest.param(
            window({CUT: 5}, own=CUT, channel=applying(writer="sql"), by_sql=[KEY]),
            f"found sql_mode {CUT} in a transaction of seqno 5;",
            id="sql-whatever-the-targets-mode",
        ),
        # the writer takes it from the sessions
        pytest.param(window({DATES: 5, "": 7}, channel=applying(writer="sql"), by_sql=[KEY]), None, id="sql-dates"),
        pytest.param(
            window({DATES: 5}, channel=applying(on_conflict=OnConflict.OVERWRITE)), f"{DATES} in", id="compared-dates"
        ),
        pytest.param(window({DATES: 5}, channel=applying(writer="site.Rows")), f"{DATES} in", id="a-sites-dates"),
        pytest.param(
            window({"": 7}, own=CUT, channel=applying(writer="sql"), by_sql=[KEY]), None, id="the-targets-mode-alone"
        ),
        pytest.param(
            window({"NO_ZERO_DATE": 5}, channel=applying(writer="sql"), by_sql=[KEY]), None, id="about-zero-dates-alone"
        ),
        pytest.param(window(LOGGED, channel=applying(writer="auto"), by_sql=[KEY]), f"{CUT} in", id="auto-is-sql"),
        pytest.param(window(LOGGED, channel=applying(writer="auto")), None, id="auto-is-row-events"),
        pytest.param(window(LOGGED, channel=applying(writer="site.Rows")), f"{CUT} in", id="a-sites-writer"),
        pytest.param(window(LOGGED, channel=applying(on_conflict=OnConflict.OVERWRITE)), f"{CUT} in", id="overwritten"),
        pytest.param(window(LOGGED, flavor=Flavor.MARIADB), f"{CUT} in", id="another-family"),
        pytest.param(window({LESS: 5}), f"{LESS} in a transaction of seqno 5;", id="decided-at-opening"),
        pytest.param(window({CUT: 5}, own=LESS), f"{LESS} on the target, and a transaction of seqno 5", id="on-target"),
    ],
)
def test_modes_are_named_where_lanes_do_not_keep_to_them(made: Situation, found: str | None) -> None:
    texts = said(made, "generated-columns")
    assert [found is not None and found in text for text in texts] == ([] if found is None else [True])
