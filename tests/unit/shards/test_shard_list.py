"""Shard lists: Java's properties syntax, the four kinds of entry, errors by line, both hash methods, groups."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlane.errors import ConfigError, PlanError
from binlane.model import GLOBAL_SHARD, UNKNOWN_SHARD
from binlane.schema.letter_case import LetterCase
from binlane.shards.properties import escape_key, parse_properties
from binlane.shards.renaming import Renaming
from binlane.shards.shard_list import HashMethod, Partitioner, ShardList, hash_lane, parse_shard_list, string_hash

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def parse(text: str, lanes: int = 4) -> ShardList:
    return parse_shard_list(text, "x.list", lanes=lanes)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", [("a", "1", 1)]),
        ("a:1\nb 2\nc\t=  3", [("a", "1", 1), ("b", "2", 2), ("c", "3", 3)]),
        ("  a = 1  ", [("a", "1", 1)]),
        ("# x=1\n! y=2\n\n \t\n  # z\na=1", [("a", "1", 6)]),
        ("my db2=3", [("my", "db2=3", 1)]),
        ("my\\ db2=3\na\\=b\\:c=4", [("my db2", "3", 1), ("a=b:c", "4", 2)]),
        ("\\#UNKNOWN=0", [("#UNKNOWN", "0", 1)]),
        ("#UNKNOWN=0", []),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", [("a", "1,2,3", 1), ("b", "4", 4)]),
        ("a=1\\\\\nb=2", [("a", "1\\", 1), ("b", "2", 2)]),
        ("a=1 \\\n# no comment", [("a", "1 # no comment", 1)]),
        ("# comment \\\na=1", [("a", "1", 2)]),
        ("\\u00e9\\ud83d\\ude00=1", [("é😀", "1", 1)]),
        ("a\\tb\\q=x\\ny", [("a\tbq", "x\ny", 1)]),
        ("a", [("a", "", 1)]),
        ("=1", [("", "1", 1)]),
        ("a==1", [("a", "=1", 1)]),
        ("a=1\rb=2", [("a", "1", 1), ("b", "2", 2)]),
        ("a=1\\", [("a", "1", 1)]),
    ],
)
def test_the_syntax_is_that_of_java_properties(text: str, expected: list[tuple[str, str, int]]) -> None:
    assert [(entry.key, entry.value, entry.line) for entry in parse_properties(text, "x")] == expected


@given(key=NAMES)
def test_an_escaped_key_is_read_as_itself(key: str) -> None:
    assert [entry.key for entry in parse_properties(f"{escape_key(key)}=1", "x")] == [key]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=4", "x.list:1: 'a': expected a lane 0..3, got 4; the channel has 4 lanes"),
        ("\n#\na=-1", "x.list:3: 'a': expected a lane 0..3, got -1"),
        ("a_*=99", "x.list:1: 'a_*': expected a lane 0..3, got 99"),
        ("(*)=4", "x.list:1: '(*)': expected a lane -1..3, got 4"),
        ("(*)=-2", "x.list:1: '(*)': expected a lane -1..3, got -2"),
        ("a=one", "x.list:1: 'a': expected a lane 0..3, got 'one'"),
        ("a=1.0", "got '1.0'"),
        ("a=\u0661", "got '\u0661'"),
        ("a=", "got ''"),
        ("my db=1", "x.list:1: 'my': expected a lane 0..3, got 'db=1'; blanks, '=' and ':' in a name"),
        ("a=1\nb=2\na=1", "x.list:3: 'a' is already in line 1"),
        ("a=1\n\\u0061=1", "x.list:2: 'a' is already in line 1"),
        ("(*)=1\n(*)=2", "x.list:2: '(*)' is already in line 1"),
        ("a*=1\na*=2", "x.list:2: 'a*' is already in line 1"),
        ("(criticla)=a", "x.list:1: unknown key (criticla); known: (*), (critical), (divided), (hash-method)"),
        ("(hash-method)=crc", "x.list:1: unknown hash method 'crc'; expected string-hash or round-robin or load"),
        ("=1", "x.list:1: a line without a key"),
        ("a=\\u00g1", "x.list:1: expected four hex digits after \\u, got '00g1'"),
        ("\\ud83d=1", "x.list:1: a \\u escape is half a character"),
    ],
)
def test_an_error_names_file_and_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        parse(text)


def test_bytes_that_are_not_utf8_are_refused_by_line() -> None:
    with pytest.raises(ConfigError, match=r"^x.list:2: not UTF-8"):
        parse_shard_list(b"a=1\n\xe9=2", "x.list", lanes=4)
    assert parse_shard_list("\ufeffé=1".encode(), "x.list", lanes=4).explicit["é"].lane == 1


HASHES = {
    "foo": (2, 4), "bar": (3, 9), "db1": (3, 7), "db2": (0, 8), "shop": (2, 2), "crm": (2, 2), "#UNKNOWN": (3, 3),
}  # fmt: skip


@pytest.mark.parametrize(("name", "lanes"), HASHES.items())
def test_string_hash_places_shards_where_tungsten_does(name: str, lanes: tuple[int, int]) -> None:
    assert (hash_lane(name, 4), hash_lane(name, 10)) == lanes


def test_string_hash_is_javas() -> None:
    assert string_hash("") == 0
    assert string_hash("polygenelubricants") == -(2**31)
    assert string_hash("é") == 0xE9
    assert string_hash("😀") == 31 * 0xD83D + 0xDE00
    assert hash_lane("polygenelubricants", 10) == 8


@given(name=NAMES, lanes=st.integers(1, 64))
def test_every_shard_has_a_lane(name: str, lanes: int) -> None:
    assert 0 <= hash_lane(name, lanes) < lanes
    for text in ("", "(hash-method)=round-robin", "(hash-method)=load", "(*)=0", "*=0"):
        assert 0 <= Partitioner(parse(text, lanes), lanes, [name]).lane_of(name) <= lanes


LIST = """
exact_one=3
exact_*=1
*_one=2
[ab]x?=0
(*)=2
(critical)=ref, exact_ref\tother
\\#UNKNOWN=1
"""


@pytest.mark.parametrize(
    ("shard", "lane", "critical"),
    [
        ("exact_one", 3, False),
        ("exact_two", 1, False),
        ("a_one", 2, False),
        ("bxy", 0, False),
        ("Bxy", 2, False),
        ("cxy", 2, False),
        ("ref", 4, True),
        ("exact_ref", 1, True),
        ("other", 4, True),
        (UNKNOWN_SHARD, 1, True),
        (GLOBAL_SHARD, 4, True),
    ],
)
def test_own_entry_then_first_glob_then_default(shard: str, lane: int, critical: bool) -> None:
    partitioner = Partitioner(parse(LIST), 4, [])
    assert (partitioner.lane_of(shard), partitioner.is_critical(shard)) == (lane, critical)


def test_no_glob_and_no_default_places_what_is_special() -> None:
    partitioner = Partitioner(parse("*=0\n\\#*=1\n(*)=2"), 4, [])
    assert partitioner.lane_of(GLOBAL_SHARD) == partitioner.lane_of(UNKNOWN_SHARD) == 4


def test_a_target_that_takes_names_in_any_case_takes_the_list_s_so_too() -> None:
    text = "Big=1\nARCHIVE_*=2\n(critical)=Ref\n\\#GLOBAL=3"
    told_apart, folded = (Partitioner(parse(text), 4, [], letter_case=LetterCase(folds)) for folds in (False, True))
    assert [folded.lane_of(name) for name in ("big", "archive_1", "ref", GLOBAL_SHARD)] == [1, 2, 4, 3]
    assert folded.is_critical("ref")
    assert not told_apart.is_critical("ref")
    renamed = Partitioner(parse("SHOP_A=2"), 4, [], {}, Renaming((("Shop_*", "copy_*"),), True), LetterCase(True))
    assert renamed.lane_of("copy_a") == 2


def test_two_spellings_of_one_name_have_one_lane() -> None:
    assert Partitioner(parse("Big=1\nbig=1"), 4, [], letter_case=LetterCase(True)).lane_of("big") == 1
    with pytest.raises(ConfigError, match=r"^x.list:2: .big. is the name of line 1 .*: expected lane 1, got 2"):
        Partitioner(parse("Big=1\nbig=2"), 4, [], letter_case=LetterCase(True))


def test_an_empty_list_hashes() -> None:
    partitioner = Partitioner(parse(""), 4, [])
    assert [partitioner.lane_of(name) for name in ("foo", "bar", "db2")] == [2, 3, 0]
    assert not partitioner.is_critical("foo")


def test_round_robin_goes_by_first_appearance_of_shards_without_a_place() -> None:
    listed = parse("(hash-method)=round-robin\npinned=3\n(critical)=ref")
    order = ["z", "pinned", "a", UNKNOWN_SHARD, "z", "ref", "m", "a", "q"]
    partitioner = Partitioner(listed, 3 + 1, order)
    lanes = {name: partitioner.lane_of(name) for name in order}
    assert lanes == {"z": 0, "pinned": 3, "a": 1, UNKNOWN_SHARD: 4, "ref": 4, "m": 2, "q": 3}
    with pytest.raises(PlanError, match=r"'late': expected it in the window's order of appearance \(round-robin\)"):
        partitioner.lane_of("late")


def by_load(text: str, loads: Mapping[str, int], lanes: int = 4, **options: Any) -> dict[str, int]:
    """The lane of each shard."""
    partitioner = Partitioner(parse("(hash-method)=load\n" + text, lanes), lanes, loads, loads=loads, **options)
    return {name: partitioner.lane_of(name) for name in loads}


def test_load_gives_the_biggest_shard_left_to_the_lane_that_has_the_least() -> None:
    loads = {"a": 10, "b": 40, "c": 30, "d": 30, "e": 20, "f": 20}
    assert by_load("", loads) == {"b": 0, "c": 1, "d": 2, "e": 3, "f": 3, "a": 1}
    assert by_load("", dict.fromkeys("zyx", 7), 2) == {"x": 0, "y": 1, "z": 0}
    assert by_load("", dict.fromkeys("zyx", 0), 2) == {"x": 0, "y": 0, "z": 0}


def test_load_counts_shards_with_an_entry_and_leaves_critical_and_divided_ones_out() -> None:
    loads = {"pinned": 50, "z": 40, "a": 30, UNKNOWN_SHARD: 900, "ref": 900, "whale": 900}
    expected = {"pinned": 0, "z": 1, "a": 2, UNKNOWN_SHARD: 3, "ref": 3, "whale": 0}
    assert by_load("pinned=0\n(critical)=ref\n(divided)=whale", loads, 3) == expected
    assert by_load("pinned=0\n(*)=1", {"pinned": 50, "z": 40}, 3) == {"pinned": 0, "z": 1}


def test_load_takes_a_group_as_one() -> None:
    loads = {"a": 10, "b": 10, "c": 10, "x": 29}
    assert by_load("", loads, 2, groups=GROUPS) == {"a": 0, "b": 0, "c": 0, "x": 1}


@given(st.dictionaries(NAMES, st.integers(0, 100), min_size=1), st.integers(1, 8))
def test_no_lane_by_load_has_more_than_a_full_share_and_the_smallest_shard_of_it(
    loads: dict[str, int], lanes: int
) -> None:
    loads = {name: size for name, size in loads.items() if not name.startswith("#")}
    found = by_load("", loads, lanes)
    of_lanes = [[loads[name] for name in loads if found[name] == lane] for lane in range(lanes)]
    for sizes in of_lanes:
        assert not sizes or sum(sizes) - min(sizes) <= sum(loads.values()) / lanes
    assert found == by_load("", dict(sorted(loads.items(), reverse=True)), lanes)


GROUPS = {"a": "a", "b": "a", "c": "a"}


@pytest.mark.parametrize(
    ("text", "lane", "critical"),
    [
        ("", hash_lane("a", 4), False),
        ("c=3", 3, False),
        ("b*=1\nc=3", 3, False),
        ("b*=1", 1, False),
        ("a=2\nb=2", 2, False),
        ("(critical)=b", 4, True),
        ("(critical)=b\nc=1", 1, True),
        ("(*)=3", 3, False),
        ("(hash-method)=round-robin", 1, False),
    ],
)
def test_a_group_has_one_lane_and_any_member_may_name_it(text: str, lane: int, critical: bool) -> None:
    partitioner = Partitioner(parse(text), 4, ["x", "c", "b"], GROUPS)
    for name in GROUPS:
        assert (partitioner.lane_of(name), partitioner.is_critical(name)) == (lane, critical)


@pytest.mark.parametrize("text", ["\nb=1\nc=2", "\nb*=1\nc*=2"])
def test_members_of_a_group_with_different_lanes_are_refused_with_both_lines(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^x.list:2: 'b\*?' goes to lane 1, but x.list:3: 'c\*?' to lane 2, .*foreign"
    ):
        Partitioner(parse(text), 4, [], GROUPS)


def test_lists_that_mean_the_same_have_one_digest() -> None:
    same = [
        "a=1\nb=2\nc*=3\n(critical)=x,y",
        "# comment\nb : 2\n(critical) = y x\n\\u0061 1\nc*=3\n(*)=-1\n(hash-method)=string-hash",
    ]
    other = [
        "a=1\nb=2\nc*=3\n(critical)=x",
        "a=1\nb=3\nc*=3\n(critical)=x,y",
        "c*=3\n(*)=1",
        "c*=1\nd*=2",
        "d*=2\nc*=1",
    ]
    assert parse(same[0]).digest() == parse(same[1]).digest()
    assert len({parse(text).digest() for text in [same[0], *other]}) == 1 + len(other)
    assert parse("").digest() == hashlib.sha256(b"(hash-method)=string-hash\n(*)=-1\n").hexdigest()


@given(
    lanes=st.dictionaries(NAMES.filter(lambda name: not name.startswith("(")), st.integers(0, 3), max_size=5),
    critical=st.sets(NAMES.filter(lambda name: not re.search(r"[,\s]", name)), max_size=3),
    method=st.sampled_from(HashMethod),
)
def test_a_lists_own_text_is_read_as_the_same_list(
    lanes: dict[str, int], critical: set[str], method: HashMethod
) -> None:
    text = "".join(f"{escape_key(name)}={lane}\n" for name, lane in lanes.items())
    listed = parse(f"(hash-method)={method}\n{text}" + parse_critical(critical))
    assert parse(listed.text()) == listed
    assert listed.critical == critical
    assert {
        **{key: entry.lane for key, entry in listed.explicit.items()},
        **{e.key: e.lane for e in listed.globs},
    } == lanes


def test_divided_shards_are_named_or_match_a_pattern_and_so_does_all_of_their_group() -> None:
    chosen = parse("(divided)=shop, crm_*\n(*)=2\nb*=1\n")
    assert parse(chosen.text()) == chosen
    partitioner = Partitioner(chosen, 4, (), {"shop": "a", "a": "a", "y": "x", "x": "x"})
    divided = {name: partitioner.is_divided(name) for name in ("shop", "a", "crm_1", "x", "y", "b1", "#UNKNOWN")}
    assert [name for name, is_divided in divided.items() if is_divided] == ["shop", "a", "crm_1"]
    assert [partitioner.lane_of(name) for name in ("shop", "crm_1", "x", "b1")] == [0, 0, 2, 1]
    folded = Partitioner(parse("(divided)=Shop\n"), 4, (), {}, letter_case=LetterCase(folds=True))
    assert folded.is_divided("shop")
    renamed = Partitioner(parse("(divided)=x_shop\n"), 4, (), {}, Renaming((("x_*", "*"),)))
    assert renamed.is_divided("shop")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(divided)=a, b\n(critical)=b\n", r"^x\.list:1: \(divided\): 'b' is also in \(critical\)"),
        ("ab=1\n(divided)=a*\n", r"^x\.list:2: \(divided\): 'ab' has a lane in line 1, and a divided shard has all"),
        ("(divided)=a\n\\#GLOBAL=1\n", r"'#GLOBAL' has a lane in line 2; with divided shards the serialized lane"),
        ("(divided)=a\n(critical)=r\nr=1\n", r"'r' has a lane in line 3; with divided shards the serialized lane"),
    ],
)
def test_entries_that_contradict_divided_shards_are_refused_by_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse(text)


def parse_critical(names: set[str]) -> str:
    return "(critical)=" + ",".join(name.replace("\\", "\\\\") for name in names) if names else ""


def test_the_shipped_list_is_valid() -> None:
    folder = Path(__file__).parents[3] / "shard_list"
    listed = parse_shard_list((folder / "demo.list").read_bytes(), "demo.list", lanes=2)
    assert (listed.default, listed.hash_method) == (None, HashMethod.STRING_HASH)
    assert listed.critical == {"demo_reference"}


def test_the_error_that_the_readme_shows_is_the_one_that_is_raised() -> None:
    shown = (Path(__file__).parents[3] / "shard_list" / "README.md").read_text()
    with pytest.raises(ConfigError) as raised:
        parse_shard_list("\n" * 6 + "shop=9", "shard_list/demo.list", lanes=4)
    assert str(raised.value) in shown


def test_a_renamed_database_has_the_lane_of_its_old_name_and_special_shards_have_no_other_name() -> None:
    chosen = parse_shard_list("x*=1\n(critical)=xref\n", "a.list", lanes=3)
    partitioner = Partitioner(chosen, 3, (), {}, Renaming((("x*", "*"),)))
    assert partitioner.lane_of("shop") == 1
    assert partitioner.is_critical("ref")
    assert partitioner.lane_of("#UNKNOWN") == partitioner.lane_of("#GLOBAL") == 3
