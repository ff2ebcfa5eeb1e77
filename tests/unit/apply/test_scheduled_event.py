"""CREATE EVENT is disabled where it stands, and every other byte of it stays."""

from __future__ import annotations

import pytest

from binlane.apply.scheduled_event import disabled
from binlane.model import Flavor

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


def test_a_quote_behind_a_long_character_hides_no_clause() -> None:
    statement = b"CREATE EVENT `\x95\x5c` ON SCHEDULE EVERY 1 DAY ENABLE DO SELECT '\x95\x5c ENABLE'"

    assert disabled(statement, "cp932", Flavor.MARIADB) == statement.replace(
        b" ENABLE DO", b"  DISABLE ON SLAVE  DO", 1
    )
