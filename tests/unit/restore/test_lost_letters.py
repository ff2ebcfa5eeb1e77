"""Rows of a dump whose character set lacks letters of their columns are named in the plan of a restore and at its
end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from binlane.binlog.types.charsets import has_all_letters
from binlane.bootstrap.sessions import Session
from binlane.model import Flavor
from binlane.restore.dump_file import DumpFile
from binlane.restore.dump_load import DumpLoad
from binlane.restore.inexact_columns import InexactTable, inexact_notices
from binlane.restore.lost_letters import Letters, names_of

TABLE: Final = (
    b"CREATE TABLE `a``t` (\n  `id` int NOT NULL,\n  `it's` varchar(20) DEFAULT 'x\\'y,\n  `no` text',\n"
    b"  `l` char(3) CHARACTER SET latin1 COLLATE latin1_bin DEFAULT NULL COMMENT 'CHARACTER SET utf8mb4',\n"
    b"  `e` enum('a)','it''s') CHARACTER SET utf8 DEFAULT NULL COMMENT '\n) CHARSET=latin1',\n"
    b"  `z` mediumtext /*M!100301 COMPRESSED*/ CHARACTER SET ascii DEFAULT NULL,\n  `b` blob,\n"
    b"  `j` json DEFAULT NULL,\n"
    b"  PRIMARY KEY (`id`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin COMMENT='CHARSET=latin1'"
)
ROWS: Final = b"INSERT INTO `a``t` VALUES (1,'?','a','a','a',NULL,'{}')"


def lost(client: str, rows: bytes = ROWS, table: bytes = TABLE) -> tuple[str, ...]:
    letters = Letters()
    letters.define("shop", table)
    found = letters.lost("shop", rows, client)
    if found is None:
        return ()
    assert letters.lost("shop", rows, client) is None, "once for each table"
    return found.columns


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("utf8mb4", ()),
        ("binary", ()),
        ("utf8", ("it's utf8mb4", "j utf8mb4")),
        ("utf8mb3", ("it's utf8mb4", "j utf8mb4")),
        ("latin1", ("it's utf8mb4", "e utf8", "j utf8mb4")),
        ("cp1251", ("it's utf8mb4", "l latin1", "e utf8", "j utf8mb4")),
        ("", ("it's utf8mb4", "l latin1", "e utf8", "z ascii", "j utf8mb4")),
        ("unknown", ("it's utf8mb4", "l latin1", "e utf8", "z ascii", "j utf8mb4")),
    ],
)
def test_columns_are_named_whose_letters_the_dumps_character_set_lacks(client: str, expected: tuple[str, ...]) -> None:
    assert lost(client) == expected


def test_a_text_without_a_question_mark_has_lost_nothing() -> None:
    assert lost("utf8", ROWS.replace(b"?", "é".encode())) == ()
    # of no character set its letters may be others
    assert lost("", ROWS.replace(b"?", b"e")) == ()
    assert lost("", ROWS.replace(b"?", "é".encode())) != ()
    assert lost("utf8", b"REPLACE INTO `a``t` (`it's`) VALUES ('?')") != ()
    assert lost("utf8", b"INSERT  IGNORE INTO `a``t` VALUES ('?')") != ()
    assert lost("utf8", b"INSERT INTO `other` VALUES ('?')") == ()
    assert lost("utf8", b"INSERT INTO `a``t` (`why?`) VALUES ('?')") != ()


def test_a_table_without_a_character_set_may_have_every_letter() -> None:
    table = b"CREATE TABLE `a``t` (\n  `v` varchar(9),\n  `l` tinytext CHARACTER SET latin1\n)"
    assert lost("utf8", table=table) == ("v",)
    assert lost("utf8mb4", table=table) == ()


@pytest.mark.parametrize(
    ("charset", "other", "expected"),
    [
        ("utf8mb4", "latin1", True),
        ("utf8mb4", "", True),
        ("utf8mb3", "gbk", True),
        ("utf8mb3", "koi8r", True),
        ("utf8mb3", "utf16", False),
        ("utf8mb3", "gb18030", False),
        ("utf8mb3", "", False),
        ("latin1", "latin1", True),
        ("latin1", "ascii", True),
        ("latin1", "latin2", False),
        ("cp850", "latin1", False),
        ("swe7", "ascii", False),
        ("ujis", "ascii", True),
        ("ujis", "sjis", False),
        ("latin1", "utf8mb3", False),
        ("binary", "utf8mb4", True),
        ("", "", False),
    ],
)
def test_a_character_set_has_the_letters_of_another_one(charset: str, other: str, expected: bool) -> None:
    assert has_all_letters(charset, other) is expected


def test_set_names_is_read_as_dump_programs_write_it() -> None:
    for text in (b"/*!40101 SET NAMES utf8 */", b"SET NAMES utf8", b"/*!50503 SET NAMES UTF8 */", b"SET NAMES 'utf8'"):
        assert names_of(text) == "utf8"
    assert names_of(b"/*!40101 SET character_set_client = utf8 */") is None


HEAD: Final = b"CREATE DATABASE `shop`;\nUSE `shop`;\n/*!40103 SET TIME_ZONE='+00:00' */;\n"
AROUND: Final = (
    b"/*!40101 SET @saved_cs_client = @@character_set_client */;\n"
    b"/*!50503 SET character_set_client = utf8mb4 */;\n%b;\n"
    b"/*!40101 SET character_set_client = @saved_cs_client */;\n"
)


@pytest.mark.parametrize("names", [b"utf8", b"latin1", b"utf8mb4", b""], ids=["utf8", "latin1", "utf8mb4", "none"])
def test_a_dump_and_its_load_name_the_same_tables(names: bytes, tmp_path: Path) -> None:
    said = b"/*!40101 SET NAMES %b */;\n" % names if names else b""
    file = tmp_path / "dump.sql"
    file.write_bytes(said + HEAD + AROUND % TABLE.replace(b"json", b"int") + ROWS + b";\n-- Dump completed\n")
    found = DumpFile(file).place().inexact
    assert [each.columns for each in found] == ([lost(names.decode())[:-1]] if names != b"utf8mb4" else [])
    loading = DumpLoad(Session(None, Flavor.MYSQL, None), (9, 0, 0), "dump.sql", {"shop": "back"}, ())
    for statement in DumpFile(file).statements(""):
        loading.statement(statement)
    assert (*loading.inexact,) == found


def test_the_notice_says_what_to_do() -> None:
    [text] = inexact_notices([InexactTable("shop", "t", ("v utf8mb4",), "utf8")])
    assert text.startswith(
        "shop.t (v utf8mb4; rows in utf8): the dump was written in a character set that lacks letter"
    )
    assert "dump again with --default-character-set=utf8mb4" in text
    both = [InexactTable("shop", "t", ("v utf8mb4",), "utf8"), InexactTable("shop", "t", ("f FLOAT",))]
    assert [each.partition(":")[0] for each in inexact_notices(both)] == [
        "shop.t (f FLOAT)", "shop.t (v utf8mb4; rows in utf8)",
    ]  # fmt: skip
