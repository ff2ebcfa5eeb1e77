"""The changes of a window's segments: what is only the frame of a transaction, and what is a statement."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, TableKey
from binlane.schema.model import Schema
from binlane.verify.changes import Changes
from binlane.verify.log_reader import ChangeReader
from binlane.work import files
from binlane.work.files import WorkFolder
from tests.unit.plan.logs import manifest_of, rows, segment_of, statements

NOTHING = Schema(Flavor.MARIADB, "10.11.14-MariaDB")


def changes(tmp_path: Path, *transactions: tuple[bytes, ...]) -> Changes:
    folder = WorkFolder(str(tmp_path))
    data, segment = segment_of(transactions)
    with folder.create(segment.name) as file:
        file.write(data)
    folder.write_once(files.MANIFEST, manifest_of([segment]).to_json())
    return ChangeReader(NOTHING, NOTHING, {}).read_windows([folder])


def test_a_segment_that_was_replaced_by_another_of_its_size_is_refused(tmp_path: Path) -> None:
    """Its events are whole, and its keys are not those that the window wrote."""
    folder = WorkFolder(str(tmp_path))
    (data, segment), (other, another) = segment_of([rows(1, "a")]), segment_of([rows(1, "b")])
    assert another.bytes == segment.bytes
    with folder.create(segment.name) as file:
        file.write(other)
    folder.write_once(files.MANIFEST, manifest_of([segment]).to_json())
    with pytest.raises(PlanError, match="expected BLAKE3"):
        ChangeReader(NOTHING, NOTHING, {}).read_windows([folder])
    assert data != other


@pytest.mark.parametrize("frame", ["BEGIN", "COMMIT", "ROLLBACK"])
def test_the_frame_of_a_transaction_changes_nothing(frame: str, tmp_path: Path) -> None:
    assert changes(tmp_path, statements(1, frame), rows(2, "a")).tables == {TableKey("a", "t")}


@pytest.mark.parametrize("frame", ["BEGIN", "COMMIT", "ROLLBACK"])
def test_a_statement_that_ends_like_a_frame_is_a_statement(frame: str, tmp_path: Path) -> None:
    found = changes(tmp_path, statements(1, f"DELETE FROM b.gone # \0{frame}"), rows(2, "a"))
    assert found.everything or TableKey("b", "gone") in found.tables


OF_NO_ROWS = (
    "CREATE VIEW a.v AS SELECT a.f(id) FROM a.t",
    "ALTER VIEW a.v AS SELECT * FROM a.t",
    "CREATE OR REPLACE VIEW a.v AS SELECT * FROM a.t",
    "DROP VIEW a.v",
    "CREATE TRIGGER a.tr BEFORE INSERT ON a.t FOR EACH ROW SET NEW.n = b.f(1)",
    "DROP TRIGGER a.tr",
    "CREATE PROCEDURE a.p() BEGIN DROP DATABASE a; DROP TABLE a.t; END",
    "CREATE FUNCTION a.f() RETURNS INT RETURN 1",
    "DROP FUNCTION a.f",
    "CREATE EVENT a.e ON SCHEDULE EVERY 1 DAY DO DELETE FROM a.t",
    "ALTER EVENT a.e DISABLE",
    "CREATE DATABASE a",
    "ALTER DATABASE a CHARACTER SET utf8mb4",
    "ANALYZE TABLE a.t",
    "OPTIMIZE TABLE a.t",
    "CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'x' DEFINITION 'y'",
    "GRANT SELECT ON a.t TO somebody",
)
OF_ROWS = {
    "CREATE TABLE b.t LIKE a.t": {TableKey("b", "t")},
    "CREATE TABLE b.t SELECT * FROM a.t": {TableKey("b", "t")},
    "CREATE TABLE b.t (a INT REFERENCES a.t (id))": {TableKey("b", "t")},
    "ALTER TABLE b.t ADD FOREIGN KEY (a) REFERENCES a.t (id)": {TableKey("b", "t")},
    "ALTER TABLE b.t EXCHANGE PARTITION p WITH TABLE a.t": {TableKey("a", "t"), TableKey("b", "t")},
    "RENAME TABLE a.t TO b.t": {TableKey("a", "t"), TableKey("b", "t")},
    "DROP TABLE a.t, b.t": {TableKey("a", "t"), TableKey("b", "t")},
    "TRUNCATE TABLE a.t": {TableKey("a", "t")},
    "INSERT INTO b.t SELECT * FROM a.t": {TableKey("b", "t")},
    "DELETE FROM a.t WHERE id IN (SELECT id FROM b.t)": {TableKey("a", "t")},
}


@pytest.mark.parametrize("sql", OF_NO_ROWS)
def test_a_definition_that_changes_no_rows_makes_none_pending(sql: str, tmp_path: Path) -> None:
    found = changes(tmp_path, statements(1, sql))
    assert (found.everything, found.tables - {TableKey("a", "v")}, found.databases) == (False, set(), set())


@pytest.mark.parametrize(("sql", "tables"), OF_ROWS.items())
def test_a_statement_makes_rows_pending_of_the_tables_that_it_is_about(
    sql: str, tables: set[TableKey], tmp_path: Path
) -> None:
    found = changes(tmp_path, statements(1, sql))
    assert (found.everything, found.tables, found.databases) == (False, tables, set())


@pytest.mark.parametrize("sql", ["DROP DATABASE a", "DROP SCHEMA IF EXISTS a"])
def test_a_dropped_database_takes_all_rows(sql: str, tmp_path: Path) -> None:
    assert changes(tmp_path, statements(1, sql)).databases == {"a"}
