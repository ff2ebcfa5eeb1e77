"""The writer for targets without BINLOG: every type, every way to find a row, and what it must refuse."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pymysql
import pytest

from binlane.apply.block import BlockPlace, apply_block
from binlane.apply.rows.sql import SqlRows
from binlane.apply.rows.table_guard import TableGuard
from binlane.apply.rows.writers import BlockWriter
from binlane.apply.session.connection import LaneSession
from binlane.apply.session.context import ContextSetter
from binlane.errors import ApplyError, DriftError, TableMismatchError
from binlane.model import Flavor, Item, RowCounts, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import Block
from binlane.precheck.account.row_writer import chosen_writer
from binlane.servers.catalog import TableReader, read_schema
from binlane.servers.engines import engine_at
from binlane.state.positions import PlanKey
from lab.compare import data_of
from tests.integration.apply.capture import Window
from tests.integration.apply.conftest import DATABASE, QUICK, Pair, positions, start_window
from tests.integration.values.test_values import SESSION
from tests.integration.values.types import SCHEMA_TYPES, TYPES
from tests.unit.precheck.situations import applying, said, situation


class CountedRows(SqlRows):
    """A site's own writer."""

    items = 0

    def write(self, items: Iterator[Item], seqno: int) -> RowCounts:
        taken = list(items)
        CountedRows.items += len(taken)
        return super().write(iter(taken), seqno)


def apply(pair: Pair, blocks: Sequence[Block], writer: str = "sql") -> None:
    """Apply the blocks by SQL alone; BINLOG is never sent."""
    uuid = str(pair.rows("SELECT uuid FROM binlane.channels")[0][0])
    session = LaneSession.open(pair.engine, QUICK.limits)
    with contextlib.closing(session), pair.engine.connect() as poll:
        auto = poll.execution_options(isolation_level="AUTOCOMMIT")
        guard = TableGuard(Alterations({}), pair.source.flavor, TableReader(auto).read)
        rows = BlockWriter(session, ContextSetter(session), guard, writer)
        for block in blocks:
            place = BlockPlace(PlanKey("orders", "w1", "d1"), uuid, 0, (0,), block.header.first_seqno - 1)
            assert apply_block(session, rows, place, block, lambda block=block: block.header.last_seqno) is not None  # type: ignore[misc]


def replicate(pair: Pair, *transactions: Sequence[str] | str, setup: Sequence[str] = (), writer: str = "sql") -> None:
    recorder = pair.recorder(*setup)
    window = Window(recorder.format)
    for statements in transactions:
        window.add(0, recorder.run(*([statements] if isinstance(statements, str) else statements)))
    start_window(pair.engine, window.plan)
    apply(pair, window._blocks[0], writer)


def assert_same_bytes(pair: Pair, *tables: str) -> None:
    ours, theirs = (data_of(server, DATABASE) for server in (pair.source, pair.target))
    assert {table: ours[table] for table in tables} == {table: theirs[table] for table in tables}


def test_every_type_arrives_as_it_was(pair: Pair) -> None:
    types = [one for one in (*TYPES, *SCHEMA_TYPES) if pair.source.flavor in one.servers]
    names = [f"t{number}" for number in range(len(types))]
    keyless = [f"k{number}" for number in range(len(types))]
    for table, one in zip(names, types, strict=True):
        pair.both(f"CREATE TABLE {table} (id INT PRIMARY KEY AUTO_INCREMENT, c {one.definition}) ENGINE=InnoDB")
        pair.both(f"CREATE TABLE k{table[1:]} (c {one.definition}, n INT) ENGINE=InnoDB")
    inserts = [
        f"INSERT INTO {table} (c) VALUES {', '.join(f'({value})' for value in one.values)}"
        for kind in (names, keyless)
        for table, one in zip(kind, types, strict=True)
    ]
    keyed = [f"UPDATE {table} SET id = id + 100 WHERE id = 1" for table in names]
    unkeyed = [f"UPDATE {table} SET n = 1 LIMIT 1" for table in keyless]
    deletes = [f"DELETE FROM {table} WHERE id = 2" for table in names] + [f"DELETE FROM {t} LIMIT 1" for t in keyless]
    replicate(pair, inserts, [*keyed, *unkeyed], deletes, setup=[SESSION])
    ours, theirs = (data_of(server, DATABASE) for server in (pair.source, pair.target))
    assert ours.keys() == {*names, *keyless}
    different = [types[int(table[1:])].definition for table in ours if ours[table] != theirs.get(table)]
    assert not different


LARGE = (2**64 - 1, 2**64 - 2, 2**64 - 3, 2**63, 2**63 + 1, 2**63 - 1, 2**53, 2**53 + 1, 2**53 + 2, 1)
MEMBERS = [f"m{number}" for number in range(64)]
WORKS = [
    pytest.param(
        ["CREATE TABLE t (a INT, b VARCHAR(9), c INT DEFAULT 5, PRIMARY KEY (a, b))"],
        [
            "INSERT INTO t VALUES (1, 'x', 1), (1, 'y', NULL), (0, '', 2)",
            "UPDATE t SET c = 9, b = 'z' WHERE b = 'x'",
            "DELETE FROM t WHERE a = 1",
        ],
        id="composite-key",
    ),
    pytest.param(
        ["CREATE TABLE t (a INT PRIMARY KEY, g INT AS (a + 1) STORED, v INT AS (a * 2) VIRTUAL, b INT)"],
        [
            "INSERT INTO t (a, b) VALUES (7, 1), (8, 2)",
            "UPDATE t SET a = 9 WHERE a = 7",
            "UPDATE t SET b = 3",
            "DELETE FROM t WHERE a = 8",
        ],
        id="generated-columns",
    ),
    pytest.param(
        ["CREATE TABLE t (a INT AUTO_INCREMENT PRIMARY KEY)"],
        ["INSERT INTO t VALUES (0), (5)", "DELETE FROM t WHERE a = 5"],
        id="auto-increment-zero",
    ),
    pytest.param(
        ["CREATE TABLE t (a VARCHAR(9) COLLATE utf8mb4_general_ci, b TEXT, f FLOAT)"],
        [
            "INSERT INTO t VALUES ('a', 'x', 0.1), ('A', 'x', 0.1), ('A', 'x', 0.1), (NULL, NULL, NULL)",
            "UPDATE t SET b = 'X' WHERE BINARY a = 'A' LIMIT 1",
            "DELETE FROM t WHERE BINARY a = 'a'",
            "DELETE FROM t WHERE a IS NULL",
        ],
        id="keyless-and-case",
    ),
    pytest.param(
        ["CREATE TABLE t (a INT PRIMARY KEY, d DATETIME DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, b INT)"],
        ["INSERT INTO t (a, d, b) VALUES (1, '2001-01-01', 1)", "UPDATE t SET d = '2002-02-02', b = 2"],
        id="on-update-now",
    ),
    pytest.param(
        ["CREATE TABLE p (a INT PRIMARY KEY)", "CREATE TABLE t (a INT PRIMARY KEY, FOREIGN KEY (a) REFERENCES p (a))"],
        ["INSERT INTO t VALUES (1)"],
        id="foreign-key-checks-off",
    ),
    # as doubles many of these numbers are equal
    pytest.param(
        [f"CREATE TABLE t (a SET({', '.join(map(repr, MEMBERS))}) PRIMARY KEY, b INT)"],
        [
            f"INSERT INTO t VALUES {', '.join(f'({value}, {n})' for n, value in enumerate(LARGE))}",
            "UPDATE t SET b = b + 100",
            *(f"UPDATE t SET b = {n} WHERE b = {n + 100}" for n in range(len(LARGE))),
            "UPDATE t SET a = 6 WHERE b = 1",
            "DELETE FROM t WHERE b IN (0, 2, 4, 6)",
            "DELETE FROM t WHERE b = 3",
        ],
        id="set-of-64-members",
    ),
    pytest.param(
        ["CREATE TABLE t (a BIT(64), c BIGINT UNSIGNED, b INT, PRIMARY KEY (c, a))"],
        [
            f"INSERT INTO t VALUES {', '.join(f'({value}, {value}, {n})' for n, value in enumerate(LARGE))}",
            "UPDATE t SET b = b + 100",
            *(f"UPDATE t SET b = {n} WHERE b = {n + 100}" for n in range(len(LARGE))),
            "DELETE FROM t WHERE b IN (0, 2, 4, 6)",
            "DELETE FROM t WHERE b = 3",
        ],
        id="bits-and-unsigned",
    ),
]


@pytest.mark.parametrize("row_image", ["FULL", "MINIMAL"])
@pytest.mark.parametrize(("tables", "statements"), WORKS)
def test_statements_have_the_effect_of_the_row_events(
    pair: Pair, tables: list[str], statements: list[str], row_image: str
) -> None:
    pair.both(*tables)
    setup = [f"SET SESSION binlog_row_image = {row_image}, foreign_key_checks = 0, sql_mode = 'NO_AUTO_VALUE_ON_ZERO'"]
    replicate(pair, *statements, setup=setup)
    pair.assert_equal("t")
    assert positions(pair)[0] == len(statements)


def test_an_update_that_changes_nothing_counts(pair: Pair) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY, b INT)", "INSERT INTO t VALUES (1, 1)")
    pair.target.query(f"UPDATE {DATABASE}.t SET b = 2")
    replicate(pair, "UPDATE t SET b = 2")
    pair.assert_equal("t")


@pytest.mark.parametrize("statement", ["UPDATE t SET b = 2", "DELETE FROM t"])
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_a_row_that_is_not_there_rolls_the_block_back(pair: Pair, statement: str, key: str) -> None:
    pair.both(f"CREATE TABLE t (a INT {key}, b INT)", "INSERT INTO t VALUES (1, 1), (2, 1)")
    pair.target.query(f"DELETE FROM {DATABASE}.t WHERE a = 2")
    with pytest.raises(DriftError, match=r"shop\.t: (update|delete) of \d rows?, the target counted \d"):
        replicate(pair, statement)
    assert pair.rows(f"SELECT * FROM {DATABASE}.t") == [(1, 1)]
    assert positions(pair)[0] == 0


MANY = ", ".join(f"({number}, {number}, 1)" for number in range(20))
MORE = ", ".join(f"({number}, {number}, 1)" for number in range(100, 120))


@pytest.mark.parametrize(
    ("drift", "statement", "said"),
    [
        (
            "DELETE FROM shop.t WHERE a = 7",
            "UPDATE t SET b = 2",
            r"shop\.t: update of 1 row, the target counted 0; .* WHERE `a` = 7$",
        ),
        ("DELETE FROM shop.t WHERE a = 7", "DELETE FROM t", r"shop\.t: delete of 20 rows, the target counted 19"),
        ("UPDATE shop.t SET a = 77 WHERE a = 7", "UPDATE t SET b = 2", r"update of 1 row, the target counted 0"),
        ("INSERT INTO shop.t VALUES (107, 50, 1)", f"INSERT INTO t VALUES {MORE}", r"1062.*107"),
        ("INSERT INTO shop.t VALUES (50, 107, 1)", f"INSERT INTO t VALUES {MORE}", r"1062.*107"),
    ],
    ids=[
        "update-of-a-missing-row",
        "delete-of-a-missing-row",
        "unique-value-in-another-row",
        "key-taken",
        "value-taken",
    ],
)
def test_one_wrong_row_among_many_stops_with_its_key(pair: Pair, drift: str, statement: str, said: str) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY, u INT UNIQUE, b INT)", f"INSERT INTO t VALUES {MANY}")
    pair.target.query(drift)
    before = pair.rows(f"SELECT * FROM {DATABASE}.t ORDER BY a")
    with pytest.raises((DriftError, pymysql.err.IntegrityError), match=said):
        replicate(pair, statement)
    assert pair.rows(f"SELECT * FROM {DATABASE}.t ORDER BY a") == before
    assert positions(pair)[0] == 0


def test_rows_that_have_their_new_values_already_count(pair: Pair) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY, u INT UNIQUE, b INT)", f"INSERT INTO t VALUES {MANY}")
    pair.target.query(f"UPDATE {DATABASE}.t SET b = 2 WHERE a < 10")
    repeated = pair.rows("SHOW GLOBAL STATUS LIKE 'Com_rollback_to_savepoint'")
    replicate(pair, "UPDATE t SET b = 2")
    assert pair.rows("SHOW GLOBAL STATUS LIKE 'Com_rollback_to_savepoint'") == repeated
    pair.assert_equal("t")


def test_a_count_that_the_block_does_not_say_rolls_back(pair: Pair) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY)")
    recorder = pair.recorder()
    window = Window(recorder.format)
    block = window.add(0, recorder.run("INSERT INTO t VALUES (1), (2)"))
    start_window(pair.engine, window.plan)
    wrong = replace(block, items=(replace(next(iter(block.items)), rows=RowCounts(inserts=3)),))
    with pytest.raises(DriftError, match=r"expected .* in an item of the block, decoded"):
        apply(pair, [wrong])
    assert pair.rows(f"SELECT * FROM {DATABASE}.t") == []


def test_many_rows_go_in_few_statements(pair: Pair) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(20))")
    rows = ", ".join(f"({number}, 'row {number}')" for number in range(1200))
    before = int(str(pair.rows("SHOW GLOBAL STATUS LIKE 'Com_insert'")[0][1]))
    replicate(pair, f"INSERT INTO t VALUES {rows}")
    after = int(str(pair.rows("SHOW GLOBAL STATUS LIKE 'Com_insert'")[0][1]))
    assert after - before < 12
    pair.assert_equal("t")


def test_a_connection_that_does_not_count_found_rows_is_refused(pair: Pair) -> None:
    session = LaneSession.open(pair.engine, QUICK.limits)
    with contextlib.closing(session), pair.engine.connect() as poll:
        session.connection.client_flag = 0
        guard = TableGuard(Alterations({}), pair.source.flavor, TableReader(poll).read)
        with pytest.raises(ApplyError, match=r"CLIENT\.FOUND_ROWS"):
            BlockWriter(session, ContextSetter(session), guard, "sql")


def test_tables_with_triggers_are_refused_unless_the_channel_names_them(pair: Pair) -> None:
    pair.both("CREATE TABLE t (a INT PRIMARY KEY)", "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET @x = 1")
    key = TableKey(DATABASE, "t")
    with pair.engine.connect() as connection:
        schema = read_schema(connection)
    [finding] = said(situation(tables=schema, by_sql=[key]), "sql-writer")
    assert "tr" in finding
    assert (
        said(situation(tables=schema, by_sql=[key], channel=applying(allow_triggers=(str(key),))), "sql-writer") == []
    )


def test_rows_of_a_table_that_the_window_has_made_versioned_are_refused(mariadb_pair: Pair) -> None:
    """The precheck has not seen it, and its rows would begin when the window is applied."""
    mariadb_pair.both("CREATE TABLE t (a INT PRIMARY KEY, b INT) WITH SYSTEM VERSIONING")
    with pytest.raises(TableMismatchError, match=r"\.t: a DDL of this window has given it system versioning"):
        replicate(mariadb_pair, "INSERT INTO t VALUES (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)")
    assert mariadb_pair.rows(f"SELECT * FROM {DATABASE}.t") == []


@pytest.mark.parametrize("pair", ["mysql"], indirect=True)
def test_a_generated_column_that_the_source_has_given_another_value_is_named(pair: Pair) -> None:
    """MariaDB has no generated columns that are NOT NULL."""
    pair.both("CREATE TABLE t (a INT PRIMARY KEY, b INT, g INT AS (b + 1) STORED NOT NULL)")
    with pytest.raises(
        TableMismatchError, match=r"\.t: the expression of a generated column that is NOT NULL \(g\) is"
    ):
        replicate(pair, "INSERT INTO t (a, b) VALUES (1, 1)", "UPDATE t SET b = NULL", setup=["SET sql_mode = ''"])
    assert pair.rows(f"SELECT * FROM {DATABASE}.t") == [(1, 1, 2)]


def test_a_class_of_the_site_writes_the_rows(mariadb_pair: Pair) -> None:
    mariadb_pair.both("CREATE TABLE t (id INT PRIMARY KEY) ENGINE=InnoDB")
    replicate(mariadb_pair, "INSERT INTO t VALUES (1), (2)", writer=f"{CountedRows.__module__}:CountedRows")
    assert_same_bytes(mariadb_pair, "t")
    assert CountedRows.items == 1


def test_auto_takes_binlog_where_the_account_may(pair: Pair) -> None:
    with pair.engine.connect() as connection:
        assert chosen_writer(connection, "auto") == "binlog"
        assert chosen_writer(connection, "sql") == "sql"
    pair.target.query("CREATE USER test_rows IDENTIFIED BY 'x'")
    try:
        pair.target.query(f"GRANT INSERT, UPDATE, DELETE, SELECT ON {DATABASE}.* TO test_rows")
        url = f"mysql+pymysql://test_rows:x@{pair.target.host}:{pair.target.port}/?ssl_disabled=1"
        engine = engine_at(url, connect_args={"get_server_public_key": True})
        with engine.connect() as connection:
            assert chosen_writer(connection, "auto") == "sql"
        engine.dispose()
    finally:
        pair.target.query("DROP USER test_rows")
    assert pair.source.flavor in Flavor
