"""The filter over whole windows: both versions give the same bytes, what is left out is counted, the rest is whole."""

from __future__ import annotations

import re
import struct
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from binlane.binlog.reader import LogReader
from binlane.binlog.rows_payload import check_self_contained
from binlane.binlog.transactions import transactions
from binlane.binlog.wire import EventType
from binlane.errors import UnsupportedEventError
from binlane.model import FILTERED_SHARD, Flavor, ItemKind, RowCounts, TableKey
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.transaction.channel_rules import ChannelRules
from binlane.plan.transaction.decode import LogFormat, dissect
from binlane.plan.transaction.parts import FilteredPart, Part, RowsPart, StatementPart
from binlane.plan.window_plan import RuleCounts
from binlane.shards.selection import Selection
from binlane.sql.parse.analyze import analyze
from binlane.sql.parse.lexer import Dialect
from binlane.sql.statement_kinds import kinds_of
from tests.tiers import examples
from tests.unit.binlog.cases import mariadb_gtid, query
from tests.unit.plan.logs import (
    EMPTY_SCHEMA,
    IN_TRANSACTION,
    STANDALONE,
    XID,
    Filtered,
    alone,
    ends,
    filtered,
    insert,
    prepare,
    rows,
    segment_of,
    settings,
    statements,
    table_map,
)

Change = tuple[str, str, int]
"""Database, table (one letter), rows: inserted, or deleted if less than 0."""
Log = list[tuple[bytes, ...]]
Rows = Counter[tuple[TableKey, bool]]


def many(seqno: int, *done: list[Change], maps_only: str = "") -> tuple[bytes, ...]:
    """A transaction of row statements: all TABLE_MAPs of one first, then its rows, STMT_END_F on the last."""
    events: list[bytes] = []
    for changes in done:
        ids = {(database, table): ord(database) * 256 + ord(table) for database, table, _ in changes}
        named = dict.fromkeys(
            [*((database, table) for database, table, _ in changes), *((each, "t") for each in maps_only)]
        )
        for database, table in named:
            event = table_map(ord(database) * 256 + ord(table), database)
            events.append(event.replace(b"\0\1t\0", b"\0\1" + table.encode() + b"\0"))
        for place, (database, table, count) in enumerate(changes):
            event = insert(ids[database, table], range(abs(count)), ends=place == len(changes) - 1)
            events.append(event if count > 0 else event[:4] + bytes([EventType.DELETE_ROWS_V1]) + event[5:])
    return (mariadb_gtid(seqno, IN_TRANSACTION), *events, XID)


CHANGES = st.tuples(st.sampled_from("aaabc"), st.sampled_from("tuv"), st.sampled_from([1, 2, 3, -1, -2]))
STATEMENT = st.lists(CHANGES, min_size=1, max_size=3)


@st.composite
def windows(draw: st.DrawFn) -> tuple[Log, Rows]:
    """A log, and the rows that it changes by table and by whether they are deleted."""
    log: Log = []
    changed: Rows = Counter()
    open_xa: dict[str, list[Change]] = {}

    def count(changes: list[Change]) -> None:
        for database, table, number in changes:
            changed[TableKey(database, table), number < 0] += abs(number)

    for seqno in range(1, draw(st.integers(1, 12)) + 1):
        kind = draw(st.sampled_from(["rows"] * 5 + ["one database"] * 5 + ["ddl", "statement", "empty", "xa"]))
        name = draw(st.sampled_from("abc"))
        if kind in ("rows", "one database"):
            done = draw(st.lists(STATEMENT, min_size=1, max_size=3))
            if kind == "one database":
                done = [[(name, table, number) for _, table, number in each] for each in done]
            for each in done:
                count(each)
            log.append(many(seqno, *done, maps_only=name if draw(st.booleans()) else ""))
        elif kind == "ddl":
            log.append(alone(seqno, "CREATE TABLE u (a INT)", name))
        elif kind == "statement":
            log.append(statements(seqno, "SAVEPOINT s", "UPDATE u SET a = 1", database=name))
        elif kind == "empty":
            log.append(rows(seqno))
        elif name in open_xa:
            count(open_xa.pop(name))
            log.append(ends(seqno, "COMMIT", name))
        else:
            other = draw(st.sampled_from("abc"))
            open_xa[name] = [(each, "t", 2) for each in dict.fromkeys((name, other))]
            log.append(prepare(seqno, name, *dict.fromkeys((name, other)), count=2))
    return log, changed


SELECTIONS = [
    Selection(exclude_databases=("b*",)),
    Selection(include_databases=("a",)),
    Selection(exclude_tables=("*.u",)),
    Selection(exclude_tables=("a.*", "b.[tu]")),
    Selection(include_tables=("a.t", "?.v")),
    Selection(include_databases=("[ab]",), include_tables=("*.[tu]",), exclude_tables=("b.t",)),
    Selection(exclude_databases=("*",)),
    Selection(exclude_databases=("nobody",)),
    Selection(kinds=(("delete", "ignore"),)),
    Selection(exclude_tables=("a.u",), kinds=(("delete", "ignore"), ("truncate", "refuse"))),
    Selection(kinds=(("create", "ignore"),)),
]
REDUCER = Reducer({TableKey(name, "t"): TableRule(1, (0,), (0,)) for name in "ab"}, 400, 1 << 16)
CHOSEN = settings(shard_list="a=0\nb=1\nc=2\n", fold_gap=1, block_transactions=3, payload_bytes=400)


def counts_of(changed: Rows) -> dict[TableKey, RowCounts]:
    found: dict[TableKey, RowCounts] = {}
    for (key, is_delete), count in changed.items():
        found[key] = found.get(key, RowCounts()) + (RowCounts(deletes=count) if is_delete else RowCounts(count))
    return found


def flat(found: Filtered) -> list[object]:
    taken: list[object] = []
    for lane in sorted(found.lanes):
        for header, items in found.lanes[lane]:
            taken += [lane, header, *((item.kind, item.payload, item.rows, item.context) for item in items)]
    return taken


@hypothesis_settings(max_examples=examples(30), deadline=None)
@given(windows(), st.sampled_from(SELECTIONS), st.data())
def test_the_columnar_version_filters_as_the_plain_one_byte_for_byte(
    window: tuple[Log, Rows], selection: Selection, data: st.DataObject
) -> None:
    log, _ = window
    cuts = sorted(data.draw(st.sets(st.integers(1, len(log)))))
    reducer = data.draw(st.sampled_from([None, REDUCER]))
    with_filter = replace(
        CHOSEN, filters=selection.to_values(), block_bytes=data.draw(st.sampled_from([1, 160, 1 << 20]))
    )
    plain, columnar = (
        filtered(log, with_filter, cuts=cuts, columnar=version, reducer=reducer) for version in (False, True)
    )
    assert flat(columnar) == flat(plain)
    assert columnar.routing.to_json() == plain.routing.to_json()
    assert columnar.plan.to_json() == plain.plan.to_json()


@hypothesis_settings(max_examples=examples(30), deadline=None)
@given(windows(), st.sampled_from(SELECTIONS), st.booleans())
def test_filtered_changes_are_counted_and_all_others_written(
    window: tuple[Log, Rows], selection: Selection, is_columnar: bool
) -> None:
    log, changed = window
    found = filtered(log, replace(CHOSEN, filters=selection.to_values()), columnar=is_columnar)
    taken: Rows = Counter()
    for (key, is_delete), count in changed.items():
        if selection.rows(key, is_delete=is_delete) is None:
            taken[key, is_delete] = count
    assert {key: each.read for key, each in found.plan.tables.items()} == counts_of(changed)
    assert {key: each.written for key, each in found.plan.tables.items() if each.written.total} == counts_of(taken)
    assert found.plan.applied_tables == counts_of(taken).keys()
    assert sum(each.rows for each in found.plan.filtered.values()) == changed.total() - taken.total()
    items = [item for blocks in found.lanes.values() for _, items in blocks for item in items]
    assert sum((item.rows for item in items), RowCounts()) == found.plan.rows
    assert found.plan.rows == sum(counts_of(taken).values(), RowCounts())
    touched: set[TableKey] = set()
    for item in items:
        if item.kind is ItemKind.ROWS:
            touched |= check_self_contained(item.payload)
    assert touched == counts_of(taken).keys()
    counted = [header.transactions for blocks in found.lanes.values() for header, _ in blocks]
    assert sum(counted) == len(log) == sum(each.transactions for each in found.plan.shards.values())


@pytest.mark.parametrize("columnar", [False, True])
def test_the_last_rows_left_of_a_filtered_statement_end_it(columnar: bool) -> None:
    """Its last rows event is left out: without an end of its own it would go on in the next statement."""
    log = [many(1, [("a", "t", 1), ("a", "u", 1)], [("a", "v", 1)]), many(2, [("a", "t", 1)])]
    chosen = replace(CHOSEN, filters=Selection(exclude_tables=("a.u",)).to_values())
    [(_, [item])] = filtered(log, chosen, columnar=columnar).lanes[0]
    plain = filtered([many(1, [("a", "t", 1)], [("a", "v", 1)]), log[1]], CHOSEN, columnar=columnar)
    assert item.payload == plain.lanes[0][0][1][0].payload


def parts_of(*done: list[Change], selection: Selection) -> tuple[Part, ...]:
    data, segment = segment_of([many(1, *done)])
    reader = LogReader(data, segment.source_file)
    return dissect(
        next(transactions(reader)), LogFormat(reader.format, "log", 0, Flavor.MARIADB, ChannelRules(selection))
    )


@pytest.mark.parametrize(
    ("rules", "sql", "expected"),
    [
        (Selection(exclude_tables=("a.u",)), "DROP TRIGGER r", "DROP TRIGGER IF EXISTS r"),
        (
            Selection(exclude_tables=("a.u",)),
            "SET STATEMENT sql_mode='' FOR DROP TRIGGER a.r",
            "SET STATEMENT sql_mode='' FOR DROP TRIGGER IF EXISTS a.r",
        ),
        (Selection(exclude_tables=("a.u",)), "DROP VIEW w", "DROP VIEW IF EXISTS w"),
        (Selection(exclude_tables=("a.u",)), "DROP VIEW IF EXISTS w", "DROP VIEW IF EXISTS w"),
        (Selection(exclude_tables=("a.u",)), "DROP VIEW  IF EXISTS w", "DROP VIEW  IF EXISTS w"),
        (Selection(exclude_tables=("a.u",)), "DROP TRIGGER\n IF EXISTS r", "DROP TRIGGER\n IF EXISTS r"),
        (Selection(exclude_tables=("a.u",)), "DROP TABLE t", "DROP TABLE t"),
        (Selection(exclude_tables=("b.u",)), "DROP TRIGGER r", "DROP TRIGGER r"),
        (Selection(), "DROP VIEW w", "DROP VIEW w"),
    ],
)
def test_what_hangs_on_a_table_that_is_left_out_may_be_missing_when_it_is_dropped(
    rules: Selection, sql: str, expected: str
) -> None:
    data, segment = segment_of([alone(1, sql, "a")])
    reader = LogReader(data, segment.source_file)
    form = LogFormat(reader.format, "log", 0, Flavor.MARIADB, ChannelRules(rules))
    [part] = dissect(next(transactions(reader)), form)
    assert isinstance(part, StatementPart)
    assert part.sql.decode() == expected


def test_the_last_rows_that_are_left_of_a_statement_end_it() -> None:
    done = [[("a", "t", 1), ("a", "v", 1), ("a", "u", 1)], [("a", "u", 1), ("a", "t", 1)]]
    parts = parts_of(*done, selection=Selection(exclude_tables=("a.u",)))
    kept = [(part.table.key.table, part.event[25] & 1) for part in parts if isinstance(part, RowsPart)]
    assert kept == [("t", 0), ("v", 1), ("t", 1)]
    assert [part.counts for part in parts if isinstance(part, FilteredPart)] == [RowCounts(2)]


@pytest.mark.parametrize("columnar", [False, True])
def test_a_table_whose_rows_are_not_in_a_statement_that_is_left_out_is_not_looked_at(columnar: bool) -> None:
    """The TABLE_MAP of a taken table, and rows of another one alone: the precheck is not to ask for the first."""
    log = [many(1, [("a", "u", 1)], maps_only="a"), many(2, [("a", "v", 1)])]
    found = filtered(log, replace(CHOSEN, filters=Selection(exclude_tables=("a.u",)).to_values()), columnar=columnar)
    assert found.plan.table_maps.keys() == {TableKey("a", "v")}


def test_a_statement_cut_by_the_filter_is_the_same_in_both_versions_wherever_its_payload_ends() -> None:
    log = [many(n, [("a", "v", 1)], [("a", "t", 2), ("a", "u", 1)]) for n in range(1, 9)]
    for payload_bytes in (100, 150, 200, 300):
        chosen = replace(CHOSEN, payload_bytes=payload_bytes, filters=Selection(exclude_tables=("a.u",)).to_values())
        plain, columnar = (filtered(log, chosen, columnar=version) for version in (False, True))
        assert flat(columnar) == flat(plain)
        assert columnar.plan.to_json() == plain.plan.to_json()


LATIN1 = struct.pack("<BHHH", 4, 8, 8, 8)
OF_OTHERS = (
    "INSERT INTO other.`订单` VALUES (1, '产品-A', 'foo-bar', 'x/y', 'a.b@c.example', '2026-01-01 10:00:00.5')",
    "UPDATE other.`员工` e SET e.`手机` = 'x'",
    "DELETE FROM `other`.`员工` WHERE `手机` = '产品-A.x'",
    "ALTER TABLE other.`员工表` ADD `手机号` VARCHAR(20) COMMENT '员.工'",
)
OF_THE_CHANNEL = (
    b"RENAME TABLE other.`p\xe9` TO other.q -- x` TO other.q2, app.t TO app.u",
    b"UPDATE other.`p\xe9` SET n = '`, app . t SET n = 1 -- '",
    b"UPDATE other.`p\xe9` SET n = '`, `app` . t SET n = 1 -- '",
    b"UPDATE other.`p\xe9` SET n = '`, app/* a comment */ . t SET n = 1 -- '",
    b"UPDATE other.`p\xe9` SET n = '`, `app`/* a comment */.t SET n = 1 -- '",
)
"""In gbk the name ends behind the next quote."""


@pytest.mark.parametrize("text", [*map(str.encode, OF_OTHERS), *OF_THE_CHANNEL])
def test_a_text_is_left_out_if_it_is_about_other_databases_in_each_character_set(text: bytes) -> None:
    status = LATIN1 if text in OF_THE_CHANNEL else b""
    log = [(mariadb_gtid(1, STANDALONE), query(text, database=b"other", status=status)), rows(2, "a")]
    chosen = replace(CHOSEN, filters=Selection(exclude_databases=("other",)).to_values())

    if text in OF_THE_CHANNEL:
        with pytest.raises(UnsupportedEventError, match="may be another statement in another character set"):
            filtered(log, chosen)
        return

    assert filtered(log, chosen).plan.filtered == {'exclude_databases "other"': RuleCounts(0, 1)}


def test_transactions_without_anything_left_move_positions_and_need_no_barrier() -> None:
    log = [
        rows(1, "a"), rows(2, "b"), rows(3, "a", "b"), alone(4, "CREATE TABLE t (a INT)", "b"),
        statements(5, "SAVEPOINT s", "UPDATE t SET a = 1", database="b"), rows(6, "c"),
    ]  # fmt: skip
    found = filtered(log, replace(CHOSEN, filters=Selection(exclude_databases=("b",)).to_values()))
    assert found.routing.barriers == ()
    shards = {name: (each.lane, each.transactions) for name, each in found.plan.shards.items()}
    assert shards == {"a": (0, 2), "c": (2, 1), FILTERED_SHARD: (0, 3)}
    assert found.plan.filtered == {'exclude_databases "b"': RuleCounts(2, 2)}
    assert Counter(found.plan.kinds) == Counter({"rows": 3})
    assert not found.plan.altered.names(TableKey("b", "t"))


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("INSERT INTO a.t SELECT * FROM b.t", "a statement over a.t, which the filter takes, and b.t, which it leaves"),
        ("DROP TABLE a.t, b.t", "a statement over a.t"),
        ("RENAME TABLE b.t TO a.t", "a statement over a.t"),
        ("CREATE TABLE a.n (x INT REFERENCES b.t (x))", "a statement over a.n"),
        ("CREATE VIEW a.v AS SELECT * FROM b.t", "a statement over a.v"),
        ("UPDATE a.t SET x = b.f(1)", "a statement of which the filter cannot tell the tables (it calls a routine)"),
        ("SELECT b.p()", "a statement of which the filter cannot tell the tables (it calls a routine)"),
        ("DROP DATABASE c", "a DROP of the database c, of which the filter takes some tables only"),
    ],
)
def test_a_statement_that_can_be_neither_taken_nor_left_out_is_refused_by_name_and_place(sql: str, why: str) -> None:
    chosen = replace(CHOSEN, filters=Selection(exclude_databases=("b",), exclude_tables=("c.log",)).to_values())
    with pytest.raises(UnsupportedEventError) as refused:
        filtered([rows(1, "a"), alone(2, sql)], chosen)
    said = str(refused.value)
    assert said.startswith("binlog.000007:")
    assert f"QUERY: {why}" in said
    assert sql in said
    filtered([rows(1, "a"), alone(2, sql)], settings())


@pytest.mark.parametrize(
    ("sql", "is_taken"),
    [
        ("DROP TABLE a.t, a.u", True),
        ("DROP TABLE b.t, c.log", False),
        ("INSERT INTO t SELECT * FROM a.u", True),
        ("CREATE DATABASE c", True),
        ("CREATE DATABASE b", False),
        ("DROP DATABASE b", False),
        ("CREATE PROCEDURE b.p() DELETE FROM a.t", False),
        ("CREATE TRIGGER r AFTER INSERT ON t FOR EACH ROW DELETE FROM b.t", True),
        ("CREATE USER u", True),
        ("GRANT SELECT ON *.* TO u", True),
        ("GRANT SELECT ON b.* TO u", True),
        ("GRANT SELECT ON a.t TO u", True),
        ("GRANT PROXY ON log TO u", True),
        ("GRANT log TO u", True),
        ("GRANT SELECT (x), UPDATE ON `c`.`log` TO `u`@`%`", False),
        ("GRANT SELECT ON TABLE b.t TO u", False),
        ("REVOKE SELECT ON c.log FROM u", False),
        ("GRANT EXECUTE ON PROCEDURE b.log TO u", False),
        ("GRANT EXECUTE ON PACKAGE BODY b.log TO u", False),
        ("REVOKE EXECUTE ON FUNCTION c.log FROM u", True),
        ("TRUNCATE b.t", False),
    ],
)
def test_a_statement_whose_tables_are_all_of_one_kind_is_taken_or_left_out(sql: str, is_taken: bool) -> None:
    chosen = replace(CHOSEN, filters=Selection(exclude_databases=("b",), exclude_tables=("c.log",)).to_values())
    found = filtered([alone(1, sql)], chosen)
    items = [item for blocks in found.lanes.values() for _, items in blocks for item in items]
    assert [item.payload.decode() for item in items] == ([sql] if is_taken else [])
    assert sum(each.statements for each in found.plan.filtered.values()) == (0 if is_taken else 1)


def test_a_statement_through_a_view_is_refused() -> None:
    schema = replace(EMPTY_SCHEMA, views=frozenset({TableKey("a", "v")}))
    log = [rows(1, "a"), statements(2, "UPDATE v SET a = 1")]
    filtered(log, CHOSEN, schema=schema)
    with pytest.raises(
        UnsupportedEventError, match=r"^binlog\.000007: seqno 2: a statement uses the view a\.v, so its tables"
    ):
        filtered(log, replace(CHOSEN, filters=Selection(exclude_databases=("b",)).to_values()), schema=schema)


def test_another_filter_is_another_plan_where_it_changes_anything() -> None:
    log = [rows(1, "a"), rows(2, "b")]
    digests = {
        filtered(log, replace(CHOSEN, filters=Selection(exclude_databases=names).to_values())).plan.digest
        for names in ((), ("a",), ("b",), ("a", "b"))
    }
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("selection", "key", "rule"),
    [
        (Selection(), "a.t", None),
        (Selection(include_databases=("shop_*",)), "shop_1.t", None),
        (Selection(include_databases=("shop_*",)), "other.t", "not in include_databases"),
        (Selection(exclude_databases=("o?her",)), "other.t", 'exclude_databases "o?her"'),
        (Selection(include_databases=("*",), exclude_databases=("x",)), "x.t", 'exclude_databases "x"'),
        (Selection(include_tables=("a.t",)), "a.u", "not in include_tables"),
        (Selection(include_tables=("a.*",), exclude_tables=("*.log",)), "a.log", 'exclude_tables "*.log"'),
        (Selection(exclude_databases=("Shop",)), "shop.t", None),
        (Selection(exclude_databases=("Shop",), folds_names=True), "shop.t", 'exclude_databases "Shop"'),
        (Selection(exclude_databases=("shop",), folds_names=True), "SHOP.t", 'exclude_databases "shop"'),
    ],
)
def test_a_table_is_taken_or_left_out_by_a_rule_that_has_a_name(
    selection: Selection, key: str, rule: str | None
) -> None:
    database, table = key.split(".")
    assert selection.table(TableKey(database, table)) == rule
    assert Selection.of(selection.to_values()).table(TableKey(database, table)) == rule


@pytest.mark.parametrize("columnar", [False, True])
def test_refused_rows_are_named_with_their_place(columnar: bool) -> None:
    refusing = replace(CHOSEN, filters=Selection(kinds=(("delete", "refuse"),)).to_values())
    filtered([many(1, [("a", "t", 2)])], refusing, columnar=columnar)
    with pytest.raises(UnsupportedEventError) as refused:
        filtered([many(1, [("a", "t", 2)]), many(2, [("a", "t", -1)])], refusing, columnar=columnar)
    assert re.match(
        r'binlog\.000007:\d+: DELETE_ROWS_V1: rows of a\.t: the filter refuses it \(kinds\.delete = "refuse"\);',
        str(refused.value),
    )
    both = Selection(exclude_databases=("a",), kinds=(("delete", "refuse"),))
    filtered([many(2, [("a", "t", -1)])], replace(CHOSEN, filters=both.to_values()), columnar=columnar)


KINDS_OF = [
    ("DROP TABLE t", "drop"),
    ("DROP TABLE IF EXISTS t, u", "drop"),
    ("drop view v", "drop"),
    ("DROP INDEX i ON t", "drop"),
    ("DROP DATABASE a", "drop_database"),
    ("DROP SCHEMA IF EXISTS a", "drop_database"),
    ("/*!40000 DROP DATABASE IF EXISTS a */", "drop_database"),
    ("TRUNCATE t", "truncate"),
    ("ALTER TABLE t TRUNCATE PARTITION p", "alter truncate"),
    ("ALTER TABLE t DROP PARTITION p", "alter drop"),
    ("ALTER TABLE t DROP COLUMN c", "alter"),
    ("RENAME TABLE t TO u", "rename"),
    ("ALTER TABLE t RENAME u", "alter rename"),
    ("ALTER TABLE t RENAME COLUMN a TO b", "alter"),
    ("CREATE TABLE t (a INT)", "create"),
    ("CREATE OR REPLACE TABLE t (a INT)", "create drop"),
    ("CREATE OR REPLACE DATABASE a", "create drop_database"),
    ("SET STATEMENT max_statement_time=1 FOR DROP TABLE t", "drop"),
    ("SET STATEMENT max_statement_time=(SELECT 1 FOR UPDATE) FOR DELETE FROM t", "delete"),
    ("SET STATEMENT max_statement_time=1 FOR SET STATEMENT sql_mode='' FOR DELETE FROM t", "delete"),
    ("SET STATEMENT max_statement_time=b.for (SELECT 1) FOR DELETE FROM t", "delete"),
    ("SET STATEMENT max_statement_time=PREVIOUS VALUE FOR truncate FOR DELETE FROM t", "delete"),
    ("DROP TEMPORARY TABLE t", ""),
    ("CREATE USER u", "accounts"),
    ("GRANT SELECT ON a.* TO u", "accounts"),
    ("DELETE FROM t", "delete"),
    ("WITH c AS (SELECT 1) DELETE FROM t WHERE a IN (SELECT * FROM c)", "delete"),
    ("INSERT INTO t VALUES (1)", ""),
    ("OPTIMIZE TABLE t", ""),
    ("DROP FROBNICATE x", "drop"),
]


@pytest.mark.parametrize(("sql", "kinds"), KINDS_OF)
def test_a_statement_has_the_kinds_of_what_it_does(sql: str, kinds: str) -> None:
    facts = analyze(sql, database="a", flavor=Flavor.MARIADB)
    assert sorted(kinds_of(sql, facts, Dialect(Flavor.MARIADB))) == sorted(kinds.split())


@pytest.mark.parametrize(
    ("sql", "kinds", "outcome"),
    [
        ("DROP TABLE a.t", {"drop": "ignore"}, 'kinds.drop = "ignore"'),
        ("DROP TABLE a.t, b.t", {"drop": "ignore"}, 'kinds.drop = "ignore"'),
        ("DROP TABLE b.t", {"drop": "refuse"}, 'exclude_databases "b"'),
        ("DROP TABLE a.t", {"drop": "refuse"}, "refused"),
        ("DROP TABLE a.t", {"truncate": "refuse"}, "taken"),
        ("CREATE OR REPLACE TABLE a.t (x INT)", {"drop": "ignore"}, "refused"),
        ("CREATE OR REPLACE TABLE a.t (x INT)", {"drop": "ignore", "create": "ignore"}, 'kinds.create = "ignore"'),
        ("DROP DATABASE c", {}, "refused"),
        ("DROP DATABASE c", {"drop_database": "apply"}, "taken"),
        ("DROP DATABASE c", {"drop_database": "ignore"}, 'kinds.drop_database = "ignore"'),
        ("GRANT SELECT ON *.* TO u", {"accounts": "ignore"}, 'kinds.accounts = "ignore"'),
        ("DELETE FROM a.t", {"delete": "ignore"}, 'kinds.delete = "ignore"'),
    ],
)
def test_the_kind_of_a_statement_is_filtered_after_its_tables(sql: str, kinds: dict[str, str], outcome: str) -> None:
    rules = Selection(exclude_databases=("b",), exclude_tables=("c.log",), kinds=tuple(sorted(kinds.items())))
    chosen = replace(CHOSEN, filters=rules.to_values())
    if outcome == "refused":
        with pytest.raises(UnsupportedEventError, match=r"^binlog\.000007:\d+: QUERY: "):
            filtered([alone(1, sql)], chosen)
        return
    found = filtered([alone(1, sql)], chosen)
    assert found.plan.filtered == ({} if outcome == "taken" else {outcome: RuleCounts(0, 1)})
