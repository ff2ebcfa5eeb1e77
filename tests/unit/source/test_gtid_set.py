"""GTID sets: they grow as a log does, and are written in one way only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.binlog.gtids import Gtid, MariadbGtid, MariadbGtidFlag, MariadbGtidList, PreviousGtids
from binlane.errors import SourceError
from binlane.model import Flavor
from binlane.source.gtid_set import MariadbGtidSet, MysqlGtidSet, is_at, joined, parse_gtid_set

A = "00000000-0000-0000-0000-00000000000a"
B = "00000000-0000-0000-0000-00000000000b"


def mysql(gno: int, sid: str = A, tag: str = "") -> Gtid:
    """A MySQL GTID event."""
    return Gtid(sid, gno, 0, tag)


def mariadb(seq_no: int, domain: int = 0) -> MariadbGtid:
    """A MariaDB GTID event."""
    return MariadbGtid(seq_no, domain, MariadbGtidFlag(0))


@given(st.lists(st.integers(1, 40), max_size=40))
def test_mysql_intervals_are_those_of_a_plain_set_whatever_the_order(numbers: list[int]) -> None:
    found = MysqlGtidSet()
    for number in numbers:
        found.add(mysql(number), 1)
    for number in range(1, 42):
        assert found.holds(mysql(number)) is (number in numbers)
    assert str(MysqlGtidSet.parse(str(found))) == str(found)
    ranges = [part.split("-") for part in str(found).split(":")[1:]] if numbers else []
    assert sum(int(part[-1]) - int(part[0]) + 1 for part in ranges) == len(set(numbers))


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12)), max_size=30))
def test_mysql_intervals_in_any_order_are_those_of_a_plain_set(ranges: list[tuple[int, int]]) -> None:
    found = parse_gtid_set(Flavor.MYSQL, ",".join(f"{A}:{first}-{first + more}" for first, more in ranges))
    numbers = {each for first, more in ranges for each in range(first, first + more + 1)}
    starts = sorted(each for each in numbers if each - 1 not in numbers)
    ends = sorted(each for each in numbers if each + 1 not in numbers)
    parts = [str(one) if one == other else f"{one}-{other}" for one, other in zip(starts, ends, strict=True)]
    assert str(found) == ":".join([A, *parts] if parts else [])


CANONICAL = [
    (Flavor.MYSQL, f" {A.upper()}:1-3:4:7 ,\n{B}:5", f"{A}:1-4:7,{B}:5"),
    (Flavor.MYSQL, f"{A}:1-3:red:1-2:blue:9", f"{A}:1-3,{A}:blue:9,{A}:red:1-2"),
    (Flavor.MYSQL, "", ""),
    (Flavor.MARIADB, "1-1-7, 0-2-100", "0-2-100,1-1-7"),
    (Flavor.MARIADB, "", ""),
]


@pytest.mark.parametrize(("flavor", "text", "canonical"), CANONICAL)
def test_a_set_is_written_in_one_way(flavor: Flavor, text: str, canonical: str) -> None:
    assert str(parse_gtid_set(flavor, text)) == canonical


@pytest.mark.parametrize(
    ("flavor", "text"),
    [
        (Flavor.MYSQL, "0-1-100"),
        (Flavor.MYSQL, A),
        (Flavor.MYSQL, f"{A}:one two"),
        (Flavor.MYSQL, f"{A}:-1"),
        (Flavor.MARIADB, f"{A}:1"),
        (Flavor.MARIADB, "0-1"),
    ],
)
def test_a_malformed_gtid_set_or_one_of_the_other_family_is_refused(flavor: Flavor, text: str) -> None:
    with pytest.raises(SourceError, match="expected a GTID"):
        parse_gtid_set(flavor, text)


def test_anonymous_transactions_are_in_no_set() -> None:
    found = MysqlGtidSet()
    found.add(mysql(0), 1)
    assert str(found) == ""


def test_tags_are_kept_apart() -> None:
    found = MysqlGtidSet()
    found.add(mysql(1, tag="red"), 1)
    assert found.holds(mysql(1, tag="red"))
    assert not found.holds(mysql(1))


def test_a_files_head_adds_what_is_before_the_file() -> None:
    head = PreviousGtids(((A, "", ((1, 5), (8, 9))),))
    found = MysqlGtidSet()
    assert not found.holds_head(head)
    found.add_head(head)
    assert str(found) == f"{A}:1-5:8-9"
    assert found.holds_head(head)
    assert MysqlGtidSet().holds_head(PreviousGtids(()))


def test_mariadb_keeps_the_newest_of_each_domain_and_the_last_listed_of_a_head() -> None:
    found = MariadbGtidSet()
    found.add_head(MariadbGtidList(((0, 2, 90), (0, 1, 80), (3, 1, 4))))
    assert str(found) == "0-1-80,3-1-4"
    found.add(mariadb(81), 7)
    assert str(found) == "0-7-81,3-1-4"
    assert found.holds(mariadb(81))
    assert not found.holds(mariadb(82))
    assert not found.holds(mariadb(1, domain=9))
    assert found.holds_head(MariadbGtidList(((0, 1, 81),)))
    assert not found.holds_head(MariadbGtidList(((0, 1, 81), (9, 1, 1))))


@pytest.mark.parametrize(
    ("before", "positions", "server_id", "number", "lost"),
    [
        pytest.param("0-1-5", "0-1-1000", 1, 1001, "0-1-1000", id="own numbers"),
        pytest.param("0-1-5", "0-1-1000", 1, 6, "", id="before them"),
        pytest.param("0-1-1001", "0-1-1000", 1, 1002, "", id="behind them"),
        pytest.param("0-1-5", "0-1-1000", 2, 1001, "", id="another server"),
        pytest.param("0-1-5", "3-1-1000", 1, 1001, "", id="another domain"),
        pytest.param("0-7-500", "0-7-1100", 7, 1001, "0-7-1000", id="a seed of a replica"),
        pytest.param("0-7-500", "0-8-1100", 7, 1001, "0-7-1000", id="a seed, then another source"),
        pytest.param("0-7-500", "0-7-1100", 7, 601, "", id="what changed nothing"),
        pytest.param("0-7-500", "0-7-600", 7, 601, "", id="the place of a replica, asked before the log was read"),
        pytest.param("0-7-500", "0-7-400", 7, 1001, "", id="numbers that no replication has reached"),
        pytest.param("", "0-7-1100", 7, 1001, "", id="nothing before"),
        pytest.param("0-7-1000,0-1-5", "0-7-1000", 1, 1001, "", id="the channel has begun behind it"),
    ],
)
def test_what_a_mariadb_log_lacks_between_two_transactions(
    before: str, positions: str, server_id: int, number: int, lost: str
) -> None:
    gtid = MariadbGtid(number, 0, MariadbGtidFlag(0))
    numbers, reached = MariadbGtidSet.parse(before), MariadbGtidSet.parse(positions)
    # the source's own number is 1
    in_file = numbers.passed_over(reached, gtid, server_id, is_own=server_id == 1, begins_file=False)
    assert in_file == (lost if server_id == 1 else "")
    assert numbers.passed_over(reached, gtid, server_id, is_own=server_id == 1, begins_file=True) == lost


def test_a_mariadb_log_and_what_was_put_in_besides_are_both_in_the_set() -> None:
    text = joined(Flavor.MARIADB, "0-1-10,3-1-5", "0-7-500,3-1-4,5-7-30")
    assert text == "0-7-500,0-1-10,3-1-5,5-7-30"
    found = MariadbGtidSet.parse(text)
    assert str(found) == str(MariadbGtidSet.parse(str(found))) == text
    assert str(MariadbGtidSet.parse("0-7-500").ahead_of(found)) == ""
    assert str(MariadbGtidSet.parse("0-7-501").ahead_of(found)) == "0-7-501"
    # the head of a file has what is in the log
    head = MariadbGtidSet.parse("0-1-10,3-1-5")
    assert str(head.without(found)) == ""
    for named, is_it in {"0-1-10,3-1-5,5-7-30": True, "0-7-500,3-1-5,5-7-30": True, text: True, "0-1-9": False}.items():
        assert is_at(Flavor.MARIADB, named, text) is is_it
    found.add(mariadb(501), 1)
    assert str(found) == "0-1-501,3-1-5,5-7-30"


def test_a_gtid_state_with_several_servers_of_a_domain_is_the_last_one_of_each() -> None:
    assert str(MariadbGtidSet.parse("0-2-90,0-1-100,3-1-4")) == "0-1-100,3-1-4"
