"""Lanes against a distant target: ``python -m benchmarks.distant``.

A proxy between the lanes and the target holds every answer back for some milliseconds, as a network between two sites
does. One lane waits for each answer; several wait at the same time. Ends with 1 if a target is not equal to its source.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console

from benchmarks import machine
from benchmarks.channel import Channel, run_window
from benchmarks.private import MEASURED_SETTINGS, Lab, TrafficWriter, make_base, start_source
from benchmarks.ways import apply_lanes
from benchmarks.workloads import WORKLOADS
from binlane.model import Flavor
from lab.compare import contents

if TYPE_CHECKING:
    from lab.servers import PrivateServer

console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
_DIVIDED: Final = {"single": "key"}
"""Workloads of one database, and how it is divided; all others have a shard for each database."""
_BY_LOAD: Final = "(*)=-1\n(hash-method)=load\n"
"""Lanes with as many transactions each: by hash, the fullest of 8 lanes has up to twice its share of 32 databases."""
_READ: Final = 1 << 18


@dataclass(slots=True)
class Distance:
    """A port that leads to a server, whose answers arrive ``seconds`` late."""

    port: int
    seconds: float
    answers: int = 0
    """How many have come through: each is a wait of the connection that has asked."""

    async def carry(self, client: asyncio.StreamReader, back: asyncio.StreamWriter, server: int) -> None:
        """One connection, until either side closes it."""
        answers, out = await asyncio.open_connection("127.0.0.1", server)
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(_forward(client, out), self._forward_late(answers, back))
        for each in (out, back):
            each.close()

    async def _forward_late(self, answers: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        clock = asyncio.get_running_loop().time

        async def write() -> None:
            while True:
                due, data = await queue.get()
                await asyncio.sleep(due - clock())
                back.write(data)
                await back.drain()
                if not data:
                    return

        writer = asyncio.ensure_future(write())
        while data := await answers.read(_READ):
            self.answers += 1
            queue.put_nowait((clock() + self.seconds, data))
        queue.put_nowait((clock(), b""))
        await writer
        back.close()


async def _forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_READ):
        writer.write(data)
        await writer.drain()
    writer.close()


@contextlib.contextmanager
def distance(port: int, seconds: float) -> Iterator[Distance]:
    """A proxy to a port of this machine, on a thread of its own."""
    found, listens, ended = Distance(0, seconds), threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        async with await asyncio.start_server(lambda a, b: found.carry(a, b, port), "127.0.0.1", 0) as server:
            found.port = int(server.sockets[0].getsockname()[1])
            loops.append(asyncio.get_running_loop())
            listens.set()
            await ended.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), name="distance", daemon=True)
    thread.start()
    listens.wait()
    try:
        yield found
    finally:
        loops[0].call_soon_threadsafe(ended.set)
        thread.join()


def measure(
    lab: Lab, source: PrivateServer, expected: dict[str, str], channel: Channel, seconds: float
) -> dict[str, Any]:
    """One window through the proxy to a fresh target."""
    load, folder = machine.load(), Path(tempfile.mkdtemp(dir=lab.folder))
    with lab.target("target") as target, distance(target.port, seconds) as proxy:
        used = machine.cpu_seconds(target.pid)
        waits = [0]

        def counted(*arguments: Any) -> dict[str, Any]:
            waits[0] = proxy.answers
            found = apply_lanes(*arguments)
            waits[0] = proxy.answers - waits[0]
            return found

        taken = run_window(channel, source, replace(target, port=proxy.port), folder, counted)
        used = machine.cpu_seconds(target.pid) - used
        settings, found = machine.server_facts(target, MEASURED_SETTINGS), contents(target)
    return {
        "seconds": taken["apply_seconds"], "answers": waits[0], "target_cpu_seconds": round(used, 2),
        "blocks": sum(lane["blocks"] or 0 for lane in taken["lanes"]),
        "equal": all(found.get(name) == text for name, text in expected.items()),
        "load_before": load, "settings": settings,
    }  # fmt: skip


def main(
    flavor: Annotated[Flavor, typer.Option(help="Server of source and targets.")] = Flavor.MARIADB,
    workloads: Annotated[str, typer.Option(help="Workloads, by comma.")] = "single,inserts",
    transactions: Annotated[int, typer.Option(min=1, help="Transactions in each log.")] = 20_000,
    lanes: Annotated[
        str, typer.Option(help="Numbers of lanes, by comma; the first is what others are compared with.")
    ] = "1,2,4,8,16",
    commit: Annotated[
        str, typer.Option(help="Values of lanes.commit, by comma, each measured: together divides every workload.")
    ] = "alone",
    block: Annotated[int, typer.Option(min=1, help="Source transactions a block.")] = 50,
    milliseconds: Annotated[float, typer.Option(min=0.0, help="How late each answer arrives.")] = 5.0,
    output: Annotated[
        Path | None, typer.Option(help="Result; default: benchmarks/results/distant-FLAVOR.json.")
    ] = None,
) -> None:
    """Measure each number of lanes once, print the ratios, write the result."""
    counts = [int(count) for count in lanes.split(",")]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="binlane-distant-") as folder:
        about = machine.machine(Path(folder))
        for name in workloads.split(","):
            lab = Lab(Path(folder) / name, flavor, durable=True, target_log=True, buffer_pool_mib=512)
            lab.folder.mkdir()
            found |= _curves(lab, name, transactions, counts, block, milliseconds / 1000, commit.split(","))
    result = {
        "benchmark": "distant",
        "arguments": {
            "flavor": flavor.value, "transactions": transactions, "block": block, "milliseconds": milliseconds,
            "commit": commit,
        },
        "machine": about, "workloads": found,
    }  # fmt: skip
    machine.write_result(output or machine.RESULTS / f"distant-{flavor.value}.json", result)
    if not all(run["equal"] for curve in found.values() for run in curve.values()):
        raise typer.Exit(1)


def _curves(
    lab: Lab, name: str, transactions: int, counts: list[int], block: int, seconds: float, commits: list[str]
) -> dict[str, dict[str, dict[str, Any]]]:
    """By workload and, but for "alone", way to commit: the runs by number of lanes."""
    workload, curves = WORKLOADS[name], dict[str, dict[str, dict[str, Any]]]()
    make_base(lab, workload)
    source = start_source(lab)
    try:
        TrafficWriter(source, workload).write(transactions)
        expected = {key: text for key, text in contents(source).items() if key.startswith(("data of", "table"))}
        for commit, count in product(commits, counts):
            divide = _DIVIDED.get(name, None if commit == "alone" else "key") if count > 1 else None
            shown = name if commit == "alone" else f"{name}, {commit}"
            curve = curves.setdefault(shown, {})
            channel = Channel(
                "distant", count, block, "block", workload.shard_list + ("" if divide else _BY_LOAD),
                divide=divide, divided=workload.divided, commit=commit,
            )  # fmt: skip
            run = curve[str(count)] = measure(lab, source, expected, channel, seconds)
            ratio = curve[str(counts[0])]["seconds"] / run["seconds"]
            console.print(
                f"  {shown}, {count} lanes: {run['seconds']:.2f} s, {ratio:.2f} times one, {run['answers']:,} answers"
                f"{'' if run['equal'] else ', NOT EQUAL'}"
            )
    finally:
        source.stop()
    return curves


if __name__ == "__main__":
    typer.run(main)
