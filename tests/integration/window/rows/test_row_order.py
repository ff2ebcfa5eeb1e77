"""Statements in whose log the order of rows, or a value of the server's own, is missing: refused by name, or exact."""

from __future__ import annotations

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from binlane.sql.parse.unsafe import NUMBERED
from tests.conftest import requires_mysql
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
    "CREATE TABLE zeros (v INT, d DOUBLE, c VARCHAR(9))",
    "CREATE TABLE chosen (d DOUBLE, c VARCHAR(9))",
    "CREATE TABLE last (v INT)",
    "INSERT INTO last VALUES (0)",
    "CREATE TRIGGER lasting AFTER UPDATE ON k_2 FOR EACH ROW UPDATE last SET v = NEW.w",
    "CREATE TRIGGER noting AFTER DELETE ON k_2 FOR EACH ROW INSERT INTO journal (v) VALUES (OLD.w)",
    "CREATE TABLE moments (ts DATETIME(6) PRIMARY KEY, n INT, amount DECIMAL(12, 4), KEY (n))",
    "CREATE TABLE by_day (d DATE PRIMARY KEY, n INT)",
    "CREATE TABLE sums (id INT PRIMARY KEY, total DECIMAL(12, 2), counted DECIMAL(12, 2))",
    "INSERT INTO sums VALUES (1, 0, 0)",
    "CREATE TABLE counted (v INT, w INT)",
    "INSERT INTO counted VALUES (1, 2), (2, 3)",
    "CREATE TRIGGER daily AFTER UPDATE ON moments FOR EACH ROW"
    " INSERT INTO by_day (d, n) VALUES (NEW.ts, NEW.n) ON DUPLICATE KEY UPDATE n = NEW.n",
    "CREATE TRIGGER totalling AFTER DELETE ON moments FOR EACH ROW"
    " UPDATE sums SET total = total - OLD.amount WHERE id = 1",
    "CREATE PROCEDURE count_in(IN added DECIMAL(9, 2), by_day_of INT)"
    " UPDATE sums SET counted = counted + added + 0.05 WHERE id = 1",
    "CREATE TRIGGER counting AFTER UPDATE ON counted FOR EACH ROW CALL count_in(NEW.w, 1)",
    "CREATE TABLE named (c VARCHAR(9) PRIMARY KEY, a INT NOT NULL, b INT NOT NULL, v INT, UNIQUE (a, b))",
    "CREATE TABLE filled (id INT PRIMARY KEY, c VARCHAR(64) DEFAULT (UUID()))",
    "CREATE TRIGGER naming BEFORE UPDATE ON fired FOR EACH ROW SET NEW.v = @@server_id",
    "CREATE FUNCTION first_of() RETURNS INT READS SQL DATA RETURN (SELECT w FROM k LIMIT 1)",
    "CREATE VIEW some AS SELECT v, w FROM k LIMIT 2",
    "INSERT INTO named VALUES ('5', 1, 2, 3), ('05', 1, 3, 4)",
    "CREATE VIEW shown (e) AS SELECT c FROM zeros",
    "CREATE VIEW joined AS SELECT p.id AS number, p.w, k.w AS other FROM p JOIN k ON k.v = p.id",
    "CREATE VIEW outer_one AS SELECT number, w AS own, other FROM joined",
    "CREATE FUNCTION drawn() RETURNS DOUBLE NO SQL RETURN RAND()",
    "CREATE TABLE firing (v INT)",
    "SET sql_mode = ''",
    "CREATE VIEW grouped AS SELECT v, w FROM k GROUP BY v",
    "CREATE TRIGGER of_groups AFTER INSERT ON firing FOR EACH ROW INSERT INTO given SELECT v, w FROM k GROUP BY v",
    "CREATE TABLE orders (id INT PRIMARY KEY, customer INT, shipped INT, KEY (shipped))",
    "CREATE TABLE latest (customer INT PRIMARY KEY, id INT)",
    "CREATE TABLE copied (id INT PRIMARY KEY, customer INT)",
    "INSERT INTO orders VALUES (1, 7, 3), (2, 7, 2), (3, 7, 1)",
    "CREATE TRIGGER keeping AFTER UPDATE ON orders FOR EACH ROW BEGIN"
    " DELETE FROM latest WHERE customer = NEW.customer; INSERT INTO latest VALUES (NEW.customer, NEW.id); END",
    "CREATE TRIGGER taking AFTER DELETE ON orders FOR EACH ROW DELETE FROM latest WHERE customer = OLD.customer",
    "CREATE TABLE mirrored (id INT PRIMARY KEY, customer INT)",
    "INSERT INTO mirrored VALUES (1, 7), (2, 7)",
    "CREATE TRIGGER mirroring AFTER UPDATE ON mirrored FOR EACH ROW BEGIN"
    " DELETE FROM copied WHERE id = OLD.id; INSERT INTO copied VALUES (NEW.id, NEW.customer); END",
    "CREATE VIEW listed (number, own, further) AS SELECT p.id, p.w, k.w FROM p JOIN k ON k.v = p.id",
)
OPEN = {
    "DELETE FROM k ORDER BY v LIMIT 1": "LIMIT for rows in an order that no key settles",
    "INSERT IGNORE INTO given SELECT v, w FROM k ORDER BY v": "INSERT IGNORE for rows",
    "UPDATE k SET w = (@n := IFNULL(@n, 0) + 1)": "@n, which rows set in turn",
    "UPDATE k SET w = 1000 * RAND()": "RAND() of each row",
    "INSERT INTO given SELECT w, ROW_NUMBER() OVER (ORDER BY v) FROM k": "ROW_NUMBER() OVER",
    "INSERT INTO given SELECT v, GROUP_CONCAT(w) FROM k WHERE v = 7 GROUP BY v": "GROUP_CONCAT()",
    "UPDATE p JOIN k ON k.v = p.id SET p.w = k.w": "an UPDATE by a join that may find several rows",
    "UPDATE joined SET w = other": "UPDATE joined SET w = other: expected rows in an order that both servers have",
    "UPDATE outer_one AS o SET o.own = o.own + other": "UPDATE outer_one AS o SET o.own = o.own + other: expected rows",
    "UPDATE listed SET own = further": "UPDATE listed SET own = further: expected rows in an order",
    "UPDATE k_2 SET v = v + 1": "an UPDATE of tenant_1.last in which the last row remains of trigger tenant_1.lasting",
    "DELETE FROM k_2 WHERE v = 2": "an AUTO_INCREMENT of tenant_1.journal of trigger tenant_1.noting",
    "INSERT INTO filled (id) VALUES (1)": "UUID() as the default of tenant_1.filled.c",
    "UPDATE fired SET w = 1": "@@server_id of trigger tenant_1.naming",
    "INSERT INTO chosen SELECT MAX(d), '' FROM zeros": "MAX() of equal values that may differ",
    "INSERT INTO chosen SELECT DISTINCT d, '' FROM zeros": "DISTINCT of equal values that may differ",
    "INSERT INTO chosen SELECT 0, c AS e FROM zeros GROUP BY e": "GROUP BY of equal values that may differ",
    "INSERT INTO zeros SELECT DISTINCT * FROM zeros AS z": "DISTINCT of equal values that may differ",
    "INSERT INTO chosen SELECT 0, MIN(e) FROM (SELECT c AS e FROM zeros) z": "MIN() of equal values that may differ",
    "INSERT INTO chosen SELECT 0, c FROM zeros UNION SELECT 0, c FROM zeros": "UNION of equal values that may differ",
    "INSERT INTO chosen SELECT d, '' FROM zeros ORDER BY d, '' LIMIT 1": "LIMIT for rows in an order that no key",
    "INSERT INTO chosen SELECT DISTINCT (v - 1) * 0e0, '' FROM given": "DISTINCT of equal values that may differ",
    "INSERT INTO chosen SELECT 0, MAX(e) FROM shown": "MAX() of equal values that may differ",
}
LIMITED = (
    "DELETE FROM k LIMIT 1",
    "UPDATE p SET w = 2 WHERE v = 1 LIMIT 1",
    "UPDATE p SET w = 2 WHERE id = 1 OR v = 1 LIMIT 1",
    "UPDATE named SET v = 2 WHERE c = 5 LIMIT 1",
    "UPDATE named SET v = 2 WHERE a = 1 LIMIT 1",
    "INSERT INTO given VALUES (1, first_of())",
    "INSERT INTO given SELECT v, w FROM some",
)
"""Without a unique key of which the text has all values, as they are compared."""
TABLES_OF_MARIADB = (
    "CREATE TABLE by_server (id INT PRIMARY KEY, c VARCHAR(64) DEFAULT (@@server_id))",
    "CREATE TABLE by_user (id INT PRIMARY KEY, c VARCHAR(64) DEFAULT (@chosen))",
)
OPEN_ON_MARIADB = {
    "INSERT INTO by_server (id) VALUES (1)": "@@server_id as the default of tenant_1.by_server.c",
    "INSERT INTO by_user (id) VALUES (1)": "@`chosen` as the default of tenant_1.by_user.c",
}
"""Variables in defaults, which MySQL does not take (3772)."""
SET_AND_READ = (
    "UPDATE p JOIN q ON q.id = p.id SET p.v = q.v + 1, q.v = p.v + 10",
    "UPDATE p STRAIGHT_JOIN q ON q.id = p.id SET p.v = q.v, q.v = 0",
    "UPDATE q, p SET q.v = 0, p.v = (SELECT q.v) WHERE q.id = p.id",
    "UPDATE p JOIN q ON q.id = p.id SET p.v = 5, p.w = p.v",
    "UPDATE both_of SET other = 5, w = other",
    "UPDATE p SET v = 5, w = v WHERE id IN (SELECT v FROM q)",
    "UPDATE p SET v = 5, w = v WHERE EXISTS (SELECT 1 FROM q WHERE q.v = p.id)",
)
"""What MySQL computes by its own order of joining, and MariaDB in one way; since 11.1 in another one of a query."""
BY_QUERY = 2
"""Number of those by a query."""
JOINING = (
    (("mariadb", "mariadb"), 0),
    (("mysql", "mysql"), len(SET_AND_READ)),
    (("10.11", "11.8"), BY_QUERY),
)
"""Servers, and the number of refused statements."""
SET_ALONE = (
    "UPDATE p JOIN q ON q.id = p.id SET p.v = p.v + 1, q.v = q.v + 1",
    "UPDATE p JOIN q ON q.id = p.id SET p.w = p.v, p.v = 5",
    "UPDATE p SET w = v, v = 5 WHERE id IN (SELECT v FROM q)",
    "UPDATE p SET v = 5, w = v WHERE id < 3",
)
SETTLED = (
    "UPDATE p SET w = 9 WHERE id = 1 LIMIT 1",
    "UPDATE named SET v = v + 1 WHERE c = '5' LIMIT 1",
    "UPDATE named SET v = v + 1 WHERE a = 1 AND b = 2 AND v > 0 LIMIT 1",
    "DELETE FROM named WHERE b = 2 AND a = 1 LIMIT 1",
    "DELETE FROM p ORDER BY id LIMIT 1",
    "INSERT INTO given SELECT v, w FROM k ORDER BY v, w LIMIT 3",
    "UPDATE p SET w = (@n := IFNULL(@n, 0) + 1)",
    "UPDATE p SET w = 1000 * RAND() WHERE id = 2",
    "INSERT INTO given SELECT w, ROW_NUMBER() OVER (ORDER BY id) FROM p",
    "INSERT INTO given SELECT v, GROUP_CONCAT(w ORDER BY w) + 0 FROM k WHERE v = 7 GROUP BY v",
    "UPDATE k JOIN p ON k.v = p.id SET k.w = p.w",
    "UPDATE joined SET w = 8 WHERE number = 0",
    "UPDATE joined SET other = w",
    "UPDATE listed SET further = own",
    "UPDATE outer_one SET own = own + 1",
    "INSERT INTO filled VALUES (1, 'given')",
    "INSERT INTO filled SET id = 2, c = 'given'",
    "INSERT INTO fired VALUES (1, 1, 1)",
    "UPDATE counted SET w = w + 1",
    "UPDATE orders SET customer = 9 WHERE id = 1",
    "DELETE FROM orders WHERE shipped < 3",
    "UPDATE mirrored SET customer = 8 WHERE customer = 7",
)


def made(channel: Channel) -> None:
    """Tables whose rows lie on the target in another order than on the source."""
    for server, rows in ((channel.source, ROWS), (channel.target, ROWS[::-1])):
        filled = [f"INSERT INTO {name} VALUES {row}" for name in ("k", "k_2") for row in rows]
        keyed = [f"INSERT INTO p VALUES ({n}, 1, {n})" for n in range(4)]
        zeros = [f"INSERT INTO zeros VALUES (1, {each})" for each in ("-0e0, 'A'", "0e0, 'a'")]
        filled += zeros if rows is ROWS else zeros[::-1]
        own = TABLES_OF_MARIADB if server.flavor is Flavor.MARIADB else ()
        run_on(server, *TABLES, *own, *filled, *keyed, "INSERT INTO fired VALUES (7, 7, 7)", log=False)


@FAMILIES
def test_what_no_log_tells_is_refused_by_name_before_the_first_write(channel_of: ChannelOf, family: Flavor) -> None:
    channel = channel_of(family, family)
    made(channel)
    refused = OPEN | (OPEN_ON_MARIADB if family is Flavor.MARIADB else {})
    run_on(channel.source, "USE tenant_1", "SET binlog_format = STATEMENT, sql_mode = ''", *refused)
    with pytest.raises(PrecheckError) as raised:
        channel.run()
    message = str(raised.value)
    assert [what for what in refused.values() if what not in message] == []
    assert channel.target.query("SELECT COUNT(*) FROM tenant_1.k") == [(len(ROWS),)]
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    assert channel.cli("recopy", CHANNEL, "--table", "tenant_1.given", "--yes") == 0
    rows = "SELECT v, w FROM tenant_1.given ORDER BY v, w"
    assert channel.target.query(rows) == channel.source.query(rows) != []


@FAMILIES
def test_a_limit_of_rows_that_no_unique_key_settles_is_refused(channel_of: ChannelOf, family: Flavor) -> None:
    channel = channel_of(family, family)
    made(channel)
    run_on(channel.source, "USE tenant_1", "SET binlog_format = STATEMENT", *LIMITED)
    with pytest.raises(PrecheckError) as raised:
        channel.run()
    message = str(raised.value)
    said = "expected rows in an order that both servers have, found LIMIT for rows in an order that no key settles"
    assert [each for each in LIMITED if f"{each}: {said}" not in message] == []


@FAMILIES
def test_the_columns_of_a_view_that_the_window_makes_and_drops_have_the_names_of_its_list(
    channel_of: ChannelOf, family: Flavor
) -> None:
    channel = channel_of(family, family)
    made(channel)
    run_on(
        channel.source,
        "USE tenant_1",
        "SET binlog_format = STATEMENT",
        "CREATE VIEW passing (own, further) AS SELECT p.w, k.w FROM p JOIN k ON k.v = p.id",
        "UPDATE passing SET own = further",
        "DROP VIEW passing",
        "CREATE VIEW starred (a, own, c, d, further) AS SELECT * FROM p JOIN k ON k.v = p.id",
        "UPDATE starred SET own = further",
        "DROP VIEW starred",
    )
    with pytest.raises(PrecheckError, match="UPDATE passing SET own = further: expected rows in an order") as refused:
        channel.run()
    assert "UPDATE starred SET own = further: expected rows in an order" in str(refused.value)


BESIDE_GROUP = "a column beside GROUP BY for rows in an order that no key settles"
BEHIND = {
    "UPDATE moments SET amount = 2 WHERE n < 3": "UPDATE into tenant_1.by_day, in which the first row",
    "DELETE FROM moments WHERE n < 9": "a sum that may be rounded at each row in tenant_1.sums of trigger",
    "UPDATE orders SET customer = 8 WHERE shipped < 3": (
        "a DELETE from tenant_1.latest, which finds what the rows before have inserted, of trigger tenant_1.keeping"
    ),
    "UPDATE k SET w = 1000 * drawn()": "RAND() of each row of function tenant_1.drawn",
    "INSERT INTO given SELECT v, w FROM grouped": f"{BESIDE_GROUP} of view tenant_1.grouped",
    "INSERT INTO firing VALUES (1)": f"{BESIDE_GROUP} of trigger tenant_1.of_groups",
    "UPDATE p JOIN joined x ON x.number = p.id SET p.w = x.other": "SET p.w = x.other: expected rows in an order",
}
LAIN = {
    "an index of the source alone": ("ALTER TABLE {0} ADD KEY w (w)", ""),
    "another engine on the source": ("ALTER TABLE {0} ENGINE = MyISAM", ""),
    "partitions of the source": ("ALTER TABLE {0} PARTITION BY HASH (id) PARTITIONS 2", ""),
    "partitions of both servers": ("ALTER TABLE {0} PARTITION BY HASH (id) PARTITIONS 2",) * 2,
}
"""What of a table is in the way of its primary key's order, on source and target."""


@FAMILIES
def test_rows_that_servers_read_otherwise_than_by_one_key_have_no_order_nor_have_those_of_bodies(
    channel_of: ChannelOf, family: Flavor
) -> None:
    channel = channel_of(family, family)
    made(channel)
    refused, exact = list[str](), list[str]()
    for number, altered in enumerate(LAIN.values()):
        name = f"lain_{number}"
        for server, alter in zip((channel.source, channel.target), altered, strict=True):
            create = (f"CREATE TABLE {name} LIKE p", alter.format(name), f"INSERT INTO {name} SELECT * FROM p")
            run_on(server, "USE tenant_1", *filter(None, create), log=False)
        refused.append(f"INSERT INTO given SELECT 1, GROUP_CONCAT(w) FROM {name}")
        exact.append(f"UPDATE k SET v = (SELECT MAX(w) FROM {name})")
        exact.append(f"INSERT INTO given SELECT v, w FROM {name} ORDER BY id LIMIT 1")
    numbering = "ALTER TABLE lain_1 ADD n INT UNIQUE AUTO_INCREMENT"
    run_on(
        channel.source,
        *("USE tenant_1", "SET binlog_format = STATEMENT, sql_mode = ''"),
        *("INSERT INTO given SELECT 1, GROUP_CONCAT(w) FROM p", *exact, *refused, *BEHIND, numbering),
    )
    with pytest.raises(PrecheckError) as raised:
        channel.run()
    message = str(raised.value)
    assert [each for each in refused if f"{each}: expected rows in an order" not in message] == []
    assert [what for what in (*BEHIND.values(), f"{NUMBERED}tenant_1.lain_1") if what not in message] == []
    assert [each for each in (*exact, "FROM p:") if each in message] == []


@requires_mysql
def test_a_table_statement_is_a_query_of_its_rows(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mysql")
    made(channel)
    told = {
        "INSERT IGNORE INTO given TABLE k ORDER BY v": "INSERT IGNORE for rows",
        "INSERT INTO given TABLE k ORDER BY v LIMIT 1": "LIMIT for rows",
        "INSERT INTO zeros TABLE zeros UNION TABLE zeros": "UNION of equal values that may differ",
    }
    run_on(channel.source, "USE tenant_1", "SET binlog_format = STATEMENT", *told)
    with pytest.raises(PrecheckError) as raised:
        channel.run()
    assert [what for what in told.values() if what not in str(raised.value)] == []


@pytest.mark.parametrize(("servers", "refused"), JOINING, ids=str)
def test_what_an_update_sets_and_reads_is_refused_where_servers_join_it_otherwise(
    channel_of: ChannelOf, servers: tuple[str, str], refused: int
) -> None:
    channel = channel_of(*servers)
    made(channel)
    keyed = (
        "CREATE TABLE tenant_1.q LIKE tenant_1.p",
        "INSERT INTO tenant_1.q SELECT id, id + 1, w FROM tenant_1.p",
        "CREATE VIEW tenant_1.both_of AS SELECT p.id, p.v AS other, p.w FROM tenant_1.p JOIN tenant_1.q ON q.id = p.id",
    )
    channel.on_both(*keyed)
    run_on(channel.source, "USE tenant_1", "SET binlog_format = STATEMENT", *SET_ALONE)
    assert channel.run() is not None
    run_on(channel.source, "USE tenant_1", "SET binlog_format = STATEMENT", *SET_AND_READ)
    if refused:
        found = "found an UPDATE by a join or a query that sets v and reads it for another column"
        with pytest.raises(PrecheckError, match=found) as raised:
            channel.run()
        assert str(raised.value).count(found) == refused
        return
    assert channel.run() is not None
    for table in ("p", "q"):
        rows = f"SELECT * FROM tenant_1.{table} ORDER BY id"
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


@FAMILIES
def test_rows_in_front_of_a_plain_insert_are_told_apart_by_the_key_that_they_have(
    channel_of: ChannelOf, family: Flavor
) -> None:
    channel = channel_of(family, family)
    channel.on_both(
        "CREATE DATABASE tenant_1",
        "CREATE TABLE tenant_1.given (code INT, n INT)",
        "CREATE TABLE tenant_1.t (code INT PRIMARY KEY, n INT)",
        "CREATE TABLE tenant_1.mirror (code INT PRIMARY KEY, n INT)",
        "CREATE TRIGGER tenant_1.mirrored BEFORE INSERT ON tenant_1.t FOR EACH ROW "
        "REPLACE INTO mirror VALUES (NEW.code, NEW.n)",
    )
    for server, order in ((channel.source, "DESC"), (channel.target, "ASC")):
        rows = " UNION ALL ".join(f"SELECT {code} AS code, {code} * 2 AS n" for code in range(1, 9))
        run_on(server, f"INSERT INTO tenant_1.given SELECT * FROM ({rows}) AS r ORDER BY code {order}", log=False)
    statements = "USE tenant_1", "SET binlog_format = STATEMENT"

    run_on(channel.source, *statements, "INSERT INTO t SELECT * FROM given")
    assert channel.run() is not None
    channel.assert_equal()

    run_on(channel.source, *statements, "INSERT IGNORE INTO t SELECT code + 5, n FROM given")
    with pytest.raises(PrecheckError, match="row-order"):
        channel.run()
