"""Where CREATE TABLE IF NOT EXISTS makes its table: behind what has taken the one of that name away."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.schema.letter_case import ANY_CASE, AS_TYPED
from binlane.schema.model import Table
from binlane.sql.logged_statement import LoggedText, first_made
from binlane.sql.requirements import DATABASE_DEFAULT, ENGINE, Requirement
from tests.unit.precheck.situations import PLAN, findings, schema, situation, target_of

KEY = TableKey("app", "t")
MAKES = "CREATE TABLE IF NOT EXISTS t (a INT) ENGINE=MyISAM"
CASES = [
    ((MAKES,), True, None),
    ((MAKES,), False, 1),
    ((MAKES, MAKES), False, 1),
    (("CREATE TABLE t (a INT)", MAKES), False, None),
    (("DROP TABLE IF EXISTS t", MAKES), True, 2),
    (("DROP TABLE IF EXISTS t", MAKES), False, 2),
    ((MAKES, "DROP TABLE APP.T", MAKES), True, 3),
    (("RENAME TABLE t TO t_1", MAKES), True, 2),
    (("RENAME TABLE n TO t", MAKES), False, None),
    (("ALTER TABLE t RENAME TO t_1", MAKES), True, 2),
    (("ALTER TABLE n EXCHANGE PARTITION p WITH TABLE t", MAKES), True, None),
    (("ALTER TABLE t CONVERT PARTITION p TO TABLE n", MAKES), True, None),
    (("ALTER TABLE n CONVERT PARTITION p TO TABLE t", MAKES), False, None),
    (("ALTER TABLE n CONVERT TABLE t TO PARTITION p VALUES LESS THAN (5)", MAKES), True, 2),
    (("DROP DATABASE app", "CREATE DATABASE app", MAKES), True, 3),
    (("DROP DATABASE other", MAKES), True, None),
    (("CREATE TABLE c (a INT REFERENCES t (a))", MAKES), False, 2),
    (("DROP TEMPORARY TABLE t", MAKES), True, None),
    (("DROP WHATEVER t", MAKES), True, 2),
    (
        ("SET STATEMENT max_statement_time=1 FOR DROP TABLE t", f"SET STATEMENT lock_wait_timeout=1 FOR {MAKES}"),
        True,
        2,
    ),
]


def texts_of(statements: tuple[str, ...]) -> list[LoggedText]:
    found = list[LoggedText]()
    for seqno, statement in enumerate(statements, 1):
        item = Item(ItemKind.DDL, statement.encode(), context=SessionContext(database="app"))
        text = LoggedText.of(seqno, LogPosition("binlog.000001", seqno), item, Flavor.MARIADB)
        assert text is not None
        found.append(text)
    return found


@pytest.mark.parametrize(("statements", "is_there", "seqno"), CASES)
def test_a_table_is_made_where_none_is_there(statements: tuple[str, ...], is_there: bool, seqno: int | None) -> None:
    assert first_made(texts_of(statements), [KEY] if is_there else [], ANY_CASE) == {"app.t": seqno}


def test_a_table_in_other_letters_is_another_one_where_the_server_tells_them_apart() -> None:
    statements = texts_of(("CREATE TABLE T (a INT)", MAKES, "DROP TABLE T", MAKES))
    assert first_made(statements, [], AS_TYPED) == {"app.t": 2}
    assert first_made(statements, [], ANY_CASE) == {"app.t": 4}


@pytest.mark.parametrize("is_dropped", [False, True])
def test_what_a_table_needs_is_asked_where_it_is_made(is_dropped: bool) -> None:
    statements = ("DROP TABLE t", MAKES) if is_dropped else (MAKES, MAKES)
    asked = {
        Requirement(ENGINE, "app.t", "myisam", unless="app.t"): 1,
        Requirement(DATABASE_DEFAULT, "app", unless="app.t"): 1,
    }
    latin, utf8 = ({"app": name} for name in ("latin1_swedish_ci", "utf8mb4_bin"))
    target = target_of(Flavor.MARIADB, default_collations=lambda _: latin, knows=lambda *_: True)
    tables = schema(Table(KEY, "InnoDB", (), ()), flavor=Flavor.MARIADB)
    made = situation(target, replace(PLAN, requirements=asked), tables, texts=texts_of(statements))
    vars(made).update(
        source=SimpleNamespace(default_collations=lambda _: utf8, ask=lambda *_: None, definitions_behind=tuple)
    )

    found = findings(made, "features", "default-collations")

    assert [each.check for each in found] == (["features", "default-collations"] if is_dropped else [])
    assert "statement of seqno 2" in "".join(map(str, found)) or not is_dropped
