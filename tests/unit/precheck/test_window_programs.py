"""Which routines and views the window itself makes, changes or drops: what a lane compares them with."""

from __future__ import annotations

from typing import Final

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.statements.window_statements import changed_by_window, marks_of_window
from binlane.schema.programs import Program
from binlane.sql.logged_statement import LoggedText
from tests.unit.precheck.situations import situation

FUNCTION, VIEW = Program(TableKey("a", "f"), "function", "1", {}), Program(TableKey("a", "v"), "view", "1", {})


@pytest.mark.parametrize(
    ("sql", "changes_function", "changes_view"),
    [
        ("ALTER TABLE a.junk ADD COLUMN f INT, ADD COLUMN v INT", False, False),
        ("CREATE TABLE a.f (n INT)", False, False),
        ("RENAME TABLE a.junk TO a.f", False, False),
        ("DROP TABLE IF EXISTS a.f", False, False),
        ("CREATE TRIGGER a.f BEFORE INSERT ON a.t FOR EACH ROW SET @n = 1", False, False),
        ("CREATE FUNCTION b.f() RETURNS INT RETURN 1", False, False),
        ("CREATE FUNCTION F() RETURNS INT RETURN 1", True, False),
        ("ALTER FUNCTION a.f COMMENT 'x'", False, False),
        ("ALTER PROCEDURE a.f READS SQL DATA", False, False),
        ("ALTER FUNCTION a.f COMMENT 'x' SQL SECURITY INVOKER", True, False),
        ("ALTER FUNCTION a.v SQL SECURITY INVOKER", False, False),
        ("DROP FUNCTION a.f", True, False),
        ("DROP DATABASE a", True, True),
        ("CREATE VIEW v AS SELECT 1", False, True),
        ("ALTER VIEW a.v AS SELECT 1", False, True),
        ("RENAME TABLE a.w TO a.v", False, True),
        ("DROP VIEW a.x, a.v", False, True),
        ("CREATE TABLE a.v (n INT)", False, True),
    ],
)
def test_a_program_is_changed_by_statements_about_its_kind_and_name_alone(
    sql: str, changes_function: bool, changes_view: bool
) -> None:
    item = Item(ItemKind.DDL, sql.encode(), context=SessionContext(database="a"))
    text = LoggedText.of(5, LogPosition("binlog.000007", 4711), item, Flavor.MARIADB)
    assert text is not None
    is_changed = changed_by_window(situation(texts=[text]))
    assert (is_changed(FUNCTION), is_changed(VIEW)) == (changes_function, changes_view)


OF_A: Final = "CREATE DEFINER=`a`@`%` FUNCTION a.f() RETURNS INT RETURN 1"
OF_INVOKER: Final = "CREATE DEFINER=`b`@`h` FUNCTION a.f() RETURNS INT SQL SECURITY INVOKER RETURN 1"
PROCEDURE: Final = "CREATE DEFINER=`a`@`%` PROCEDURE f() SELECT 1"
SHOWN: Final = "CREATE OR REPLACE ALGORITHM=UNDEFINED DEFINER=`a`@`%` SQL SECURITY DEFINER VIEW v AS SELECT 1"


@pytest.mark.parametrize(
    ("texts", "marks"),
    [
        ([OF_A], ["function a.f: a@% DEFINER"]),
        ([OF_INVOKER], ["function a.f: b@h INVOKER"]),
        (["DROP FUNCTION a.f", OF_A, OF_INVOKER], ["function a.f: a@% DEFINER, b@h INVOKER"]),
        ([OF_A, PROCEDURE], ["function a.f: a@% DEFINER", "procedure a.f: a@% DEFINER"]),
        ([OF_A, "ALTER FUNCTION a.f COMMENT 'x'"], ["function a.f: a@% DEFINER"]),
        ([OF_A, "ALTER FUNCTION A.F SQL SECURITY INVOKER"], []),
        ([OF_A, "CREATE FUNCTION a.f() RETURNS INT RETURN 2"], []),
        (["CREATE DEFINER=CURRENT_USER FUNCTION a.f() RETURNS INT RETURN 1"], []),
        ([SHOWN], ["view a.v: a@% DEFINER"]),
        ([SHOWN, "RENAME TABLE v TO w"], []),
        ([SHOWN, "RENAME TABLE w TO v"], []),
        (["ALTER DEFINER=`a`@`%` VIEW v AS SELECT 2"], []),
        (["ALTER DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW v AS SELECT 2"], ["view a.v: a@% INVOKER"]),
        (["CREATE DEFINER=`a`@`%` TRIGGER a.f BEFORE INSERT ON a.t FOR EACH ROW SET @n = 1"], []),
        (["CREATE TABLE a.f (n INT)", "DROP FUNCTION a.f"], []),
    ],
)
def test_of_what_the_window_makes_its_own_statements_are_kept(texts: list[str], marks: list[str]) -> None:
    read = [
        LoggedText.of(
            at,
            LogPosition("binlog.000007", 4711),
            Item(ItemKind.DDL, sql.encode(), context=SessionContext(database="a")),
            Flavor.MARIADB,
        )
        for at, sql in enumerate(texts, 5)
    ]
    found = marks_of_window(situation(texts=[each for each in read if each is not None]))
    assert [
        f"{each.kind} {each.key}: {', '.join(f'{one.definer} {one.security}' for one in each.sent)}" for each in found
    ] == marks
    assert all(one.sql in texts for each in found for one in each.sent)
