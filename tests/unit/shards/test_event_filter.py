"""The filter's rules, as a table of transactions, and what a window's own DDL makes known."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from binlane.model import GLOBAL_SHARD, UNKNOWN_SHARD, Flavor, TableKey
from binlane.schema.dependencies import SchemaFacts
from binlane.schema.letter_case import LetterCase
from binlane.shards.event_filter import EventMetadataFilter, LoggedStatement, TransactionShards
from binlane.sql.parse.analyze import StatementFacts, analyze
from binlane.sql.parse.facts import LOADABLE_OR_STORED

SCHEMA = SchemaFacts(
    views=frozenset({TableKey("a", "v")}),
    triggered_tables=frozenset({TableKey("a", "tr")}),
    routine_databases=frozenset({"a"}),
    foreign_keys=frozenset({frozenset({TableKey("child", "c"), TableKey("base", "p")})}),
)


def facts(sql: str, flavor: Flavor = Flavor.MARIADB) -> StatementFacts:
    return analyze(sql, database="a", flavor=flavor)


def decide(flavor: Flavor, rows: Sequence[str], *statements: LoggedStatement) -> TransactionShards:
    return EventMetadataFilter(flavor, SCHEMA).assign(rows, statements)


def mariadb(*statements: str, rows: Sequence[str] = ()) -> TransactionShards:
    return decide(Flavor.MARIADB, rows, *(LoggedStatement(facts(sql)) for sql in statements))


def mysql(sql: str, listed: tuple[str, ...] | None, *, too_many: bool = False) -> TransactionShards:
    return decide(Flavor.MYSQL, (), LoggedStatement(facts(sql, Flavor.MYSQL), listed, too_many))


def one(shard: str) -> TransactionShards:
    return TransactionShards(frozenset({shard}))


def unknown(reason: str) -> TransactionShards:
    return TransactionShards(frozenset({UNKNOWN_SHARD}), f"unknown: {reason}")


GLOBAL = TransactionShards(frozenset({GLOBAL_SHARD}), "global")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ((), TransactionShards(frozenset())),
        (("a",), one("a")),
        (("a", "b"), TransactionShards(frozenset({"a", "b"}), "cross-database")),
        (("child",), one("base")),
        (("child", "base"), one("base")),
        (("child", "a"), TransactionShards(frozenset({"base", "a"}), "cross-database")),
    ],
)
def test_row_events_belong_to_the_databases_of_their_tables(rows: Sequence[str], expected: TransactionShards) -> None:
    assert mariadb(rows=rows) == decide(Flavor.MYSQL, rows) == expected


MARIADB = [
    ("INSERT INTO t VALUES (1)", one("a")),
    ("INSERT INTO b.t SELECT * FROM b.u", one("b")),
    ("INSERT INTO child.t SELECT * FROM base.u", one("base")),
    ("INSERT INTO t SELECT * FROM b.u", unknown("a second database, and no list of databases")),
    ("INSERT INTO v VALUES (1)", unknown("a view")),
    ("INSERT INTO t SELECT * FROM v", unknown("a view")),
    ("DELETE FROM tr", unknown("a table with triggers")),
    ("INSERT INTO t VALUES (f(1))", unknown("a routine")),
    ("CALL p()", unknown("a routine")),
    ("INSERT INTO b.t VALUES (b.f(1))", one("b")),
    ("DO SLEEP(1)", unknown("names no database")),
    ("LOAD DATA INFILE 'x' INTO TABLE t", one("a")),
    ("LOAD DATA INFILE 'x' INTO TABLE tr", unknown("a table with triggers")),
    ("gibberish", unknown("a statement that logs are not known to hold")),
    ("GRANT ALL ON a.* TO u", GLOBAL),
    ("FLUSH TABLES", GLOBAL),
    ("CREATE TABLE t (x INT)", one("a")),
    ("TRUNCATE tr", one("a")),
    ("ALTER TABLE tr ADD y INT", one("a")),
    ("CREATE PROCEDURE p() INSERT INTO b.t VALUES (1)", one("a")),
    ("RENAME TABLE a.t TO b.t", TransactionShards(frozenset({"a", "b"}), "ddl")),
    ("CREATE TABLE a.t (x INT REFERENCES b.p (id))", TransactionShards(frozenset({"a", "b"}), "ddl")),
    ("CREATE TABLE child.t (x INT REFERENCES base.p (id))", one("base")),
    ("CREATE VIEW w AS SELECT * FROM b.t", TransactionShards(frozenset({"a", "b"}), "ddl")),
    ("CREATE VIEW w AS SELECT * FROM v", unknown("a view")),
    ("CREATE OR REPLACE VIEW v AS SELECT * FROM t", one("a")),
    ("CREATE TABLE t AS SELECT * FROM v", unknown("a view")),
    ("CREATE TABLE t AS SELECT f(1) AS x", unknown("a routine")),
    ("CREATE TABLE t AS SELECT * FROM tr", one("a")),
    ("SAVEPOINT s", TransactionShards(frozenset())),
    ("INSERT INTO t VALUES (DATABASE(), 'SCHEMA()')", one("a")),
    ("INSERT INTO b.t VALUES ('DATABASE()')", one("b")),
    ("INSERT INTO b.t VALUES (SCHEMA())", unknown("a second database, and no list of databases")),
]


@pytest.mark.parametrize(("sql", "expected"), MARIADB)
def test_a_mariadb_statement_is_placed_by_its_text_or_not_at_all(sql: str, expected: TransactionShards) -> None:
    assert mariadb(sql) == expected


DUALITY = unknown("a routine")
MYSQL = [
    ("INSERT INTO t SELECT * FROM b.u", ("a", "b"), TransactionShards(frozenset({"a", "b"}), "cross-database")),
    ("INSERT INTO v VALUES (1)", ("b",), TransactionShards(frozenset({"a", "b"}), "cross-database")),
    ("DELETE FROM tr", ("a",), one("a")),
    ("INSERT INTO t VALUES (f(1))", ("a",), one("a")),
    ("gibberish", ("b",), unknown("a statement that logs are not known to hold")),
    ("CREATE JSON RELATIONAL DUALITY VIEW v AS SELECT JSON_DUALITY_OBJECT('_id': id) FROM b.t", ("a",), DUALITY),
    (f"CREATE VIEW w AS SELECT {'(' * 101}1{')' * 101}", ("a",), unknown("a query nested too deeply")),
    (f"CREATE TABLE u SELECT {'(' * 101}1{')' * 101}", None, unknown("a query nested too deeply")),
    ("INSERT INTO t VALUES (", ("a", "b"), TransactionShards(frozenset({"a", "b"}), "cross-database")),
    ("gibberish", None, unknown("a statement that logs are not known to hold")),
    ("gibberish", ("",), unknown("a statement that logs are not known to hold")),
    ("DELETE FROM tr", None, unknown("a table with triggers")),
    ("CREATE USER u", ("mysql",), GLOBAL),
    ("DROP FUNCTION f", ("a",), unknown(LOADABLE_OR_STORED)),
    ("TRUNCATE t", None, one("a")),
    ("CREATE TABLE t LIKE b.u", None, TransactionShards(frozenset({"a", "b"}), "ddl")),
    ("CREATE TABLE t (x INT REFERENCES b.p (id))", ("a",), TransactionShards(frozenset({"a", "b"}), "ddl")),
    ("CREATE VIEW w AS SELECT * FROM b.t", ("a",), TransactionShards(frozenset({"a", "b"}), "ddl")),
    ("CREATE VIEW w AS SELECT * FROM v", ("a",), unknown("a view")),
    ("INSERT INTO child.t VALUES (1)", ("child",), one("base")),
    ("INSERT INTO b.t VALUES (DATABASE())", ("b",), TransactionShards(frozenset({"a", "b"}), "cross-database")),
]


@pytest.mark.parametrize(("sql", "listed", "expected"), MYSQL)
def test_a_mysql_statement_is_placed_by_its_list_and_its_text(
    sql: str, listed: tuple[str, ...] | None, expected: TransactionShards
) -> None:
    assert mysql(sql, listed) == expected


def test_more_databases_than_the_list_can_hold_are_unknown() -> None:
    assert mysql("INSERT INTO t VALUES (1)", None, too_many=True) == unknown("more than 16 databases")
    assert mysql("FLUSH TABLES", None, too_many=True) == GLOBAL


def test_a_list_of_databases_is_not_believed_of_mariadb() -> None:
    statement = LoggedStatement(facts("INSERT INTO v VALUES (1)"), ("a",))
    assert decide(Flavor.MARIADB, (), statement) == unknown("a view")


def test_the_whole_transaction_counts_whatever_its_order() -> None:
    statements = ["INSERT INTO t VALUES (1)", "INSERT INTO b.t VALUES (1)", "SAVEPOINT s"]
    for order in itertools.permutations(statements):
        assert mariadb(*order, rows=["c"]) == TransactionShards(frozenset({"a", "b", "c"}), "cross-database")
        assert mariadb(*order, "gibberish").shards == {UNKNOWN_SHARD}
        assert mariadb("gibberish", *order, "FLUSH TABLES") == GLOBAL


def test_a_reason_is_that_of_the_first_statement_that_has_one() -> None:
    assert mariadb("INSERT INTO v VALUES (1)", "DELETE FROM tr") == unknown("a view")


MERGE = "CREATE TABLE b.m (x INT) ENGINE=MERGE UNION=(c.t, b.t)"
KEY = "CREATE TABLE b.c (x INT REFERENCES b.p (id))"


def after(*statements: str, schema: SchemaFacts | None = None) -> EventMetadataFilter:
    known = SchemaFacts() if schema is None else schema
    for sql in statements:
        known = known.after(facts(sql))
    return EventMetadataFilter(Flavor.MARIADB, known)


DROPPED = "a table or view that the window drops"
DROPPED_IN = "a database of which the window drops something"


@pytest.mark.parametrize(
    ("ddl", "sql", "expected"),
    [
        (["CREATE VIEW w AS SELECT 1"], "INSERT INTO w VALUES (1)", unknown("a view")),
        (["CREATE VIEW w AS SELECT 1", "DROP VIEW w"], "INSERT INTO w VALUES (1)", unknown(DROPPED)),
        (["DROP VIEW w"], "INSERT INTO w VALUES (1)", unknown(DROPPED)),
        (["DROP TABLE b.t"], "INSERT INTO t VALUES (1)", one("a")),
        (["DROP TEMPORARY TABLE t"], "INSERT INTO t VALUES (1)", one("a")),
        (["DROP TRIGGER a.g"], "INSERT INTO t VALUES (1)", unknown(DROPPED_IN)),
        (["DROP FUNCTION a.f"], "INSERT INTO t VALUES (f())", unknown(DROPPED_IN)),
        (["DROP DATABASE b"], "INSERT INTO t VALUES (1)", one("a")),
        (["DROP DATABASE a"], "INSERT INTO t VALUES (1)", unknown(DROPPED_IN)),
        (["CREATE OR REPLACE TABLE t (x INT)"], "INSERT INTO t VALUES (1)", unknown(DROPPED)),
        (["CREATE OR REPLACE TABLE t LIKE u"], "INSERT INTO u VALUES (1)", one("a")),
        (["CREATE OR REPLACE TEMPORARY TABLE t (x INT)"], "INSERT INTO t VALUES (1)", one("a")),
        (["CREATE OR REPLACE DATABASE a"], "INSERT INTO t VALUES (1)", unknown(DROPPED_IN)),
        (["CREATE VIEW w AS SELECT 1", "RENAME TABLE w TO x"], "INSERT INTO x VALUES (1)", unknown("a view")),
        (
            ["CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET @a=1"],
            "DELETE FROM t",
            unknown("a table with triggers"),
        ),
        (
            [
                "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET @a=1",
                "RENAME TABLE u TO x, t TO u, x TO t",
            ],
            "DELETE FROM u",
            unknown("a table with triggers"),
        ),
        (
            ["RENAME TABLE t TO u", "CREATE TRIGGER g AFTER INSERT ON t FOR EACH ROW SET @a=1"],
            "DELETE FROM u",
            unknown("a table with triggers"),
        ),
        (["CREATE FUNCTION a.f() RETURNS INT RETURN 1"], "INSERT INTO t VALUES (f())", unknown("a routine")),
        (["CREATE PROCEDURE b.f() SELECT 1"], "INSERT INTO t VALUES (f())", one("a")),
        (["CREATE TABLE b.c (x INT REFERENCES a.p (id))"], "INSERT INTO b.c VALUES (1)", one("a")),
        (["CREATE TABLE b.c (x INT REFERENCES b.p (id))"], "INSERT INTO b.c VALUES (1)", one("b")),
        ([KEY, "RENAME TABLE b.c TO a.c"], "INSERT INTO b.x VALUES (1)", one("a")),
        ([KEY, "RENAME TABLE b.p TO a.p"], "INSERT INTO b.x VALUES (1)", one("a")),
        (["RENAME TABLE b.d TO a.c", "RENAME TABLE b.c TO b.d", KEY], "INSERT INTO b.x VALUES (1)", one("a")),
        (["RENAME TABLE b.c TO b.d", KEY, "RENAME TABLE a.t TO b.t"], "INSERT INTO b.x VALUES (1)", one("b")),
        (["CREATE TABLE a.c LIKE b.c", KEY], "INSERT INTO b.x VALUES (1)", one("b")),
        (["CREATE TABLE a.m LIKE b.m", MERGE], "INSERT INTO c.x VALUES (1)", one("a")),
        (["CREATE TABLE b.n LIKE b.m", "RENAME TABLE b.n TO a.n", MERGE], "INSERT INTO c.x VALUES (1)", one("a")),
        (["ALTER TABLE b.m UNION=(a.t)"], "INSERT INTO b.x VALUES (1)", one("a")),
        (["CREATE TABLE t (x INT)", "INSERT INTO b.t VALUES (1)"], "INSERT INTO b.c VALUES (1)", one("b")),
        (["CREATE THING x"], "INSERT INTO t VALUES (1)", unknown("a statement after one that could not be read")),
        (["CREATE THING x"], "TRUNCATE t", one("a")),
        (["INSERT INTO t VALUES ("], "INSERT INTO t VALUES (1)", one("a")),
    ],
)
def test_objects_that_the_windows_own_ddl_creates_are_known(
    ddl: list[str], sql: str, expected: TransactionShards
) -> None:
    assert after(*ddl).assign((), [LoggedStatement(facts(sql))]) == expected


def test_foreign_keys_join_groups_to_the_smallest_name() -> None:
    key = "CREATE TABLE {}.c (x INT REFERENCES {}.p (id))"
    links = [("d", "c"), ("f", "e"), ("c", "b"), ("b", "e")]
    for order in itertools.permutations(links):
        joined = after(*(key.format(child, parent) for child, parent in order))
        assert {joined.shard_of(name) for name in "bcdef"} == {"b"}
        assert joined.shard_of("z") == "z"


def test_folding_more_in_never_forgets() -> None:
    known = SCHEMA
    for sql, _ in MARIADB:
        more = known.after(facts(sql))
        assert known.views <= more.views
        assert known.triggered_tables <= more.triggered_tables
        assert known.routine_databases <= more.routine_databases
        assert known.foreign_key_groups.keys() <= more.foreign_key_groups.keys()
        assert more.uncertain or not known.uncertain
        known = more
    assert known.uncertain


FOLDED = [
    ("INSERT INTO Shop.t VALUES (1)", one("shop")),
    ("ALTER TABLE SHOP.t ADD c INT", one("shop")),
    ("UPDATE A.V SET x = 1", unknown("a view")),
    ("DELETE FROM A.TR", unknown("a table with triggers")),
    ("INSERT INTO A.t VALUES (A.f(1))", unknown("a routine")),
    ("INSERT INTO CHILD.t VALUES (1)", one("base")),
    ("CREATE VIEW A.V AS SELECT * FROM t", one("a")),
]


@pytest.mark.parametrize(("sql", "expected"), FOLDED)
def test_names_are_compared_in_small_letters_where_the_server_takes_them_in_any_case(
    sql: str, expected: TransactionShards
) -> None:
    known = SchemaFacts.of(
        LetterCase(folds=True),
        views=frozenset({TableKey("a", "v")}),
        triggered_tables=frozenset({TableKey("A", "Tr")}),
        routine_databases=frozenset({"A"}),
        references=[(TableKey("Child", "c"), TableKey("BASE", "p"))],
    )
    folding = EventMetadataFilter(Flavor.MARIADB, known)
    assert folding.assign((), [LoggedStatement(facts(sql))]) == expected
    assert folding.assign(("Child",), ()) == one("base")


def test_names_are_told_apart_where_the_server_does() -> None:
    assert mariadb("UPDATE V SET x = 1") == one("a")
    assert mariadb("INSERT INTO CHILD.t VALUES (1)") == one("CHILD")


def test_the_databases_that_mysql_lists_are_compared_so_too() -> None:
    folding = EventMetadataFilter(Flavor.MYSQL, SchemaFacts(letter_case=LetterCase(folds=True)))
    statement = LoggedStatement(facts("INSERT INTO T VALUES (1)", Flavor.MYSQL), ("B", "A"))
    assert folding.assign((), [statement]).shards == {"a", "b"}


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE FUNCTION b.f() RETURNS INT RETURN 1",
        "ALTER PROCEDURE b.p SQL SECURITY INVOKER",
        "DROP FUNCTION IF EXISTS b.f",
        "DROP PROCEDURE b.p",
        "CREATE OR REPLACE VIEW b.v2 AS SELECT 1 AS x",
        "ALTER VIEW b.v2 AS SELECT 2 AS x",
        "DROP VIEW b.v2",
        "DROP DATABASE b",
    ],
)
def test_a_program_that_mysql_s_statements_reach_unlisted_waits_for_all_of_them(sql: str) -> None:
    """An INSERT whose trigger calls b.f is listed with its table's database alone."""
    [definition, insert, rows] = (
        LoggedStatement(facts(text, Flavor.MYSQL), ("b",)) for text in (sql, "DELETE FROM b.t", "SAVEPOINT s")
    )
    for other, expected in (
        (insert, unknown("a view or routine that statements may reach without naming it")),
        (rows, one("b")),
    ):
        known = SchemaFacts().after(definition.facts, other.facts)
        assert EventMetadataFilter(Flavor.MYSQL, known).assign((), [definition]) == expected
