"""CREATE EVENT is disabled where it stands, and every other byte of it stays."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
from binlane.sql.charset import dialect_in
from binlane.sql.parse.lexer import Dialect
from binlane.sql.scheduled_event import disabled

HEAD = b"CREATE EVENT e ON SCHEDULE EVERY 1 DAY"


@pytest.mark.parametrize(
    ("charset", "body"),
    [
        pytest.param("utf8mb4", "COMMENT 'ß \xa0 DO' DO SELECT 'à'".encode(), id="utf8mb4"),
        pytest.param("cp932", b"COMMENT '\x95\x5c' DO SELECT '\xed\x40'", id="two spellings, one has a backslash"),
        pytest.param("sjis", b"COMMENT '\x83\x5c' DO SELECT 1", id="sjis"),
        pytest.param("gbk", b"COMMENT '\xbf\x27' DO SELECT '", id="no character, so a quote"),
        pytest.param("gbk", b"COMMENT '\xbf\x5c' DO SELECT 1", id="gbk"),
        pytest.param("big5", b"COMMENT '\xa5\x5c' DO SELECT 1", id="big5"),
        pytest.param("gb18030", b"COMMENT '\x81\x30\x81\x30\x81\x5c' DO SELECT 1", id="gb18030"),
        pytest.param("euckr", b"COMMENT '\xb0\xa1\xff' DO SELECT 1", id="euckr"),
    ],
)
def test_the_status_stands_in_front_of_the_comment(charset: str, body: bytes) -> None:
    assert disabled(HEAD + b" " + body, charset, Dialect(Flavor.MYSQL)) == HEAD + b"  DISABLE ON SLAVE " + body


@pytest.mark.parametrize(
    ("charset", "name"),
    [("cp932", b"\x95\x5c"), ("sjis", b"\x83\x5c"), ("gbk", b"\xbf\x5c"), ("big5", b"\xa5\x5c")],
)
def test_a_backslash_that_is_half_a_character_hides_nothing_behind_it(charset: str, name: bytes) -> None:
    statement = b"CREATE DEFINER='" + name + b"'@'%' EVENT e ON SCHEDULE EVERY 1 DAY ENABLE DO SELECT '" + name + b"'"

    assert disabled(statement, charset, Dialect(Flavor.MARIADB)) == statement.replace(
        b" ENABLE DO", b"  DISABLE ON SLAVE  DO"
    )


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize(
    ("statement", "modes"),
    [
        ("ALTER EVENT e ENABLE /*M DISABLE */ DO SELECT 1", ""),
        ("ALTER EVENT e ENABLE /* DISABLE */ DO SELECT 1", ""),
        ("ALTER EVENT e /*M COMMENT */ ENABLE DO SELECT 1", ""),
        ("ALTER EVENT e ENABLE --\x0bDISABLE\n DO SELECT 1", ""),
        ("ALTER EVENT e ENABLE # DISABLE\n DO SELECT 1", ""),
        ("ALTER EVENT e ON SCHEDULE AT CONCAT('x', LEFT('\\', 0)) ENABLE DO SELECT 'x'", "NO_BACKSLASH_ESCAPES"),
        ('ALTER EVENT "e\\" ENABLE COMMENT "x"', "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"),
        ('CREATE EVENT "do" ON SCHEDULE EVERY 1 DAY ENABLE DO SELECT "x"', "ANSI_QUOTES"),
    ],
)
def test_what_the_target_takes_for_a_comment_or_a_string_hides_no_status(
    statement: str, modes: str, flavor: Flavor
) -> None:
    # the grammar of MySQL 8.0 and 8.1 has no REPLICA here
    status = " DISABLE ON SLAVE "
    found = disabled(statement.encode(), "utf8mb4", dialect_in(modes, flavor)).decode()
    assert found == statement.replace("ENABLE", status, 1)
