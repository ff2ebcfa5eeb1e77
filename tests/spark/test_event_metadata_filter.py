"""The filter job on a real Spark, in processes and here: the same plan and lane files, byte for byte; and on an object
store."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import sysconfig
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import s3fs
from moto.server import ThreadedMotoServer

from binlane.errors import BinlogError, PlanError
from binlane.plan.manifest import Segment
from binlane.plan.schema_json import schema_to_json
from binlane.work.files import CHANNEL, MANIFEST, PLAN, SCHEMA, WorkFolder
from binlane.work.filter_job import Engine, InProcess, LocalProcesses, run_filter
from binlane.work.planned import PlannedLanes
from tests.unit.plan.logs import EMPTY_SCHEMA, HEAD, alone, manifest_of, rows, segment_of, settings, statements

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


def fill(folder: WorkFolder, log: Sequence[tuple[bytes, ...]] = LOG, cuts: Sequence[int] = CUTS) -> None:
    """A window's inputs, as extraction leaves them."""
    edges, segments, start = [0, *cuts, len(log)], list[Segment](), len(HEAD)
    for first, last in itertools.pairwise(edges):
        data, segment = segment_of(log[first:last], first + 1, start)
        folder.write_once(segment.name, data)
        segments.append(segment)
        start = segment.end_offset
    folder.write_once(SCHEMA, schema_to_json(EMPTY_SCHEMA))
    folder.write_once(CHANNEL, settings(shard_list="(critical)=d\n").to_json())
    folder.write_once(MANIFEST, manifest_of(segments).to_json())


def outcome(folder: Path) -> dict[str, bytes]:
    """Every file that the job has written, by its place below the plan's folder."""
    (plans,) = (path.parent for path in folder.glob(f"*/{PLAN}"))
    return {str(path.relative_to(plans)): path.read_bytes() for path in plans.rglob("*") if path.is_file()}


def test_every_engine_writes_the_same_files_byte_for_byte(tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("no java on PATH: no Spark to test with")
    engines: dict[str, Engine | None] = {"here": InProcess(), "processes": LocalProcesses(2), "spark": None}
    for name, engine in engines.items():
        folder = WorkFolder(str(tmp_path / name))
        fill(folder)
        if engine is None:
            said = submit(folder)
            assert "binlane: planned seqno 1 to 59, digest " in said
        else:
            run_filter(folder, engine)
    here, processes, spark = (outcome(tmp_path / name) for name in engines)
    assert len(here) > 8
    assert processes == here
    assert spark == here


def submit(folder: WorkFolder) -> str:
    """spark-submit, as the DAG's task calls it; what it printed."""
    properties = {
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
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
    plan = run_filter(local, InProcess())
    run_elsewhere(remote)
    assert run_filter(remote, InProcess()) == plan
    for name, content in outcome(tmp_path / "local").items():
        (key,) = {path.parent.name for path in (tmp_path / "local").glob(f"*/{PLAN}")}
        assert remote.child(key).read(name) == content
    lanes = PlannedLanes(remote.child(key), plan)
    found = [(block.header.first_seqno, len(list(block.items))) for lane in range(4) for block in lanes.blocks(lane, 0)]
    assert len(found) == sum(file.blocks for files in plan.files for file in files)
    remote.remove()
    with pytest.raises(PlanError, match="is missing"):
        remote.read(MANIFEST)


def run_elsewhere(folder: WorkFolder) -> None:
    """The local engine in a process of its own: the pool's processes have the environment of the first one's time."""
    program = (
        "import sys; from binlane.work.files import WorkFolder; from binlane.work.filter_job import LocalProcesses, "
        "run_filter; run_filter(WorkFolder(sys.argv[1]), LocalProcesses(2))"
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

    monkeypatch.setattr("binlane.plan.tally.Tally.add_lane", broken)
    with pytest.raises(PlanError, match="injected"):
        run_filter(folder, InProcess())
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
        (data[:-40], "bytes by the manifest"),
        (b"", "bytes by the manifest"),
        (data[:-9] + bytes((data[-9] ^ 1,)) + data[-8:], "expected SHA-256"),
        (None, "is missing"),
    ):
        filesystem.rm_file(path)
        if damaged is not None:
            filesystem.pipe_file(path, damaged)
        with pytest.raises(PlanError, match=said):
            run_filter(folder, InProcess())
        if damaged is None:
            filesystem.pipe_file(path, data)
    assert not any(name.endswith(PLAN) for name in filesystem.find(folder.path("")))
    run_filter(folder, InProcess())


def test_what_cannot_be_applied_is_the_same_error_from_every_engine(tmp_path: Path) -> None:
    folder = WorkFolder(str(tmp_path))
    fill(folder, [rows(1, "a"), statements(2, "LOAD DATA INFILE '/x' INTO TABLE t"), rows(3, "a")], (1,))
    said = []
    for engine in (InProcess(), LocalProcesses(2)):
        with pytest.raises(BinlogError, match="LOAD DATA") as refused:
            run_filter(folder, engine)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert said[0].startswith("binlog.000007:")
