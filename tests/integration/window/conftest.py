"""A channel between two real servers, with its project folder: what the window's steps and the command line need."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pymysql
import pytest

from binlane.cli import main
from binlane.config import ChannelConfig, load_channel
from binlane.connections import Endpoints, environment_resolver, resolve_endpoints
from binlane.model import Flavor
from binlane.orchestration import steps
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.request import WindowRequest
from binlane.servers.engines import engine_of, kept_connections
from binlane.source.older_sessions import highest_older_session
from binlane.source.start_position import begin
from binlane.state.channels import Watermark, create_channel
from binlane.state.records.journal import ChannelStatus, read_status
from binlane.state.tables import OF_CHANNELS
from binlane.state.target_record import record_target
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.compare import compare
from lab.servers import PrivateServer
from lab.traffic import Mix, TrafficSummary, creations, run_traffic
from tests.emptied import drop_databases, empty_target
from tests.forked import process
from tests.lane_threads import lane_threads

CHANNEL = "orders"
MIXED = Mix(cross_database=0.04, reference=0.03, ddl=0.02, accounts=0.006, statements=0.04)
PLUGINS = Path(__file__).parents[3] / "plugins"
SHARD_LIST = "(critical)=reference\n"
_FEW_TRANSACTIONS = 60


@dataclass(slots=True)
class Channel:
    """One channel of a project in a folder of its own."""

    source: PrivateServer
    target: PrivateServer
    project: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.connect("source_server", self.source)
        self.connect("target_server", self.target)
        self.write_channel()
        self.write_shard_list(SHARD_LIST)

    def connect(
        self,
        connection: str,
        server: PrivateServer,
        user: str | None = None,
        port: int | None = None,
        tls: str = "disabled",
    ) -> None:
        """Point a connection at a server; another account has the lab's password.

        Without TLS, whose handshakes are half of what a small window between MySQL servers costs; so the servers' RSA
        keys are taken, as they have to be then.
        """
        place = f"{server.host}:{server.port if port is None else port}"
        account = f"{server.user if user is None else user}:{server.password}"
        self.environment[f"AIRFLOW_CONN_{connection.upper()}"] = (
            f"mysql://{account}@{place}/?ssl_mode={tls}&get_server_public_key=true"
        )

    def write_channel(self, text: str = "", blocks: str = "", transactions: int = 20) -> None:
        self.channels.mkdir(parents=True, exist_ok=True)
        settings = (
            '[source]\nconnection = "source_server"\n[target]\nconnection = "target_server"\n'
            f"[lanes]\ncount = 3\nfold_gap = 4\n[blocks]\ntransactions = {transactions}\n"
            f"{blocks}"
            "[segments]\nbytes = 65536\n[apply]\nlease_seconds = 5\nretries = 3\n"
        )
        (self.channels / f"{CHANNEL}.toml").write_text(settings + text)

    def write_shard_list(self, text: str) -> None:
        file = self.project / "shard_list" / f"{CHANNEL}.list"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)

    @property
    def channels(self) -> Path:
        return self.project / "dags" / "channels"

    @property
    def work(self) -> Path:
        return self.project / ".binlane" / "work" / CHANNEL

    @property
    def config(self) -> ChannelConfig:
        return load_channel(self.channels / f"{CHANNEL}.toml", {})

    @property
    def endpoints(self) -> Endpoints:
        return resolve_endpoints(self.config, environment_resolver(self.environment))

    @property
    def status(self) -> ChannelStatus:
        return read_status(engine_of(self.endpoints.target), CHANNEL)

    def init(self, start: str = "now") -> None:
        assert self.cli("init", CHANNEL, "--start", start) == 0

    def begin(self, start: str = "now") -> None:
        """What ``init`` writes, on a target that has the schema with empty tables: its checks of both servers, which
        have tests of their own, take a third of what a small window takes."""
        source = source_of(self.config, self.endpoints)
        with kept_connections():
            found = begin(source, start)
            mark = Watermark(found.seqno, found.position, found.gtid_set, found.time, found.fingerprint)
            older = highest_older_session(source, found.position)
            engine = engine_of(self.endpoints.target)
            # emptying each table again would be a fifth of what this costs
            state = create_channel(engine, CHANNEL, found.identity, mark, keep=OF_CHANNELS, older_sessions=older)
        record_target(self.config.work.uri, state)

    def on_both(self, *statements: str) -> None:
        """Run statements on both servers and in neither's log: what is there already is no window's work."""
        for server in (self.source, self.target):
            run_on(server, *statements, log=False)

    def traffic(
        self,
        transactions: int = 150,
        tenants: int | None = None,
        seed: int = 1,
        mix: Mix = MIXED,
        *,
        creates: bool = False,
    ) -> TrafficSummary:
        """Of two tenants for few transactions, else of four. Their databases are on both servers before, with five
        tables each: by the log (``creates``) they would be more than a small window is otherwise."""
        is_small = tenants is None and transactions <= _FEW_TRANSACTIONS
        count = 2 if is_small else tenants or 4
        if not creates and not self.source.query(f"SHOW DATABASES LIKE 'tenant\\_{count:03}'"):
            self.on_both(*creations(count))
        # a connection that has one tenant writes no transaction of two
        threads = 1 if is_small else 2
        return run_traffic(
            self.source.connect,
            tenants=count,
            transactions=transactions,
            seed=seed,
            threads=threads,
            mix=mix,
        )

    def run(self, request: WindowRequest | None = None) -> dict[str, Any] | None:
        """A whole window by its steps, lanes as threads; what ``advance`` answers, None for an empty one."""
        return run_window(self.config, self.endpoints, WindowRequest("now") if request is None else request)

    def go_on(self, window: dict[str, Any]) -> dict[str, Any]:
        """The steps behind extraction."""
        return finish_window(self.config, self.endpoints, window)

    def run_and_kill(self, seconds: float) -> None:
        """The same as ``run`` in a process of its own, which is killed if it is still there after so many seconds."""
        with process(run_window, self.config, self.endpoints, WindowRequest("now")) as running:
            running.join(seconds)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """``binlane`` in a process group of its own."""
        return subprocess.Popen(
            [sys.executable, "-c", "from binlane.cli import program; program()", *arguments],
            env={**os.environ, **self.environment, "BINLANE_CHANNELS": str(self.channels), "PYTHONPATH": str(PLUGINS)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def cli(self, *arguments: str) -> int:
        """``binlane`` in this process, its lanes as threads; its exit code. What it prints is for capsys."""
        with lane_threads(), pytest.MonkeyPatch.context() as patch:
            # the Airflow of tests/dags, or of who runs the tests, is none of this channel's
            patch.delenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", raising=False)
            places = {"BINLANE_CHANNELS": str(self.channels), "AIRFLOW_HOME": str(self.project / "no airflow")}
            for name, value in {**places, **self.environment}.items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["binlane", *arguments])
            with pytest.raises(SystemExit) as ended:
                main()
        return int(ended.value.code or 0)

    def rows_of(self, server: PrivateServer) -> dict[str, set[tuple[Any, ...]]]:
        """Every row of every table, by the table's name: what servers of two families can be compared by."""
        tables = server.query(
            "SELECT CONCAT(table_schema, '.', table_name) FROM information_schema.tables WHERE "
            "table_type = 'BASE TABLE' AND (table_schema LIKE 'tenant%%' OR table_schema = 'reference') ORDER BY 1"
        )
        found = {name: server.query(f"SELECT * FROM {name}") for (name,) in tables}
        return {name: {tuple(map(_canonical, row)) for row in rows} for name, rows in found.items()}

    def assert_equal(self) -> None:
        """Both servers hold the same."""
        comparison = compare(self.source, self.target)
        assert comparison.differences == ()
        assert comparison.tables + comparison.others > 0


def run_window(config: ChannelConfig, endpoints: Endpoints, request: WindowRequest) -> dict[str, Any] | None:
    """See ``Channel.run``."""
    window = steps.extract(config, endpoints, request)
    return None if window["work"] is None else finish_window(config, endpoints, window)


def finish_window(config: ChannelConfig, endpoints: Endpoints, window: dict[str, Any]) -> dict[str, Any]:
    """See ``Channel.go_on``."""
    if window["plan"] is None:
        run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(config, endpoints, window["work"])
    lanes = [each["lane"] for each in adopted["lanes"]]

    def apply(lane: int) -> None:
        steps.apply_lane(config, endpoints, adopted["plan"], lane)

    with ThreadPoolExecutor(len(lanes)) as pool:
        list(pool.map(apply, lanes))
    return steps.advance(config, endpoints, adopted["plan"])


def _canonical(value: Any) -> Any:
    """MySQL keeps JSON as a value, MariaDB as the text that was written."""
    if isinstance(value, str) and value.startswith("{"):
        return json.dumps(json.loads(value), sort_keys=True)
    return value


ChannelOf: TypeAlias = Callable[[str, str], Channel]
"""See ``channel_of``."""


@pytest.fixture
def channel(
    mariadb_source: PrivateServer,
    mariadb_target: PrivateServer,
    tmp_path: Path,
    clean_servers: Callable[[PrivateServer], None],
) -> Channel:
    """A channel from MariaDB to MariaDB, initialised at the source's present end."""
    return fresh_channel(mariadb_source, mariadb_target, tmp_path, clean_servers)


@pytest.fixture
def channel_of(
    request: pytest.FixtureRequest, tmp_path: Path, clean_servers: Callable[[PrivateServer], None]
) -> ChannelOf:
    """Makes a channel between servers of two families, or of two series of MariaDB (``11.8``), initialised at the
    source's present end. A test for which the servers are not there is skipped."""

    def make(source: str, target: str) -> Channel:
        servers = _server(request, source, "source"), _server(request, target, "target")
        return fresh_channel(*servers, tmp_path, clean_servers)

    return make


@pytest.fixture(scope="module")
def shared_channel_of(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ChannelOf:
    """``channel_of`` for a window that cases of a module share, each in a database of its own that is named after it.

    The next test empties the servers, so what the cases assert about is read when the window has ended.
    """

    def make(source: str, target: str) -> Channel:
        servers = _server(request, source, "source"), _server(request, target, "target")
        return fresh_channel(*servers, tmp_path_factory.mktemp("shared"), empty_source)

    return make


@pytest.fixture
def undone() -> Iterator[list[tuple[Channel, tuple[str, ...]]]]:
    """A list of channels, each with the statements that change back on both its servers what a test has changed."""
    changes: list[tuple[Channel, tuple[str, ...]]] = []
    yield changes
    for channel, statements in changes:
        for server in (channel.source, channel.target):
            for statement in statements:
                # of a server that never had the change
                with contextlib.suppress(pymysql.err.MySQLError):
                    run_on(server, statement, log=False)


def _server(request: pytest.FixtureRequest, name: str, part: str) -> PrivateServer:
    """Of a family, or of a series of MariaDB."""
    found: PrivateServer
    if name in set(Flavor):
        found = request.getfixturevalue(f"{name}_{part}")
    else:
        found = request.getfixturevalue("server_of")(name, part)
    return found


def database_of(case: str) -> str:
    """The database of a case that shares a window."""
    return f"tenant_{re.sub('[^a-z0-9]+', '_', case.lower())}"


def in_database(database: str, *statements: str) -> tuple[str, ...]:
    """Statements of ``tenant_1`` in another database."""
    return tuple(re.sub(r"\btenant_1\b", database, statement) for statement in statements)


def fresh_channel(
    source: PrivateServer,
    target: PrivateServer,
    folder: Path,
    clean: Callable[[PrivateServer], None],
) -> Channel:
    clean(source)
    has_state = empty_target(target)
    drop_accounts(target)
    channel = Channel(source, target, folder)
    if has_state:
        channel.begin()
    else:
        channel.init()
    return channel


@pytest.fixture
def clean_servers() -> Callable[[PrivateServer], None]:
    """Drops databases, and the accounts that the traffic makes."""
    return empty_source


def empty_source(server: PrivateServer) -> None:
    """See ``clean_servers``."""
    drop_databases(server)
    drop_accounts(server)


def drop_accounts(server: PrivateServer) -> None:
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute("SELECT user, host FROM mysql.user WHERE user LIKE 'tenant%' OR user LIKE 'test\\_%'")
        for user, host in cursor.fetchall():
            cursor.execute("DROP USER %s@%s", (user, host))


def run_on(server: PrivateServer, *statements: str, log: bool = True) -> None:
    """Run statements on one connection; without ``log`` they stay out of the server's binlog."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET SESSION sql_log_bin = {int(log)}")
        for statement in statements:
            cursor.execute(statement)


def last_gtid(server: PrivateServer) -> str:
    """Of the server's newest transaction without a tag."""
    if server.flavor is Flavor.MARIADB:
        return str(server.query("SELECT @@gtid_binlog_pos")[0][0])
    [(executed, uuid)] = server.query("SELECT @@gtid_executed, @@server_uuid")
    # other tests of the same server may have left tags, which come behind the numbers without one
    numbers = re.search(rf"{uuid}((?::\d+(?:-\d+)?)+)", executed)
    assert numbers is not None
    return f"{uuid}:{re.split('[:-]', numbers[1])[-1]}"
