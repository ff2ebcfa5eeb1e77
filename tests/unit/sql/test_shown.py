"""A message shows no password of a logged statement, in whatever form and under whatever modes it was written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import binlane
from binlane.errors import UnsupportedEventError
from binlane.shards.selection import Selection
from binlane.sql.logged_statement import shown
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
    "GRANT ALL ON *.* TO u IDENTIFIED\n\tBY 'secret'",
]


@pytest.mark.parametrize("sql", STATEMENTS)
def test_no_password_is_shown(sql: str) -> None:
    assert "secret" not in shown(sql)
    assert shown(sql).startswith(sql[:6])


@pytest.mark.parametrize("sql", ["DELETE FROM t WHERE a = 'x'", "INSERT INTO passwords VALUES (1)"])
def test_other_statements_are_shown(sql: str) -> None:
    assert shown(sql) == sql
    assert shown(f"{sql} OR {'x' * 200}").endswith("...")


@pytest.mark.parametrize("selection", [Selection(kinds=(("accounts", "refuse"),))])
def test_a_statement_that_the_filter_refuses_shows_no_password(selection: Selection) -> None:
    log = [alone(1, "CREATE USER u IDENTIFIED BY 'secret'", "a")]
    with pytest.raises(UnsupportedEventError, match="CREATE USER u IDENTIFIED") as refused:
        filtered(log, settings(filters=selection.to_values()))
    assert "secret" not in str(refused.value)


SHOWS = frozenset({"change_notes.py", "bisect.py", "pieces.py"})
"""What shows the text of statements that change rows, to those who may read rows."""
_CUT = re.compile(r"(?<!shown\()\b(?:query\.sql|part\.sql|payload|statement)\[:_?[A-Z]\w*\]")


def test_errors_show_statements_by_one_function() -> None:
    folder = Path(binlane.__file__).parent
    others = {file.name for file in folder.rglob("*.py") if _CUT.search(file.read_text("utf-8"))}
    assert others - SHOWS == set()
