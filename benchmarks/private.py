"""Private servers of a benchmark: a base data folder with schema and first rows, copied for source and targets.

So the measured log holds traffic alone, every target begins with the very same files, and nothing is replayed twice.
"""

from __future__ import annotations

import contextlib
import random
import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pymysql.constants import CLIENT

from benchmarks.workloads import Statements, Workload, database_names
from binlane.model import Flavor
from lab.compare import contents
from lab.servers import start_server

if TYPE_CHECKING:
    from lab.servers import PrivateServer

_BATCH: Final = 40
"""Transactions a round trip."""
_WRITERS: Final = 4
_CACHED_TABLES: Final = 20_000
_NOT_COPIED: Final = ("auto.cnf", "binlane-server.json", "server.log", "server.sock", "server.pid")
_COMPRESSED: Final = {
    Flavor.MARIADB: ["--log-bin-compress=ON", "--log-bin-compress-min-len=10"],
    Flavor.MYSQL: ["--binlog-transaction-compression=ON"],
}
MEASURED_SETTINGS: Final = (
    "binlog_cache_size", "binlog_format", "binlog_row_image", "gtid_mode", "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_log_file_size", "innodb_redo_log_capacity",
    "innodb_doublewrite", "log_bin", "log_replica_updates", "log_slave_updates", "max_allowed_packet",
    "replica_parallel_workers", "replica_preserve_commit_order", "slave_parallel_max_queued",
    "slave_parallel_mode", "slave_parallel_threads", "sync_binlog", "table_definition_cache", "table_open_cache",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lab:
    """Where the servers' folders are, and what they all have in common."""

    folder: Path
    flavor: Flavor
    durable: bool
    target_log: bool
    buffer_pool_mib: int
    binlog_cache_mib: int = 0
    """``binlog_cache_size`` of every server; 0: the server's own default, 32 kB."""

    def start(
        self, name: str, *, options: Sequence[str] = (), log: bool = True, durable: bool | None = None
    ) -> PrivateServer:
        """Start a server on a fresh copy of the base folder, if there is one yet."""
        data, base = self.folder / name, self.folder / "base"
        if name != "base" and not data.exists():
            shutil.copytree(base, data, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        settings = (*self._options(), *options)
        durable = self.durable if durable is None else durable
        return start_server(data, self.flavor, settings, name=name, log_bin=log, durable=durable)

    @contextlib.contextmanager
    def target(self, name: str, options: Sequence[str] = ()) -> Iterator[PrivateServer]:
        """A fresh target for one measurement; its folder is removed behind it."""
        extra = [*options, "--relay-log=relay"]
        if self.flavor is Flavor.MARIADB:
            extra += ["--log-slave-updates=ON"] if self.target_log else []
        else:
            # without a log of its own a replica still has to know the source's GTIDs
            extra += ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
        server = self.start(name, options=extra, log=self.target_log)
        try:
            yield server
        finally:
            server.stop()
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _options(self) -> tuple[str, ...]:
        redo = "innodb-log-file-size" if self.flavor is Flavor.MARIADB else "innodb-redo-log-capacity"
        # as a server of thousands of tables has them; no other workload needs the room
        caches: tuple[str, ...] = (f"--table-open-cache={_CACHED_TABLES}", f"--table-definition-cache={_CACHED_TABLES}")
        if self.binlog_cache_mib:
            caches = (*caches, f"--binlog-cache-size={self.binlog_cache_mib}M")
        return (f"--innodb-buffer-pool-size={self.buffer_pool_mib}M", f"--{redo}=512M", "--max-binlog-size=1G", *caches)


@dataclass(frozen=True, slots=True)
class Traffic:
    """The source's log after the workload."""

    transactions: int
    log_bytes: int
    seconds: float
    files: tuple[Path, ...]


def make_base(lab: Lab, workload: Workload) -> None:
    """Initialize the base folder, with tables and first rows, and shut its server down cleanly."""
    server = lab.start("base", log=False, durable=False)
    with _cursor(server) as cursor:
        for name in database_names(workload):
            cursor.execute(f"CREATE DATABASE `{name}` CHARACTER SET utf8mb4")
            for table in workload.tables:
                cursor.execute(table.format(db=name))
            for statement in workload.fill(name):
                cursor.execute(statement)
    server.stop()


def start_source(lab: Lab, *, compressed: bool = False) -> PrivateServer:
    """The source: what it writes itself need not be safe. MySQL before 8.4 has to be asked for write sets."""
    options = ["--loose-binlog-transaction-dependency-tracking=WRITESET"] if lab.flavor is Flavor.MYSQL else []
    if compressed:
        options += _COMPRESSED[lab.flavor]
    return lab.start("source", options=options, durable=False)


class TrafficWriter:
    """Writes a workload, on from where it stopped. A database is written by one connection, in one order. ``only``:
    the databases that are written; None: all of the workload."""

    def __init__(
        self, source: PrivateServer, workload: Workload, seed: int = 1, only: Sequence[str] | None = None
    ) -> None:
        self._source, self._workload = source, workload
        names = database_names(workload) if only is None else only
        writers = min(_WRITERS, len(names))
        self._streams = [
            _transactions(workload, names[number::writers], f"{seed}/{number}") for number in range(writers)
        ]

    def write(self, count: int) -> Traffic:
        """Write ``count`` more transactions, or as many as the workload has; the whole log as it is then."""
        started, writers = time.monotonic(), len(self._streams)
        wanted = count if self._workload.transactions is None else self._workload.transactions
        shares = [wanted // writers + (number < wanted % writers) for number in range(writers)]

        def work(number: int) -> None:
            with _cursor(self._source) as cursor:
                _send(cursor, self._streams[number], shares[number])

        with ThreadPoolExecutor(writers) as pool:
            list(pool.map(work, range(writers)))
        self._source.query("FLUSH BINARY LOGS")
        return self.written(time.monotonic() - started)

    def written(self, seconds: float = 0.0) -> Traffic:
        """The whole log as it is now; ``seconds``: what writing it took."""
        logs = [self._source.datadir / str(row[0]) for row in self._source.query("SHOW BINARY LOGS")]
        return Traffic(
            transactions=_committed(self._source),
            log_bytes=sum(path.stat().st_size for path in logs),
            seconds=seconds,
            files=tuple(logs),
        )


def has_the_same(source: PrivateServer, target: PrivateServer) -> bool:
    """Whether every table of the source is on the target, with its definition and its rows."""
    expected, found = contents(source), contents(target)
    return all(found.get(name) == text for name, text in expected.items() if name.startswith(("data of", "table")))


def _transactions(workload: Workload, names: Sequence[str], seed: str) -> Iterator[Statements]:
    dice = random.Random(seed)
    tenants = [workload.write(name, dice) for name in names]
    while True:
        yield next(dice.choice(tenants))


def _send(cursor: Any, transactions: Iterator[Statements], count: int) -> None:
    batch: list[str] = []
    for number in range(1, count + 1):
        batch += ["BEGIN", *next(transactions), "COMMIT"]
        if number % _BATCH == 0 or number == count:
            cursor.execute(";".join(batch))
            while cursor.nextset():
                pass
            batch = []


@contextlib.contextmanager
def _cursor(server: PrivateServer) -> Iterator[Any]:
    connection = server.connect(client_flag=CLIENT.MULTI_STATEMENTS, autocommit=True)
    with contextlib.closing(connection), connection.cursor() as cursor:
        cursor.execute("SET SESSION time_zone = '+00:00'")
        yield cursor


def _committed(source: PrivateServer) -> int:
    """Transactions in the source's log so far: a fresh source's GTIDs count from 1 without a gap."""
    if source.flavor is Flavor.MARIADB:
        ((state,),) = source.query("SELECT @@gtid_binlog_pos")
        return int(str(state).rpartition("-")[2] or 0)
    ((executed,),) = source.query("SELECT @@GLOBAL.gtid_executed")
    return int(str(executed).rpartition(":")[2].rpartition("-")[2] or 0)
