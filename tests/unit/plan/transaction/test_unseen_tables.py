"""Statements of connections that may be older than the channel: left out, refused, or what they were."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import pytest

from binlane.errors import UnsupportedEventError
from binlane.model import Flavor, ItemKind, TableKey
from binlane.plan.manifest import TemporaryDrop
from binlane.plan.routing import Routing
from binlane.plan.transaction.unseen_tables import LACKING, UNSEEN, UNSEEN_RULE, UNSURE
from binlane.schema.model import Column, Schema, Table, Trigger
from tests.unit.plan.logs import Filtered, alone, bound, ends, filtered, prepare, rows, settings

OLDEST_YOUNG: Final = 7
SHADOWED, CAPITAL, OTHER, FIRED, ASKING = (TableKey("a", name) for name in ("t", "T", "p", "fired", "asking"))
COLUMN: Final = Column("id", 1, "int")
TABLES: Final = (
    Table(SHADOWED, "InnoDB", (COLUMN,)),
    Table(CAPITAL, "InnoDB", (COLUMN,)),
    Table(OTHER, "InnoDB", (COLUMN,)),
    Table(FIRED, "InnoDB", (COLUMN,), triggers=(Trigger("who", "BEFORE", "INSERT"),)),
    Table(ASKING, "InnoDB", (dataclasses.replace(COLUMN, default="connection_id()"),)),
)
SCHEMA: Final = Schema(
    Flavor.MARIADB, "10.11.19-MariaDB", tables={each.key: each for each in TABLES},
    views=frozenset({TableKey("a", "seen")}),
)  # fmt: skip


ONLY_THERE: Final = TableKey("a", "only_there")
DROP_OF_T: Final = TemporaryDrop(7, 6, SHADOWED)


def window(
    log: Sequence[tuple[bytes, ...]],
    restarted: int | None = None,
    older: int = OLDEST_YOUNG - 1,
    later_drops: Sequence[TemporaryDrop] = (),
    absent: Sequence[TableKey] = (ONLY_THERE,),
    **changes: object,
) -> Filtered:
    return filtered(
        log, settings(**changes), schema=SCHEMA, columnar=True, older_sessions=older, restarted=restarted,
        later_drops=later_drops, absent=absent,
    )  # fmt: skip


def statements(found: Filtered) -> list[str]:
    blocks = sorted((block for each in found.lanes.values() for block in each), key=lambda block: block[0].first_seqno)
    items = (item for _, found in blocks for item in found)
    return [item.payload.decode() for item in items if item.kind is not ItemKind.ROWS]


LEFT_OUT: Final = [
    "INSERT INTO t VALUES (1, 't')",
    "UPDATE a.t SET id = 2",
    "DELETE QUICK FROM t WHERE id = 3",
    "INSERT INTO only_there VALUES (1)",
    "INSERT INTO only_there SELECT id FROM p",
    "ALTER TABLE t ADD COLUMN b INT",
    "TRUNCATE TABLE t",
    "CREATE INDEX i ON t (id)",
    "DROP INDEX i ON t",
    "OPTIMIZE TABLE t",
    "/* of a program */ INSERT INTO t VALUES (1)",
    "SET STATEMENT max_statement_time = 9 FOR ALTER TABLE t ADD COLUMN b INT",
]
DROPPED: Final = "DROP TEMPORARY TABLE IF EXISTS `t`"
CREATED: Final = "CREATE TEMPORARY TABLE t (id INT)"


def is_alone(text: str) -> bool:
    return text.split()[0] in ("SET", "ALTER", "TRUNCATE", "CREATE", "OPTIMIZE", "DROP")


@pytest.mark.parametrize("text", LEFT_OUT)
def test_what_changes_nothing_but_a_table_that_is_dropped_later_as_a_temporary_one_is_left_out(text: str) -> None:
    log = [bound(1, text, alone=is_alone(text)), rows(2, "a"), bound(3, DROPPED, alone=True)]
    found = window(log)
    assert (statements(found), found.plan.unsafe) == ([DROPPED], {})
    assert found.plan.filtered[UNSEEN_RULE].statements == 1
    assert Routing.from_json(found.routing.to_json(), "x").unseen == found.routing.unseen
    behind = window(log[:2], later_drops=[DROP_OF_T])
    assert (statements(behind), behind.plan.unsafe) == ([], {})


SPELLED: Final = [
    pytest.param("INSERT INTO T VALUES (1)", UNSURE, "a.T", True, id="one"),
    pytest.param("INSERT INTO T SELECT id FROM t", UNSEEN, "a.t", False, id="from-the-other"),
    pytest.param("CREATE TABLE made SELECT id FROM T", UNSURE, "a.T", True, id="copied"),
    pytest.param("RENAME TABLE T TO u", UNSURE, "a.T, a.u", True, id="renamed"),
]


@pytest.mark.parametrize(("text", "what", "tables", "is_applied"), SPELLED)
def test_a_name_proves_nothing_for_another_spelling_of_it(text: str, what: str, tables: str, is_applied: bool) -> None:
    """A source that distinguishes letters has a permanent T beside the temporary t: its rows would be lost."""
    log = [bound(1, text, alone=is_alone(text) or text.startswith("RENAME")), rows(2, "a")]
    inside = window([*log, bound(3, DROPPED, alone=True)])
    assert inside.plan.unsafe == {f"{what} 6: {tables}": 1}
    assert (text in statements(inside)) is is_applied
    assert window(log, later_drops=[DROP_OF_T]).plan.unsafe == inside.plan.unsafe


def test_what_changes_a_proved_table_alone_is_left_out_whatever_it_reads() -> None:
    found = window([bound(1, "INSERT INTO t SELECT id FROM T"), rows(2, "a"), bound(3, DROPPED, alone=True)])
    assert (statements(found), found.plan.unsafe) == ([DROPPED], {})


UNPROVED: Final = [
    pytest.param([], id="open"),
    pytest.param([bound(3, DROPPED, alone=True, thread=5)], id="of-another-connection"),
    pytest.param([bound(3, CREATED, alone=True), bound(4, DROPPED, alone=True)], id="of-the-window"),
    pytest.param([bound(3, "INSERT INTO p VALUES (f())"), bound(4, DROPPED, alone=True)], id="of-a-routine"),
    pytest.param([bound(3, "ALTER TABLE u RENAME TO t", alone=True), bound(4, DROPPED, alone=True)], id="renamed"),
    pytest.param([bound(3, DROPPED.replace("`t`", "`u`"), alone=True)], id="of-another-name"),
]


@pytest.mark.parametrize("behind", UNPROVED)
@pytest.mark.parametrize("text", ["INSERT INTO t VALUES (1, 't')", "DELETE FROM t", "TRUNCATE TABLE t"])
def test_a_mark_alone_proves_nothing(text: str, behind: list[tuple[bytes, ...]]) -> None:
    """A server marks all statements of a body behind one that uses a temporary table."""
    found = window([bound(1, text, alone=is_alone(text)), rows(2, "a"), *behind])
    assert found.plan.unsafe[f"{UNSURE} 6: a.t"] == 1
    assert text in statements(found)


@pytest.mark.parametrize("text", ["RENAME TABLE t TO p", "RENAME TABLE p TO t", "ALTER TABLE p RENAME TO t"])
def test_a_rename_of_a_name_that_the_connection_drops_later_as_a_temporary_one_is_named(text: str) -> None:
    log = [bound(1, text, alone=True, marked=text.startswith("ALTER")), rows(2, "a")]
    assert window([*log, bound(3, DROPPED, alone=True)]).plan.unsafe == {f"{UNSURE} 6: a.p, a.t": 1}
    assert window(log, later_drops=[DROP_OF_T]).plan.unsafe == {f"{UNSURE} 6: a.p, a.t": 1}


def test_a_drop_behind_a_restart_is_that_of_another_connection() -> None:
    log = [bound(1, "DELETE FROM t"), rows(2, "a"), bound(3, DROPPED, alone=True)]
    assert window(log, 2).plan.unsafe == {f"{UNSURE} 6: a.t": 1}
    assert window(log[:2], 2, later_drops=[DROP_OF_T]).plan.unsafe == {f"{UNSURE} 6: a.t": 1}


REFUSED: Final = [
    pytest.param("INSERT INTO p SELECT id FROM only_there", UNSEEN, "a.only_there", False, id="read"),
    pytest.param("UPDATE p JOIN only_there USING (id) SET p.id = 3", UNSEEN, "a.only_there", False, id="joined"),
    pytest.param("CREATE TABLE made SELECT id FROM only_there", UNSURE, "a.made, a.only_there", True, id="made"),
    pytest.param("CREATE TABLE made LIKE only_there", UNSURE, "a.only_there", True, id="like"),
    pytest.param("INSERT INTO p SELECT id FROM t", UNSURE, "a.p, a.t", True, id="either"),
    pytest.param("INSERT INTO t VALUES (CONNECTION_ID())", UNSURE, "a.t", True, id="asks"),
    pytest.param("INSERT INTO fired VALUES (1)", UNSURE, "a.fired", True, id="trigger"),
    pytest.param("INSERT INTO asking VALUES (1)", UNSURE, "a.asking", True, id="default"),
    pytest.param("TRUNCATE TABLE asking", UNSURE, "a.asking", True, id="definition-of-default"),
    pytest.param("UPDATE seen SET id = 2", UNSURE, "a.seen", True, id="view"),
    pytest.param("INSERT INTO t VALUES (f())", UNSURE, "a.t", True, id="function"),
    pytest.param("DELETE l FROM t l JOIN t r", UNSURE, "a.t", True, id="twice"),
    pytest.param("DELETE FROM t WHERE id IN (SELECT id FROM t)", UNSURE, "a.t", True, id="in-itself"),
]


@pytest.mark.parametrize(("text", "what", "tables", "is_applied"), REFUSED)
def test_what_cannot_be_repeated_or_told_is_named(text: str, what: str, tables: str, is_applied: bool) -> None:
    found = window([bound(1, text, alone=text.startswith(("CREATE", "TRUNCATE"))), rows(2, "a")])
    assert found.plan.unsafe == {f"{what} 6: {tables}": 1}
    assert (statements(found) == [text]) is is_applied


READING: Final = [
    pytest.param("CREATE TEMPORARY TABLE b SELECT * FROM t", "a.t", id="query"),
    pytest.param("CREATE TEMPORARY TABLE b LIKE t", "a.t", id="like"),
    pytest.param("CREATE TEMPORARY TABLE b SELECT * FROM only_there", "a.only_there", id="no-permanent-one"),
    pytest.param("CREATE TEMPORARY TABLE b SELECT * FROM T", "a.T", id="another-spelling"),
    pytest.param("CREATE TEMPORARY TABLE b SELECT * FROM p", None, id="permanent"),
    pytest.param("CREATE TEMPORARY TABLE t SELECT * FROM t", None, id="permanent-of-its-name"),
    pytest.param("CREATE TEMPORARY TABLE b (id INT)", None, id="definition"),
]


@pytest.mark.parametrize(("text", "tables"), READING)
def test_a_temporary_table_that_is_made_of_one_of_before_the_channel_is_named(text: str, tables: str | None) -> None:
    made = text.split()[3]
    log = [
        bound(1, text, alone=True), rows(2, "a"), bound(3, f"INSERT INTO p SELECT * FROM {made}"),
        bound(4, f"DROP TEMPORARY TABLE `{made}`", alone=True),
    ]  # fmt: skip
    found = window(log, later_drops=[DROP_OF_T])
    assert found.plan.unsafe == ({} if tables is None else {f"{UNSURE} 6: {tables}": 1})
    assert statements(found) == [text, *(each for each in statements(found) if each != text)]


def test_a_routine_that_the_query_of_a_temporary_table_calls_may_make_what_is_dropped_behind_it() -> None:
    log = [
        bound(1, "DELETE FROM t"), bound(2, "CREATE TEMPORARY TABLE b SELECT f()", alone=True), rows(3, "a"),
        bound(4, "DROP TEMPORARY TABLE `b`", alone=True), bound(5, DROPPED, alone=True),
    ]  # fmt: skip
    assert window(log).plan.unsafe[f"{UNSURE} 6: a.t"] == 1


REPLACED: Final = "CREATE OR REPLACE TABLE t (id INT)"
SAFE: Final = [
    pytest.param([bound(1, "INSERT INTO t VALUES (1)", thread=OLDEST_YOUNG)], None, id="younger"),
    pytest.param([rows(1, "a"), bound(2, "INSERT INTO t VALUES (1)")], 2, id="behind-a-restart"),
    pytest.param([bound(1, "INSERT INTO t VALUES (1)", marked=False)], None, id="not-marked"),
    pytest.param([bound(1, "DROP TABLE `t` /* generated by server */", alone=True)], None, id="dropped"),
    pytest.param([bound(1, "CREATE OR REPLACE TABLE t LIKE p", alone=True)], None, id="replaced"),
    pytest.param([bound(1, "/* c */ CREATE OR REPLACE TABLE t LIKE p", alone=True)], None, id="with-comment"),
    pytest.param([bound(1, f"SET STATEMENT max_statement_time = 9 FOR {REPLACED}", alone=True)], None, id="with-set"),
    pytest.param([bound(1, "CREATE OR REPLACE SEQUENCE s", alone=True)], None, id="sequence"),
    pytest.param([bound(1, "CREATE TABLE made (a INT)", alone=True)], None, id="composed"),
    pytest.param([bound(1, "RENAME TABLE t TO u", alone=True, marked=False)], None, id="renamed"),
    pytest.param([bound(1, "RENAME TABLE IF EXISTS t TO u", alone=True, marked=False)], None, id="renamed-if-there"),
    pytest.param([bound(1, "/* c */ RENAME TABLE t TO u", alone=True, marked=False)], None, id="renamed-with-comment"),
    pytest.param([bound(1, "ALTER TABLE t RENAME TO u", alone=True, marked=False)], None, id="altered-name"),
    pytest.param(
        [bound(1, "CREATE TEMPORARY TABLE t (a INT)", alone=True), bound(2, "UPDATE t SET a = 1"),
         bound(3, "INSERT INTO p SELECT a FROM t"), bound(4, "DROP TEMPORARY TABLE t", alone=True)],
        None, id="of-the-window",
    ),
    pytest.param([alone(1, "ALTER TABLE a.t ADD b INT")], None, id="another"),
]  # fmt: skip


@pytest.mark.parametrize(("log", "restarted"), SAFE)
def test_all_others_are_what_they_are(log: list[tuple[bytes, ...]], restarted: int | None) -> None:
    found = window(log, restarted)
    assert found.plan.unsafe == {}
    assert UNSEEN_RULE not in found.plan.filtered
    assert len(statements(found)) == len(log) - (restarted is not None)


@pytest.mark.parametrize("absent", [(), (SHADOWED,)], ids=["not asked", "another one"])
def test_what_the_target_lacks_proves_nothing_unless_the_source_lacks_it(absent: Sequence[TableKey]) -> None:
    """A target that has lost a table would look whole."""
    log = [bound(1, "INSERT INTO only_there VALUES (CONNECTION_ID())"), rows(2, "a")]
    found = window(log, absent=absent)
    assert found.plan.unsafe == {f"{LACKING} 6: a.only_there": 1}
    assert statements(found) == []
    log.append(bound(3, "DROP TEMPORARY TABLE only_there", alone=True))
    assert window(log, absent=absent).plan.unsafe == {}


def test_what_the_source_lacks_and_the_target_has_is_named() -> None:
    assert window([bound(1, "DELETE FROM t")], absent=(SHADOWED,)).plan.unsafe == {f"{UNSURE} 6: a.t": 1}


def test_the_proofs_are_of_the_sources_names() -> None:
    log = [bound(1, "INSERT INTO t VALUES (1)", "INSERT INTO only_there VALUES (1)")]
    found = window(log, later_drops=[DROP_OF_T], renames=[["a", "z"]])
    assert (found.plan.unsafe, statements(found)) == ({}, [])


def test_what_has_turned_out_to_be_one_stays_one_until_it_is_dropped() -> None:
    log = [
        bound(1, "UPDATE only_there SET id = 1"),
        bound(3, "INSERT INTO p VALUES (0)"),
        bound(4, "INSERT INTO p VALUES (CONNECTION_ID())"),
        bound(5, "UPDATE p SET id = 1", thread=5, marked=False),
        bound(6, "DROP TEMPORARY TABLE p", alone=True),
        bound(7, "INSERT INTO p VALUES (2)", marked=False),
    ]
    found = window(log)
    assert found.plan.unsafe == {}
    assert statements(found) == ["UPDATE p SET id = 1", "INSERT INTO p VALUES (2)"]


def test_statements_of_a_transaction_are_left_out_one_by_one() -> None:
    dropped = bound(2, "DROP TEMPORARY TABLE IF EXISTS p, t", alone=True)
    found = window([(*bound(1, "UPDATE t SET id = 1", "UPDATE p SET id = 2", "DELETE FROM t"),), dropped])
    assert found.plan.filtered[UNSEEN_RULE].statements == 3
    mixed = [*bound(1, "UPDATE t SET id = 1", "x")]
    mixed[2] = bound(1, "INSERT INTO p VALUES (1)", marked=False)[1]
    assert statements(window([tuple(mixed)], later_drops=[DROP_OF_T])) == ["INSERT INTO p VALUES (1)"]


def test_a_prepared_xa_transaction_with_one_is_refused() -> None:
    half = (*prepare(1, "x", "a")[:1], bound(1, "UPDATE only_there SET id = 1")[1], prepare(1, "x")[-1])
    log = [half, ends(2, "COMMIT", "x")]
    with pytest.raises(UnsupportedEventError, match="a prepared XA transaction with a statement that depends on its"):
        window(log)


def test_a_channel_without_older_connections_judges_nothing() -> None:
    found = window([bound(1, "UPDATE t SET id = 1")], older=0)
    assert statements(found) == ["UPDATE t SET id = 1"]
