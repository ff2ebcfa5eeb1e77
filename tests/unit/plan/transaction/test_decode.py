"""What cannot be replayed exactly stops the window, by event, file and offset; what can comes apart in order."""

from __future__ import annotations

import dataclasses
import itertools
import struct
from collections.abc import Iterable, Iterator

import pytest

from binlane.binlog.format_description import FormatDescription
from binlane.binlog.reader import LogReader
from binlane.binlog.transactions import Transaction, transactions
from binlane.binlog.wire import EventType
from binlane.errors import BinlogError, UnsupportedEventError
from binlane.model import ANY_TABLE, BlockHeader, Flavor, Item, ItemKind, LogPosition, RowCounts, TableKey
from binlane.plan.barriers import LaneEdges
from binlane.plan.block.builder import BlockBuilder, BlockLimits, transaction_header
from binlane.plan.segment.lane_writer import LaneWriter, commits_itself
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.decode import LogFormat, MapPart, RowsPart, StatementPart, dissect
from binlane.plan.transaction.error_outcome import UNORDERED_ERROR, tables_of_one_kind
from binlane.plan.transaction.parts import Part
from binlane.plan.transaction.route_key import classify
from binlane.shards.selection import Selection
from tests.unit.binlog.cases import mariadb_gtid, query, wire
from tests.unit.binlog.row_events import EVERY_COLUMN, rows_body
from tests.unit.plan.logs import (
    HEAD,
    IN_TRANSACTION,
    STANDALONE,
    XID,
    MemorySink,
    alone,
    filtered,
    insert,
    rows,
    segment_of,
    settings,
    table_map,
)

T = EventType
GTID = mariadb_gtid(1, IN_TRANSACTION)
ROLLBACK = query(b"ROLLBACK")
VERSIONS = {Flavor.MARIADB: "10.11.14-MariaDB-log", Flavor.MYSQL: "9.7.0"}
SHIFT = 5_000_000_000
"""The segment stands behind 4 GiB in its source file."""


def only(events: tuple[bytes, ...]) -> tuple[Transaction, LogFormat]:
    data, segment = segment_of([events])
    reader = LogReader(data, segment.source_file)
    (transaction,) = transactions(reader)
    return transaction, LogFormat(reader.format, segment.source_file, SHIFT, Flavor.MARIADB)


def place(events: tuple[bytes, ...], number: int) -> str:
    """File and offset of the ``number``-th event in the source."""
    return f"binlog.000007:{SHIFT + len(HEAD) + sum(len(event) + 4 for event in events[:number])}: "


REFUSED = [
    pytest.param(
        (GTID, table_map(1), insert(1, [1]), query(b"XA COMMIT X'67',X'',1")),
        3, "QUERY", "an XA COMMIT or XA ROLLBACK with changes", id="xa-commit-with-rows",
    ),
    pytest.param(
        (GTID, table_map(1), insert(1, [1]), query(b"XA ROLLBACK X'67',X'',1")),
        3, "QUERY", "an XA COMMIT or XA ROLLBACK with changes", id="xa-rollback-with-rows",
    ),
    pytest.param(
        (query(b"XA START X'68',X'',1"), query(b"INSERT INTO t VALUES (1)"), query(b"XA ROLLBACK X'67',X'',1")),
        2, "QUERY", "an XA COMMIT or XA ROLLBACK with changes", id="xa-rollback-of-another-start",
    ),
    pytest.param(
        (query(b"XA START X'67',X'',1"), query(b"INSERT INTO t VALUES (1)"), query(b"XA COMMIT X'67',X'',1")),
        2, "QUERY", "an XA COMMIT or XA ROLLBACK with changes", id="xa-commit-without-prepare",
    ),
    pytest.param(
        (GTID, query(b"INSERT INTO t VALUES (1)", error=1317), XID), 1, "QUERY", "error 1317", id="statement-with-error"
    ),
    pytest.param(
        (GTID, query(b"INSERT INTO t VALUES (1)", status=b"\xee\1"), XID),
        1, "QUERY", "unknown status variable 238", id="unknown-status-variable",
    ),
    pytest.param(
        (mariadb_gtid(1, STANDALONE), query(b"CREATE TABLE t (a INT)", error=1317)),
        1, "QUERY", "error 1317", id="ddl-broken-off",
    ),
    pytest.param(
        (GTID, query(b"UPDATE t SET a = 1", error=1213), XID), 1, "QUERY", "a lock of another session", id="deadlock"
    ),
    pytest.param(
        (GTID, query(b"INSERT INTO t VALUES (", error=1062), XID),
        1, "QUERY", "ended with error 1062", id="error-of-a-text-that-is-not-read",
    ),
    pytest.param((GTID, table_map(1), insert(2, [1]), XID), 2, "WRITE_ROWS_V1", "no TABLE_MAP", id="rows-without-map"),
    pytest.param(
        (GTID, query(b"CREATE TABLE t (a INT) AS SELECT s AS a FROM o.t"), table_map(1), insert(1, [1]), XID),
        1, "QUERY", "a table in the form in which a server logs it, with SELECT", id="a-query-in-front-of-its-rows",
    ),
    pytest.param(
        (GTID, query(b"INSERT INTO t VALUES (1)"), query(b"XA COMMIT X'31',X'',1")),
        2, "QUERY", "an XA COMMIT or XA ROLLBACK with changes of its own", id="xa-commit-with-changes",
    ),
    pytest.param(
        (GTID, query(b"SET STATEMENT max_statement_time=1, sql_mode='' FOR INSERT INTO t VALUES ('\\n')"), XID),
        1, "QUERY", "after SET STATEMENT sql_mode", id="text-read-under-another-mode",
    ),
    pytest.param(
        (GTID, table_map(1, columns=(EVERY_COLUMN["json"],)), wire(39, rows_body(39, 1, 1, [b"\0", b"\1"], b"")), XID),
        2, "PARTIAL_UPDATE_ROWS", "PARTIAL_JSON", id="partial-json",
    ),
    pytest.param(
        (GTID, query(b"INSERT INTO t SELECT `release_all_locks`/* x */()"), XID),
        1, "QUERY", "releases all locks of its session", id="a-lane-s-lease-given-up",
    ),
    pytest.param(
        (mariadb_gtid(1, STANDALONE), query(b"CREATE TABLE t (a INT CHECK (a > RELEASE_ALL_LOCKS()))")),
        1, "QUERY", "releases all locks of its session", id="a-lane-s-lease-given-up-by-a-table",
    ),
    pytest.param(
        (mariadb_gtid(1, STANDALONE), query(b"ALTER TABLE t PARTITION BY SYSTEM_TIME INTERVAL 1 + SLEEP(9) DAY")),
        1, "QUERY", "a table with SLEEP in the INTERVAL of PARTITION BY SYSTEM_TIME", id="what-a-parser-computes",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("events", "number", "event", "what"), REFUSED)
def test_events_that_cannot_be_applied_are_refused_with_file_and_offset(
    events: tuple[bytes, ...], number: int, event: str, what: str
) -> None:
    transaction, log = only(events)
    with pytest.raises(UnsupportedEventError) as refused:
        dissect(transaction, log)
    assert str(refused.value).startswith(place(events, number) + event)
    assert what in str(refused.value)


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
@pytest.mark.parametrize(("events", "number", "event", "what"), REFUSED)
def test_the_filter_stops_at_it_and_never_skips_it(
    events: tuple[bytes, ...], number: int, event: str, what: str, columnar: bool
) -> None:
    with pytest.raises(BinlogError, match=event):
        filtered([rows(1, "a"), events, rows(3, "a")], columnar=columnar)


def test_a_text_that_reads_the_same_in_every_mode_is_applied_behind_set_statement() -> None:
    sql = b"SET STATEMENT sql_mode='' FOR INSERT INTO t VALUES ('n')"
    [part] = dissect(*only((GTID, query(sql), XID)))
    assert isinstance(part, StatementPart)
    assert part.sql == sql


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"--\x01 x\nALTER/* y */TABLE t # z\n ADD a INT", b"ALTER TABLE t  \n ADD a INT"),
        (b"/* app:1 */ INSERT INTO t /* x */ VALUES (1)", b"INSERT INTO t /* x */ VALUES (1)"),
    ],
)
def test_what_is_sent_is_the_text_without_the_comments_around_its_words(sql: bytes, expected: bytes) -> None:
    transaction, log = only((mariadb_gtid(1, STANDALONE), query(sql)))
    assert texts(dissect(transaction, log)) == [expected]


def texts(parts: tuple[object, ...]) -> list[bytes]:
    return [part.sql for part in parts if isinstance(part, StatementPart)]


def test_a_rollback_is_undone_behind_a_savepoint_and_an_empty_one_is_nothing() -> None:
    changed = (GTID, query(b"INSERT INTO t VALUES (1)"), table_map(1, "b"), insert(1, [1]), ROLLBACK)
    parts = dissect(*only(changed))
    name = b"`binlane: rolled back on the source`"
    assert texts(parts) == [b"SAVEPOINT " + name, b"INSERT INTO t VALUES (1)", b"ROLLBACK TO SAVEPOINT " + name]
    assert [type(part) for part in parts[2:4]] == [MapPart, RowsPart]
    assert tables_of_one_kind(parts) == {TableKey("a", "t"), TableKey("b", "t")}
    assert dissect(*only((GTID, ROLLBACK))) == ()
    assert dissect(*only((GTID, query(b"SAVEPOINT s"), ROLLBACK))) == ()


def test_no_savepoint_of_a_transaction_takes_the_place_of_the_one_in_front_of_it() -> None:
    """Attacker: a user of the source, whose rolled-back rows would stay on the target. Servers compare these names
    without letter case and accents."""
    names = [b"`binlane: rolled back on the source`", b"`BINLANE: rolled b\xc3\xa4ck on the source`"]
    for _ in range(3):
        own = [b"SAVEPOINT " + name for name in names]
        statements = (*(query(each) for each in own), query(b"INSERT INTO t VALUES (1)"))
        before, *inside, after = texts(dissect(*only((GTID, *statements, ROLLBACK))))
        assert inside == [*own, b"INSERT INTO t VALUES (1)"]
        name = before.removeprefix(b"SAVEPOINT ")
        assert after == b"ROLLBACK TO SAVEPOINT " + name
        assert name not in names
        assert len(name) - 2 <= 64
        # who knows the name of one transaction has another one with it
        names.append(name)


def test_an_xa_transaction_that_is_rolled_back_without_a_prepare_is_undone() -> None:
    """As MySQL logs one that has changed a table without transactions."""
    start, end = query(b"XA START X'67',X'',1"), (query(b"XA END X'67',X'',1"), query(b"XA ROLLBACK X'67',X'',1"))
    parts = dissect(*only((start, query(b"INSERT INTO t VALUES (1)"), *end)))
    name = b"`binlane: rolled back on the source`"
    assert texts(parts) == [b"SAVEPOINT " + name, b"INSERT INTO t VALUES (1)", b"ROLLBACK TO SAVEPOINT " + name]
    assert dissect(*only((start, *end))) == ()


def test_an_error_is_expected_again_and_its_tables_are_named() -> None:
    (part,) = dissect(*only((GTID, query(b"INSERT INTO t VALUES (1), (1)", error=1062), XID)))
    assert isinstance(part, StatementPart)
    assert part.context.error_code == 1062
    assert tables_of_one_kind((part,)) == {TableKey("a", "t")}
    (plain,) = dissect(*only((GTID, query(b"INSERT INTO t VALUES (1), (1)"), XID)))
    assert tables_of_one_kind((plain,)) == frozenset()


def test_behind_a_routine_an_error_or_a_rollback_may_concern_any_table() -> None:
    called = b"INSERT INTO t VALUES (f())"
    for events in ((GTID, query(called, error=1062), XID), (GTID, query(called), ROLLBACK)):
        assert tables_of_one_kind(dissect(*only(events))) == {TableKey("a", "t"), ANY_TABLE}
    assert tables_of_one_kind(dissect(*only((GTID, query(called), XID)))) == frozenset()
    filled = query(b"CREATE TABLE made SELECT f() FROM t", error=1062)
    (part,) = parts = dissect(*only((mariadb_gtid(1, STANDALONE), filled)))
    assert tables_of_one_kind(parts) == {ANY_TABLE}
    assert isinstance(part, StatementPart)
    assert part.facts.unsafe == UNORDERED_ERROR


@pytest.mark.parametrize(("gtid", "is_refused"), [("0", True), ("", False)], ids=["with-gtids", "anonymous"])
@pytest.mark.parametrize("flavor", [Flavor.MYSQL, Flavor.MARIADB])
def test_what_stays_of_a_rolled_back_call_on_mysql_with_gtids_is_a_temporary_table(
    gtid: str, flavor: Flavor, *, is_refused: bool
) -> None:
    """That server lets no transaction change tables of both kinds, and logs no other one that was rolled back."""
    transaction, log = only((GTID, query(b"SELECT a.f()"), ROLLBACK))
    transaction = dataclasses.replace(transaction, gtid=gtid)
    log = dataclasses.replace(log, format=dataclasses.replace(log.format, server_version=VERSIONS[flavor]))
    if is_refused and flavor is Flavor.MYSQL:
        with pytest.raises(UnsupportedEventError, match="has made or dropped a temporary table"):
            dissect(transaction, log)
    else:
        assert len(dissect(transaction, log)) == 3


def test_a_failed_statement_is_unsafe_unless_its_text_orders_the_rows() -> None:
    for sql, error, unsafe in (
        (b"UPDATE t SET a = 1", 1062, UNORDERED_ERROR),
        (b"UPDATE t SET a = 1", 0, None),
        (b"UPDATE t SET a = 1 ORDER BY a", 1062, None),
        (b"INSERT INTO t VALUES (1), (1)", 1062, None),
        (b"INSERT INTO t SELECT UUID() FROM s", 1062, "UUID()"),
    ):
        (part,) = dissect(*only((GTID, query(sql, error=error), XID)))
        assert isinstance(part, StatementPart)
        assert part.facts.unsafe == unsafe, sql


OTHER = b"UPDATE (SELECT  NAME_CONST('x',1) AS y) AS d, other.t SET other.t.n = 0 -- ',5) AS y) AS d, t SET n = 1"
"""A program of database ``a`` has written to ``a.t``, by a variable called ``x',1) AS y) AS d, other.t SET ...``."""


@pytest.mark.parametrize(
    ("sql", "listed", "refused"),
    [
        pytest.param(OTHER, None, ("other", "other"), id="another-table"),
        pytest.param(
            b"INSERT INTO t VALUES ( NAME_CONST('a',1), (SELECT s FROM other.secret), NAME_CONST('b',5))",
            None, ("other", "other"), id="another-table-s-values",
        ),
        pytest.param(
            b"INSERT INTO t VALUES ( NAME_CONST('',1), other.f()) -- ',5), 2)",
            None, ("other", "other"), id="a-function",
        ),
        pytest.param(
            b"INSERT INTO t SELECT  NAME_CONST('v',5) FROM other.u",
            (b"a", b"other"), ("other", ""), id="listed-by-mysql",
        ),
        pytest.param(
            b"INSERT INTO t SELECT  NAME_CONST('v',5) FROM other.u", (b"a",), ("other", "other"), id="not-listed",
        ),
        pytest.param(
            b"INSERT INTO t (SELECT  NAME_CONST('v',5) FROM u", None, ("databases, which", "databases, which"),
            id="not-read",
        ),
        pytest.param(b"UPDATE t SET n =  NAME_CONST('v',5)", None, ("", ""), id="its-own-table"),
        pytest.param(b"UPDATE other.t SET n = 5", None, ("", ""), id="without-variables"),
    ],
)  # fmt: skip
def test_a_variable_s_name_reaches_no_other_database(
    sql: bytes, listed: tuple[bytes, ...] | None, refused: tuple[str, str]
) -> None:
    """Of MariaDB, and of MySQL, which logs the databases that a statement has reached."""
    status = b"" if listed is None else bytes([12, len(listed)]) + b"".join(each + b"\0" for each in listed)
    for flavor, other in zip((Flavor.MARIADB, Flavor.MYSQL), refused, strict=True):
        transaction, log = only((GTID, query(sql, status=status), XID))
        log = dataclasses.replace(log, format=dataclasses.replace(log.format, server_version=VERSIONS[flavor]))
        if other:
            with pytest.raises(UnsupportedEventError, match=rf"local variables over {other}.*NAME_CONST"):
                dissect(transaction, log)
            rules = dataclasses.replace(log.rules, selection=Selection(allowed=("NAME_CONST", "UNREAD")))
            log = dataclasses.replace(log, rules=rules)
        assert texts(dissect(transaction, log)) == [sql]


def test_a_program_s_own_database_is_compared_as_its_server_compares_names() -> None:
    """With lower_case_table_names a session's database is in lower case, and a program's text is as it was typed."""
    sql = b"UPDATE A.t SET n =  NAME_CONST('v',5)"
    transaction, log = only((GTID, query(sql), XID))
    with pytest.raises(UnsupportedEventError, match="local variables over A"):
        dissect(transaction, log)
    folding = dataclasses.replace(log, rules=dataclasses.replace(log.rules, selection=Selection(folds_names=True)))
    assert texts(dissect(transaction, folding)) == [sql]
    transaction, _ = only((GTID, query(sql.replace(b"A.t", b"Other.t")), XID))
    with pytest.raises(UnsupportedEventError, match="local variables over other"):
        dissect(transaction, folding)


@pytest.mark.parametrize(
    ("sql", "error", "expected"),
    [
        (b"DROP TABLE `a`,`b` /* generated by server */", 0, b"DROP TABLE IF EXISTS `a`,`b` /* generated by server */"),
        (b"DROP TABLE a, b", 1051, b"DROP TABLE IF EXISTS a, b"),
        (b"drop view a, b", 1051, b"drop view IF EXISTS a, b"),
        (b"DROP TABLE `a` /* generated by server */", 0, b"DROP TABLE `a` /* generated by server */"),
        (b"DROP TABLE a, b", 0, b"DROP TABLE a, b"),
        (b"DROP TABLE IF EXISTS a, b /* generated by server */", 0,
         b"DROP TABLE IF EXISTS a, b /* generated by server */"),
    ],
)  # fmt: skip
def test_a_drop_of_which_some_were_missing_drops_the_others(sql: bytes, error: int, expected: bytes) -> None:
    (part,) = dissect(*only((mariadb_gtid(1, STANDALONE), query(sql, error=error))))
    assert isinstance(part, StatementPart)
    assert (part.sql, part.context.error_code) == (expected, 0)


IF_EXISTS = b"\0" + struct.pack("<I", 1 << 28)
"""The flags of a session with MariaDB's sql_if_exists."""


@pytest.mark.parametrize(
    ("sql", "target", "expected"),
    [
        ("DROP TABLE a", Flavor.MYSQL, "DROP TABLE IF EXISTS a"),
        ("DROP TEMPORARY TABLE a", Flavor.MYSQL, "DROP TEMPORARY TABLE IF EXISTS a"),
        ("DROP  FUNCTION f", Flavor.MYSQL, "DROP  FUNCTION IF EXISTS f"),
        ("DROP DATABASE d", Flavor.MYSQL, "DROP DATABASE IF EXISTS d"),
        ("DROP EVENT e", Flavor.MYSQL, "DROP EVENT e"),
        ("DROP VIEW IF EXISTS v", Flavor.MYSQL, "DROP VIEW IF EXISTS v"),
        ("DROP INDEX i ON t", Flavor.MYSQL, "DROP INDEX i ON t"),
        # the lane's session has the variable, too
        ("DROP TABLE a", Flavor.MARIADB, "DROP TABLE a"),
    ],
)
def test_a_drop_of_a_session_that_takes_missing_objects_takes_them_on_mysql(
    sql: str, target: Flavor, expected: str
) -> None:
    transaction, log = only((mariadb_gtid(1, STANDALONE), query(sql.encode(), status=IF_EXISTS)))
    (part,) = dissect(transaction, dataclasses.replace(log, target=target))
    assert isinstance(part, StatementPart)
    assert part.sql.decode() == expected


@pytest.mark.parametrize(
    ("status", "is_applied"),
    [(b"\x82\2", False), (b"\x82\4" + bytes(8), True), (b"\x82\x08" + bytes(8), False), (b"", True)],
    ids=["start", "commit", "rollback", "whole"],
)
def test_a_two_phase_alter_is_applied_at_its_commit(status: bytes, is_applied: bool) -> None:
    error = 1062 if status[1:2] == b"\x08" else 0
    event = query(b"ALTER TABLE t ADD b INT", status=status, error=error)
    assert bool(dissect(*only((mariadb_gtid(1, STANDALONE), event)))) is is_applied


def test_a_table_that_rows_fill_is_made_without_mysql_s_clause_for_it() -> None:
    """No MariaDB knows the clause, and on MySQL it begins a transaction that takes nothing but rows."""
    made, options = b"CREATE TABLE `t` (\n  `a` int DEFAULT ') START TRANSACTION'\n)", b" ENGINE=InnoDB COMMENT='c'"
    for behind in (b"", options):
        events = (GTID, query(made + b" START TRANSACTION" + behind), table_map(1), insert(1, [1]), XID)
        parts = dissect(*only(events))
        assert texts(parts) == [made + behind]
        # a block of its own: the target commits the CREATE before the rows, and with it whatever came before
        assert commits_itself(parts)
    assert [type(part) for part in parts] == [StatementPart, MapPart, RowsPart]


class Counted(list[Part]):
    """Parts, and how many of them whoever iterates now has taken."""

    taken = 0

    def __iter__(self) -> Iterator[Part]:
        for self.taken, part in enumerate(super().__iter__(), 1):
            yield part


def test_a_create_table_select_of_any_size_goes_through_in_pieces_behind_its_create() -> None:
    made = query(b"CREATE TABLE `t` (\n  `a` int\n) START TRANSACTION")
    inserted = [insert(1, [row], ends=row == 99) for row in range(100)]
    parts = Counted(dissect(*only((GTID, made, table_map(1), *inserted, XID))))
    kinds, taken = list[ItemKind](), list[int]()

    class Sink(MemorySink):
        def add(self, header: BlockHeader, items: Iterable[Item]) -> None:
            for item in items:
                kinds.append(item.kind)
                taken.append(parts.taken)

    writer = LaneWriter({0: Sink(0, b"")}, BlockBuilder(BlockLimits(1000, 500, 500, 500)), LaneEdges())
    writer.add(transaction_header(1, LogPosition("b.1", 4), "0-1-1", 1.0), parts, 0)
    assert kinds == [ItemKind.DDL, *[ItemKind.ROWS] * (len(kinds) - 1)]
    assert taken[0] == 1
    # a BINLOG statement's worth of events, and the one that did not fit
    assert max(after - before for before, after in itertools.pairwise(taken)) <= 500 // len(inserted[0]) + 1


@pytest.mark.parametrize(
    ("begun", "sql"),
    [
        (GTID, b"CREATE TABLE `t` (\n  `\xc3\xa4` int\n)"),
        (GTID, b"CREATE TABLE `t` (\n  `\xc3\xa4` int\n) START TRANSACTION"),
        (mariadb_gtid(1, STANDALONE), b"CREATE DEFINER=`a`@`%` PROCEDURE `p`()\n    COMMENT '\xc3\xa4'\nSELECT 1"),
    ],
)
def test_a_statement_in_two_character_sets_is_refused_before_anything_is_written(begun: bytes, sql: bytes) -> None:
    """What a client with SET NAMES latin1 makes the servers log; the same text by a client of UTF-8 passes."""
    ending = (table_map(1), insert(1, [1]), XID) if begun is GTID else ()
    with pytest.raises(UnsupportedEventError, match="in another character set than the rest") as refused:
        dissect(*only((begun, query(sql, status=b"\4" + struct.pack("<HHH", 8, 8, 8)), *ending)))
    assert str(refused.value).startswith(place((begun,), 1))
    assert dissect(*only((begun, query(sql, status=b"\4" + struct.pack("<HHH", 45, 45, 45)), *ending)))
    if begun is GTID:
        latin1 = b"\4" + struct.pack("<HHH", 8, 8, 8)
        text = query(b"CREATE TABLE `t` (\n  `\xe4` int)", status=latin1)
        assert dissect(*only((mariadb_gtid(1, STANDALONE), text)))


def test_group_replication_s_own_events_change_nothing() -> None:
    events = (GTID, wire(T.VIEW_CHANGE, bytes(60)), wire(T.TRANSACTION_CONTEXT, bytes(60)), query(b"COMMIT"))
    assert dissect(*only(events)) == ()


def test_parts_come_in_the_order_of_the_log_without_what_only_frames_them() -> None:
    events = (
        GTID, query(b"INSERT INTO t VALUES (1)"), query(b"SAVEPOINT s"), wire(T.ANNOTATE_ROWS, b"insert"),
        table_map(1, "b"), insert(1, [1, 2, 3]), XID,
    )  # fmt: skip
    parts = dissect(*only(events))
    assert [type(part) for part in parts] == [StatementPart, StatementPart, MapPart, RowsPart]
    assert [part.sql for part in parts if isinstance(part, StatementPart)] == [
        b"INSERT INTO t VALUES (1)",
        b"SAVEPOINT s",
    ]
    (changed,) = (part for part in parts if isinstance(part, RowsPart))
    assert changed.counts == RowCounts(inserts=3)
    assert changed.table.key == TableKey("b", "t")
    assert changed.event == insert(1, [1, 2, 3])


def test_variables_belong_to_the_next_statement_alone() -> None:
    events = (
        GTID, wire(T.INTVAR, b"\2" + struct.pack("<Q", 77)), wire(T.RAND, struct.pack("<QQ", 5, 6)),
        query(b"INSERT INTO t VALUES (NULL)"), query(b"INSERT INTO t VALUES (NULL)"), XID,
    )  # fmt: skip
    first, second = (part for part in dissect(*only(events)) if isinstance(part, StatementPart))
    assert (first.context.insert_id, first.context.rand_seeds) == (77, (5, 6))
    assert (second.context.insert_id, second.context.rand_seeds) == (None, None)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE PROCEDURE p() DO RELEASE_ALL_LOCKS()",
        "CREATE DEFINER=u@ EVENT e ON SCHEDULE EVERY 1 DAY DO DO RELEASE_ALL_LOCKS()",
        "CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET @a = RELEASE_ALL_LOCKS()",
        "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING PARTITION BY SYSTEM_TIME INTERVAL 1 WEEK PARTITIONS 4",
    ],
)
def test_what_a_definition_does_not_run_passes(sql: str) -> None:
    (part,) = dissect(*only(alone(1, sql)))
    assert isinstance(part, StatementPart)


def test_drop_temporary_if_exists_passes_as_the_server_writes_it_for_sessions_that_end() -> None:
    (part,) = dissect(*only(alone(1, "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`")))
    assert isinstance(part, StatementPart)


@pytest.mark.parametrize(
    "sql",
    [
        b"INSERT INTO `\xff\xfe`.t VALUES (1)",
        b"INSERT INTO t (`\xff\xfe`) SELECT UUID()",
        b"INSERT INTO t SELECT a AS \xff\xfe, RELEASE_ALL_LOCKS() FROM u",
        b"CREATE FUNCTION f() RETURNS INT BEGIN DECLARE `\xff\xfe` INT; SET GLOBAL init_connect = 'x'; RETURN 1; END",
        b"CREATE FUNCTION `\xff\xfe` RETURNS STRING SONAME 'x.so'",
        b"GRANT ALL ON *.* TO a@b, `\xff\xfe`@b",
    ],
)
def test_a_statement_of_which_a_name_is_not_read_is_refused(sql: bytes) -> None:
    with pytest.raises(UnsupportedEventError, match="no certain characters of its character set"):
        dissect(*only((GTID, query(sql), XID)))


COMPOSED = "SET PASSWORD FOR 'joe'@'%'='{}'"


@pytest.mark.parametrize(
    "password",
    [
        "',      password for 'root'@'localhost'='",
        "',   password='",
        "',                      @a=app.f(),@b='",
        "',              sql_select_limit=0,@b='",
        "',    @a=(select 1 from mysql.user),@b='",
        "' #",
        "\\\\",
    ],
)
@pytest.mark.parametrize("allowed", [(), ("UNREAD",)])
def test_what_an_account_s_owner_has_chosen_is_no_sql(password: str, allowed: tuple[str, ...]) -> None:
    """MariaDB writes it without escapes."""
    transaction, log = only(alone(1, COMPOSED.format(password)))
    log = dataclasses.replace(log, rules=ChannelRules(Selection(allowed=allowed)))
    with pytest.raises(UnsupportedEventError, match=r"without escapes.* set the account's password"):
        dissect(transaction, log)


@pytest.mark.parametrize("password", ["", "invalid", "*" + "0" * 40])
def test_a_hash_passes(password: str) -> None:
    (part,) = dissect(*only(alone(1, COMPOSED.format(password))))
    assert isinstance(part, StatementPart)
    assert part.facts.is_read


def test_a_statement_about_accounts_that_is_ignored_need_not_be_read() -> None:
    transaction, log = only(alone(1, COMPOSED.format("', password='")))
    log = dataclasses.replace(log, rules=ChannelRules(Selection(kinds=(("accounts", "ignore"),))))
    assert not [part for part in dissect(transaction, log) if isinstance(part, StatementPart)]


def test_a_grant_of_mysql_that_a_column_s_name_ends_is_refused() -> None:
    sql = "GRANT SELECT (a) ON other.secret TO joe#) ON `app`.`t` TO 'joe'@'%'"
    transaction, log = only(alone(1, sql))
    log = dataclasses.replace(log, format=FormatDescription("8.0.3"), target=Flavor.MYSQL)
    with pytest.raises(UnsupportedEventError, match="a column's name may hide one"):
        dissect(transaction, log)


@pytest.mark.parametrize("rest", [b" `", b" '", b" \x00", b" /*", b" /*!50000 /*!50000 */"])
@pytest.mark.parametrize("verb", [b"INSERT INTO t SELECT", b"UPDATE t SET a =", b"DELETE FROM t WHERE", b"DO"])
def test_a_statement_that_is_not_read_to_its_end_is_refused(verb: bytes, rest: bytes) -> None:
    with pytest.raises(
        UnsupportedEventError, match=r"no server logs|without an end|read differently|releases all locks|a byte 0"
    ):
        dissect(*only((GTID, query(verb + rest + b" RELEASE_ALL_LOCKS()"), XID)))


def test_a_transaction_without_content_still_counts() -> None:
    described = classify(dissect(*only((GTID, XID))))
    assert described.is_empty
    found = filtered([rows(1, "a"), (GTID, XID), rows(3, "a")], settings(lanes=1))
    assert found.seqnos(0) == [(1, 3)]


def test_a_transaction_stands_where_the_source_has_it_beyond_four_gigabytes() -> None:
    transaction, log = only(rows(1, "a"))
    assert str(log.position(transaction)) == f"binlog.000007:{SHIFT + len(HEAD)}"


@pytest.mark.parametrize(
    ("version", "target", "collation"),
    [
        ("5.6.24-log", Flavor.MYSQL, 45),
        ("5.7.40", Flavor.MYSQL, 45),
        ("8.0.36", Flavor.MYSQL, None),
        ("5.7.40", Flavor.MARIADB, None),
        ("10.11.6-MariaDB", Flavor.MYSQL, 45),
    ],
)
def test_the_default_collation_of_utf8mb4_of_an_older_server_is_written_out(
    version: str, target: Flavor, collation: int | None
) -> None:
    """MySQL 8 and newer take utf8mb4_0900_ai_ci where nothing is said, and log what they took."""
    transaction, log = only(alone(1, "CREATE TABLE t (a CHAR(3)) CHARSET utf8mb4"))
    log = dataclasses.replace(log, format=FormatDescription(version), target=target)
    (part,) = dissect(transaction, log)
    assert isinstance(part, StatementPart)
    assert part.context.default_collation_for_utf8mb4 == collation
