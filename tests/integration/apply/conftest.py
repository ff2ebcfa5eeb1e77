"""A source, a target and a database on both, for each server family that is there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from sqlalchemy import Engine, NullPool

from binlane.apply.lane.options import ApplyOptions
from binlane.apply.session.connection import SessionLimits
from binlane.model import FolderRecord, LogPosition
from binlane.plan.window_plan import WindowPlan
from binlane.servers.engines import engine_at
from binlane.state.channels import Watermark, create_channel
from binlane.state.migrations.upgrade import create
from binlane.state.windows import WindowBounds, open_window, set_plan
from lab.servers import PrivateServer, private_server
from tests.emptied import drop_databases, empty_target
from tests.integration.apply.capture import Recorder

DATABASE = "shop"
CREATED = "gone"
"""A database that a test creates or misses."""
QUICK = ApplyOptions(
    poll_interval=0.05,
    heartbeat_interval=0.1,
    grace=0.2,
    lease_time=2.0,
    barrier_timeout=20.0,
    backoff=0.05,
    limits=SessionLimits(wait_timeout=60, lock_wait_timeout=5, innodb_lock_wait_timeout=5),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A source and a target of one family, both with an empty database."""

    source: PrivateServer
    target: PrivateServer
    engine: Engine

    def both(self, *statements: str) -> None:
        """Run statements on both servers, in their database."""
        for server in (self.source, self.target):
            with server.connect(autocommit=True, database=DATABASE) as connection, connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)

    def recorder(self, *setup: str) -> Recorder:
        return Recorder(self.source, DATABASE, setup=setup)

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """On the target."""
        return self.target.query(query)

    def assert_equal(self, *tables: str) -> None:
        for table in tables:
            query = f"SELECT * FROM {DATABASE}.{table}"
            assert sorted(self.target.query(query)) == sorted(self.source.query(query)), table


@pytest.fixture(params=["mariadb", "mysql"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    source: PrivateServer = request.getfixturevalue(f"{request.param}_source")
    target: PrivateServer = request.getfixturevalue(f"{request.param}_target")
    with fresh_pair(source, target) as found:
        yield found


@pytest.fixture
def mariadb_pair(mariadb_source: PrivateServer, mariadb_target: PrivateServer) -> Iterator[Pair]:
    with fresh_pair(mariadb_source, mariadb_target) as found:
        yield found


@pytest.fixture(scope="module")
def target_without_binlog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateServer]:
    folder = tmp_path_factory.mktemp("no_binlog")
    with private_server(folder / "data", name="no_binlog", log_bin=False, durable=False) as server:
        yield server


@pytest.fixture(params=["mariadb", "mysql", "without_binlog", "strict"])
def any_pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Every way to know whether a DDL has run."""
    if request.param == "mysql":
        source, target = request.getfixturevalue("mysql_source"), request.getfixturevalue("mysql_target")
    else:
        name = "target_without_binlog" if request.param == "without_binlog" else "mariadb_target"
        source, target = request.getfixturevalue("mariadb_source"), request.getfixturevalue(name)
    strict = request.param == "strict"
    if strict:
        target.query("SET GLOBAL gtid_strict_mode = 1")
    with fresh_pair(source, target) as pair:
        yield pair
    if strict:
        target.query("SET GLOBAL gtid_strict_mode = 0")


@contextlib.contextmanager
def fresh_pair(source: PrivateServer, target: PrivateServer) -> Iterator[Pair]:
    drop_databases(source)
    has_state = empty_target(target)
    for server in (source, target):
        server.query(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
    engine = engine_at(target.url(), poolclass=NullPool)
    if not has_state:
        create(engine)
    yield Pair(source, target, engine)
    engine.dispose()


def start_window(engine: Engine, plan: WindowPlan) -> None:
    """What the steps before apply have stored on the target."""
    create_channel(engine, plan.channel, plan.source, Watermark(plan.first_seqno - 1, LogPosition("", 0), "", 0.0, ""))
    bounds = WindowBounds(
        channel=plan.channel,
        window_id=plan.window_id,
        source_identity=plan.source,
        first_seqno=plan.first_seqno,
        last_seqno=plan.last_seqno,
        end=plan.end,
        end_gtid_set=plan.end_gtid_set,
        end_time=plan.end_time,
        end_fingerprint="",
        work=FolderRecord("memory:"),
    )
    open_window(engine, bounds)
    set_plan(engine, plan)


def positions(pair: Pair, channel: str = "orders") -> list[int]:
    found: Sequence[tuple[object, ...]] = pair.target.query(
        "SELECT seqno FROM binlane.positions WHERE channel = %s ORDER BY lane", (channel,)
    )
    return [int(str(row[0])) for row in found]
