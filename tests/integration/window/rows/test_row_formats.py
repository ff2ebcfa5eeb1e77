"""Rows in every form that a source can be set to log them in: each ends on the target as it is on the source."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.errors import PrecheckError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, fresh_channel, run_on

TABLE = (
    "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, n INT, s VARCHAR(200), b BLOB, d JSON, UNIQUE (n))",
    "CREATE TABLE tenant_1.keyless (a INT, b VARCHAR(20))",
)
CHANGES = (
    *(
        f"INSERT INTO tenant_1.t VALUES ({n}, {-n}, REPEAT('text ', {n}), x'00ff', '{{\"a\": {n}}}')"
        for n in range(1, 25)
    ),
    "INSERT INTO tenant_1.keyless VALUES (1, 'same'), (1, 'same'), (2, NULL)",
    "UPDATE tenant_1.t SET n = NULL, s = 'other' WHERE id % 3 = 0",
    "UPDATE tenant_1.t SET b = REPEAT('b', 300) WHERE id % 4 = 0",
    "UPDATE tenant_1.keyless SET b = 'changed' LIMIT 1",
    "DELETE FROM tenant_1.t WHERE id % 5 = 0",
    "DELETE FROM tenant_1.keyless WHERE a = 1 LIMIT 1",
)


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def family(request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]) -> Channel:
    """A channel between two servers of one family, with two empty tables on both."""
    source, target = (request.getfixturevalue(f"{request.param}_{role}") for role in ("source", "target"))
    return with_tables(fresh_channel(source, target, tmp_path, clean_servers))


@pytest.fixture
def on_mysql(
    mysql_source: PrivateServer,
    mysql_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> Channel:
    """The same between MySQL servers alone."""
    return with_tables(fresh_channel(mysql_source, mysql_target, tmp_path, clean_servers))


def with_tables(channel: Channel) -> Channel:
    channel.on_both("CREATE DATABASE tenant_1", *TABLE)
    return channel


def assert_arrives(channel: Channel, *session: str, changes: tuple[str, ...] = CHANGES) -> None:
    """Run ``changes`` on the source in a session of these settings, then a window; both sides are equal then."""
    with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in (*session, *changes):
            cursor.execute(statement)
    done = channel.run()
    assert done is not None
    channel.assert_equal()


@contextlib.contextmanager
def global_settings(server: PrivateServer, **values: str) -> Iterator[None]:
    """Global variables of a server for a while."""
    before = {name: server.query(f"SELECT @@GLOBAL.{name}")[0][0] for name in values}
    for name, value in values.items():
        server.query(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        for name, value in before.items():
            server.query(f"SET GLOBAL {name} = %s", (value,))


@pytest.mark.parametrize("reduce", ["off", "block"])
@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_partial_row_images_arrive(family: Channel, image: str, reduce: str) -> None:
    family.write_channel(blocks=f'reduce = "{reduce}"\n')
    assert_arrives(family, f"SET SESSION binlog_row_image = {image}")


@pytest.mark.parametrize("reduce", ["off", "block"])
def test_compressed_transactions_and_events_arrive(family: Channel, reduce: str) -> None:
    family.write_channel(blocks=f'reduce = "{reduce}"\n')
    if family.source.flavor is Flavor.MYSQL:
        assert_arrives(family, "SET SESSION binlog_transaction_compression = ON")
    else:
        with global_settings(family.source, log_bin_compress="ON", log_bin_compress_min_len="10"):
            assert_arrives(family)
            assert_arrives(
                family, "SET SESSION binlog_format = STATEMENT", changes=("DELETE FROM tenant_1.t WHERE id % 2 = 0",)
            )


def test_the_source_changes_its_checksums_between_files(family: Channel) -> None:
    half = len(CHANGES) // 2
    with global_settings(family.source, binlog_checksum="NONE"):
        for statement in CHANGES[:half]:
            family.source.query(statement)
    assert_arrives(family, changes=CHANGES[half:])


def test_rows_with_and_without_full_metadata_arrive(family: Channel) -> None:
    with global_settings(family.source, binlog_row_metadata="FULL"):
        for statement in CHANGES[:10]:
            family.source.query(statement)
    with global_settings(family.source, binlog_row_metadata="MINIMAL"):
        assert_arrives(family, changes=CHANGES[10:])


@pytest.mark.parametrize("reduce", ["off", "block"])
def test_rows_written_without_checks_arrive(family: Channel, reduce: str) -> None:
    family.write_channel(blocks=f'reduce = "{reduce}"\n')
    family.source.query("CREATE TABLE tenant_1.parent (id INT PRIMARY KEY)")
    family.source.query(
        "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES tenant_1.parent (id))"
    )
    family.source.query("CREATE TABLE tenant_1.other LIKE tenant_1.parent")
    orphans = (
        "INSERT INTO tenant_1.child VALUES (1, 7), (2, 8)",
        "UPDATE tenant_1.child SET p = 9 WHERE id = 2",
        "BEGIN",
        "INSERT INTO tenant_1.other VALUES (1), (2), (3)",
        "UPDATE tenant_1.other SET id = 4 WHERE id = 1",
        "DELETE FROM tenant_1.other WHERE id = 2",
        "COMMIT",
    )
    assert_arrives(family, "SET SESSION foreign_key_checks = 0", "SET SESSION unique_checks = 0", changes=orphans)


@pytest.mark.parametrize("reduce", ["off", "block"])
def test_cascades_leave_what_they_left_on_the_source(family: Channel, reduce: str) -> None:
    family.write_channel(blocks=f'reduce = "{reduce}"\n')
    family.on_both(
        "CREATE TABLE tenant_1.parent (id INT PRIMARY KEY, n INT UNIQUE)",
        "CREATE TABLE tenant_1.child (id INT PRIMARY KEY, p INT, q INT, "
        "FOREIGN KEY (p) REFERENCES tenant_1.parent (id) ON DELETE CASCADE ON UPDATE CASCADE, "
        "FOREIGN KEY (q) REFERENCES tenant_1.parent (n) ON DELETE SET NULL ON UPDATE CASCADE)",
    )
    changes = (
        "INSERT INTO tenant_1.parent VALUES (1, 10), (2, 20), (3, 30), (4, 40)",
        "INSERT INTO tenant_1.child VALUES (1, 1, 20), (2, 2, 30), (3, 3, 40), (4, 4, 10), (5, 4, 40)",
        "UPDATE tenant_1.parent SET id = 14 WHERE id = 4",
        "UPDATE tenant_1.parent SET n = 31 WHERE n = 30",
        "DELETE FROM tenant_1.parent WHERE id = 1",
        "DELETE FROM tenant_1.parent WHERE id = 2",
    )
    assert_arrives(family, changes=changes)
    assert family.target.query("SELECT COUNT(*) FROM tenant_1.child") == [(3,)]


@pytest.mark.parametrize("reduce", ["off", "block"])
def test_json_differences_arrive(on_mysql: Channel, reduce: str) -> None:
    on_mysql.write_channel(blocks=f'reduce = "{reduce}"\n')
    inserts = [f'INSERT INTO tenant_1.t (id, d) VALUES ({n}, \'{{"a": {n}, "b": [1, 2, 3]}}\')' for n in range(1, 20)]
    updates = (
        "UPDATE tenant_1.t SET d = JSON_SET(d, '$.a', 'another') WHERE id % 2 = 0",
        "UPDATE tenant_1.t SET d = JSON_REMOVE(d, '$.b[1]'), s = 'both' WHERE id % 3 = 0",
        "UPDATE tenant_1.t SET d = JSON_REPLACE(d, '$.b[0]', NULL) WHERE id % 5 = 0",
    )
    assert_arrives(on_mysql, "SET SESSION binlog_row_value_options = PARTIAL_JSON", changes=(*inserts, *updates))


@requires_mysql
@pytest.mark.parametrize("reduce", ["off", "block"])
def test_json_differences_become_documents_on_mariadb(channel_of: ChannelOf, reduce: str) -> None:
    channel = channel_of("mysql", "mariadb")
    channel.write_channel(blocks=f'reduce = "{reduce}"\n')
    document = '{{"a": 1, "b": [1, [2, "x"], 3], "lang er": {{"ß": null}}, "padding": "a difference is shorter then"}}'
    inserts = f"INSERT INTO tenant_1.{{}} VALUES ({{}}, '{document}', '[1, 2]', 0)"
    updates = (
        "UPDATE tenant_1.{} SET d = JSON_SET(d, '$.a', CAST('2.50' AS DECIMAL(5,2)), '$.b[1][0]', 'ü') WHERE id < 8",
        "UPDATE tenant_1.{} SET d = JSON_SET(d, '$.bb', 1, '$.aaaa', 2, '$.c', NULL) WHERE id % 2 = 0",
        "UPDATE tenant_1.{} SET d = JSON_REMOVE(d, '$.b[0]', '$.a') WHERE id % 3 = 0",
        """UPDATE tenant_1.{} SET d = JSON_REPLACE(d, '$."lang er"."ß"', JSON_ARRAY(TRUE, 1e10)), n = 1 WHERE id < 6""",
        "UPDATE tenant_1.{} SET e = JSON_ARRAY_INSERT(e, '$[1]', JSON_OBJECT('k', 'v')) WHERE id > 2",
        "UPDATE tenant_1.{} SET e = JSON_ARRAY_APPEND(e, '$', 9), n = n + 1 WHERE id % 4 = 0",
        "UPDATE tenant_1.{} SET e = NULL WHERE id = 9",
        "UPDATE tenant_1.{} SET n = 7 WHERE id = 10",
    )
    run_on(
        channel.source,
        "CREATE DATABASE tenant_1 COLLATE utf8mb4_general_ci",
        "CREATE TABLE tenant_1.keyed (id INT PRIMARY KEY, d JSON, e JSON, n INT)",
        "CREATE TABLE tenant_1.loose (id INT, d JSON, e JSON, n INT)",
        "SET SESSION binlog_row_value_options = PARTIAL_JSON",
        *(inserts.format(table, number) for number in range(1, 12) for table in ("keyed", "loose")),
        *(update.format(table) for update in updates for table in ("keyed", "loose")),
    )
    logged = b"".join(file.read_bytes() for file in channel.source.datadir.glob("binlog.0*"))
    assert logged.count(b"$.b[1][0]") >= 2, "no difference was logged"
    assert channel.run() is not None
    for table in ("keyed", "loose"):
        query = f"SELECT id, CAST(d AS CHAR), CAST(e AS CHAR), n FROM tenant_1.{table} ORDER BY id"
        assert channel.target.query(query) == channel.source.query(query)


@requires_mysql
def test_json_differences_without_their_documents_are_refused_for_mariadb(channel_of: ChannelOf) -> None:
    channel = channel_of("mysql", "mariadb")
    with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in (
            "CREATE DATABASE tenant_1",
            "CREATE TABLE tenant_1.j (id INT PRIMARY KEY, d JSON)",
            "SET SESSION binlog_row_value_options = PARTIAL_JSON, binlog_row_image = MINIMAL",
            'INSERT INTO tenant_1.j VALUES (1, \'{"a": 1, "b": "a longer value, so that a difference is shorter"}\')',
            "UPDATE tenant_1.j SET d = JSON_SET(d, '$.a', 2)",
        ):
            cursor.execute(statement)
    with pytest.raises(Exception, match=r"PARTIAL_UPDATE_ROWS: .*PARTIAL_JSON and without the documents"):
        channel.run()
    assert channel.target.query("SHOW DATABASES LIKE 'tenant%%'") == []


def test_events_of_the_targets_own_server_id_are_applied(channel: Channel) -> None:
    with_tables(channel)
    number = channel.target.query("SELECT @@GLOBAL.server_id")[0][0]
    assert_arrives(channel, f"SET SESSION server_id = {number}")


def test_a_generated_primary_key_on_one_side_alone_is_named(on_mysql: Channel) -> None:
    channel = on_mysql
    with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_generate_invisible_primary_key = ON, sql_log_bin = 0")
        cursor.execute("CREATE TABLE tenant_1.g (a INT)")
        cursor.execute("SET SESSION sql_log_bin = 1")
        cursor.execute("INSERT INTO tenant_1.g VALUES (1)")
    with contextlib.closing(channel.target.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE tenant_1.g (a INT)")
    with pytest.raises(PrecheckError, match=r"tenant_1\.g.*my_row_id"):
        channel.run()
    assert channel.target.query("SELECT * FROM tenant_1.g") == []


@pytest.mark.parametrize(
    ("source", "target", "at"),
    [("mysql", "mariadb", "2026-02-01 00:00:00"), ("mariadb", "mysql", "2026-01-31 23:59:59")],
)
@requires_mysql
def test_fractions_of_statements_are_rounded_as_on_the_source(
    source: str, target: str, at: str, channel_of: ChannelOf
) -> None:
    channel = channel_of(source, target)
    with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        for statement in (
            "CREATE DATABASE tenant_1 COLLATE utf8mb4_general_ci",
            "CREATE TABLE tenant_1.f (id INT PRIMARY KEY, at DATETIME, t TIME)",
            "SET SESSION binlog_format = STATEMENT",
            "INSERT INTO tenant_1.f VALUES (1, '2026-01-31 23:59:59.6', '10:00:00.5')",
        ):
            cursor.execute(statement)
    assert channel.run() is not None
    assert channel.rows_of(channel.target) == channel.rows_of(channel.source)
    assert channel.target.query("SELECT CAST(at AS CHAR) FROM tenant_1.f") == [(at,)]
