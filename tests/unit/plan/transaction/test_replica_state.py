"""What alters the tables of a MariaDB server's own place as a replica: left out and counted, unless it names others."""

from __future__ import annotations

import pytest

from binlane.errors import UnsupportedEventError
from binlane.model import Flavor
from binlane.plan.transaction.own_state import REPLICA_STATE, replica_state
from binlane.plan.window_plan import RuleCounts
from binlane.schema.letter_case import ANY_CASE, AS_TYPED
from binlane.sql.parse.analyze import analyze
from tests.unit.plan.logs import alone, filtered, rows

LEFT_OUT = [
    "ALTER TABLE mysql.gtid_slave_pos ENGINE=InnoDB",
    "alter table `MySQL`.`GTID_slave_pos` engine = Aria",
    "CREATE TABLE mysql.gtid_slave_pos_innodb LIKE mysql.gtid_slave_pos",
    "DROP TABLE mysql.gtid_slave_pos_InnoDB",
    "RENAME TABLE mysql.gtid_slave_pos TO mysql.gtid_slave_pos_old",
    "TRUNCATE mysql.gtid_slave_pos",
    "DELETE FROM mysql.gtid_slave_pos WHERE domain_id = 4",
]
TAKEN = [
    "ALTER TABLE mysql.user ENGINE=InnoDB",
    "ALTER TABLE mysql.gtid_slave_position ENGINE=InnoDB",
    "ALTER TABLE shop.gtid_slave_pos ENGINE=InnoDB",
    "DROP TABLE mysql.gtid_slave_pos, shop.t",
    "RENAME TABLE mysql.gtid_slave_pos TO mysql.user",
    "CREATE TABLE mysql.gtid_slave_pos_x AS SELECT * FROM shop.t",
    "INSERT INTO mysql.gtid_slave_pos SELECT shop.f()",
    "CREATE DATABASE mysql",
    "GRANT SELECT ON mysql.gtid_slave_pos TO u",
    "CREATE THING mysql.gtid_slave_pos",
]


@pytest.mark.parametrize("sql", LEFT_OUT)
def test_a_statement_on_these_tables_alone_is_left_out(sql: str) -> None:
    facts = analyze(sql, database="shop", flavor=Flavor.MARIADB)
    assert replica_state(facts, Flavor.MARIADB, ANY_CASE) == REPLICA_STATE


@pytest.mark.parametrize("sql", TAKEN)
def test_a_statement_that_names_anything_else_is_not(sql: str) -> None:
    assert replica_state(analyze(sql, database="shop", flavor=Flavor.MARIADB), Flavor.MARIADB, AS_TYPED) is None


def test_mysql_has_no_such_table() -> None:
    sql = LEFT_OUT[0]
    assert replica_state(analyze(sql, database="shop", flavor=Flavor.MYSQL), Flavor.MYSQL, AS_TYPED) is None


@pytest.mark.parametrize("columnar", [False, True])
def test_it_is_counted_and_not_written(columnar: bool) -> None:
    done = filtered([rows(1, "a"), alone(2, LEFT_OUT[0]), rows(3, "a")], columnar=columnar)
    assert done.plan.filtered == {REPLICA_STATE: RuleCounts(0, 1)}
    assert sum(counts.written.total for counts in done.plan.tables.values()) == 2


def test_other_tables_of_the_server_are_refused_as_ever() -> None:
    with pytest.raises(UnsupportedEventError, match="SYSTEM TABLES"):
        filtered([alone(1, TAKEN[0])])


def test_a_database_in_other_letters_is_a_user_s_where_the_server_tells_them_apart() -> None:
    facts = analyze("DELETE FROM MySQL.gtid_slave_pos", database="shop", flavor=Flavor.MARIADB)
    assert replica_state(facts, Flavor.MARIADB, AS_TYPED) is None
    assert replica_state(facts, Flavor.MARIADB, ANY_CASE) == REPLICA_STATE
