"""The tables whose names stand for other rows behind a window's DDL."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from binlane.model import Item, ItemKind, SessionContext, TableKey
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.window_plan import WindowPlan
from binlane.work.files import WorkFolder
from binlane.work.replaced_tables import replaced_tables
from tests.unit.work.test_lane_files import header, write
from tests.unit.work.test_logged_statements import planned


def planned_ddl(folder: WorkFolder, *texts: str, unread: tuple[int, ...] = ()) -> WindowPlan:
    session = SessionContext(database="d")
    blocks = [
        (header(at, at), [Item(ItemKind.DDL, text.encode(), context=session)]) for at, text in enumerate(texts, 1)
    ]
    altered = Alterations({TableKey("d", "t"): tuple(range(1, len(texts) + 1))}, unread)
    return dataclasses.replace(planned(write(folder, blocks)), altered=altered, kinds={"ddl": len(texts)})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("RENAME TABLE t TO a, b TO t", {"t", "a", "b"}),
        ("ALTER TABLE t ADD COLUMN c INT, RENAME TO a", {"t", "a"}),
        ("ALTER TABLE t EXCHANGE PARTITION p WITH TABLE a", {"t", "a"}),
        ("TRUNCATE t", {"t"}),
        ("TRUNCATE TABLE t", {"t"}),
        ("DROP TABLE IF EXISTS t, a", {"t", "a"}),
        ("CREATE OR REPLACE TABLE t (id INT)", {"t"}),
        ("CREATE TABLE IF NOT EXISTS t LIKE a", {"t"}),
        ("CREATE TABLE t SELECT * FROM a", {"t"}),
        ("ANALYZE TABLE t", set()),
        ("ALTER TABLE t ADD COLUMN c INT", set()),
        ("ALTER TABLE t TRUNCATE PARTITION p", set()),
        ("CREATE UNIQUE INDEX i ON t (id)", set()),
        ("DROP INDEX i ON t", set()),
        ("CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.id = 1", set()),
    ],
)
def test_only_what_gives_a_name_other_rows(text: str, names: set[str], tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    found = replaced_tables(folder, planned_ddl(folder, text))
    assert {name for name in ("t", "a", "b", "other") if found.names(TableKey("D", name))} == names


def test_a_statement_that_cannot_be_read_may_concern_any_table(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    assert replaced_tables(folder, planned_ddl(folder, "ALTER TABLE t COMMENT 'open")).names(TableKey("d", "other"))
    folder = WorkFolder(str(tmp_path / "other"))
    assert replaced_tables(folder, planned_ddl(folder, "DROP INDEX i ON t", unread=(7,))).names(TableKey("d", "other"))


def test_without_the_lane_files_any_table_counts(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    plan = planned_ddl(folder, "ALTER TABLE t ADD COLUMN c INT")
    assert replaced_tables(WorkFolder(str(tmp_path / "gone")), plan).names(TableKey("d", "a"))


def test_an_emptied_table_counts_though_no_definition_changes(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    plan = dataclasses.replace(planned_ddl(folder, "TRUNCATE t"), altered=Alterations())
    assert replaced_tables(folder, plan).names(TableKey("d", "t"))
