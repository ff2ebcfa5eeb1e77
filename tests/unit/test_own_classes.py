"""A site's own assigner, consistency level and engine, named in a channel file or a command: each is some lines."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from binlane.apply.rows.writers import ROW_WRITERS, sends_row_events
from binlane.config import ChannelConfig, load_channel
from binlane.errors import ConfigError
from binlane.extension import chosen
from binlane.orchestration.plan_job.engines import PLAN_ENGINES
from binlane.shards.assigners import AssignerRules
from binlane.work.files import PLAN, WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.stored_windows import stored
from tests.unit.plan.logs import filtered, rows, settings

HERE = "tests.unit.test_own_classes"


class ByTenant:
    """A tenant has several databases: all that begins with the same word is one shard."""

    def __init__(self, rules: AssignerRules) -> None: ...

    def shard_of(self, database: str) -> str:
        return database.partition("_")[0]


class RowEvents:
    """Sends BINLOG statements of its own."""

    sends_row_events = True


class EvenSeconds:
    """Lanes meet whenever the source's clock has passed two seconds."""

    serial, has_epochs = False, True

    def __init__(self, epoch_seconds: int) -> None: ...

    def epoch_of(self, commit_time: float) -> int:
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


@pytest.mark.parametrize(
    ("writer", "expected"),
    [("binlog", True), ("sql", False), ("auto", False), (f"{HERE}:RowEvents", True), (f"{HERE}:ByTenant", False)],
)
def test_a_writer_of_the_site_says_whether_it_sends_row_events(writer: str, expected: bool) -> None:
    assert sends_row_events(writer) is expected


@pytest.mark.parametrize("columnar", [False, True], ids=["plain", "columnar"])
def test_a_consistency_level_of_the_site_says_when_lanes_meet(columnar: bool) -> None:
    def at(seconds: int, transaction: tuple[bytes, ...]) -> tuple[bytes, ...]:
        return tuple((1_700_000_000 + seconds).to_bytes(4, "little") + event[4:] for event in transaction)

    log = [at(second, rows(number, "ab"[number % 2])) for number, second in enumerate([0, 1, 2, 3, 4], 1)]
    found = filtered(log, settings(consistency=f"{HERE}:EvenSeconds"), columnar=columnar)
    assert [(first, last) for first, last, *_ in found.barriers()] == [(3, 3), (5, 5)]


def alone(channel: ChannelConfig, work: WorkFolder) -> None:
    """An engine without workers."""
    run_plan_job(work, InProcess())


def test_an_engine_of_the_site_runs_the_plan_job(tmp_path: Path) -> None:
    with zipfile.ZipFile(stored()[0]) as window:
        window.extractall(tmp_path)
    work = WorkFolder(str(next(tmp_path.rglob("manifest.json")).parent))
    chosen(PLAN_ENGINES, f"{HERE}:alone", "--engine")(_channel(tmp_path), work)
    assert work.child(read_inputs(work).key).exists(PLAN)


def _channel(folder: Path, lanes: str = "") -> ChannelConfig:
    file = folder / "dags" / "channels" / "shop.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'[source]\nconnection = "a"\n[target]\nconnection = "b"\n[lanes]\n{lanes}\n')
    return load_channel(file, {})


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
    assert _channel(tmp_path, 'assigner = "acme.shards:ByTenant"').lanes.assigner == "acme.shards:ByTenant"
    with pytest.raises(
        ConfigError, match=r"lanes\.assigner: expected one of database, pattern, or package\.module:Class"
    ):
        _channel(tmp_path, 'assigner = "acme.shards"')
