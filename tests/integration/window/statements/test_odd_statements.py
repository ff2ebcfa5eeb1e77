"""Statements that say less than they mean, or more: a replica takes each of them, and so does a window."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final

import pymysql
import pytest

from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, Channel, ChannelOf, run_on

BY_STATEMENT: Final = "SET SESSION binlog_format = STATEMENT"
Session = Sequence[str | bytes]

TABLES: Final[Session] = (
    "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4",
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, s VARCHAR(20))",
    "INSERT INTO tenant_1.t VALUES (1, 'a'), (2, 'a')",
)
NAMELESS: Final[Session] = (
    *("CREATE DATABASE tenant_2 CHARACTER SET utf8mb4", "USE tenant_2"),
    *("ALTER DATABASE CHARACTER SET latin1", "CREATE TABLE by_name (s TEXT)"),
    *("/* by comment */ ALTER SCHEMA -- of a line\n COLLATE = latin1_bin", "CREATE TABLE by_comment (s TEXT)"),
    *("USE tenant_1", "ALTER DATABASE tenant_2 COLLATE greek_bin", "CREATE TABLE tenant_2.named (s TEXT)"),
)
MISSING: Final[Session] = (
    *("USE tenant_1", "CREATE VIEW v AS SELECT 1 AS a", "CREATE TABLE gone (id INT)"),
    *("DROP VIEW v, nothing", "DROP TABLE gone, nothing"),
)
WIDE: Final = tuple(
    (
        f"SET collation_connection = {charset}_general_ci",
        f"CREATE TABLE tenant_1.{charset} (s VARCHAR(9) DEFAULT 'd')",
        BY_STATEMENT,
        f"INSERT INTO tenant_1.{charset} VALUES ('b'), (DEFAULT)",
    )
    for charset in ("utf16", "ucs2", "utf32")
)
DEFAULTS: Final[Session] = ("SET sql_mode = ''", "CREATE TABLE tenant_1.defaults (id INT, s TEXT DEFAULT '')")
GEOMETRIES: Final[Session] = (
    *("CREATE TABLE tenant_1.g (id INT PRIMARY KEY, g GEOMETRY, s TEXT)", BY_STATEMENT),
    *("SET @g = POINT(1, 2)", "INSERT INTO tenant_1.g VALUES (1, @g, ST_AsText(@g))"),
    "SET @g = ST_GeomFromText('LINESTRING(0 0, 1 1)', 4326)",
    "INSERT INTO tenant_1.g VALUES (2, @g, CONCAT(ST_AsText(@g), ' in ', ST_SRID(@g)))",
    "SET @g = ST_GeomFromText('GEOMETRYCOLLECTION(MULTIPOINT(1 1, 2 2), POLYGON((0 0, 1 0, 1 1, 0 0)))')",
    "INSERT INTO tenant_1.g VALUES (3, @g, ST_AsText(@g))",
)
NO_ROWS: Final[Session] = (
    *(BY_STATEMENT, "CREATE TABLE tenant_1.like_it AS SELECT * FROM tenant_1.t LIMIT 0"),
    "CREATE TABLE tenant_1.none AS SELECT * FROM tenant_1.t LIMIT 1, 0",
)
GRANTS: Final[Session] = (
    *("CREATE USER test_named@localhost", "SET NAMES latin1", b"CREATE DATABASE `tenant_\xe4`"),
    b"GRANT SELECT, INSERT ON `tenant_\xe4`.* TO test_named@localhost",
    b"REVOKE INSERT ON `tenant_\xe4`.* FROM test_named@localhost",
    *("SET NAMES gbk", b"CREATE DATABASE `tenant_\xd5\x5c`"),
    b"GRANT SELECT ON `tenant_\xd5\x5c`.* TO test_named@localhost",
)
BOTH: Final = (TABLES, NAMELESS, MISSING, *WIDE, DEFAULTS, GEOMETRIES, NO_ROWS, GRANTS)
REPLACED: Final = "CREATE OR REPLACE TABLE tenant_1.u (s CHAR PRIMARY KEY) SELECT s FROM tenant_1.t"
OF_MARIADB: Final = (
    ("USE tenant_1", "CREATE SEQUENCE seq", "DROP SEQUENCE seq, nothing"),
    ("CREATE TABLE tenant_1.u (id INT)", REPLACED),
)
FAILS: Final = ("DROP VIEW v, nothing", "DROP TABLE gone, nothing", "DROP SEQUENCE seq, nothing", REPLACED)


def run(server: PrivateServer, sessions: Sequence[Session]) -> None:
    """Each in a session of its own, in bytes."""
    for session in sessions:
        with contextlib.closing(server.connect(autocommit=True)) as connection:
            for sql in session:
                fails = pytest.raises(pymysql.err.MySQLError) if sql in FAILS else contextlib.nullcontext()
                with fails:
                    connection.query(sql if isinstance(sql, bytes) else sql.encode())


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_window_of_them_is_applied(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    run(channel.source, BOTH if family == "mysql" else (*BOTH, *OF_MARIADB))
    assert channel.run() is not None
    channel.assert_equal()
    for query in (
        "SELECT table_name, table_collation FROM information_schema.tables WHERE table_schema = 'tenant_2'",
        "SHOW TABLES FROM tenant_1",
        "SHOW GRANTS FOR test_named@localhost",
    ):
        assert sorted(channel.target.query(query)) == sorted(channel.source.query(query))
    made = {name for (name,) in channel.target.query("SHOW TABLES FROM tenant_1")}
    # MySQL drops all or nothing
    assert {"v", "gone", "seq", "u"} & made == (set() if family == "mariadb" else {"v", "gone"})
    grants = str(channel.target.query("SHOW GRANTS FOR test_named@localhost"))
    assert "`tenant_ä`" in grants
    assert "`tenant_誠`" in grants


@requires_mysql
def test_a_default_that_mysql_has_left_out_is_not_given_to_a_mariadb_column(
    channel_of: ChannelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of("mysql", "mariadb")
    run(channel.source, (("CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",), DEFAULTS))
    assert channel.cli("run", CHANNEL) == 1
    assert "MySQL has left the default out" in capsys.readouterr().err
    assert channel.target.query("SHOW DATABASES LIKE 'tenant%'") == []


def test_a_table_that_is_made_of_a_user_variable_gets_its_type(channel: Channel) -> None:
    made = {
        "a": "POINT(1, -2.5)",
        "b": "LINESTRING(POINT(0, 0), POINT(1, 1e300))",
        "c": "POLYGON(LINESTRING(POINT(0, 0), POINT(1, 0), POINT(1, 1), POINT(0, 0)))",
        "d": "MULTIPOINT(POINT(1, 1), POINT(2, 2))",
        "e": "MULTILINESTRING(LINESTRING(POINT(0, 0), POINT(1, 1)))",
        "f": "MULTIPOLYGON(POLYGON(LINESTRING(POINT(0, 0), POINT(1, 0), POINT(1, 1), POINT(0, 0))))",
        "g": "GEOMETRYCOLLECTION(POINT(1, 1), LINESTRING(POINT(0, 0), POINT(1, 1)))",
        "h": "ST_GeomFromText('POINT(1 1)', 4326)",
        "i": "12.50",
        "j": "1e0",
        "k": "_latin1'x' COLLATE latin1_bin",
        "l": "18446744073709551615",
    }
    run_on(channel.source, "SET SESSION binlog_format = MIXED", "CREATE DATABASE tenant_1")
    for name, value in made.items():
        mixed = "SET SESSION binlog_format = MIXED"
        run_on(channel.source, mixed, f"SET @v = {value}", f"CREATE TABLE tenant_1.{name} AS SELECT @v AS v")
    channel.run()
    channel.assert_equal()
