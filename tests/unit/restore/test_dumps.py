"""Dumps: divided into statements as the servers' client does it, and what runs of them under which names."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import cast

import pytest
import zstandard

from binlane.bootstrap.sessions import Session
from binlane.errors import ConfigError, PlanError
from binlane.model import Flavor
from binlane.orchestration.commands.copies.restore_plan import EndRequest, RestoreRequest, _start
from binlane.restore import dump_file
from binlane.restore.definers import OWN_ACCOUNT
from binlane.restore.dump_file import DumpFile
from binlane.restore.dump_load import DumpLoad
from binlane.source.copy_times import CopyTimes
from binlane.source.protocol import EventSource
from binlane.sql.charset import MODES_OF_TEXT

HEAD = b"-- MariaDB dump\n-- CHANGE MASTER TO MASTER_LOG_FILE='binlog.000007', MASTER_LOG_POS=4711;\n"
BODY = b"CREATE DATABASE `shop`;\nUSE `shop`;\nINSERT INTO `t` VALUES (1);\n"
TAIL = b"-- Dump completed on 2026-11-20  1:00:00\n"
STATEMENTS = {
    "strings": (b"SELECT 'a;b', \"c;d\", `e;f`;", [b"SELECT 'a;b', \"c;d\", `e;f`"]),
    "quotes": (b"SELECT 'it''s; \\'x;', '\\\\';SELECT 2;", [b"SELECT 'it''s; \\'x;', '\\\\'", b"SELECT 2"]),
    "comments": (b"-- a; b\n# c; d\nSELECT 1 -- e; f\n, 2 /* g; h */;", [b"SELECT 1 -- e; f\n, 2 /* g; h */"]),
    "minus": (b"SELECT 1--2; SELECT 1/2;", [b"SELECT 1--2", b"SELECT 1/2"]),
    "version comments": (
        b"/*!40101 SET a = 1 */;\n/*!50003 SELECT ';' */;", [b"/*!40101 SET a = 1 */", b"/*!50003 SELECT ';' */"]
    ),
    "delimiters": (
        b"DELIMITER ;;\nBEGIN SELECT 1; END;;\nDELIMITER ;\nSELECT 2;", [b"BEGIN SELECT 1; END", b"SELECT 2"]
    ),
    "plain backslashes": (
        b"SET sql_mode = 'NO_BACKSLASH_ESCAPES';SELECT '\\';SET sql_mode = @a;SELECT '\\';';",
        [b"SET sql_mode = 'NO_BACKSLASH_ESCAPES'", b"SELECT '\\'", b"SET sql_mode = @a", b"SELECT '\\';'"],
    ),
    "the client's sandbox": (b"/*M!999999\\- enable the sandbox mode */ \n-- x\nSELECT 1;", [b"SELECT 1"]),
}  # fmt: skip


def dump(folder: Path, text: bytes, name: str = "dump.sql") -> DumpFile:
    (folder / name).write_bytes(text)
    return DumpFile(folder / name)


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
@pytest.mark.parametrize("case", STATEMENTS)
def test_statements_are_divided_wherever_the_pieces_end(
    case: str, piece: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, expected = STATEMENTS[case]
    monkeypatch.setattr(dump_file, "_PIECE", piece)
    assert [each.strip() for each in dump(tmp_path, text).statements("")] == expected


@pytest.mark.parametrize("name", ["dump.sql", "dump.sql.gz", "dump.sql.zst"])
def test_every_form_of_a_dump_says_the_same(name: str, tmp_path: Path) -> None:
    packed = {"gz": gzip.compress, "zst": zstandard.ZstdCompressor().compress}.get(name.rpartition(".")[2], bytes)
    found = dump(tmp_path, packed(HEAD + BODY + TAIL), name)
    place = found.place()
    assert (place.position, place.gtid_set, place.databases) == ("binlog.000007:4711", "", frozenset({"shop"}))
    assert list(found.statements(""))[-1] == b"INSERT INTO `t` VALUES (1)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='b.000001', SOURCE_LOG_POS=9;\n", ("b.000001:9", "")),
        (b"SET @@GLOBAL.GTID_PURGED='u:1-5,\nv:1';\n" + HEAD, ("binlog.000007:4711", "u:1-5,v:1")),
        (b"-- SET GLOBAL gtid_slave_pos='0-1-5,1-1-7';\n", ("", "0-1-5,1-1-7")),
        (b"", ("", "")),
    ],
    ids=["mysqldump", "gtid_purged", "mariadb-dump", "none"],
)
def test_the_place_in_the_log_is_found(text: bytes, expected: tuple[str, str], tmp_path: Path) -> None:
    place = dump(tmp_path, text + BODY + TAIL).place()
    assert (place.position, place.gtid_set, place.doubt, place.unproved) == (*expected, "", "")


OTHER = b"-- CHANGE MASTER TO MASTER_LOG_FILE='binlog.000001', MASTER_LOG_POS=4;\n"
PROGRAM = (
    b"DELIMITER ;;\nCREATE PROCEDURE `p`() BEGIN\n" + OTHER + b"-- SET GLOBAL gtid_slave_pos='9-9-9';\nUSE `x`;\n"
    b"SET @@GLOBAL.GTID_PURGED='w:1';\nSELECT '\n" + OTHER + b"'; END ;;\nDELIMITER ;\n"
)


@pytest.mark.parametrize("head", [b"", HEAD])
def test_what_stands_inside_of_a_statement_is_no_place_and_no_database(head: bytes, tmp_path: Path) -> None:
    gtids = b"SET GLOBAL gtid_slave_pos='0-1-5';\n"
    place = dump(tmp_path, head + BODY + PROGRAM + gtids + TAIL).place()
    assert (place.position, place.gtid_set) == ("binlog.000007:4711" if head else "", "0-1-5")
    assert place.databases == {"shop"}
    assert place.doubt == ""


def test_a_dump_tells_when_it_was_complete(tmp_path: Path) -> None:
    assert dump(tmp_path, HEAD + BODY + TAIL).place().times == CopyTimes(0.0, 1_795_136_400.0)
    assert dump(tmp_path, HEAD + BODY + b"-- Dump completed\n").place().times == CopyTimes()


def test_the_last_lines_of_a_dump_of_mariadb_11_4_belong_to_no_database(tmp_path: Path) -> None:
    last = b"-- SET GLOBAL gtid_slave_pos='0-1-5';\n/*M!100616 SET NOTE_VERBOSITY=@OLD_NOTE_VERBOSITY */;\n"
    place = dump(tmp_path, BODY + last + TAIL).place()
    assert (place.gtid_set, place.doubt) == ("0-1-5", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + OTHER + BODY, "once, found binlog.000007:4711 and binlog.000001:4"),
        (HEAD + BODY + HEAD + BODY.replace(b"shop", b"crm"), "in front of its databases, or behind them, found binlog"),
        (HEAD + BODY + OTHER + BODY.replace(b"shop", b"crm"), "once, found binlog.000007:4711 and binlog.000001:4"),
        (BODY + OTHER + PROGRAM, "in front of its databases, or behind them, found binlog.000001:4 among them"),
    ],
    ids=["twice", "two dumps of one place", "two dumps", "among the databases"],
)
def test_a_place_that_may_be_of_another_dump_is_none(text: bytes, said: str, tmp_path: Path) -> None:
    place = dump(tmp_path, text + TAIL).place()
    assert said in place.doubt
    assert (place.position, place.gtid_set) == ("", "")
    request = RestoreRequest(None, "d.sql", "log", ("shop",), (), None, EndRequest("now", None), None, "target")
    with pytest.raises(ConfigError, match="take one dump, or give the place with --at FILE:OFFSET"):
        _start(cast(EventSource, None), request, place)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("cut.sql", HEAD + BODY, "Dump completed"),
        ("cut.sql.gz", gzip.compress(HEAD + BODY + TAIL)[:-9], "cannot be read"),
        ("cut.sql.zst", zstandard.ZstdCompressor().compress(HEAD + BODY + TAIL)[:-5], "ends too early"),
        ("other.sql", HEAD + b"INSERT INTO `t` VALUES (1);\n" + TAIL, "without --databases"),
    ],
    ids=["cut", "cut gzip", "cut zstd", "no database"],
)
def test_a_dump_that_is_not_whole_is_refused(name: str, text: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=said):
        dump(tmp_path, text, name).place()


def test_a_statement_without_an_end_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="ends inside the statement"):
        list(dump(tmp_path, b"SELECT 1;INSERT INTO `t` VALUES ('a;").statements(""))


def load() -> DumpLoad:
    return DumpLoad(
        Session(None, Flavor.MARIADB, None),
        (10, 11, 6),
        "dump.sql",
        {"shop": "back", "crm": "crm_back"},
        {"a b@%", OWN_ACCOUNT},
    )


def test_modes_that_mysql_has_removed_are_left_out() -> None:
    """With the default mode of MySQL 5.7, which stands in front of each of its programs, 8.0 refuses the SET (1231)."""
    loading = DumpLoad(Session(None, Flavor.MYSQL, None), (8, 4, 0), "dump.sql", {"shop": "back"}, ())
    mode = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION"
    kept = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"
    of_dump = b"/*!50003 SET sql_mode              = '%b' */"
    assert loading.statement(of_dump % mode.encode()) == f"SET sql_mode              = '{kept}'".encode()
    # what is sent is what the next statement is read by
    assert loading.statement(of_dump % b"NO_KEY_OPTIONS") == b"SET sql_mode              = ''"
    assert not loading._context.sql_mode
    assert loading.statement(of_dump % b"ORACLE,NO_KEY_OPTIONS") == b"SET sql_mode              = 'ANSI_QUOTES'"
    assert loading._context.sql_mode == MODES_OF_TEXT["ANSI_QUOTES"]
    assert load().statement(of_dump % mode.encode()) == f"SET sql_mode              = '{mode}'".encode()


def test_the_head_of_a_dump_tells_the_server(tmp_path: Path) -> None:
    head = b"-- MySQL dump 10.13  Distrib 5.7.44, for Linux (x86_64)\n--\n-- Server version\t5.7.44-log\n"
    assert dump(tmp_path, head + BODY + TAIL).server() == "5.7.44-log"
    assert dump(tmp_path, BODY + TAIL).server() == ""


def made(*statements: bytes) -> list[bytes]:
    loading = load()
    loading.statement(b"SET TIME_ZONE='+00:00'")
    return [each for each in map(loading.statement, statements) if each is not None]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        (b"CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */",
         b"CREATE DATABASE   IF NOT EXISTS  `back`   DEFAULT CHARACTER SET utf8mb4"),
        (b"ALTER DATABASE `shop` CHARACTER SET utf8mb4", b"ALTER DATABASE `back` CHARACTER SET utf8mb4"),
        (b"/*!40000 DROP DATABASE IF EXISTS `shop`*/", None),
        (b"DROP TABLE IF EXISTS `t`", b"DROP TABLE IF EXISTS `t`"),
        (b"/*!40000 ALTER TABLE `t` DISABLE KEYS */", b"ALTER TABLE `t` DISABLE KEYS"),
        (b"INSERT INTO `t` VALUES (1,'shop.t')", b"INSERT INTO `t` VALUES (1,'shop.t')"),
        (b"DO SETVAL(`s`, 1, 0)", b"DO SETVAL(`s`, 1, 0)"),
        (b"/*!50001 VIEW*/", "dump program writes"),
        (b"/*!50001 CREATE ALGORITHM=UNDEFINED */\n/*!50013 DEFINER=`a b`@`%` SQL SECURITY DEFINER */\n"
         b"/*!50001 VIEW `w` AS select `shop`.`t`.`v` from `shop`.`t` join `crm`.`u` */",
         b"CREATE ALGORITHM=UNDEFINED  \n  DEFINER=`a b`@`%` SQL SECURITY DEFINER  \n"
         b"  VIEW `w` AS select `back`.`t`.`v` from `back`.`t` join `crm_back`.`u`"),
        (b"CREATE TABLE `t` (`id` int, FOREIGN KEY (`id`) REFERENCES `other`.`u` (`id`))", "foreign key into other"),
        (b"CREATE PROCEDURE `p`() DELETE FROM shop.t", "names shop"),
        (b"CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY ENABLE DO DELETE FROM t",
         b"CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY  DISABLE ON SLAVE  DO DELETE FROM t"),
        (b"SET @@SESSION.SQL_LOG_BIN= 0", None),
        (b"SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ 'u:1-5'", None),
        (b"SET GLOBAL read_only = 1", None),
        (b"LOCK TABLES `t` WRITE", None),
        (b"GRANT ALL ON *.* TO `a`@`%`", None),
        (b"DROP TABLE `t`", "dump program writes"),
        (b"DROP TABLE IF EXISTS `t`, `other`.`u`", "dump program writes"),
        (b"INSERT INTO `other`.`t` VALUES (1)", "dump program writes"),
        (b"INSERT INTO `t` SELECT * FROM other.t", "dump program writes"),
        (b"DELETE FROM `t`", "dump program writes"),
        (b"CALL p()", "dump program writes"),
    ],
)  # fmt: skip
def test_each_statement_runs_under_the_new_name_or_not_at_all(statement: bytes, expected: bytes | str | None) -> None:
    loading = load()
    loading.statement(b"SET TIME_ZONE='+00:00'")
    assert loading.statement(b"USE `shop`") == b"USE `back`"
    if isinstance(expected, str):
        with pytest.raises((ConfigError, PlanError), match=expected):
            loading.statement(statement)
    else:
        assert loading.statement(statement) == expected


def test_other_databases_are_passed_over() -> None:
    assert made(
        b"SET NAMES utf8mb4", b"CREATE DATABASE `other`", b"USE `other`", b"CREATE TABLE `t` (`id` int)", b"CALL p()",
        b"USE `crm`", b"CREATE TABLE `t` (`id` int)",
    ) == [b"SET NAMES utf8mb4", b"USE `crm_back`", b"CREATE TABLE `t` (`id` int)"]  # fmt: skip


def test_what_no_dump_program_writes_in_front_of_a_database_is_refused() -> None:
    with pytest.raises(ConfigError, match="behind USE of a database"):
        load().statement(b"CREATE TABLE `t` (`id` int)")


@pytest.mark.parametrize(
    "zone",
    [
        pytest.param((), id="--skip-tz-utc"),
        pytest.param((b"SET TIME_ZONE='SYSTEM'",), id="another zone"),
        pytest.param((b"SET @OLD=@@TIME_ZONE", b"SET TIME_ZONE='+00:00'", b"SET TIME_ZONE=@OLD"), id="behind its end"),
        pytest.param((b"SET TIME_ZONE='+00:00'", b"SET NAMES utf8mb4, TIME_ZONE='Europe/Berlin'"), id="in a list"),
    ],
)
def test_rows_are_loaded_in_utc_or_not_at_all(zone: tuple[bytes, ...]) -> None:
    loading = load()
    for statement in (*zone, b"USE `shop`"):
        loading.statement(statement)
    with pytest.raises(ConfigError, match="dump without --skip-tz-utc"):
        loading.statement(b"INSERT INTO `t` VALUES ('2026-11-29 12:00:00')")


def test_the_zone_of_an_event_is_over_behind_it() -> None:
    zones = (b"SET TIME_ZONE='+00:00'", b"SET @save=@@TIME_ZONE", b"SET time_zone='SYSTEM'", b"SET time_zone=@save")
    assert made(*zones, b"USE `shop`", b"INSERT INTO `t` VALUES (1)")[-1] == b"INSERT INTO `t` VALUES (1)"
