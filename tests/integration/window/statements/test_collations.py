"""``[collations]``: a plain MySQL schema on a MariaDB that has no utf8mb4_0900_ai_ci."""

from __future__ import annotations

import logging

import pytest

from binlane.errors import ConfigError, PrecheckError
from binlane.model import Flavor
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on
from tests.integration.window.servers.test_families import verified

pytestmark = requires_mysql
OURS, THEIRS = "utf8mb4_0900_ai_ci", "utf8mb4_uca1400_nopad_ai_ci"
RULE = f'[collations]\n{OURS} = "{THEIRS}"\n'
NAMED = (
    "CREATE DATABASE tenant_1 /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci */",
    "CREATE DATABASE tenant_2 CHARACTER SET utf8mb4",
    "CREATE DATABASE tenant_3",
    "CREATE TABLE tenant_1.named (k VARCHAR(20) COLLATE utf8mb4_0900_ai_ci PRIMARY KEY, v VARCHAR(20), KEY (v))"
    " DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci",
    "CREATE TABLE tenant_1.bare (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4, l VARCHAR(9) CHARSET latin1,"
    " b VARCHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin) CHARSET 'utf8mb4'",
    "CREATE TABLE tenant_2.of_database (id INT PRIMARY KEY, v VARCHAR(20), w TEXT)",
    "CREATE TABLE tenant_3.of_server (id INT PRIMARY KEY, v VARCHAR(20), UNIQUE (v))",
    "ALTER TABLE tenant_3.of_server ADD x CHAR(3) CHARSET utf8mb4, ADD y CHAR(3) COLLATE `utf8mb4_0900_ai_ci`",
    "CREATE VIEW tenant_1.shown AS SELECT k COLLATE utf8mb4_0900_ai_ci AS k FROM tenant_1.named",
    "CREATE FUNCTION tenant_1.twice (t CHAR(9)) RETURNS VARCHAR(18) CHARSET utf8mb4 DETERMINISTIC RETURN CONCAT(t, t)",
)
ROWS = (
    "INSERT INTO tenant_1.named VALUES ('a', 'ä'), ('B', 'b '), ('ß', 'x'), ('😀', 'y')",
    "INSERT INTO tenant_1.bare VALUES (1, 'ü', 'é', 'z')",
    "INSERT INTO tenant_2.of_database VALUES (1, 'one', 'w'), (2, 'two', 'w')",
    "INSERT INTO tenant_3.of_server (id, v, x) VALUES (1, 'one', 'y'), (2, 'One ', 'n')",
    "UPDATE tenant_1.named SET k = 'A' WHERE k = 'a'",
    "DELETE FROM tenant_3.of_server WHERE v = 'ONE'",
)
COLUMNS = (
    "SELECT table_name, column_name, collation_name FROM information_schema.columns"
    " WHERE table_schema LIKE 'tenant%' AND collation_name IS NOT NULL ORDER BY 1, 2"
)


@pytest.fixture
def onto_mariadb(channel_of: ChannelOf) -> Channel:
    return channel_of(Flavor.MYSQL, Flavor.MARIADB)


@pytest.mark.parametrize("reduce", ["off", "block"])
def test_a_plain_mysql_schema_is_applied_with_the_collation_that_the_channel_chose(
    onto_mariadb: Channel, reduce: str, caplog: pytest.LogCaptureFixture
) -> None:
    run_on(onto_mariadb.source, *NAMED, *ROWS)
    onto_mariadb.write_channel(blocks=f'reduce = "{reduce}"\n')
    with pytest.raises(PrecheckError, match=f"tenant_1.named: collation {OURS}"):
        onto_mariadb.run()

    onto_mariadb.write_channel(RULE, blocks=f'reduce = "{reduce}"\n')
    onto_mariadb.run()

    logged = [tuple(row) for row in onto_mariadb.source.query(COLUMNS)]
    assert {collation for _, _, collation in logged} > {OURS}
    expected = [(table, column, THEIRS if name == OURS else name) for table, column, name in logged]
    assert [tuple(row) for row in onto_mariadb.target.query(COLUMNS)] == expected
    databases = "SELECT default_collation_name FROM information_schema.schemata WHERE schema_name LIKE 'tenant%'"
    assert {row[0] for row in onto_mariadb.target.query(databases)} == {THEIRS}
    assert verified(onto_mariadb) == []
    rows = "SELECT id, v, x FROM tenant_3.of_server"
    assert onto_mariadb.target.query(rows) == onto_mariadb.source.query(rows)

    run_on(
        onto_mariadb.source,
        "INSERT INTO tenant_1.named VALUES ('c', 'c')",
        "INSERT INTO tenant_1.bare VALUES (2, 'b', 'l', '')",
    )
    with caplog.at_level(logging.INFO):
        onto_mariadb.run()
    said = [line for line in caplog.messages if "by [collations]" in line]
    assert [line.split(":")[1].strip() for line in said] == ["tenant_1.named.k", "tenant_1.named.v"], said
    assert verified(onto_mariadb) == []


def test_a_table_with_another_collation_than_the_chosen_one_stops_the_window(onto_mariadb: Channel) -> None:
    table = "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v VARCHAR(9) COLLATE {}) CHARSET utf8mb4"
    for server, collation in ((onto_mariadb.source, OURS), (onto_mariadb.target, "utf8mb4_general_ci")):
        run_on(server, "CREATE DATABASE tenant_1", table.format(collation), log=False)
    onto_mariadb.write_channel(RULE)
    run_on(onto_mariadb.source, "INSERT INTO tenant_1.t VALUES (1, 'x')")

    with pytest.raises(PrecheckError, match=rf"tenant_1.t.v: collation: expected {THEIRS}, which \[collations\] gives"):
        onto_mariadb.run()


def test_a_collation_that_the_target_lacks_is_refused_before_anything_is_planned(onto_mariadb: Channel) -> None:
    onto_mariadb.write_channel('[collations]\nutf8mb4_0900_ai_ci = "utf8mb4_0900_as_ci"\n')
    run_on(onto_mariadb.source, "CREATE DATABASE tenant_1")

    with pytest.raises(ConfigError, match=r"collations.utf8mb4_0900_ai_ci: expected a collation of mariadb .*as_ci"):
        onto_mariadb.run()


@pytest.mark.parametrize(("rules", "expected"), [("", THEIRS), (RULE.replace(THEIRS, "utf8mb4_bin"), "utf8mb4_bin")])
def test_a_user_variable_follows_its_session_s_collation(onto_mariadb: Channel, rules: str, expected: str) -> None:
    """It has the collation of the session that has set it, with which the target's session has another one, too."""
    run_on(onto_mariadb.source, "CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (v VARCHAR(99) CHARSET ascii)")
    onto_mariadb.write_channel(rules)
    set_variable = f"SET NAMES utf8mb4 COLLATE {OURS}", "SET @v = 'é'"
    insert = "INSERT INTO tenant_1.t VALUES (CONCAT(COLLATION(@v), ' ', HEX(@v)))"
    run_on(onto_mariadb.source, "SET binlog_format = STATEMENT", *set_variable, insert)

    assert onto_mariadb.run() is not None

    assert onto_mariadb.source.query("SELECT v FROM tenant_1.t") == [(f"{OURS} C3A9",)]
    assert onto_mariadb.target.query("SELECT v FROM tenant_1.t") == [(f"{expected} C3A9",)]


def test_a_user_variable_that_the_target_cannot_have_is_refused_before_the_first_write(channel_of: ChannelOf) -> None:
    channel = channel_of(Flavor.MARIADB, Flavor.MYSQL)
    channel.on_both("CREATE DATABASE tenant_1", "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v VARCHAR(99))")
    insert = "INSERT INTO tenant_1.t VALUES (1, CONCAT(@`loose `, @czech))"
    czech = "SET NAMES utf8mb3 COLLATE utf8mb3_czech_ci", "SET @czech = _utf8mb3 'c' COLLATE utf8mb3_general_nopad_ci"
    run_on(channel.source, "SET binlog_format = STATEMENT", "SET @`loose ` = 1", *czech, insert)

    with pytest.raises(PrecheckError, match="user variable") as said:
        channel.run()

    assert "one that ends in a blank, in the statement" in str(said.value)
    assert "user variable czech: collation of a session" in str(said.value)
    assert channel.target.query("SELECT id FROM tenant_1.t") == []
