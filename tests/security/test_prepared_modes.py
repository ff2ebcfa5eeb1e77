"""Texts that a session prepares in one sql_mode, or client character set, and executes in another: the log has the
second one alone."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import pymysql
import pytest

from binlane.apply.session.connection import LaneSession, SessionLimits
from binlane.apply.session.context import ContextSetter
from binlane.errors import ApplyError, BinlaneError
from binlane.model import Flavor, SessionContext
from binlane.servers.engines import engine_at
from binlane.sql.charset import dialect_of
from lab.servers import PrivateServer
from tests.conftest import requires_mysql
from tests.integration.window.conftest import Channel, ChannelOf, run_on

_ORACLE = 9
"""The number of its bit."""
_OTHER = rb"d JOIN other.victim v SET v.n = 666"
_USUAL = ("SET sql_mode = ''", "SET NAMES utf8mb4")
_HIDDEN = rb"' AS x) d SET t.k = 1 -- ' AS x) " + _OTHER
_BY_COMMENT = (
    b'UPDATE t, (SELECT "\\" -- " AS x) AS d SET t.k = %s /*\n AS y FROM z) AS d, other.victim v SET v.n = 666 -- */'
)
"""With ANSI_QUOTES a line comment ends where the other one has begun."""
ATTACKS = {
    "backslash": (
        ("SET sql_mode = 'NO_BACKSLASH_ESCAPES'",),
        rb"UPDATE t, (SELECT '\' AS x) d SET t.k = 1 -- ' AS x) " + _OTHER,
        _USUAL,
    ),
    "quotation-mark": (
        ("SET sql_mode = 'ANSI_QUOTES'",),
        rb'UPDATE t, (SELECT 1 AS "\") d SET t.k = 1 -- ") ' + _OTHER,
        _USUAL,
    ),
    "definition": (
        ("SET sql_mode = 'NO_BACKSLASH_ESCAPES'",),
        rb"CREATE TABLE c (m VARCHAR(9) COMMENT '\') -- ') SELECT n AS m FROM other.victim",
        _USUAL,
    ),
    "gbk": (("SET NAMES gbk",), b"UPDATE t, (SELECT '\xbf\\" + _HIDDEN, _USUAL),
    "gbk-client-alone": (("SET character_set_client = gbk",), b"UPDATE t, (SELECT '\xbf\\" + _HIDDEN, _USUAL),
    "sjis": (("SET NAMES sjis",), b"UPDATE t, (SELECT '\x83\\" + _HIDDEN, ("SET NAMES latin1",)),
    "big5": (("SET NAMES big5",), b"UPDATE t, (SELECT '\xa4\\" + _HIDDEN, ("SET NAMES latin1",)),
    "backquote": (
        ("SET NAMES latin1",),
        b"UPDATE t, (SELECT 1 AS `\xbf`) d SET t.k = 1 -- `) " + _OTHER,
        ("SET NAMES gbk",),
    ),
    "executed-in-gbk": (
        ("SET NAMES latin1",),
        b"UPDATE t, (SELECT '\xbf\\' AS x) " + _OTHER + b" -- ' AS x) d SET t.k = 1",
        ("SET NAMES gbk",),
    ),
    "a-name-in-a-rename": (
        ("SET NAMES gbk",),
        b"RENAME TABLE `p\xe9` TO q, other.victim TO app.stolen -- x` TO y",
        ("SET NAMES latin1",),
    ),
    "a-name-in-an-update": (
        ("SET NAMES gbk",),
        b"UPDATE `p\xe9`, other.victim v -- x` v SET n = 1 WHERE n = 2 /*\nSET v.n = 666 -- */",
        ("SET NAMES latin1",),
    ),
    # in sjis a query of one column with an alias, whatever the source has had: a parser alone cannot tell
    "a-view-with-a-column": (
        ("SET NAMES utf8mb4", "CREATE TABLE `文` (`名` INT)"),
        "CREATE VIEW v AS SELECT `名` FROM `文`".encode(),
        ("SET NAMES utf8mb4",),
    ),
    "name": (("SET NAMES latin1",), "UPDATE `é` SET k = 1".encode(), _USUAL),
    "combination": (_USUAL, _BY_COMMENT % b"1", ("SET sql_mode = 'ANSI'",)),
    "too-deep": (_USUAL, _BY_COMMENT % (b"(" * 101 + b"1" + b")" * 101), ("SET sql_mode = 'ANSI_QUOTES'",)),
    "hidden-in-a-comment": (
        ("SET NAMES latin1",),
        b"UPDATE t, (SELECT '\xbf\\' -- ' AS x) d SET t.k = 1 /*\n AS x) d JOIN other.victim v SET v.n = 666 -- */",
        ("SET NAMES gbk",),
    ),
    "behind-a-byte-0": (_USUAL, b"UPDATE t SET k = 1; \0 AS x) d JOIN other.victim v SET v.n = 666", _USUAL),
}
"""The settings in which a text is prepared, the text, which is about one table there, and those of EXECUTE."""
HIDDEN = (b"`p\xe9` TO q, other.victim TO app.stolen -- x`", b"`p\xe9`, other.victim v -- x`")
"""Names of tables in gbk, which end at the third backquote."""
NAMED = (
    "CREATE TABLE `产品` (`编号` INT PRIMARY KEY COMMENT '编号', `名称` VARCHAR(10) COMMENT '名称')",
    "CREATE TABLE `中` (`号` INT PRIMARY KEY, KEY `键` (`号`))",
    "ALTER TABLE `中` ADD `名` VARCHAR(10) COMMENT '名', ADD KEY `名` (`名`) /* 중 */",
    "RENAME TABLE `中` TO `文`",
    "INSERT INTO `文` (`号`, `名`) VALUES (1, '中'), (2, '`中`')",
    "CREATE VIEW `ビュー` AS SELECT `文`.`名` FROM `文`",
    "DROP TABLE `产品`",
)
"""Texts with names whose last bytes other character sets read together with the backquote behind them."""
SPELLED = ("CREATE TABLE app.`é` (k INT)", "CREATE TABLE app.`Ã©` (k INT)", "INSERT INTO app.`é` VALUES (42)")
"""The bytes of the first name are the second one in latin1."""
HARMLESS = (
    ("", r"INSERT INTO t (n, v, w) VALUES (1, 'it\'s', 'a \"b\" c\\')"),
    ("", r"""INSERT INTO t (n, v, w) VALUES (2, "o'clock", '"'), (3, 'say "it"', "\"")"""),
    ("ANSI_QUOTES", """INSERT INTO "t" ("n", "v") VALUES (4, 'a"b')"""),
    ("NO_BACKSLASH_ESCAPES", r"INSERT INTO t (n, v) VALUES (5, 'C:\dir\')"),
    ("", r"INSERT INTO `t` (n, v) VALUES (6, '中\\'), (7, 'café\'s'), (8, '中文`')"),
    ("", "INSERT INTO `t` (n, v) SELECT 10 AS `中`, '中' AS `中文` UNION SELECT 11, `k` FROM `t` WHERE `k` IS NULL"),
)
"""What applications write."""


def as_user(server: PrivateServer, *statements: str) -> None:
    """Statements of a user who has rights on ``app`` alone."""
    connection = pymysql.connect(
        host="127.0.0.1", port=server.port, user="test_p", password="p", database="app", autocommit=True
    )
    with connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture(params=["mariadb", pytest.param("mysql", marks=requires_mysql)])
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def prepared(channel_of: ChannelOf, family: str) -> Iterator[Channel]:
    """A channel whose servers have tables of the application and others from before, and a user of the first ones who
    writes statements into the log."""
    channel = channel_of(family, family)
    channel.on_both(
        "CREATE DATABASE app",
        "CREATE TABLE app.t (n INT PRIMARY KEY, v VARCHAR(20), w VARCHAR(20), k INT)",
        r"CREATE TABLE app.z (`\` INT)",
        r"INSERT INTO app.z VALUES (1)",
        "INSERT INTO app.t (n) VALUES (9)",
        "CREATE DATABASE other",
        "CREATE TABLE other.victim (n INT PRIMARY KEY)",
        "INSERT INTO other.victim VALUES (42)",
    )
    run_on(
        channel.source,
        "CREATE USER test_p@'%' IDENTIFIED BY 'p'",
        "GRANT ALL ON app.* TO test_p@'%' WITH GRANT OPTION",
        "SET GLOBAL binlog_format = STATEMENT",
    )
    yield channel
    run_on(channel.source, "SET GLOBAL binlog_format = ROW", "DROP USER test_p@'%'")


def test_what_applications_write_in_each_mode_arrives(prepared: Channel) -> None:
    as_user(prepared.source, *(each for mode, text in HARMLESS for each in (f"SET sql_mode = '{mode}'", text)))

    assert prepared.run() is not None

    prepared.assert_equal()
    assert len(prepared.target.query("SELECT n FROM app.t")) > len(HARMLESS)


def test_a_parser_says_that_names_of_other_letters_hide_nothing(prepared: Channel) -> None:
    as_user(prepared.source, "SET NAMES utf8mb4", *NAMED)

    assert prepared.run() is not None

    prepared.assert_equal()
    assert prepared.target.query("SELECT `名` FROM app.`ビュー` ORDER BY LENGTH(`名`)") == [("中",), ("`中`",)]


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_text_about_other_tables_in_the_mode_that_prepared_it_is_refused(prepared: Channel, attack: str) -> None:
    if attack == "name":
        prepared.on_both(*SPELLED)
    before, text, executed = ATTACKS[attack]
    for name in HIDDEN if attack.startswith("a-name-in") else ():
        made = b"CREATE TABLE " + name + b" (n INT)"
        as_user(prepared.source, "SET NAMES gbk", f"SET @text = X'{made.hex()}'", "PREPARE s FROM @text", "EXECUTE s")
        prepared.on_both("CREATE TABLE IF NOT EXISTS app.`pé` (k INT)")
    as_user(prepared.source, f"SET @text = X'{text.hex()}'", *before, "PREPARE s FROM @text", *executed, "EXECUTE s")

    # of statements about tables the precheck asks a parser
    usual = r"another statement with|\[other-modes\]"
    said = {"name": re.escape("[other-modes]"), "behind-a-byte-0": "a byte 0"}.get(attack, usual)
    with pytest.raises(BinlaneError, match=said):
        prepared.run()

    assert prepared.source.query("SELECT n FROM other.victim") == [(42,)]
    if attack == "name":
        assert prepared.target.query("SELECT k FROM app.`é`") == [(42,)]
    assert prepared.target.query("SELECT n FROM other.victim") == [(42,)]


def test_a_text_that_the_filter_leaves_out_may_have_been_one_of_its_own_tables(prepared: Channel) -> None:
    """In latin1 it is about ``other.q`` alone, in gbk it has renamed a table of the channel."""
    prepared.write_channel('[filter]\ninclude_databases = ["app"]\n')
    text = b"RENAME TABLE other.`p\xe9` TO other.q -- x` TO other.q2, app.t TO app.u"
    hidden = "p閌 TO other.q -- x".encode("gbk")
    run_on(prepared.source, "GRANT ALL ON other.* TO test_p@'%'", "CREATE TABLE other.`pé` (k INT)")
    made = b"CREATE TABLE other.`" + hidden + b"` (n INT)"
    as_user(prepared.source, "SET NAMES gbk", f"SET @text = X'{made.hex()}'", "PREPARE s FROM @text", "EXECUTE s")
    before = "SET NAMES gbk", f"SET @text = X'{text.hex()}'", "PREPARE s FROM @text"
    as_user(prepared.source, *before, "SET NAMES latin1", "EXECUTE s")
    assert prepared.source.query("SHOW TABLES FROM app LIKE 'u'") == [("u",)]

    with pytest.raises(BinlaneError, match="another statement in another character set"):
        prepared.run()


@pytest.mark.parametrize("rule", ['include_databases = ["app"]', 'exclude_databases = ["other"]'])
def test_a_text_about_others_alone_is_left_out(prepared: Channel, rule: str) -> None:
    prepared.write_channel(f"[filter]\n{rule}\n")
    run_on(
        prepared.source,
        "CREATE TABLE other.`员工表` (`号` INT)",
        "ALTER TABLE other.`员工表` ADD `手机号` VARCHAR(20)",
        "INSERT INTO other.`员工表` VALUES (1, '产品-A/x#1.pdf')",
        "UPDATE other.`员工表` e SET e.`手机号` = 'foo@bar.example'",
    )
    as_user(prepared.source, "INSERT INTO t (n) VALUES (10)")

    assert prepared.run() is not None

    assert prepared.target.query("SELECT n FROM app.t WHERE n = 10") == [(10,)]
    assert prepared.target.query("SHOW TABLES FROM other") == [("victim",)]


@pytest.mark.parametrize("family", ["mariadb"])
def test_an_account_statement_has_one_reading(prepared: Channel) -> None:
    """MariaDB logs GRANT as it was given; MySQL writes it anew, but not REVOKE."""
    text = (
        'SET STATEMENT sort_buffer_size = 1 | "\\" FOR GRANT ALL ON *.* TO `test_p`@`%` -- " FOR GRANT SELECT ON app.t '
        "TO test_p@'%'"
    )
    statements = f"SET @text = X'{text.encode().hex()}'", "PREPARE s FROM @text", "SET sql_mode = 'ANSI_QUOTES'"
    as_user(prepared.source, "SET sql_mode = ''", *statements, "EXECUTE s")

    with pytest.raises(BinlaneError, match="another statement with ANSI_QUOTES off"):
        prepared.run()

    assert prepared.target.query("SELECT user FROM mysql.user WHERE user = 'test_p'") == []


@pytest.mark.parametrize("bit", range(34))
def test_a_session_splits_texts_by_the_modes_that_were_logged(prepared: Channel, bit: int) -> None:
    """Whatever number an archive has: a name of a combination is none of the modes that it stands for."""
    flavor, context = prepared.target.flavor, SessionContext(sql_mode=1 << bit)
    dialect = dialect_of(context, flavor)
    engine = engine_at(prepared.target.url())
    session = LaneSession.open(engine, SessionLimits(wait_timeout=60))
    with contextlib.closing(session):
        session.act_as_replica()
        setter = ContextSetter(session)
        if bit == _ORACLE and flavor is Flavor.MARIADB:
            with pytest.raises(ApplyError, match="ORACLE without ANSI_QUOTES"):
                setter.enter(context, b"DO 1")
            return
        setter.enter(context, b"DO 1")
        [(strings, escapes)] = session.rows(
            "SELECT (SELECT \"a\" FROM (SELECT 'b' AS a) d) = 'a', '\\\\' = _ascii X'5C'"
        )
    assert (not strings, not escapes) == (dialect.ansi_quotes, dialect.no_backslash_escapes)
