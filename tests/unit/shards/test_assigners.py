"""Which databases share a shard: by their names, by a pattern, and by foreign keys."""

from __future__ import annotations

import pytest

from binlane.database_pattern import DatabasePattern
from binlane.errors import ConfigError
from binlane.model import FILTERED_SHARD
from binlane.schema.letter_case import AS_TYPED, LetterCase
from binlane.shards.assigners import AssignerRules, Shards
from binlane.shards.renaming import AS_THEY_ARE, Renaming
from binlane.shards.shard_list import Partitioner, ShardList, parse_shard_list
from tests.unit.plan.logs import filtered, rows, settings, statements

TENANTS = "(pattern)=^(?<shard>[a-z0-9]+)_(main|stats|audit)$\n"


def listed(text: str) -> ShardList:
    return parse_shard_list(text, "shop.list", lanes=4)


def shards(
    text: str,
    groups: dict[str, str] | None = None,
    renaming: Renaming = AS_THEY_ARE,
    letter_case: LetterCase = AS_TYPED,
    assigner: str = "pattern",
) -> Shards:
    return Shards(assigner, AssignerRules(listed(text), renaming, letter_case), groups or {})


@pytest.mark.parametrize(
    ("database", "shard"),
    [
        ("acme_main", "acme"),
        ("acme_audit", "acme"),
        ("acme", "acme"),
        ("acme_other", "acme_other"),
        ("acme_main2", "acme_main2"),
        ("x acme_main", "x acme_main"),
        ("acme_main\n", "acme_main\n"),
        ("Acme_main", "Acme_main"),
        ("#GLOBAL", "#GLOBAL"),
        (FILTERED_SHARD, FILTERED_SHARD),
    ],
)
def test_a_pattern_has_to_match_the_whole_name(database: str, shard: str) -> None:
    assert shards(TENANTS).shard_of(database) == shard


def test_a_text_that_is_empty_or_like_a_special_shard_is_no_shard() -> None:
    pattern = DatabasePattern("x(?P<shard>.*)")
    assert [pattern.shard_of(name) for name in ("x", "x#GLOBAL", "xy")] == [None, None, "y"]


def test_the_group_is_found_by_its_name_among_others() -> None:
    assert DatabasePattern(r"(a|b)_(?:x|y)_(?P<kind>\d+)_(?<shard>.+)").shard_of("a_y_7_acme") == "acme"
    assert DatabasePattern(r"\(?<*(?<shard>[a-z]+)").shard_of("(<<ab") == "ab"


def test_letter_case_counts_where_the_target_says_so() -> None:
    folded = shards("(pattern)=(?<shard>[A-Z]+)_Main\nACME=3\n", letter_case=LetterCase(folds=True))
    assert folded.shard_of("acme_main") == "acme"


def test_a_pattern_reads_the_names_of_the_source() -> None:
    renaming = Renaming((("*", "copy_*"),))
    renamed = shards(TENANTS + "acme=3\nother=1\n", renaming=renaming)
    assert [renamed.shard_of(name) for name in ("copy_acme_main", "copy_acme_audit", "copy_other", "acme_main")] == [
        "copy_acme", "copy_acme", "copy_other", "acme_main",
    ]  # fmt: skip
    partitioner = Partitioner(listed(TENANTS + "acme=3\nother=1\n"), 4, (), renamed.joined, renaming)
    assert [partitioner.lane_of(shard) for shard in ("copy_acme", "copy_other")] == [3, 1]


def test_foreign_keys_join_the_shards_of_their_databases() -> None:
    groups = {"a_main": "a_main", "b_main": "a_main", "b_stats": "b_stats", "c_main": "b_stats", "d": "d", "e": "d"}
    found = shards(TENANTS, groups)
    names = ("a_audit", "a_main", "b_audit", "c_main", "c_stats", "d", "f_main")
    assert [found.shard_of(groups.get(name, name)) for name in names] == ["a", "a", "a", "a", "a", "d", "f"]
    partitioner = Partitioner(listed(TENANTS + "c=2\n"), 4, (), found.joined)
    assert partitioner.lane_of("a") == 2


def test_shards_by_database_are_the_groups_of_foreign_keys() -> None:
    groups = {"b": "a", "a": "a", "z": "y", "y": "y"}
    found = shards("", groups, assigner="database")
    assert dict(found.joined) == groups
    assert [found.shard_of(groups.get(name, name)) for name in "abyzc"] == ["a", "a", "y", "y", "c"]


def test_a_critical_database_stays_a_shard_of_its_own() -> None:
    groups = {"acme_main": "acme_main", "ref": "acme_main"}
    found = shards(TENANTS + "(critical)=ref x_main\n", groups)
    assert [found.shard_of(groups.get(name, name)) for name in ("acme_main", "ref", "acme_audit", "x_main")] == [
        "acme_main", "acme_main", "acme", "x_main",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(pattern)=acme", r"shop\.list:1: \(pattern\).* no group \(\?<shard>"),
        ("(pattern)=(", r"shop\.list:1: .*expected a regular expression"),
        ("(pattern)=(?<shard>a(?=b))", "invalid perl operator"),
        (r"(pattern)=(?<shard>a)\\1", "invalid escape sequence"),
        ("(pattern)=[[:alpha:]](?<shard>a)", r"write its letters"),
        ("(pattern)=\\n(?<shard>a)", "cannot be printed"),
        ("(pattern)=" + "(a)" * 9 + "(?<shard>a)", "more than 8 groups"),
        (TENANTS + "acme_main=1\n", r"shop\.list:2: .*'acme_main', a database .* shard 'acme'; write acme"),
        (TENANTS + "(divided)=acme_main\n", r"shop\.list:2: .*write acme"),
        ("", r"expected a line \(pattern\)="),
    ],
)
def test_a_list_that_does_not_fit_is_refused_with_its_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        shards(text)


def test_a_pattern_without_its_assigner_is_refused() -> None:
    with pytest.raises(ConfigError, match=r'lanes\.assigner = "pattern" in the channel file, found "database"'):
        shards(TENANTS, assigner="database")


def test_a_list_is_written_and_read_with_its_pattern() -> None:
    text = r"(pattern)=^(?<shard>\\d+)_x$" + "\n"
    first = listed(text)
    assert first.pattern == r"^(?<shard>\d+)_x$"
    assert listed(first.text()) == first
    assert first.digest() != listed("").digest()


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_transactions_over_the_databases_of_a_tenant_are_no_barriers(columnar: bool) -> None:
    log = [
        rows(1, "acme_main", "acme_audit"),
        rows(2, "kilo_main", "kilo_stats"),
        rows(3, "acme_stats"),
        statements(4, "ALTER TABLE kilo_audit.t ADD COLUMN y INT"),
        rows(5, "acme_main", "kilo_main"),
        rows(6, "kilo_main"),
    ]
    text = TENANTS + "acme=0\nkilo=1\n"
    found = filtered(log, settings(assigner="pattern", lanes=2, shard_list=text), columnar=columnar)
    assert [(first, last) for first, last, *_ in found.barriers()] == [(5, 5)]
    assert {"acme", "kilo", "acme+kilo"} == set(found.plan.shards)
    assert [found.seqnos(0)[0], *found.seqnos(1)[:2]] == [(1, 3), (2, 2), (4, 4)]
    alone = filtered(log, settings(lanes=2, shard_list="acme_main=0\nacme_audit=1\nkilo_main=0\n"), columnar=columnar)
    assert (1, 2) in [(first, last) for first, last, *_ in alone.barriers()]
