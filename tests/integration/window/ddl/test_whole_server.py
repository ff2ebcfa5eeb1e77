"""All that DDL and account statements leave on a server: definitions, sequences, history, accounts, roles."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import pytest

from binlane.model import Flavor
from binlane.servers.account_fingerprints import read_accounts
from binlane.servers.engines import engine_at
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

TABLES: Final = (
    "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4",
    "USE tenant_1",
    "CREATE TABLE parent (id INT PRIMARY KEY AUTO_INCREMENT, n INT NOT NULL DEFAULT 5, UNIQUE KEY by_n (n)) "
    "COMMENT 'it''s'",
    "CREATE TABLE child (id INT PRIMARY KEY, parent_n INT, KEY (parent_n), CONSTRAINT to_parent FOREIGN KEY (parent_n)"
    " REFERENCES parent (n) ON DELETE CASCADE ON UPDATE SET NULL)",
    "CREATE TABLE checked (a INT CHECK (a > 0), b INT, CONSTRAINT less CHECK (a < b))",
    "CREATE TABLE made (id INT PRIMARY KEY, s VARCHAR(40), l INT AS (CHAR_LENGTH(s)) STORED, "
    "u VARCHAR(40) AS (UPPER(s)) VIRTUAL, KEY (l), KEY (u))",
    "CREATE TABLE hidden (id INT PRIMARY KEY, secret INT INVISIBLE DEFAULT 3, plain INT)",
    "CREATE TABLE by_range (id INT, at DATE, PRIMARY KEY (id, at)) PARTITION BY RANGE (YEAR(at)) "
    "(PARTITION p0 VALUES LESS THAN (2000), PARTITION p1 VALUES LESS THAN (2020), "
    "PARTITION rest VALUES LESS THAN MAXVALUE)",
    "CREATE TABLE by_list (id INT, c INT) PARTITION BY LIST (c) SUBPARTITION BY HASH (id) SUBPARTITIONS 2 "
    "(PARTITION a VALUES IN (1, 2), PARTITION b VALUES IN (3, NULL))",
    "CREATE TABLE moved (id INT, at DATE, PRIMARY KEY (id, at))",
    "CREATE TABLE words (id INT PRIMARY KEY, t TEXT, g POINT NOT NULL, FULLTEXT KEY (t), SPATIAL KEY (g)) "
    "ROW_FORMAT=DYNAMIC",
    "CREATE TABLE likeness LIKE parent",
)
CHANGES: Final = (
    "INSERT INTO parent (n) VALUES (1), (2), (3)",
    "INSERT INTO child VALUES (1, 1), (2, 2), (3, 3)",
    "INSERT INTO checked VALUES (1, 2)",
    "INSERT INTO made (id, s) VALUES (1, 'a'), (2, 'bé')",
    "INSERT INTO hidden VALUES (1, 1)",
    "INSERT INTO hidden (id, secret) VALUES (2, 9)",
    "INSERT INTO by_range VALUES (1, '1999-01-01'), (2, '2010-01-01'), (3, '2030-01-01')",
    "INSERT INTO by_list VALUES (1, 1), (2, NULL), (3, 3)",
    "INSERT INTO moved VALUES (7, '2011-01-01')",
    "INSERT INTO words VALUES (1, 'some words', ST_GeomFromText('POINT(1 2)'))",
    "ALTER TABLE hidden ADD COLUMN late INT DEFAULT 4, ALGORITHM=INSTANT",
    "INSERT INTO hidden (id, late) VALUES (3, 5)",
    "ALTER TABLE hidden ADD COLUMN early VARCHAR(9) DEFAULT 'x' AFTER id",
    "UPDATE hidden SET early = 'y' WHERE id = 2",
    "ALTER TABLE hidden DROP COLUMN plain",
    "DELETE FROM hidden WHERE id = 1",
    "ALTER TABLE made RENAME COLUMN id TO number, ADD KEY both_of (number, s)",
    "UPDATE made SET s = CONCAT(s, '!')",
    "UPDATE parent SET n = 30 WHERE n = 3",
    "DELETE FROM parent WHERE n = 1",
    "ALTER TABLE by_range EXCHANGE PARTITION p1 WITH TABLE moved",
    "ALTER TABLE by_range REORGANIZE PARTITION rest INTO "
    "(PARTITION p2 VALUES LESS THAN (2025), PARTITION rest VALUES LESS THAN MAXVALUE)",
    "INSERT INTO by_range VALUES (4, '2024-01-01')",
    "ALTER TABLE by_range TRUNCATE PARTITION p0",
    "ALTER TABLE by_list DROP PARTITION b",
    "RENAME TABLE checked TO swapped, likeness TO checked, swapped TO likeness",
    "INSERT INTO checked (n) VALUES (8)",
    "ALTER TABLE child DROP FOREIGN KEY to_parent",
    "TRUNCATE TABLE words",
    "ALTER TABLE parent AUTO_INCREMENT = 100",
    "INSERT INTO parent (n) VALUES (77)",
    "ALTER DATABASE tenant_1 CHARACTER SET latin1",
    "CREATE TABLE of_latin1 (s VARCHAR(9))",
    "INSERT INTO of_latin1 VALUES ('é')",
)
OF_FAMILY: Final = {
    Flavor.MARIADB: (
        "CREATE SEQUENCE numbers START WITH 5 INCREMENT BY 3 CACHE 10",
        "CREATE TABLE numbered (id INT DEFAULT NEXTVAL(numbers) PRIMARY KEY, s INT)",
        "INSERT INTO numbered (s) VALUES (1), (2)",
        "SELECT NEXTVAL(numbers)",
        "ALTER SEQUENCE numbers INCREMENT BY 7",
        "SELECT NEXTVAL(numbers)",
        "CREATE TABLE versioned (id INT PRIMARY KEY, s INT) WITH SYSTEM VERSIONING",
        "INSERT INTO versioned VALUES (1, 1), (2, 2)",
        "UPDATE versioned SET s = 9 WHERE id = 1",
        "DELETE FROM versioned WHERE id = 2",
        "SET SESSION system_versioning_alter_history = KEEP",
        "ALTER TABLE versioned ADD COLUMN late INT DEFAULT 3",
        "CREATE OR REPLACE TABLE versions (id INT, s DATE, e DATE, PERIOD FOR p (s, e), "
        "UNIQUE (id, p WITHOUT OVERLAPS))",
        "INSERT INTO versions VALUES (1, '2020-01-01', '2021-01-01')",
        "DELETE FROM versions FOR PORTION OF p FROM '2020-03-01' TO '2020-04-01'",
        "CREATE TABLE ignoring (id INT PRIMARY KEY, a INT, KEY k (a) IGNORED)",
        "CREATE TABLE squeezed (id INT PRIMARY KEY, t TEXT COMPRESSED, v VARCHAR(900) COMPRESSED)",
        "INSERT INTO squeezed VALUES (1, REPEAT('t', 500), REPEAT('v', 800))",
        "CREATE TABLE typed (u UUID, i INET6, j INET4)",
        "INSERT INTO typed VALUES ('123e4567-e89b-12d3-a456-426655440000', '::1', '127.0.0.1')",
    ),
    Flavor.MYSQL: (
        "CREATE TABLE functional (id INT PRIMARY KEY, s VARCHAR(20), j JSON, KEY low ((LOWER(s))), "
        "KEY many ((CAST(j->'$.a' AS UNSIGNED ARRAY))), KEY unseen (s) INVISIBLE)",
        """INSERT INTO functional VALUES (1, 'Ab', '{"a": [1, 2]}'), (2, 'cD', NULL)""",
        "UPDATE functional SET s = 'EF' WHERE id = 1",
        "ALTER TABLE functional ALTER INDEX unseen VISIBLE",
        "DELETE FROM functional WHERE id = 2",
        "SET SESSION sql_generate_invisible_primary_key = ON",
        "CREATE TABLE keyless (a INT)",
        "SET SESSION sql_generate_invisible_primary_key = OFF",
        "INSERT INTO keyless VALUES (1), (2), (2)",
        "UPDATE keyless SET a = 3 WHERE a = 1",
        "DELETE FROM keyless WHERE a = 2 LIMIT 1",
        "CREATE TABLE unchecked (a INT, CONSTRAINT positive CHECK (a > 0) NOT ENFORCED)",
        "INSERT INTO unchecked VALUES (-1)",
        "CREATE TABLE dropping (id INT PRIMARY KEY, a INT, b INT)",
        "INSERT INTO dropping VALUES (1, 2, 3)",
        "ALTER TABLE dropping DROP COLUMN a, ALGORITHM=INSTANT",
        "UPDATE dropping SET b = 4",
        "CREATE TABLE expressed (id INT PRIMARY KEY, d JSON DEFAULT (JSON_ARRAY()), p POINT SRID 4326)",
        "INSERT INTO expressed (id) VALUES (1)",
    ),
}
ACCOUNTS: Final = (
    "CREATE USER 'test_a'@'%' IDENTIFIED BY 'Aa-12345', 'test_b'@'10.0.0.0/255.0.0.0' IDENTIFIED BY 'Bb-12345'",
    "CREATE ROLE test_reader, test_writer",
    "GRANT SELECT ON tenant_1.* TO test_reader",
    "GRANT INSERT, UPDATE (n) ON tenant_1.parent TO test_writer",
    "GRANT test_reader TO test_writer",
    "GRANT test_reader TO 'test_a'@'%'",
    "GRANT test_writer TO 'test_a'@'%'",
    "GRANT test_reader TO 'test_b'@'10.0.0.0/255.0.0.0'",
    "REVOKE test_reader FROM 'test_b'@'10.0.0.0/255.0.0.0'",
    "GRANT PROCESS, RELOAD ON *.* TO 'test_a'@'%' WITH GRANT OPTION",
    "GRANT ALL ON `tenant\\_1`.* TO 'test_b'@'10.0.0.0/255.0.0.0'",
    "REVOKE DROP ON `tenant\\_1`.* FROM 'test_b'@'10.0.0.0/255.0.0.0'",
    "CREATE PROCEDURE tenant_1.called() SELECT 1",
    "GRANT EXECUTE ON PROCEDURE tenant_1.called TO 'test_a'@'%'",
    "ALTER USER 'test_a'@'%' PASSWORD EXPIRE INTERVAL 90 DAY ACCOUNT LOCK",
    "SET PASSWORD FOR 'test_b'@'10.0.0.0/255.0.0.0' = {password}",
    "RENAME USER 'test_b'@'10.0.0.0/255.0.0.0' TO 'test_c'@'localhost'",
    "CREATE USER 'test_gone'@'%'",
    "DROP USER 'test_gone'@'%'",
    "ALTER USER 'test_a'@'%' WITH MAX_USER_CONNECTIONS 5",
)
ACCOUNTS_OF_FAMILY: Final = {
    Flavor.MARIADB: ("SET DEFAULT ROLE test_reader FOR 'test_a'@'%'",),
    Flavor.MYSQL: (
        "SET DEFAULT ROLE test_reader, test_writer TO 'test_a'@'%'",
        "ALTER USER 'test_a'@'%' FAILED_LOGIN_ATTEMPTS 3 PASSWORD_LOCK_TIME 2 COMMENT 'it''s \"one\"'",
        "GRANT BACKUP_ADMIN, SYSTEM_VARIABLES_ADMIN ON *.* TO test_writer",
    ),
}
PASSWORD: Final = {Flavor.MARIADB: "PASSWORD('Cc-12345')", Flavor.MYSQL: "'Cc-12345'"}
DROPPED: Final = (
    "DROP USER IF EXISTS 'test_a'@'%', 'test_c'@'localhost'",
    "DROP ROLE IF EXISTS test_reader, test_writer",
)


def accounts(server: PrivateServer) -> dict[str, str]:
    engine = engine_at(server.url())
    try:
        with engine.connect() as connection:
            return {name: said for name, said in read_accounts(connection).items() if name.startswith("test_")}
    finally:
        engine.dispose()


def shown(server: PrivateServer, statement: str) -> list[tuple[Any, ...]]:
    return list(server.query(statement))


def everything(server: PrivateServer) -> dict[str, Any]:
    """Definitions, rows (history and invisible columns, too), accounts with their roles."""
    kinds = dict(
        shown(server, "SELECT table_name, table_type FROM information_schema.tables WHERE table_schema='tenant_1'")
    )
    found: dict[str, Any] = {}
    for name, kind in kinds.items():
        found[f"definition of {name}"] = shown(server, f"SHOW CREATE TABLE tenant_1.{name}")
        columns = shown(
            server,
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'tenant_1' AND table_name = "
            f"'{name}' ORDER BY ordinal_position",
        )
        names = ", ".join(f"`{column}`" for (column,) in columns)
        history = " FOR SYSTEM_TIME ALL" if "VERSIONED" in kind else ""
        if "VERSIONED" in kind:
            names += ", ROW_START, ROW_END"
        found[f"rows of {name}"] = sorted(map(repr, shown(server, f"SELECT {names} FROM tenant_1.{name}{history}")))
    found["accounts"] = accounts(server)
    return found


@contextlib.contextmanager
def without_accounts(channel: Channel) -> Iterator[None]:
    try:
        yield
    finally:
        for server in (channel.source, channel.target):
            run_on(server, *DROPPED, log=False)


@pytest.mark.parametrize("form", ["ROW", "MIXED"])
@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_all_that_statements_define_is_the_same_on_the_target(family: str, form: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    source, target = channel.source, channel.target
    told = (*ACCOUNTS, *ACCOUNTS_OF_FAMILY[source.flavor])
    with without_accounts(channel):
        run_on(source, f"SET SESSION binlog_format = {form}", *TABLES, *CHANGES, *OF_FAMILY[source.flavor])
        run_on(source, *(statement.format(password=PASSWORD[source.flavor]) for statement in told))
        assert channel.run() is not None
        ours, theirs = everything(source), everything(target)
        assert len(ours) > 30
        assert set(ours["accounts"]) >= {"test_a@%", "test_c@localhost"}
        assert theirs == ours
        channel.assert_equal()
