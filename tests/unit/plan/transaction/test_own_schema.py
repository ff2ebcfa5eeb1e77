"""What names the database of binlane's own state: left out and counted, or refused by name; rows of it are left out."""

from __future__ import annotations

import pytest

from binlane.errors import UnsupportedEventError
from binlane.model import FILTERED_SHARD, Flavor, SessionContext, TableKey
from binlane.plan.transaction.own_state import own_schema
from binlane.plan.window_plan import RuleCounts
from binlane.shards.selection import OWN, Selection, Undecided
from binlane.sql.parse.analyze import analyze
from tests.unit.plan.logs import alone, filtered, rows, settings

TAKEN = [
    ("INSERT INTO t VALUES (1)", "shop"),
    ("INSERT INTO shop.t VALUES (1)", "binlane"),
    ("INSERT INTO Binlane.t VALUES (1)", "shop"),
    ("SELECT binlane.x FROM shop.binlane", "shop"),
    ("CREATE TABLE binlane (binlane INT)", "shop"),
    ("CREATE DATABASE binlane_2", ""),
    ("CREATE USER binlane@'10.0.0.%'", ""),
    ("GRANT SELECT ON shop.* TO `binlane`@`%`", ""),
    ("GRANT SELECT ON shop.t TO binlane@localhost", "binlane"),
    # as docs/security.md says: the grantee gets these privileges on the state, too
    ("GRANT SELECT ON `bin%`.* TO u", ""),
    ("GRANT SELECT ON *.* TO u", "binlane"),
    ("CREATE USER u", "binlane"),
    ("CREATE DEFINER=`binlane`@`%` PROCEDURE shop.p() SELECT 'binlane.channels', binlane FROM t", "shop"),
    ("CREATE DEFINER=`binlane`@`%` SQL SECURITY DEFINER JSON RELATIONAL DUALITY VIEW v AS SELECT 1", "shop"),
    ("SAVEPOINT binlane", "binlane"),
    ("CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM shop.t", "binlane"),
]
LEFT_OUT = [
    ("DROP DATABASE binlane", ""),
    ("CREATE DATABASE IF NOT EXISTS `binlane`", ""),
    ("UPDATE binlane.channels SET watermark_seqno = 0", "shop"),
    ("UPDATE channels SET watermark_seqno = 0", "binlane"),
    ("DELETE c FROM binlane.channels c, binlane.windows w", "shop"),
    ("RENAME TABLE binlane.a TO binlane.b", "shop"),
    ("DROP TABLE a, binlane.b", "binlane"),
    ("CREATE TABLE binlane.t (a INT)", "shop"),
    ("ALTER TABLE t ADD b INT", "binlane"),
    ("CREATE VIEW binlane.v AS SELECT * FROM binlane.channels", "shop"),
    ("CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET @a = 1", "binlane"),
    ("CREATE PROCEDURE binlane.p() SELECT 1", "shop"),
    ("CALL binlane.p()", "shop"),
    ("TRUNCATE binlane.windows", ""),
    ("LOAD DATA INFILE 'x' INTO TABLE binlane.t", "shop"),
    ("GRANT SELECT ON binlane.* TO u", "shop"),
    ("GRANT SELECT ON `binlane`.channels TO u@localhost", ""),
    ("REVOKE SELECT ON * FROM u", "binlane"),
    ("GRANT SELECT ON channels TO u", "binlane"),
]
REFUSED = [
    ("RENAME TABLE binlane.a TO shop.a", "", "a statement over shop and binlane"),
    ("RENAME TABLE shop.a TO binlane.a", "", "a statement over shop and binlane"),
    ("DROP TABLE t, binlane.channels", "shop", "a statement over shop and binlane"),
    ("UPDATE shop.t, binlane.channels c SET t.a = 1, c.watermark_seqno = 0", "", "a statement over shop and binlane"),
    ("INSERT INTO shop.t SELECT * FROM binlane.channels", "", "a statement over shop and binlane"),
    ("CREATE TABLE shop.t (a INT REFERENCES binlane.channels (x))", "", "a statement over shop and binlane"),
    ("CREATE VIEW shop.v AS SELECT * FROM binlane.channels", "", "a statement over shop and binlane"),
    (
        "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW DELETE FROM binlane.channels",
        "shop",
        "a stored program whose body names binlane",
    ),
    (
        "CREATE FUNCTION f() RETURNS INT BEGIN UPDATE `binlane`.channels SET x = 1; RETURN 1; END",
        "shop",
        "a stored program whose body names binlane",
    ),
    (
        "CREATE EVENT shop.e ON SCHEDULE EVERY 1 DAY DO TRUNCATE binlane.windows",
        "",
        "a stored program whose body names binlane",
    ),
    ("CREATE THING binlane.t", "shop", "a statement that cannot be parsed"),
    ("CREATE THING t", "binlane", "a statement that cannot be parsed"),
    ("CREATE THING 'binlane", "shop", "a statement that cannot be parsed"),
]


def decided(
    sql: str, database: str, flavor: Flavor, *, folds: bool = False, listed: tuple[str, ...] = ()
) -> str | None:
    facts = analyze(sql, database=database, flavor=flavor)
    context = SessionContext(database=database)
    return own_schema(Selection(folds_names=folds), sql.encode(), facts, listed, context, flavor)


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(("sql", "database"), TAKEN)
def test_statements_that_do_not_name_binlanes_schema_are_applied(sql: str, database: str, flavor: Flavor) -> None:
    assert decided(sql, database, flavor) is None


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(("sql", "database"), LEFT_OUT)
def test_statements_that_name_only_binlanes_schema_are_left_out(sql: str, database: str, flavor: Flavor) -> None:
    assert decided(sql, database, flavor) == OWN
    assert decided(sql.replace("binlane", "BinLane"), database.upper(), flavor, folds=True) == OWN


@pytest.mark.parametrize("flavor", list(Flavor))
def test_a_body_that_names_it_by_a_letter_with_this_lower_case_is_refused(flavor: Flavor) -> None:
    body = "CREATE FUNCTION f() RETURNS INT BEGIN UPDATE b\u0130nlane.channels SET x = 1; RETURN 1; END"
    assert decided(body, "shop", flavor) is None
    with pytest.raises(Undecided, match="a stored program whose body names binlane"):
        decided(body, "shop", flavor, folds=True)


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(("sql", "database", "why"), REFUSED)
def test_statements_that_name_binlanes_schema_and_others_are_refused(
    sql: str, database: str, why: str, flavor: Flavor
) -> None:
    with pytest.raises(Undecided, match=f"^{why}"):
        decided(sql, database, flavor)


def test_the_databases_that_mysql_lists_decide() -> None:
    assert decided("DELETE FROM v", "binlane", Flavor.MYSQL, listed=("binlane",)) == OWN
    assert decided("GRANT SELECT ON binlane.* TO u", "", Flavor.MYSQL, listed=("mysql", "binlane")) == OWN
    assert decided("CREATE USER u", "binlane", Flavor.MYSQL, listed=("mysql", "binlane")) is None
    with pytest.raises(Undecided, match="over shop and binlane"):
        decided("DELETE FROM v", "shop", Flavor.MYSQL, listed=("binlane", "shop"))


@pytest.mark.parametrize("columnar", [False, True])
@pytest.mark.parametrize("changes", [{}, {"filters": Selection(exclude_databases=("x",)).to_values()}])
def test_rows_and_statements_of_it_are_counted_and_never_written(columnar: bool, changes: dict[str, object]) -> None:
    log = [rows(1, "a"), rows(2, "binlane"), rows(3, "a", "binlane"), alone(4, "DROP DATABASE binlane"), rows(5, "b")]
    done = filtered(log, settings(**changes), columnar=columnar)
    assert done.plan.filtered == {OWN: RuleCounts(2, 1)}
    assert {str(key): counts.written.total for key, counts in done.plan.tables.items()} == {
        "a.t": 2,
        "b.t": 1,
        "binlane.t": 0,
    }
    assert done.plan.tables[TableKey("binlane", "t")].filtered.total == 2
    assert done.plan.shards[FILTERED_SHARD].transactions == 2


def test_a_statement_over_it_and_another_is_refused_with_its_place() -> None:
    with pytest.raises(UnsupportedEventError, match=r"^binlog\.000007:\d+: QUERY: a statement over a and binlane"):
        filtered([alone(1, "DROP TABLE a.t, binlane.t")])
