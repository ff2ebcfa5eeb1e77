"""What a window changes in each database: the sum over segments."""

from __future__ import annotations

import pytest

from binlane.binlog.query import Query
from binlane.errors import PlanError
from binlane.model import FILTERED_SHARD, Flavor, SessionContext
from binlane.plan.database_activity import DatabaseActivity, WindowActivity
from binlane.plan.row_accounting import Tally
from binlane.plan.segment.map import MapSummary
from binlane.plan.transaction.parts import StatementPart
from binlane.plan.window.mapped import MappedWindow
from binlane.sql.parse.analyze import analyze

PARTS = (
    {"a": DatabaseActivity(1, 2, 10, 5, 5.5)},
    {"a": DatabaseActivity(2, 4, 4, 8, 8.5), FILTERED_SHARD: DatabaseActivity(0, 1, 1, 6, 6.5)},
    {"a": DatabaseActivity(None, 1, 3, 9, 9.5), "#b": DatabaseActivity(0, 1, 1, 7, 7.5)},
)


def whole() -> WindowActivity:
    return MappedWindow.of(MapSummary({}, Tally(), WindowActivity(dict(part))) for part in PARTS).activity


def test_the_last_transaction_counts_and_the_lane_of_the_last_that_has_one() -> None:
    assert whole().databases == {
        "a": DatabaseActivity(2, 7, 17, 9, 9.5),
        "#b": DatabaseActivity(0, 1, 1, 7, 7.5),
    }


def test_activity_is_read_as_it_was_written() -> None:
    found = whole()
    assert WindowActivity.from_json(found.to_json(), "here") == found
    with pytest.raises(PlanError, match="here"):
        WindowActivity.from_json(b"[]", "here")


def test_names_with_capital_letters_are_known_as_statements_spell_them() -> None:
    session, tally = SessionContext(database="crm"), Tally()
    for sql in ("INSERT INTO Orders SELECT * FROM loads JOIN Old.t USING (id)", "TRUNCATE Kept", "ANALYZE TABLE plain"):
        facts = analyze(sql, database="crm", flavor=Flavor.MARIADB)
        tally.add(
            "crm",
            0,
            [StatementPart(sql.encode(), session, facts, Query("crm", sql.encode(), session))],
            5,
            Flavor.MARIADB,
        )
    both = Tally()
    both.merge(tally)
    assert sorted(map(str, both.spelled)) == ["Old.t", "crm.Kept", "crm.Orders"]


@pytest.mark.parametrize(
    "sql",
    [
        "DROP DATABASE IF EXISTS crm", "CREATE OR REPLACE DATABASE crm", "ALTER DATABASE crm COLLATE utf8mb4_bin",
        "DROP PROCEDURE crm.p", "CREATE EVENT crm.e ON SCHEDULE EVERY 1 DAY DO SELECT 1", "DROP TRIGGER crm.tr",
        "DROP TABLE crm.t",
    ],
)  # fmt: skip
def test_a_ddl_changes_its_database_also_without_a_table(sql: str) -> None:
    session = SessionContext()
    facts = analyze(sql, database=None, flavor=Flavor.MARIADB)
    part = StatementPart(sql.encode(), session, facts, Query("", sql.encode(), session))
    activity, tally = WindowActivity(), Tally()
    activity.add_transaction("crm", 0, [part], 5, 0.0)
    tally.add("crm", 0, [part], 5, Flavor.MARIADB)
    assert activity.databases == {"crm": DatabaseActivity(0, 1, 0, 5, 0.0)}
    assert tally.defined_in == {"crm"}
