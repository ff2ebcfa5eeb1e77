"""The cluster's servers as processes that end with the process that started them."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil
import pyspark

from lab.private_files import write_private
from lab.programs import LabError, run
from lab.servers import HOST, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_START_SECONDS: Final = 300.0
_STOP_SECONDS: Final = 20.0
_SPARK_CLASS: Final = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY: Final = "org.apache.spark.deploy"
_EXECUTOR: Final = "CoarseGrainedExecutorBackend"


@dataclass(slots=True)
class Server:
    """A server program on a port of its own; ``kill`` and ``start`` again as often as needed."""

    name: str
    command: Sequence[str]
    port: int
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    stops_at: signal.Signals = signal.SIGTERM
    _process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process's id. Raises LabError if the server was not started."""
        if self._process is None:
            raise LabError(f"{self.name} was not started")
        return self._process.pid

    def start(self) -> None:
        """Start it, and return when its port answers. Raises LabError with the end of its log."""
        # the signal is sent when the starting thread ends
        guarded = ["setpriv", "--pdeathsig", "KILL", *self.command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                guarded,
                env={**os.environ, **self.environment},
                cwd=self.log.parent,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + _START_SECONDS
        while not _answers(self.port):
            if self._process.poll() is not None or time.monotonic() > end:
                tail = "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])
                raise LabError(f"{self.name}: nothing answers on port {self.port}\n{tail}")
            time.sleep(0.1)

    def kill(self) -> None:
        """SIGKILL, like the loss of its machine."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it, by force if it does not end soon; a no-op if it does not run."""
        if self._process is not None and self._process.poll() is None:
            self._end(self.stops_at)

    def _end(self, number: int) -> None:
        process = self._process
        assert process is not None
        process.send_signal(number)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def postgres(folder: Path) -> tuple[Server, str]:
    """A PostgreSQL in ``folder``, not started, and the URL of its database. Raises LabError if there is none."""
    programs = postgres_programs()
    if programs is None:
        raise LabError("no PostgreSQL: apt-get install postgresql")
    data, port, password = folder / "data", free_port(), secrets.token_hex(16)
    folder.mkdir()
    word = folder / "password"
    write_private(word, password)
    account = _unprivileged()
    if account is not None:
        shutil.chown(folder, account)
        shutil.chown(word, account)
    run(
        [
            *_as(account), str(programs / "initdb"), "--pgdata", str(data), "--username", "airflow", "--auth",
            "scram-sha-256", "--pwfile", str(word), "--no-sync", "--encoding", "UTF8", "--locale", "C",
        ]
    )  # fmt: skip
    command = [*_as(account), "setpriv", "--pdeathsig", "KILL", str(programs / "postgres")]
    command += ["-D", str(data), "-p", str(port), "-h", HOST, "-k", "", "-c", "fsync=off"]
    # a killed one would leave files in /dev/shm
    command += ["-c", "dynamic_shared_memory_type=mmap"]
    url = f"postgresql+psycopg2://airflow:{password}@{HOST}:{port}/postgres"
    # SIGTERM would wait for its clients
    server = Server("PostgreSQL", command, port, folder.parent / "postgresql.log", stops_at=signal.SIGINT)
    return server, url


def redis(folder: Path) -> tuple[Server, str]:
    """A Redis in ``folder``, not started, and its URL. Raises LabError if there is none."""
    program = shutil.which("redis-server")
    if program is None:
        raise LabError("no Redis: apt-get install redis-server")
    folder.mkdir()
    port, password = free_port(), secrets.token_hex(16)
    settings = folder / "redis.conf"
    lines = (f"bind {HOST}", f"port {port}", f"requirepass {password}", 'save ""', "appendonly no", f"dir {folder}")
    write_private(settings, "".join(f"{line}\n" for line in lines))
    return Server(
        "Redis", [program, str(settings)], port, folder.parent / "redis.log"
    ), f"redis://:{password}@{HOST}:{port}/0"


def spark_master(folder: Path) -> Server:
    """The master of a standalone cluster, not started."""
    port = free_port()
    command = [str(_SPARK_CLASS), f"{_DEPLOY}.master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0"]
    return Server("Spark's master", command, port, folder / "spark-master.log", _spark_environment())


def spark_worker(folder: Path, number: int, master: Server, environment: Mapping[str, str]) -> Server:
    """A worker of one core, not started. ``environment``: also of its executors."""
    port = free_port()
    command = [str(_SPARK_CLASS), f"{_DEPLOY}.worker.Worker", "--host", HOST, "--port", str(port), "--webui-port", "0"]
    command += ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"spark-worker-{number}")]
    log = folder / f"spark-worker-{number}.log"
    command.append(f"spark://{HOST}:{master.port}")
    return Server(f"Spark's worker {number}", command, port, log, {**_spark_environment(), **environment})


def executors(worker: Server) -> list[int]:
    """The process ids of a Spark worker's executors."""
    children = psutil.Process(worker.pid).children()
    return [child.pid for child in children if any(_EXECUTOR in word for word in _words(child))]


def missing_programs() -> str:
    """The command that installs what a cluster needs and this machine lacks; empty if nothing is missing."""
    missing = [] if postgres_programs() is not None else ["postgresql"]
    missing += [] if shutil.which("redis-server") is not None else ["redis-server"]
    return f"apt-get install {' '.join(missing)}" if missing else ""


def postgres_programs() -> Path | None:
    """The folder of PostgreSQL's programs, the newest where there are several; None if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    beside = shutil.which("initdb")
    if found:
        return found[-1].parent
    return None if beside is None else Path(beside).resolve().parent


def wait_until(reached: Callable[[], bool], what: str, seconds: float = 900.0) -> None:
    """Raises LabError if it is not reached in time."""
    end = time.monotonic() + seconds
    while not reached():
        if time.monotonic() > end:
            raise LabError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.1)


def _spark_environment() -> dict[str, str]:
    plugins = str(Path(__file__).resolve().parents[2] / "plugins")
    return {"PYTHONPATH": plugins, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": HOST}


def _unprivileged() -> str | None:
    """The account for PostgreSQL, which root may not run; None: this one."""
    if os.geteuid() != 0:
        return None
    known = {account.pw_name for account in pwd.getpwall()}
    return "postgres" if "postgres" in known else "nobody"


def _as(account: str | None) -> list[str]:
    if account is None:
        return []
    group = str(pwd.getpwnam(account).pw_gid)
    return ["setpriv", "--reuid", account, "--regid", group, "--clear-groups"]


def _words(process: psutil.Process) -> list[str]:
    try:
        words: list[str] = process.cmdline()
    except psutil.Error:
        return []
    return words


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
