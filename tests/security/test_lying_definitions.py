"""What answers as the source of a first copy, a recopy or a repair shows other statements than definitions, and other
values than rows: none of them runs on the target.

Attacker: what answers in the source's place (a connection without verify_ca or verify_identity), or its administrator,
who has no account on the target.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import pytest

from binlane.binlog.types.sql_values import DECIMAL, FLOAT, INTEGER, NUMBERED, TEXT, ValueKind
from binlane.bootstrap.account_copy import read_accounts
from binlane.bootstrap.definition_copy import Definition, make, read_definition, set_sequence
from binlane.bootstrap.definition_proof import foreign_part
from binlane.bootstrap.sessions import Session, read_session
from binlane.errors import PrecheckError, SourceError
from binlane.model import Flavor, SchemaObject
from tests.conftest import requires_mysql
from tests.integration.window.conftest import CHANNEL, ChannelOf, run_on

_HEAD: Final = "CREATE DEFINER=`root`@`localhost` "
_VIEW: Final = "CREATE ALGORITHM=UNDEFINED DEFINER=`u`@`%` SQL SECURITY DEFINER VIEW "
OWN: Final = (
    ("DATABASE", "CREATE DATABASE `app` /*!40100 DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin */", ""),
    (
        "DATABASE",
        "CREATE DATABASE `app` /*!40100 DEFAULT CHARACTER SET latin1 */ /*!80016 DEFAULT ENCRYPTION='N' */",
        "",
    ),
    ("DATABASE", "CREATE DATABASE `app` /*!40100 DEFAULT CHARACTER SET latin1 */ COMMENT 'a''b\\'c */ ;'", ""),
    ("TABLE", "CREATE TABLE `t` (\n  `a` int\n) ENGINE=MRG_MyISAM UNION=(`b`,`c`)", ""),
    (
        "TABLE",
        "CREATE TABLE `t` (\n  `a` char(36) DEFAULT (uuid()),\n  `b` int GENERATED ALWAYS AS (abs(`a`)) STORED,\n"
        "  KEY `k` (`a`(10))\n) ENGINE=InnoDB DEFAULT CHARSET=latin1 WITH SYSTEM VERSIONING\n"
        " PARTITION BY SYSTEM_TIME INTERVAL 1 WEEK STARTS TIMESTAMP'2026-01-01 00:00:00' AUTO\nPARTITIONS 4",
        "",
    ),
    ("SEQUENCE", "CREATE SEQUENCE `t` start with 1 increment by 1 nocache nocycle ENGINE=InnoDB", ""),
    ("VIEW", _VIEW + "`t` AS select 1 AS `a`", ""),
    ("VIEW", _VIEW + "`app`.`t` AS select `x`.`a` AS `a` from `other`.`x` where `x`.`b` = 'c\\' /*! */'", ""),
    ("PROCEDURE", _HEAD + "PROCEDURE `t`(a INT)\nBEGIN /* 99999 DROP TABLE x */ GRANT ALL ON *.* TO x; END", ""),
    ("PROCEDURE", _HEAD + "PROCEDURE `t`()\nSET @a = (SELECT /*+ SET_VAR(sql_mode = '') */ \"/*!\" -- /*!\n)", ""),
    ("FUNCTION", _HEAD + "FUNCTION `t`() RETURNS int(11)\nRETURN 1", ""),
    ("FUNCTION", "CREATE DEFINER=`r` AGGREGATE FUNCTION `t`(a INT) RETURNS int RETURN 1", ""),
    (
        "FUNCTION",
        'CREATE DEFINER="r"@"%" FUNCTION "t" RETURN int AS BEGIN RETURN 1; END',
        "PIPES_AS_CONCAT,ANSI_QUOTES",
    ),
    ("PACKAGE", 'CREATE DEFINER="r"@"%" PACKAGE "t" AS FUNCTION f RETURN INT; END', "ANSI_QUOTES,ORACLE"),
    (
        "PACKAGE BODY",
        'CREATE DEFINER="r"@"%" PACKAGE BODY "t" AS FUNCTION f RETURN INT AS BEGIN END; END',
        "ANSI_QUOTES,ORACLE",
    ),
    ("TRIGGER", _HEAD + "trigger/* x */app.`t` before insert on app . x for each row set @a = 1", ""),
    ("TRIGGER", _HEAD + "trigger t /* wow! */ after insert on x for each row set @a = 1", ""),
    ("TRIGGER", _HEAD + "trigger t -- wow! /*! it fires\nafter insert # !\non x for each row set @a = 1", ""),
    (
        "TRIGGER",
        "CREATE OR REPLACE DEFINER=`u`@`%` TRIGGER IF NOT EXISTS t AFTER DELETE ON x FOR EACH ROW x",
        "",
    ),
    ("EVENT", _HEAD + "EVENT `t` ON SCHEDULE EVERY 1 DAY DISABLE ON SLAVE DO DROP TABLE x", ""),
    ("VIEW", "DROP VIEW IF EXISTS `app`.`t`", ""),
)
"""Definitions of ``t`` in ``app`` that servers show, or that replace one, and their sql_mode."""
ATTACKS: Final = (
    ("DATABASE", "GRANT ALL ON *.* TO test_evil", ""),
    ("DATABASE", "CREATE DATABASE `other`", ""),
    ("DATABASE", "CREATE DATABASE `app`.`t`", ""),
    ("DATABASE", "ALTER DATABASE `app` READ ONLY = 1", ""),
    ("DATABASE", "DROP DATABASE `app`", ""),
    ("TABLE", "GRANT ALL ON *.* TO test_evil", ""),
    ("TABLE", "CREATE TABLE `other`.`t` (\n  `a` int\n) ENGINE=InnoDB", ""),
    ("TABLE", "CREATE TABLE `t` LIKE `mysql`.`user`", ""),
    ("TABLE", "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB AS SELECT * FROM `mysql`.`user`", ""),
    (
        "TABLE",
        "CREATE TABLE `t` (\n  `a` int\n) ENGINE=MRG_MyISAM UNION=(`b`,`mysql`.`global_priv`) INSERT_METHOD=LAST",
        "",
    ),
    (
        "TABLE",
        "CREATE TABLE `t` (\n  `a` int,\n  `b` int GENERATED ALWAYS AS (sys_exec('x')) STORED\n) ENGINE=InnoDB",
        "",
    ),
    ("TABLE", "CREATE TABLE `t` (\n  `a` text DEFAULT (`sys_exec`('x'))\n) ENGINE=InnoDB", ""),
    (
        "TABLE",
        "CREATE TABLE `t` (\n  `a` int\n) ENGINE=InnoDB\n PARTITION BY SYSTEM_TIME INTERVAL 0*RELEASE_ALL_LOCKS() DAY",
        "",
    ),
    ("TABLE", "ALTER TABLE `t` ENGINE=InnoDB", ""),
    ("TABLE", "CREATE USER `t` ENGINE=InnoDB", ""),
    ("SEQUENCE", "CREATE SEQUENCE `other`.`t` start with 1 ENGINE=InnoDB", ""),
    ("SEQUENCE", "DROP TABLE `t`", ""),
    ("VIEW", "INSERT INTO `mysql`.`user` VALUES (1)", ""),
    ("VIEW", _VIEW + "`other`.`t` AS select 1", ""),
    ("VIEW", "CREATE TABLE `t` AS select * from `mysql`.`user`", ""),
    ("VIEW", "DROP VIEW IF EXISTS `app`.`t`, `other`.`t`", ""),
    ("VIEW", "DROP VIEW IF EXISTS `other`.`t`", ""),
    ("PROCEDURE", "GRANT ALL ON *.* TO test_evil", ""),
    ("PROCEDURE", "/*!50003 GRANT ALL ON *.* TO test_evil */", ""),
    ("PROCEDURE", "/*!99999 CREATE PROCEDURE `t`() */ GRANT ALL ON *.* TO test_evil", ""),
    ("PROCEDURE", "CREATE /*!99999 PROCEDURE `t`() -- */ USER test_evil", ""),
    ("PROCEDURE", "CREATE /*M!999999 PROCEDURE `t`() -- */ USER test_evil", ""),
    ("PROCEDURE", _HEAD + "PROCEDURE `t`()\nBEGIN /*!99999 DROP TABLE x */ END", ""),
    ("PROCEDURE", _HEAD + "PROCEDURE `t`()\nSET @a = 1 /*!50003 + 1 */", ""),
    ("PROCEDURE", _HEAD + 'PROCEDURE `t`()\nSET @a = "\'" /*!50003 + "\'" */', ""),
    (
        "PROCEDURE",
        _HEAD + 'PROCEDURE `t`()\nSET @a = `\\\\`, @b = "\\" /*!50003 , @c = "\\" */',
        "ORACLE,NO_BACKSLASH_ESCAPES",
    ),
    ("FUNCTION", _HEAD + "FUNCTION `t`() RETURNS int DETERMINISTIC RETURN 1 $$ /*!80013 + 1 */ $$", ""),
    ("TRIGGER", _HEAD + "trigger t after insert on x for each row /*! set @a = 1 */", ""),
    ("EVENT", _HEAD + "EVENT `t` ON SCHEDULE EVERY 1 DAY DISABLE ON SLAVE DO SET @a = 1 /*!100000 + 1 */", ""),
    ("VIEW", _VIEW + "`t` AS select 1 AS `a` /*!50003 from x */", ""),
    ("PROCEDURE", "CREATE USER test_evil", ""),
    ("PROCEDURE", "ALTER PROCEDURE `t` SQL SECURITY INVOKER", ""),
    ("PROCEDURE", _HEAD + "PROCEDURE `other`.`t`() DO 1", ""),
    ("PROCEDURE", _HEAD + "PROCEDURE `APP`.`t`() DO 1", ""),
    ("PROCEDURE", _HEAD + "PROCEDURE `#mysql50#other`.`t`() DO 1", ""),
    ("PROCEDURE", 'CREATE DEFINER=`r`@"a\\" PROCEDURE `other`.`t`() DO 1 -- " PROCEDURE `t`() DO 1', ""),
    ("PROCEDURE", 'CREATE DEFINER=`r`@"a\\" PROCEDURE `other`.`t`() DO 1 -- " PROCEDURE `t`() DO 1', "ansi_quotes"),
    # of the account that makes it
    ("PROCEDURE", "CREATE PROCEDURE `t`() DO 1", ""),
    ("PROCEDURE", "CREATE DEFINER=CURRENT_USER PROCEDURE `t`() DO 1", ""),
    ("FUNCTION", "CREATE DEFINER = current_user() FUNCTION `t`() RETURNS int RETURN 1", ""),
    ("TRIGGER", "CREATE TRIGGER `t` BEFORE INSERT ON `x` FOR EACH ROW SET @a = 1", ""),
    ("EVENT", "CREATE DEFINER=CURRENT_ROLE EVENT `t` ON SCHEDULE EVERY 1 DAY DO DROP TABLE x", ""),
    ("VIEW", "CREATE OR REPLACE ALGORITHM=UNDEFINED SQL SECURITY DEFINER VIEW `t` AS select 1 AS `a`", ""),
    ("FUNCTION", "CREATE FUNCTION `t` RETURNS STRING SONAME 'evil.so'", ""),
    ("FUNCTION", "CREATE AGGREGATE FUNCTION t RETURNS INTEGER SONAME 'evil.so'", ""),
    ("PACKAGE", 'CREATE PACKAGE BODY "t" AS BEGIN END', "ORACLE"),
    ("TRIGGER", _HEAD + "TRIGGER `t` BEFORE INSERT ON `other`.`x` FOR EACH ROW SET @a = 1", ""),
    ("TRIGGER", _HEAD + "TRIGGER `other`.`t` BEFORE INSERT ON `x` FOR EACH ROW SET @a = 1", ""),
    ("EVENT", _HEAD + "EVENT `other`.`t` ON SCHEDULE EVERY 1 DAY DO DROP TABLE x", ""),
    ("EVENT", "SET GLOBAL event_scheduler = ON", ""),
    ("TABLE IF EXISTS MYSQL.USER -- ", "CREATE PROCEDURE `t`() DO 1", ""),
    ("PROCEDURE", "", ""),
)
"""Texts in place of a definition of ``t`` in ``app``. A line more is an attack more."""
_EVENT: Final = _HEAD + 'EVENT `t` ON SCHEDULE EVERY "1\\" DAY DO x" SECOND DO GRANT ALL ON *.* TO `evil`@`%` -- "'
"""With ANSI_QUOTES its body is ``x" SECOND ..``; without, an event of every second, whose body is GRANT."""
_IN_GBK: Final = _HEAD + "EVENT `t` ON SCHEDULE EVERY 1 DAY COMMENT '\u00bf\\' DO GRANT ALL ON *.* TO x -- ' DO x"
SESSIONS: Final = (
    (_EVENT, "", "ANSI_QUOTES"),
    (_EVENT, "latin1", "ansi_quotes"),
    (_EVENT, "latin1", "ANSI_QUOTES "),
    (_EVENT, "latin1", "ANSI_QUOTES\0"),
    (_IN_GBK, "28", ""),
    (_IN_GBK, "DEFAULT", ""),
    (_HEAD + "PROCEDURE `t`() DO 1", "", ""),
)
"""Programs, whose text is not read as it would be sent, of what a server never shows: the client's character set and
the sql_mode. A line more is an attack more."""
CLIENTS: Final = (
    ("utf8mb4, GLOBAL max_connections = 77", "utf8mb4_bin"),
    ("utf8mb4", "utf8mb4_bin, @@global.max_connections = 77"),
    ("(SELECT app.f())", "utf8mb4_bin"),
)
"""Character sets and collations of clients. A line more is an attack more."""
NUMBERS: Final = (b"(SELECT 1)", b"1),(2", b"app.f()", b"1 OR 1", b"0x41", b"@@version", b"'1'", b"1e\x30;", b"NULL")
"""Texts of numbers. A line more is an attack more."""
VALUES: Final = ("1, 0, 0), SETVAL(other.s, 9", "(SELECT 1)", "", "1e9", "1 ")
"""Of a sequence's row. A line more is an attack more."""


@dataclass
class _Server:
    """A session that gives the answers it is told to give, and keeps what it was sent."""

    flavor: Flavor
    answers: dict[str, list[tuple[bytes, ...]]] = field(default_factory=dict)
    sent: list[object] = field(default_factory=list)
    source: str = "db"

    def rows(self, statement: str) -> list[tuple[bytes, ...]]:
        found = [rows for begin, rows in self.answers.items() if statement.startswith(begin)]
        return found[0] if found else [(b"0",)]

    def texts(self, statement: str) -> list[tuple[str, ...]]:
        return [tuple(each.decode() for each in row) for row in self.rows(statement)]

    def execute(self, statement: object) -> int:
        if not str(statement).startswith("SET SESSION print_identified_with_as_hex"):
            self.sent.append(statement)
        return 0


def _definition(
    kind: str, statement: str, mode: str, client: str = "latin1", collation: str = "latin1_bin"
) -> Definition:
    name = "" if kind == "DATABASE" else "t"
    of_session = ("", "", "") if kind in ("DATABASE", "TABLE", "SEQUENCE") else (client, collation, mode)
    return Definition(kind, "app", name, statement.encode(), *of_session)


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(("kind", "statement", "mode"), OWN)
def test_what_a_server_shows_is_accepted(kind: str, statement: str, mode: str, flavor: Flavor) -> None:
    server: Any = _Server(flavor)
    assert foreign_part(_definition(kind, statement, mode), server) is None


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(("kind", "statement", "mode"), ATTACKS)
def test_another_statement_is_not_sent(kind: str, statement: str, mode: str, flavor: Flavor) -> None:
    server: Any = _Server(flavor)
    with pytest.raises(PrecheckError, match="expected its definition alone, found"):
        make(server, _definition(kind, statement, mode))
    assert server.sent == []


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(("statement", "client", "mode"), SESSIONS)
def test_a_program_of_a_session_that_no_server_shows_is_not_sent(
    statement: str, client: str, mode: str, flavor: Flavor
) -> None:
    server: Any = _Server(flavor)
    kind = "EVENT" if "EVENT" in statement else "PROCEDURE"
    with pytest.raises(PrecheckError, match="expected its definition alone, found"):
        make(server, _definition(kind, statement, mode, client, client and "latin1_bin"))
    assert server.sent == []


@pytest.mark.parametrize("flavor", Flavor)
@pytest.mark.parametrize(
    "mode", ["ANSI_QUOTES", "ANSI", "MSSQL", "DB2", "MAXDB", "POSTGRESQL", "ORACLE", "TRADITIONAL"]
)
def test_an_event_is_disabled_where_the_session_that_it_is_sent_in_reads_its_body(mode: str, flavor: Flavor) -> None:
    server: Any = _Server(flavor)
    make(server, _definition("EVENT", _EVENT, mode))
    [sent] = [each for each in server.sent if str(each).startswith("SET sql_mode")][:1]
    [made] = [each for each in server.sent if isinstance(each, bytes)]
    # a server reads the interval as a text, and GRANT as the body, unless it has been sent the mode
    body = b"DO x" if "ANSI_QUOTES" in str(sent) else b"DO GRANT"
    assert b" DISABLE ON SLAVE " + body in made


CONDITIONS: Final = (
    *("/*! + 10 */", "/*!50003 + 10 */", "/*!50799 + 10 */", "/*!80013 + 10 */", "/*!99999 + 10 */"),
    *("/*!100000 + 10 */", "/*!110000 + 10 */", "/*!999999 + 10 */", "/*!99999 /*! + 1 */ + 10 */"),
    *("/* 50003 + 10 */", "/*M! + 10 */", "/*M!100000 + 10 */", "/*M!999999 + 10 */"),
)
"""Comments behind ``1``, some of which a server executes, some by its version, and some not. A line more is a case
more."""
_MADE: Final = {
    "procedure": "CREATE PROCEDURE app.{} () SET @a = 1 {}",
    "function": "CREATE FUNCTION app.{} () RETURNS INT DETERMINISTIC RETURN 1 {}",
    "trigger": "CREATE TRIGGER app.{} BEFORE INSERT ON app.t FOR EACH ROW SET @a = 1 {}",
    "event": "CREATE EVENT app.{} ON SCHEDULE EVERY 1 DAY DISABLE DO SET @a = 1 {}",
    "view": "CREATE VIEW app.v{} AS SELECT 1 {} AS a",
}


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_server_stores_what_it_has_executed_and_shows_no_condition(family: str, channel_of: ChannelOf) -> None:
    channel = channel_of(family, family)
    made = [
        (SchemaObject(kind, "app", f"{'v' if kind == 'view' else ''}c{number}"), statement.format(f"c{number}", text))
        for kind, statement in _MADE.items()
        for number, text in enumerate(CONDITIONS)
    ]
    run_on(channel.source, "CREATE DATABASE app", "CREATE TABLE app.t (a INT)", *(each for _, each in made), log=False)
    source = channel.endpoints.source
    assert source is not None
    with contextlib.closing(read_session(source)) as session:
        for obj, _ in made:
            assert foreign_part(read_definition(session, obj), session) is None


def test_a_database_in_other_letters_is_the_same_where_the_server_says_so() -> None:
    definition = _definition("PROCEDURE", _HEAD + "PROCEDURE `APP`.`t`() DO 1", "")
    server: Any = _Server(Flavor.MYSQL, {"SELECT @@lower_case_table_names": [(b"1",)]})
    assert foreign_part(definition, server) is None


@pytest.mark.parametrize(("client", "collation"), CLIENTS)
def test_no_setting_of_a_definition_is_more_than_a_word(client: str, collation: str) -> None:
    server: Any = _Server(Flavor.MYSQL)
    with pytest.raises(PrecheckError, match="expected its definition alone, found the character set"):
        make(server, _definition("PROCEDURE", _HEAD + "PROCEDURE `t`() DO 1", "", client, collation))
    assert server.sent == []


@pytest.mark.parametrize("kind", [INTEGER, NUMBERED, DECIMAL, FLOAT])
@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_no_expression(text: bytes, kind: ValueKind) -> None:
    """Rows of one packet: ``unit/bootstrap/test_row_kernel.py``."""
    assert kind.copied is not None
    with pytest.raises(SourceError, match="expected the text of a number"):
        kind.copied(_Column())[1](text)


def test_a_date_ends_no_literal() -> None:
    assert TEXT.copied is not None
    assert TEXT.copied(_Column())[1](b"', (SELECT 1)), ('\\") == b"'\\', (SELECT 1)), (\\'\\\\'"


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("place", [0, 1])
def test_the_row_of_a_sequence_has_integers(value: str, place: int) -> None:
    row = [b"7", b"0"]
    row[place] = value.encode()
    source: Any = _Server(Flavor.MARIADB, {"SELECT next_not_cached_value": [tuple(row)]})
    target: Any = _Server(Flavor.MARIADB)
    with pytest.raises(SourceError, match=r"sequence app\.t: expected integers in its row"):
        set_sequence(source, target, _definition("SEQUENCE", "", ""))


@pytest.mark.parametrize("asked", ["SHOW CREATE USER", "SHOW GRANTS"])
@pytest.mark.parametrize(
    "statement",
    [
        b"SET GLOBAL max_connections = 77",
        b"DROP DATABASE app",
        b"/**/ GRANT ALL",
        b"",
        b"GRANT USAGE ON *.* TO `admin`@`%` IDENTIFIED BY 'mine'",
        b"GRANT USAGE ON *.* TO `a`@`%` IDENTIFIED BY 'x', `admin`@`%` IDENTIFIED BY 'mine'",
        b"GRANT ALL ON *.* TO /*!99999 `a`@`%` REQUIRE SUBJECT */ `admin`@`%`",
        b"REVOKE ALL PRIVILEGES ON *.* FROM `dba`@`%`",
        b"SET DEFAULT ROLE NONE FOR `dba`@`%`",
        b"SET DEFAULT ROLE NONE FOR `a`@`%`, GLOBAL max_connections = 77",
        b"CREATE USER `a`@`%`, `b`@`%`",
        b"CREATE OR REPLACE USER `a`@`%`",
        b"GRANT USAGE ON *.* TO `a\xff`@`%`",
    ],
)
@pytest.mark.parametrize("flavor", Flavor)
def test_an_account_is_made_by_statements_about_it_alone(flavor: Flavor, asked: str, statement: bytes) -> None:
    shown: dict[str, list[tuple[bytes, ...]]] = {
        "SHOW CREATE USER": [(b"CREATE USER `a`@`%`",)],
        "SHOW GRANTS": [(b"GRANT USAGE ON *.* TO `a`@`%`",)],
    }
    source: Any = _Server(flavor, {"SELECT user": [(b"a", b"%", b"0")], **shown, asked: [(statement,)]})
    with pytest.raises(SourceError, match=r"account 'a'@'%': expected what makes this account, or gives it privileges"):
        read_accounts(source)


_GRANT: Final = b"GRANT ALL ON *.* TO test_evil@localhost"
_ANSWERS: Final = {
    "the definition of a procedure": ("SHOW CREATE PROCEDURE", 2, _GRANT),
    "the character set of a procedure": ("SHOW CREATE PROCEDURE", 3, b"utf8mb4, GLOBAL max_connections = 77"),
    "the definition of a database": ("SHOW CREATE DATABASE", 1, _GRANT),
    "the definition of a table": ("SHOW CREATE TABLE", 1, b"CREATE TABLE other.`t` (\n  `n` int\n) ENGINE=InnoDB"),
    "the engine of a table": ("SHOW CREATE TABLE", 1, b"CREATE TABLE `t` (\n  `n` int\n) ENGINE=FEDERATED"),
}
"""A statement, and what a column of its answer is. A line more is an attack more."""


@pytest.mark.parametrize("family", ["mariadb", pytest.param("mysql", marks=requires_mysql)])
def test_a_first_copy_runs_nothing_of_a_server_that_lies(
    family: str, channel_of: ChannelOf, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    channel = channel_of(family, family)
    run_on(
        channel.target, "DROP DATABASE binlane", "CREATE DATABASE other", "CREATE USER test_evil@localhost", log=False
    )
    rows = ("CREATE TABLE app.t (n INT PRIMARY KEY)", "INSERT INTO app.t VALUES (1)", "CREATE PROCEDURE app.p() DO 1")
    run_on(channel.source, "CREATE DATABASE app", *rows)
    before = _state_of(channel)
    asked = Session.rows
    for begin, column, answer in _ANSWERS.values():

        def lying(session: Session, statement: str, told: tuple[str, int, bytes] = (begin, column, answer)) -> Any:
            found = asked(session, statement)
            if session.source is None or not statement.startswith(told[0]):
                return found
            return [(*row[: told[1]], told[2], *row[told[1] + 1 :]) for row in found]

        with monkeypatch.context() as patch:
            patch.setattr(Session, "rows", lying)
            assert channel.cli("bootstrap", CHANNEL, "--databases", "app") != 0
        assert "another program answers in the source's place" in capsys.readouterr().err
        assert _state_of(channel) == before, begin
    with monkeypatch.context() as patch, _other_numbers(patch):
        assert channel.cli("bootstrap", CHANNEL, "--databases", "app") != 0
    assert "with numbers in its columns of numbers" in capsys.readouterr().err
    assert channel.target.query("SELECT n FROM app.t") == []
    assert channel.cli("bootstrap", CHANNEL, "--databases", "app") == 0
    assert channel.target.query("SELECT n FROM app.t") == [(1,)]


@contextlib.contextmanager
def _other_numbers(patch: pytest.MonkeyPatch) -> Iterator[None]:
    begun = Session.begin_stream

    def lying(session: Session, query: str) -> None:
        begun(session, query.replace("CAST(`n` AS SIGNED)", "'(SELECT 42)'"))

    patch.setattr(Session, "begin_stream", lying)
    yield


def _state_of(channel: Any) -> tuple[object, ...]:
    asked = ("SELECT @@max_connections", "SHOW GRANTS FOR test_evil@localhost", "SHOW TABLES FROM other")
    return tuple(channel.target.query(each) for each in asked)


@dataclass(frozen=True)
class _Column:
    name: str = "a"
    data_type: str = "int"
    unsigned: bool = False
    octets: int | None = None
    precision: int | None = 5
    scale: int | None = 2
    fsp: int | None = None
    charset: str | None = None
    members: tuple[str, ...] = ()
