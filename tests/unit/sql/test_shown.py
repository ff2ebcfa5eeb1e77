"""A message shows no password of a logged statement, in whatever form and under whatever modes it was written."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import binlane
from binlane.answers import answered, unusable
from binlane.apply.ddl.fingerprint import Fingerprint
from binlane.apply.ddl.outcome import DdlPlace, after_crash
from binlane.board.answers import undecided_of
from binlane.errors import UndecidableError, UnsupportedEventError
from binlane.model import Flavor, Item, ItemKind
from binlane.safe_text import shown
from binlane.servers.variables import with_number
from binlane.shards.selection import Selection
from binlane.state.positions import PlanKey
from binlane.state.records.ddl_intents import INTENT, DdlIntent
from tests.unit.plan.logs import alone, filtered, settings

STATEMENTS = [
    "CREATE USER u IDENTIFIED BY 'secret'",
    'CREATE USER u IDENTIFIED BY "secret"',
    r"CREATE USER u IDENTIFIED BY 'a\', v IDENTIFIED BY 'secret'",
    "CREATE USER `o'brien` IDENTIFIED BY 'secret'",
    "ALTER USER 'u'@'%' /* ' */ IDENTIFIED WITH x AS 'secret'",
    "CREATE USER u IDENTIFIED BY PASSWORD 0x736563726574 -- secret",
    'SET PASSWORD FOR u = PASSWORD("secret")',
    "SET password = 'secret'",
    "CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'u', PASSWORD 'secret')",
    "CHANGE MASTER TO MASTER_PASSWORD = 'secret'",
    "INSERT INTO t VALUES ('secret', PASSWORD('x'))",
    "CREATE TABLE app.f (a INT) ENGINE=FEDERATED CONNECTION='mysql://repl:secret@10.0.0.9/db/t'",
    "ALTER TABLE app.f CONNECTION 'DSN=x;UID=u;PWD=secret'",
    "CREATE TABLE f ENGINE=CONNECT TABLE_TYPE=MYSQL OPTION_LIST='host=h,pwd=secret'",
    "DROP TABLE f /* https://u:secret@host/ */",
    "CREATE TABLE f (a INT COMMENT 'https://u:secret@host/')",
    "GRANT ALL ON *.* TO u IDENTIFIED\n\tBY 'secret'",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_no_password_is_shown(sql: str) -> None:
    assert "secret" not in shown(sql)
    assert shown(sql).startswith(sql[:6])


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t WHERE a = 'x'",
        "INSERT INTO passwords VALUES (1)",
        "INSERT INTO t VALUES (CONNECTION_ID(), 'x')",
        "SET collation_connection = 'x'",
        "INSERT INTO t VALUES ('https://host/', 'x@y')",
    ],
)
def test_other_statements_are_shown(sql: str) -> None:
    assert shown(sql) == sql
    assert shown(f"{sql} OR {'x' * 200}").endswith("...")


@pytest.mark.parametrize("selection", [Selection(kinds=(("accounts", "refuse"),))])
def test_a_statement_that_the_filter_refuses_shows_no_password(selection: Selection) -> None:
    log = [alone(1, "CREATE USER u IDENTIFIED BY 'secret'", "a")]
    with pytest.raises(UnsupportedEventError, match="CREATE USER u IDENTIFIED") as refused:
        filtered(log, settings(filters=selection.to_values()))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("sql", STATEMENTS)
def test_the_last_statement_that_was_answered_shows_no_password(sql: str) -> None:
    answered("binlane@db1:3306", sql.encode())
    with pytest.raises(ValueError, match="no version") as raised:
        with_number("rogue")
    assert (error := unusable(raised.value)) is not None
    assert "the last statement answered was" in str(error)
    assert "secret" not in str(error)


@pytest.mark.parametrize("sql", [sql for sql in STATEMENTS if sql.startswith("CREATE")])
def test_a_question_shows_no_password(sql: str) -> None:
    intent = DdlIntent(7, 1, sql, "", INTENT)
    snapshot: Any = SimpleNamespace(status=SimpleNamespace(undecided=[intent]))
    [asked] = undecided_of(snapshot, may_edit=True)
    assert asked.statement is not None
    assert asked.statement.startswith(sql[:6])
    assert "secret" not in asked.statement
    stored: Any = SimpleNamespace(fingerprint="none")
    now, place = Fingerprint("", 0, None, "", "11.4", True, False), DdlPlace(PlanKey("shop", "w", "d"), "uuid", 1, 7)
    cursor = SimpleNamespace(execute=lambda *_: None)
    session: Any = SimpleNamespace(flavor=Flavor.MARIADB, version=(11, 4), cursor=cursor)
    with pytest.raises(UndecidableError, match="on the target has the whole statement:\n") as raised:
        after_crash(session, Item(ItemKind.DDL, sql.encode()), stored, now, place)
    assert "secret" not in str(raised.value)


SHOWS = frozenset({"change_notes.py", "bisect.py", "pieces.py"})
"""What shows the text of statements that change rows, to those who may read rows."""
_CUT = re.compile(
    r"(?<!shown\()\b(?:query\.sql|part\.sql|payload|statement)\[:(?:_?[A-Z]\w*\]|"
    r"\d+\](?=\.decode|\)*\}))"
)


def test_errors_show_statements_by_one_function() -> None:
    folder = Path(binlane.__file__).parent
    others = {file.name for file in folder.rglob("*.py") if _CUT.search(file.read_text("utf-8"))}
    assert others - SHOWS == set()
