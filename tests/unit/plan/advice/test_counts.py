"""What `binlane advise` counts of a log, and the settings that it makes of the counts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from binlane.choices import Reduce
from binlane.errors import ConfigError, UnsupportedEventError
from binlane.model import TableKey
from binlane.plan.advice.counts import Counts, WindowCounter
from binlane.plan.advice.settings import Suggestion, lanes_needed, suggestions
from binlane.plan.advice.tenants import pattern_of
from binlane.plan.settings import PlanSettings
from binlane.schema.model import Column, Key, KeyColumn, Schema, Table
from binlane.shards.shard_list import parse_shard_list
from tests.unit.binlog.cases import mariadb_gtid
from tests.unit.plan.logs import (
    EMPTY_SCHEMA,
    HEAD,
    IN_TRANSACTION,
    XID,
    alone,
    bound,
    ends,
    insert,
    manifest_of,
    prepare,
    rows,
    segment_of,
    settings,
    statements,
    table_map,
)

PRIMARY = Key("PRIMARY", True, True, (KeyColumn("x"),))


def schema_of(*databases: str, key: Key = PRIMARY) -> Schema:
    columns = (Column("x", 1, "int", nullable=False),)
    tables = [Table(TableKey(name, "t"), "InnoDB", columns, (key,)) for name in databases]
    return replace(EMPTY_SCHEMA, databases=frozenset(databases), tables={table.key: table for table in tables})


def counts_of(
    log: Sequence[Sequence[bytes]],
    chosen: PlanSettings | None = None,
    schema: Schema | None = None,
    cuts: Sequence[int] = (),
) -> Counts:
    counting = WindowCounter(chosen or settings(), schema, 1)
    segments, start, edges = [], len(HEAD), [0, *cuts, len(log)]
    for first, last in itertools.pairwise(edges):
        data, segment = segment_of(log[first:last], first + 1, start)
        counting.add(data, segment)
        segments.append(segment)
        start = segment.end_offset
    return counting.finish(manifest_of(segments))


def whale(transactions: int = 1000) -> list[tuple[bytes, ...]]:
    """Nine of ten transactions are of the database a; every row is another one."""
    return [
        (
            mariadb_gtid(number, IN_TRANSACTION),
            table_map(1, "abaaaaaaaa"[number % 10]),
            insert(1, [2 * number, 2 * number + 1]),
            XID,
        )
        for number in range(1, transactions + 1)
    ]


def lines(found: Sequence[Suggestion]) -> dict[str, bool]:
    return {each.line: each.changes for each in found}


def test_shards_have_their_transactions_row_changes_and_bytes() -> None:
    log = [
        rows(1, "a", count=3),
        rows(2, "b", count=5),
        rows(3, "a", "b"),
        statements(4, "DELETE FROM t", database="b"),
    ]
    sizes = [sum(map(len, events)) + 4 * len(events) for events in log]
    for cuts in ((), (1, 3)):
        found = counts_of(log, settings(shard_list="a=0\nb=1\n"), cuts=cuts)
        shards = {
            each.name: (each.lane, each.load.transactions, each.load.rows, each.load.bytes) for each in found.shards
        }
        assert shards == {
            "a": (0, 1, 3, sizes[0]),
            "b": (1, 2, 5, sizes[1] + sizes[3]),
            "a+b": (0, 1, 2, sizes[2]),
        }
        assert found.as_set.bytes == (sizes[0] + sizes[2], sizes[1] + sizes[3], 0, 0)
        assert (found.as_set.barriers, found.as_set.serialized, found.as_set.causes) == (1, 1, {"several lanes": 1})
        assert (found.total.transactions, found.total.rows, found.total.bytes) == (4, 10, sum(sizes))


def test_statements_make_their_blocks_unknown() -> None:
    log = [rows(number, "a", count=1) if number != 5 else alone(5, "CREATE TABLE x (i INT)") for number in range(1, 21)]
    chosen = settings()
    found = counts_of(log, chosen, schema_of("a"))
    assert (found.blocks[0].free, found.blocks[0].shared, found.blocks[0].unknown) == (0, 2, 0)
    log = [rows(1, "a"), alone(2, "CREATE TABLE x (i INT)"), *[rows(number) for number in range(3, 11)]]
    assert counts_of(log, chosen, schema_of("a")).blocks[0].unknown == 1


def test_the_biggest_shard_is_divided_with_its_tables_and_its_barriers() -> None:
    found = counts_of(whale(100), schema=schema_of("a", "b")).divided
    assert found is not None
    assert (found.shard, found.serialized, [(each.table, each.lane, each.rows) for each in found.tables]) == (
        "a", 0, [("a.t", None, 180)],
    )  # fmt: skip
    assert found.busiest == pytest.approx((180 / 3 + 20) / 200)
    hot = counts_of([rows(number, "a") for number in range(1, 101)], schema=schema_of("a")).divided
    assert hot is not None
    assert hot.busiest == 1.0
    whole = counts_of(whale(100), schema=schema_of("a", "b", key=replace(PRIMARY, unique=True, primary=False))).divided
    assert whole is not None
    assert whole.tables[0].lane is not None
    assert whole.busiest >= 0.9


def test_a_list_that_divides_keeps_what_it_has_and_one_that_cannot_says_why() -> None:
    set_so = settings(shard_list="(divided)=b\n", reduce="block", divide="table")
    divided = counts_of(whale(100), set_so, schema_of("a", "b")).divided
    assert divided is not None
    assert divided.shard == "b"
    assert counts_of(whale(10)).why_not_divided.startswith("the target's keys")
    alone_in_barriers = [rows(number, "a", "b") for number in range(1, 4)]
    assert counts_of(alone_in_barriers, schema=schema_of("a", "b")).why_not_divided.startswith("no shard has")
    named = counts_of([rows(1, "my db")], schema=schema_of("my db"))
    assert named.why_not_divided == "'my db' cannot be written in (divided)"


@pytest.mark.parametrize(
    "text", ["a=1\n(critical)=ref\n", "(critical)=a\n", "a=1\n", "a*=1\n", "\\#UNKNOWN=0\nref=1\n(critical)=ref\n"]
)
def test_entries_that_contradict_a_division_are_left_out(text: str) -> None:
    log = [*whale(50), rows(51, "ref")]
    found = counts_of(log, settings(shard_list=text), schema_of("a", "b", "ref")).divided
    assert found is not None
    assert found.shard == "a"
    assert found.serialized == ("=ref" in text)


def test_a_list_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected a lane 0\.\.2, got 7"):
        counts_of(whale(10), settings(shard_list="a=7\n"))


def test_an_xa_transaction_of_which_a_log_has_one_half_is_counted() -> None:
    log = [
        ends(1, "COMMIT", "x"),
        prepare(2, "y", "a", count=3),
        rows(3, "b"),
        ends(4, "COMMIT", "y"),
        prepare(5, "z", "b"),
    ]
    found = counts_of(log)
    assert {each.name: (each.load.transactions, each.load.rows) for each in found.shards} == {"a": (1, 3), "b": (2, 2)}


def test_an_archive_may_begin_and_end_inside_the_life_of_a_temporary_table() -> None:
    log = [bound(1, "INSERT INTO t SELECT * FROM old"), bound(2, "CREATE TEMPORARY TABLE new (i INT)"), rows(3, "b")]
    assert counts_of(log).transactions == 3
    with pytest.raises(UnsupportedEventError, match="temporary table"):
        counts_of(log, schema=schema_of("b"))


def test_few_transactions_speak_for_nothing() -> None:
    assert suggestions(counts_of(whale(999))) == ()
    assert suggestions(counts_of([rows(number) for number in range(1, 1001)])) == ()
    assert suggestions(counts_of(whale(1000))) != ()


def test_a_whale_is_divided_and_its_readers_get_epochs() -> None:
    found = suggestions(counts_of(whale(), schema=schema_of("a", "b")))
    assert lines(found) == {
        "(hash-method)=string-hash": False,
        "lanes.count = 3": False,
        "(divided)=a": True,
        'lanes.divide = "key"': False,
        'lanes.commit = "alone"': False,
        'blocks.reduce = "auto"': True,
        'lanes.consistency = "epoch"': True,
    }
    commit = next(each for each in found if "commit" in each.line)
    assert commit.because == (
        "0 of 1,000 transactions are inside barriers if each lane commits alone, and 0 if they commit together"
    )
    assert "at each of about 84 blocks" in commit.costs
    division = next(each for each in found if each.line == "(divided)=a")
    assert division.promises == "at most 2.2 times as fast"
    assert "readers can see a part of a transaction" in division.costs
    assert parse_shard_list("(divided)=a\n", "", lanes=3).divided == {"a"}


def crossing(**set_so: Any) -> Counts:
    """Half of the transactions of a are over b as well."""
    log = [rows(number, *("ab" if number % 2 else "a")) for number in range(1, 1001)]
    chosen = replace(settings(fold_gap=0, lanes=4, block_transactions=10), **set_so)
    return counts_of(log, chosen, schema_of("a", "b"))


def test_rows_over_several_shards_speak_for_shares_that_commit_together() -> None:
    counts = crossing(reduce="window")
    assert counts.divided is not None
    assert counts.together is not None
    assert (counts.divided.serialized, counts.together.serialized) == (500, 0)
    found = suggestions(counts)
    told = lines(found)
    assert [told[f"(divided)={name}"] for name in "ab" if f"(divided)={name}" in told] == [True]
    assert told['lanes.commit = "together"'] is True
    # epochs are not needed, and blocks of each lane's own are refused
    assert told['lanes.consistency = "eventual"'] is False
    assert told['blocks.reduce = "auto"'] is True
    commit = next(each for each in found if "commit" in each.line)
    gain = counts.divided.span(1000) / counts.together.span(1000)
    assert "500 of 1,000 transactions are inside barriers if each lane commits alone, and 0" in commit.because
    assert f'at most {gain:.1f} times as fast as "alone"' in commit.promises
    assert "at each of about 25 blocks" in commit.costs


def test_shares_that_commit_together_stay_so() -> None:
    """Also where that saves no barrier; and their readers need no epochs."""
    set_so = settings(shard_list="(divided)=a\n", reduce="block", divide="key")
    chosen = replace(set_so, commits_together=True)
    told = lines(suggestions(counts_of(whale(), chosen, schema_of("a", "b"))))
    assert told['lanes.commit = "together"'] is False
    assert told['lanes.consistency = "eventual"'] is False


def test_a_whale_of_statements_is_not_divided() -> None:
    log = [rows(n, "b") if n % 10 == 0 else statements(n, "DELETE FROM t") for n in range(1, 1000)] + [rows(1000, "a")]
    found = suggestions(counts_of(log, schema=schema_of("a", "b")))
    division = next(each for each in found if "(divided)" in each.line)
    assert not division.changes
    assert "900 of 1,000 transactions are inside barriers" in division.because
    only = suggestions(counts_of([*log[:-1], statements(1000, "DELETE FROM t")], schema=schema_of("a", "b")))
    assert "not told: a has no row changes, only statements" in [each.because for each in only]


def test_without_the_targets_keys_a_division_is_not_told() -> None:
    found = suggestions(counts_of(whale()))
    division = next(each for each in found if "(divided)" in each.line)
    assert (division.changes, division.promises) == (False, "not told")
    assert division.because == "not told: the target's keys decide how tables are divided, and they are not in the log"


def test_shards_in_one_lane_are_placed_by_load_and_idle_lanes_named() -> None:
    log = [rows(number, "abcd"[number % 4]) for number in range(1, 1001)]
    crowded = counts_of(log, settings(shard_list="(*)=0\n"))
    default, placed, *_ = suggestions(crowded)
    assert (default.line, default.changes) == ("(*)=-1", True)
    assert (placed.line, placed.changes, placed.promises) == ("(hash-method)=load", True, "at most 2.0 times as fast")
    assert "the busiest lane has 100% of the bytes as it is, and 50% by load" in placed.because
    fitting = suggestions(counts_of(log, settings(shard_list="a=0\nb=1\nc=2\nd=3\n", lanes=4)))
    assert lines(fitting)["(hash-method)=string-hash"] is False
    entries = suggestions(counts_of(log, settings(shard_list="a=0\nb=1\nc=2\nd=3\n", lanes=9)))
    assert lines(entries)["lanes.count = 9"] is False
    idle = suggestions(counts_of(log, settings(shard_list="(hash-method)=load\n", lanes=9)))
    assert lines(idle)["lanes.count = 4"] is True


def test_what_is_done_in_barriers_is_not_promised_again() -> None:
    log = [rows(number, *("ab" if number % 2 else "abcd"[number // 2 % 4])) for number in range(1, 1001)]
    found = counts_of(log, settings(shard_list="(*)=0\nb=1\n", fold_gap=0))
    gain = found.as_set.span(1000) / found.by_load.span(1000)
    assert found.as_set.serialized == 500
    assert found.as_set.span(1000) == pytest.approx(0.5 + 0.5 * found.as_set.busiest)
    assert gain < 1.3
    assert f"at most {gain:.1f} times" in suggestions(found)[1].promises


@pytest.mark.parametrize(
    ("sizes", "lanes"),
    [([5], 1), ([0, 5], 1), ([5, 5, 5], 3), ([10, 5, 5], 2), ([10, 4, 4, 4], 3), ([6, 5, 4, 3, 3, 2, 1], 4)],
)
def test_the_lanes_that_are_needed_end_no_later_than_the_biggest_shard(sizes: list[int], lanes: int) -> None:
    assert lanes_needed(sizes) == lanes


def test_reduce_stays_where_auto_takes_the_same() -> None:
    found = counts_of(whale(), settings(reduce="block"))
    assert found.size is not None
    assert found.size.reduce is Reduce.BLOCK
    assert lines(suggestions(found))['blocks.reduce = "block"'] is False
    told = next(each for each in suggestions(found) if "reduce" in each.line)
    assert f"{found.blocks[-1].left / found.blocks[-1].rows:.0%} of the row changes are left" in told.promises


def of_tenants(transactions: int, *suffixes: str) -> list[tuple[bytes, ...]]:
    """Each transaction changes two databases of one of four tenants."""
    return [rows(number, *(f"t{number % 4}{suffix}" for suffix in suffixes)) for number in range(1, transactions + 1)]


def test_tenants_with_several_databases_are_given_a_pattern() -> None:
    found = counts_of(of_tenants(1200, "_main", "_audit-log"))
    assert found.tenants is not None
    assert found.tenants.pattern == r"^(?<shard>.+)_(audit\-log|main)$"
    assert found.by_load.serialized > 0
    assert (found.tenants.lanes.serialized, found.tenants.lanes.barriers) == (0, 0)
    told = lines(suggestions(found))
    line = r"(pattern)=^(?<shard>.+)_(audit\\-log|main)$"
    assert told['lanes.assigner = "pattern"']
    assert told[line]
    # the list with that line is one that the channel can have
    settled = counts_of(of_tenants(1200, "_main", "_audit-log"), settings(assigner="pattern", shard_list=line + "\n"))
    assert settled.as_set.serialized == 0
    assert not any("pattern" in each for each in lines(suggestions(settled)))


@pytest.mark.parametrize(
    ("common", "pattern"),
    [
        ({("acme", "acme_audit"): 9}, r"^(?<shard>.+)_(audit)$"),
        ({("a_b_main", "a_b_stats"): 9, ("c_main", "c_log"): 9}, r"^(?<shard>.+)_(log|main|stats)$"),
        ({("a_main", "a_stats"): 99, ("a_main", "a_rare"): 1}, r"^(?<shard>.+)_(main|stats)$"),
        ({("a_main", "b_main"): 9}, None),
        ({("a_main", "a_stats"): 9, ("orders", "stock"): 10}, None),
        ({("a_main", "a_stats", "b_main"): 9}, None),
        ({("a.x", "a.y"): 3, ("a_x", "a_y"): 9}, r"^(?<shard>.+)_(x|y)$"),
    ],
)
def test_a_pattern_is_proposed_for_names_that_begin_alike(
    common: dict[tuple[str, ...], int], pattern: str | None
) -> None:
    assert pattern_of({frozenset(names): count for names, count in common.items()}) == pattern
