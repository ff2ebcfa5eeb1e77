"""What a body leaves that runs once for each row: the same in any order, or named."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, TableKey
from binlane.precheck.statements.body_parts import Body
from binlane.precheck.statements.row_effects import effects_in_turn
from binlane.schema.model import Column, Key, KeyColumn, Table
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.programs.comparison import Difference

PRIMARY = Key("PRIMARY", True, True, (KeyColumn("id"),))


def table(name: str) -> Table:
    columns = (Column("id", 1, "int"), Column("n", 2, "int"), Column("m", 3, "int"), Column("f", 4, "double"))
    return Table(TableKey("a", name), "InnoDB", columns, (PRIMARY,))


TABLES = {each.key: each for each in (table("fired"), table("c"))}


def named(body: str, event: str = "UPDATE") -> list[str]:
    found = list[Token]()
    lex(body, Dialect(Flavor.MYSQL), found)
    difference = Difference(TableKey("a", "fired"), "trigger a.t", "", "", is_trigger=bool(event))
    of = Body(difference, "a", found, by_definer=True, events=frozenset({event} - {""}))
    return [part.what for part in effects_in_turn(of, TABLES.get, ())]


LAST = "an UPDATE of a.c in which the last row remains"
FELT = [
    "UPDATE c SET n = NEW.n WHERE id = 1",
    "UPDATE c SET n = n + m * NEW.n, m = m + 1 WHERE id = 1",
    "UPDATE c SET n = n + m * NEW.n WHERE id = 1",
    "UPDATE c SET n = n + c.m * NEW.n WHERE id = 1",
    "BEGIN UPDATE c SET m = m + NEW.n WHERE id = 1; UPDATE c SET n = n * 2 + m WHERE id = 1; END",
    "BEGIN UPDATE c SET n = n + NEW.n WHERE id = 1; UPDATE c SET n = 5 WHERE id = 1; END",
    "BEGIN UPDATE c SET n = n + NEW.n WHERE id = 1; UPDATE c SET n = n * 2 WHERE id = 1; END",
    "BEGIN UPDATE c SET n = n + NEW.n WHERE id = 1; UPDATE c SET n = GREATEST(n, NEW.m) WHERE id = 1; END",
    "BEGIN UPDATE c SET n = 1 WHERE id = NEW.n; UPDATE c SET n = 0 WHERE id = OLD.n; END",
    "BEGIN DECLARE x INT DEFAULT NEW.n; UPDATE c SET n = x WHERE id = 1; END",
    "BEGIN IF NEW.n THEN UPDATE c SET n = 1 WHERE id = 1; ELSE UPDATE c SET n = 0 WHERE id = 1; END IF; END",
    "BEGIN IF @x THEN UPDATE c SET n = 1 WHERE id = 1; ELSE UPDATE c SET n = 0 WHERE id = 1; END IF; END",
    "BEGIN INSERT INTO C (id) VALUES (NEW.n); UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE n = 1; END",
    "BEGIN SET NEW.m = 1, @x = NEW.n; UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN CALL p(NEW.n); UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN UPDATE c SET n = 1 WHERE id = NEW.n; UPDATE c SET n = 2 WHERE id = OLD.n; END",
    "BEGIN UPDATE c SET n = NOW() WHERE id = NEW.n; UPDATE c SET n = NULL WHERE id = OLD.n; END",
    "BEGIN UPDATE c SET n = RAND() WHERE id = NEW.n; UPDATE c SET n = RAND() WHERE id = OLD.n; END",
]
SAME = [
    "UPDATE c SET n = n + NEW.n WHERE id = 1",
    "UPDATE c SET n = n + NEW.n, m = m + 1 WHERE id = 1",
    "UPDATE c SET n = n - OLD.n WHERE id = 1",
    "BEGIN UPDATE c SET n = n - OLD.n WHERE id = 1; UPDATE c SET n = n + NEW.n WHERE id = 2; END",
    "BEGIN DECLARE x INT DEFAULT NEW.n; UPDATE c SET n = n + x WHERE id = 1; END",
    "UPDATE c SET n = GREATEST(n, NEW.n) WHERE id = 1",
    "UPDATE c SET m = 5, n = NULL, f = NOW() WHERE id = NEW.m",
    "UPDATE c SET m = m * 2, n = 1 - n WHERE id = NEW.m",
    "UPDATE c SET n = NEW.n WHERE id = NEW.id",
    "BEGIN UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 1 WHERE id = 2; END",
    "BEGIN UPDATE c SET n = NOW() WHERE id = 1; UPDATE c SET n = NOW() WHERE id = 2; END",
    "BEGIN UPDATE c SET n = n + 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN INSERT INTO log VALUES (NEW.id); UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN SET NEW.m = NEW.n + 1, NEW.n = 2; UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "CREATE TRIGGER t AFTER UPDATE ON fired FOR EACH ROW BEGIN INSERT INTO log VALUES (NEW.id);"
    " UPDATE c SET n = 1 WHERE id = 1; UPDATE c SET n = 0 WHERE id = 2; END",
    "BEGIN UPDATE c SET n = NOW() WHERE id = NEW.n; UPDATE c SET n = NOW() WHERE id = OLD.n; END",
    "BEGIN IF NEW.n THEN UPDATE c SET n = NULL WHERE id = 1; END IF; UPDATE c SET n = NULL WHERE id = 2; END",
]


@pytest.mark.parametrize("body", FELT)
def test_what_the_last_row_decides_is_named(body: str) -> None:
    assert LAST in named(body)


@pytest.mark.parametrize("body", SAME)
def test_what_is_the_same_in_any_order_is_not(body: str) -> None:
    assert named(body) == []


def test_rows_that_a_join_finds_are_no_rows_of_the_firing_one() -> None:
    assert named("UPDATE c, fired SET c.n = NEW.n WHERE fired.id = NEW.id") != []


@pytest.mark.parametrize(
    "declared",
    ["DECLARE CONTINUE HANDLER FOR NOT FOUND, SQLEXCEPTION SET @a = 1", "DECLARE EXIT HANDLER FOR 1062 DO 0"],
)
def test_a_handler_of_errors_keeps_the_row_that_came_first(declared: str) -> None:
    assert named(f"BEGIN {declared}; INSERT INTO c VALUES (NEW.n, 1, 1, 1); END") == [
        "a handler of errors that depend on the rows before"
    ]
    assert named("BEGIN INSERT INTO c VALUES (NEW.n, 1, 1, 1); EXCEPTION WHEN OTHERS THEN NULL; END") != []


def test_a_list_of_rows_whose_first_ones_are_literals_is_no_row() -> None:
    upsert = "INSERT INTO c (id, n) VALUES {} ON DUPLICATE KEY UPDATE n = NEW.n"
    assert named(upsert.format("(NEW.id, 0)")) == []
    assert named(upsert.format("(0, 0), (NEW.id, 0)")) != []
