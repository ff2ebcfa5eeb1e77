"""A text is refused that another sql_mode or client character set makes another statement, and no other one is."""

from __future__ import annotations

import time
from typing import Final

import pytest
from pymysql.converters import escape_string

from binlane.model import Flavor, SessionContext
from binlane.sql.other_readings import SETS, require_one_reading
from binlane.sql.shared_reading import AmbiguousTextError, Reader, as_read_by_source, with_qualifiers_alone

ANSI_QUOTES, NO_BACKSLASH_ESCAPES, ANSI = 0x4, 0x100000, 0x4000F
READERS: Final = (Reader(Flavor.MARIADB, (10, 11, 0)), Reader(Flavor.MYSQL, (9, 7, 0)))
VICTIM: Final = (
    b'UPDATE app.t, (SELECT "\\" -- " AS x) AS d SET t.a = %s /*\n AS y FROM app.z) AS d, victim.u SET u.pw = 1 -- */'
)
"""Without ANSI_QUOTES an UPDATE of app.t, with it one of victim.u."""
DEEP: Final = b"(" * 101 + b"1" + b")" * 101
GRANT: Final = (
    b'SET STATEMENT sort_buffer_size = 1 | "\\" FOR GRANT ALL ON *.* TO `evil`@`%` -- " FOR GRANT SELECT ON app.t TO '
    b"`u`@`h`"
)
ATTACKS: Final = {
    "ansi-off": (VICTIM % b"1", ANSI_QUOTES, "utf8mb4"),
    "a-combination": (VICTIM % b"1", ANSI, "utf8mb4"),
    "logged-without": (VICTIM % b"1", 0, "utf8mb4"),
    "a-reading-that-is-too-deep": (VICTIM % DEEP, ANSI_QUOTES, "utf8mb4"),
    "a-reading-with-a-comment-of-a-later-version": (
        (VICTIM % b"1").replace(b"/*\n", b"/*!99999 ) ' */ /*\n"), ANSI_QUOTES, "utf8mb4",
    ),
    "accounts": (GRANT, ANSI_QUOTES, "utf8mb4"),
    "accounts-of-mysql": (rb'REVOKE ALL ON app.* FROM "a\", root@localhost -- "', ANSI_QUOTES, "utf8mb4"),
    "a-column-that-the-user-may-not-write": (rb"UPDATE t SET a = '\', b = 1 -- '", NO_BACKSLASH_ESCAPES, "utf8mb4"),
    "a-table-of-two": (rb"UPDATE a, b SET x = '\', y = x -- ', x = y", 0, "utf8mb4"),
    "a-body": (
        rb"CREATE PROCEDURE p() BEGIN DO '\'; END -- '; SET GLOBAL init_connect = 'x'; END", ANSI_QUOTES, "utf8mb4",
    ),
    "gbk": (b"UPDATE t SET a = '\xbf\\' -- ' WHERE a = 1", 0, "utf8mb4"),
    "gbk-hidden-in-a-comment": (
        b"UPDATE t, (SELECT '\xbf\\' -- ' AS x) d SET t.k = 1 /*\n AS y) d SET d.k = 1 -- */", 0, "gbk",
    ),
    "a-backquote": (b"UPDATE t, (SELECT 1 AS `\xbf`) d SET t.k = 1 -- `) d JOIN v SET v.n = 1", 0, "gbk"),
    "an-account-s-host": (b"GRANT SELECT ON app.t TO \xbf@localhost", 0, "latin1"),
    "behind-a-byte-0": (b"UPDATE t SET a = 1; \0 garbage", 0, "utf8mb4"),
    "a-reading-that-ends-with-a-byte-0": (b"UPDATE t SET a = '\\'; \0 ', b = '\\' -- '", 0, "utf8mb4"),
}  # fmt: skip
"""Texts, with the mode and the character set of the log."""
PROSE: Final = (
    "it's", "it's #1", "O'Brien -- the 'real' one", 'say "it\'s" /* now */', "5' tall", "C:\\dir\\", "'quoted' # x",
    "l'été -- c'est", "中's 文't", "说'你好'", "中\\", "back\\slash 'n' roll", "it's :) # smile", "a\0b'c", "\r\n'\x1a",
)  # fmt: skip
FORMS: Final = (
    "INSERT INTO t (a, b) VALUES (1, '{}')",
    "INSERT INTO t (a, b) VALUES (1, '{}'), (2, '{}')",
    "UPDATE t SET v = '{}' WHERE id = 3",
    "DELETE FROM t WHERE v = '{}'",
    "CREATE TABLE t (a INT COMMENT '{}')",
    "CREATE PROCEDURE p() BEGIN SET @a = '{}'; -- don't\n UPDATE t SET v = 1; END",
    "CREATE USER u@h IDENTIFIED BY '{}'",
)


def said(sql: bytes, mode: int, charset: str, source: Reader) -> str:
    """Why the text is refused, or which readings a parser has to judge."""
    try:
        readings = require_one_reading(sql, SessionContext(sql_mode=mode, charset_client=SETS[charset]), source)
    except AmbiguousTextError as exc:
        return str(exc)
    return ", ".join(map(str, readings))


@pytest.mark.parametrize("source", READERS, ids=lambda each: each.flavor.value)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_text_that_may_have_been_another_statement_is_refused(attack: str, source: Reader) -> None:
    assert said(*ATTACKS[attack], source) != ""


@pytest.mark.parametrize("source", READERS, ids=lambda each: each.flavor.value)
@pytest.mark.parametrize("form", FORMS)
def test_what_applications_write_has_one_reading(form: str, source: Reader) -> None:
    for prose in PROSE:
        for mode in (0, ANSI_QUOTES, ANSI):
            assert said(form.replace("{}", escape_string(prose)).encode(), mode, "utf8mb4", source) == "", prose
        plain = form.replace("{}", prose.replace("'", "''")).encode()
        if "\\" not in prose:
            assert said(plain, NO_BACKSLASH_ESCAPES, "utf8mb4", source) == "", prose


def test_a_name_in_brackets_is_one_in_a_mode_of_mariadb() -> None:
    """With MSSQL an UPDATE of a table that has this name, without it one of victim.v."""
    text = b'UPDATE t, (SELECT "\\" AS x FROM [" AS x) d, victim.v SET v.n = 1 -- ]) d SET t.n = 1'
    assert said(text, 0, "latin1", READERS[0]) != ""
    assert said(text, 0, "latin1", READERS[1]) == ""
    # what applications write: the backslash is no SQL, whatever stands behind it
    assert said(rb"""INSERT INTO t VALUES ("{\"a\": [1, 2]}", "[\"b\"]", '[1, "c"]')""", 0, "utf8mb4", READERS[0]) == ""


@pytest.mark.parametrize("source", READERS, ids=lambda each: each.flavor.value)
def test_a_name_in_double_quotes_is_one_part_in_both_modes(source: Reader) -> None:
    assert said(rb"""GRANT SELECT ON app.* TO "u"@"h" WITH GRANT OPTION""", ANSI_QUOTES, "utf8mb4", source) == ""
    assert said(rb"""INSERT INTO "t" ("n", "v") VALUES (4, 'a"b\\')""", ANSI_QUOTES, "utf8mb4", source) == ""


@pytest.mark.parametrize("source", READERS, ids=lambda each: each.flavor.value)
def test_a_backslash_in_front_of_a_character_of_several_bytes_is_refused(source: Reader) -> None:
    """Servers escape its first byte alone, so that the second swallows the next backslash (tried on both)."""
    text = b"UPDATE t, (SELECT '\\\xc3\xa9\\' AS x) d JOIN other.v SET v.n = 1 -- ' AS x) d SET t.k = 1"
    with pytest.raises(AmbiguousTextError, match=r"a gbk character of several bytes \(write it without that, or"):
        as_read_by_source(text, SessionContext(charset_client=SETS["gbk"]), source, source.flavor)
    assert as_read_by_source(text, SessionContext(charset_client=SETS["utf8mb4"]), source, source.flavor) == text


OF_TABLES: Final = (
    "CREATE TABLE `产品` (`编号` int COMMENT '编号', `名称` varchar(10) COMMENT '名称')",
    "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `ビュー` AS select `名` from `表`",
    "ALTER TABLE `주문` ADD `이름` varchar(10) COMMENT '이름', ADD KEY `이름` (`이름`)",
    "/* app:web */ INSERT INTO `表` (`名`) VALUES ('表'), ('名')",
    "DROP TABLE `café`, `thé`",
    "COMMIT\0",
)
"""Their names end in bytes that other character sets read together with a backquote."""
HIDDEN: Final = {
    "a-column": b"UPDATE shared.t, (SELECT 1 AS `\xe9`) d SET secret = 0 -- `) d SET mine = 1",
    "a-new-name": b"RENAME TABLE `p\xe9` TO q, victim.t TO a.stolen -- x` TO y",
    "a-comment-s-end": b"UPDATE `p\xe9`, victim.t v -- x` v SET c = 1e0WHERE id = 1 /*\nSET v.c = 0 -- */",
    "a-body": b"CREATE PROCEDURE `p\xe9`() DELETE FROM victim.t -- `() DO 0",
}
"""Texts in latin1 that were about something else in gbk."""


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize("text", OF_TABLES)
def test_a_statement_about_tables_is_not_refused_for_its_names(text: str, flavor: Flavor) -> None:
    require_one_reading(text.encode(), SessionContext(sql_mode=0, charset_client=45), Reader(flavor, (10, 11, 6)))


@pytest.mark.parametrize("source", READERS, ids=lambda each: each.flavor.value)
@pytest.mark.parametrize("text", HIDDEN)
def test_a_parser_is_asked_about_a_name_that_may_hide_a_statement(text: str, source: Reader) -> None:
    context = SessionContext(sql_mode=0, charset_client=SETS["latin1"])
    assert (SETS["gbk"], 0) in require_one_reading(HIDDEN[text], context, source)


@pytest.mark.parametrize("head", ["/*!50000 x */ ", "/*M! x */ ", "/* é */ ", "-- x\n", "EXPLAIN "])
def test_only_a_head_that_all_readings_have_alike_says_what_a_text_is_about(head: str) -> None:
    text = head.encode("latin-1") + ATTACKS["a-backquote"][0]
    with pytest.raises(AmbiguousTextError, match="another statement with"):
        require_one_reading(text, SessionContext(sql_mode=0, charset_client=28), Reader(Flavor.MYSQL, (8, 4, 0)))


ROWS: Final = ", ".join(f"({number}, '产品\\n说明{number}')" for number in range(1000))
LONG: Final = (
    f"INSERT INTO `订单` (`编号`,`名称`) VALUES {ROWS}",
    "INSERT INTO t (a, b) VALUES ('it\\'s', \"" + "une école été " * 300 + '")',
    "INSERT INTO t (a) VALUES ('" + "\\'é" * 2000 + "')",
)
"""Texts of which some readings leave a quote open: each byte has to have one reading, or they are never read."""


@pytest.mark.parametrize("source", READERS, ids=lambda each: each.flavor.value)
@pytest.mark.parametrize("text", LONG, ids=["rows", "double-quotes", "escapes"])
def test_a_long_text_is_read_once_in_each_character_set(text: str, source: Reader) -> None:
    require_one_reading(text.encode(), SessionContext(sql_mode=0, charset_client=45), source)


@pytest.mark.parametrize("version", [(5, 7, 44), (8, 0, 20), (8, 0, 45), (8, 1, 0), (9, 7, 0)])
def test_six_digits_of_a_version_are_read_as_the_source_reads_them(version: tuple[int, int, int]) -> None:
    source, text = Reader(Flavor.MYSQL, version), b"DELETE FROM app.t WHERE id IN (1, /*!080036 , */ 2)"
    if version[:2] == (8, 0):
        with pytest.raises(AmbiguousTextError, match="six digits"):
            as_read_by_source(text, SessionContext(), source, Flavor.MYSQL)
        # no blank behind it: five digits in all releases
        text = text.replace(b"080036 ", b"080036")
    found = as_read_by_source(text, SessionContext(), source, Flavor.MYSQL)
    # 5.7 and 8.0 read version 8003, and execute the sixth digit
    assert (b"6 ," in found or b"6," in found) is (version < (8, 1, 0))


def test_the_quotes_of_a_long_text_are_emptied_in_a_time_that_grows_with_its_length() -> None:
    kept = b"`%s`.a" % (b"x" * 2_000)
    sql = b"INSERT INTO `app`.`t` VALUES " + b",".join([b"('x', %s)" % kept] * 16_000)
    begun = time.process_time()
    found = with_qualifiers_alone(sql, SessionContext(database="app"), READERS[0])
    assert time.process_time() - begun < 2
    assert found == b"INSERT INTO `app`.`` VALUES " + b",".join([b"('', %s)" % kept] * 16_000)
