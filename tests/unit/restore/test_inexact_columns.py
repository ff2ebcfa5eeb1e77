"""Tables whose rows the text of a dump does not preserve are named in the plan of a restore and at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from binlane.bootstrap.copy_checks import VERSIONED
from binlane.bootstrap.sessions import Session
from binlane.model import Flavor
from binlane.restore.dump import dump_of
from binlane.restore.dump_file import DumpFile
from binlane.restore.dump_load import DumpLoad
from binlane.restore.inexact_columns import InexactTable, inexact_notices, inexact_table

COLUMNS: Final = (
    b"(\n  `id` int NOT NULL,\n  `f``x` float DEFAULT NULL COMMENT 'a\\n `json` float',\n  `d` double DEFAULT NULL,\n"
    b"  `m` float(7,3) DEFAULT NULL,\n  `j` json DEFAULT NULL,\n  `json` varchar(9) DEFAULT 'float',\n"
    b"  PRIMARY KEY (`id`)\n) ENGINE=InnoDB"
)
EXPECTED: Final = InexactTable("shop", "a`t", ("f`x FLOAT", "j JSON"))


@pytest.mark.parametrize(
    "head",
    [b"CREATE TABLE `a``t` ", b"CREATE TABLE /*!32312 IF NOT EXISTS*/ `a``t` ", b"CREATE TABLE IF NOT EXISTS `a``t`"],
)
def test_columns_are_named_by_their_types(head: bytes) -> None:
    assert inexact_table("shop", head + COLUMNS) == EXPECTED


@pytest.mark.parametrize(
    "end",
    [
        b" WITH SYSTEM VERSIONING",
        b" COMMENT='a' WITH SYSTEM VERSIONING\n PARTITION BY SYSTEM_TIME LIMIT 9",
        b" with  system\nversioning",
        b" WITH SYSTEM VERSIONING ENGINE=InnoDB",
    ],
)
def test_a_table_with_a_history_is_named_as_a_first_copy_names_it(end: bytes) -> None:
    table = b"CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `v` int WITHOUT SYSTEM VERSIONING\n) ENGINE=InnoDB"
    assert inexact_table("shop", table) is None
    assert inexact_table("shop", table + end) == InexactTable("shop", "t", (VERSIONED,))
    assert inexact_table("shop", b"CREATE TABLE `a``t` " + COLUMNS + end) == InexactTable(
        "shop", "a`t", (*EXPECTED.columns, VERSIONED)
    )


@pytest.mark.parametrize(
    "text", [b"CREATE TABLE `t` (\n  `m` float(7,3),\n  `float` int\n)", b"CREATE VIEW `v` AS SELECT 1"]
)
def test_other_statements_have_none(text: bytes) -> None:
    assert inexact_table("shop", text) is None


def test_a_dump_a_folder_and_a_load_name_the_same_tables(tmp_path: Path) -> None:
    definition = b"CREATE TABLE `a``t` " + COLUMNS
    file = tmp_path / "dump.sql"
    file.write_bytes(
        b"CREATE DATABASE `shop`;\nUSE `shop`;\n%b;\nCREATE TABLE `u` (\n  `id` int\n);\n-- Dump completed\n"
        % definition
    )
    assert DumpFile(file).place().inexact == (EXPECTED,)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "metadata").write_text("Finished dump at: b\n")
    (folder / "shop-schema-create.sql").write_text("CREATE DATABASE `shop`;\n")
    (folder / "shop.at-schema.sql").write_bytes(definition + b";\n")
    assert dump_of(folder, ["shop"]).place().inexact == (EXPECTED,)
    loading = DumpLoad(Session(None, Flavor.MYSQL, None), (9, 0, 0), "dump.sql", {"shop": "back"}, ())
    for statement in (b"USE `shop`", definition, b"CREATE TABLE `u` (\n  `id` int\n)"):
        loading.statement(statement)
    assert loading.inexact == [EXPECTED]


def test_the_notice_names_what_it_has_room_for() -> None:
    assert inexact_notices([]) == []
    [text] = inexact_notices([EXPECTED])
    assert text.startswith("shop.a`t (f`x FLOAT, j JSON): the text of a dump has six digits")
    [text] = inexact_notices([InexactTable("shop", f"t{number}", ("f FLOAT",)) for number in range(23)])
    assert "shop.t19 (f FLOAT) and 3 more tables: " in text
