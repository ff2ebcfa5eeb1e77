"""What an XA transaction of statements does to tables without transactions, by where its halves stand."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from binlane.errors import UnsupportedEventError
from binlane.model import ANY_TABLE, ItemKind, TableKey
from binlane.schema.model import Table, Trigger
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
    assert written(found, 3) == [
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
    assert written(found, 4)[1:-1] == [each.encode() for each in inside]


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
    for seqno, text in ((2, INTO_KEPT.encode()), (3, b"INSERT INTO new VALUES (1)")):
        assert written(found, seqno)[-3:] == [undoing[0], text, undoing[1]]


@EACH
def test_what_an_earlier_window_prepared_is_left_by_its_rollback_in_this_one(columnar: bool) -> None:
    log, carried = [rows(1, "b"), ends(2, "ROLLBACK", "x")], [prepared(7, "INSERT INTO new VALUES (1)")]
    found = filtered(log, CHOSEN, columnar=columnar, schema=SCHEMA, carried=carried)
    assert written(found, 2)[1:2] == [b"INSERT INTO new VALUES (1)"]
    assert [group.seqno for group in found.plan.carried_in] == [1001]


@pytest.mark.parametrize(
    "between",
    [
        pytest.param([], id="nothing"),
        # b's changes are applied at its own end
        pytest.param([prepared(2, INTO_UNDONE, xid="b")], id="another-prepare"),
    ],
)
@pytest.mark.parametrize("how", ["COMMIT", "ROLLBACK"])
def test_changes_without_transactions_are_applied_at_the_end_if_nothing_lies_between(
    between: list[tuple[bytes, ...]], how: str
) -> None:
    log = [prepared(1, INTO_KEPT), *between, ends(8, how, "x"), *([ends(9, how, "b")] if between else [])]
    found = filtered(log, CHOSEN, schema=SCHEMA)
    assert INTO_KEPT.encode() in written(found, len(between) + 2)


@EACH
@pytest.mark.parametrize(
    ("log", "why"),
    [
        pytest.param(
            [prepared(1, INTO_UNDONE, INTO_KEPT), statements(2, INTO_KEPT), ends(3, "COMMIT", "x")],
            "changed a.kept, a table without transactions, before its end, and other transactions lie", id="commit",
        ),
        pytest.param([prepared(1, INTO_KEPT), rows(2, "a"), ends(3, "ROLLBACK", "x")], "lie between", id="rollback"),
        pytest.param(
            [prepared(1, INTO_KEPT), prepared(2, INTO_KEPT, xid="b"), ends(3, "COMMIT", "b"), ends(4, "COMMIT", "x")],
            "lie between", id="the-other-way-round",
        ),
        pytest.param(
            [alone(1, "CREATE TABLE new (a INT) ENGINE = Aria"), prepared(2, "INSERT INTO new VALUES (1)"),
             rows(3, "a"), ends(4, "COMMIT", "x")],
            r"changed a\.new, .* lie between", id="made-in-the-window",
        ),
        pytest.param(
            [alone(1, "CREATE TABLE other (a INT) ENGINE = Aria"), alone(2, "CREATE TABLE LIKED LIKE other"),
             alone(3, "RENAME TABLE liked TO new"), prepared(4, "INSERT INTO new VALUES (1)"), rows(5, "a"),
             ends(6, "ROLLBACK", "x")],
            r"changed a\.new, .* lie between", id="copied-and-renamed-in-the-window",
        ),
        pytest.param(
            [alone(1, "CREATE TABLE new LIKE kept"), prepared(2, "INSERT INTO new VALUES (1)"), rows(3, "a"),
             ends(4, "COMMIT", "x")],
            r"changed a\.new, .* lie between", id="copied-from-the-target",
        ),
        pytest.param([prepared(1, INTO_KEPT)], "and it has not ended in this window", id="not-ended"),
        pytest.param(
            [prepared(1, "INSERT INTO undone VALUES (f())"), ends(2, "ROLLBACK", "x")],
            "that was rolled back, whose changes cannot be determined", id="routine",
        ),
    ],
)  # fmt: skip
def test_changes_that_would_come_too_late_or_are_unknown_are_refused(
    log: list[tuple[bytes, ...]], why: str, columnar: bool
) -> None:
    with pytest.raises(UnsupportedEventError, match=rf"^binlog\.000007:\d+: XA PREPARE of X'78',X'',1: .*{why}"):
        filtered(log, CHOSEN, schema=SCHEMA, columnar=columnar)


def test_other_transactions_may_lie_between_the_halves_of_what_is_transactional_or_unknown() -> None:
    log = [
        alone(1, "CREATE TABLE new (a INT) ENGINE=InnoDB"), prepared(2, INTO_UNDONE, "INSERT INTO new VALUES (1)"),
        rows(3, "a"), ends(4, "COMMIT", "x"), prepared(5, INTO_UNDONE),
    ]  # fmt: skip
    found = filtered(log, CHOSEN, schema=SCHEMA)
    assert INTO_UNDONE.encode() in written(found, 4)
    assert len(found.plan.carried_out) == 1


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
    ("first", "texts", "named"),
    [
        pytest.param(prepared, (INTO_UNDONE,), set(), id="marked-one-table"),
        pytest.param(prepared, (INTO_UNDONE, "INSERT INTO other VALUES (1)"), set(), id="marked-one-table-each"),
        pytest.param(prepared, (FROM_OTHER,), {UNDONE}, id="marked-two-tables"),
        pytest.param(
            prepared, ("INSERT INTO triggered VALUES (1)",), {TableKey("a", "triggered")}, id="marked-trigger"
        ),
        pytest.param(prepared, ("INSERT INTO undone VALUES (f())",), {ANY_TABLE}, id="marked-routine"),
        pytest.param(unmarked, (INTO_UNDONE,), {UNDONE}, id="unmarked"),
        pytest.param(unmarked, ("SAVEPOINT s",), set(), id="unmarked-nothing-changed"),
    ],
)
@pytest.mark.parametrize("how", ["late", "not-ended", "directly"])
def test_tables_whose_engine_on_the_source_decides_what_has_come_before_the_end_are_named(
    first: Callable[..., tuple[bytes, ...]], texts: tuple[str, ...], named: set[TableKey], how: str, columnar: bool
) -> None:
    half = first(1, *texts)
    logs = {
        "late": [half, rows(2, "b"), ends(3, "COMMIT", "x")],
        "not-ended": [half],
        "directly": [half, ends(2, "COMMIT", "x")],
    }
    found = filtered(logs[how], CHOSEN, columnar=columnar, schema=TRANSACTIONAL)
    assert found.plan.undone == (set() if how == "directly" else named)


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
    end, before = ends(2, "ROLLBACK", "x"), rows(1, "b")
    for log, carried in (([half, end], []), ([before, end], [half])):
        found = filtered(log, CHOSEN, columnar=columnar, schema=TRANSACTIONAL, carried=carried)
        assert found.plan.undone == named
        assert len(written(found, 2)) == (3 if named else 0)


@EACH
@pytest.mark.parametrize("first", [prepared, unmarked])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("INSERT INTO triggered VALUES (1)", id="trigger"),
        pytest.param("INSERT INTO undone VALUES (f())", id="routine"),
        pytest.param("INSERT INTO seen VALUES (1)", id="view"),
    ],
)
def test_what_may_be_behind_a_statement_is_refused_where_it_would_come_too_late(
    first: Callable[..., tuple[bytes, ...]], text: str, columnar: bool
) -> None:
    schema = dataclasses.replace(SCHEMA, views=frozenset({TableKey("a", "seen")}))
    for log in ([first(1, text), rows(2, "b"), ends(3, "COMMIT", "x")], [first(1, text)]):
        with pytest.raises(
            UnsupportedEventError, match=r"changed a table without transactions before .* behind a rout"
        ):
            filtered(log, CHOSEN, columnar=columnar, schema=schema)
    filtered([first(1, text), ends(2, "COMMIT", "x")], CHOSEN, columnar=columnar, schema=schema)
