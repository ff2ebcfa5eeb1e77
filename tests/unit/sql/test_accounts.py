"""Accounts in statements are read by the quotes of the session."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, Item, ItemKind, LogPosition, SessionContext
from binlane.sql.accounts import StatementAccounts, definer
from binlane.sql.charset import dialect_of
from binlane.sql.logged_statement import LoggedText

USUAL = SessionContext()
ANSI = SessionContext(sql_mode=0x4)
PLAIN_BACKSLASHES = SessionContext(sql_mode=0x100000)


@pytest.mark.parametrize(
    ("sql", "context", "with_host", "without"),
    [
        ("GRANT SELECT ON d.* TO 'a'@'h', b, `c` @ `i`", USUAL, ["a@h", "c@i"], ["b@%"]),
        (r"REVOKE SELECT ON d.* FROM 'a\'@'%', boss", PLAIN_BACKSLASHES, [r"a\@%"], ["boss@%"]),
        (r"REVOKE SELECT ON d.* FROM 'a\'@''%', boss", USUAL, [], ["a'@'%@%", "boss@%"]),
        ('GRANT r TO "a""b"@"h", "c"', ANSI, ['a"b@h'], ["c@%"]),
        (r'GRANT r TO "a\"b"@"h", "c"', USUAL, ['a"b@h'], ["c@%"]),
        ("DROP USER IF EXISTS a, b@h, 'c'", USUAL, ["b@h"], ["a@%", "c@%"]),
        ("RENAME USER a TO b, c TO d@h", USUAL, ["d@h"], ["a@%", "b@%", "c@%"]),
        ("DROP ROLE r, s", USUAL, [], ["r@%", "s@%"]),
        ("SET DEFAULT ROLE r TO u", USUAL, [], ["u@%"]),
        ("GRANT SELECT ON d.user TO a@h", USUAL, ["a@h"], []),
        ("ALTER USER a@h IDENTIFIED BY 'to @ b@i'", USUAL, ["a@h"], []),
        ("GRANT r TO `a``b`@`%`", USUAL, ["a`b@%"], []),
        ("DROP USER ''@'h'", USUAL, ["@h"], []),
        ("DROP USER a@127.0.0.1, b@`10.%`", USUAL, ["a@127.0.0.1", "b@10.%"], []),
    ],
)
def test_accounts_of_a_statement(sql: str, context: SessionContext, with_host: list[str], without: list[str]) -> None:
    for flavor in Flavor:
        text = LoggedText.of(1, LogPosition("b.1", 4), Item(ItemKind.DDL, sql.encode(), context=context), flavor)
        assert text is not None
        assert list(text.accounts) == with_host
        assert sorted(text.accounts_without_host) == sorted(without)


@pytest.mark.parametrize(
    ("sql", "context", "expected"),
    [
        ("CREATE DEFINER=`a`@`h` VIEW v AS SELECT 1", USUAL, "a@h"),
        ("CREATE OR REPLACE ALGORITHM=MERGE DEFINER = 'a' @ 'h' SQL SECURITY INVOKER VIEW v AS SELECT 1", USUAL, "a@h"),
        (r"ALTER DEFINER='a\'@'h' EVENT e ENABLE", PLAIN_BACKSLASHES, r"a\@h"),
        ('CREATE DEFINER="a"@"h" FUNCTION f() RETURNS INT RETURN 1', ANSI, "a@h"),
        # no letter behind the sign is an empty host, which MariaDB takes for any
        ("CREATE DEFINER=a@ VIEW v AS SELECT 1", USUAL, "a@%"),
        ("CREATE DEFINER=a@ PROCEDURE p() SELECT 1", USUAL, "a@%"),
        ("CREATE DEFINER=boss PROCEDURE p() SELECT 1", USUAL, "boss@%"),
        ("CREATE DEFINER=CURRENT_USER VIEW v AS SELECT 1", USUAL, None),
        ("CREATE TABLE definer (a INT)", USUAL, None),
        ("CREATE VIEW v AS SELECT 'DEFINER=x@y'", USUAL, None),
    ],
)
def test_the_definer_of_a_definition(sql: str, context: SessionContext, expected: str | None) -> None:
    text = LoggedText.of(1, LogPosition("b.1", 4), Item(ItemKind.DDL, sql.encode(), context=context), Flavor.MARIADB)
    assert text is not None
    named = StatementAccounts(text.sql, text.tokens, text.places, dialect_of(context, Flavor.MARIADB))
    assert definer(named) == expected
