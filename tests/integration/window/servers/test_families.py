"""From one family to the other: what the target cannot take or hold is named before anything is written."""

from __future__ import annotations

import json

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from binlane.orchestration.commands.verify import verify_channel
from binlane.verify.outcome import Options
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

pytestmark = requires_mysql
BOTH_WAYS = pytest.mark.parametrize("source", [Flavor.MARIADB, Flavor.MYSQL])
SHOP = "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
REFUSED = {
    Flavor.MARIADB: {
        "CREATE TABLE tenant_1.b (id UUID PRIMARY KEY, i INET6)": "tenant_1.b.i: INET6 column",
        "CREATE SEQUENCE tenant_1.s": "tenant_1.s: sequence",
        "CREATE TABLE tenant_1.c (id INT PRIMARY KEY) WITH SYSTEM VERSIONING": "tenant_1.c: system versioning",
        "CREATE OR REPLACE TABLE tenant_1.d (id INT PRIMARY KEY)": "tenant_1.d: OR REPLACE",
        "ALTER TABLE tenant_1.d ADD COLUMN IF NOT EXISTS x INT": "tenant_1.d: IF EXISTS",
        "CREATE TABLE tenant_1.e (id INT PRIMARY KEY) ENGINE=Aria": "tenant_1.e: storage engine aria",
        "CREATE TABLE tenant_1.g (v CHAR(9) COLLATE utf8mb4_uca1400_ai_ci)":
            "tenant_1.g: collation utf8mb4_uca1400_ai_ci",
        "CREATE TABLE tenant_1.h (id INT, j JSON DEFAULT '{}')": "tenant_1.h: default of a BLOB, TEXT or JSON column",
    },
    Flavor.MYSQL: {
        "CREATE TABLE tenant_1.b (id INT, KEY k ((id + 1)))": "tenant_1.b: functional key",
        "CREATE TABLE tenant_1.c (id INT, KEY k (id) INVISIBLE)": "tenant_1.c: invisible key",
        "CREATE TABLE tenant_1.d (p POINT NOT NULL SRID 4326)": "tenant_1.d: SRID",
        "CREATE TABLE tenant_1.e (v CHAR(9) COLLATE utf8mb4_0900_ai_ci)": "tenant_1.e: collation utf8mb4_0900_ai_ci",
        "CREATE TABLE tenant_1.f (v CHAR(9) CHARACTER SET gb18030)": "tenant_1.f: character set gb18030",
        "CREATE TABLE tenant_1.g (v VECTOR(3))": "tenant_1.g.v: VECTOR column",
        "CREATE TABLE tenant_1.h (j JSON, n INT AS (j->'$.n') STORED)": "tenant_1.h: JSON operator ->",
        "CREATE VIEW tenant_1.i AS SELECT CAST('1' AS JSON) AS j": "tenant_1.i: CAST AS JSON",
        "CREATE USER test_1 IDENTIFIED BY 'Made-up-1'": "CREATE USER: authentication plugin caching_sha2_password",
    },
}  # fmt: skip


@pytest.fixture
def between(channel_of: ChannelOf, source: Flavor) -> Channel:
    target = Flavor.MYSQL if source is Flavor.MARIADB else Flavor.MARIADB
    return channel_of(source, target)


def refused(channel: Channel) -> str:
    with pytest.raises(PrecheckError) as error:
        channel.run()
    assert channel.status.window is not None
    assert channel.status.window.plan_digest is None
    return str(error.value)


@BOTH_WAYS
def test_statements_that_the_other_family_does_not_take_are_named_all_at_once(between: Channel, source: Flavor) -> None:
    run_on(between.source, SHOP, *REFUSED[source])

    said = refused(between)

    lines = said.splitlines()[1:]
    for named in REFUSED[source].values():
        assert [line for line in lines if line.startswith(f"{named}")], (named, said)
    assert between.target.query("SHOW DATABASES LIKE 'tenant_1'") in ([], ())


DOCUMENTS = (
    '{"b": [1, 2.5, -3, 1e100, true, null], "aa": "ß😀", "a": {"": "x\\"y"}}',
    "[]", '"text"', "18446744073709551615", "-9223372036854775808", "12.50", "null", "{}",
)  # fmt: skip
BY_VALUE = "SELECT id, CAST(j AS CHAR CHARACTER SET utf8mb4), n, said FROM tenant_1.{} ORDER BY id, n"


def documents(server: PrivateServer, table: str) -> list[tuple[object, ...]]:
    """The rows, JSON by its value."""
    return [
        (row[0], json.dumps(None if row[1] is None else [json.loads(row[1])], sort_keys=True), *row[2:])
        for row in server.query(BY_VALUE.format(table))
    ]


def verified(channel: Channel) -> list[tuple[str, tuple[str, ...]]]:
    """Tables and columns that a full verification finds to differ."""
    found = verify_channel(channel.config, channel.endpoints, Options(full=True))
    return sorted((one.table.table, one.columns) for one in found.suspects)


def write_documents(server: PrivateServer, table: str) -> None:
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO tenant_1.{table} VALUES (0, NULL, 0, 'none')")
        for number, text in enumerate(DOCUMENTS, start=1):
            cursor.execute(f"INSERT INTO tenant_1.{table} VALUES (%s, %s, 0, 'ß')", (number, text))
        cursor.execute(f"UPDATE tenant_1.{table} SET j = '[1, {{}}]' WHERE id IN (0, 2)")
        cursor.execute(f"UPDATE tenant_1.{table} SET n = n + 1 WHERE id < 5")
        cursor.execute("INSERT INTO tenant_1.plain VALUES (%s, 'x')", (("keyed", "loose", "made").index(table),))
        cursor.execute(f"DELETE FROM tenant_1.{table} WHERE id IN (3, 7)")


@BOTH_WAYS
@pytest.mark.parametrize("reduce", ["off", "block"])
@pytest.mark.parametrize("writer", ["binlog", "sql"])
def test_json_is_the_same_value_in_the_other_family(between: Channel, source: Flavor, reduce: str, writer: str) -> None:
    between.write_channel(f'writer = "{writer}"\n', blocks=f'reduce = "{reduce}"\n')
    columns = "(id INT{}, j JSON, n INT, said VARCHAR(9))"
    tables = (
        SHOP,
        f"CREATE TABLE tenant_1.keyed {columns.format(' PRIMARY KEY')}",
        f"CREATE TABLE tenant_1.loose {columns.format('')}",
        "CREATE TABLE tenant_1.plain (id INT PRIMARY KEY, said LONGTEXT)",
    )
    for server in (between.source, between.target):
        run_on(server, *tables, log=False)
    for table in ("keyed", "loose"):
        write_documents(between.source, table)
    run_on(between.source, f"CREATE TABLE tenant_1.made {columns.format(' PRIMARY KEY')}")
    write_documents(between.source, "made")
    run_on(
        between.source,
        "UPDATE tenant_1.keyed k JOIN tenant_1.plain p SET k.n = 9, p.said = 'both'",
    )

    assert between.run() is not None

    for table in ("keyed", "loose", "made"):
        assert documents(between.target, table) == documents(between.source, table)
        assert len(documents(between.target, table)) == len(DOCUMENTS) - 1
    assert verified(between) == []
    run_on(between.target, "UPDATE tenant_1.keyed SET j = '[1, {}, 2]' WHERE id = 0", log=False)
    run_on(between.target, "UPDATE tenant_1.loose SET j = '[1, {}, 2]' WHERE id = 0", log=False)
    assert verified(between) == [("keyed", ("j",)), ("loose", ()), ("loose", ())]
    assert between.target.query("SELECT * FROM tenant_1.plain") == between.source.query("SELECT * FROM tenant_1.plain")


@pytest.mark.parametrize("source", [Flavor.MYSQL])
def test_json_of_mysql_arrives_as_mysql_spells_it(between: Channel) -> None:
    for server in (between.source, between.target):
        run_on(server, SHOP, "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, j JSON)", log=False)
    values = (
        "JSON_OBJECT('d', CAST('2026-01-02 03:04:05.6' AS DATETIME(6)), 't', CAST('-10:00:01' AS TIME(6)))",
        "JSON_ARRAY(CAST(1.50 AS DECIMAL(9,2)), x'00ff', 1.0, 1e300, CAST('2026-01-02' AS DATE))",
    )
    for number, value in enumerate(values):
        run_on(between.source, f"INSERT INTO tenant_1.t VALUES ({number}, {value})")

    assert between.run() is not None

    query = "SELECT id, CAST(j AS CHAR) FROM tenant_1.t ORDER BY id"
    assert between.target.query(query) == between.source.query(query)


PACKED = (
    "(id INT{}, v VARCHAR(300) CHARACTER SET latin1{c} DEFAULT 'é', t TEXT{c}, b BLOB{c}, "
    "vb VARBINARY(300){c} NOT NULL DEFAULT '', m MEDIUMTEXT COLLATE utf8mb4_bin{c}, n INT) ROW_FORMAT=COMPRESSED"
)
CHANGED = (
    "INSERT INTO tenant_1.{} (id, vb) VALUES (1, '')",
    "INSERT INTO tenant_1.{} VALUES (2, REPEAT('é', 300), REPEAT('ß€', 900), REPEAT(X'00ff27', 3000), X'ff', "
    "'\\\\', 1), (3, '', '', '', 'a', NULL, 2), (4, NULL, 'short', X'00', X'00', REPEAT('long ', 40000), 3), "
    "(5, 'x', 'x', 'x', 'x', 'x', 4)",
    "UPDATE tenant_1.{} SET n = 9 WHERE id IN (2, 4)",
    "UPDATE tenant_1.{} SET t = REPEAT('other ', 500), v = NULL WHERE id < 3",
    "UPDATE tenant_1.{} SET b = CONCAT(b, X'01'), m = CONCAT('a', m) WHERE id = 4",
    "DELETE FROM tenant_1.{} WHERE id = 5",
)


@pytest.mark.parametrize("source", [Flavor.MARIADB])
@pytest.mark.parametrize("image", ["FULL", "MINIMAL"])
@pytest.mark.parametrize(
    ("reduce", "writer"), [("off", "binlog"), ("block", "binlog"), ("window", "binlog"), ("off", "sql")]
)
def test_compressed_columns_arrive_decompressed(
    between: Channel, source: Flavor, image: str, reduce: str, writer: str
) -> None:
    between.write_channel(f'writer = "{writer}"\n', blocks=f'reduce = "{reduce}"\n')
    for server, compressed in ((between.source, " COMPRESSED"), (between.target, "")):
        run_on(
            server,
            SHOP,
            f"CREATE TABLE tenant_1.keyed {PACKED.format(' PRIMARY KEY', c=compressed)}",
            f"CREATE TABLE tenant_1.loose {PACKED.format('', c=compressed)}",
            "CREATE TABLE tenant_1.plain (id INT PRIMARY KEY, said TEXT)",
            log=False,
        )
    run_on(
        between.source,
        f"SET SESSION binlog_row_image = {image}",
        f"CREATE TABLE tenant_1.made {PACKED.format(' PRIMARY KEY', c=' COMPRESSED=zlib')}",
        *(change.format(table) for change in CHANGED for table in ("keyed", "loose", "made")),
        "INSERT INTO tenant_1.plain VALUES (1, 'x')",
        "UPDATE tenant_1.plain p JOIN tenant_1.keyed k SET p.said = 'both', k.n = k.n + 1",
        "ALTER TABLE tenant_1.made ADD compressed TEXT COMPRESSED NOT NULL, DROP b, "
        "ADD e VARCHAR(9) COMPRESSED NOT NULL",
        "UPDATE tenant_1.made SET compressed = REPEAT('c', 999) WHERE id > 2",
        "INSERT INTO tenant_1.made (id) VALUES (6)",
        "CREATE TABLE tenant_1.filled ENGINE=InnoDB SELECT id, t AS t FROM tenant_1.keyed",
    )

    assert between.run() is not None

    assert between.rows_of(between.source) == between.rows_of(between.target)
    counts = [between.target.query(f"SELECT COUNT(*) FROM tenant_1.{table}") for table in ("keyed", "loose", "made")]
    assert counts == [[(4,)], [(4,)], [(5,)]]
    assert verified(between) == []


@BOTH_WAYS
def test_triggers_on_a_table_with_json_are_refused_because_statements_would_fire_them(
    between: Channel, source: Flavor
) -> None:
    for server in (between.source, between.target):
        run_on(server, SHOP, "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, j JSON)", log=False)
    run_on(between.target, "CREATE TRIGGER tenant_1.x BEFORE INSERT ON tenant_1.t FOR EACH ROW SET @a = 1", log=False)
    run_on(between.source, "INSERT INTO tenant_1.t VALUES (1, '{}')")

    assert "tenant_1.t: triggers: expected none under the SQL writer, found x" in refused(between)


@BOTH_WAYS
def test_triggers_that_the_window_makes_stop_rows_that_would_fire_them(between: Channel, source: Flavor) -> None:
    run_on(
        between.source,
        SHOP,
        "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, j JSON)",
        "CREATE TRIGGER tenant_1.x BEFORE INSERT ON tenant_1.t FOR EACH ROW SET NEW.id = NEW.id + 1",
        "INSERT INTO tenant_1.t VALUES (1, '{}')",
    )

    assert "expected no trigger on tenant_1.t, whose rows statements write, found rows of it at seqno " in refused(
        between
    )
    assert between.target.query("SHOW DATABASES LIKE 'tenant_1'") in ([], ())


@BOTH_WAYS
def test_json_for_a_column_that_is_none_is_named(between: Channel, source: Flavor) -> None:
    for server, kind in ((between.source, "JSON"), (between.target, "LONGTEXT")):
        run_on(server, SHOP, f"CREATE TABLE tenant_1.t (id INT PRIMARY KEY, j {kind})", log=False)
    run_on(between.source, "INSERT INTO tenant_1.t VALUES (1, '{}')")

    assert "tenant_1.t.j: type: expected json, found longtext" in refused(between)


@BOTH_WAYS
@pytest.mark.parametrize("reduce", ["off", "block"])
def test_geometries_and_every_other_type_of_both_arrive_as_they_were(
    between: Channel, source: Flavor, reduce: str
) -> None:
    between.write_channel(blocks=f'reduce = "{reduce}"\n')
    definition = (
        "CREATE TABLE tenant_1.t (id BIGINT UNSIGNED PRIMARY KEY, g GEOMETRY, p POINT, b BIT(9), s SET('x','y'), "
        "ti TIME(3), ts TIMESTAMP(6) NULL, y YEAR, da DATE, c CHAR(20) CHARACTER SET latin1, vb VARBINARY(300), "
        "t TEXT CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci, d DECIMAL(40,10), f FLOAT, l LONGBLOB, "
        "u CHAR(9) CHARACTER SET ucs2)"
    )
    for server in (between.source, between.target):
        run_on(server, SHOP, definition, log=False)
    values = (
        "({0}, ST_GeomFromText('LINESTRING(1 2,3 4)'), ST_GeomFromText('POINT(5 6)'), b'101', 'x,y', '-12:30:01.500', "
        "'2026-01-02 03:04:05.678901', 2026, '2026-02-03', 'é', x'00ff', 'ß', -12345678901234567890.5, 1.5, x'01', 'Ж')"
    )
    for number in range(12):
        run_on(between.source, f"INSERT INTO tenant_1.t VALUES {values.format(number)}")
    run_on(between.source, "UPDATE tenant_1.t SET p = ST_GeomFromText('POINT(7 8)') WHERE id % 2 = 0")
    assert between.run() is not None
    assert between.rows_of(between.source) == between.rows_of(between.target)
    assert between.target.query("SELECT COUNT(*) FROM tenant_1.t") == [(12,)]
