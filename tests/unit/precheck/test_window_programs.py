"""Which routines and views the window itself makes, changes or drops: a lane does not look at them again."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.statements.window_statements import changed_by_window
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
