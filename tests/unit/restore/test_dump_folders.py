"""Folders of mydumper: what they record, and their statements in the order of a load."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
import zstandard

from binlane.errors import ConfigError
from binlane.restore.dump import dump_of
from binlane.restore.dump_file import DumpFile
from binlane.restore.dump_folder import DumpFolder
from binlane.source.copy_times import CopyTimes

ZONE: Final = "/*!40103 SET TIME_ZONE='+00:00' */;\n"
FILES: Final[Mapping[str, str]] = {
    "shop-schema-create.sql": "CREATE DATABASE `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;\n",
    "shop.t-schema.sql": "CREATE TABLE `t` (\n`id` int);\n",
    "shop.t-schema-triggers.sql": "CREATE TRIGGER r AFTER DELETE ON t FOR EACH ROW BEGIN SET @a=1; \nDO ';'; END;\n",
    "shop.t.00000.sql": f"{ZONE}INSERT INTO `t` VALUES\n(1),\n(2);\n",
    "shop.t.00001.sql": f"{ZONE}INSERT INTO `t` VALUES(3);\n",
    "shop.v-schema-view.sql": "CREATE VIEW `v` AS SELECT 1;\n",
    "shop-schema-post.sql": "CREATE PROCEDURE `p`() BEGIN SELECT 1; SELECT 2; END;\n",
    "crm-schema-create.sql": "CREATE DATABASE `crm`;\n",
}
OLD: Final = "Started dump at: a\nSHOW MASTER STATUS:\n\tLog: b.000002\n\tPos: 47\n\tGTID:{}\n\nFinished dump at: b\n"
TABLE: Final = "\n[`shop`.`t`]\nreal_table_name=t\nrows = 3\n\n[`shop`.`v`]\nreal_table_name=v\nrows = 0\nis_view = 1\n"
NEW: Final = (
    "# Started dump at: a\n[config]\nquote-character = BACKTICK\n\n[source]\n# Channel_Name = '' # of replication\n"
    '{}\n[replication]\nSOURCE_LOG_FILE = "other.1"\n' + TABLE + "# Finished dump at: b\n"
)
PLACES: Final[Mapping[str, tuple[str, str, str]]] = {
    "0.10 of MariaDB": (OLD.format("0-1-5"), "b.000002:47", "0-1-5"),
    "0.10 of MySQL": (OLD.format("u:1-5,\nv:1-7"), "b.000002:47", "u:1-5,v:1-7"),
    "0.10 without GTIDs": (OLD.format(""), "b.000002:47", ""),
    "0.12": (
        NEW.format("File = b.000003\nPosition = 5\nExecuted_Gtid_Set = 0-1-9\n").replace("[source]", "[master]"),
        "b.000003:5",
        "0-1-9",
    ),
    "1.0": (
        NEW.format('executed_gtid_set = "u:1-5"\nSOURCE_LOG_FILE = "b.000004"\nSOURCE_LOG_POS = 9\n'),
        "b.000004:9",
        "u:1-5",
    ),
    "1.0 with comments": (NEW.format('# SOURCE_LOG_FILE = "b.000004"\n# SOURCE_LOG_POS = 9\n'), "b.000004:9", ""),
    "none": ("Finished dump at: b\n", "", ""),
}
"""What mydumper writes into metadata, and what is read of it."""


def folder_of(path: Path, metadata: str, files: Mapping[str, str] = FILES) -> DumpFolder:
    path.mkdir(exist_ok=True)
    for name, text in {**files, "metadata": metadata}.items():
        (path / name).write_text(text)
    found = dump_of(path, ["shop"])
    assert isinstance(found, DumpFolder)
    return found


@pytest.mark.parametrize("case", PLACES)
def test_the_place_in_the_log_is_that_of_the_metadata(case: str, tmp_path: Path) -> None:
    text, position, gtids = PLACES[case]
    place = folder_of(tmp_path, text).place()
    assert (place.position, place.gtid_set, place.databases) == (position, gtids, frozenset({"shop", "crm"}))
    assert place.size == sum(len(text) for name, text in FILES.items() if not name.endswith("-create.sql"))


@pytest.mark.parametrize("text", [OLD, NEW])
def test_the_metadata_tells_when_the_dump_was_begun_and_complete(text: str, tmp_path: Path) -> None:
    place = folder_of(
        tmp_path, text.replace(": a", ": 2026-11-20 01:00:00").replace(": b\n", ": 2026-11-20 02:00:00\n")
    )
    assert place.place().times == CopyTimes(1_795_136_400.0, 1_795_140_000.0)


def test_a_database_is_loaded_in_an_order_that_runs_no_trigger(tmp_path: Path) -> None:
    found = folder_of(tmp_path, OLD)
    (tmp_path / "shop.t-schema.sql").unlink()
    (tmp_path / "shop.t-schema.sql.gz").write_bytes(gzip.compress(FILES["shop.t-schema.sql"].encode()))
    (tmp_path / "shop.t.00001.sql").unlink()
    (tmp_path / "shop.t.00001.sql.zst").write_bytes(zstandard.compress(FILES["shop.t.00001.sql"].encode()))
    statements = [each.decode() for each in found.statements("STRICT_ALL_TABLES")]
    assert [each for each in statements if "SET" not in each.split()[:2] and "/*!40103" not in each] == [
        "CREATE DATABASE `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */",
        "USE `shop`",
        "CREATE TABLE `t` (\n`id` int)",
        "INSERT INTO `t` VALUES\n(1),\n(2)",
        "INSERT INTO `t` VALUES(3)",
        "CREATE PROCEDURE `p`() BEGIN SELECT 1; SELECT 2; END",
        "CREATE VIEW `v` AS SELECT 1",
        "CREATE TRIGGER r AFTER DELETE ON t FOR EACH ROW BEGIN SET @a=1; \nDO ';'; END",
    ]
    modes = [each for each in statements if "SQL_MODE" in each]
    assert (modes[0], modes[-1]) == ("SET SQL_MODE='NO_AUTO_VALUE_ON_ZERO'", "SET SQL_MODE='STRICT_ALL_TABLES'")


def test_the_rows_of_newer_versions_are_counted(tmp_path: Path) -> None:
    found = folder_of(tmp_path, NEW)
    assert found.row_counts() == {("shop", "t"): 3}
    assert folder_of(tmp_path, OLD).row_counts() == {}


def test_names_are_those_of_the_statements(tmp_path: Path) -> None:
    files = {name.replace("shop", "mydumper_1"): text.replace("`shop`", "`sh``op`") for name, text in FILES.items()}
    folder_of(tmp_path, OLD, files)
    found = DumpFolder(tmp_path, frozenset({"sh`op"}))
    assert found.place().databases == {"sh`op", "crm"}
    assert list(found.statements(""))[1] == b"USE `sh``op`"


def test_another_dump_has_another_digest(tmp_path: Path) -> None:
    found = folder_of(tmp_path, OLD)
    first = found.digest
    assert first == folder_of(tmp_path, OLD).digest
    (tmp_path / "shop.t.00001.sql").write_text("")
    assert found.digest != first
    assert isinstance(dump_of(tmp_path / "metadata", ["shop"]), DumpFile)


WRONG: Final[Mapping[str, tuple[Mapping[str, str], str, str]]] = {
    "no metadata": (FILES, "", "the dump was cut"),
    "not ended": (FILES, OLD.replace("Finished", "Not yet"), "the dump was cut"),
    "no schemas": ({"shop.t.sql": ""}, OLD, "without --no-schemas"),
    "rows are gone": (
        {name: text for name, text in FILES.items() if "0000" not in name},
        NEW,
        "with 3 rows, found none",
    ),
    "two databases": (
        {**FILES, "shop.t-schema-create.sql": "CREATE DATABASE `shop.t`;\n"},
        OLD,
        "begin as those of shop",
    ),
    "no CREATE DATABASE": ({**FILES, "shop-schema-create.sql": "CREATE TABLE t (a int);\n"}, OLD, "CREATE DATABASE"),
    "local times": ({**FILES, "shop.t.00000.sql": "INSERT INTO `t` VALUES(1);\n"}, OLD, "without --skip-tz-utc"),
    "cut": ({**FILES, "shop.t.00000.sql": f"{ZONE}INSERT INTO `t` VALUES('a"}, OLD, "ends inside the statement"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_folder_that_is_not_whole_is_refused(case: str, tmp_path: Path) -> None:
    files, metadata, said = WRONG[case]
    found = folder_of(tmp_path, metadata, files)
    with pytest.raises(ConfigError, match=said):
        _read(found)


def _read(found: DumpFolder) -> None:
    found.place()
    list(found.statements(""))


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="with a file metadata"):
        DumpFolder(tmp_path, frozenset({"shop"})).place()


def test_a_folder_of_thousands_of_databases_and_tables_is_walked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"d{number}-schema-create.sql": f"CREATE DATABASE `d{number}`;\n" for number in range(1500)}
    files |= {f"d{number}.t.00000.sql": f"{ZONE}INSERT INTO `t` VALUES(3);\n" for number in range(1500)}
    tables = "".join(f"\n[`d{number}`.`t`]\nreal_table_name=t\nrows = 1\n" for number in range(1500))
    folder_of(tmp_path, PLACES["1.0"][0] + tables + "# Finished dump at: b\n", files)
    dump, walks = dump_of(tmp_path, {f"d{number}" for number in range(1500)}), list[int]()

    def walked(found: DumpFolder) -> list[Path]:
        walks.append(1)
        return sorted(found.path.iterdir())

    monkeypatch.setattr(DumpFolder, "_all", walked)

    assert len(dump.place().databases) == 1500
    assert len(walks) < 10


def test_no_file_is_of_two_databases(tmp_path: Path) -> None:
    files = {f"{name}-schema-create.sql": f"CREATE DATABASE `{name}`;\n" for name in ("a", "a.b", "ab", "a-b")}
    dump = DumpFolder(folder_of(tmp_path, OLD.format(""), files).path, frozenset(("a", "ab")))
    with pytest.raises(ConfigError, match=r"names of files of database a\.b begin as those of a: move"):
        dump.place()
