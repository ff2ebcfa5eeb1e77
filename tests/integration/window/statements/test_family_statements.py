"""XA transactions, temporary tables and LOAD DATA from one family to the other, whichever writer writes rows."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from binlane.errors import PrecheckError, UnsupportedEventError
from binlane.model import Flavor
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, fresh_channel, run_on
from tests.integration.window.statements.test_load_data import file, load
from tests.integration.window.statements.test_temporary import life, session
from tests.integration.window.xa.test_xa import end, prepare

ENDS = ("source", "target")
CASES = [
    pytest.param(families, writer, id=f"{families[0]}-to-{families[1]}-{writer}", marks=requires_mysql)
    for families in (("mariadb", "mysql"), ("mysql", "mariadb"))
    for writer in ("binlog", "sql")
] + [
    pytest.param((name, name), "sql", id=f"{name}-sql", marks=[] if name == "mariadb" else requires_mysql)
    for name in map(str, Flavor)
]
EVERYWHERE = pytest.mark.parametrize(("families", "writer"), CASES)
TENANT = "CREATE DATABASE {} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
TABLE = "CREATE TABLE {}.t (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(80) CHARACTER SET latin1, n INT)"
ROWS = "INSERT INTO {}.t (v, n) VALUES ('one', 1), ('two', 2)"


@pytest.fixture
def across(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
    families: tuple[str, str],
    writer: str,
) -> Iterator[Channel]:
    """A channel whose target takes files, with two tenants in lanes of their own."""
    source, target = (request.getfixturevalue(f"{name}_{part}") for name, part in zip(families, ENDS, strict=True))
    for server in (source, target):
        server.query("SET GLOBAL local_infile = ON")
    channel = fresh_channel(source, target, tmp_path, clean_servers)
    channel.write_channel(f'writer = "{writer}"\n')
    channel.write_shard_list("tenant_1=0\ntenant_2=1\n")
    for name in ("tenant_1", "tenant_2"):
        run_on(source, TENANT.format(name), TABLE.format(name), ROWS.format(name))
    assert channel.run() is not None
    yield channel
    for server in (source, target):
        for row in server.query("XA RECOVER"):
            with contextlib.suppress(Exception):
                server.query(f"XA ROLLBACK '{row[3]}'")


def assert_same(channel: Channel) -> None:
    assert channel.rows_of(channel.target) == channel.rows_of(channel.source)
    assert channel.target.query("XA RECOVER") in ([], ())


@EVERYWHERE
def test_xa_transactions_in_one_window_and_over_two(across: Channel) -> None:
    prepare(across, "'one'", "UPDATE tenant_1.t SET n = 10 WHERE id = 1", "INSERT INTO tenant_1.t VALUES (9, 'xa', 9)")
    across.source.query("INSERT INTO tenant_2.t (v, n) VALUES ('between', 3)")
    prepare(across, "'two'", "DELETE FROM tenant_2.t WHERE id = 2", "INSERT INTO tenant_1.t VALUES (20, 'both', 1)")
    prepare(across, "'undone'", "DELETE FROM tenant_1.t WHERE id = 2")
    end(across, "XA COMMIT 'one'")
    assert across.run() is not None
    assert across.target.query("SELECT n FROM tenant_1.t WHERE id IN (1, 9) ORDER BY id") == [(10,), (9,)]
    end(across, "XA ROLLBACK 'undone'")
    end(across, "XA COMMIT 'two'")
    across.source.query("UPDATE tenant_1.t SET n = 21 WHERE id = 20")

    assert across.run() is not None

    assert_same(across)


@EVERYWHERE
def test_temporary_tables_of_statement_logs(across: Channel) -> None:
    with session(across) as one, session(across, "tenant_2") as other:
        life(one, "one")
        across.source.query("UPDATE tenant_1.t SET v = CONCAT(v, '!') WHERE id = 2")
        life(other, "other")
        one("INSERT INTO t (v, n) SELECT v, id FROM tmp ORDER BY id", "DROP TEMPORARY TABLE tmp")
        other("DROP TEMPORARY TABLE tmp")

    assert across.run() is not None

    assert_same(across)


@EVERYWHERE
def test_files_that_statements_load(across: Channel, tmp_path: Path) -> None:
    plain = file(tmp_path, "plain.csv", "11,é'\\,ü,1\n12,\\N,2\n".encode("latin-1"))
    into = "INTO TABLE t CHARACTER SET latin1 FIELDS TERMINATED BY ','"
    load(
        across,
        f"LOAD DATA LOCAL INFILE '{plain}' {into}",
        f"LOAD DATA INFILE '{plain}' REPLACE {into} (id, @s, n) SET v = CONCAT(@s, '!')",
    )

    assert across.run() is not None

    assert_same(across)
    assert across.target.query("SELECT HEX(v) FROM tenant_1.t WHERE id = 11") == [("E9272CFC21",)]


@requires_mysql
def test_syntax_of_mariadb_is_translated_for_a_mysql_target(channel_of: ChannelOf) -> None:
    channel = channel_of("mariadb", "mysql")
    run_on(
        channel.source,
        TENANT.format("tenant_1"),
        "CREATE TABLE tenant_1.t (id INT PRIMARY KEY, v VARCHAR(9), twice INT AS (id * 2) PERSISTENT)",
        "SET STATEMENT max_statement_time = 60 FOR CREATE TABLE tenant_1.said (id INT PRIMARY KEY, v VARCHAR(9))",
        "SET STATEMENT lock_wait_timeout = 9 FOR ALTER TABLE tenant_1.t ADD half INT AS (id) PERSISTENT",
        "SET SESSION binlog_format = STATEMENT",
        "SET STATEMENT time_zone = '+05:00' FOR INSERT INTO tenant_1.t (id, v) SELECT 1, HOUR(FROM_UNIXTIME(0))",
        "SET STATEMENT foreign_key_checks = 0, max_statement_time = 5 FOR INSERT INTO tenant_1.said (id) VALUES (1)",
    )

    assert channel.run() is not None

    assert_same(channel)
    assert channel.target.query("SELECT v, twice, half FROM tenant_1.t") == [("5", 2, 1)]


@requires_mysql
@pytest.mark.parametrize(
    "statement",
    [
        "SET STATEMENT default_storage_engine = 'MyISAM' FOR CREATE TABLE tenant_1.t (id INT PRIMARY KEY)",
        # its text was read with escapes, and a target would read it without
        "SET STATEMENT sql_mode = 'NO_BACKSLASH_ESCAPES' FOR CREATE TABLE tenant_1.t (v CHAR(9) DEFAULT '\\n')",
    ],
)
def test_a_variable_that_no_log_carries_stays_refused(channel_of: ChannelOf, statement: str) -> None:
    channel = channel_of("mariadb", "mysql")
    run_on(
        channel.source,
        TENANT.format("tenant_1"),
        statement,
    )
    with pytest.raises((PrecheckError, UnsupportedEventError), match="SET STATEMENT"):
        channel.run()


ANSWERS = (
    ("quotients", "UPDATE {}.t SET v = n / 7.1", "found / between the families"),
    (
        "documents",
        "INSERT INTO {}.t (v) VALUES (JSON_OBJECT('b', 1, 'a', 2))",
        r"JSON_OBJECT\(\) between the fam",
    ),
    (
        "patterns",
        "INSERT INTO {}.t (v) SELECT `regexp_substr`('abc', '[0-9]') FROM DUAL",
        r"REGEXP_SUBSTR\(\) bet",
    ),
    ("offsets", "UPDATE {}.t SET v = DATE('2024-02-29 00:30:00+02:00')", "found a time with an offset between"),
    ("quoted", 'UPDATE {}.t SET v = DATE("2024-02-29 00:30:00+02:00")', "found a time with an offset between"),
    ("axes", "UPDATE {}.t SET v = ST_X(ST_GeomFromText('POINT(1 2)', 4326))", r"ST_GEOMFROMTEXT\(\) between"),
    ("numbers", "UPDATE {}.t SET v = X'41' + 0", r"X'\.\.' as a number between"),
    ("triggers", "INSERT INTO {}.fires (v) VALUES ('x')", r"JSON_ARRAY\(\) between the families of trigger"),
)
"""Database, statement and what is said of it."""


@requires_mysql
@pytest.mark.parametrize("families", [("mariadb", "mysql"), ("mysql", "mariadb")], ids=lambda each: "-to-".join(each))
def test_statements_that_the_families_answer_otherwise_are_named_all_at_once(
    channel_of: ChannelOf, families: tuple[str, str]
) -> None:
    channel = channel_of(*families)
    for name, _, _ in ANSWERS:
        run_on(
            channel.source, TENANT.format(name), TABLE.format(name), ROWS.format(name),
            f"CREATE TABLE {name}.fires LIKE {name}.t",
        )  # fmt: skip
    run_on(
        channel.source,
        "CREATE TRIGGER triggers.made BEFORE INSERT ON triggers.fires FOR EACH ROW SET NEW.v = JSON_ARRAY(NEW.v, 1)",
    )
    assert channel.run() is not None
    with contextlib.closing(channel.source.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = STATEMENT, sql_mode = ''")
        for name, statement, _ in ANSWERS:
            cursor.execute(statement.format(name))
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    for _, _, said in ANSWERS:
        assert re.search(said, str(refused.value)) is not None, said
    document = "SELECT v FROM documents.t WHERE id > 2"
    assert channel.target.query(document) == []
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    values = {server.flavor: server.query(document)[0][0] for server in (channel.source, channel.target)}
    assert values == {Flavor.MYSQL: '{"a": 2, "b": 1}', Flavor.MARIADB: '{"b": 1, "a": 2}'}


COLUMNS = (
    ("quotient", "DOUBLE AS (n / 7.13)", "/"),
    ("document", "VARCHAR(80) AS (JSON_OBJECT('b', n, 'a', v))", r"JSON_OBJECT\(\)"),
    ("pattern", "VARCHAR(20) AS (REGEXP_SUBSTR(v, '[0-9]+'))", r"REGEXP_SUBSTR\(\)"),
)
"""Name, definition, and what of it the families answer otherwise."""


@requires_mysql
@pytest.mark.parametrize("families", [("mariadb", "mysql"), ("mysql", "mariadb")], ids=lambda each: "-to-".join(each))
@pytest.mark.parametrize("is_made", [True, False], ids=["made in the window", "there"])
def test_columns_that_the_families_compute_otherwise_are_named(
    channel_of: ChannelOf, families: tuple[str, str], is_made: bool
) -> None:
    channel = channel_of(*families)
    names = [f"{name}_{kind}" for kind in ("STORED", "VIRTUAL") for name, _, _ in COLUMNS]
    kinds = [f"{what} {kind}" for kind in ("STORED", "VIRTUAL") for _, what, _ in COLUMNS]
    columns = ", ".join(f"{name} {what}" for name, what in zip(names, kinds, strict=True))
    table = f"CREATE TABLE app.t (id INT PRIMARY KEY, n DECIMAL(10,3), v VARCHAR(40), {columns})"
    databases, row = TENANT.format("app"), "INSERT INTO app.t (id, n, v) VALUES (1, 12.345, 'abc')"
    if is_made:
        run_on(channel.source, databases, table, row)
    else:
        channel.on_both(databases, table)
        run_on(channel.source, row)
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    said = str(refused.value)
    if is_made:
        assert re.search(r"app\.t\.column that the window generates: expected what both families compute alike", said)
        return
    assert channel.target.query("SELECT * FROM app.t") == []
    # row events bring the stored values to MariaDB
    kind = "STORED" if families[1] == "mysql" else "VIRTUAL"
    for name, _, what in COLUMNS:
        assert re.search(rf"app\.t\.{name}_{kind}: expected what both .*, found {what} between the families", said)
    assert ("_STORED" in said) is (families[1] == "mysql")
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    ours, theirs = (server.query(f"SELECT quotient_{kind} FROM app.t") for server in (channel.source, channel.target))
    assert ours != theirs


@requires_mysql
@pytest.mark.parametrize("families", [("mariadb", "mysql"), ("mysql", "mariadb")], ids=lambda each: "-to-".join(each))
def test_columns_that_the_families_convert_otherwise_are_named(
    channel_of: ChannelOf, families: tuple[str, str]
) -> None:
    channel = channel_of(*families)
    table = "CREATE TABLE app.{} (id INT PRIMARY KEY, a VARCHAR(9), b DATETIME(3), c INT, d DATE)"
    channel.on_both(
        TENANT.format("app"), table.format("t"), "INSERT INTO app.t VALUES (1, '1', NOW(), 3, '2024-01-01')"
    )
    run_on(
        channel.source,
        "ALTER TABLE app.t ADD COLUMN e TEXT, MODIFY COLUMN a VARCHAR(20), CHANGE c c2 BIGINT, MODIFY d DATETIME",
        "ALTER TABLE app.t MODIFY a INT, CHANGE COLUMN b b2 DATE NULL",
        table.format("made"),
        "INSERT INTO app.made (id, c) VALUES (1, 20240101)",
        "ALTER TABLE app.made MODIFY c DATE",
        "ALTER TABLE app.t MODIFY e DECIMAL(10,2)",
    )
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    said = re.findall(r"app\.(\w+\.\w+): expected a change of type that .*, found (\w+ to \w+); ", str(refused.value))
    assert str(refused.value).count("[converted-columns]") == len(said)
    assert said == [
        ("t.a", "text to int"), ("t.b", "moment to date"), ("made.c", "whole to date"), ("t.e", "text to decimal"),
    ]  # fmt: skip
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None


@requires_mysql
@pytest.mark.parametrize("families", [("mariadb", "mysql"), ("mysql", "mariadb")], ids=lambda each: "-to-".join(each))
def test_columns_are_followed_through_the_statements_of_the_window(
    channel_of: ChannelOf, families: tuple[str, str]
) -> None:
    channel = channel_of(*families)
    made = "CREATE TABLE app.{} (id INT PRIMARY KEY, a VARCHAR(9), b DATETIME(3)) COLLATE utf8mb4_unicode_ci"
    row = "INSERT INTO app.{} VALUES (1, '7', '2024-01-01 23:59:59.9')"
    names = ("t", "u", "v", "w")
    channel.on_both(TENANT.format("app"), *map(made.format, names), *map(row.format, names))
    # the way of gh-ost and pt-online-schema-change: the table that is altered is empty
    online = (
        "CREATE TABLE app._t_gho LIKE app.t",
        "ALTER TABLE app._t_gho MODIFY a INT, MODIFY b DATE",
        "INSERT INTO app._t_gho SELECT id, a, '2024-01-01' FROM app.t",
        "RENAME TABLE app.t TO app._t_del, app._t_gho TO app.t",
        "ALTER TABLE app.t MODIFY a BIGINT",
    )
    renamed = (
        "RENAME TABLE app.u TO app.x, app.v TO app.u, app.x TO app.v",
        "ALTER TABLE app.u RENAME COLUMN a TO c, MODIFY b DATETIME, ADD (d INT, e DECIMAL(5, 2))",
        "ALTER TABLE app.u RENAME TO app.y, MODIFY c TEXT, MODIFY d BIGINT, MODIFY e DOUBLE",
        "ALTER TABLE app.y DROP COLUMN c, ADD c DATE, ADD f TEXT",
        "RENAME TABLE app.v TO app.v2",
        "CREATE TABLE IF NOT EXISTS app.v (id INT PRIMARY KEY, a DATE) COLLATE utf8mb4_unicode_ci",
        "INSERT INTO app.v VALUES (1, '2024-01-01')",
        "ALTER TABLE app.v MODIFY a DATETIME",
    )
    run_on(channel.source, *online, *renamed)
    assert channel.run() is not None
    for table in ("t", "_t_del", "v", "v2", "w", "y"):
        query = f"SELECT * FROM app.{table}"
        assert channel.target.query(query) == channel.source.query(query), table
    # statements of other tables are beside it
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "CREATE TABLE app._w_gho LIKE app.w",
        "INSERT INTO app.y (id) VALUES (2)",
        "ALTER TABLE app._w_gho MODIFY a INT",
        "SET SESSION binlog_format = ROW",
        "INSERT INTO app._w_gho SELECT * FROM app.w",
        "DROP TABLE app._w_gho",
    )
    assert channel.run() is not None
    refused_ones = (
        # rows are there before the table is altered
        "CREATE TABLE app._w_gho LIKE app.w",
        "INSERT INTO app._w_gho SELECT * FROM app.w",
        "ALTER TABLE app._w_gho MODIFY a INT",
        "RENAME TABLE app._w_gho TO app.z",
        "ALTER TABLE app.z MODIFY a DECIMAL(4), CHANGE b a2 DATE",
        "DROP TABLE app.w",
        made.format("w").replace("VARCHAR(9)", "INT"),
        "INSERT INTO app.w VALUES (1, 7, NOW())",
        "ALTER TABLE app.w MODIFY a DATE",
        # a table of another definition is there
        "CREATE TABLE IF NOT EXISTS app.v2 (b DATE)",
        "ALTER TABLE app.v2 MODIFY b DATE",
    )
    run_on(channel.source, "SET sql_mode = ''", *refused_ones)
    with pytest.raises(PrecheckError) as refused:
        channel.run()
    said = re.findall(r"app\.(\w+\.\w+): expected a change of type that .*, found (\w+ to \w+); ", str(refused.value))
    assert set(said) == {
        ("_w_gho.a", "text to int"), ("z.b", "moment to date"), ("w.a", "whole to date"), ("v2.b", "moment to date"),
    }  # fmt: skip
    channel.write_channel("allow_unsafe = true\n")
    assert channel.run() is not None
    channel.write_channel()
    run_on(
        channel.source,
        "SET SESSION binlog_format = STATEMENT",
        "CREATE TABLE app._v_gho LIKE app.v2",
        "INSERT INTO app._v_gho (id, a) VALUES (1, '13')",
        "ALTER TABLE app._v_gho MODIFY a INT",
    )
    with pytest.raises(PrecheckError, match=r"app\._v_gho\.a: .* found text to int; "):
        channel.run()
