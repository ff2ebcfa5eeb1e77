"""The changes of a window's segments: what is only the frame of a transaction, and what is a statement."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.errors import PlanError
from binlane.model import Flavor, TableKey
from binlane.schema.model import Column, Key, KeyColumn, Schema, Table, Trigger
from binlane.verify.changes import Changes
from binlane.verify.log_reader import _MAKES_TABLE, ChangeReader
from binlane.work import files
from binlane.work.files import WorkFolder
from tests.unit.plan.logs import bound, manifest_of, rows, segment_of, statements

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


def schema_of(*names: str, folds: bool = False, triggered: str = "", version: str = "10.11.14-MariaDB") -> Schema:
    """Tables of the database ``a``; ``v`` is a view."""
    columns, keys = (Column("id", 1, "int"),), (Key("PRIMARY", True, True, (KeyColumn("id"),)),)
    tables = {
        (key := TableKey("a", name)): Table(
            key, "InnoDB", columns, keys, triggers=(Trigger("tr", "AFTER", "INSERT"),) if name == triggered else ()
        )
        for name in names
    }
    settings = {"lower_case_table_names": "1" if folds else "0"}
    return Schema(
        Flavor.MARIADB, version, settings, databases=frozenset({"a"}), tables=tables,
        views=frozenset({TableKey("reports", "v")}),
    )  # fmt: skip


def changed(schema: Schema, tmp_path: Path, *transactions: tuple[bytes, ...]) -> set[str]:
    """The tables of which any row may have changed."""
    folder = WorkFolder(str(tmp_path))
    data, segment = segment_of(transactions)
    with folder.create(segment.name) as file:
        file.write(data)
    folder.write_once(files.MANIFEST, manifest_of([segment]).to_json())
    found = ChangeReader(schema, schema, {}).read_windows([folder])
    return {key.table for key in schema.tables if found.covers_table(key)}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INSERT INTO orders VALUES (1)", {"orders", "audit"}),
        ("INSERT INTO Orders VALUES (1)", {"orders", "audit"}),
        ("UPDATE Reports.V SET id = 2", {"orders", "audit"}),
        ("UPDATE A.Audit SET id = 2", {"audit"}),
        ("DROP DATABASE A", {"orders", "audit"}),
    ],
)
def test_a_server_that_folds_names_changes_a_table_under_any_spelling(
    sql: str, expected: set[str], tmp_path: Path
) -> None:
    schema = schema_of("orders", "audit", folds=True, triggered="orders")
    assert changed(schema, tmp_path, statements(1, sql)) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPDATE /*!80000 u AS */ t SET id = 2", {"t"}),
        ("DELETE FROM /*!80000 u USING u JOIN */ t WHERE t.id = 1", {"t"}),
        ("UPDATE /*!100900 u AS */ t SET id = 2", {"u"}),
        ("UPDATE /*!110900 u AS */ t SET id = 2", {"t"}),
        ("/*!40000 DROP DATABASE IF EXISTS b */", set()),
        ("UPDATE /*!110900 t SET id = 2", {"t", "u"}),
    ],
)
def test_a_conditional_comment_names_what_the_source_has_executed(sql: str, expected: set[str], tmp_path: Path) -> None:
    assert changed(schema_of("t", "u"), tmp_path, statements(1, sql)) == expected


BOTH = {"t", "u"}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # a view, or a table with a trigger, that was there when the statement named it
        (("UPDATE a.w SET id = 2", "DROP VIEW a.w"), BOTH),
        (("INSERT INTO b.t VALUES (1)", "DROP TABLE b.t"), BOTH),
        (("INSERT INTO b.t VALUES (1)", "CREATE OR REPLACE TABLE b.t (id INT)"), BOTH),
        (("INSERT INTO b.t VALUES (1)", "DROP TRIGGER b.tr"), BOTH),
        (("INSERT INTO b.t VALUES (1)", "DROP DATABASE b"), BOTH),
        (("INSERT INTO b.t VALUES (1)", "RENAME TABLE b.t TO b.x, b.y TO b.t", "DROP TABLE b.x"), BOTH),
        (("INSERT INTO b.t VALUES (1)", "RENAME TABLE b.t TO reports.v"), BOTH),
        (("INSERT INTO b.t VALUES (1)", "ALTER TABLE b.x EXCHANGE PARTITION p WITH TABLE b.t", "DROP TABLE b.t"), BOTH),
        (("CREATE TABLE IF NOT EXISTS b.t (id INT)", "INSERT INTO b.t VALUES (1)", "DROP TABLE b.t"), BOTH),
        (
            ("CREATE TABLE b.t (id INT)", "CREATE TRIGGER b.tr AFTER INSERT ON b.t FOR EACH ROW DELETE FROM a.t",
             "INSERT INTO b.t VALUES (1)", "DROP TABLE b.t"),
            BOTH,
        ),
        # of those that the log has made, it has made the triggers, too
        (("CREATE TABLE b.t (id INT)", "INSERT INTO b.t VALUES (1)", "DROP TABLE b.t"), set()),
        (
            ("CREATE TABLE b.x (id INT)", "INSERT INTO b.x VALUES (1)", "RENAME TABLE b.x TO b.t", "DROP TABLE b.t"),
            set(),
        ),
        (("INSERT INTO b.t VALUES (1)", "RENAME TABLE b.t TO b.x, b.y TO b.t", "DROP TABLE b.t"), set()),
        (("DROP TABLE b.t", "INSERT INTO b.t VALUES (1)"), set()),
    ],
)  # fmt: skip
def test_what_a_statement_has_named_and_a_later_one_removes_may_have_changed_any_table(
    texts: tuple[str, ...], expected: set[str], tmp_path: Path
) -> None:
    schema = schema_of("t", "u")
    assert changed(schema, tmp_path, *(statements(n, text) for n, text in enumerate(texts, 1))) == expected


def test_a_view_of_another_database_may_change_any_table(tmp_path: Path) -> None:
    assert changed(schema_of("t", "u"), tmp_path, statements(1, "UPDATE reports.v SET id = 1")) == BOTH


def test_a_temporary_table_that_goes_takes_nothing_with_it(tmp_path: Path) -> None:
    texts = "CREATE TEMPORARY TABLE a.w (id INT)", "INSERT INTO a.w VALUES (1)", "DROP TABLE a.w"
    assert changed(schema_of("t", "u"), tmp_path, bound(1, *texts)) == set()


@pytest.mark.parametrize(
    ("text", "makes"),
    [
        ("CREATE TABLE t (id INT)", True),
        ("CREATE  OR\n REPLACE\tTABLE \n t (id INT)", True),
        ("CREATE TABLE ifs (id INT)", True),
        ("CREATE TABLE IF NOT EXISTS t (id INT)", False),
        ("CREATE TABLE  IF NOT EXISTS t (id INT)", False),
        ("CREATE TABLE\n    if NOT EXISTS t (id INT)", False),
        ("CREATE TABLE /**/IF NOT EXISTS t (id INT)", False),
        ("CREATE TABLE -- c\nIF NOT EXISTS t (id INT)", False),
        ("CREATE TABLE # c\nIF NOT EXISTS t (id INT)", False),
        ("CREATE TABLE/**/ IF NOT EXISTS t (id INT)", False),
    ],
)
def test_a_table_is_made_only_by_a_statement_that_makes_one_whatever_is_there(text: str, makes: bool) -> None:
    assert (_MAKES_TABLE.match(text.encode()) is not None) is makes
