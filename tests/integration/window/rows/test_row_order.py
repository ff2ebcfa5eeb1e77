"""Statements in whose log the order of rows, or a value of the server's own, is missing: refused by name, or exact."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

FAMILIES = pytest.mark.parametrize("family", list(Flavor))
ROWS = ("(1, 1)", "(1, 2)", "(0, 3)", "(0, 4)")
TABLES = (
    "CREATE DATABASE tenant_1",
    "USE tenant_1",
    *(f"CREATE TABLE {name} (v INT, w INT)" for name in ("k", "k_2", "given")),
    "CREATE TABLE p (id INT PRIMARY KEY, v INT, w INT)",
    "CREATE TABLE fired (id INT PRIMARY KEY, v INT, w INT)",
    "CREATE TABLE journal (id INT AUTO_INCREMENT PRIMARY KEY, v INT)",
    "CREATE TABLE last (v INT)",
    "INSERT INTO last VALUES (0)",
    "CREATE TRIGGER lasting AFTER UPDATE ON k_2 FOR EACH ROW UPDATE last SET v = NEW.w",
    "CREATE TRIGGER noting AFTER DELETE ON k_2 FOR EACH ROW INSERT INTO journal (v) VALUES (OLD.w)",
    "CREATE TABLE filled (id INT PRIMARY KEY, c VARCHAR(64) DEFAULT (UUID()))",
    "CREATE TRIGGER naming BEFORE UPDATE ON fired FOR EACH ROW SET NEW.v = @@server_id",
    "CREATE FUNCTION first_of() RETURNS INT READS SQL DATA RETURN (SELECT w FROM k LIMIT 1)",
    "CREATE VIEW some AS SELECT v, w FROM k LIMIT 2",
)
OPEN = {
    "DELETE FROM k ORDER BY v LIMIT 1": "LIMIT for rows in an order that no key settles",
    "INSERT IGNORE INTO given SELECT v, w FROM k ORDER BY v": "INSERT IGNORE for rows",
    "UPDATE k SET w = (@n := IFNULL(@n, 0) + 1)": "@n, which rows set in turn",
    "UPDATE k SET w = 1000 * RAND()": "RAND() of each row",
    "INSERT INTO given SELECT w, ROW_NUMBER() OVER (ORDER BY v) FROM k": "ROW_NUMBER() OVER",
    "INSERT INTO given SELECT v, GROUP_CONCAT(w) FROM k WHERE v = 7 GROUP BY v": "GROUP_CONCAT()",
    "UPDATE p JOIN k ON k.v = p.id SET p.w = k.w": "an UPDATE by a join that may find several rows",
    "UPDATE k_2 SET v = v + 1": "an UPDATE of tenant_1.last in which the last row remains of trigger tenant_1.lasting",
    "DELETE FROM k_2 WHERE v = 2": "an AUTO_INCREMENT of tenant_1.journal of trigger tenant_1.noting",
    "INSERT INTO filled (id) VALUES (1)": "UUID() as the default of tenant_1.filled.c",
    "UPDATE fired SET w = 1": "@@server_id of trigger tenant_1.naming",
    "INSERT INTO given VALUES (1, first_of())": "LIMIT without ORDER BY of function tenant_1.first_of",
    "INSERT INTO given SELECT v, w FROM some": "LIMIT without ORDER BY of view tenant_1.some",
}
SETTLED = (
    "DELETE FROM p ORDER BY id LIMIT 1",
    "INSERT INTO given SELECT v, w FROM k ORDER BY v, w LIMIT 3",
    "UPDATE p SET w = (@n := IFNULL(@n, 0) + 1)",
    "UPDATE p SET w = 1000 * RAND() WHERE id = 2",
    "INSERT INTO given SELECT w, ROW_NUMBER() OVER (ORDER BY id) FROM p",
    "INSERT INTO given SELECT v, GROUP_CONCAT(w ORDER BY w) + 0 FROM k WHERE v = 7 GROUP BY v",
    "UPDATE k JOIN p ON k.v = p.id SET k.w = p.w",
    "INSERT INTO filled VALUES (1, 'given')",
    "INSERT INTO filled SET id = 2, c = 'given'",
    "INSERT INTO fired VALUES (1, 1, 1)",
)


def made(channel: Channel) -> None:
    """Tables whose rows lie on the target in another order than on the source."""
    for server, rows in ((channel.source, ROWS), (channel.target, ROWS[::-1])):
        filled = [f"INSERT INTO {name} VALUES {row}" for name in ("k", "k_2") for row in rows]
        keyed = [f"INSERT INTO p VALUES ({n}, 1, {n})" for n in range(4)]
        run_on(server, *TABLES, *filled, *keyed, "INSERT INTO fired VALUES (7, 7, 7)", log=False)


@FAMILIES
def test_what_no_log_tells_is_refused_by_name_before_the_first_write(channel_of: ChannelOf, family: Flavor) -> None:
    channel = channel_of(family, family)
    made(channel)
    run_on(channel.source, "USE tenant_1", "SET binlog_format = STATEMENT", *OPEN)
    with pytest.raises(PrecheckError) as raised:
        channel.run()
    message = str(raised.value)
    assert [what for what in OPEN.values() if what not in message] == []
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.k") == [(len(ROWS),)]
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    assert channel.cli("recopy", CHANNEL, "--table", "tenant_1.given", "--yes") == 0
    rows = "SELECT v, w FROM tenant_1.given ORDER BY v, w"
    assert channel.target.query(rows) == channel.source.query(rows) != []


@FAMILIES
def test_a_table_that_the_window_makes_has_its_key_also_altered_and_renamed(
    channel_of: ChannelOf, family: Flavor
) -> None:
    channel = channel_of(family, family)
    made(channel)
    run_on(
        channel.source,
        "USE tenant_1",
        "SET binlog_format = STATEMENT",
        *("CREATE TABLE n (id INT PRIMARY KEY, v INT)", "INSERT INTO n VALUES (2, 1), (1, 1)"),
        *("ALTER TABLE n ADD COLUMN w INT DEFAULT 7, ADD KEY (v), ENGINE = InnoDB", "RENAME TABLE n TO o"),
        "INSERT INTO given SELECT v, w FROM o ORDER BY id LIMIT 1",
        "ALTER TABLE o RENAME TO q, DROP KEY v",
        "DELETE FROM q ORDER BY id LIMIT 1",
        *("CREATE TABLE codes (code VARCHAR(64) PRIMARY KEY)", "INSERT INTO codes VALUES ('a'), ('b')"),
        "DELETE FROM codes ORDER BY code LIMIT 1",
    )
    assert channel.run() is not None
    assert channel.target.query("SELECT * FROM tenant_1.q") == channel.source.query("SELECT * FROM tenant_1.q") != []
    run_on(
        channel.source,
        "USE tenant_1",
        "SET binlog_format = STATEMENT",
        *("CREATE TABLE r (v INT)", "ALTER TABLE r ADD COLUMN w INT", "INSERT INTO r VALUES (1, 2), (1, 1)"),
        "INSERT INTO given SELECT v, w FROM r ORDER BY v LIMIT 1",
    )
    with pytest.raises(PrecheckError, match="LIMIT for rows in an order that no key settles"):
        channel.run()


TIES = {
    "TEXT MADE": (("a", "A", "a "), "made (c VARCHAR(9))", "SELECT c, 1 FROM made ORDER BY c LIMIT 1"),
    "JSON OR TEXT MADE": (("1.0", "1", "1e0"), "made (c JSON)", "SELECT c, 1 FROM made ORDER BY c LIMIT 1"),
    "REAL MADE": (("1e300", "1", "-1e300"), "made (c REAL)", "SELECT 'sum', SUM(c) FROM made"),
}


@FAMILIES
@pytest.mark.parametrize(("values", "table", "query"), TIES.values(), ids=TIES)
def test_equal_values_of_a_table_that_the_window_makes_settle_no_order(
    channel_of: ChannelOf, family: Flavor, values: tuple[str, ...], table: str, query: str
) -> None:
    """The table is filled from one whose rows lie in another order on each server."""
    channel = channel_of(family, family)
    for server, order in ((channel.source, values), (channel.target, values[::-1])):
        made = ("CREATE DATABASE tenant_1", "USE tenant_1", "CREATE TABLE k (c VARCHAR(9))")
        run_on(
            server,
            *made,
            "CREATE TABLE given (c VARCHAR(20), n DOUBLE)",
            *(f"INSERT INTO k VALUES ('{value}')" for value in order),
            log=False,
        )
    run_on(
        channel.source,
        *("USE tenant_1", "SET binlog_format = STATEMENT, sql_mode = ''", f"CREATE TABLE {table}"),
        *("INSERT INTO made SELECT c FROM k", f"INSERT INTO given {query}"),
    )
    with pytest.raises(PrecheckError, match="row-order"):
        channel.run()
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None


@FAMILIES
def test_what_a_key_or_the_text_settles_is_applied_as_it_is(channel_of: ChannelOf, family: Flavor) -> None:
    channel = channel_of(family, family)
    made(channel)
    run_on(channel.source, "USE tenant_1", "SET binlog_format = STATEMENT", *SETTLED)
    assert channel.run() is not None
    channel.assert_equal()
