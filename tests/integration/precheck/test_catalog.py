"""Real catalogues of both families, read, compared, and held against real TABLE_MAPs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from sqlalchemy import create_engine, event, text

from binlane.binlog.table_map import TableMap
from binlane.binlog.wire import HEADER, MAGIC, EventType
from binlane.model import Flavor, TableKey
from binlane.schema.codec import schema_from_json, schema_to_json
from binlane.schema.compare import Severity, compare, compare_schemas, rules_for
from binlane.schema.logged import compare_logged_key, compare_table_map
from binlane.schema.model import Column, Generated, Schema, Trigger, why_not_reduced
from binlane.servers import catalog
from binlane.servers.catalog import TableReader, read_schema
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.precheck.helpers import connected, run, schema_of

ALL = TableKey("shop", "all_types")
ALL_TYPES = r"""
CREATE TABLE shop.all_types (id BIGINT PRIMARY KEY AUTO_INCREMENT, g GEOMETRY, p POINT,
 i1 TINYINT, i1u TINYINT UNSIGNED, b BOOL, i2 SMALLINT, i3 MEDIUMINT, i4 INT(5) UNSIGNED ZEROFILL, i8 BIGINT NOT NULL
 DEFAULT 7, d DECIMAL(20,6) UNSIGNED, f FLOAT, f2 FLOAT(7,3), f8 DOUBLE, bits BIT(9) DEFAULT b'101',
 da DATE, t TIME(3), dt DATETIME, dt6 DATETIME(6) DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
 ts TIMESTAMP NULL DEFAULT NULL, ts2 TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, y YEAR,
 c CHAR(10) DEFAULT 'a''b', cl CHAR(255), c1 CHAR(10) CHARACTER SET latin1, v VARCHAR(100) CHARACTER SET utf8mb3
 COLLATE utf8mb3_bin, vd VARCHAR(4) DEFAULT 'NULL', bi BINARY(4), vb VARBINARY(300) DEFAULT 'x',
 x1 TINYTEXT, x2 TEXT, x3 MEDIUMTEXT, x4 LONGTEXT, l1 TINYBLOB, l2 BLOB, l3 MEDIUMBLOB, l4 LONGBLOB,
 e ENUM('b','a','it''s','x,y','é','a\\b'), s SET('s1','s2'), j JSON,
 gv INT GENERATED ALWAYS AS (i1 + 1) VIRTUAL, gs VARCHAR(30) GENERATED ALWAYS AS (CONCAT(v, 'x')) STORED,
 UNIQUE u (c, x2(10)), KEY k (i8), FULLTEXT ft (x2)
) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci
"""
MYSQL_ONLY = (
    "CREATE TABLE shop.vectors (id INT PRIMARY KEY, v VECTOR(3), a VARCHAR(9) CHARACTER SET latin1, "
    "b TEXT CHARACTER SET cp1251)",
)
MARIADB_ONLY = (
    "CREATE TABLE shop.versioned (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
    "CREATE TABLE shop.versions_shown (id INT PRIMARY KEY, s TIMESTAMP(6) GENERATED ALWAYS AS ROW START,"
    " e TIMESTAMP(6) GENERATED ALWAYS AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING",
    "CREATE TABLE shop.overlaps (id INT PRIMARY KEY, a INT, s DATE, e DATE, PERIOD FOR p (s, e),"
    " UNIQUE (a, p WITHOUT OVERLAPS))",
    "CREATE TABLE shop.hashed (id INT PRIMARY KEY, b BLOB, UNIQUE (b))",
    "CREATE TABLE shop.packed (id INT PRIMARY KEY, v VARCHAR(200) COMPRESSED, t TEXT COMPRESSED)",
    "CREATE TABLE shop.named (id UUID PRIMARY KEY, a INET6, b INET4)",
    "CREATE TABLE shop.places (id INT PRIMARY KEY, g GEOMETRY, a CHAR(3) CHARACTER SET latin1, p POINT, u UUID,"
    " b VARCHAR(9) COLLATE utf8mb4_bin, i INET6, e ENUM('x') CHARACTER SET cp1251, x BLOB, c TEXT CHARACTER SET ucs2)",
    "CREATE SEQUENCE shop.numbers",
)


def columns(schema: Schema, table: TableKey = ALL) -> dict[str, Column]:
    return {column.name: column for column in schema.tables[table].columns}


def created(server: PrivateServer, *statements: str) -> Schema:
    run(server, "DROP DATABASE IF EXISTS shop", "CREATE DATABASE shop CHARACTER SET utf8mb4", *statements)
    return schema_of(server)


def test_one_create_table_gives_one_schema_on_one_family(server: PrivateServer) -> None:
    first = created(server, ALL_TYPES)
    shown = server.query("SHOW CREATE TABLE shop.all_types")[0][1].replace("`all_types`", "shop.all_types", 1)
    second = created(server, shown)

    assert compare_schemas(first, second, [ALL], rules_for(first, second)) == ()
    assert schema_from_json(schema_to_json(first)) == first


def test_one_create_table_makes_a_table_for_the_other_family_s_rows(
    mariadb_target: PrivateServer, mysql_target: PrivateServer
) -> None:
    ours, theirs = created(mysql_target, ALL_TYPES), created(mariadb_target, ALL_TYPES)
    for source, target in ((ours, theirs), (theirs, ours)):
        rules = rules_for(source, target, complete_images=False)
        # JSON has other bytes there: rows with it are written by statements
        assert [(one.severity, one.column, one.what) for one in compare_schemas(source, target, [ALL], rules)] == []


def test_the_catalogue_says_what_was_declared(server: PrivateServer) -> None:
    found = columns(created(server, ALL_TYPES))

    assert found["e"].members == ("b", "a", "it's", "x,y", "é", "a\\b")
    assert (found["i1u"].unsigned, found["i1"].unsigned) == (True, False)
    assert (found["d"].precision, found["d"].scale) == (20, 6)
    assert (found["cl"].length, found["cl"].octets) == (255, 1020)
    assert (found["v"].charset, found["v"].collation) == ("utf8mb3", "utf8mb3_bin")
    assert (found["c"].default, found["vd"].default, found["vb"].default) == ("'a''b'", "'NULL'", "'x'")
    assert (found["dt6"].default, found["dt6"].on_update, found["ts2"].on_update) == (
        "current_timestamp(6)",
        True,
        False,
    )
    assert (found["gv"].generated, found["gs"].generated) == (Generated.VIRTUAL, Generated.STORED)
    assert (found["id"].auto_increment, found["id"].nullable, found["i1"].nullable) == (True, False, True)
    assert found["j"].data_type == "json"


def test_the_tables_of_a_small_database_are_read_together(
    server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = created(server, ALL_TYPES, "CREATE TABLE shop.plain (id INT PRIMARY KEY)")
    with connected(server) as connection:
        reader = TableReader(connection)
        together = reader.read_database("shop")
        assert together == schema.tables == {key: reader.read(key) for key in together}
        monkeypatch.setattr(catalog, "_READ_TOGETHER", 1)
        assert reader.read_database("shop") == {}


def test_a_lanes_definitions_are_read_while_its_transaction_has_written_a_sequence(
    mariadb_target: PrivateServer, clean_databases: Callable[[PrivateServer], None]
) -> None:
    """MariaDB locks the sequence as for a DDL until COMMIT, and opens all tables of the server to list foreign keys of
    children in other databases."""
    clean_databases(mariadb_target)
    for statement in (
        *("CREATE DATABASE shop", "CREATE DATABASE other", "CREATE SEQUENCE other.s"),
        *("CREATE TABLE other.p (id INT PRIMARY KEY)", "CREATE TABLE shop.p (id INT PRIMARY KEY)"),
        "CREATE TABLE shop.c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES shop.p (id))",
    ):
        mariadb_target.query(statement)
    with mariadb_target.connect() as lane, lane.cursor() as cursor, connected(mariadb_target) as connection:
        cursor.execute("INSERT INTO other.s VALUES (1, 1, 9223372036854775806, 1, 1, 1000, 0, 0)")
        connection.exec_driver_sql("SET SESSION max_statement_time = 30")
        reader = TableReader(connection)
        assert reader.read_databases(["other"]) == {}
        together = reader.read_databases(["shop"])
        assert together.keys() == {TableKey("shop", "p"), TableKey("shop", "c")}
        assert [foreign.parent.table for foreign in together[TableKey("shop", "c")].foreign_keys] == ["p"]
        found = reader.read(TableKey("other", "p"))
        assert found is not None
        assert found.primary_key is not None
        lane.rollback()


SILENT = [
    pytest.param("a INT, b INT", "b INT, a INT", "name of column 2", id="swapped"),
    pytest.param("e ENUM('x','y')", "e ENUM('y','x')", "members", id="enum-order"),
    pytest.param("a INT UNSIGNED", "a INT", "sign", id="sign"),
    pytest.param("a CHAR(3) CHARACTER SET latin1", "a CHAR(3) CHARACTER SET cp1251", "character set", id="charset"),
    pytest.param("a CHAR(3) COLLATE utf8mb4_bin", "a CHAR(3) COLLATE utf8mb4_general_ci", "collation", id="collation"),
    pytest.param("a INT, b INT", "a INT", "columns", id="fewer"),
    pytest.param("a INT", "a INT, b INT NOT NULL", "columns", id="more"),
    pytest.param("a INT", "a INT NOT NULL", "nullability", id="null"),
    pytest.param("a INT", "a INT GENERATED ALWAYS AS (id + 1) STORED", "generated", id="generated"),
    pytest.param("a VARCHAR(10)", "a VARCHAR(11)", "type", id="length"),
]


@pytest.mark.parametrize(("ours", "theirs", "what"), SILENT)
def test_a_silent_mismatch_on_a_real_server_is_fatal(server: PrivateServer, ours: str, theirs: str, what: str) -> None:
    both = created(
        server,
        f"CREATE TABLE shop.ours (id INT PRIMARY KEY, {ours}) CHARACTER SET utf8mb4",
        f"CREATE TABLE shop.theirs (id INT PRIMARY KEY, {theirs}) CHARACTER SET utf8mb4",
    )
    source, target = (both.tables[TableKey("shop", name)] for name in ("ours", "theirs"))

    differences = compare(source, target, rules_for(both, both))

    assert what in [one.what for one in differences if one.severity is Severity.FATAL]


def test_partitions_keys_views_routines_and_events_are_read(server: PrivateServer) -> None:
    run(server, "CREATE DATABASE crm")
    schema = created(
        server,
        "CREATE TABLE shop.p (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
        "CREATE TABLE shop.parent (id INT PRIMARY KEY) ENGINE=InnoDB",
        "CREATE TABLE crm.child (id INT PRIMARY KEY, a INT, FOREIGN KEY (a) REFERENCES shop.parent (id)"
        " ON DELETE CASCADE ON UPDATE NO ACTION)",
        "CREATE TABLE shop.plain (id INT, KEY (id)) ENGINE=MyISAM",
        "CREATE VIEW shop.v AS SELECT * FROM shop.p",
        "CREATE TRIGGER shop.t BEFORE INSERT ON shop.plain FOR EACH ROW SET NEW.id = 1",
        "CREATE PROCEDURE shop.q() SELECT 1",
        "CREATE EVENT shop.on_ ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "CREATE EVENT shop.off_ ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1",
    )
    child, parent = TableKey("crm", "child"), TableKey("shop", "parent")

    assert schema.databases == {"crm", "shop"}
    assert schema.tables[TableKey("shop", "plain")].engine == "MyISAM"
    assert schema.tables[TableKey("shop", "plain")].triggers == (Trigger("t", "BEFORE", "INSERT"),)
    assert schema.views == {TableKey("shop", "v")}
    assert schema.routines == {("shop", "q")}
    assert schema.events == {("shop", "on_")}
    assert schema.references == {(child, parent)}
    (reference,) = schema.tables[child].foreign_keys
    assert (reference.parent, reference.on_delete, reference.on_update) == (parent, "CASCADE", "RESTRICT")
    assert {"utf8mb4_bin", "latin1_swedish_ci"} <= schema.collations
    assert schema.max_allowed_packet is not None


def test_foreign_keys_from_databases_outside_are_seen(server: PrivateServer) -> None:
    created(server, "CREATE TABLE shop.parent (id INT PRIMARY KEY)")
    run(
        server,
        "CREATE DATABASE crm",
        "CREATE TABLE crm.c (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES shop.parent (id))",
    )
    with connected(server) as connection:
        schema = read_schema(connection, {"shop", "absent"})

    assert schema.databases == {"shop"}
    assert set(schema.tables) == {TableKey("shop", "parent")}
    assert why_not_reduced(schema, TableKey("shop", "parent")) is not None


def test_a_database_whose_name_differs_in_case_is_another_one(server: PrivateServer) -> None:
    created(
        server, "CREATE TABLE shop.t (id INT PRIMARY KEY)", "CREATE DATABASE Shop", "CREATE VIEW Shop.v AS SELECT 1"
    )
    with connected(server) as connection:
        schema = read_schema(connection, {"crm", "shop"})

    assert (set(schema.tables), schema.views) == ({TableKey("shop", "t")}, frozenset())


def test_tables_whose_names_differ_in_case_alone_have_definitions_of_their_own(server: PrivateServer) -> None:
    schema = created(
        server,
        "CREATE TABLE shop.T (a INT PRIMARY KEY, b DATE, KEY k (b))",
        "CREATE TABLE shop.t (c BIGINT, d TEXT, e INT UNSIGNED, PRIMARY KEY (c, e))",
        "CREATE TRIGGER shop.only_upper BEFORE INSERT ON shop.T FOR EACH ROW SET NEW.a = 1",
    )
    upper, lower = schema.tables[TableKey("shop", "T")], schema.tables[TableKey("shop", "t")]
    assert [column.name for column in upper.columns] == ["a", "b"]
    assert [column.name for column in lower.columns] == ["c", "d", "e"]
    assert [(key.name, [part.name for part in key.columns]) for key in upper.keys] == [("PRIMARY", ["a"]), ("k", ["b"])]
    assert [(key.name, [part.name for part in key.columns]) for key in lower.keys] == [("PRIMARY", ["c", "e"])]
    assert (len(upper.triggers), lower.triggers) == (1, ())


def test_definitions_longer_than_the_server_returns_at_once_are_read_as_well(
    server: PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = created(server, ALL_TYPES, "CREATE TABLE shop.a (i INT PRIMARY KEY)", "CREATE TABLE shop.b (i INT)")
    # among these are lengths at which the text of a table is cut inside a row, and exactly between two rows
    for longest in (*range(60, 130), 300, 2000):
        monkeypatch.setattr("binlane.servers.packed._LONGEST", longest)
        assert schema_to_json(schema_of(server)) == schema_to_json(expected), longest


def test_reading_the_catalogue_leaves_the_session_as_it_was(server: PrivateServer) -> None:
    query = text("SELECT @@SESSION.group_concat_max_len")
    with connected(server) as connection:
        connection.execute(text("SET SESSION group_concat_max_len = 777"))
        read_schema(connection)
        assert connection.execute(query).scalar() == 777


def test_a_server_without_databases_is_read_by_few_questions_and_as_with_them(server: PrivateServer) -> None:
    whole = created(server, ALL_TYPES)
    asked: list[str] = []
    with connected(server) as connection:
        event.listen(connection, "before_cursor_execute", lambda *call: asked.append(call[2]))
        alone = read_schema(connection, ())

    assert alone == whole.of(frozenset())
    assert len(asked) <= 3, asked


def test_collations_that_the_server_returns_cut_are_asked_for_anew(server: PrivateServer) -> None:
    expected = schema_of(server).collations
    with connected(server) as connection:
        connection.execute(text("SET SESSION group_concat_max_len = 64"))
        assert read_schema(connection, ()).collations == expected
        assert len(expected) > 100


def test_a_merge_table_names_those_that_it_is_made_of(server: PrivateServer) -> None:
    pair = "(id INT) ENGINE=MERGE UNION=(shop.`a%d`, shop.b)"
    tables = [f"CREATE TABLE shop.{name} (id INT) ENGINE=MyISAM" for name in ("`a%d`", "b")]
    found = created(server, *tables, f"CREATE TABLE shop.`m%s` {pair}")
    merge, parts = TableKey("shop", "m%s"), [TableKey("shop", "a%d"), TableKey("shop", "b")]
    assert found.references == {(merge, part) for part in parts}
    assert found.known().merges == {frozenset({merge, part}) for part in parts}
    assert found.known().foreign_keys == frozenset()
    run(server, "DROP TABLE shop.b")
    broken = schema_of(server)
    assert broken.references == frozenset()
    assert broken.views == {merge}


def test_binlanes_own_schema_is_no_part_of_the_catalogue(server: PrivateServer) -> None:
    created(server, "CREATE DATABASE binlane", "CREATE TABLE binlane.positions (id INT PRIMARY KEY)")

    assert schema_of(server).databases == {"shop"}
    assert not schema_of(server).tables


def test_tables_with_features_of_mariadb_alone_are_read_and_not_reduced(
    mariadb_target: PrivateServer,
) -> None:
    schema = created(mariadb_target, *MARIADB_ONLY)
    reasons = {key.table: why_not_reduced(schema, key) for key in schema.tables}

    assert "versioned" in (reasons["versioned"] or "")
    assert "versioned" in (reasons["versions_shown"] or "")
    assert "WITHOUT OVERLAPS" in (reasons["overlaps"] or "")
    assert "no primary key" in (reasons["numbers"] or "")
    assert (reasons["hashed"], reasons["packed"], reasons["named"]) == (None, None, None)
    assert columns(schema, TableKey("shop", "versions_shown"))["e"].generated is Generated.ROW_END


def logged_tables(server: PrivateServer) -> dict[TableKey, TableMap]:
    """The TABLE_MAPs of the server's newest log, as it wrote them."""
    # beside each of them MariaDB 11.4 and newer keep an index of GTIDs, binlog.000001.idx
    newest = max(server.datadir.glob("binlog.[0-9]*[0-9]"))
    data, at, found = newest.read_bytes(), len(MAGIC), {}
    while at < len(data):
        _, type_code, _, size, _, _ = HEADER.unpack_from(data, at)
        if type_code == EventType.TABLE_MAP:
            one = TableMap.parse(memoryview(data)[at + HEADER.size : at + size - 4], flavor=server.flavor)
            found[TableKey(one.database, one.table)] = one
        at += size
    return found


@pytest.mark.parametrize("metadata", ["MINIMAL", "FULL"])
def test_a_servers_own_table_maps_fit_its_own_tables(server: PrivateServer, metadata: str) -> None:
    mariadb = server.flavor is Flavor.MARIADB
    rows = [
        "SET GLOBAL binlog_row_metadata = DEFAULT",
        "INSERT INTO shop.all_types (i8) VALUES (1)",
    ]
    if mariadb:
        rows += [
            "INSERT INTO shop.versioned VALUES (1, 2)",
            "INSERT INTO shop.versions_shown (id) VALUES (1)",
            "INSERT INTO shop.overlaps VALUES (1, 2, '2020-01-01', '2020-01-02')",
            "INSERT INTO shop.hashed VALUES (1, 'x')",
            "INSERT INTO shop.packed VALUES (1, 'x', 'y')",
            "INSERT INTO shop.named VALUES (UUID(), '::1', '1.2.3.4')",
            "INSERT INTO shop.places (id) VALUES (1)",
        ]
    else:
        rows.append("INSERT INTO shop.vectors (id) VALUES (1)")
    schema = created(server, ALL_TYPES, *(MARIADB_ONLY if mariadb else MYSQL_ONLY))
    run(server, "FLUSH BINARY LOGS", f"SET GLOBAL binlog_row_metadata = {metadata}", *rows[1:], rows[0])

    logged = logged_tables(server)

    assert len(logged) == len(rows) - 1
    for key, one in logged.items():
        assert compare_table_map(one, server.flavor, schema.tables[key]) == (), key


TOLD_BY_THE_LOG = [case for case in SILENT if case.id not in ("collation", "generated")]


@pytest.mark.parametrize(("ours", "theirs", "_what"), TOLD_BY_THE_LOG)
def test_full_metadata_alone_shows_silent_mismatches(server: PrivateServer, ours: str, theirs: str, _what: str) -> None:
    schema = created(
        server,
        f"CREATE TABLE shop.ours (id INT PRIMARY KEY, {ours}) CHARACTER SET utf8mb4",
        f"CREATE TABLE shop.theirs (id INT PRIMARY KEY, {theirs}) CHARACTER SET utf8mb4",
        "FLUSH BINARY LOGS",
        "SET GLOBAL binlog_row_metadata = FULL",
        "INSERT INTO shop.ours (id) VALUES (1)",
        "SET GLOBAL binlog_row_metadata = DEFAULT",
    )
    one = logged_tables(server)[TableKey("shop", "ours")]

    assert compare_table_map(one, server.flavor, schema.tables[TableKey("shop", "ours")]) == ()
    assert compare_table_map(one, server.flavor, schema.tables[TableKey("shop", "theirs")]) != ()


KEYS = ("PRIMARY KEY (a)", "PRIMARY KEY (a, b)", "PRIMARY KEY (s)", "PRIMARY KEY (s(3), a)", "KEY (a)")


def test_full_metadata_tells_one_primary_key_from_another(server: PrivateServer) -> None:
    columns = "a INT NOT NULL, b INT NOT NULL, s VARCHAR(20) NOT NULL"
    tables = [f"CREATE TABLE shop.t{n} ({columns}, {key}) CHARACTER SET utf8mb4" for n, key in enumerate(KEYS)]
    inserts = [f"INSERT INTO shop.t{n} VALUES (1, 2, 'abcdef')" for n in range(len(KEYS))]
    schema = created(
        server,
        *tables,
        "FLUSH BINARY LOGS",
        "SET GLOBAL binlog_row_metadata = FULL",
        *inserts,
        "SET GLOBAL binlog_row_metadata = DEFAULT",
    )
    logged = logged_tables(server)
    names = [TableKey("shop", f"t{n}") for n in range(len(KEYS))]

    same = [
        (ours, theirs)
        for ours in names
        for theirs in names
        if not compare_logged_key(logged[ours], schema.tables[theirs], Severity.FATAL)
    ]

    assert same == [(name, name) for name in names]


ALIKE = ("Shop", "shop", "SHÖP")
"""One name to the collation of MariaDB's catalogue."""


@pytest.mark.parametrize("flavor", [Flavor.MARIADB, pytest.param(Flavor.MYSQL, marks=requires_mysql)])
def test_databases_whose_names_a_collation_takes_for_one_are_read_apart(
    request: pytest.FixtureRequest, clean_databases: Callable[[PrivateServer], None], flavor: Flavor
) -> None:
    server: PrivateServer = request.getfixturevalue(f"{flavor}_target")
    clean_databases(server)
    for number, name in enumerate(ALIKE):
        server.query(f"CREATE DATABASE `{name}`")
        for statement in (
            f"CREATE TABLE t (id INT PRIMARY KEY, only_{number} INT, CHECK (only_{number} < 9))",
            f"CREATE TABLE T (id INT PRIMARY KEY, p INT, CONSTRAINT f_{number} FOREIGN KEY (p) REFERENCES t (id))",
            f"CREATE TRIGGER g_{number} BEFORE INSERT ON t FOR EACH ROW SET NEW.only_{number} = 1",
            f"CREATE PROCEDURE p_{number} () SELECT 1",
            f"CREATE VIEW v_{number} AS SELECT 1 AS c",
        ):
            with contextlib.closing(server.connect(database=name, autocommit=True)) as connection:
                connection.cursor().execute(statement)
    with create_engine(server.url()).connect() as connection:
        for names in (("shop",), ("Shop", "shop"), ALIKE, None):
            found = read_schema(connection, names)
            wanted = [(number, name) for number, name in enumerate(ALIKE) if names is None or name in names]
            assert found.databases == {name for _, name in wanted}
            assert found.routines == {(name, f"p_{number}") for number, name in wanted}
            assert found.views == {TableKey(name, f"v_{number}") for number, name in wanted}
            assert set(found.tables) == {TableKey(name, table) for _, name in wanted for table in ("t", "T")}
            for number, name in wanted:
                table = found.tables[TableKey(name, "t")]
                assert [column.name for column in table.columns] == ["id", f"only_{number}"]
                assert [trigger.name for trigger in table.triggers] == [f"g_{number}"]
            assert found.references == {(TableKey(name, "T"), TableKey(name, "t")) for _, name in wanted}
        reader = TableReader(connection)
        for number, name in enumerate(ALIKE):
            assert set(reader.read_database(name)) == {TableKey(name, "t"), TableKey(name, "T")}
            single = reader.read(TableKey(name, "t"))
            assert single is not None
            assert [trigger.name for trigger in single.triggers] == [f"g_{number}"]
