"""From the wheel and two connection strings to "every row equal", as docs/quickstart.md has it, with nothing cached:
``python -m benchmarks.first_use``.

An empty environment gets the wheel and the packages that it needs; then the four commands of the page are typed, and
two more windows of the same size and an empty one are run, so that the first one has later ones beside it. Source and
target run on one machine. Ends with 1 if a command fails, or the target does not hold what the source holds.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from benchmarks import machine
from benchmarks.copies import checksums, fill
from benchmarks.private import MEASURED_SETTINGS
from binlane.model import Flavor
from lab import wheel
from lab.servers import PrivateServer, private_server

CHANNEL: Final = "shop"
WINDOWS: Final = ("first window", "second window", "third window")
_OURS: Final = ("AIRFLOW", "BINLANE", "PYTHON", "SPARK")
"""Beginnings of names of variables that the commands must not inherit from this process."""


class Site:
    """A user's folder and environment, into which commands are typed."""

    def __init__(self, folder: Path, programs: Path, source: PrivateServer, target: PrivateServer) -> None:
        self._folder = folder
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        addresses = {
            f"AIRFLOW_CONN_{CHANNEL.upper()}_{end.upper()}": f"mysql://{at.user}:{at.password}@{at.host}:{at.port}/"
            for end, at in (("source", source), ("target", target))
        }
        self._environment = {**inherited, **addresses, "PATH": f"{programs}{os.pathsep}{inherited['PATH']}"}

    def typed(self, command: str) -> dict[str, Any]:
        """One command: seconds of wall and of CPU, and the last line that it printed. Raises RuntimeError if it
        fails."""
        before, began = sum(os.times()[2:4]), time.monotonic()
        done = subprocess.run(
            command.split(), cwd=self._folder, env=self._environment, capture_output=True, text=True, check=False
        )
        seconds, used = time.monotonic() - began, sum(os.times()[2:4]) - before
        if done.returncode:
            raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}\n{done.stderr}")
        lines = done.stdout.splitlines()
        typer.echo(f"  {command}: {seconds:.2f} s, {lines[-1] if lines else ''}")
        return {"seconds": round(seconds, 2), "cpu_seconds": round(used, 2), "said": lines[-1] if lines else ""}


def main(
    flavor: Annotated[Flavor, typer.Option(help="Family of the servers.")] = Flavor.MARIADB,
    orders: Annotated[int, typer.Option(min=1, help="Orders on the source; 4.05 rows each.")] = 300_000,
    transactions: Annotated[int, typer.Option(min=1, help="Transactions of each window.")] = 2_000,
    output: Annotated[
        Path | None, typer.Option(help="Result; default: benchmarks/results/first-use-FLAVOR.json.")
    ] = None,
) -> None:
    """Measure, print, write the result."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        built = wheel.audited(wheel.build(root / "dist"))
        began = time.monotonic()
        programs = wheel.install(built.wheel, root / "environment", "", wheel.constraints())
        installed = round(time.monotonic() - began, 2)
        packages = next((root / "environment").glob("lib/python*/site-packages"))
        with _servers(root, flavor) as (source, target):
            rows = fill(source, orders)
            (root / "site").mkdir()
            site = Site(root / "site", programs, source, target)
            load = machine.load()
            commands = {"new": site.typed(f"binlane new {CHANNEL}")}
            commands["bootstrap"] = site.typed(f"binlane bootstrap {CHANNEL}")
            for number, window in enumerate(WINDOWS):
                _write(source, transactions, first=orders + number * transactions)
                commands[window] = site.typed(f"binlane run {CHANNEL}")
                if number == 0:
                    commands["verify"] = site.typed(f"binlane verify {CHANNEL} --full")
            commands["empty window"] = site.typed(f"binlane run {CHANNEL}")
            equal = checksums(source) == checksums(target)
            settings = machine.server_facts(target, MEASURED_SETTINGS)
        result = {
            "benchmark": "first_use",
            "arguments": {"flavor": flavor.value, "orders": orders, "transactions": transactions},
            "machine": machine.machine(root),
            "load_before": load,
            "rows": rows,
            "wheel_bytes": built.wheel.stat().st_size,
            "packages_bytes": _bytes_below(packages),
            "install_seconds": installed,
            "commands": commands,
            "equal": equal,
            "settings": settings,
        }
    machine.write_result(output or machine.RESULTS / f"first-use-{flavor.value}.json", result)
    if not equal:
        typer.echo("the target is NOT EQUAL")
        raise typer.Exit(1)


@contextmanager
def _servers(root: Path, flavor: Flavor) -> Iterator[tuple[PrivateServer, PrivateServer]]:
    options = ["--innodb-buffer-pool-size=1G"]
    with (
        private_server(root / "source", flavor, options, name="source") as source,
        private_server(root / "target", flavor, options, name="target") as target,
    ):
        yield source, target


def _write(source: PrivateServer, transactions: int, first: int) -> None:
    """A window's changes: an order that is placed, and an older one that is paid, in each transaction."""
    with closing(source.connect(autocommit=False)) as connection, connection.cursor() as cursor:
        cursor.execute("USE shop")
        for number in range(first, first + transactions):
            cursor.execute(
                f"INSERT INTO orders VALUES ({number + 1}, {number % 50_021}, '2026-06-01', {number % 999}.5, 1, NULL)"
            )
            cursor.execute(f"UPDATE orders SET state = 'paid' WHERE id = {number % (first // 2) + 1}")
            connection.commit()


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    typer.run(main)
