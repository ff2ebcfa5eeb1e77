"""How fast every view answers with many databases: ``python -m benchmarks.board``.

One channel with 2,000 databases, three finished windows that change each of them, an open window, a part of a full
verification, and 40 further channels on the same target. Airflow is stood for: its own queries are not measured.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.channel import Channel, open_channel
from benchmarks.ways import apply_lanes
from binlane.board.api import build_app
from binlane.board.host import Host, TriggeredRun
from binlane.config import declared_channels
from binlane.connections import Endpoint
from binlane.health.airflow_runs import AirflowRuns
from binlane.orchestration import steps
from binlane.orchestration.commands.find import find
from binlane.orchestration.commands.fleet import status_all
from binlane.orchestration.commands.operate import status
from binlane.orchestration.commands.verify import verify_channel
from binlane.orchestration.request import NOW, WindowRequest
from binlane.orchestration.terminal import as_text
from binlane.servers.engines import engine_of
from binlane.state.channels import create_channel, read_channel
from binlane.state.records.databases import Search
from binlane.verify.outcome import Options
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import LocalProcesses, run_plan_job
from lab.servers import PrivateServer, private_server
from lab.written import replaced

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.connections import Endpoints

NAME: Final = "fleet"
PAGE: Final = Path(__file__).parents[1] / "docs" / "board.md"
RESULT: Final = machine.RESULTS / "board.json"
_BEGIN: Final = "<!-- table: written by `python -m benchmarks.board` from benchmarks/results -->\n"
_END: Final = "<!-- end of table -->\n"
_TRIES: Final = 5


def main(
    databases: Annotated[int, typer.Option(min=4, help="Databases of the channel.")] = 2_000,
    channels: Annotated[int, typer.Option(min=0, help="Further channels on the same target.")] = 40,
    output: Annotated[Path | None, typer.Option(help="Result file; default: benchmarks/results/board.json.")] = None,
) -> None:
    """Make the site, ask every view, print a table and write the result, the default one also into the page."""
    with tempfile.TemporaryDirectory(prefix="binlane-board-") as place:
        folder = Path(place)
        with (
            private_server(folder / "source", name="board_source", durable=False) as source,
            private_server(folder / "target", name="board_target", durable=False) as target,
        ):
            channel, endpoints = open_channel(Channel(NAME, 4, 500), source, target, folder / "project")
            _fill(source, databases)
            for seed in range(3):
                _change(source, databases, seed)
                _window(channel, endpoints, is_applied=True)
            verify_channel(channel, endpoints, Options(full=True, seconds=3.0))
            _change(source, databases, 9)
            opened = _window(channel, endpoints, is_applied=False)
            _more_channels(Path(channel.file), endpoints, channels)
            result = {
                "benchmark": "board",
                "arguments": {"databases": databases, "channels": channels},
                "machine": machine.machine(folder),
                "load": machine.load(),
                "milliseconds": _measured(_views(channel, endpoints, opened)),
            }
    machine.write_result(output or RESULT, result)
    if output is None:
        PAGE.write_text(rendered(PAGE.read_text("utf-8")), "utf-8")
    _print(result)


def rendered(page: str) -> str:
    """The page with the table of the stored result between its two marks. Raises ValueError if a mark is missing."""
    result = json.loads(RESULT.read_text("utf-8"))
    head = f"| {_title(result)} | median ms | longest ms |\n|---|---|---|\n"
    rows = (
        f"| {name} | {statistics.median(spent):,.0f} | {spent[-1]:,.0f} |\n"
        for name, spent in result["milliseconds"].items()
    )
    return replaced(page, _BEGIN, _END, f"{head}{''.join(rows)}\n", f"{PAGE}: the table")


def _fill(source: PrivateServer, databases: int) -> None:
    with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for number in range(databases):
            cursor.execute(f"CREATE DATABASE tenant_{number:04}")
            cursor.execute(f"CREATE TABLE tenant_{number:04}.orders (id INT PRIMARY KEY, total INT NOT NULL)")


def _change(source: PrivateServer, databases: int, seed: int) -> None:
    """Some rows of every database, one transaction each."""
    with source.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for number in range(databases):
            rows = ", ".join(f"({100 * seed + row}, {row})" for row in range(3 + (number + seed) % 5))
            cursor.execute(f"INSERT INTO tenant_{number:04}.orders VALUES {rows}")


def _window(channel: ChannelConfig, endpoints: Endpoints, *, is_applied: bool) -> dict[str, Any]:
    window = steps.extract(channel, endpoints, WindowRequest(NOW))
    run_plan_job(WorkFolder(window["work"]), LocalProcesses(os.cpu_count() or 1))
    adopted = steps.adopt_plan(channel, endpoints, window["work"])
    if is_applied:
        apply_lanes(channel, endpoints, adopted["plan"], [each["lane"] for each in adopted["lanes"]])
        steps.advance(channel, endpoints, adopted["plan"])
    return window


def _more_channels(file: Path, endpoints: Endpoints, count: int) -> None:
    engine = engine_of(endpoints.target)
    with engine.connect() as connection:
        found = read_channel(connection, NAME)
    for number in range(count):
        (file.parent / f"more_{number:02}.toml").write_text(file.read_text("utf-8"), "utf-8")
        create_channel(engine, f"more_{number:02}", found.source_identity, found.watermark)


def _views(channel: ChannelConfig, endpoints: Endpoints, opened: dict[str, Any]) -> dict[str, Callable[[], object]]:
    # not for the processes of lanes and the plan job, which import this module
    from fastapi.testclient import TestClient

    folder = Path(channel.file).parent

    def resolve(connection: str) -> Endpoint:
        found = endpoints.source if connection == "source" else endpoints.target
        assert found is not None
        return found

    client = TestClient(
        build_app(
            Host(
                get_user=lambda: "anybody", user_name=str, may=lambda *_: True, resolve=resolve,
                channels=lambda: folder, runs=lambda _: AirflowRuns(), scheduler_silent=lambda: None,
                trigger=lambda *_: TriggeredRun("", is_paused=False),
            )
        )
    )  # fmt: skip

    def page(path: str) -> Callable[[], object]:
        def ask() -> object:
            answer = client.get(f"/api/{path}")
            answer.raise_for_status()
            return answer.json()

        return ask

    at = f"channels/{NAME}"
    lane = f"{at}/windows/{opened['window']}/lanes/0"
    blocks: Any = page(f"{lane}/blocks?limit=100")()
    block = f"{lane}/blocks/{blocks['blocks'][0]['first_seqno']}/transactions"
    transactions: Any = page(f"{block}?limit=100")()
    declared = declared_channels(folder)
    return {
        "board: all channels": page("channels"),
        "board: a channel": page(at),
        "board: windows": page(f"{at}/windows"),
        "board: a window": page(f"{at}/windows/{opened['window']}"),
        "board: a lane's blocks": page(f"{lane}/blocks?limit=100"),
        "board: a block's transactions": page(f"{block}?limit=100"),
        "board: a transaction's rows": page(f"{block}/{transactions['transactions'][0]['seqno']}/rows?limit=100"),
        "board: databases, 100 by row changes": page(f"{at}/databases?sort=rows&limit=100"),
        "board: databases by pattern": page(f"{at}/databases?pattern=tenant_21*"),
        "board: databases, in all channels": page("databases?pattern=*19*&limit=100"),
        "board: repairs and first copy": page(f"{at}/records"),
        "board: /metrics": lambda: client.get("/metrics").raise_for_status(),
        "binlane status --all": lambda: as_text(status_all(folder, None, as_json=False, resolve=resolve)),
        "binlane status fleet": lambda: as_text(status(NAME, folder, as_json=False, resolve=resolve)),
        "binlane find": lambda: as_text(find(declared, Search(), 100, as_json=False, resolve=resolve)[0]),
        "binlane find --limit 2000 --json": lambda: find(declared, Search(), 2_000, as_json=True, resolve=resolve),
    }


def _measured(views: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Each view some times, ascending."""
    measured = {}
    for name, ask in views.items():
        spent = []
        for _ in range(_TRIES):
            began = time.perf_counter()
            ask()
            spent.append(round(1_000 * (time.perf_counter() - began), 1))
        measured[name] = sorted(spent)
    return measured


def _title(result: dict[str, Any]) -> str:
    made = result["arguments"]
    return f"{made['databases']:,} databases, {1 + made['channels']} channels, load {result['load'][0]}"


def _print(result: dict[str, Any]) -> None:
    table = Table(title=_title(result), box=None)
    table.add_column("view")
    table.add_column("median ms", justify="right")
    table.add_column("longest ms", justify="right")
    for name, spent in result["milliseconds"].items():
        table.add_row(name, f"{statistics.median(spent):,.0f}", f"{spent[-1]:,.0f}")
    Console(width=None if sys.stdout.isatty() else 100).print(table)


if __name__ == "__main__":
    typer.run(main)
