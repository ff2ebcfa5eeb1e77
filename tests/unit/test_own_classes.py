"""A site's own assigner and consistency level, named in a channel file: each is a class of some lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlane.apply.rows.writers import ROW_WRITERS
from binlane.config import load_channel
from binlane.errors import ConfigError
from binlane.extension import chosen
from tests.unit.plan.logs import filtered, rows, settings

HERE = "tests.unit.test_own_classes"


class ByTenant:
    """A tenant has several databases: all that begins with the same word is one shard."""

    def shard_of(self, database: str) -> str:
        return database.partition("_")[0]


class EvenSeconds:
    """Lanes meet whenever the source's clock has passed two seconds."""

    serial = False

    def __init__(self, epoch_seconds: int) -> None: ...

    def epoch_of(self, commit_time: float) -> int | None:
        return int(commit_time) // 2


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_an_assigner_of_the_site_puts_databases_together(columnar: bool) -> None:
    log = [rows(1, "t1_a", "t1_b"), rows(2, "t2_a"), rows(3, "t1_b"), rows(4, "ref_a"), rows(5, "ref_b")]
    own = settings(assigner=f"{HERE}:ByTenant", lanes=2, shard_list="(hash-method)=round-robin\n(critical)=ref_a\n")
    found = filtered(log, own, columnar=columnar)
    assert set(found.plan.shards) == {"t1", "t2", "ref", "ref_a"}
    # what is critical stays a shard of its own, and keeps its barrier
    assert [(first, last) for first, last, *_ in found.barriers()] == [(4, 4)]
    assert [found.seqnos(lane) for lane in range(2)] == [[(1, 3), (5, 5)], [(2, 2)]]


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_a_consistency_level_of_the_site_says_when_lanes_meet(columnar: bool) -> None:
    def at(seconds: int, transaction: tuple[bytes, ...]) -> tuple[bytes, ...]:
        return tuple((1_700_000_000 + seconds).to_bytes(4, "little") + event[4:] for event in transaction)

    log = [at(second, rows(number, "ab"[number % 2])) for number, second in enumerate([0, 1, 2, 3, 4], 1)]
    found = filtered(log, settings(consistency=f"{HERE}:EvenSeconds"), columnar=columnar)
    assert [(first, last) for first, last, *_ in found.barriers()] == [(3, 3), (5, 5)]


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("sqll", "apply.writer: expected one of binlog, sql, or package.module:Class; got 'sqll'"),
        (
            f"{HERE}:Missing",
            "has no attribute 'Missing'.*; put its module on the Python path",
        ),
        ("no.such.module:Writer", "cannot be imported here .*No module named"),
    ],
)
def test_a_class_that_is_not_there_is_refused_with_the_words(word: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        chosen(ROW_WRITERS, word, "apply.writer")


def test_a_channel_file_may_name_a_class(tmp_path: Path) -> None:
    file = tmp_path / "dags" / "channels" / "shop.toml"
    file.parent.mkdir(parents=True)
    text = '[source]\nconnection = "a"\n[target]\nconnection = "b"\n[lanes]\nassigner = "{}"\n'
    file.write_text(text.format("acme.shards:ByTenant"))
    assert load_channel(file, {}).lanes.assigner == "acme.shards:ByTenant"
    file.write_text(text.format("acme.shards"))
    with pytest.raises(ConfigError, match=r"lanes\.assigner: expected one of database, or package.module:Class"):
        load_channel(file, {})
