"""DROP TRIGGER IF EXISTS that has dropped nothing on a MySQL source: left out, so no trigger of the target goes."""

from __future__ import annotations

import pytest

from binlane.binlog.query import Query
from binlane.model import Flavor, SessionContext
from binlane.plan.transaction.filter import decide
from binlane.plan.transaction.own_state import NO_SUCH_TRIGGER
from binlane.shards.selection import Selection
from binlane.sql.parse.analyze import analyze

IF_EXISTS = "DROP TRIGGER IF EXISTS other.audit"
SESSION = SessionContext(database="app")


@pytest.mark.parametrize(
    ("flavor", "sql", "listed", "rule"),
    [
        (Flavor.MYSQL, IF_EXISTS, None, NO_SUCH_TRIGGER),
        (Flavor.MYSQL, "drop trigger /*!50032 IF EXISTS */ audit", None, NO_SUCH_TRIGGER),
        (Flavor.MYSQL, IF_EXISTS, ("other",), None),
        (Flavor.MYSQL, "DROP TRIGGER other.audit", ("other",), None),
        # an error would stop the channel: a source that has no such trigger logs no DROP TRIGGER without IF EXISTS
        (Flavor.MYSQL, "DROP TRIGGER other.audit", None, None),
        (Flavor.MYSQL, "DROP TABLE IF EXISTS other.t", None, None),
        # no list either way
        (Flavor.MARIADB, IF_EXISTS, None, None),
    ],
)
def test_it_is_left_out_where_the_log_shows_that_it_dropped_nothing(
    flavor: Flavor, sql: str, listed: tuple[str, ...] | None, rule: str | None
) -> None:
    facts, query = (
        analyze(sql, database="app", flavor=flavor),
        Query("app", sql.encode(), SESSION, updated_databases=listed),
    )
    assert decide(Selection(), query, facts, SESSION, flavor) == rule


def test_a_list_that_is_too_long_says_nothing() -> None:
    facts = analyze(IF_EXISTS, database="app", flavor=Flavor.MYSQL)
    query = Query("app", IF_EXISTS.encode(), SESSION, too_many_databases=True)
    assert decide(Selection(), query, facts, SESSION, Flavor.MYSQL) is None
