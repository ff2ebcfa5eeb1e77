"""Private MariaDB and MySQL servers: own data folder, 127.0.0.1 only, stopped together with the process that started
them.

A server that a test starts dies with it, even if the test is killed (``PR_SET_PDEATHSIG``, through util-linux's
``setpriv``). The signal is sent when the starting *thread* ends: start servers from a thread that outlives them, or
with ``keep=True`` a server that shall outlive its starter (``attach`` finds it again, ``stop`` ends it). The machine's
option files are not read, and its own servers are not used.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pymysql

from binlane.model import Flavor
from lab.programs import LabError, server_binary
from lab.templates import USER, common_options, data_template, password_in, private_password

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["LabError", "PrivateServer", "attach", "private_server", "start_server"]

HOST: Final = "127.0.0.1"
_HANDLE: Final = "binlane-server.json"
_LOG: Final = "server.log"
_START_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 60.0
_SOCKET_LIMIT: Final = 100
"""Maximum of ``sun_path``; pytest's folders are often longer."""
SHORT_FOLDER: Final = "/tmp"
"""For folders of sockets: the one that ``tempfile`` goes by may itself be too long for them."""
_PORT_TRIES: Final = 5


@dataclass(slots=True)
class PrivateServer:
    """A running private server. Only ``pid`` changes, in ``restart``."""

    flavor: Flavor
    port: int
    socket: Path
    datadir: Path
    name: str
    options: tuple[str, ...]
    program: Path
    pid: int = 0
    host: str = HOST
    user: str = USER
    password: str = field(default="", repr=False)
    keep: bool = False
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def url(self, database: str = "") -> str:
        """The SQLAlchemy URL of the server's administrator over TCP, without TLS: see ``connect``."""
        place = f"{self.user}:{self.password}@{self.host}:{self.port}/{database}"
        return f"mysql+pymysql://{place}?charset=utf8mb4&ssl_disabled=1"

    def connect(self, **changes: Any) -> pymysql.connections.Connection[pymysql.cursors.Cursor]:
        """A new PyMySQL connection; ``changes`` override its arguments."""
        arguments: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "connect_timeout": 10,
            # PyMySQL would load all certificate authorities of the machine, 80 ms a connection
            "ssl_disabled": True,
        }
        connection: pymysql.connections.Connection[pymysql.cursors.Cursor] = pymysql.connect(**(arguments | changes))
        return connection

    def query(self, statement: str, arguments: Sequence[object] | None = None) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own, in autocommit mode; all its rows."""
        with contextlib.closing(self.connect(autocommit=True)) as connection, connection.cursor() as cursor:
            cursor.execute(statement, arguments)
            return list(cursor.fetchall())

    def tool(self, name: str) -> Path:
        """A client program of the same installation: ``client``, ``binlog`` or ``dump``."""
        names = {
            (Flavor.MARIADB, "client"): "mariadb",
            (Flavor.MARIADB, "binlog"): "mariadb-binlog",
            (Flavor.MARIADB, "dump"): "mariadb-dump",
            (Flavor.MYSQL, "client"): "mysql",
            (Flavor.MYSQL, "binlog"): "mysqlbinlog",
            (Flavor.MYSQL, "dump"): "mysqldump",
        }
        program = names[self.flavor, name]
        beside = self.program.parent / program
        found = str(beside) if beside.exists() else shutil.which(program)
        if found is None:
            raise LabError(f"{program} is neither beside {self.program} nor on PATH: install the clients")
        return Path(found)

    def is_running(self) -> bool:
        """Whether the server's process is alive."""
        if self._process is not None:
            return self._process.poll() is None
        return _is_server(self.pid, self.datadir)

    def stop(self) -> None:
        """Shut the server down cleanly; a no-op if it does not run."""
        if self.is_running():
            os.kill(self.pid, signal.SIGTERM)
        # a stopped process (SIGSTOP) never sees SIGTERM
        if not self._wait(_STOP_SECONDS):
            self.kill()
        self._forget()

    def kill(self) -> None:
        """SIGKILL, like a crash of the server."""
        if self.is_running():
            os.kill(self.pid, signal.SIGKILL)
        self._wait(_STOP_SECONDS)

    def discard(self) -> None:
        """``kill`` a server that will not be started again."""
        self.kill()
        self._forget()

    def restart(self, options: Sequence[str] | None = None) -> None:
        """Stop the server if it runs, and start it again on the same port; ``options`` replace the earlier ones."""
        self.stop()
        if options is not None:
            self.options = tuple(options)
        self._start()

    def log(self) -> str:
        """The server's error log so far."""
        path = self.datadir / _LOG
        return path.read_text(errors="replace") if path.exists() else ""

    def _wait(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self.is_running():
            if time.monotonic() > end:
                return False
            time.sleep(0.02)
        return True

    def _start(self) -> None:
        self.socket.parent.mkdir(parents=True, exist_ok=True)
        self._temporary.mkdir(exist_ok=True)
        command = [str(self.program), *self._arguments()]
        if not self.keep and sys.platform == "linux" and shutil.which("setpriv") is not None:
            command = ["setpriv", "--pdeathsig", "KILL", *command]
        with (self.datadir / _LOG).open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.datadir, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=self.keep
            )
        self.pid = self._process.pid
        self._wait_until_ready()
        if not self.keep:
            atexit.register(self.stop)
        handle = {
            "flavor": self.flavor.value,
            "port": self.port,
            "socket": str(self.socket),
            "name": self.name,
            "options": list(self.options),
            "program": str(self.program),
            "pid": self.pid,
        }
        (self.datadir / _HANDLE).write_text(json.dumps(handle))

    def _arguments(self) -> list[str]:
        place = [f"--datadir={self.datadir}", f"--port={self.port}", f"--socket={self.socket}"]
        place += [f"--pid-file={self.datadir / 'server.pid'}", f"--tmpdir={self._temporary}"]
        return [*common_options(self.flavor, self.program), *place, *self.options]

    @property
    def _temporary(self) -> Path:
        """The server's own tmpdir: at its start a server removes ``#sql*`` there, also tables of other servers.

        It is beside the data folder, since a folder inside would be a database.
        """
        return self.datadir.parent / f"{self.datadir.name}.tmp"

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                # what answers on the port may be another process's server, which has taken it: this one ends soon then
                self.connect(unix_socket=str(self.socket)).close()
                # MySQL keeps what the full authentication by RSA found, and binlane asks for none without TLS
                self.connect().close()
                return
            except (pymysql.err.OperationalError, pymysql.err.InternalError) as exc:
                if self.is_running() and time.monotonic() < end:
                    time.sleep(0.05)
                    continue
                tail = "\n".join(self.log().splitlines()[-15:])
                self.kill()
                raise LabError(f"{self.name}: the server does not answer on port {self.port}: {exc}\n{tail}") from exc

    def _forget(self) -> None:
        atexit.unregister(self.stop)
        (self.datadir / _HANDLE).unlink(missing_ok=True)
        if self.socket.parent != self.datadir:
            shutil.rmtree(self.socket.parent, ignore_errors=True)


def start_server(
    datadir: Path,
    flavor: Flavor = Flavor.MARIADB,
    options: Sequence[str] = (),
    *,
    name: str = "private",
    log_bin: bool = True,
    durable: bool = True,
    keep: bool = False,
    program: Path | None = None,
) -> PrivateServer:
    """Start a private server on ``datadir``, which is created from a template if it does not exist.

    ``program``: default ``lab.programs.server_binary``. ``options``: command-line options of the server, which
    override the lab's. ``durable=False``: commits do not wait for the disk. ``keep=True``: the server outlives this
    process. Raises LabError with the end of the server's log.
    """
    datadir = datadir.absolute()
    program = server_binary(flavor) if program is None else program
    if not datadir.exists():
        datadir.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(data_template(flavor, program, options), datadir)
        # two servers from one template would share MySQL's server UUID
        (datadir / "auto.cnf").unlink(missing_ok=True)
    for attempt in range(_PORT_TRIES):
        port = free_port()
        settings = (*_switches(flavor, port, log_bin=log_bin, durable=durable), *options)
        server = PrivateServer(
            flavor, port, _socket_path(datadir), datadir, name, settings, program, password=_password_of(datadir),
            keep=keep,
        )  # fmt: skip
        try:
            server._start()
        except LabError as exc:
            # another process took the port between its choice and the server's bind
            if "Address already in use" not in str(exc) or attempt == _PORT_TRIES - 1:
                raise
        else:
            return server
    raise AssertionError("unreachable")


@contextlib.contextmanager
def private_server(
    datadir: Path,
    flavor: Flavor = Flavor.MARIADB,
    options: Sequence[str] = (),
    *,
    name: str = "private",
    log_bin: bool = True,
    durable: bool = True,
    program: Path | None = None,
) -> Iterator[PrivateServer]:
    """``start_server`` as a context manager. At its end the server is killed: nobody needs its data any more, and MySQL
    takes more than a second to shut down cleanly."""
    server = start_server(datadir, flavor, options, name=name, log_bin=log_bin, durable=durable, program=program)
    try:
        yield server
    finally:
        server.discard()


def attach(datadir: Path) -> PrivateServer | None:
    """The server that runs on ``datadir``, also one of another process; None if there is none."""
    datadir = datadir.absolute()
    try:
        handle = json.loads((datadir / _HANDLE).read_text())
    except FileNotFoundError:
        return None
    server = PrivateServer(
        Flavor(handle["flavor"]),
        handle["port"],
        Path(handle["socket"]),
        datadir,
        handle["name"],
        tuple(handle["options"]),
        Path(handle["program"]),
        handle["pid"],
        password=_password_of(datadir),
        keep=True,
    )
    return server if server.is_running() else None


def _password_of(datadir: Path) -> str:
    found = password_in(datadir)
    # a physical copy of such a server has its accounts
    return private_password() if found is None else found


def _switches(flavor: Flavor, port: int, *, log_bin: bool, durable: bool) -> tuple[str, ...]:
    sync = "1" if durable else "0"
    switches = [f"--server-id={port}", f"--innodb-flush-log-at-trx-commit={sync}"]
    if flavor is Flavor.MYSQL:
        # rows of a query get their numbers under a lock, as on MariaDB: statements are exact with it
        switches.append("--innodb-autoinc-lock-mode=1")
    if log_bin:
        switches += ["--log-bin=binlog", "--binlog-format=ROW", f"--sync-binlog={sync}"]
        if flavor is Flavor.MYSQL:
            switches += ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
    elif flavor is Flavor.MYSQL:
        switches.append("--disable-log-bin")
    return tuple(switches)


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _socket_path(datadir: Path) -> Path:
    path = datadir / "server.sock"
    if len(str(path).encode()) <= _SOCKET_LIMIT:
        return path
    return Path(tempfile.mkdtemp(prefix="binlane-", dir=SHORT_FOLDER)) / "server.sock"


def _is_server(pid: int, datadir: Path) -> bool:
    """Whether ``pid`` is a live server on ``datadir``: a pid alone may have been given to another program."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return f"--datadir={datadir}".encode() in command.split(b"\0")
