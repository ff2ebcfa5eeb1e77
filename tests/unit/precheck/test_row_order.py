"""Which statements are looked at for the order of rows: those with words for it, and UPDATEs of a view."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from time import process_time
from typing import Any, Final

import pytest

from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.bodies.body_parts import Body
from binlane.precheck.bodies.equal_documents import _Documents
from binlane.precheck.bodies.row_order import RowOrder, _named_engine, ends_at_equal_keys, takes_rows
from binlane.precheck.situation.situation import Needs, Situation
from binlane.schema.model import Column, Key, KeyColumn, Table
from binlane.schema.programs import MODE, Program
from binlane.sql.logged_statement import LoggedText
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.programs.comparison import Difference
from binlane.sql.programs.reach import plain_name
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import said, schema, situation

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


def test_what_is_done_for_each_row_besides_a_body() -> None:
    made = situation()
    vars(made).update(stored_triggers=(TRIGGERS, TRIGGERS), stored_programs=((), ROUTINES), may_reach_programs=True)
    order = RowOrder(made)
    names = [each.name or plain_name(each.difference.key) for each in order.every_body]
    assert {name: {names[other] for other in order.others(at)} for at, name in enumerate(names)} == {
        "one": {"two", "other", "never"},
        "two": {"one", "never"},
        "other": {"one", "never"},
        "calling": {"outer_one", "inner_one", "never"},
        "outer_one": {"calling", "never"},
        "inner_one": {"calling"},
        "adding": set(),
        "never": {"one", "two", "other", "calling", "outer_one"},
    }


def test_another_text_of_a_body_runs_in_its_place() -> None:
    other = replace(TRIGGERS[0], text=f"{TRIGGERS[0].text} + 1", name=TRIGGERS[0].name.upper())
    made = situation()
    vars(made).update(stored_triggers=(TRIGGERS[:1], (other,)), stored_programs=((), ()), may_reach_programs=True)
    order = RowOrder(made)
    assert [order.others(at) for at, _ in enumerate(order.every_body)] == [frozenset(), frozenset()]


RUNS: Final = Needs(statements=True)


def felt(statement: str, *programs: Program) -> list[str]:
    """What check `row-order` finds behind a statement."""
    return [each.found for each in RowOrder(window(statement, *programs)).behind()]


def window(statement: str, *programs: Program, needs: Needs = RUNS) -> Situation:
    item = Item(ItemKind.STATEMENT, statement.encode(), context=SessionContext(database="shop", charset_client=45))
    header = BlockHeader(9, 9, 1, LogPosition("log", 9), "", 0.0)

    def transactions_with(pattern: re.Pattern[bytes]) -> Iterator[tuple[LaneStatement, BlockHeader]]:
        if pattern.search(item.payload) is not None:
            yield LaneStatement(0, header, item), header

    columns = (Column("id", 1, "int", nullable=False), Column("n", 2, "int"), Column("m", 3, "int"))
    primary = Key("PRIMARY", True, True, (KeyColumn("id"),))
    names = ("fired", "other", "s", "c")
    code = Column("code", 4, "varchar", length=9, octets=36, charset="utf8mb4", collation="utf8mb4_general_ci")
    tables = [Table(TableKey("shop", name), "InnoDB", (*columns, code), (primary,)) for name in names]
    unique = Key("code", True, False, (KeyColumn("code"),))
    tables.append(Table(TableKey("shop", "texts"), "InnoDB", (*columns, code), (unique,)))
    made = situation(tables=schema(*tables), needs=needs)
    triggers, routines = ([each for each in programs if (each.kind == "trigger") is is_one] for is_one in (True, False))
    vars(made).update(
        stored_triggers=((), triggers),
        stored_programs=((), routines),
        may_reach_programs=True,
        program_names=frozenset(each.key.table for each in routines),
        transactions_with=transactions_with,
    )
    return made


def trigger(table: str, text: str, time: str = "AFTER INSERT", name: str = "") -> Program:
    return Program(TableKey("shop", table), "trigger", text, name=name or table, time=time)


def function(name: str, text: str) -> Program:
    return Program(TableKey("shop", name), "function", text, name=name)


INSERTING, DELETING = "INSERT INTO c (id, n) VALUES (NEW.n, NEW.m)", "DELETE FROM c WHERE id = NEW.n"
ONE, TWO = "UPDATE c SET n = n + 1 WHERE id = NEW.n", "UPDATE c SET n = 5 WHERE id = NEW.m"
OF_ROWS: Final = "INSERT INTO fired SELECT * FROM s"
TOGETHER: Final[dict[str, tuple[Any, ...]]] = {
    "triggers of one event": (OF_ROWS, trigger("fired", ONE, name="a"), trigger("fired", TWO, name="b")),
    "a trigger behind another one's change": (
        OF_ROWS,
        trigger("fired", f"BEGIN INSERT INTO other (id) VALUES (NEW.id); {DELETING}; END"),
        trigger("other", "INSERT INTO c (id) VALUES (NEW.id)"),
    ),
    "triggers of two tables": (
        "UPDATE fired, other SET fired.n = 1, other.n = 2 WHERE fired.m = other.m",
        trigger("fired", INSERTING, "AFTER UPDATE"),
        trigger("other", DELETING, "AFTER UPDATE"),
    ),
    "two functions": (
        "INSERT INTO s SELECT adding(id), taking(n) FROM s AS x",
        function("adding", "BEGIN INSERT INTO c (id) VALUES (x); RETURN 1; END"),
        function("taking", "BEGIN DELETE FROM c WHERE id = x; RETURN 1; END"),
    ),
    "a function that reads what a trigger writes": (
        "INSERT INTO fired SELECT counted(id), 1, 1, 1 FROM s",
        trigger("fired", INSERTING),
        function("counted", "RETURN (SELECT COUNT(*) FROM c)"),
    ),
    "a function that reads it by a view": (
        "INSERT INTO fired SELECT counted(id), 1, 1, 1 FROM s",
        trigger("fired", INSERTING),
        function("counted", "RETURN (SELECT COUNT(*) FROM v)"),
        Program(TableKey("shop", "v"), "view", "select `id` from `c`"),
    ),
    "a body that reads what it changes by a view": (
        OF_ROWS,
        trigger("fired", f"BEGIN DECLARE x INT; SELECT COUNT(*) INTO x FROM v; {INSERTING}; END"),
        Program(TableKey("shop", "v"), "view", "select `id` from `c`"),
    ),
    "a table and its view": (
        OF_ROWS,
        trigger("fired", f"BEGIN {TWO}; UPDATE v SET n = 7 WHERE id = NEW.n; END"),
        Program(TableKey("shop", "v"), "view", "select `id`, `n` from `c`"),
    ),
    "a statement that changes a view": (
        "UPDATE v SET n = counted(id)",
        function("counted", "RETURN (SELECT COUNT(*) FROM c)"),
        Program(TableKey("shop", "v"), "view", "select `id`, `n` from `c`"),
    ),
    "rows of one key": (
        OF_ROWS,
        trigger("fired", "REPLACE INTO c (id, n) VALUES (NEW.id, NEW.m)", name="a"),
        trigger("fired", "REPLACE INTO c (id, n) VALUES (NEW.n, 0)", name="b"),
    ),
    "a table by other letters": (
        OF_ROWS,
        trigger("fired", f"BEGIN {TWO}; UPDATE C SET n = 7 WHERE id = NEW.n; END"),
    ),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_bodies_that_one_statement_runs_are_judged_together(case: str) -> None:
    statement, *programs = TOGETHER[case]
    assert felt(statement, *programs) != []
    assert felt("INSERT INTO fired VALUES (1, 1, 1, 1)", *programs) == []
    alone = [each for each in programs if each.kind != "view"]
    if len(alone) > 1:
        assert [felt(statement, each) for each in alone] == [[] for _ in alone]


FOUND_BY_M = "BEGIN UPDATE c SET n = n + 1 WHERE m = 1; INSERT INTO c (id, n, m) VALUES (NEW.id, 0, 2); END"
BY_KEY = "BEGIN INSERT INTO c (id, n) VALUES (NEW.id, 0); UPDATE c SET n = n + 1 WHERE id = NEW.id; END"
COUNTED = "INSERT INTO c (id, n) VALUES (NEW.n, 1) ON DUPLICATE KEY UPDATE n = n + 1"
SUMMED = "INSERT INTO c (id, n) VALUES (NEW.n, NEW.m) ON DUPLICATE KEY UPDATE n = n + VALUES(n)"
ADDED = "UPDATE c SET n = n + NEW.m WHERE id = NEW.n"
TWO_COLUMNS = "BEGIN UPDATE c SET n = 1 WHERE id = NEW.n; UPDATE c SET m = 2 WHERE id = NEW.m; END"
IN_FRONT: Final = (
    (FOUND_BY_M, "SET NEW.m = 1", "BEFORE INSERT", True),
    (FOUND_BY_M, "SET NEW.m = 1", "BEFORE UPDATE", True),
    (FOUND_BY_M, "CALL p(NEW.m)", "BEFORE INSERT", True),
    (FOUND_BY_M, "SET NEW.n = 1", "BEFORE DELETE", False),
    (FOUND_BY_M, "SET NEW.code = 'x'", "BEFORE INSERT", False),
    (BY_KEY, "SET NEW.id = 7", "BEFORE INSERT", True),
    (BY_KEY, "SET NEW.m = NEW.n * 2", "BEFORE UPDATE", False),
    (COUNTED, "SET NEW.n = NEW.n + NEW.id", "BEFORE INSERT", True),
    (COUNTED, "SET NEW.n = NEW.n * 2", "BEFORE UPDATE", True),
    (COUNTED, "SET NEW.n = 1", "BEFORE UPDATE", True),
    (COUNTED, "SET NEW.m = NOW()", "BEFORE UPDATE", False),
    (COUNTED, "BEGIN SET NEW.m = 1, NEW.code = 'x'; END", "BEFORE INSERT", False),
    (SUMMED, "SET NEW.n = NEW.n * 2", "BEFORE UPDATE", True),
    (SUMMED, "IF NEW.n > 100 THEN SET NEW.n = 0; END IF", "BEFORE UPDATE", True),
    (SUMMED, "IF NEW.n > 100 THEN SET NEW.m = 0; END IF", "BEFORE UPDATE", True),
    (SUMMED, "SET @a = NEW.n", "AFTER UPDATE", False),
    (ADDED, "IF NEW.n > 100 THEN SET NEW.n = 0; END IF", "BEFORE UPDATE", True),
    (ADDED, "SET NEW.m = OLD.n", "BEFORE UPDATE", True),
    (ADDED, "SET NEW.id = 7", "BEFORE UPDATE", True),
    (ADDED, "SET NEW.m = NOW()", "BEFORE UPDATE", False),
    (ADDED.replace("NEW.n", "NEW.id"), "SET NEW.m = OLD.n", "BEFORE UPDATE", False),
    (ADDED.replace("NEW.n", "NEW.id"), "SET NEW.id = 7", "BEFORE UPDATE", True),
    (ADDED, "SET NEW.n = 5", "BEFORE UPDATE", True),
    (FOUND_BY_M.replace("UPDATE c SET n = n + 1", "DELETE FROM c"), "SET NEW.m = 1", "BEFORE INSERT", True),
    (COUNTED.replace("NEW.n", "NEW.id"), "SET NEW.m = NEW.n", "BEFORE INSERT", False),
    (COUNTED.replace("NEW.n", "NEW.id"), "SET NEW.id = 7", "BEFORE INSERT", True),
    ("UPDATE c SET n = m WHERE id = NEW.n", "SET NEW.m = 5", "BEFORE UPDATE", True),
    (TWO_COLUMNS, "SET NEW.code = CONCAT(NEW.code, NEW.n)", "BEFORE UPDATE", True),
    (TWO_COLUMNS, "SET NEW.code = NOW()", "BEFORE UPDATE", False),
    (SUMMED, "CALL p(1)", "AFTER UPDATE", False),
    (SUMMED, "CALL p(1)", "BEFORE DELETE", False),
    (SUMMED, "CALL p(1)", "BEFORE UPDATE", True),
)
"""A trigger's body, the trigger of the table that it changes, and whether that makes the order of rows show."""


@pytest.mark.parametrize(("body", "of_c", "time", "is_felt"), IN_FRONT)
@pytest.mark.parametrize("side", [0, 1])
def test_a_row_has_what_the_triggers_in_front_of_it_give_it(
    body: str, of_c: str, time: str, is_felt: bool, side: int
) -> None:
    firing = trigger("fired", body)
    assert felt(OF_ROWS, firing) == []
    made = window(OF_ROWS, firing)
    triggers: list[tuple[Program, ...]] = [(firing,), (firing,)]
    triggers[side] += (trigger("C", of_c, time, "cb"),)
    vars(made).update(stored_triggers=tuple(triggers))
    found = [each.found for each in RowOrder(made).behind() if each.found.endswith("trigger shop.fired")]
    assert (found != []) is is_felt


def test_a_trigger_that_the_window_makes_may_give_a_row_any_value() -> None:
    made = window(OF_ROWS, trigger("fired", FOUND_BY_M))
    sql = b"CREATE TRIGGER tr BEFORE INSERT ON c FOR EACH ROW SET NEW.code = 'x'"
    item = Item(ItemKind.DDL, sql, context=SessionContext(database="shop"))
    text = LoggedText.of(5, LogPosition("log", 4), item, Flavor.MARIADB)
    assert text is not None
    assert not RowOrder(made)._set_before_in(TableKey("shop", "c")).may_set({"m"})
    vars(made).update(every_text=[text])
    assert RowOrder(made)._set_before_in(TableKey("shop", "c")).may_set({"m"})


def test_a_view_may_have_other_names_for_what_a_trigger_sets() -> None:
    view = Program(TableKey("shop", "v"), "view", "select `id`, `m` AS `x` from `c`")
    firing = trigger("fired", "UPDATE v SET x = 1 WHERE id = NEW.n")
    of_c = trigger("c", "SET NEW.code = 'x'", "BEFORE UPDATE", "cb")
    found = [felt(OF_ROWS, firing, view, *more) for more in ((), (of_c,))]
    assert ["trigger shop.fired" in str(each) for each in found] == [False, True]


LIMITS: Final = {
    "SELECT n INTO v FROM c WHERE id = NEW.n LIMIT 1": True,
    "SELECT n INTO v FROM c WHERE id = NEW.n FETCH FIRST ROW ONLY": True,
    "SELECT n INTO v FROM c WHERE m = NEW.n LIMIT 1": False,
    "SELECT n INTO v FROM c WHERE m = NEW.n ORDER BY n LIMIT 1": True,
    "SELECT 1 INTO v FROM c WHERE m = NEW.n LIMIT 1": True,
    "SELECT COUNT(*) INTO v FROM c WHERE m = NEW.n LIMIT 1": True,
    "SELECT COUNT(*) INTO v FROM c WHERE m = NEW.n GROUP BY n LIMIT 1": False,
    "SELECT n INTO v FROM c WHERE id = NEW.id UNION SELECT m FROM c WHERE id = NEW.n LIMIT 1": False,
    "SELECT n INTO v FROM c WHERE id = v LIMIT 1": True,
    "SELECT n INTO v FROM c WHERE id > v LIMIT 1": False,
    "SET v = (SELECT n FROM c WHERE id = NEW.n LIMIT 1)": True,
    "SET v = (SELECT n FROM c LIMIT 1)": False,
    "SELECT n INTO v FROM texts WHERE code = NEW.code LIMIT 1": True,
    "SELECT n INTO v FROM texts WHERE code = OLD.code LIMIT 1": True,
    "SELECT n INTO v FROM texts WHERE code = NEW.n LIMIT 1": False,
    "SELECT n INTO v FROM texts WHERE code = v LIMIT 1": False,
    "SELECT (SELECT n FROM texts WHERE code = o.code LIMIT 1) INTO v FROM other o WHERE id = 1": False,
    "SELECT n INTO v FROM nowhere WHERE id = NEW.n LIMIT 1": False,
    "UPDATE c SET n = 1 WHERE id = NEW.n LIMIT 1": True,
    "DELETE FROM c WHERE m = NEW.n LIMIT 1": False,
}


@pytest.mark.parametrize(("statement", "is_settled"), LIMITS.items())
def test_a_limit_in_a_body_takes_one_row_by_a_unique_key(statement: str, is_settled: bool) -> None:
    found = felt("INSERT INTO fired VALUES (1, 1, 1, 1)", trigger("fired", f"BEGIN DECLARE v INT; {statement}; END"))
    assert (found == []) is is_settled
    assert all(each.startswith("LIMIT for rows in an order that no key settles of trigger") for each in found)


@pytest.mark.parametrize("view", ["select `id`, `n` from `c`", "select c.id, c.n from c join other on c.id = other.id"])
def test_a_view_that_is_changed_takes_the_rows_of_its_tables_as_the_statement_does(view: str) -> None:
    assert felt("UPDATE v SET n = 5 WHERE n = 1", Program(TableKey("shop", "v"), "view", view)) == []


def test_a_limit_in_a_body_is_refused_where_nobody_looks_at_the_order_of_rows() -> None:
    program = trigger("fired", "BEGIN DECLARE v INT; SELECT n INTO v FROM c WHERE m = 1 LIMIT 1; END")
    loading = window("LOAD DATA INFILE 'f' INTO TABLE fired", program, needs=Needs(loads=True))
    assert ["LIMIT without ORDER BY" in each for each in said(loading, "row-order", "unsafe-bodies")] == [True]
    inserting = window("INSERT INTO fired VALUES (1, 1, 1, 1)", program)
    assert ["LIMIT for rows in an order" in each for each in said(inserting, "row-order", "unsafe-bodies")] == [True]


def test_bodies_that_no_statement_runs_together_are_not() -> None:
    programs = (trigger("fired", INSERTING), trigger("other", DELETING), trigger("fired", DELETING, "AFTER DELETE"))
    for statement in (OF_ROWS, "INSERT INTO other SELECT * FROM s", "DELETE FROM fired"):
        assert felt(statement, *programs) == []


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
        ("CREATE TABLE u (a INT)", False),
        ("CREATE VIEW v AS SELECT 1", False),
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
    begin = process_time()
    found = [part for at, body in enumerate(order.every_body) for part in order.parts(body, order.others(at))]
    assert len(found) == len(order.every_body)
    assert process_time() - begin < 4
