"""The servers of a trial: the suite's running source, and servers that are started with the same options."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pymysql

from binlane.model import Flavor
from lab.programs import LabError
from lab.servers import PrivateServer, free_port
from lab.suites.cleaning import clean
from lab.suites.comparing import everything
from lab.suites.options import Started, beside, started_with

_ACCOUNT: Final = "root"
"""The account in the drivers' data folders, without a password."""
_START_SECONDS: Final = 60.0
_END_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Source:
    """A running server of the suite."""

    server: PrivateServer
    started: Started
    environment: Mapping[str, str]
    binlog_format: str
    logs: tuple[str, ...]
    """The source's binlog files, oldest first; none if it writes no log."""
    end: int
    """Bytes of the last file."""


def source_at(flavor: Flavor, port: int) -> Source:
    """The server on that port, by its process. Raises LabError if the process is not found."""
    server = _server(flavor, port, Path())
    try:
        ((pid_file, binlog_format),) = server.query("SELECT @@pid_file, @@GLOBAL.binlog_format")
        logs = server.query("SHOW BINARY LOGS")
    except pymysql.err.MySQLError as exc:
        if exc.args[0] != _NO_BINARY_LOG:
            raise LabError(f"the test's source does not answer: {exc}") from exc
        logs = []
    else:
        process = Path("/proc") / Path(pid_file).read_text().strip()
        arguments = (process / "cmdline").read_bytes().decode("latin-1").split("\0")
        variables = (process / "environ").read_bytes().decode("latin-1").split("\0")
        environment = dict(each.split("=", 1) for each in variables if "=" in each)
        end = int(logs[-1][1]) if logs else 0
        return Source(
            server, started_with(arguments), environment, binlog_format, tuple(str(each[0]) for each in logs), end
        )
    return Source(server, Started((), ()), {}, "", (), 0)


_NO_BINARY_LOG: Final = 1381


def with_ended_sessions(source: Source) -> Source:
    """The source after all its client connections were killed. The test of these clients cannot continue.

    Raises LabError if a connection does not end.
    """
    end = time.monotonic() + _END_SECONDS
    with contextlib.closing(source.server.connect(autocommit=True)) as connection, connection.cursor() as cursor:
        while True:
            cursor.execute(_CLIENTS)
            clients = [client for (client,) in cursor.fetchall()]
            if not clients:
                return source_at(source.server.flavor, source.server.port)
            if time.monotonic() > end:
                raise LabError(f"clients of the test's source do not end: connections {clients}")
            for client in clients:
                # the connection may have ended already
                with contextlib.suppress(pymysql.err.MySQLError):
                    cursor.execute(f"KILL {client}")
            time.sleep(0.1)


_CLIENTS: Final = (
    "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND command NOT LIKE 'Binlog Dump%' "
    "AND user NOT IN ('system user', 'event_scheduler')"
)


@dataclass(slots=True)
class Beside:
    """A server with the options of a source, on a copy of the driver's data folder."""

    server: PrivateServer
    process: subprocess.Popen[bytes]
    folder: Path
    key: tuple[object, ...]
    """The source's options at its start; it is reused for a source with the same options."""
    databases: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    """The names of its databases and accounts at its start."""
    fresh: str = ""
    """Its ``_fingerprint`` at its start."""

    def end(self) -> None:
        """Kill the server and remove its folder."""
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def is_fresh_again(self) -> bool:
        """Remove the last test's objects; whether the server is then as at its start."""
        try:
            clean(self.server.flavor, [self.server.port], self.databases, self.accounts)
            return _fingerprint(self.server) == self.fresh
        except pymysql.err.MySQLError:
            return False


class ServersBeside:
    """The servers of verdicts, by role. A server is reused for the next test if that test's source has the same options
    and no object of the last test is left, because starting a server takes longer than most tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[str, Beside] = {}

    @contextlib.contextmanager
    def server(self, role: str, source: Source, program: Path, template: Path) -> Iterator[PrivateServer]:
        """An empty server. Raises LabError with the end of its log if it does not start."""
        key = (program, template, source.started, source.binlog_format, tuple(sorted(source.environment.items())))
        kept = self._kept.pop(role, None)
        if kept is not None and not (kept.key == key and kept.is_fresh_again()):
            kept.end()
            kept = None
        if kept is None:
            kept = _started(source, program, template, self._folder / role, key)
        try:
            yield kept.server
        except BaseException:
            kept.end()
            raise
        self._kept[role] = kept

    def close(self) -> None:
        """End all servers."""
        for kept in self._kept.values():
            kept.end()
        self._kept.clear()


_OWN_TABLES: Final = ("func", "plugin", "servers", "time_zone_name", "db", "tables_priv", "columns_priv", "procs_priv")
"""Tables of ``mysql`` that a log's statements can change."""
_MOVING: Final = re.compile(r"gtid|timestamp|^(server_uuid|last_insert_id|pseudo_|rand_seed|warning_count|identity)")
"""Variables that change on an idle server."""


def _fingerprint(server: PrivateServer) -> str:
    """The compared content, and the server's variables, plugins, functions and grants."""
    found: list[object] = [sorted(everything(server).items())]
    found.append([row for row in server.query("SHOW GLOBAL VARIABLES") if _MOVING.search(str(row[0])) is None])
    found += [sorted(server.query(f"SELECT * FROM mysql.{name}"), key=repr) for name in _OWN_TABLES]
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _started(source: Source, program: Path, template: Path, folder: Path, key: tuple[object, ...]) -> Beside:
    datadir = folder / "data"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(template, datadir, symlinks=True)
    # two servers from one template would share MySQL's server UUID
    (datadir / "auto.cnf").unlink(missing_ok=True)
    (folder / "tmp").mkdir()
    server = _server(source.server.flavor, free_port(), folder / "s.sock")
    command = [str(program), *source.started.defaults, *beside(source.started, source.binlog_format)]
    command += _place(server, folder)
    if shutil.which("setpriv") is not None:
        command = ["setpriv", "--pdeathsig", "KILL", *command]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=datadir, env=dict(source.environment), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    started = Beside(server, process, folder, key)
    try:
        _wait_until_ready(server, process, folder / "log")
        started.databases = frozenset(str(name).lower() for (name,) in server.query("SHOW DATABASES"))
        started.accounts = frozenset(str(name) for (name,) in server.query("SELECT user FROM mysql.user"))
        started.fresh = _fingerprint(server)
    except BaseException:
        started.end()
        raise
    return started


def _place(server: PrivateServer, folder: Path) -> list[str]:
    options = [
        f"--datadir={folder / 'data'}",
        f"--port={server.port}",
        f"--socket={server.socket}",
        f"--pid-file={folder / 'pid'}",
        f"--tmpdir={folder / 'tmp'}",
        f"--server-id={server.port}",
        f"--log-bin={folder / 'data' / 'beside'}",
        f"--log-bin-index={folder / 'data' / 'beside.index'}",
        f"--relay-log={folder / 'data' / 'relay'}",
        f"--log-error={folder / 'log'}",
        "--general-log=0",
        "--slow-query-log=0",
        # a channel's target needs this for LOAD DATA
        "--local-infile=1",
        "--skip-slave-start",
        *(["--user=root"] if os.getuid() == 0 else []),
    ]
    if server.flavor is Flavor.MARIADB:
        # the driver disables InnoDB for tests that do not request it, but a channel's state needs InnoDB
        return [*options, "--innodb=ON"]
    return [*options, "--mysqlx=OFF", "--admin-port=0"]


def _server(flavor: Flavor, port: int, place: Path) -> PrivateServer:
    return PrivateServer(flavor, port, place, place.parent, "suite", (), Path(), user=_ACCOUNT, password="")


def _wait_until_ready(server: PrivateServer, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while True:
        try:
            # the port may be another process's server's
            server.connect(unix_socket=str(server.socket)).close()
            return
        except pymysql.err.MySQLError as exc:
            if process.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
                continue
            tail = "\n".join(log.read_text("latin-1").splitlines()[-8:])
            raise LabError(f"a server with the source's options does not start: {exc}\n{tail}") from exc
