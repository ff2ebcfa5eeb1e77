"""What a window's log tells of the engines of tables that it makes and that are gone."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.schema.letter_case import ANY_CASE, AS_TYPED, LetterCase
from binlane.sql.logged_statement import LoggedText
from binlane.sql.told_engines import ToldEngines

T = TableKey("shop", "t")
NEW = "CREATE TABLE t (id INT UNIQUE)"
TWICE = "INSERT INTO t VALUES (1), (1)"
OTHER, FAILED = "CREATE TABLE u (id INT UNIQUE)", "!INSERT INTO u VALUES (1), (1)"
TRIGGER = "CREATE TRIGGER r AFTER INSERT ON u FOR EACH ROW INSERT INTO t VALUES (1)"
DDL = ("CREATE", "DROP", "RENAME", "ALTER")


def told(*statements: str, is_clear: bool = True, letters: LetterCase = ANY_CASE) -> tuple[ToldEngines, LoggedText]:
    """Of statements with the seqnos 1, 2, 3 ..; a ``!`` in front: it has failed. And the first one."""
    texts: list[LoggedText] = []
    items: list[tuple[int, LogPosition, Item]] = []
    for seqno, sql in enumerate(statements, 1):
        error, sql = (1062, sql[1:]) if sql.startswith("!") else (0, sql)
        kind = ItemKind.DDL if sql.startswith(DDL) and "TEMPORARY" not in sql else ItemKind.STATEMENT
        context, place = SessionContext("shop", error_code=error), LogPosition("binlog.000001", seqno)
        items.append((seqno, place, Item(kind, sql.encode(), context=context)))
        text = LoggedText.of(*items[-1], Flavor.MARIADB)
        assert text is not None
        texts.append(text)
    ddl = [text for text, (_, _, item) in zip(texts, items, strict=True) if item.kind is ItemKind.DDL]
    return ToldEngines.of(ddl, items, Flavor.MARIADB, letters, is_clear=is_clear), texts[0]


@pytest.mark.parametrize(
    ("statements", "seqno"),
    [
        pytest.param((NEW, f"!{TWICE}"), 2, id="failed"),
        pytest.param((NEW, TWICE), None, id="nothing"),
        pytest.param((NEW, "ROLLBACK TO s", f"!{TWICE}"), 2, id="rolled-back"),
        pytest.param((NEW, "DROP TABLE T", f"!{TWICE}"), None, id="behind-its-end"),
        pytest.param((NEW, "DROP TEMPORARY TABLE t", f"!{TWICE}"), 3, id="another-of-its-name-has-ended"),
        pytest.param((NEW, "DROP TABLE u", f"!{TWICE}"), 3, id="another-has-ended"),
        pytest.param((NEW, "!DROP TABLE t, u", f"!{TWICE}"), 2, id="not-surely-ended"),
        pytest.param((NEW, "CREATE OR REPLACE TABLE t (id INT)", f"!{TWICE}"), None, id="replaced"),
        pytest.param((NEW, "CREATE TABLE IF NOT EXISTS t (id INT)", f"!{TWICE}"), 3, id="perhaps-the-same"),
        pytest.param((NEW, "CREATE TABLE u LIKE t", f"!{TWICE}"), 3, id="a-likeness-of-it"),
        pytest.param((NEW, "CREATE TABLE u LIKE t", "DROP TABLE t", FAILED), 4, id="its-likeness-behind-its-end"),
        pytest.param((NEW, "CREATE TABLE t2 LIKE t", "DROP TABLE t", OTHER, FAILED), None, id="another-behind-its-end"),
        pytest.param(
            (NEW, "RENAME TABLE t TO u", "CREATE TABLE t (n INT)", "!INSERT INTO u VALUES (1), (1)"),
            4,
            id="by-another-name",
        ),
        pytest.param(
            (NEW, "RENAME TABLE t TO u", "CREATE TABLE t (n INT UNIQUE)", f"!{TWICE}"), None, id="of-its-next"
        ),
        pytest.param((NEW, "RENAME TABLE t TO u", "CREATE TABLE t LIKE u", f"!{TWICE}"), 4, id="of-a-likeness"),
        pytest.param((NEW, "DROP TABLE t", NEW, f"!{TWICE}"), 4, id="made-by-the-same-text-again"),
        pytest.param((NEW, OTHER, FAILED), None, id="another-alone"),
        pytest.param((NEW, OTHER, TRIGGER, FAILED), 4, id="another-with-a-trigger"),
        pytest.param((NEW, OTHER, "ALTER TABLE u ADD n INT", FAILED), 4, id="another-altered"),
        pytest.param((NEW, FAILED), 2, id="another-that-was-there"),
        pytest.param((NEW, OTHER, "RENAME TABLE u TO w", FAILED), 4, id="another-by-another-name"),
    ],
)
def test_the_first_that_was_undone_while_the_table_was_there(statements: tuple[str, ...], seqno: int | None) -> None:
    engines, new = told(*statements)
    assert engines.first_undone(new, T) == seqno


def test_a_drop_may_be_of_a_temporary_table_that_nobody_has_seen() -> None:
    engines, new = told(NEW, "DROP TABLE t", f"!{TWICE}", is_clear=False)
    assert engines.first_undone(new, T) == 3
    engines, new = told(NEW, OTHER, FAILED, is_clear=False)
    assert engines.first_undone(new, T) == 3


@pytest.mark.parametrize(
    ("statements", "is_shown"),
    [
        pytest.param((NEW, f"!{TWICE}"), True, id="failed"),
        pytest.param((NEW, f"!{TWICE}", "DROP TABLE t", "CREATE TABLE t (id INT) ENGINE=InnoDB"), True, id="dropped"),
        pytest.param((NEW, "ROLLBACK TO s"), False, id="rolled-back"),
        pytest.param((NEW, "!INSERT DELAYED INTO t VALUES (1), (1)"), False, id="delayed"),
        pytest.param((NEW, "!INSERT INTO t SELECT id FROM u ORDER BY id"), False, id="with-another"),
        pytest.param((NEW, "!INSERT INTO t VALUES (f(1))"), False, id="routine"),
        pytest.param((NEW, "!INSERT INTO u VALUES (1), (1)"), False, id="of-another"),
        pytest.param((NEW, f"!{TWICE}", "ALTER TABLE t ADD n INT"), True, id="altered"),
        pytest.param((NEW, "ALTER TABLE t ADD n INT", f"!{TWICE}"), False, id="altered-before"),
        pytest.param((NEW, "RENAME TABLE t TO w, u TO t", f"!{TWICE}"), False, id="exchanged"),
        pytest.param((NEW, "ROLLBACK TO s", "DROP TABLE t", "CREATE TABLE t LIKE u", f"!{TWICE}"), False, id="later"),
        pytest.param((NEW, f"!{TWICE}", "DROP TABLE t", NEW, "ROLLBACK TO s"), False, id="one-of-two"),
        pytest.param(
            (NEW, "CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW INSERT INTO u VALUES (1)", f"!{TWICE}"), False,
            id="trigger",
        ),
        pytest.param((NEW, "CREATE TEMPORARY TABLE t (id INT)", f"!{TWICE}"), False, id="temporary"),
        pytest.param((NEW.replace("TABLE", "TABLE IF NOT EXISTS"), f"!{TWICE}"), False, id="if-not-exists"),
        pytest.param(("CREATE TABLE t (id INT UNIQUE DEFAULT NEXTVAL(s))", f"!{TWICE}"), False, id="sequence"),
        pytest.param((NEW, f"!{TWICE}", "RENAME TABLE t TO u", "ROLLBACK TO s"), True, id="renamed"),
    ],
)  # fmt: skip
def test_a_failed_statement_shows_that_its_only_table_has_no_transactions(
    statements: tuple[str, ...], is_shown: bool
) -> None:
    engines, new = told(*statements)
    assert engines.is_without_transactions(new, T) is is_shown
    engines, new = told(*statements, is_clear=False)
    assert not engines.is_without_transactions(new, T)


def test_a_table_in_other_letters_tells_nothing_where_the_server_tells_them_apart() -> None:
    statements = (NEW, "!INSERT INTO T VALUES (1), (1)")
    for letters, is_told in ((ANY_CASE, True), (AS_TYPED, False)):
        engines, text = told(*statements, letters=letters)
        assert engines.is_without_transactions(text, T) is is_told
