"""CREATE EVENT is disabled where it stands, and every other byte of it stays."""

from __future__ import annotations

import pytest

from binlane.model import Flavor
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
    assert disabled(HEAD + b" " + body, charset, Flavor.MYSQL) == HEAD + b"  DISABLE ON REPLICA " + body


@pytest.mark.parametrize(
    ("charset", "name"),
    [("cp932", b"\x95\x5c"), ("sjis", b"\x83\x5c"), ("gbk", b"\xbf\x5c"), ("big5", b"\xa5\x5c")],
)
def test_a_backslash_that_is_half_a_character_hides_nothing_behind_it(charset: str, name: bytes) -> None:
    statement = b"CREATE DEFINER='" + name + b"'@'%' EVENT e ON SCHEDULE EVERY 1 DAY ENABLE DO SELECT '" + name + b"'"

    assert disabled(statement, charset, Flavor.MARIADB) == statement.replace(b" ENABLE DO", b"  DISABLE ON SLAVE  DO")
