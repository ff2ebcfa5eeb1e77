"""Whether a partition's name means the same rows on two servers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlane.model import TableKey
from binlane.schema.compare import Rules
from binlane.schema.model import Column, Key, KeyColumn, Table
from binlane.schema.partitions import Partition, PartitionChanges, Partitioning, differing_partitions

NAME = Column("name", 2, "varchar", charset="utf8mb4", collation="utf8mb4_0900_ai_ci")
TABLE = Table(
    TableKey("a", "t"),
    "InnoDB",
    (Column("id", 1, "int"), NAME),
    (Key("PRIMARY", True, True, (KeyColumn("id"), KeyColumn("name"))),),
)
DATED = replace(
    TABLE, columns=(*TABLE.columns, Column("day", 3, "date")), keys=(Key("PRIMARY", True, True, (KeyColumn("day"),)),)
)
OURS, ACROSS = Rules(), Rules(same_flavor=False, target_collations=frozenset({"utf8mb4_croatian_mysql561_ci"}))


def hashed(count: int, method: str = "HASH", expression: str = "`id`") -> Partitioning:
    return Partitioning.of(TABLE, [Partition(method, "", f"p{at}", "", expression, "", "") for at in range(count)])


def ranges(method: str = "RANGE", expression: str = "`id`", table: Table = TABLE, **bounds: str) -> Partitioning:
    rows = [Partition(method, "", name, "", expression, bound, "") for name, bound in bounds.items()]
    return Partitioning.of(table, rows)


def test_partitions_that_are_alike_differ_in_nothing() -> None:
    for one in (Partitioning(), hashed(4), hashed(4, "KEY"), ranges(p1="10", p2="MAXVALUE")):
        assert differing_partitions(one, one, OURS) is None
    printed = ranges(expression="YEAR(`id`)", p1="10"), ranges(expression="year(id)", P1="10")
    assert differing_partitions(*printed, ACROSS) is None
    assert differing_partitions(hashed(2, "HASH", "`id` MOD 3"), hashed(2, "HASH", "(`id` % 3)"), ACROSS) is None


@pytest.mark.parametrize(
    ("source", "target", "expected", "found"),
    [
        (hashed(4), hashed(8), "4 partitions by HASH (`id`)", "8 partitions by HASH (`id`), p4"),
        (hashed(1), hashed(1, "KEY"), "1 partition by HASH (`id`), p0", "1 partition by KEY (`id`), p0"),
        (hashed(4), Partitioning(), "4 partitions by HASH (`id`), p0", "no partitions"),
        (
            ranges(p1="10", p2="20"),
            ranges(p1="10", p2="25"),
            "2 partitions by RANGE (`id`), p2 of 20",
            "2 partitions by RANGE (`id`), p2 of 25",
        ),
        (
            ranges("LIST", p1="1,2"),
            ranges("LIST", p1="1"),
            "1 partition by LIST (`id`), p1 of 1,2",
            "1 partition by LIST (`id`), p1 of 1",
        ),
        (
            hashed(2, "KEY"),
            replace(hashed(2, "KEY"), algorithm="ALGORITHM = 1"),
            "2 partitions by KEY (`id`)",
            "2 partitions by KEY ALGORITHM = 1 (`id`)",
        ),
    ],
)  # fmt: skip
def test_what_gives_a_partition_other_rows_is_named(
    source: Partitioning, target: Partitioning, expected: str, found: str
) -> None:
    assert differing_partitions(source, target, OURS) == (expected, found)


def test_partitions_that_statements_in_between_change_are_left_out() -> None:
    """The source has dropped p1 and made p3 where the target's window begins."""
    source, target = ranges(p2="20", p3="30"), ranges(p1="10", P2="20")
    assert differing_partitions(source, target, OURS) is not None
    assert differing_partitions(source, target, OURS, PartitionChanges(frozenset({"p1", "p3"}))) is None
    other = differing_partitions(source, ranges(p1="10", p2="25"), OURS, PartitionChanges(frozenset({"p1", "p3"})))
    assert other is not None
    assert other[0].endswith("p2 of 20")
    assert other[1].endswith("p2 of 25")


@pytest.mark.parametrize(
    ("method", "expression", "is_other"),
    [
        ("LINEAR KEY", "`day`", True),
        ("KEY", "", True),
        ("KEY", "`id`,`Day`", True),
        ("KEY", "`id`", False),
        ("HASH", "year(`day`)", False),
        ("RANGE COLUMNS", "`day`", False),
    ],
)
def test_a_date_is_hashed_by_each_family_in_its_own_way(method: str, expression: str, is_other: bool) -> None:
    by_day = Partitioning.of(DATED, [Partition(method, "", "p0", "", expression, "", "")])
    assert differing_partitions(by_day, by_day, OURS) is None
    assert (differing_partitions(by_day, by_day, ACROSS) is not None) is is_other
    below = Partitioning.of(DATED, [Partition("RANGE", method, "p0", "p0sp0", "`id`", "1", expression)])
    assert (differing_partitions(below, below, ACROSS) is not None) is is_other


def test_without_a_primary_key_any_unique_key_may_be_hashed() -> None:
    rows = [Partition("KEY", "", "p0", "", "", "", "")]
    unique = Key("u", True, False, (KeyColumn("day"),))
    plain = Key("k", False, False, (KeyColumn("day"),))
    by_id = Key("PRIMARY", True, True, (KeyColumn("id"),))
    for keys, is_other in (((unique,), True), ((plain,), False), ((by_id, unique), False)):
        assert Partitioning.of(replace(DATED, keys=keys), rows).is_of_one_family is is_other


@pytest.mark.parametrize("method", ["KEY", "RANGE COLUMNS", "LIST COLUMNS"])
@pytest.mark.parametrize(
    ("theirs", "ours", "rules", "differs"),
    [
        ("utf8mb4_0900_ai_ci", "utf8mb4_uca1400_nopad_ai_ci", ACROSS, True),
        ("utf8mb4_0900_bin", "utf8mb4_nopad_bin", ACROSS, True),
        ("utf8mb4_croatian_ci", "utf8mb4_croatian_mysql561_ci", ACROSS, False),
        ("utf8mb4_unicode_ci", "utf8mb4_unicode_ci", ACROSS, False),
        ("utf8mb4_unicode_ci", "utf8mb4_bin", OURS, True),
    ],
)
def test_a_text_needs_its_collation(theirs: str, ours: str, rules: Rules, differs: bool, method: str) -> None:
    """By hash, and by comparison with bounds."""
    columns = ([TABLE.columns[0], replace(NAME, collation=name)] for name in (theirs, ours))
    source, target = (ranges(method, "`name`", replace(TABLE, columns=tuple(each)), p1="'m'") for each in columns)
    found = differing_partitions(source, target, rules)
    assert (found is not None) is differs
    if found is not None:
        assert found[0].endswith(f"in {theirs}")
        assert found[1].endswith(f"in {ours}")


def test_partitions_of_history_are_each_servers_own() -> None:
    history = Partitioning.of(TABLE, [Partition("SYSTEM_TIME", "", "p0", "", "", "CURRENT", "")])
    assert differing_partitions(history, replace(history, partitions=history.partitions * 2), OURS) is None
    assert differing_partitions(history, hashed(1), OURS) is not None
