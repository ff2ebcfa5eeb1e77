"""A private Airflow: own AIRFLOW_HOME with SQLite, LocalExecutor and two accounts, on a free port of 127.0.0.1.

The api-server is started first, and the other services after it is healthy: tasks that cannot reach it lose a try. To
stop this Airflow, all its processes must be found: a service that changes its title overwrites its environment, and a
task process leaves the session of its service, but no process does both. So a process belongs to this Airflow if it is
in a service's session or if its environment has this AIRFLOW_HOME.

``python -m lab.airflow HOME`` is the guard of the Airflow under HOME: it waits until its input ends, which it does with
the process that started it, however that ends, and then stops this Airflow.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lab.airflow_api import AirflowApi, ApiError
from lab.private_files import write_private
from lab.servers import HOST, LabError, free_port

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PROJECT: Final = Path(__file__).resolve().parent.parent
USER: Final = "admin"
VIEWER: Final = "viewer"
"""An account that may only read; it has the same password."""
_SERVICES: Final = ("scheduler", "dag-processor")
_AIRFLOW: Final = (sys.executable, "-m", "airflow")
_PARENT: Final = 1
"""Place of the parent's id among the fields from the state on."""
_SESSION: Final = 2
"""Place of the session's id after the state, in /proc/<pid>/stat."""
_GROUP: Final = 2
"""Place of the process group's id among the fields from the state on."""
_START_TIME: Final = 19
"""Place of the start time among the fields from the state on."""
_HANDLE: Final = "binlane-airflow.json"
_START_SECONDS: Final = 300.0
_STOP_SECONDS: Final = 10.0
_LOCK_SECONDS: Final = 60
"""Seconds that Airflow waits for the lock of its metadata database."""


@dataclass(slots=True)
class PrivateAirflow:
    """An Airflow under ``home``; ``connections`` are AIRFLOW_CONN_<ID> values by id."""

    home: Path
    port: int
    password: str = field(repr=False)
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    leaders: dict[int, int] = field(default_factory=dict)
    """Pid of a service, which leads its session, to the time it was started, in ticks since the machine's boot."""
    kept: bool = False
    """Whether it outlives the process that started it."""
    _services: dict[int, str] = field(default_factory=dict)
    """Names of the services that this object has started, by pid, in order."""
    _guard: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The UI's address."""
        return f"http://{HOST}:{self.port}"

    @property
    def api(self) -> AirflowApi:
        """A client with this Airflow's account."""
        return AirflowApi(self.url, USER, self.password)

    def environment(self) -> dict[str, str]:
        """The environment of every process of this Airflow."""
        # without the variables of the caller's own Airflow
        outer = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
        return outer | _places(self.home, self.port) | dict(self.settings)

    def exports(self) -> str:
        """The environment as a file for a shell's ``.``, in which `airflow` and `binlane` use this Airflow."""
        values = {**_places(self.home, self.port), **self.settings}
        del values["PATH"]
        lines = [f"export {name}={shlex.quote(value)}" for name, value in values.items()]
        return "\n".join([*lines, f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH", ""])

    def start(self, services: Sequence[str] = _SERVICES) -> None:
        """Create the metadata database and start the services; returns when they are healthy. Raises LabError.

        ``services``: the services in addition to the api-server.
        """
        (self.home / "logs").mkdir(parents=True, exist_ok=True)
        write_private(self.home / "passwords.json", json.dumps({USER: self.password, VIEWER: self.password}))
        self._write_handle()
        self.run("db", "migrate")
        self.launch("api-server")
        self._wait("the api-server", lambda: "metadatabase" in self.api.health())
        for service in services:
            self.launch(service)
        if services:
            self._wait(" and ".join(services), self.is_healthy)

    def is_healthy(self) -> bool:
        """Whether all services that a run needs are alive."""
        try:
            health = self.api.health()
        except ApiError:
            return False
        return all(health.get(part) == "healthy" for part in ("metadatabase", "scheduler", "dag_processor"))

    def wait_for_dag(self, dag_id: str) -> None:
        """Wait until the DAG is registered; raises LabError with its import error."""

        def registered() -> bool:
            if errors := self.api.import_errors():
                raise LabError("\n".join(f"{name}: {text}" for name, text in errors.items()))
            return dag_id in self.api.dag_ids()

        self._wait(f"the DAG {dag_id}", registered)

    def run(self, *arguments: str) -> str:
        """Run one ``airflow`` command (each costs seconds of imports); its output. Raises LabError."""
        done = subprocess.run(
            [*_AIRFLOW, *arguments], env=self.environment(), cwd=self.home, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise LabError(f"airflow {' '.join(arguments)}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def stop(self) -> None:
        """End every process of this Airflow, its tasks and Spark jobs included; a no-op if there is none."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            end = time.monotonic() + _STOP_SECONDS
            signalled: set[int] = set()
            while running := processes_of(self.home, self.leaders):
                # again for those that were forked meanwhile
                for pid in running - signalled:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                signalled |= running
                _reap(running)
                if time.monotonic() > end:
                    break
                time.sleep(0.1)
        (self.home / _HANDLE).unlink(missing_ok=True)
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None

    def log_tail(self, service: str, lines: int = 15) -> str:
        """The last lines of a service's log."""
        path = self.home / "logs" / f"{service}.log"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""

    def tasks(self) -> set[int]:
        """The task processes and their children: each task is a process group of its own in the session of its
        scheduler, also if the scheduler is dead."""
        return {
            pid
            for leader, service in self._services.items()
            if service == "scheduler"
            for pid, group in self._session(leader).items()
            if group != leader
        }

    def parent(self, pid: int) -> int:
        """The parent of a process; a task's parent is its supervisor."""
        return int(_stat(Path(f"/proc/{pid}"))[_PARENT])

    def task_commands(self) -> list[str]:
        """The command lines of the task processes."""
        lines = []
        for pid in sorted(self.tasks()):
            # gone meanwhile
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                lines.append(f"{pid}: {b' '.join(words).decode(errors='replace')}")
        return lines

    def kill(self, service: str, *, and_its_tasks: bool) -> None:
        """SIGKILL to a service's process, or to its whole session with its tasks, like the loss of its machine."""
        leader = next(pid for pid, name in reversed(self._services.items()) if name == service)
        os.kill(leader, signal.SIGKILL)
        # repeated: a listed process can start another before it is killed
        while and_its_tasks and (left := self._session(leader).keys() - {leader}):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        os.waitpid(leader, 0)

    def _session(self, leader: int) -> dict[int, int]:
        """Processes of a service's session, with their groups."""
        found = {}
        for pid in processes_of(self.home, {leader: self.leaders[leader]}):
            # gone meanwhile
            with contextlib.suppress(OSError):
                fields = _stat(Path(f"/proc/{pid}"))
                if int(fields[1 + _SESSION]) == leader:
                    found[pid] = int(fields[_GROUP])
        return found

    def keep(self, service: str) -> None:
        """Start a service again if its process is gone."""
        pid = next(pid for pid, name in reversed(self._services.items()) if name == service)
        # one that has ended by itself
        _reap({pid})
        if _started_at(pid) != self.leaders[pid]:
            self.launch(service)

    def launch(
        self,
        service: str,
        program: Sequence[str] = _AIRFLOW,
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Start a service without waiting for it. ``program``: replaces the ``airflow`` command; ``variables``: of its
        environment, besides Airflow's."""
        (self.home / "logs").mkdir(parents=True, exist_ok=True)
        if self._guard is None and not self.kept:
            self._guard = _guard_of(self.home)
        with (self.home / "logs" / f"{service}.log").open("ab") as log:
            started = subprocess.Popen(
                [*program, service, *options],
                env={**self.environment(), **(variables or {})},
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._services[started.pid] = service
        self.leaders[started.pid] = _started_at(started.pid) or 0
        self._write_handle()

    def _write_handle(self) -> None:
        """Write the file by which ``find`` finds this Airflow again; it contains the password."""
        values = {name: getattr(self, name) for name in ("port", "password", "settings", "leaders")}
        write_private(self.home / _HANDLE, json.dumps(values, default=dict))

    def _wait(self, what: str, ready: Callable[[], bool]) -> None:
        end = time.monotonic() + _START_SECONDS
        problem = "not healthy"
        while time.monotonic() < end:
            try:
                if ready():
                    return
            except ApiError as exc:
                problem = str(exc)
            time.sleep(0.3)
        tails = "\n".join(f"--- {name}\n{self.log_tail(name)}" for name in ("api-server", *_SERVICES))
        self.stop()
        raise LabError(f"{self.home}: {what}: not there after {_START_SECONDS:.0f} s: {problem}\n{tails}")


def new_airflow(
    home: Path, connections: Mapping[str, str], extra: Mapping[str, str] | None = None, *, kept: bool = False
) -> PrivateAirflow:
    """An Airflow to be started under ``home``: free port, new password, ``extra`` variables besides the connections.

    It ends with this process, however that ends, unless it is ``kept``.
    """
    settings = {f"AIRFLOW_CONN_{name.upper()}": value for name, value in connections.items()}
    settings["AIRFLOW__API_AUTH__JWT_SECRET"] = secrets.token_hex(48)
    return PrivateAirflow(
        home.absolute(), free_port(), secrets.token_urlsafe(12), {**settings, **(extra or {})}, kept=kept
    )


def find(home: Path) -> PrivateAirflow:
    """The Airflow that was started under ``home``, healthy or not, so that it can be used or stopped."""
    home = home.absolute()
    try:
        handle = json.loads((home / _HANDLE).read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return PrivateAirflow(home, 0, "", kept=True)
    leaders = {int(pid): int(started) for pid, started in handle["leaders"].items()}
    return PrivateAirflow(home, handle["port"], handle["password"], handle["settings"], leaders, kept=True)


def _guard_of(home: Path) -> subprocess.Popen[bytes]:
    """See the module's docstring."""
    command = [sys.executable, "-m", "lab.airflow", str(home)]
    places = {"PYTHONPATH": os.pathsep.join([str(PROJECT / "plugins"), str(PROJECT)])}
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, cwd=PROJECT, env={**os.environ, **places}, start_new_session=True
    )


def processes_of(home: Path, leaders: Mapping[int, int]) -> set[int]:
    """The processes of the Airflow under ``home``, except the calling one; see the module's docstring."""
    marker = f"AIRFLOW_HOME={home}".encode()
    # the id of a living session is not reused for another process, that of a dead one may be
    sessions = {pid for pid, started in leaders.items() if _started_at(pid) in (started, None)}
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        # gone meanwhile, or of another user
        with contextlib.suppress(OSError):
            state, *rest = _stat(entry)
            named = marker in (entry / "environ").read_bytes().split(b"\0")
            if state != "Z" and (named or int(rest[_SESSION]) in sessions):
                found.add(int(entry.name))
    return found


def _stat(entry: Path) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on; the second, the name, may contain spaces and brackets."""
    return (entry / "stat").read_text().rpartition(")")[2].split()


def _started_at(pid: int) -> int | None:
    try:
        return int(_stat(Path(f"/proc/{pid}"))[_START_TIME])
    except OSError:
        return None


def _reap(pids: set[int]) -> None:
    """Children of this process stay in the table, as zombies without an environment, until they are waited for."""
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _places(home: Path, port: int) -> dict[str, str]:
    url = f"http://{HOST}:{port}"
    programs = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        # a slot for every lane and the serialized lane: without a slot, a lane is applied by others at each barrier
        "AIRFLOW__CORE__PARALLELISM": "8",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin,{VIEWER}:viewer",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        # SQLite has one writer at a time; with its default of 5 seconds a busy machine's Airflow answers 500
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout={_LOCK_SECONDS}",
        "AIRFLOW__API__HOST": HOST,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__WORKERS": "1",
        # only triggered runs and backfills, so that results do not depend on the clock
        "AIRFLOW__SCHEDULER__USE_JOB_SCHEDULE": "False",
        "PYTHONPATH": os.pathsep.join([str(PROJECT / "plugins"), str(PROJECT / "config")]),
        "PATH": os.pathsep.join(programs),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(PROJECT / "config"),
        "SPARK_LOCAL_IP": HOST,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


if __name__ == "__main__":
    sys.stdin.buffer.read()
    find(Path(sys.argv[1])).stop()
