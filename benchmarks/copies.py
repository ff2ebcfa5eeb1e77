"""The same databases, copied by binlane's first copy and by the logical tools: ``python -m benchmarks.copies``.

Source and target run on one machine; the target begins empty for each way, with the same settings. Ends with 1 if a
target does not hold what the source holds.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from benchmarks import machine
from benchmarks.private import MEASURED_SETTINGS
from binlane.connections import Endpoint, Endpoints, Tls
from binlane.model import Flavor
from lab.servers import PrivateServer, private_server

DATABASE: Final = "shop"
_BATCH: Final = 2_000
_TABLES: Final = (
    "CREATE TABLE orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, customer INT NOT NULL, at DATETIME(6) NOT NULL, total "
    "DECIMAL(12,2) NOT NULL, state ENUM('new', 'paid', 'sent') NOT NULL, note VARCHAR(200), "
    "KEY by_customer (customer), KEY by_time (at)) ENGINE=InnoDB",
    "CREATE TABLE order_lines (order_id BIGINT, line SMALLINT, sku VARCHAR(40) NOT NULL, amount INT NOT NULL, price "
    "DOUBLE NOT NULL, PRIMARY KEY (order_id, line), KEY by_sku (sku)) ENGINE=InnoDB",
    "CREATE TABLE documents (id VARCHAR(36) PRIMARY KEY, body TEXT NOT NULL, raw BLOB) ENGINE=InnoDB",
)


@dataclass(frozen=True, slots=True)
class Way:
    """How to copy; ``run`` gets source, empty target and a folder."""

    run: Callable[[PrivateServer, PrivateServer, Path], None]
    program: str = ""
    """Needed on this machine."""


def fill(server: PrivateServer, orders: int) -> int:
    """One huge table, one with three times the rows, one with large values; the rows."""
    with closing(server.connect(autocommit=False)) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
        cursor.execute(f"USE {DATABASE}")
        for statement in _TABLES:
            cursor.execute(statement)
        for first in range(0, orders, _BATCH):
            numbers = range(first, min(first + _BATCH, orders))
            rows = ", ".join(
                f"({n + 1}, {n * 7919 % 50_021}, '2026-01-01' + INTERVAL {n * 37 % 8_000_000} SECOND, {n % 9_999}.5, "
                f"{n % 3 + 1}, {'NULL' if n % 5 == 0 else repr('note ' + 'x' * (n % 90))})"
                for n in numbers
            )
            cursor.execute(f"INSERT INTO orders VALUES {rows}")
            rows = ", ".join(
                f"({n + 1}, {line}, 'sku-{n * 31 % 20_011}', {n % 7 + 1}, {n % 1000 / 7:.6f})"
                for n in numbers for line in range(3)
            )  # fmt: skip
            cursor.execute(f"INSERT INTO order_lines VALUES {rows}")
            rows = ", ".join(
                f"(UUID(), REPEAT('it''s text ', {n % 200}), RANDOM_BYTES({n % 300 + 1}))" for n in numbers[::20]
            )
            cursor.execute(f"INSERT INTO documents VALUES {rows}")
            connection.commit()
        for table in ("orders", "order_lines", "documents"):
            cursor.execute(f"ANALYZE TABLE `{table}`")
            cursor.fetchall()
        cursor.execute(
            "SELECT (SELECT COUNT(*) FROM orders) + (SELECT COUNT(*) FROM order_lines) + "
            "(SELECT COUNT(*) FROM documents)"
        )
        [count] = cursor.fetchone() or [0]
    return int(count)


def binlane(jobs: int) -> Way:
    """The first copy."""

    def run(source: PrivateServer, target: PrivateServer, folder: Path) -> None:
        from binlane.bootstrap.first_copy import Options
        from binlane.config import load_channel
        from binlane.orchestration.commands.copies.bootstrap import LogLines, first_copy

        file = folder / "channels" / "copies.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text('[source]\nconnection = "a"\n[target]\nconnection = "b"\n')
        ends = (
            Endpoint(each.name, each.host, each.port, each.user, each.password, Tls("disabled", get_public_key=True))
            for each in (source, target)
        )
        options = Options(databases=(DATABASE,), jobs=jobs)
        first_copy(load_channel(file), Endpoints(*ends), options, LogLines())

    return Way(run)


def dump(program: str, client: str) -> Way:
    """The server's dump tool, through a pipe into its client."""

    def run(source: PrivateServer, target: PrivateServer, folder: Path) -> None:
        gtids = ["--set-gtid-purged=OFF"] if source.flavor is Flavor.MYSQL else []
        reads = [_beside(source, program), *_login(source), "--single-transaction", "--quick", "--routines", "--events",
                 "--hex-blob", *gtids, "--databases", DATABASE]  # fmt: skip
        with subprocess.Popen(reads, stdout=subprocess.PIPE) as reading:
            subprocess.run([_beside(target, client), *_login(target)], stdin=reading.stdout, check=True)
        if reading.returncode:
            raise RuntimeError(f"{program} ended with {reading.returncode}")

    return Way(run, program)


def mydumper(threads: int) -> Way:
    """mydumper into a folder, then myloader."""

    def run(source: PrivateServer, target: PrivateServer, folder: Path) -> None:
        files = folder / "mydumper"
        for program, server, more in (
            ("mydumper", source, ["-o", str(files), "-r", "100000", "--trx-consistency-only"]),
            ("myloader", target, ["-d", str(files), "--enable-binlog"]),
        ):
            login = ["-h", server.host, "-P", str(server.port), "-u", server.user, "-p", server.password]
            subprocess.run([program, *login, "-t", str(threads), "-B", DATABASE, *more], check=True)

    return Way(run, "mydumper")


def _login(server: PrivateServer) -> list[str]:
    own = ["--ssl-mode=DISABLED", "--get-server-public-key"] if server.flavor is Flavor.MYSQL else ["--skip-ssl"]
    return ["--no-defaults", "-h", server.host, "-P", str(server.port), "-u", server.user, f"-p{server.password}", *own]


def _beside(server: PrivateServer, program: str) -> str:
    own = server.program.parent / program
    return str(own) if own.exists() else program


def checksums(server: PrivateServer) -> list[Any]:
    """CHECKSUM TABLE of all tables."""
    return [
        server.query(f"CHECKSUM TABLE {DATABASE}.`{table}`")[0][1] for table in ("orders", "order_lines", "documents")
    ]


class Copies:
    """One filled source and one target; each measurement begins with the target empty."""

    def __init__(self, source: PrivateServer, target: PrivateServer, root: Path, orders: int) -> None:
        self._source, self._target, self._root = source, target, root
        self.rows = fill(source, orders)
        self._expected = checksums(source)

    @property
    def size(self) -> int:
        """Bytes of rows and keys on the source."""
        statement = "SELECT SUM(data_length + index_length) FROM information_schema.tables WHERE table_schema = %s"
        return int(self._source.query(statement, [DATABASE])[0][0])

    def has(self, way: Way) -> bool:
        """Whether this machine has the way's program."""
        beside = self._source.program.parent / way.program
        return not way.program or shutil.which(way.program) is not None or beside.exists()

    def measure(self, name: str, way: Way) -> dict[str, Any]:
        """Copy once: seconds, CPU seconds of target, source and this process, and whether the copy is equal."""
        for database in (DATABASE, "binlane"):
            self._target.query(f"DROP DATABASE IF EXISTS {database}")
        work = Path(tempfile.mkdtemp(dir=self._root))
        load, began, before = machine.load(), time.monotonic(), self._cpu()
        way.run(self._source, self._target, work)
        seconds = time.monotonic() - began
        used = [round(now - then, 2) for now, then in zip(self._cpu(), before, strict=True)]
        equal = checksums(self._target) == self._expected
        shutil.rmtree(work)
        typer.echo(f"{name}: {seconds:.2f} s, cpu {used}, {'equal' if equal else 'NOT EQUAL'}")
        return {
            "seconds": round(seconds, 2),
            "equal": equal,
            "load": load,
            "cpu_seconds": dict(zip(("target", "source", "tool"), used, strict=True)),
        }

    def _cpu(self) -> tuple[float, float, float]:
        servers = machine.cpu_seconds(self._target.pid), machine.cpu_seconds(self._source.pid)
        return *servers, sum(os.times()[:4])


def known_ways(flavor: Flavor, jobs: list[int]) -> dict[str, Way]:
    """Every way to copy between two servers of the family, by name."""
    tool, client = ("mysqldump", "mysql") if flavor is Flavor.MYSQL else ("mariadb-dump", "mariadb")
    ways = {f"binlane, {count} jobs": binlane(count) for count in jobs}
    ways[f"{tool} | {client}"] = dump(tool, client)
    ways |= {f"mydumper, {count} threads": mydumper(count) for count in jobs}
    return ways


def summarize(found: dict[str, dict[str, Any]], rows: int) -> None:
    """Add to each way its median, its rate and its ratio to the best of the other tools; print them."""
    for each in found.values():
        each["seconds"] = round(statistics.median(one["seconds"] for one in each["runs"]), 2)
        each["rows_per_second"] = round(rows / each["seconds"])
    best = min((each["seconds"] for name, each in found.items() if not name.startswith("binlane")), default=None)
    for name, each in found.items():
        each["ratio"] = None if best is None else round(best / each["seconds"], 2)
        typer.echo(f"{name}: {each['seconds']:.2f} s, {each['rows_per_second']:,} rows/s, ratio {each['ratio']}")


def main(
    flavor: Annotated[Flavor, typer.Option(help="Family of the servers.")] = Flavor.MARIADB,
    orders: Annotated[int, typer.Option(min=1, help="Rows of the table of orders.")] = 300_000,
    jobs: Annotated[str, typer.Option(help="Jobs of binlane and threads of mydumper, separated by commas.")] = "4",
    runs: Annotated[int, typer.Option(min=1, help="Measurements of each way, in turn.")] = 3,
    output: Annotated[Path | None, typer.Option(help="Result; default: benchmarks/results/copies-FLAVOR.json.")] = None,
) -> None:
    """Measure every way that this machine has, print the ratios, write the result."""
    options = ["--innodb-buffer-pool-size=1G"]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with (
            private_server(root / "source", flavor, options, name="source") as source,
            private_server(root / "target", flavor, options, name="target") as target,
        ):
            copies = Copies(source, target, root, orders)
            rows, size = copies.rows, copies.size
            ways = {
                name: way
                for name, way in known_ways(flavor, [int(count) for count in jobs.split(",")]).items()
                if copies.has(way)
            }
            found: dict[str, dict[str, Any]] = {name: {"runs": []} for name in ways}
            for _ in range(runs):
                for name, way in ways.items():
                    found[name]["runs"].append(copies.measure(name, way))
            settings = machine.server_facts(target, MEASURED_SETTINGS)
        about = machine.machine(root)
    summarize(found, rows)
    result = {
        "flavor": flavor.value,
        "rows": rows,
        "bytes": size,
        "ways": found,
        "settings": settings,
        "machine": about,
    }
    machine.write_result(output or machine.RESULTS / f"copies-{flavor.value}.json", result)
    if not all(one["equal"] for each in found.values() for one in each["runs"]):
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
