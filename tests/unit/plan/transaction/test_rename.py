"""``[rename]`` over whole windows: what is written is what a log with the target's names gives, byte for byte."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from binlane.errors import UnsupportedEventError
from binlane.model import ANY_TABLE, TableKey
from binlane.plan.block.reduce import Reducer
from binlane.plan.block.reducible_tables import TableRule
from binlane.plan.transaction.altered_tables import Alterations
from binlane.plan.transaction.rename import (
    is_alias,
    name_of,
    namesakes,
    renamed_alterations,
    renamed_schema,
    without_own_name,
)
from binlane.schema.model import ForeignKey, Schema, Table
from binlane.shards.renaming import Renaming
from binlane.shards.selection import Selection
from tests.tiers import examples
from tests.unit.binlog.cases import mariadb_gtid, query
from tests.unit.plan.logs import EMPTY_SCHEMA, IN_TRANSACTION, Filtered, ends, filtered, prepare, rows, settings

RULES = [["a*", "longer_*"], ["bb", "s"]]
RENAMING = Renaming((("a*", "longer_*"), ("bb", "s")))
LIST = "{a1}=0\n{bb}=1\n(critical)={a2}\n"
Change = tuple[str, tuple[str, ...], int]
NAMES = st.lists(st.sampled_from(["a1", "a2", "bb", "c"]), min_size=1, max_size=3, unique=True).map(tuple)
CHANGES = st.tuples(st.sampled_from(["rows", "rows", "rows", "xa"]), NAMES, st.integers(1, 3))


def log_of(changes: Sequence[Change], named: Callable[[str], str]) -> list[tuple[bytes, ...]]:
    log: list[tuple[bytes, ...]] = []
    for kind, names, count in changes:
        called, seqno = [named(name) for name in names], len(log) + 1
        if kind == "rows":
            log.append(rows(seqno, *called, count=count))
        else:
            log += [prepare(seqno, f"x{seqno}", *called, count=count), ends(seqno + 1, "COMMIT", f"x{seqno}")]
    return log


def shard_list(named: Callable[[str], str]) -> str:
    return LIST.format(**{name: named(name) for name in ("a1", "a2", "bb")})


def written(found: Filtered) -> list[object]:
    """What goes to the target; not where it stands in the source's log, which longer names move."""
    return [
        (lane, header.first_seqno, header.last_seqno, header.gtid, [(item.payload, item.rows) for item in items])
        for lane in sorted(found.lanes)
        for header, items in found.lanes[lane]
    ]


@hypothesis_settings(max_examples=examples(40), deadline=None)
@given(st.lists(CHANGES, min_size=1, max_size=10), st.booleans(), st.booleans(), st.sampled_from([1, 150, 1 << 20]))
def test_a_renamed_log_is_written_as_one_that_had_the_target_s_names(
    changes: list[Change], is_columnar: bool, is_reduced: bool, block_bytes: int
) -> None:
    keys = [TableKey(RENAMING.target(name), "t") for name in ("a1", "bb")]
    reducer = Reducer({key: TableRule(1, (0,), (0,)) for key in keys}, 400, 1 << 16) if is_reduced else None
    chosen = settings(block_bytes=block_bytes, payload_bytes=400, block_transactions=3)
    ours = replace(chosen, shard_list=shard_list(str), renames=RULES)
    theirs = replace(chosen, shard_list=shard_list(RENAMING.target))
    cuts = [len(log_of(changes[: len(changes) // 2], str))]
    found = filtered(log_of(changes, str), ours, columnar=is_columnar, reducer=reducer, cuts=cuts)
    expected = filtered(log_of(changes, RENAMING.target), theirs, reducer=reducer, cuts=cuts)
    assert written(found) == written(expected)
    assert found.plan.tables == expected.plan.tables
    assert found.plan.table_maps == expected.plan.table_maps
    assert found.plan.barriers == expected.plan.barriers
    assert found.plan.shards == expected.plan.shards
    named = {name for _, names, _ in changes for name in names if name != "c"}
    assert found.plan.renamed == {name: RENAMING.target(name) for name in sorted(named)}


@pytest.mark.parametrize("columnar", [False, True])
def test_the_shard_list_and_the_filter_speak_of_the_source_s_names(columnar: bool) -> None:
    chosen = settings(
        shard_list="a1=2\nlonger_1=1\n(hash-method)=string-hash\n",
        renames=RULES,
        filters=Selection(exclude_databases=("bb",)).to_values(),
    )
    found = filtered([rows(1, "a1"), rows(2, "bb"), rows(3, "a2")], chosen, columnar=columnar)
    as_before = filtered([rows(1, "a1"), rows(2, "bb"), rows(3, "a2")], replace(chosen, renames=[]))
    assert {name: each.lane for name, each in found.plan.shards.items()}["longer_1"] == 2
    assert found.plan.shards["longer_2"].lane == as_before.plan.shards["a2"].lane
    assert set(found.plan.tables) == {TableKey("longer_1", "t"), TableKey("longer_2", "t"), TableKey("bb", "t")}
    assert found.plan.tables[TableKey("bb", "t")].filtered.total == 1


@pytest.mark.parametrize("columnar", [False, True])
def test_rows_of_a_database_whose_name_others_get_are_refused_unless_they_are_left_out(columnar: bool) -> None:
    log = [rows(1, "a1"), rows(2, "longer_1")]
    chosen = settings(renames=RULES)
    with pytest.raises(UnsupportedEventError, match=r"binlog.000007:\d+: the database longer_1 keeps its name"):
        filtered(log, chosen, columnar=columnar)
    left_out = replace(chosen, filters=Selection(exclude_databases=("longer*",)).to_values())
    found = filtered(log, left_out, columnar=columnar)
    assert found.plan.tables[TableKey("longer_1", "t")].written.total == 1
    assert found.plan.tables[TableKey("longer_1", "t")].filtered.total == 1


def test_databases_whose_new_names_differ_in_letters_case_alone_are_told_where_the_target_takes_them_for_one() -> None:
    rules = (("Prod_*", "dr_*"),)
    folding, exact = (Renaming(rules, folds_names=folds) for folds in (True, False))
    present = {"Prod_1", "prod_1", "prod_2", "Prod_A", "pROD_a", "other"}
    found = dict(without_own_name(folding, present))
    assert set(found) == {"prod_1", "pROD_a"}
    assert "the databases Prod_1 and prod_1 would become one, dr_1" in found["prod_1"]
    assert dict(without_own_name(exact, present)) == {}
    assert set(dict(without_own_name(exact, {*present, "dr_1"}))) == {"dr_1"}
    assert namesakes(folding, present, frozenset({"dr_1", "dr_a"})) == {"Prod_1", "prod_1", "Prod_A", "pROD_a"}
    assert namesakes(exact, present, frozenset({"dr_1", "other"})) == {"Prod_1", "other"}


def test_different_rename_rules_give_a_different_plan() -> None:
    one, other = (filtered([rows(1, "c")], settings(renames=rules)).plan for rules in (RULES, []))
    assert one.digest == other.digest, "none of its databases is renamed"
    one, other = (filtered([rows(1, "a1")], settings(renames=rules)).plan for rules in (RULES, [["a*", "l*"]]))
    assert one.digest != other.digest


def test_a_schema_gets_the_other_server_s_names_without_what_has_none() -> None:
    child, parent = TableKey("a1", "child"), TableKey("bb", "parent")
    foreign = ForeignKey("f", ("p",), parent, ("id",), "RESTRICT", "CASCADE")
    tables = [Table(child, "InnoDB", (), foreign_keys=(foreign,)), Table(TableKey("s", "t"), "InnoDB", ())]
    schema = Schema(
        EMPTY_SCHEMA.flavor,
        "",
        databases=frozenset({"a1", "bb", "c", "s"}),
        tables={table.key: table for table in tables},
        views=frozenset({TableKey("a1", "v")}),
        routines=frozenset({("bb", "f"), ("s", "f")}),
        references=frozenset({(child, parent)}),
    )
    found = renamed_schema(schema, lambda name: name_of(RENAMING, name))
    assert found.databases == {"longer_1", "s", "c"}
    [table] = found.tables.values()
    assert table.key == TableKey("longer_1", "child")
    assert table.foreign_keys[0].parent == TableKey("s", "parent")
    assert found.views == {TableKey("longer_1", "v")}
    assert found.routines == {("s", "f")}
    assert found.references == {(TableKey("longer_1", "child"), TableKey("s", "parent"))}
    assert renamed_alterations(Alterations({child: (1,)}), RENAMING).names(TableKey("longer_1", "child"))


def test_tables_that_are_not_known_have_no_database_to_rename() -> None:
    log = [(mariadb_gtid(1, IN_TRANSACTION), query(b"SELECT old_a.f()", database=b"old_a"), query(b"ROLLBACK"))]
    found = filtered(log, settings(renames=[["old_*", "*"]]))
    assert found.plan.undone == {ANY_TABLE}
    assert found.plan.renamed == {"old_a": "a"}


ALIASED = "select `a`.`id` AS `id`{} from (`d`.`t` `a` {}) where (`a`.`id` = 1)"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (ALIASED.format("", "join `d`.`u` on(`a`.`id` = 2)"), [True, True, True]),
        (ALIASED.format("", "left join (`a`.`u` join `d`.`v` on(`a`.`x` = 1)) on(1)"), [True, False, True, True]),
        (ALIASED.format(",`a`.`u`.`id` AS `other`", "join `d`.`u`"), [True, False, True]),
        (ALIASED.format(",`a`.`f`(1) AS `f`", "join `d`.`u`"), [True, False, True]),
        ("select `s`.`id` from (select 1 AS `id`) `s`", [True]),
        ("select `a`.`f`(1) AS `a` from `a`.`t`", [False, False]),
        ("CREATE TABLE `c` (`id` int, FOREIGN KEY (`id`) REFERENCES `a`.`p` (`id`))", [False]),
    ],
)
def test_an_alias_in_a_printed_query_is_told_from_a_database_of_its_name(text: str, found: list[bool]) -> None:
    qualifiers = [match for match in re.finditer(r"`\w+`\.", text) if match[0] in ("`a`.", "`s`.")]
    assert [is_alias(text, match) for match in qualifiers] == found
