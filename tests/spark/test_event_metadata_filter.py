"""The plan job on a real Spark, in processes and here: the same plan and lane files, byte for byte; and on an object
store."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
import subprocess
import sys
import sysconfig
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import pytest
import s3fs
from moto.server import ThreadedMotoServer

from binlane.config import load_channel
from binlane.errors import BinlogError, PlanError
from binlane.model import RowCounts, TableKey
from binlane.orchestration.plan_job import engines
from binlane.orchestration.plan_job.spark_submit import spark_properties
from binlane.plan.manifest import Segment
from binlane.plan.segment.map import MapSummary
from binlane.plan.window.mapped import MappedWindow
from binlane.plan.window.reduce import LaneFolder
from binlane.plan.window_plan import WindowPlan
from binlane.schema.codec import schema_to_json
from binlane.schema.model import Column, Key, KeyColumn, Table
from binlane.work.files import CHANNEL, MANIFEST, PLAN, SCHEMA, WorkFolder
from binlane.work.plan_inputs import read_inputs
from binlane.work.plan_job import folded_files, job
from binlane.work.plan_job.job import Engine, InProcess, LocalProcesses, run_plan_job
from binlane.work.planned import PlannedLanes
from tests.unit.binlog.cases import mariadb_gtid
from tests.unit.plan.logs import (
    EMPTY_SCHEMA,
    HEAD,
    IN_TRANSACTION,
    XID,
    alone,
    insert,
    manifest_of,
    rows,
    segment_of,
    settings,
    statements,
    table_map,
)

PROJECT = Path(__file__).parents[2]
LOG = [
    *(rows(seqno, "abcd"[seqno % 4], count=seqno % 5 + 1) for seqno in range(1, 30)),
    alone(30, "CREATE TABLE n (a INT)"),
    statements(31, "INSERT INTO t VALUES (1)", "DELETE FROM t"),
    rows(32, "a", "b"),
    alone(33, "CREATE USER u"),
    *(rows(seqno, "abcd"[seqno % 4]) for seqno in range(34, 60)),
]
CUTS = (17, 31, 40)
PLAIN = [
    (
        mariadb_gtid(seqno, IN_TRANSACTION),
        *(part for n, name in enumerate(names, 1) for part in (table_map(n, name), insert(n, [seqno, 1000 + seqno]))),
        XID,
    )
    for seqno, names in enumerate(["a", "b", "c", "a", "a", "b", "ab", "b"] * 7, 1)
]
"""Each row once, so that the tables can be folded; one transaction in eight is a barrier."""


def fill(
    folder: WorkFolder, log: Sequence[tuple[bytes, ...]] = LOG, cuts: Sequence[int] = CUTS, reduce: str = "off"
) -> None:
    """A window's inputs, as extraction leaves them."""
    key = Key("PRIMARY", unique=True, primary=True, columns=(KeyColumn("id"),))
    names = [TableKey(database, "t") for database in "ab"]
    tables = {name: Table(name, "InnoDB", (Column("id", 1, "int", nullable=False),), (key,)) for name in names}
    edges, segments, start = [0, *cuts, len(log)], list[Segment](), len(HEAD)
    for first, last in itertools.pairwise(edges):
        data, segment = segment_of(log[first:last], first + 1, start)
        folder.write_once(segment.name, data)
        segments.append(segment)
        start = segment.end_offset
    folder.write_once(SCHEMA, schema_to_json(dataclasses.replace(EMPTY_SCHEMA, tables=tables)))
    chosen = settings(shard_list="(critical)=d\n", reduce=reduce, window_bytes=1500, block_bytes=100_000)
    folder.write_once(CHANNEL, chosen.to_json())
    folder.write_once(MANIFEST, manifest_of(segments).to_json())


def outcome(folder: Path) -> dict[str, bytes]:
    """Every file that the job has written, by its place below the plan's folder."""
    (plans,) = (path.parent for path in folder.glob(f"*/{PLAN}"))
    return {str(path.relative_to(plans)): path.read_bytes() for path in plans.rglob("*") if path.is_file()}


@pytest.mark.parametrize("reduce", ["off", "window"])
def test_every_engine_writes_the_same_files_byte_for_byte(tmp_path: Path, reduce: str) -> None:
    engines: dict[str, Engine | None] = {"here": InProcess(), "processes": LocalProcesses(2)}
    # Spark, which takes half a minute of a core to start, once: with all three stages
    if reduce == "window":
        if shutil.which("java") is None:
            pytest.skip("no java on PATH: no Spark to test with")
        engines["spark"] = None
    for name, engine in engines.items():
        folder = WorkFolder(str(tmp_path / name))
        fill(folder, reduce=reduce)
        if engine is None:
            said = submit(folder)
            assert "binlane: planned seqno 1 to 59, digest " in said
        else:
            run_plan_job(folder, engine)
    here, *others = (outcome(tmp_path / name) for name in engines)
    assert len(here) > 8
    for other in others:
        assert other == here


def test_a_window_is_folded_over_segments_and_each_block_comes_apart_again(tmp_path: Path) -> None:
    """Over the same log: fewer blocks than by block, the same transactions in the same order, between barriers only."""
    planned: dict[str, WindowPlan] = {}
    lanes: dict[str, PlannedLanes] = {}
    for reduce in ("block", "window"):
        folder = WorkFolder(str(tmp_path / reduce))
        fill(folder, PLAIN, reduce=reduce)
        planned[reduce] = run_plan_job(folder, InProcess())
        (plans,) = (path.parent for path in (tmp_path / reduce).glob(f"*/{PLAN}"))
        lanes[reduce] = PlannedLanes(WorkFolder(str(plans)), planned[reduce])
    block, window = planned["block"], planned["window"]
    assert window.barriers == block.barriers
    assert {key: each.read for key, each in window.tables.items()} == {k: e.read for k, e in block.tables.items()}
    over_segments = 0
    for lane in window.all_lanes:
        found = [(made.header, list(made.items)) for made in lanes["window"].blocks(lane, 0)]
        before = [made.header for made in lanes["block"].blocks(lane, 0)]
        assert sum(head.transactions for head, _ in found) == sum(head.transactions for head in before)
        assert len(found) <= len(before)
        assert sum((item.rows for _, items in found for item in items), RowCounts()) == window.lane_rows[lane]
        for head, _ in found:
            pieces = [piece.header for piece in lanes["window"].pieces(lane, head)]
            over_segments += any(pieces[0].first_seqno <= cut < pieces[-1].last_seqno for cut in CUTS)
            assert (len(pieces), pieces[0].source, pieces[-1].gtid) == (head.transactions, head.source, head.gtid)
            assert (pieces[0].first_seqno, pieces[-1].last_seqno) == (head.first_seqno, head.last_seqno)
            for barrier in window.barriers_of(lane):
                inside = [barrier.first <= piece.first_seqno <= barrier.last for piece in pieces]
                assert all(inside) or not any(inside)
                assert all(inside) or not head.first_seqno < barrier.first <= head.last_seqno
    assert over_segments > 2


def test_a_killed_folding_leaves_nothing_and_runs_again_to_the_same_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = (WorkFolder(str(tmp_path / name)) for name in ("whole", "broken"))
    for folder in (whole, broken):
        fill(folder, PLAIN, reduce="window")
    run_plan_job(whole, InProcess())
    with monkeypatch.context() as patched:
        patched.setattr(LaneFolder, "_fold", failing(LaneFolder._fold))
        with pytest.raises(PlanError, match="injected"):
            run_plan_job(broken, InProcess())
    assert not list((tmp_path / "broken").rglob("*.part"))
    assert not list((tmp_path / "broken").glob(f"*/{PLAN}"))
    run_plan_job(broken, InProcess())
    assert outcome(tmp_path / "broken") == outcome(tmp_path / "whole")
    (part, *_) = sorted((tmp_path / "broken").glob("*/parts/0000/*.parquet"))
    data = part.read_bytes()
    with monkeypatch.context() as patched:
        # damaged behind the map, which would write it anew
        patched.setattr(job, "MappedWindow", Damaging(part, data))
        with pytest.raises(PlanError, match=r"parts/0000/.*expected BLAKE3"):
            run_plan_job(broken, InProcess())


def failing(fold: Callable[[LaneFolder], None]) -> Callable[[LaneFolder], None]:
    """``_fold``, which fails when files are open: not before its ninth call."""
    calls = itertools.count(1)

    def broken(folder: LaneFolder) -> None:
        if next(calls) == 9:
            raise PlanError("injected")
        fold(folder)

    return broken


def test_a_lane_s_blocks_are_the_same_in_more_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for name, size in (("one", 64 << 20), ("many", 1)):
        monkeypatch.setattr(folded_files, "_FILE_BYTES", size)
        folder = WorkFolder(str(tmp_path / name))
        fill(folder, PLAIN, reduce="window")
        plan = run_plan_job(folder, InProcess())
        (plans,) = (path.parent for path in (tmp_path / name).glob(f"*/{PLAN}"))
        lanes = PlannedLanes(WorkFolder(str(plans)), plan)
        blocks = [(block.header, tuple(block.items)) for lane in plan.all_lanes for block in lanes.blocks(lane, 0)]
        found.append((blocks, [file.blocks for files in plan.files for file in files]))
    assert found[0][0] == found[1][0]
    assert max(found[0][1]) > 1
    assert set(found[1][1]) == {1}


class Damaging:
    """Stands for ``MappedWindow``: when the parts are written, one of them is changed."""

    def __init__(self, path: Path, data: bytes) -> None:
        self.path, self.data = path, data

    def of(self, summaries: Iterable[MapSummary]) -> MappedWindow:
        found, data = MappedWindow.of(summaries), self.data
        half = len(data) // 2
        self.path.write_bytes(data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :])
        return found


def submit(folder: WorkFolder) -> str:
    """spark-submit, as the DAG's task calls it; what it printed."""
    properties = {
        **spark_properties({}),
        "spark.master": "local[2]",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.pyspark.python": sys.executable,
    }
    command = [str(Path(sysconfig.get_path("scripts")) / "spark-submit")]
    command += [part for name, value in properties.items() for part in ("--conf", f"{name}={value}")]
    script = PROJECT / "spark_jobs" / "event_metadata_filter.py"
    environment = {
        **os.environ,
        "PATH": f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(PROJECT / "plugins"),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [*command, str(script), "--work", folder.uri],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_an_executor_s_error_reaches_who_submits_the_job_whole_and_with_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = WorkFolder(str(tmp_path / "work"))
    fill(folder)
    segment = tmp_path / "work" / "segments" / "000018.binlog"
    segment.write_bytes(segment.read_bytes()[:-9] + bytes(9))
    file = tmp_path / "dags" / "channels" / "orders.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        '[source]\nconnection = "a"\n[target]\nconnection = "b"\n[spark.conf]\n"spark.master" = "local[1]"\n'
        '"spark.hadoop.fs.s3a.secret.key" = "made-up-7Qx9"\n'
    )
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "plugins"))
    with pytest.raises(PlanError, match=r"^\S+000018.binlog: expected BLAKE3 .* it reads the same\S*") as failed:
        engines.submit(load_channel(file, {}), folder)
    assert "made-up-7Qx9" not in str(failed.value)
    # the driver, too, reads the files of the digests that it gets
    known = WorkFolder(folder.uri, read_inputs(folder).digests)
    with pytest.raises(PlanError, match=r"^\S+000018.binlog: expected BLAKE3 "):
        engines.submit(load_channel(file, {}), known)
    (tmp_path / "work" / "channel.json").write_bytes(folder.read("channel.json") + b"\n")
    with pytest.raises(PlanError, match=r"channel\.json: expected SHA-256 \w+, as the target has recorded"):
        engines.submit(load_channel(file, {}), known)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An object store on this machine; fsspec finds it by the environment, in child processes, too."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "made-up",
        "AWS_SECRET_ACCESS_KEY": "made-up",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    # the store's content outlives its server
    bucket = f"windows-{uuid.uuid4().hex}"
    s3fs.S3FileSystem().mkdir(bucket)
    yield f"s3://{bucket}/orders/w1"
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def test_a_work_folder_on_an_object_store_gets_the_same_files(tmp_path: Path, store: str) -> None:
    local, remote = WorkFolder(str(tmp_path / "local")), WorkFolder(store)
    for folder in (local, remote):
        fill(folder)
    plan = run_plan_job(local, InProcess())
    run_elsewhere(remote)
    assert run_plan_job(remote, InProcess()) == plan
    for name, content in outcome(tmp_path / "local").items():
        (key,) = {path.parent.name for path in (tmp_path / "local").glob(f"*/{PLAN}")}
        assert remote.child(key).read(name) == content
    lanes = PlannedLanes(remote.child(key), plan)
    found = [(block.header.first_seqno, len(list(block.items))) for lane in range(4) for block in lanes.blocks(lane, 0)]
    assert len(found) == sum(file.blocks for files in plan.files for file in files)
    remote.remove()
    with pytest.raises(PlanError, match="is missing"):
        remote.read(MANIFEST)


def test_what_another_process_has_written_meanwhile_is_seen(store: str) -> None:
    """A client of an object store keeps what it has listed."""
    folder, other = WorkFolder(store), s3fs.S3FileSystem(skip_instance_cache=True)
    folder.write_once("one", b"1")
    assert folder.names() == ("one",)
    assert not folder.exists("two")
    for name in ("two", "three/four"):
        other.pipe_file(folder.path(name), b"2")
    assert folder.exists("two")
    assert folder.names() == ("one", "two")
    assert folder.children() == ("three",)


def run_elsewhere(folder: WorkFolder) -> None:
    """The local engine in a process of its own: the pool's processes have the environment of the first one's time."""
    program = (
        "import sys; from binlane.work.files import WorkFolder; from binlane.work.plan_job.job import LocalProcesses, "
        "run_plan_job; run_plan_job(WorkFolder(sys.argv[1]), LocalProcesses(2))"
    )
    environment = {**os.environ, "PYTHONPATH": str(PROJECT / "plugins")}
    subprocess.run([sys.executable, "-c", program, folder.uri], env=environment, check=True, timeout=120)


def test_a_failed_map_leaves_no_lane_file_on_an_object_store(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = WorkFolder(store)
    fill(folder)
    calls = []

    def broken(*arguments: object, **named: object) -> None:
        calls.append(arguments)
        raise PlanError("injected")

    monkeypatch.setattr("binlane.plan.row_accounting.Tally.add_lane", broken)
    with pytest.raises(PlanError, match="injected"):
        run_plan_job(folder, InProcess())
    assert calls
    names = s3fs.S3FileSystem().find(store.removeprefix("s3://"))
    assert [name for name in names if name.endswith(".parquet")] == []


@pytest.mark.parametrize("place", ["local", "remote"])
def test_a_segment_that_is_missing_cut_or_changed_is_refused_and_nothing_is_planned(
    place: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder = WorkFolder(str(tmp_path) if place == "local" else request.getfixturevalue("store"))
    fill(folder)
    filesystem = folder._place[0]
    path = folder.path("segments/000018.binlog")
    data = filesystem.cat_file(path)
    for damaged, said in (
        (data[:-40], "bytes as in the manifest"),
        (b"", "bytes as in the manifest"),
        (data[:-9] + bytes((data[-9] ^ 1,)) + data[-8:], "expected BLAKE3"),
        (None, "is missing"),
    ):
        filesystem.rm_file(path)
        if damaged is not None:
            filesystem.pipe_file(path, damaged)
        with pytest.raises(PlanError, match=said):
            run_plan_job(folder, InProcess())
        if damaged is None:
            filesystem.pipe_file(path, data)
    assert not any(name.endswith(PLAN) for name in filesystem.find(folder.path("")))
    run_plan_job(folder, InProcess())


def test_every_engine_raises_the_same_error_for_events_that_cannot_be_applied(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    fill(folder, [rows(1, "a"), statements(2, "LOAD DATA INFILE '/x' INTO TABLE t"), rows(3, "a")], (1,))
    said = []
    for engine in (InProcess(), LocalProcesses(2)):
        with pytest.raises(BinlogError, match="LOAD DATA") as refused:
            run_plan_job(folder, engine)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert said[0].startswith("binlog.000007:")
