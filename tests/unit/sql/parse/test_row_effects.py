"""Which values are sums, whose order does not show; and which INSERTs meet on a key."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, TableKey
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.query_blocks import Column
from binlane.sql.parse.row_changes import branches_before, row_changes
from binlane.sql.parse.row_effects import (
    Change,
    assignments,
    change_of,
    reads,
    row_of,
    types_of_variables,
    upserts,
    writes,
)
from binlane.sql.programs.of_server import catches_errors


def tokens_of(text: str) -> list[Token]:
    found = list[Token]()
    lex(text, Dialect(Flavor.MYSQL), found)
    return found


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("n + NEW.v", True),
        ("t.n - OLD.v + NEW.v * 2", True),
        ("IFNULL(n, 0) + NEW.v", True),
        ("GREATEST(n, NEW.v)", False),
        ("NEW.v", False),
        ("n * 2 + NEW.v", False),
        ("NEW.v + n", False),
        ("n + NEW.v > 3", False),
        ("n + n * NEW.v", False),
        ("n + (SELECT MAX(n) FROM t)", False),
        ("CONCAT(n, NEW.v)", False),
    ],
)
def test_what_is_added_to_a_column_shows_no_order(value: str, expected: bool) -> None:
    assert (change_of("n", tokens_of(value)) is Change.SUM) is expected


def test_rows_that_meet_on_a_key() -> None:
    body = (
        "BEGIN INSERT INTO a VALUES (1); REPLACE b (x, y) VALUES (NEW.x, REPLACE('a', 'b', 'c'));"
        " INSERT IGNORE INTO d.c SET x = NEW.x;"
        " INSERT INTO e SELECT 1 ON DUPLICATE KEY UPDATE n = n + 1, m = NEW.m; END"
    )
    found = list(upserts(tokens_of(body), "own"))
    assert [(each.what, each.key, each.columns) for each in found] == [
        ("REPLACE", TableKey("own", "b"), ("x", "y")),
        ("INSERT IGNORE", TableKey("d", "c"), ("x",)),
        ("ON DUPLICATE KEY UPDATE", TableKey("own", "e"), ()),
    ]
    assert [None if each.values is None else len(each.values) for each in found] == [2, 1, None]
    assert [name for name, _ in found[2].updates] == ["n", "m"]


def test_what_a_body_reads_changes_and_catches() -> None:
    body = "BEGIN UPDATE a SET v = (SELECT v FROM b WHERE id = NEW.id) WHERE id = 1; DELETE FROM d.c; END"
    assert reads(tokens_of(body), "own") == {TableKey("own", "b")}
    assert writes(tokens_of(body), "own") == {TableKey("own", "a"), TableKey("d", "c")}
    assert catches_errors(tokens_of("BEGIN DECLARE CONTINUE HANDLER FOR 1062 SET x = 1; END"))
    assert catches_errors(tokens_of("BEGIN DECLARE EXIT HANDLER FOR NOT FOUND, SQLEXCEPTION SET x = 1; END"))
    assert catches_errors(tokens_of("BEGIN INSERT INTO t VALUES (1); EXCEPTION WHEN OTHERS THEN NULL; END"))
    assert not catches_errors(tokens_of("BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND SET x = 1; END"))


@pytest.mark.parametrize(
    ("behind", "values"),
    [
        ("(a, b) VALUES (1, NEW.b)", 2),
        ("VALUES (0, 0), (NEW.id, 0)", None),
        ("VALUES (NEW.id, 0), (0, 0), (1, 1)", None),
        (f"VALUES ({'1, ' * 64}NEW.id)", None),
        (f"(a) VALUES (IF(NEW.a IN ({'1, ' * 64}1), 1, 2))", 1),
        ("SELECT 1", None),
    ],
)
def test_values_are_told_by_their_places_only_where_all_are_there(behind: str, values: int | None) -> None:
    _, found = row_of(tokens_of(behind))
    assert (None if found is None else len(found)) == values


def test_a_routine_has_its_row_by_other_names_than_a_trigger() -> None:
    body = tokens_of(
        "BEGIN DECLARE y, z INT; UPDATE t SET v = x, w = w + 1, u = z, n = NULL, m = NOW() WHERE id = 1; END"
    )
    fired = {each.column for each in assignments(body, "own", is_trigger=True) if each.is_fired}
    assert fired == {"u"}
    fired = {each.column for each in assignments(body, "own", is_trigger=False) if each.is_fired}
    assert fired == {"v", "w", "u"}


def test_a_join_finds_no_rows_of_its_own_in_the_table_that_it_changes() -> None:
    alone, joined = tokens_of("UPDATE a SET v = 1 WHERE id = NEW.id"), "UPDATE a, b SET a.v = 1 WHERE b.id = NEW.id"
    assert [each.found_by for each in assignments(alone, "own", is_trigger=True)] == [{("id", Column("new", "id"))}]
    assert [each.found_by for each in assignments(tokens_of(joined), "own", is_trigger=True)] == [frozenset()]


@pytest.mark.parametrize(
    "update",
    [
        "UPDATE a SET v = 1 WHERE NEW.id = OLD.id",
        "BEGIN DECLARE id INT; UPDATE a SET v = 1 WHERE id = NEW.id; END",
        "UPDATE a SET id = NEW.n WHERE id = NEW.id",
        "UPDATE a SET id = id + 1 WHERE id = NEW.id",
    ],
)
def test_rows_are_found_only_by_columns_that_keep_the_values_of_the_row(update: str) -> None:
    assert [each.found_by for each in assignments(tokens_of(update), "own", is_trigger=True)] == [frozenset()]


def test_a_row_is_found_also_by_the_key_that_it_gets() -> None:
    (moved,) = assignments(tokens_of("UPDATE a SET id = NEW.id WHERE id = OLD.id"), "own", is_trigger=True)
    assert moved.found_by == {("id", Column("old", "id"))}


@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        ("DELETE a FROM a JOIN b USING (id)", {"a", "b"}),
        ("DELETE FROM a USING a JOIN b USING (id) WHERE a.v = 1", {"a", "b"}),
        ("DELETE FROM a USING a, b", {"a", "b"}),
        ("DELETE FROM a WHERE v = 1", set()),
    ],
)
def test_a_join_of_a_delete_reads_its_tables(statement: str, tables: set[str]) -> None:
    assert {key.table for key in reads(tokens_of(statement), "own")} == tables


def test_the_changes_of_a_body_with_what_decides_about_their_rows() -> None:
    body = tokens_of(
        "CREATE TRIGGER t AFTER INSERT ON q FOR EACH ROW BEGIN DECLARE v INT DEFAULT 1; INSERT INTO a VALUES (1);"
        " UPDATE a SET n = n + 1 WHERE id = NEW.id AND m > 0; DELETE FROM d.c WHERE x = 1 ORDER BY y LIMIT 1;"
        " DELETE FROM a WHERE id = v; DELETE a FROM a JOIN b USING (id); END"
    )
    # the tables that a DELETE reads are there as queries
    found = [each for each in row_changes(body, "own", types_of_variables(body)) if each.verb != "SELECT"]
    assert [(each.verb, each.key, sorted(each.asked), sorted(each.assigned)) for each in found] == [
        ("INSERT", TableKey("own", "a"), [], []),
        ("UPDATE", TableKey("own", "a"), ["id", "m"], ["n"]),
        ("DELETE", TableKey("d", "c"), ["x", "y"], []),
        ("DELETE", TableKey("own", "a"), ["id", "v"], []),
    ]
    assert [each.begin for each in found] == sorted(each.begin for each in found)
    assert [(each.is_limited, each.is_constant, each.is_parted) for each in found[1:]] == [
        (False, False, True),
        (True, True, True),
        (False, False, False),
    ]
    insert, update, limited, deleted = found
    assert [update.meets(other) for other in found] == ["inserted", "", "", ""]
    assert [deleted.meets(other) for other in found] == ["inserted", "", "", ""]
    assert limited.meets(deleted) == "left"
    assert limited.meets(limited) == insert.meets(update) == ""
    assert deleted._replace(asked=frozenset("n")).meets(update) == "set"


@pytest.mark.parametrize(
    ("body", "is_passed"),
    [
        ("INSERT INTO a VALUES (1); DELETE FROM b", True),
        ("IF x THEN INSERT INTO a VALUES (1); END IF; DELETE FROM b", True),
        ("LOOP INSERT INTO a VALUES (1); END LOOP; DELETE FROM b", True),
        ("INSERT INTO a VALUES (1); IF x THEN DELETE FROM b", False),
        ("IF x THEN INSERT INTO a VALUES (1); ELSE DELETE FROM b", False),
        ("INSERT INTO a VALUES (1); LEAVE l; DELETE FROM b", False),
        ("INSERT INTO a VALUES (1); WHILE x LOOP DELETE FROM b", False),
    ],
)
def test_what_comes_behind_an_insert_whatever_way_the_body_goes(body: str, is_passed: bool) -> None:
    tokens = tokens_of(body)
    words, branches = [token.upper for token in tokens], branches_before(tokens)
    assert (branches[words.index("VALUES")] == branches[words.index("DELETE")]) is is_passed


@pytest.mark.parametrize(
    ("text", "parameters", "expected"),
    [
        ("BEGIN DECLARE x, y INT DEFAULT 0; DECLARE z DATE; END", "", {"x": "INT", "y": "INT", "z": "DATE"}),
        ("CREATE PROCEDURE p (IN x INT, OUT y DATE) BEGIN END", "", {"x": "INT", "y": "DATE"}),
        ("CREATE FUNCTION a.f (x INT) RETURNS DATE RETURN x", "", {"x": "INT"}),
        ("RETURN x", "x int, IN y date", {"x": "int", "y": "date"}),
        ("BEGIN DECLARE x INT; BEGIN DECLARE x DATE; END; END", "", {"x": None}),
        ("BEGIN END", "", {}),
    ],
)
def test_types_of_variables_and_parameters(text: str, parameters: str, expected: dict[str, str | None]) -> None:
    found = types_of_variables(tokens_of(text), tokens_of(parameters))
    assert {name: behind[0].text if behind else None for name, behind in found.items()} == expected
