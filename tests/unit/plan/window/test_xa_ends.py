"""An XA transaction of statements is applied at its XA PREPARE, by what its end says."""

from __future__ import annotations

import dataclasses

import pytest

from binlane.errors import UnsupportedEventError
from binlane.model import ItemKind, TableKey
from binlane.schema.model import Table, Trigger
from binlane.shards.selection import Selection
from tests.unit.binlog.cases import mariadb_gtid, query
from tests.unit.plan.logs import (
    EMPTY_SCHEMA,
    Filtered,
    alone,
    bound,
    ends,
    filtered,
    prepare,
    rows,
    settings,
    statements,
)

CHOSEN = settings(shard_list="a=0\nb=1\nc=2\n", block_transactions=1)
EACH = pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
NAME = b"`binlane: rolled back on the source`"


def table(name: str, engine: str, *triggers: Trigger) -> Table:
    return Table(TableKey("a", name), engine, (), triggers=triggers)


SCHEMA = dataclasses.replace(
    EMPTY_SCHEMA,
    tables={
        each.key: each
        for each in (
            table("kept", "MyISAM"),
            table("undone", "InnoDB"),
            table("triggered", "InnoDB", Trigger("t", "AFTER", "INSERT")),
        )
    },
)
MAKE, DROP = "CREATE TEMPORARY TABLE undone (a INT) ENGINE=MyISAM", "DROP TEMPORARY TABLE undone"
INTO_KEPT, INTO_UNDONE = "INSERT INTO kept VALUES (1)", "INSERT INTO undone VALUES (1)"


def prepared(seqno: int, *texts: str, xid: str = "x") -> tuple[bytes, ...]:
    """The first half of an XA transaction of statements."""
    body = (query(text.encode(), database=b"a") for text in texts)
    return (*prepare(seqno, xid, "a")[:1], *body, prepare(seqno, xid)[-1])


def unmarked(seqno: int, *texts: str) -> tuple[bytes, ...]:
    """The same without MariaDB's mark of what can be rolled back: a table without transactions was changed."""
    return (mariadb_gtid(seqno, 0), *prepared(seqno, *texts)[1:])


def written(found: Filtered, seqno: int) -> list[bytes]:
    """The statements that are applied at ``seqno``."""
    blocks = [block for lane in found.lanes.values() for block in lane]
    return [
        item.payload
        for header, items in blocks
        if header.first_seqno <= seqno <= header.last_seqno
        for item in items
        if item.kind is ItemKind.STATEMENT
    ]


@EACH
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(INTO_KEPT, id="known"),
        pytest.param("INSERT INTO new VALUES (1)", id="not-on-the-target-yet"),
        pytest.param("INSERT INTO triggered VALUES (1)", id="by-a-trigger-perhaps"),
        pytest.param("INSERT INTO altered VALUES (1)", id="altered-in-the-window"),
    ],
)
@pytest.mark.parametrize("cuts", [(), (2,)])
def test_a_rollback_leaves_what_tables_without_transactions_keep(
    text: str, cuts: tuple[int, ...], columnar: bool
) -> None:
    log = [alone(1, "ALTER TABLE altered ENGINE=MyISAM"), prepared(2, INTO_UNDONE, text), ends(3, "ROLLBACK", "x")]
    schema = dataclasses.replace(SCHEMA, tables={**SCHEMA.tables, TableKey("a", "altered"): table("altered", "InnoDB")})
    found = filtered(log, CHOSEN, cuts=cuts, columnar=columnar, schema=schema)
    assert written(found, 2)[-4:] == [
        b"SAVEPOINT " + NAME, INTO_UNDONE.encode(), text.encode(), b"ROLLBACK TO SAVEPOINT " + NAME,
    ]  # fmt: skip
    assert found.plan.undone >= {TableKey("a", "undone")}


@EACH
@pytest.mark.parametrize(
    ("before", "inside", "behind"),
    [
        pytest.param(MAKE, (INTO_UNDONE,), DROP, id="hides-a-table"),
        pytest.param(MAKE, ("INSERT INTO other VALUES (1)", DROP), "", id="dropped"),
        pytest.param("", ("INSERT INTO other VALUES (1)", MAKE), DROP, id="made"),
    ],
)
def test_a_rollback_leaves_what_the_connection_has_done_to_its_temporary_tables(
    before: str, inside: tuple[str, ...], behind: str, columnar: bool
) -> None:
    schema = dataclasses.replace(SCHEMA, tables={**SCHEMA.tables, TableKey("a", "other"): table("other", "InnoDB")})
    log = [
        bound(1, before, alone=True) if before else rows(1, "b"),
        (*prepare(2, "x", "a")[:1], *bound(2, *inside)[1:-1], prepare(2, "x")[-1]),
        rows(3, "b"), ends(4, "ROLLBACK", "x"), bound(5, behind, alone=True) if behind else rows(5, "b"),
    ]  # fmt: skip
    found = filtered(log, CHOSEN, columnar=columnar, schema=schema)
    assert written(found, 2)[-1 - len(inside) : -1] == [each.encode() for each in inside]


@EACH
def test_a_rollback_of_transactional_tables_and_of_rows_leaves_nothing(columnar: bool) -> None:
    log = [
        prepared(1, INTO_UNDONE), ends(2, "ROLLBACK", "x"),
        prepare(3, "y", "a"), ends(4, "ROLLBACK", "y"),
        prepared(5, "SAVEPOINT s"), ends(6, "ROLLBACK", "x"),
    ]  # fmt: skip
    found = filtered(log, CHOSEN, columnar=columnar, schema=SCHEMA)
    assert [written(found, seqno) for seqno in range(1, 7)] == [[]] * 6
    assert (found.routing.prepared, found.plan.undone) == ({}, frozenset())


@EACH
def test_an_xa_transaction_without_a_prepare_is_undone_where_it_is_and_ends_no_other(columnar: bool) -> None:
    name = "X'79',X'',1"
    own = (query(f"XA {what} {name}".encode(), database=b"a") for what in ("START", "END", "ROLLBACK"))
    start, end, rollback = own
    log = [
        prepared(1, "INSERT INTO new VALUES (1)"),
        (start, query(INTO_KEPT.encode(), database=b"a"), end, rollback),
        ends(3, "ROLLBACK", "x"),
    ]
    found = filtered(log, CHOSEN, columnar=columnar, schema=SCHEMA)
    undoing = [b"SAVEPOINT " + NAME, b"ROLLBACK TO SAVEPOINT " + NAME]
    for seqno, text in ((2, INTO_KEPT.encode()), (1, b"INSERT INTO new VALUES (1)")):
        assert written(found, seqno)[-3:] == [undoing[0], text, undoing[1]]


@EACH
@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(INTO_KEPT, id="without-transactions"),
        pytest.param("INSERT INTO triggered VALUES (1)", id="by-a-trigger-perhaps"),
    ],
)
def test_others_may_change_what_a_statement_has_read_or_written_before_its_end(
    text: str, how: str, columnar: bool
) -> None:
    between = "UPDATE kept SET a = 2"
    log = [prepared(1, text), statements(2, between), rows(3, "b"), ends(4, how, "x")]
    found = filtered(log, CHOSEN, schema=SCHEMA, columnar=columnar)
    assert text.encode() in written(found, 1)
    assert between.encode() in written(found, 2)
    assert written(found, 4) == []


@EACH
def test_a_commit_that_is_applied_at_its_prepare_takes_the_lane_of_its_statements(columnar: bool) -> None:
    log = [prepared(1, INTO_UNDONE), rows(2, "b"), ends(3, "COMMIT", "x"), rows(4, "a")]
    found = filtered(log, CHOSEN, schema=SCHEMA, columnar=columnar)
    assert found.routing.at_prepare == {1: True}
    assert [header.first_seqno for header, items in found.lanes[0] if items] == [1, 4]


@EACH
@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK", ""])
def test_a_transaction_with_statements_whose_halves_are_in_two_windows_is_refused(how: str, columnar: bool) -> None:
    half = prepared(1, INTO_UNDONE)
    log, carried = ([rows(1, "b"), ends(2, how, "x")], [half]) if how else ([half], [])
    with pytest.raises(UnsupportedEventError, match=r"another window, cannot be .*; if \[filter\] left the"):
        filtered(log, CHOSEN, schema=SCHEMA, columnar=columnar, carried=carried)


@EACH
def test_a_rollback_of_what_cannot_be_determined_is_refused(columnar: bool) -> None:
    chosen = dataclasses.replace(CHOSEN, filters=Selection(allowed=("OTHER",)).to_values())
    log = [prepared(1, "FROBNICATE undone", INTO_UNDONE), ends(2, "ROLLBACK", "x")]
    with pytest.raises(UnsupportedEventError, match=r"XA PREPARE of X'78',X'',1: .*whose changes cannot be determined"):
        filtered(log, chosen, schema=SCHEMA, columnar=columnar)


TRANSACTIONAL = dataclasses.replace(
    EMPTY_SCHEMA,
    tables={
        each.key: each
        for each in (
            table("undone", "InnoDB"),
            table("triggered", "InnoDB", Trigger("t", "AFTER", "INSERT")),
            table("other", "InnoDB"),
        )
    },
)
"""Of a target on which every table has transactions."""
FROM_OTHER = "INSERT INTO undone SELECT * FROM other"
UNDONE, OTHER = TableKey("a", "undone"), TableKey("a", "other")


@EACH
@pytest.mark.parametrize(
    ("half", "named"),
    [
        pytest.param(prepared(1, INTO_UNDONE, "INSERT INTO other VALUES (1)"), set(), id="marked-one-table-each"),
        pytest.param(
            prepared(1, "INSERT INTO triggered VALUES (1)"), {TableKey("a", "triggered")}, id="marked-trigger"
        ),
        pytest.param(unmarked(1, "SAVEPOINT s"), set(), id="unmarked-nothing-changed"),
    ],
)
def test_tables_whose_engine_on_the_source_decides_what_a_rollback_leaves_are_named(
    half: tuple[bytes, ...], named: set[TableKey], columnar: bool
) -> None:
    found = filtered([half, ends(2, "ROLLBACK", "x")], CHOSEN, columnar=columnar, schema=TRANSACTIONAL)
    assert found.plan.undone == named
    found = filtered([half, ends(2, "COMMIT", "x")], CHOSEN, columnar=columnar, schema=TRANSACTIONAL)
    assert found.plan.undone == set()


@EACH
@pytest.mark.parametrize(
    ("half", "named"),
    [
        pytest.param(prepared(1, INTO_UNDONE), set(), id="marked-one-table"),
        pytest.param(prepared(1, FROM_OTHER), {UNDONE, OTHER}, id="marked-two-tables"),
        pytest.param(unmarked(1, INTO_UNDONE), {UNDONE}, id="unmarked"),
        pytest.param((mariadb_gtid(1, 0), *prepare(1, "x", "a")[1:]), set(), id="rows"),
    ],
)
def test_a_rollback_runs_the_statements_that_the_source_may_have_kept(
    half: tuple[bytes, ...], named: set[TableKey], columnar: bool
) -> None:
    found = filtered([half, ends(2, "ROLLBACK", "x")], CHOSEN, columnar=columnar, schema=TRANSACTIONAL)
    assert found.plan.undone == named
    assert len(written(found, 1)) == (3 if named else 0)


RENAMED, OTHERS = "RENAME TABLE a.t TO a.u, a.n TO a.t", "RENAME TABLE a.o TO a.p"


@EACH
@pytest.mark.parametrize("ddl", [RENAMED, "DROP TABLE t", "CREATE OR REPLACE TABLE t (a INT)"])
@pytest.mark.parametrize("cuts", [(), (2,)])
def test_rows_of_a_table_that_has_another_name_at_the_commit_are_refused(
    ddl: str, cuts: tuple[int, ...], columnar: bool
) -> None:
    log = [rows(1, "b"), prepare(2, "x", "a"), alone(3, ddl), ends(4, "COMMIT", "x"), rows(5, "b")]
    match = r"XA PREPARE of X'78'.*: rows of a\.t, which the DDL of seqno 3 renames, drops or exchanges before"
    with pytest.raises(UnsupportedEventError, match=match):
        filtered(log, CHOSEN, cuts=cuts, columnar=columnar)
    # not ended in this window, which may come later
    with pytest.raises(UnsupportedEventError, match=match):
        filtered(log[:3], CHOSEN, columnar=columnar)
    for passed in (
        [rows(1, "b"), prepare(2, "x", "a"), alone(3, OTHERS), ends(4, "COMMIT", "x")],
        [rows(1, "b"), prepare(2, "x", "a"), alone(3, ddl), ends(4, "ROLLBACK", "x")],
        [alone(1, ddl), prepare(2, "x", "a"), ends(3, "COMMIT", "x"), alone(4, ddl)],
    ):
        filtered(passed, CHOSEN, columnar=columnar)


@EACH
def test_rows_that_an_earlier_window_has_prepared_are_refused_as_well(columnar: bool) -> None:
    carried = [prepare(1, "x", "a")]
    with pytest.raises(UnsupportedEventError, match=r"rows of a\.t, which the DDL of seqno 1 renames"):
        filtered([alone(1, RENAMED), ends(2, "COMMIT", "x")], CHOSEN, columnar=columnar, carried=carried)
