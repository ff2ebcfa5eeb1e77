"""The ways to bring a source's log onto a target: the server's own replica, the client pipe, binlane.

Each is timed from the moment when it has everything it needs to the moment when the last transaction is committed.
"""

from __future__ import annotations

import os
import queue
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from benchmarks import limit
from benchmarks.channel import Channel, file_of, open_channel, run_window
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.lane_processes import look_at_target

if TYPE_CHECKING:
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier

    from benchmarks.private import Traffic
    from binlane.config import ChannelConfig
    from binlane.connections import Endpoints
    from lab.servers import PrivateServer

_POLL: Final = 0.05
_FOLDING: Final = {"off": "replay", "block": "reduce", "window": "reduce the window", "auto": "as chosen"}
"""The names of the values of ``blocks.reduce``."""
_WRITERS: Final = {"binlog": "", "sql": ", SQL"}
"""What the name of a way adds for ``apply.writer``."""
_COMMITS: Final = {"alone": "", "together": ", together"}
"""What the name of a way adds for ``lanes.commit``."""
_IMAGES: Final = {"auto": "", "full": ", whole images"}
"""What the name of a way adds for ``apply.row_images``."""
COMMAND: Final = "binlane run"
"""The name of ``command``."""
START: Final = "START REPLICA"
"""The name of ``replication``, with 8 threads: what a whole window is compared with."""
LIMIT: Final = "LOAD DATA of the net rows"
"""The name of ``load_data``: how far the apply step is from what the server can do."""
_MOST_SECONDS: Final = 4 * 3600.0
_REPLICA_STATUS: Final = {Flavor.MARIADB: "SHOW SLAVE STATUS", Flavor.MYSQL: "SHOW REPLICA STATUS"}


class BenchmarkError(RuntimeError):
    """A way did not get to the log's end; the message says why."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds from start to last commit, and what else was seen."""

    seconds: float
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Job:
    """One measurement: a fresh target and the log that it is to get."""

    source: PrivateServer
    target: PrivateServer
    traffic: Traffic
    folder: Path
    """For what the way leaves behind; empty."""
    channel: Channel
    """Lanes and blocks, for binlane."""
    applied: Traffic | None = None
    """The first part of the log, which the target has before the clock starts."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a log is applied, and the options that its target is started with, by flavor."""

    run: Callable[[Job], Timing]
    first: Callable[[Job], None] | None = None
    """Applies ``Job.applied``, with the same servers running; None: the way cannot begin later."""
    options: dict[Flavor, tuple[str, ...]] = field(default_factory=dict)
    native: bool = False
    """The server's own replica: what the others are compared with."""
    whole: bool = False
    """From the source to the last commit, receiving included: such ways are compared with one another."""
    once: bool = False
    """Measured once, whatever ``--runs`` asks for: so far behind all others that a second run says nothing more."""
    lanes: int | None = None
    """Of binlane; one lane keeps the source's order, consistency any_time."""
    reduce: str = "block"
    writer: str = "binlog"
    """``apply.writer``: BINLOG statements, or rows as SQL."""
    divide: str | None = None
    """``lanes.divide``, if every database is divided."""
    commit: str = "alone"
    """``lanes.commit``, if every database is divided."""
    row_images: str = "auto"
    """``apply.row_images``."""


Ways: TypeAlias = dict[str, Way]


def replica(job: Job) -> Timing:
    """The target's own replica: the relay log is complete before its SQL threads start."""
    start, wait = _configure_replica(job)
    began = time.monotonic()
    job.target.query(start.format("IO_THREAD"))
    _wait_for_relay_log(job)
    received, began = time.monotonic() - began, time.monotonic()
    job.target.query(start.format("SQL_THREAD"))
    _wait_for_end(job, wait, began)
    return Timing(time.monotonic() - began, {"receive_seconds": round(received, 3)})


def replication(job: Job) -> Timing:
    """The target's own replica with nothing received yet: it fetches the log while it applies it, like ``command``."""
    start, wait = _configure_replica(job, None if job.applied is None else job.applied.files[-1])
    began = time.monotonic()
    job.target.query(start.format(""))
    _wait_for_end(job, wait, began)
    return Timing(time.monotonic() - began)


def replicate_first(job: Job) -> None:
    """Apply the first part of the log by the replica, and forget what it has received of the rest."""
    assert job.applied is not None
    start, _ = _configure_replica(job)
    target, began = job.target, time.monotonic()
    if target.flavor is Flavor.MARIADB:
        # the newest file was empty then
        last = job.applied.files[-2]
        until = f"master_log_file = '{last.name}', master_log_pos = {last.stat().st_size}"
        stop = "STOP SLAVE", "RESET SLAVE"
    else:
        ((uuid,),) = job.source.query("SELECT @@server_uuid")
        until = f"SQL_AFTER_GTIDS = '{uuid}:1-{job.applied.transactions}'"
        stop = "STOP REPLICA", "RESET REPLICA"
    target.query(start.format("") + f" UNTIL {until}")
    while status_of(_replica_status(target), "SQL") != "No":
        if time.monotonic() - began > _MOST_SECONDS:
            raise BenchmarkError("the replica does not reach the end of the log's first part")
        time.sleep(_POLL)
    for statement in stop:
        target.query(statement)


def _configure_replica(job: Job, begin: Path | None = None) -> tuple[str, str]:
    """Point the target at the source's log, on MariaDB at its file ``begin``; the statement that starts threads, and
    the one that waits for its end."""
    target, source = job.target, job.source
    if target.flavor is Flavor.MARIADB:
        place = f"master_host = '127.0.0.1', master_port = {source.port}, master_user = '{source.user}'"
        # the file that was begun behind the first part, when that has been applied
        first = (job.traffic.files[0] if begin is None else begin).name
        target.query(
            f"CHANGE MASTER TO {place}, master_password = '{source.password}', master_use_gtid = no, "
            f"master_log_file = '{first}', master_log_pos = 4"
        )
        end = str(source.query("SELECT @@gtid_binlog_pos")[0][0])
        return "START SLAVE {}", f"SELECT MASTER_GTID_WAIT('{end}', 1)"
    place = f"SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {source.port}, SOURCE_USER = '{source.user}'"
    target.query(
        f"CHANGE REPLICATION SOURCE TO {place}, SOURCE_PASSWORD = '{source.password}', SOURCE_AUTO_POSITION = 1, "
        "GET_SOURCE_PUBLIC_KEY = 1"
    )
    end = str(source.query("SELECT @@GLOBAL.gtid_executed")[0][0])
    return "START REPLICA {}", f"SELECT WAIT_FOR_EXECUTED_GTID_SET('{end}', 1)"


def _wait_for_end(job: Job, wait: str, began: float) -> None:
    while job.target.query(wait)[0][0] != 0:
        _check_replica(job.target, began)


def _wait_for_relay_log(job: Job) -> None:
    last, began = job.traffic.files[-1], time.monotonic()
    while True:
        status = _replica_status(job.target)
        file = status.get("Master_Log_File", status.get("Source_Log_File"))
        position = int(status.get("Read_Master_Log_Pos", status.get("Read_Source_Log_Pos", 0)))
        if file == last.name and position >= last.stat().st_size:
            return
        _check_replica(job.target, began)
        time.sleep(_POLL)


def _check_replica(target: PrivateServer, began: float) -> None:
    status = _replica_status(target)
    for name in ("Last_IO_Error", "Last_SQL_Error"):
        # the threads repeat transient errors by themselves; a text with a thread that has ended stays
        if (
            status.get(name)
            and "No" in (status_of(status, "IO"), status_of(status, "SQL"))
            and began + 5 < time.monotonic()
        ):
            raise BenchmarkError(f"the replica stopped: {status[name]}")
    if time.monotonic() - began > _MOST_SECONDS:
        raise BenchmarkError(f"the replica is not done after {_MOST_SECONDS:.0f} s")


def status_of(status: dict[str, Any], thread: str) -> str:
    """Yes, No or Connecting, of the IO or SQL thread."""
    return str(status.get(f"Slave_{thread}_Running", status.get(f"Replica_{thread}_Running", "")))


def _replica_status(target: PrivateServer) -> dict[str, Any]:
    connection = target.connect(autocommit=True)
    try:
        with connection.cursor() as cursor:
            cursor.execute(_REPLICA_STATUS[target.flavor])
            names = [column[0] for column in cursor.description or ()]
            return dict(zip(names, cursor.fetchone() or (), strict=True))
    finally:
        connection.close()


def client_pipe(job: Job) -> Timing:
    """``mysqlbinlog | mysql`` from the source's own files, over the target's socket."""
    target = job.target
    login = [f"--user={target.user}", f"--password={target.password}", f"--socket={target.socket}"]
    read = [str(target.tool("binlog")), "--no-defaults", *map(str, job.traffic.files)]
    write = [str(target.tool("client")), "--no-defaults", *login, "--binary-mode", "--max-allowed-packet=64M"]
    began = time.monotonic()
    with subprocess.Popen(read, stdout=subprocess.PIPE) as reader:
        writer = subprocess.run(write, stdin=reader.stdout, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if writer.returncode != 0 or reader.returncode != 0:
        raise BenchmarkError(f"the client pipe failed: {writer.stderr[-2000:]}")
    return Timing(seconds)


def load_data(job: Job) -> Timing:
    """The net rows of the log by LOAD DATA, over as many sessions as lanes; reading them is not timed."""
    job.folder.mkdir(exist_ok=True)
    changes = limit.net_changes(job.source, job.target, job.folder)
    seconds = limit.load(job.target, changes, job.channel.lanes)
    return Timing(seconds, {"tables": len(changes), "rows_written": sum(each.rows + each.gone for each in changes)})


def binlane(job: Job) -> Timing:
    """A whole window; what counts is the apply step alone, lanes as processes that are up before the clock starts."""
    steps_taken = run_window(job.channel, job.source, job.target, job.folder, apply_lanes)
    return Timing(steps_taken["apply_seconds"], steps_taken)


def command(job: Job) -> Timing:
    """``binlane run``: from the start of its process to its end, as an operator waits for it."""
    if job.applied is None:
        open_channel(job.channel, job.source, job.target, job.folder)
    return _command(job)


def command_first(job: Job) -> None:
    """A first window, up to the end of the log's first part."""
    assert job.applied is not None
    open_channel(job.channel, job.source, job.target, job.folder)
    behind = job.applied.transactions + 1
    if job.source.flavor is Flavor.MARIADB:
        ((domain, server),) = job.source.query("SELECT @@gtid_domain_id, @@server_id")
        _command(job, "--until", f"{domain}-{server}-{behind}")
    else:
        ((uuid,),) = job.source.query("SELECT @@server_uuid")
        _command(job, "--until", f"{uuid}:{behind}")


def _command(job: Job, *options: str) -> Timing:
    connections = {
        f"AIRFLOW_CONN_{name}": f"mysql://{each.user}:{each.password}@{each.host}:{each.port}/"
        "?ssl_mode=disabled&get_server_public_key=true"
        for name, each in (("SOURCE", job.source), ("TARGET", job.target))
    }
    file = file_of(job.channel, job.folder)
    typed = [
        "-c",
        "from binlane.cli import program; program()",
        "run",
        job.channel.name,
        *options,
        "--channels",
        str(file.parent),
    ]
    environment = {**os.environ, **connections, "PYTHONPATH": os.pathsep.join(sys.path)}
    began = time.monotonic()
    done = subprocess.run([sys.executable, *typed], env=environment, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - began
    if done.returncode != 0:
        raise BenchmarkError(f"binlane run ended with {done.returncode}: {done.stderr[-2000:]}")
    return Timing(seconds, {"told": done.stdout.strip().splitlines()[-1:]})


def apply_lanes(channel: ChannelConfig, endpoints: Endpoints, plan_uri: str, lanes: list[int]) -> dict[str, Any]:
    """Every lane in a process of its own, which has looked at the target before it begins, as ``binlane run`` does;
    start-up apart."""
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    gate, results = context.Barrier(len(lanes) + 1), context.Queue()
    arguments = (channel, endpoints, plan_uri)
    processes = [context.Process(target=_lane, args=(*arguments, lane, gate, results), daemon=True) for lane in lanes]
    began = time.monotonic()
    for process in processes:
        process.start()
    gate.wait(120)
    started, began = time.monotonic() - began, time.monotonic()
    ended = [_next_result(results, processes) for _ in lanes]
    seconds = time.monotonic() - began
    for process in processes:
        process.join()
    if errors := [end["error"] for end in ended if end["error"] is not None]:
        raise BenchmarkError("; ".join(errors))
    return {
        "start_up_seconds": round(started, 3),
        "apply_seconds": round(seconds, 3),
        "lanes": sorted(ended, key=lambda end: int(end["lane"])),
    }


def _next_result(results: Queue[dict[str, Any]], processes: list[Any]) -> dict[str, Any]:
    while True:
        try:
            return results.get(timeout=1)
        except queue.Empty:
            if broken := [process.exitcode for process in processes if process.exitcode not in (0, None)]:
                raise BenchmarkError(f"lane processes ended with {broken}") from None


def _lane(
    channel: ChannelConfig,
    endpoints: Endpoints,
    plan_uri: str,
    lane: int,
    gate: Barrier,
    results: Queue[dict[str, Any]],
) -> None:
    look_at_target(channel.name, endpoints.target)
    gate.wait(120)
    began, error, answer = time.monotonic(), None, {}
    try:
        answer = steps.apply_lane(channel, endpoints, plan_uri, lane)
    except Exception as exc:
        error = f"lane {lane}: {type(exc).__name__}: {exc}"
    used = resource.getrusage(resource.RUSAGE_SELF)
    results.put(
        {
            "lane": lane,
            "seconds": round(time.monotonic() - began, 3),
            "cpu_seconds": round(used.ru_utime + used.ru_stime, 3),
            "peak_rss_mib": used.ru_maxrss >> 10,
            "blocks": answer.get("blocks"),
            "transactions": answer.get("transactions"),
            "error": error,
        }
    )


def _replica_options(threads: int) -> dict[Flavor, tuple[str, ...]]:
    # MariaDB: 0 is the one SQL thread that applies by itself; MySQL has a coordinator besides its one worker
    mariadb = (f"--slave-parallel-threads={threads if threads > 1 else 0}", "--slave-parallel-mode=optimistic")
    return {Flavor.MARIADB: mariadb, Flavor.MYSQL: (f"--replica-parallel-workers={threads}",)}


def ways(
    lanes: list[int],
    reduce: list[str],
    writers: list[str],
    divide: list[str],
    images: list[str],
    commits: Sequence[str] = ("alone",),
) -> Ways:
    """All ways, in the order of the table. ``images``: values of ``apply.row_images``; ``commits``: of
    ``lanes.commit``."""
    return {
        "replica, 1 thread": Way(replica, options=_replica_options(1), native=True, once=True),
        "replica, 8 threads": Way(replica, options=_replica_options(8), native=True),
        START: Way(replication, replicate_first, _replica_options(8), native=True, whole=True),
        "client pipe": Way(client_pipe, once=True),
        LIMIT: Way(load_data, options={Flavor.MYSQL: ("--local-infile=ON",)}, lanes=max(lanes)),
        **{
            f"binlane, {_FOLDING.get(each, each)}, {count} lane{'s' * (count > 1)}"
            f"{_WRITERS.get(writer, writer)}{_IMAGES.get(image, image)}": Way(
                binlane, lanes=count, reduce=each, writer=writer, row_images=image
            )
            for image in images
            for writer in writers
            for each in reduce
            for count in lanes
        },
        COMMAND: Way(command, command_first, lanes=max(lanes), reduce="auto", whole=True),
        **{
            f"binlane, {_FOLDING[each]}, {count} lanes, divided by {how}{_COMMITS[commit]}": Way(
                binlane, lanes=count, reduce=each, divide=how, commit=commit
            )
            for how in divide
            for each in reduce
            for count in lanes
            for commit in commits
            # lanes that fold a window each have blocks of their own, which cannot commit together
            if each != "off" and count > 1 and (each, commit) != ("window", "together")
        },
    }
