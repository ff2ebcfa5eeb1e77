"""Which texts see a variable that no log holds, and when two servers differ in it."""

from __future__ import annotations

import pytest

from binlane.model import Flavor, SessionContext
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.session_variables import VARIABLES, Fate, Globals, Variable, is_lax, leaves_timestamps_open, plain


def variable(name: str, absent: str | None = None) -> Variable:
    return next(each for each in VARIABLES if each.name == name and absent in (None, each.absent))


def seen(name: str, sql: str) -> bool:
    tokens: list[Token] = []
    lex(sql, Dialect(Flavor.MYSQL), tokens)
    sight = variable(name).sight
    assert sight is not None
    sees = sight.sees(plain(tokens))
    assert not sees or sight.hint.search(sql.encode())
    return sees


@pytest.mark.parametrize(
    ("name", "sql", "sees"),
    [
        ("default_week_format", "UPDATE t SET n = WEEK(at)", True),
        ("default_week_format", "UPDATE t SET n = week (DATE_ADD(at, INTERVAL (1 + 2) DAY))", True),
        ("default_week_format", "UPDATE t SET n = WEEK(DATE_ADD(at, INTERVAL (1 + 2) DAY), 1)", False),
        ("default_week_format", "UPDATE t SET n = WEEK(a, 3), m = WEEK(b)", True),
        ("default_week_format", "UPDATE t SET n = EXTRACT(WEEK FROM at)", True),
        ("default_week_format", "UPDATE t SET n = WEEKOFYEAR(at), s = 'week(at)'", False),
        ("div_precision_increment", "UPDATE t SET n = a/b", True),
        ("div_precision_increment", "UPDATE t SET n = 'a/b' /* a/b */", False),
        ("div_precision_increment", "INSERT INTO t SELECT AVG(n) FROM u", True),
        ("div_precision_increment", "UPDATE t SET avg = 1", False),
        ("group_concat_max_len", "INSERT INTO t SELECT GROUP_CONCAT(s) FROM u", True),
        ("group_concat_max_len", "INSERT INTO t SELECT CONCAT(s) FROM u", False),
        ("max_sort_length", "DELETE FROM t ORDER BY s LIMIT 1", True),
        ("max_sort_length", "DELETE FROM `order` WHERE id = 1", False),
        ("block_encryption_mode", "UPDATE t SET s = AES_DECRYPT(s, 'k')", True),
        ("block_encryption_mode", "UPDATE t SET s = `aes_decrypt` (s, 'k')", True),
        ("block_encryption_mode", "UPDATE t SET s = `aes_decrypt`", False),
        ("default_regex_flags", "DELETE FROM t WHERE s RLIKE 'a'", True),
        ("old_mode", "CREATE TABLE t (s TEXT CHARSET utf8)", True),
        ("old_mode", "INSERT INTO t VALUES (_utf8'a')", True),
        ("old_mode", "CREATE TABLE t (s TEXT COLLATE utf8_bin)", True),
        ("old_mode", "CREATE TABLE t (s TEXT CHARSET utf8mb4)", False),
        ("cte_max_recursion_depth", "INSERT INTO t WITH RECURSIVE r AS (SELECT 1) SELECT * FROM r", True),
        ("max_allowed_packet", "UPDATE t SET s = CONCAT(s, s)", True),
        ("max_allowed_packet", "REPLACE INTO t (s) VALUES ('a')", False),
        ("default_storage_engine", "CREATE TABLE t (id INT)", True),
        ("default_storage_engine", "CREATE TABLE t (id INT) ENGINE=MyISAM", False),
        ("default_storage_engine", "CREATE TABLE t LIKE u", False),
        ("default_tmp_storage_engine", "CREATE TEMPORARY TABLE t (id INT)", True),
        # a quoted name is no word, also in front of a parenthesis
        ("innodb_ft_enable_stopword", "INSERT INTO `match` (`id`) VALUES (1)", False),
        ("innodb_ft_enable_stopword", "CREATE TABLE t (`match` INT, KEY `match` (`match`))", False),
        ("windowing_use_high_precision", "INSERT INTO `over` (id) VALUES (1)", False),
        ("max_allowed_packet", "INSERT INTO `repeat` (id) VALUES (1)", False),
        ("max_allowed_packet", "UPDATE t SET s = `concat`(s, s)", True),
        ("max_allowed_packet", "UPDATE t SET s = REPEAT(s, 2)", True),
        ("max_allowed_packet", "UPDATE t SET s = `a (``concat``` (s)", False),
        ("default_storage_engine", "CREATE TABLE t (`engine` INT, KEY `engine` (`engine`))", True),
        ("default_storage_engine", "CREATE TABLE t (`like` INT, KEY `like` (`like`))", True),
        ("default_tmp_storage_engine", "CREATE TEMPORARY TABLE t (id INT, KEY `engine` (id))", True),
        ("default_regex_flags", "UPDATE t SET s = `regexp_replace`(s, 'a', 'b')", True),
        ("default_regex_flags", "INSERT INTO `rlike` (id) VALUES (1)", False),
        ("div_precision_increment", "INSERT INTO `avg` (id) VALUES (1)", False),
        ("default_week_format", "UPDATE t SET n = `week`(at), s = `weekday`(at)", True),
        ("default_week_format", "UPDATE t SET n = `week`(at, 1)", False),
        ("innodb_ft_enable_stopword", "DELETE FROM t WHERE MATCH (s) AGAINST ('a')", True),
    ],
)
def test_a_text_sees_what_decides_about_it(name: str, sql: str, sees: bool) -> None:
    assert seen(name, sql) is sees


def server(number: tuple[int, int, int] = (10, 11, 14), **values: str) -> Globals:
    return Globals(values, number)


def test_only_what_matters_of_a_value_is_compared() -> None:
    utf8, cast = variable("old_mode", "UTF8_IS_UTF8MB3"), variable("old_mode", "")
    usual, other = server(old_mode="UTF8_IS_UTF8MB3"), server(old_mode="NO_PROGRESS_INFO")
    assert utf8.differing(usual, other) == ("UTF8_IS_UTF8MB3", "NO_PROGRESS_INFO")
    assert cast.differing(usual, other) is None
    assert cast.differing(server(old_mode="ZERO_DATE_TIME_CAST"), other) is not None
    # before 10.6, and on MySQL, utf8 means utf8mb3
    assert utf8.differing(usual, server((10, 5, 29), old_mode="")) is None
    assert utf8.differing(usual, server((9, 7, 0))) is None
    assert utf8.differing(other, server((9, 7, 0))) is not None


def test_a_server_without_a_variable_does_what_others_do_by_its_default() -> None:
    mode = variable("block_encryption_mode")
    assert mode.differing(server(), server(block_encryption_mode="aes-128-ecb")) is None
    assert mode.differing(server(block_encryption_mode="aes-256-ecb"), server()) is not None
    assert (
        variable("windowing_use_high_precision").differing(server(windowing_use_high_precision="OFF"), server()) is None
    )


def test_a_larger_limit_of_the_target_cuts_nothing_off() -> None:
    packet = variable("max_allowed_packet")
    small, large = server(max_allowed_packet="16777216"), server(max_allowed_packet="67108864")
    assert packet.differing(small, large) is None
    assert packet.differing(large, small) == ("67108864", "16777216")


def test_engines_of_temporary_tables_differ_by_what_a_rollback_leaves() -> None:
    engine = variable("default_tmp_storage_engine")
    assert engine.differing(server(default_tmp_storage_engine=""), server(default_tmp_storage_engine="InnoDB")) is None
    assert (
        engine.differing(server(default_tmp_storage_engine="MyISAM"), server(default_tmp_storage_engine="")) is not None
    )


def test_a_session_is_lax_without_strict_modes() -> None:
    modes = (None, 0, 1 << 21, 1 << 22)
    assert [is_lax(SessionContext(sql_mode=mode)) for mode in modes] == [True, True, False, False]


def test_what_is_compared_has_a_sight_and_nothing_else() -> None:
    assert {each.name for each in VARIABLES if each.sight is not None} == {
        each.name for each in VARIABLES if each.fate in (Fate.COMPARED, Fate.STORAGE)
    }
    for each in VARIABLES:
        assert (each.sight is not None) is (each.fate in (Fate.COMPARED, Fate.STORAGE)), each.name


@pytest.mark.parametrize(
    ("columns", "is_open"),
    [
        ("ts TIMESTAMP", True),
        ("ts TIMESTAMP(6) NOT NULL", True),
        ("ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP", True),
        ("ts TIMESTAMP NOT NULL ON UPDATE CURRENT_TIMESTAMP, n INT NULL DEFAULT 1", True),
        ("n INT, ts TIMESTAMP NULL", False),
        ("`ts` timestamp NULL DEFAULT NULL COMMENT 'a, b'", False),
        ("ts TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)", False),
        ("ts TIMESTAMP AS (CAST(a AS DATETIME)) STORED", False),
        ("timestamp INT, KEY timestamp (timestamp)", False),
        ("ts DATETIME DEFAULT (TIMESTAMP('2020-01-01'))", False),
    ],
)
def test_a_timestamp_whose_definition_a_variable_completes(columns: str, is_open: bool) -> None:
    for sql in (f"CREATE TABLE IF NOT EXISTS t ({columns})", f"ALTER TABLE t ADD COLUMN ({columns})"):
        tokens: list[Token] = []
        lex(sql, Dialect(Flavor.MARIADB), tokens)
        assert leaves_timestamps_open(tokens) is is_open
