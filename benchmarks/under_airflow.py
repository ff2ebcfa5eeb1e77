"""Windows under a real Airflow, by every engine of the plan job: ``python -m benchmarks.under_airflow``.

One Airflow with its scheduler (LocalExecutor, SQLite), one source, and for each engine a channel with a target of its
own. In turn, each channel gets a window of the same new transactions, and an empty one. A window's seconds are those
from the request that triggers its run to the run's end, as a person at the UI waits for it.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from benchmarks import machine
from benchmarks.channel import begin_at_oldest, endpoints_of
from benchmarks.native import NOT_EQUAL
from benchmarks.private import MEASURED_SETTINGS, Lab, TrafficWriter, has_the_same, make_base, start_source
from benchmarks.workloads import WORKLOADS
from binlane.config import load_channel
from binlane.model import Flavor
from binlane.orchestration.airflow.dag_shape import Kind, dag_id
from lab import airflow, spark_connect
from lab.airflow_api import FINAL_STATES
from lab.servers import LabError, free_port
from lab.site import DAG_FILE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from lab.airflow import PrivateAirflow
    from lab.servers import PrivateServer

console = Console(highlight=False, width=None if sys.stdout.isatty() else 132)
ENGINES: Final[Mapping[str, str]] = {
    "session": '[spark]\nengine = "spark"\nconnection = "session_spark"\n',
    "submit": '[spark]\nengine = "spark"\nconnection = "submit_spark"\n',
    "local": '[spark]\nengine = "local"\n',
}
"""By name: a Spark session that stays, a spark-submit for each window, and processes of the worker."""
EMPTY: Final = "empty"
STEPS: Final = (Kind.EXTRACT, Kind.FILTER, Kind.ADOPT, Kind.APPLY, Kind.ADVANCE)
BETWEEN: Final = "between tasks"
"""What is left of a window: Airflow's scheduler, and the start of the tasks' processes."""
_CHANNEL: Final = """\
[source]
connection = "source"
[target]
connection = "{name}"
[window]
schedule = "none"
[lanes]
count = {lanes}
[work]
uri = "{work}"
{engine}"""
_MOST_SECONDS: Final = 900.0
_POLL: Final = 0.1


@dataclass(frozen=True, slots=True)
class Bench:
    """What all windows of a run have in common."""

    airflow: PrivateAirflow
    source: PrivateServer
    targets: Mapping[str, PrivateServer]

    def window(self, engine: str) -> dict[str, Any]:
        """One run of an engine's DAG to the source's end; its seconds, and those of its steps."""
        load, api, began = machine.load(), self.airflow.api, time.monotonic()
        run_id = api.trigger(dag_id(engine), {"until": "now"})
        while (state := api.run(dag_id(engine), run_id)["state"]) not in FINAL_STATES:
            if time.monotonic() - began > _MOST_SECONDS:
                raise LabError(f"{engine}: the run {run_id} has not ended after {_MOST_SECONDS:.0f} s")
            time.sleep(_POLL)
        seconds = time.monotonic() - began
        if state != "success":
            raise LabError(f"{engine}: the run {run_id} ended as {state}")
        tasks = api.task_instances(dag_id(engine), run_id)
        spans = {step.value: _span([task for task in tasks if task["task_id"] == step]) for step in STEPS}
        spans[BETWEEN] = seconds - sum(spans.values())
        return {
            "seconds": round(seconds, 2),
            "steps": {name: round(spent, 2) for name, spent in spans.items()},
            "load_before": load,
        }


def main(
    engines: Annotated[str, typer.Option(help=f"Engines, each measured: {', '.join(ENGINES)}.")] = ",".join(ENGINES),
    transactions: Annotated[int, typer.Option(min=1, help="New transactions in each window.")] = 20_000,
    runs: Annotated[int, typer.Option(min=1, help="Windows of each engine, and as many empty ones; medians.")] = 3,
    lanes: Annotated[int, typer.Option(min=2, help="Lanes of the channels.")] = 4,
    workload: Annotated[str, typer.Option(help=f"One of {', '.join(WORKLOADS)}.")] = "tenants",
    kept: Annotated[
        Path | None,
        typer.Option(help="Folder of `benchmarks.scale --kept`: one window over its whole log, and no others."),
    ] = None,
    buffer_pool: Annotated[int, typer.Option(min=64, help="InnoDB buffer pool of every server, MiB.")] = 1024,
    output: Annotated[
        Path | None, typer.Option(help="Result file; default: benchmarks/results/under-airflow.json.")
    ] = None,
) -> None:
    """Measure, compare, print a table and write the result."""
    chosen = [name.strip() for name in engines.split(",")]
    if unknown := [name for name in chosen if name not in ENGINES]:
        raise typer.BadParameter(f"unknown engine {unknown[0]!r}; known: {', '.join(ENGINES)}")
    with contextlib.ExitStack() as stack:
        place = kept or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="binlane-airflow-")))
        lab = Lab(place, Flavor.MARIADB, durable=True, target_log=True, buffer_pool_mib=buffer_pool)
        if kept is None:
            make_base(lab, WORKLOADS[workload])
        source = start_source(lab)
        stack.callback(source.stop)
        targets = {name: stack.enter_context(lab.target(name)) for name in chosen}
        writer = TrafficWriter(source, WORKLOADS[workload])
        home = place / "airflow"
        stack.callback(shutil.rmtree, home, ignore_errors=True)
        bench = Bench(_site(home, source, targets, lanes), source, targets)
        stack.callback(bench.airflow.stop)
        _up(bench, chosen)
        windows = _measure(bench, writer, transactions if kept is None else 0, runs if kept is None else 1)
        equal = {name: has_the_same(source, target) for name, target in targets.items()}
        result: dict[str, Any] = {
            "benchmark": "under_airflow",
            "arguments": {
                "engines": chosen, "transactions": writer.written().transactions if kept else transactions,
                "runs": runs, "lanes": lanes, "workload": workload, "buffer_pool_mib": buffer_pool,
            },
            "machine": machine.machine(place),
            "target": machine.server_facts(targets[chosen[0]], MEASURED_SETTINGS),
            "windows": windows,
            "medians": {name: _median(found) for name, found in windows.items()},
            "equal": equal,
        }  # fmt: skip
    path = output or machine.RESULTS / "under-airflow.json"
    machine.write_result(path, result)
    _print(result)
    console.print(f"[dim]{path}[/]")
    if not all(equal.values()):
        sys.exit(1)


def _site(home: Path, source: PrivateServer, targets: Mapping[str, PrivateServer], lanes: int) -> PrivateAirflow:
    """An Airflow with a channel for each target, not started yet, and the channels' rows on the targets."""
    channels, dags = home / "channels", home / "dags"
    for folder in (channels, dags):
        folder.mkdir(parents=True)
    (dags / "replicate.py").write_text(DAG_FILE)
    for name, target in targets.items():
        file = channels / f"{name}.toml"
        file.write_text(_CHANNEL.format(name=name, lanes=lanes, work=home / "work", engine=ENGINES[name]))
        begin_at_oldest(load_channel(file), endpoints_of(source, target))
    connections = {name: _uri(server) for name, server in {"source": source, **targets}.items()}
    connections["submit_spark"] = json.dumps({"conn_type": "spark", "host": f"local[{os.cpu_count() or 1}]"})
    connections["session_spark"] = json.dumps(
        {
            "conn_type": "spark_connect", "host": spark_connect.CLIENTS_HOST, "port": free_port(),
            "password": secrets.token_urlsafe(18),
        }
    )  # fmt: skip
    extra = {"AIRFLOW__CORE__DAGS_FOLDER": str(dags), "BINLANE_CHANNELS": str(channels)}
    return airflow.new_airflow(home, connections, extra)


def _uri(server: PrivateServer) -> str:
    return (
        f"mysql://{server.user}:{server.password}@{server.host}:{server.port}/"
        "?ssl_mode=disabled&get_server_public_key=true"
    )


def _up(bench: Bench, engines: Sequence[str]) -> None:
    """Start the services; returns when every channel's DAG can be triggered."""
    if "session" in engines:
        spark = json.loads(bench.airflow.settings["AIRFLOW_CONN_SESSION_SPARK"])
        command = spark_connect.command(spark["port"], os.cpu_count() or 1)
        bench.airflow.launch("spark-connect", command, variables={spark_connect.TOKEN: spark["password"]})
    bench.airflow.start()
    for engine in engines:
        bench.airflow.wait_for_dag(dag_id(engine))
        bench.airflow.api.unpause(dag_id(engine))
    if "session" in engines:
        spark_connect.wait_for(spark["port"])


def _measure(bench: Bench, writer: TrafficWriter, transactions: int, runs: int) -> dict[str, list[dict[str, Any]]]:
    """The windows of each engine, and the empty ones, all in turn; the first round warms Airflow and is not counted."""
    found: dict[str, list[dict[str, Any]]] = {}
    for number in range(runs + 1 if transactions else 1):
        if transactions:
            writer.write(transactions)
        for engine in bench.targets:
            window = bench.window(engine)
            console.print(
                f"  {engine}: {window['seconds']:.1f} s{'' if number or not transactions else ', not counted'}"
            )
            if number or not transactions:
                found.setdefault(engine, []).append(window)
        if number:
            # nothing is new, whatever the engine
            found.setdefault(EMPTY, []).append(bench.window(next(iter(bench.targets))))
    return found


def _median(windows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "seconds": statistics.median(window["seconds"] for window in windows),
        "steps": {
            name: round(statistics.median(window["steps"][name] for window in windows), 2)
            for name in windows[0]["steps"]
        },
    }


def _span(tasks: list[dict[str, Any]]) -> float:
    """Seconds from the first start to the last end."""
    moments = [
        (datetime.fromisoformat(task["start_date"]), datetime.fromisoformat(task["end_date"]))
        for task in tasks
        if task["start_date"] and task["end_date"]
    ]
    return (max(end for _, end in moments) - min(start for start, _ in moments)).total_seconds() if moments else 0.0


def _print(result: dict[str, Any]) -> None:
    medians, arguments = result["medians"], result["arguments"]
    table = Table(
        "step", *medians,
        title=f"windows of {arguments['transactions']:,} transactions under Airflow, {arguments['lanes']} lanes",
        caption="seconds, medians; whole: from the trigger to the run's end",
    )  # fmt: skip
    for column in table.columns[1:]:
        column.justify = "right"
    for step in (*(step.value for step in STEPS), BETWEEN):
        table.add_row(step, *(f"{found['steps'][step]:.1f}" for found in medians.values()))
    table.add_row("whole", *(f"{found['seconds']:.1f}" for found in medians.values()))
    console.print(table)
    for name, equal in result["equal"].items():
        console.print(f"{name}: same data: {'yes' if equal else f'[red]{NOT_EQUAL}[/]'}")


if __name__ == "__main__":
    typer.run(main)
