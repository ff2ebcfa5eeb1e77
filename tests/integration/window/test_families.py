"""From one family to the other: what the target cannot take or hold is named before anything is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, fresh_channel, run_on

pytestmark = requires_mysql
BOTH_WAYS = pytest.mark.parametrize("source", [Flavor.MARIADB, Flavor.MYSQL])
SHOP = "CREATE DATABASE tenant_1 CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
REFUSED = {
    Flavor.MARIADB: {
        "CREATE TABLE tenant_1.a (id INT PRIMARY KEY, j JSON)": "tenant_1.a.j: JSON column",
        "CREATE TABLE tenant_1.b (id UUID PRIMARY KEY, i INET6)": "tenant_1.b.i: INET6 column",
        "CREATE SEQUENCE tenant_1.s": "tenant_1.s: sequence",
        "CREATE TABLE tenant_1.c (id INT PRIMARY KEY) WITH SYSTEM VERSIONING": "tenant_1.c: system versioning",
        "CREATE OR REPLACE TABLE tenant_1.d (id INT PRIMARY KEY)": "tenant_1.d: OR REPLACE",
        "ALTER TABLE tenant_1.d ADD COLUMN IF NOT EXISTS x INT": "tenant_1.d: IF EXISTS",
        "CREATE TABLE tenant_1.e (id INT PRIMARY KEY) ENGINE=Aria": "tenant_1.e: storage engine aria",
        "CREATE TABLE tenant_1.f (id INT PRIMARY KEY, v VARCHAR(50) COMPRESSED)": "tenant_1.f: compressed column",
        "CREATE TABLE tenant_1.g (v CHAR(9) COLLATE utf8mb4_uca1400_ai_ci)":
            "tenant_1.g: collation utf8mb4_uca1400_ai_ci",
    },
    Flavor.MYSQL: {
        "CREATE TABLE tenant_1.a (id INT PRIMARY KEY, j JSON)": "tenant_1.a.j: JSON column",
        "CREATE TABLE tenant_1.b (id INT, KEY k ((id + 1)))": "tenant_1.b: functional key",
        "CREATE TABLE tenant_1.c (id INT, KEY k (id) INVISIBLE)": "tenant_1.c: invisible key",
        "CREATE TABLE tenant_1.d (p POINT NOT NULL SRID 4326)": "tenant_1.d: SRID",
        "CREATE TABLE tenant_1.e (v CHAR(9) COLLATE utf8mb4_0900_ai_ci)": "tenant_1.e: collation utf8mb4_0900_ai_ci",
        "CREATE TABLE tenant_1.f (v CHAR(9) CHARACTER SET gb18030)": "tenant_1.f: character set gb18030",
        "CREATE TABLE tenant_1.g (v VECTOR(3))": "tenant_1.g.v: VECTOR column",
        "CREATE USER test_1 IDENTIFIED BY 'Made-up-1'": "CREATE USER: authentication plugin caching_sha2_password",
    },
}  # fmt: skip


@pytest.fixture
def between(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None], source: Flavor
) -> Channel:
    target = Flavor.MYSQL if source is Flavor.MARIADB else Flavor.MARIADB
    servers = request.getfixturevalue(f"{source}_source"), request.getfixturevalue(f"{target}_target")
    return fresh_channel(*servers, tmp_path, clean_servers)


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


@BOTH_WAYS
def test_rows_of_a_type_that_the_other_family_cannot_hold_are_named_by_table_and_column(
    between: Channel, source: Flavor
) -> None:
    for server in (between.source, between.target):
        run_on(server, SHOP, "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, j JSON)", log=False)
    run_on(between.source, "INSERT INTO tenant_1.t VALUES (1, '{}')")

    said = refused(between)

    assert "tenant_1.t.j: type: expected json stored" in said
    assert "MySQL's JSON and MariaDB's are not the same bytes" in said
    if source is Flavor.MYSQL:
        assert "tenant_1.t, column 2: type, in the rows of seqno 1: expected a type that mariadb has" in said


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
