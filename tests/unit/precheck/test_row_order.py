"""Which statements are looked at for the order of rows: those with words for it, and UPDATEs of a view."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.bodies.body_parts import Body, bodies
from binlane.precheck.bodies.equal_documents import _Documents
from binlane.precheck.bodies.row_effects import effects_in_turn
from binlane.precheck.bodies.row_order import RowOrder, _named_engine, ends_at_equal_keys, takes_rows
from binlane.precheck.situation.situation import Needs
from binlane.schema.model import Column, Table
from binlane.schema.programs import MODE, Program
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.programs.comparison import Difference
from tests.unit.precheck.situations import schema, situation
from tests.unit.sql.parse.test_statements import NOT_READ

KEY = TableKey("shop", "fired")
CALLING = "BEGIN UPDATE d SET n = 1; INSERT INTO e VALUES (1); CALL Outer_One(NEW.n); END"
TRIGGERS = (
    Program(KEY, "trigger", "DELETE FROM c WHERE id = NEW.n", name="one", time="AFTER UPDATE"),
    Program(KEY, "trigger", "INSERT INTO c VALUES (NEW.n)", name="two", time="AFTER UPDATE"),
    Program(KEY, "trigger", "INSERT INTO c VALUES (NEW.n)", name="other", time="AFTER INSERT"),
    Program(
        KEY,
        "trigger",
        CALLING,
        name="calling",
        time="BEFORE DELETE",
    ),
)
ROUTINES = (
    Program(TableKey("shop", "outer_one"), "procedure", "BEGIN INSERT INTO D VALUES (1); CALL inner_one(1); END"),
    Program(TableKey("shop", "inner_one"), "procedure", "BEGIN CALL outer_one(1); DELETE FROM e; CALL adding(1); END"),
    Program(TableKey("shop", "adding"), "procedure", "INSERT INTO other VALUES (1)"),
    Program(TableKey("shop", "never"), "procedure", "BEGIN DELETE FROM c; DELETE FROM d; END"),
)


def test_what_is_done_for_each_row_besides_a_trigger() -> None:
    made = situation()
    vars(made).update(stored_triggers=(TRIGGERS, TRIGGERS), stored_programs=((), ROUTINES), may_reach_programs=True)
    order = RowOrder(made)
    beside = {each.name: order._beside(each) for each in bodies(made) if each.events}
    assert {name: [each.difference.where for each in found.bodies] for name, found in beside.items()} == {
        "one": ["trigger shop.two"],
        "two": ["trigger shop.one"],
        "other": [],
        "calling": ["procedure shop.outer_one", "procedure shop.inner_one"],
    }
    assert beside["other"].changed == {TableKey("shop", name) for name in "cde"}


def test_a_view_shows_the_tables_of_its_query_and_of_views_in_it() -> None:
    views = (
        Program(TableKey("shop", "v"), "view", "select 1 from w join a on 1 = 1"),
        Program(TableKey("shop", "w"), "view", "select 1 from v, b"),
    )
    made = situation()
    vars(made).update(stored_programs=((), views), may_reach_programs=True)
    order = RowOrder(made)
    assert order.bases_of(TableKey("shop", "v")) == {TableKey("shop", "a"), TableKey("shop", "b")}
    assert order.bases_of(TableKey("shop", "a")) == {TableKey("shop", "a")}


VIEW = Program(TableKey("shop", "V"), "view", "select `a` from `t` limit 1")


@pytest.mark.parametrize("settings", [{}, {"lower_case_table_names": "1"}])
def test_an_update_of_a_view_is_looked_at_by_the_view_s_own_name(settings: dict[str, str]) -> None:
    made = situation(tables=schema(settings=settings))
    vars(made).update(stored_programs=((), (VIEW,)), may_reach_programs=True)
    order = RowOrder(made)
    assert order._felt.search(b"UPDATE V SET a = 1") is not None
    assert order._felt.search(b"UPDATE other SET a = 1") is None
    assert order.view_of(TableKey("shop", "V")) is not None
    # a server with 0 has no view of that name
    assert (order.view_of(TableKey("shop", "v")) is not None) is bool(settings)


@pytest.mark.parametrize(
    ("sql", "session", "ends"),
    [
        ("INSERT INTO fired SELECT * FROM t", SessionContext(), True),
        ("INSERT INTO Fired (a) SELECT REPLACE(s, 'a', 'b') FROM t", SessionContext(), True),
        ("INSERT INTO fired VALUES (1), (2)", SessionContext(error_code=1062), False),
        ("INSERT INTO fired SELECT * FROM t", SessionContext(unique_checks=False), False),
        ("INSERT IGNORE INTO fired SELECT * FROM t", SessionContext(), False),
        ("REPLACE INTO fired SELECT * FROM t", SessionContext(), False),
        ("INSERT INTO fired SELECT * FROM t ON DUPLICATE KEY UPDATE a = 1", SessionContext(), False),
        ("LOAD DATA INFILE 'f' INTO TABLE fired", SessionContext(), False),
        ("UPDATE fired SET a = 1", SessionContext(), False),
        # its trigger may do anything there
        ("INSERT INTO other SELECT * FROM t", SessionContext(), False),
        ("INSERT INTO elsewhere.fired SELECT * FROM t", SessionContext(), False),
    ],
)
def test_only_a_plain_insert_into_the_table_itself_ends_where_two_rows_have_one_key(
    sql: str, session: SessionContext, ends: bool
) -> None:
    item = Item(ItemKind.STATEMENT, sql.encode(), context=replace(session, database="shop"))
    text = LoggedText.of(5, LogPosition("log", 4), item, Flavor.MARIADB)
    assert text is not None
    assert ends_at_equal_keys(text, KEY) is ends


@pytest.mark.parametrize(
    ("other", "time", "expected"),
    [
        ("SET @n = 1", "BEFORE INSERT", {"b"}),
        ("SET NEW.`A` = 1, `new`.c := 2", "BEFORE INSERT", {"a", "b", "c"}),
        ("SET NEW.a = 1", "AFTER INSERT", {"b"}),
        ("CALL p(NEW.a)", "BEFORE INSERT", None),
        ("SELECT 1 INTO NEW.a", "BEFORE INSERT", None),
        (None, "BEFORE INSERT", None),
    ],
)
def test_what_any_trigger_in_front_of_a_row_may_set_is_not_given(
    other: str | None, time: str, expected: set[str] | None
) -> None:
    own = Program(KEY, "trigger", "SET NEW.b = 1", name="one", time="BEFORE INSERT")
    beside = (replace(own, text=other, name="two", time=time), Program(TableKey("shop", "x"), "trigger", None))
    made = situation()
    vars(made).update(stored_triggers=((), (own, *beside)))
    body = Body(Difference(KEY, "trigger", "", "", is_trigger=True), "shop", (), by_definer=True, is_before=True)

    assert RowOrder(made)._set_before(body) == (None if expected is None else frozenset(expected))
    assert RowOrder(made)._set_before(body._replace(is_before=False)) is None
    bare = replace(own, text="p(NEW.a)", facts={MODE: "ORACLE"})
    vars(made).update(stored_triggers=((), (own, bare)))
    assert RowOrder(made)._set_before(body) is None


def test_a_trigger_that_the_window_makes_may_set_anything() -> None:
    sql = b"CREATE TRIGGER tr BEFORE INSERT ON fired FOR EACH ROW SET @n = 1"
    item = Item(ItemKind.DDL, sql, context=SessionContext(database="shop"))
    text = LoggedText.of(5, LogPosition("log", 4), item, Flavor.MARIADB)
    made = situation(texts=[text])
    vars(made).update(stored_triggers=((), ()))
    body = Body(Difference(KEY, "trigger", "", "", is_trigger=True), "shop", (), by_definer=True, is_before=True)
    assert RowOrder(made)._set_before(body) is None


@pytest.mark.parametrize(
    ("sql", "takes"),
    [
        ("CREATE TABLE u SELECT f()", True),
        ("CREATE TABLE u AS VALUES (f())", True),
        ("CREATE TABLE u TABLE t", True),
        (f"CREATE TABLE u SELECT {NOT_READ}", True),
        ("CREATE TABLE u (a INT)", False),
        (f"CREATE VIEW v AS SELECT {NOT_READ}", False),
    ],
)
@pytest.mark.parametrize("flavor", Flavor)
def test_a_table_takes_rows_by_each_form_of_a_query(sql: str, takes: bool, flavor: Flavor) -> None:
    item = Item(ItemKind.DDL, sql.encode(), context=SessionContext(database="a"))
    text = LoggedText.of(5, LogPosition("binlog.000007", 4711), item, flavor)
    assert text is not None
    assert takes_rows(situation(texts=[text], needs=Needs(ddl=True))) is takes


def test_numbers_of_a_table_that_a_body_fills_count_in_any_database() -> None:
    numbered = Table(TableKey("crm", "log"), "InnoDB", (Column("id", 1, "int", auto_increment=True),))
    made = situation(tables=schema(), planned=schema(numbered))
    assert RowOrder(made).is_numbered(numbered.key)
    assert not RowOrder(made).is_numbered(TableKey("crm", "other"))


def test_documents_of_a_table_that_a_body_changes_count_in_any_database() -> None:
    table = Table(TableKey("crm", "log"), "InnoDB", (Column("doc", 1, "json"), Column("id", 2, "int")))
    documents = _Documents(situation(tables=schema(), planned=schema(table)), is_one_family=False)
    assert documents._is_document(table.key, "DOC")
    assert not documents._is_document(table.key, "id")


@pytest.mark.parametrize("engines", [("InnoDB", "BLACKHOLE"), ("BLACKHOLE", "InnoDB"), ("BLACKHOLE", "BLACKHOLE")])
def test_the_engine_of_one_server_that_keeps_no_keys_is_told(engines: tuple[str, str]) -> None:
    target, source = (Table(KEY, engine, (Column("id", 1, "int"),), ()) for engine in engines)
    made = situation(tables=schema(target))
    vars(made).update(source_tables=schema(source), stored_programs=((), ()), may_reach_programs=False)
    found = RowOrder(made).table_of(1)(KEY)
    assert found is not None
    assert found.engine == "blackhole"


@pytest.mark.parametrize(
    ("sql", "engine"),
    [
        ("CREATE TABLE t (a int) ENGINE=BLACKHOLE", "blackhole"),
        ("CREATE TABLE t (a int) ENGINE `Merge` UNION (b)", "merge"),
        ("CREATE TABLE t (a int) ENGINE = 'InnoDB'", "blackhole"),
        ("CREATE TABLE t (a int) ENGINE=InnoDB COMMENT 'x'", ""),
        ("CREATE TABLE t (a int) ENGINE BLACKHOLE", "blackhole"),
        ("CREATE TABLE t (a int)", ""),
    ],
)
def test_the_engine_that_a_statement_names_is_read(sql: str, engine: str) -> None:
    tokens: list[Token] = []
    lex(sql, Dialect(Flavor.MYSQL), tokens)
    assert _named_engine(tokens) == engine


def chained(number: int) -> RowOrder:
    """Routines of which each calls the next one, and changes one table with all of them."""
    routines = [
        Program(
            TableKey("shop", f"p{at}"),
            "procedure",
            f"BEGIN UPDATE t{at} SET a = a + 1; CALL p{(at + 1) % number}(1); INSERT INTO log VALUES (NOW()); END",
        )
        for at in range(number)
    ]
    made = situation()
    vars(made).update(stored_triggers=((), ()), stored_programs=((), routines), may_reach_programs=True)
    return RowOrder(made)


def test_a_long_chain_of_routines_is_looked_at_in_a_short_time() -> None:
    order = chained(500)
    every = order.every_body
    begin = process_time()
    found = [part for body in every for part in effects_in_turn(body, lambda _: None, order._beside(body))]
    assert len(found) == len(every)
    assert process_time() - begin < 4
