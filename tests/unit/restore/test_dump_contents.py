"""What a dump says of its own contents: rows and kinds of objects that it was not asked for, and engines that no
snapshot holds. That programs write so: integration/restore/test_dump_options.py."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from binlane.errors import ConfigError
from binlane.restore.dump_contents import DumpContents
from binlane.restore.dump_file import DumpFile
from binlane.restore.dump_folder import DumpFolder
from tests.unit.restore.test_dump_folders import FILES, NEW, OLD, folder_of

HEAD: Final = "-- CHANGE MASTER TO MASTER_LOG_FILE='binlog.000007', MASTER_LOG_POS=4711;\nCREATE DATABASE `shop`;\n"
T: Final = (
    "USE `shop`;\n--\n-- Table structure for table `t`\n--\n\nDROP TABLE IF EXISTS `t`;\nCREATE TABLE `t` (\n"
    "  `id` int(11) NOT NULL COMMENT ') ENGINE=MyISAM'\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\n"
)
DATA: Final = "\n--\n-- Dumping data for table `t`\n--\n"
ROWS: Final = "\nLOCK TABLES `t` WRITE;\nINSERT INTO `t` VALUES (1);\nUNLOCK TABLES;\n"
ASKED: Final = "--\n-- Dumping events for database 'shop'\n--\n\n--\n-- Dumping routines for database 'shop'\n--\n"
TAIL: Final = "-- Dump completed on 2026-11-20  1:00:00\n"
PROCEDURE: Final = (
    "DELIMITER ;;\n/*!50003 CREATE*/ /*!50017 DEFINER=`a`@`%`*/ /*!50003 PROCEDURE `p`()\nSELECT '\n"
    + ASKED
    + "' */;;\n"
    "DELIMITER ;\n"
)
EVENT: Final = (
    "/*!50106 CREATE*/ /*!50117 DEFINER=`a`@`%`*/ /*!50106 EVENT `e` ON SCHEDULE EVERY 1 DAY DO SELECT 1 */;\n"
)


def read(folder: Path, *texts: str) -> DumpContents:
    (folder / "d.sql").write_text("".join((HEAD, *texts, TAIL)))
    return DumpFile(folder / "d.sql").place().contents


def of(engine: str) -> str:
    return T.replace("=InnoDB", f"={engine}")


BELIEFS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "neither": ((T, DATA, ROWS), "no routines and no events belong to shop: the dump has none"),
    "comments inside of a statement": ((T, DATA, ROWS, PROCEDURE), "no events belong to shop: "),
    "events alone": ((T, DATA, ROWS, EVENT), "no routines belong to shop: "),
    "no rows": ((T, ASKED), "no rows belong to shop.t: the dump has none"),
    "rows of another table": ((T, DATA.replace("`t`", "`u`"), ASKED), "no rows belong to shop.t: "),
    "MyISAM": ((of("MyISAM"), DATA, ROWS, ASKED), "nothing was written to shop.t (myisam) while the dump was made"),
    "MEMORY in a tablespace": (
        (of("MEMORY").replace(") ENGINE=ME", ") /*!50100 TABLESPACE `x` */ ENGINE=ME"), DATA, ASKED),
        "nothing was written to shop.t (memory) while",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BELIEFS)
def test_what_the_dump_does_not_show_is_believed_by_name(case: str, tmp_path: Path) -> None:
    texts, said = BELIEFS[case]
    contents = read(tmp_path, *texts)
    [belief] = contents.beliefs({"shop"}, ())
    assert belief.startswith(said), belief
    assert contents.beliefs({"crm"}, ()) == []
    of_table = contents.beliefs({"shop"}, {"t"})
    assert of_table == ([belief] if "shop.t" in said else [])
    assert contents.beliefs({"shop"}, {"u"}) == []


@pytest.mark.parametrize(
    "texts",
    [
        (T, DATA, ROWS, ASKED),
        (T, DATA, ASKED),
        (T, ROWS, ASKED),
        (of("MRG_MyISAM"), ASKED),
        (of("ROCKSDB"), DATA, ASKED),
        (T, DATA, ROWS, PROCEDURE, EVENT),
        (T, DATA, ASKED, "/*!50001 CREATE TABLE `v` (\n  `id` tinyint NOT NULL\n) ENGINE=MyISAM */;\n"),
    ],
    ids=["all", "an empty table", "without a comment", "MERGE", "RocksDB", "programs", "a view's stand-in"],
)
def test_nothing_is_said_of_a_dump_of_everything(texts: tuple[str, ...], tmp_path: Path) -> None:
    assert read(tmp_path, *texts).beliefs({"shop"}, ()) == []


def test_many_are_counted_and_databases_of_the_same_kinds_are_named_together(tmp_path: Path) -> None:
    tables = [T.replace("`t`", f"`t{number}`") for number in range(30)]
    crm = "CREATE DATABASE `crm`;\nUSE `crm`;\n"
    kinds, rows = read(tmp_path, *tables, crm).beliefs({"shop", "crm"}, ())
    assert kinds.startswith("no routines and no events belong to crm, shop: ")
    assert "shop.t18, shop.t19 and 10 more tables: " in rows


def test_a_table_of_some_rows_is_refused(tmp_path: Path) -> None:
    where = DATA + "-- WHERE:  id > 5\n"
    contents = read(tmp_path, T, where, ROWS, ASKED)
    for databases, tables in (({"shop"}, ()), ({"shop", "crm"}, ()), ({"shop"}, ("t",))):
        with pytest.raises(ConfigError, match=r"expected all rows of shop\.t, found some of them \(--where: id > 5\)"):
            contents.require_all_rows("d.sql", databases, tables)
    contents.require_all_rows("d.sql", {"crm"}, ())
    contents.require_all_rows("d.sql", {"shop"}, ("u",))
    read(tmp_path, T, DATA, "INSERT INTO `t` VALUES ('\n-- WHERE:  id > 5\n');\n").require_all_rows("d", {"shop"}, ())


def test_a_folder_of_mydumper_without_kinds_or_rows_says_so(tmp_path: Path) -> None:
    def beliefs(files: Mapping[str, str], metadata: str = OLD) -> list[str]:
        folder = tmp_path / str(len([*tmp_path.iterdir()]))
        folder_of(folder, metadata, files)
        place = DumpFolder(folder, frozenset({"shop"})).place()
        return [*place.contents.beliefs({"shop"}, ()), *place.beliefs]

    [events, session] = beliefs(FILES)
    assert events.startswith("no events belong to shop: ")
    assert "(--triggers --routines --events)" in events
    assert session.startswith("mydumper records neither the sql_mode")
    programs = ("-schema-post.sql", "-schema-triggers.sql")
    bare = {name: text for name, text in FILES.items() if not name.endswith(programs)}
    [kinds] = beliefs(bare, NEW)
    assert kinds.startswith("no triggers and no routines and no events belong to shop: ")
    [_, rows] = beliefs({name: text for name, text in bare.items() if ".0000" not in name})
    assert rows.startswith("no rows belong to shop.t: ")
