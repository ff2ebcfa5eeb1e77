"""Statements that take rows by the name of a partition, of tables that the two servers divide in other ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from binlane.model import BlockHeader, Flavor, Item, ItemKind, LogPosition, SessionContext, TableKey
from binlane.precheck.situation.situation import Needs, Situation
from binlane.precheck.tables.partitions import _NAMED
from binlane.schema.compare import Severity
from binlane.schema.model import Column, Table
from binlane.schema.partitions import Partition, Partitioning
from binlane.schema.programs import Program
from binlane.sql.logged_statement import LoggedText
from binlane.work.logged_statements import LaneStatement
from tests.unit.precheck.situations import PLAN, applying, findings, said, schema, situation, target_of

PLACE = LogPosition("binlog.000001", 4)
TABLE = Table(TableKey("a", "t"), "InnoDB", (Column("id", 1, "int"),))


def text(sql: str, seqno: int = 5) -> LoggedText:
    found = LoggedText.of(
        seqno, PLACE, Item(ItemKind.DDL, sql.encode(), context=SessionContext(database="a")), Flavor.MARIADB
    )
    assert found is not None
    return found


def ranges(**bounds: int) -> Partitioning:
    rows = [Partition("RANGE", "", name, "", "`id`", str(bound), "") for name, bound in bounds.items()]
    return Partitioning.of(TABLE, rows)


def of(
    target: Partitioning | None,
    source: Partitioning | None,
    *ddl: str,
    statements: Sequence[str] = (),
    triggers: Sequence[Program] = (),
    behind: Sequence[str] | None = (),
    archive: bool = False,
    **changes: Any,
) -> Situation:
    """A window of these statements between servers that divide a.t so. ``behind``: what the source has done since; None
    if that cannot be told."""
    header = BlockHeader(5, 5, 1, PLACE, "", 0.0)
    made = situation(
        target_of(ask=lambda *_: target, has_table=lambda _: True, programs=(), makes_temporary_tables=False),
        tables=schema(TABLE),
        texts=[text(each) for each in ddl],
        needs=Needs(statements=bool(statements), ddl=bool(ddl)),
        **changes,
    )
    logged = [
        LaneStatement(0, header, Item(ItemKind.STATEMENT, each.encode(), context=SessionContext(database="a")))
        for each in statements
    ]
    vars(made).update(
        stored_triggers=((), tuple(triggers)),
        stored_programs=((), ()),
        program_names=frozenset(),
        transactions_with=lambda pattern: [(one, header) for one in logged if pattern.search(one.item.payload)],
    )
    if not archive:
        later = None if behind is None else [text(each) for each in behind]
        vars(made).update(
            source=SimpleNamespace(ask=lambda *_: source, definitions_behind=lambda: later),
            source_as_named=schema(TABLE),
        )
    return made


DRIFTED = ranges(p1=10, p2=25), ranges(p1=10, p2=20)
TRUNCATE = "ALTER TABLE t TRUNCATE PARTITION p2"


@pytest.mark.parametrize(
    "sql",
    [
        TRUNCATE,
        "ALTER TABLE t DROP PARTITION p1",
        "ALTER TABLE t EXCHANGE PARTITION p2 WITH TABLE u",
        "SET STATEMENT lock_wait_timeout = 1 FOR ALTER TABLE t TRUNCATE PARTITION p2",
        "CREATE TABLE u SELECT * FROM t PARTITION (p2)",
    ],
)
def test_a_definition_that_takes_a_partition_of_other_rows_is_refused(sql: str) -> None:
    [found] = said(of(*DRIFTED, sql), "partitions")
    assert "partitions of a.t: expected 2 partitions by RANGE (`id`), p2 of 20" in found
    assert "; the target would take other rows than the source did" in found
    assert said(of(DRIFTED[1], DRIFTED[0], sql), "partitions") != []
    assert said(of(DRIFTED[0], DRIFTED[0], sql), "partitions") == []
    assert said(of(*DRIFTED, sql, channel=applying(allow_unsafe=True)), "partitions") == []


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE t TRUNCATE PARTITION ALL",
        "ALTER TABLE t ADD COLUMN n INT",
        "ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES LESS THAN (30))",
        "TRUNCATE TABLE t",
        "CREATE VIEW v AS SELECT * FROM t PARTITION (p2)",
        "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO ALTER TABLE t TRUNCATE PARTITION p2",
        "CREATE PROCEDURE p () ALTER TABLE t TRUNCATE PARTITION p2",
    ],
)
def test_a_definition_that_takes_no_single_partition_is_not_asked_about(sql: str) -> None:
    assert said(of(*DRIFTED, sql), "partitions") == []


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t PARTITION (p2) WHERE id > 0",
        "INSERT INTO a.u SELECT * FROM a.t PARTITION (p1, p2)",
        "UPDATE `t` PARTITION (p2) SET id = id",
    ],
)
def test_a_statement_that_takes_a_partition_of_other_rows_is_refused_once(sql: str) -> None:
    [found] = said(of(*DRIFTED, statements=[sql, sql]), "partitions")
    assert "statement of seqno 5" in found
    assert said(of(DRIFTED[1], DRIFTED[1], statements=[sql]), "partitions") == []


def test_a_statement_whose_trigger_takes_a_partition_of_other_rows_is_refused() -> None:
    fires = Program(TableKey("a", "u"), "trigger", "DELETE FROM t PARTITION (p2)", name="x", time="AFTER INSERT")
    [found] = said(of(*DRIFTED, statements=["INSERT INTO u VALUES (1)"], triggers=[fires]), "partitions")
    assert "trigger a.x: partitions p2 of a.t: expected" in found
    assert said(of(*DRIFTED, statements=["INSERT INTO v VALUES (1)"], triggers=[fires]), "partitions") == []


def test_a_statement_whose_new_trigger_takes_a_partition_of_other_rows_is_refused() -> None:
    made = "CREATE TRIGGER x AFTER INSERT ON u FOR EACH ROW DELETE FROM t PARTITION (p2)"
    [found] = said(of(*DRIFTED, made, statements=["INSERT INTO u VALUES (1)"]), "partitions")
    assert "partitions p2 of a.t" in found


def test_partitions_that_go_and_come_each_month_are_no_difference() -> None:
    """The source's definition is the one behind its own statements."""
    now, then = ranges(p2=20, p3=30), ranges(p1=10, p2=20)
    rotation = ("ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES LESS THAN (30))", "ALTER TABLE t DROP PARTITION p1")
    assert said(of(then, now, *rotation), "partitions") == []
    assert said(of(then, ranges(p2=20, p3=30, p4=40), *rotation), "partitions") != []
    later = "ALTER TABLE a.t ADD PARTITION (PARTITION p4 VALUES LESS THAN (40))"
    assert said(of(then, ranges(p2=20, p3=30, p4=40), *rotation, behind=[later]), "partitions") == []
    assert said(of(then, ranges(p2=25, p3=30, p4=40), *rotation, behind=[later]), "partitions") != []
    assert said(of(then, ranges(p2=20, p3=30, p4=40), *rotation, behind=None), "partitions") != []


@pytest.mark.parametrize(
    "sql",
    [
        "RENAME TABLE t TO old, made TO t",
        "CREATE OR REPLACE TABLE t (id INT) PARTITION BY HASH (id)",
        "ALTER TABLE t PARTITION BY HASH (id)",
        "ALTER TABLE t REMOVE PARTITIONING",
        "DROP DATABASE a",
        "ALTER TABLE t EXCHANGE PARTITION p2",
    ],
)
def test_a_table_that_has_become_another_one_is_not_compared(sql: str) -> None:
    assert said(of(*DRIFTED, TRUNCATE, behind=[sql]), "partitions") == []
    assert said(of(*DRIFTED, TRUNCATE, sql), "partitions") == []


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE IF NOT EXISTS t (id INT) PARTITION BY HASH (id)",
        "ALTER TABLE t ADD COLUMN n INT",
        "DROP TABLE u",
        "DROP DATABASE b",
    ],
)
def test_what_leaves_the_partitions_explains_no_difference(sql: str) -> None:
    assert said(of(*DRIFTED, TRUNCATE, sql, behind=[sql]), "partitions") != []


def hashed(count: int) -> Partitioning:
    return Partitioning.of(TABLE, [Partition("HASH", "", f"p{at}", "", "`id`", "", "") for at in range(count)])


@pytest.mark.parametrize(
    ("target", "source", "sql"),
    [
        (4, 8, "ALTER TABLE a.t ADD PARTITION PARTITIONS 4"),
        (4, 8, "ALTER TABLE a.t ADD PARTITION LOCAL PARTITIONS 4"),
        (8, 4, "ALTER TABLE a.t COALESCE PARTITION 4"),
    ],
)
def test_a_table_of_another_number_of_hashes_is_not_compared(target: int, source: int, sql: str) -> None:
    first = "ALTER TABLE t TRUNCATE PARTITION p0"
    assert said(of(hashed(target), hashed(source), sql, first), "partitions") == []
    assert said(of(hashed(target), hashed(source), first, behind=[sql]), "partitions") == []
    assert said(of(hashed(target), hashed(source), first), "partitions") != []


def listed(collation: str, *, values: str = "'b'", name: str = "name") -> Partitioning:
    column = Column(name, 2, "varchar", charset=collation.split("_")[0], collation=collation)
    rows = [
        Partition("LIST COLUMNS", "", part, "", f"`{name}`", each, "") for part, each in (("p1", "'a'"), ("p2", values))
    ]
    return Partitioning.of(Table(TABLE.key, "InnoDB", (column,)), rows)


@pytest.mark.parametrize(
    ("sql", "source"),
    [
        ("ALTER TABLE a.t CONVERT TO CHARACTER SET utf8mb4", listed("utf8mb4_general_ci")),
        ("ALTER TABLE a.t MODIFY name VARCHAR(9) COLLATE utf8mb4_general_ci", listed("utf8mb4_general_ci")),
        ("ALTER TABLE a.t CHANGE name title VARCHAR(9)", listed("latin1_swedish_ci", name="title")),
        ("ALTER TABLE a.t RENAME COLUMN name TO title", listed("latin1_swedish_ci", name="title")),
    ],
)
def test_columns_that_are_altered_explain_their_own_difference_alone(sql: str, source: Partitioning) -> None:
    target, other = listed("latin1_swedish_ci"), listed("latin1_swedish_ci", values="'c'")
    assert said(of(target, source, sql, TRUNCATE), "partitions") == []
    assert said(of(target, source, TRUNCATE, behind=[sql]), "partitions") == []
    assert said(of(target, source, TRUNCATE), "partitions") != []
    [found] = said(of(other, source, sql, TRUNCATE), "partitions")
    assert "p2 of 'b', found" in found
    assert "that the source's had where the window begins" in found


def test_the_name_of_the_table_is_none_of_its_partitions() -> None:
    target, source = ranges(t=11, p1=20), ranges(t=10, p1=20, p2=30)
    add = "ALTER TABLE t ADD PARTITION (PARTITION p2 VALUES LESS THAN (30))"
    assert said(of(target, source, add, "ALTER TABLE t TRUNCATE PARTITION t"), "partitions") != []
    both = "ALTER TABLE t DROP PARTITION IF EXISTS t, `P1`"
    assert said(of(ranges(t=10, p1=20, p2=30), ranges(p2=30), both), "partitions") == []


def test_a_table_that_one_server_lacks_is_not_compared() -> None:
    assert said(of(None, DRIFTED[1], TRUNCATE), "partitions") == []
    assert said(of(DRIFTED[0], None, TRUNCATE), "partitions") == []


@pytest.mark.parametrize(("flavor", "is_refused"), [(Flavor.MARIADB, True), (Flavor.MYSQL, False)])
def test_of_an_archive_the_hash_of_a_date_is_that_of_its_family(flavor: Flavor, is_refused: bool) -> None:
    named = Table(TABLE.key, "InnoDB", (Column("n", 1, "date"),))
    by_key = Partitioning.of(named, [Partition("KEY", "", "p0", "", "`n`", "", "")])
    made = of(by_key, None, TRUNCATE, archive=True, plan=replace(PLAN, flavor=flavor))
    [found] = findings(made, "partitions")
    assert (found.severity is Severity.FATAL) is is_refused


@pytest.mark.parametrize("sql", [TRUNCATE, "CREATE TABLE u SELECT * FROM t PARTITION (p2)"])
def test_of_an_archive_the_partitions_are_believed_by_name(sql: str) -> None:
    [found] = findings(of(DRIFTED[0], None, sql, archive=True), "partitions")
    assert found.severity is Severity.INFO
    assert "expected the source's partitions, of which an archive tells nothing, found 2 partitions by RANGE" in str(
        found
    )
    assert said(of(None, None, sql, archive=True), "partitions") == []
    assert said(of(Partitioning(), None, sql, archive=True), "partitions") == []
    assert said(of(DRIFTED[0], None, "ALTER TABLE t PARTITION BY HASH (id)", sql, archive=True), "partitions") == []


def values(**lists: str) -> Partitioning:
    return Partitioning.of(TABLE, [Partition("LIST", "", name, "", "`id`", each, "") for name, each in lists.items()])


THREE, TWO = values(p1="1", p2="2", p3="3"), values(p2="2", p3="3")
OLDER, NEWER = ranges(p1=10, p2=20, p3=30), ranges(p2=20, p3=30)


@pytest.mark.parametrize(
    ("target", "source", "sql", "found"),
    [
        (THREE, TWO, "ALTER TABLE t TRUNCATE PARTITION p3", None),
        (THREE, TWO, "ALTER TABLE t EXCHANGE PARTITION p2 WITH TABLE u", None),
        (THREE, TWO, "ALTER TABLE t TRUNCATE PARTITION P3, `p2`", None),
        (THREE, values(p2="2", p3="3,4"), "ALTER TABLE t TRUNCATE PARTITION p3", "p3 of 3;"),
        (THREE, values(p2="2", p3="3,4"), "ALTER TABLE t TRUNCATE PARTITION p2", None),
        (THREE, values(p2="2", p3="DEFAULT"), "ALTER TABLE t TRUNCATE PARTITION p2", None),
        (values(p1="1", p3="DEFAULT"), values(p3="DEFAULT"), "ALTER TABLE t TRUNCATE PARTITION p3", "p1 of 1;"),
        (OLDER, NEWER, "ALTER TABLE t TRUNCATE PARTITION p3", None),
        (OLDER, NEWER, "ALTER TABLE t TRUNCATE PARTITION p2", "p2 of 20 from 10 on;"),
        (OLDER, NEWER, "ALTER TABLE t TRUNCATE PARTITION p3, p2", "p2 of 20 from 10 on;"),
        (OLDER, ranges(p2=20, p3=31), "ALTER TABLE t TRUNCATE PARTITION p3", "p3 of 30 from 20 on;"),
        (OLDER, ranges(p2=20, p3=31), "ALTER TABLE t TRUNCATE PARTITION p2, p3", "p2 of 20 from 10 on;"),
        (OLDER, NEWER, "ALTER TABLE t TRUNCATE PARTITION p1", "p1 of 10;"),
        (hashed(3), hashed(2), "ALTER TABLE t TRUNCATE PARTITION p0", "p2;"),
    ],
)
def test_partitions_that_the_target_keeps_matter_where_they_take_rows_of_the_named_ones(
    target: Partitioning, source: Partitioning, sql: str, found: str | None
) -> None:
    """A channel with ``kinds.drop = "ignore"`` keeps what the source has dropped."""
    told = said(of(target, source, sql), "partitions")
    assert len(told) == (found is not None)
    assert found is None or found in told[0]


def test_a_subpartition_is_one_of_its_own_partition() -> None:
    """Rows are in it by a hash."""

    def parts(names: str, *subs: str) -> Partitioning:
        rows = ((name, f"{name}{each}") for name in names.split() for each in subs)
        found = [Partition("LIST", "HASH", name, sub, "`id`", name[1:], "`id`") for name, sub in rows]
        return Partitioning.of(TABLE, found)

    for sql in ("DELETE FROM t PARTITION (p1a)", "DELETE FROM t PARTITION (p1)"):
        assert said(of(parts("p1 p2 p3", "a", "b"), parts("p1 p2", "a", "b"), statements=[sql]), "partitions") == []
        assert said(of(parts("p1", "a", "b", "c"), parts("p1", "a", "b"), statements=[sql]), "partitions") != []


def test_statements_are_passed_over_by_a_word_that_each_of_them_has() -> None:
    assert _NAMED.search(b"DELETE FROM t partition(p0)")
    assert not _NAMED.search(b"SELECT SUM(n) OVER (PARTITION  BY n)")
