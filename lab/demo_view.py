"""The demo's output: progress of a run, summary of a window, log of a failed task."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from binlane.model import plural
from binlane.orchestration.airflow.dag_shape import Kind
from binlane.orchestration.plan_file import read_plan
from binlane.plan.window_facts import barrier_causes, facts_of
from lab.airflow_api import AirflowApi
from lab.replica import THREADS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lab.airflow import PrivateAirflow
    from lab.compare import Comparison
    from lab.servers import PrivateServer

_STEPS: Final = tuple(kind.value for kind in Kind)
_COLORS: Final = {"success": "green", "running": "cyan", "failed": "red", "up_for_retry": "yellow", "skipped": "dim"}
_LOG_LINES: Final = 40


@dataclass(slots=True)
class Progress:
    """A live table of a run's tasks, with a bar for each lane; without a terminal, a line for each finished task."""

    console: Console
    api: AirflowApi
    run: tuple[str, str]
    target: PrivateServer
    _live: Live | None = None
    _ended: set[tuple[str, int]] = field(default_factory=set)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live = Live(console=self.console, refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def update(self) -> None:
        """Query the run and update the table."""
        tasks = sorted(self.api.task_instances(*self.run), key=_order)
        if self._live is not None:
            self._live.update(Group(_task_table(tasks, _lanes(self.target))))
            return
        for task in tasks:
            key = (task["task_id"], task["map_index"])
            if key not in self._ended and task["state"] in ("success", "failed", "skipped", "upstream_failed"):
                self._ended.add(key)
                self.console.print(f"  {_name(task)}: {task['state']} {_seconds(task)}")


def _order(task: dict[str, Any]) -> tuple[int, int]:
    return _STEPS.index(task["task_id"]), task["map_index"]


def print_failure(console: Console, api: AirflowApi, dag_id: str, run_id: str) -> None:
    """The end of the log of every task that failed."""
    for task in api.task_instances(dag_id, run_id):
        if task["state"] == "failed":
            console.print(f"[red]✗[/] {_name(task)} failed, try {task['try_number']}:")
            log = api.log(dag_id, run_id, task["task_id"], task["try_number"], task["map_index"])
            console.print("\n".join(log.splitlines()[-_LOG_LINES:]), markup=False)


@dataclass(frozen=True, slots=True)
class Measured:
    """The demo's measurements and comparisons."""

    seconds: Mapping[str, float]
    """Seconds by phase."""
    replica_seconds: float
    """Seconds of the server's own replica for the window's log."""
    comparison: Comparison
    """Comparison of source and target."""
    replica: Comparison
    """Comparison of source and replica."""


def print_summary(
    console: Console,
    airflow: PrivateAirflow,
    run: tuple[str, str],
    target: PrivateServer,
    measured: Measured,
    *,
    keep: bool,
) -> None:
    """Print the window's facts, its times and the result of the comparison."""
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_column(style="bold")
    for name, value in _window_facts(airflow.api, run, target, measured.replica_seconds):
        table.add_row(name, value)
    table.add_row("seconds", ", ".join(f"{name} {value:.1f}" for name, value in measured.seconds.items()))
    if keep:
        table.add_row("Airflow", f"{airflow.url}/dags/{run[0]}  login admin, password {airflow.password}")
        table.add_row("shell", ". .binlane/demo/env  then `binlane status demo`, `airflow dags list` ...")
        table.add_row("board", f"{airflow.url}/plugin/replication  the same login; viewer may look only")
    console.print(table)
    _print_comparison(console, "source and target", measured.comparison)
    _print_comparison(console, "source and its own replica", measured.replica)


def _print_comparison(console: Console, which: str, comparison: Comparison) -> None:
    for difference in comparison.differences[:20]:
        console.print(Text.assemble(("✗ ", "red"), difference))
    size = (
        f"{plural(comparison.tables, 'table')} with {plural(comparison.rows, 'row')}, "
        f"{comparison.others} databases, accounts and others"
    )
    if comparison.differences:
        console.print(f"[red]✗ {which}: {plural(len(comparison.differences), 'difference')}[/] in {size}")
    else:
        console.print(f"[green]✓ {which} are equal[/]: {size}")


def _window_facts(
    api: AirflowApi, run: tuple[str, str], target: PrivateServer, replica_seconds: float
) -> list[tuple[str, str]]:
    window = api.xcom(*run, "extract_segments", "window")
    plan_uri = api.xcom(*run, "adopt_plan", "plan")
    if plan_uri is None:
        return [("window", f"nothing to apply: {json.dumps(window)}")]
    plan = read_plan(plan_uri)
    causes = ", ".join(f"{cause} {count:,}" for cause, count in barrier_causes(plan).most_common()) or "none"
    transactions = plan.last_seqno - plan.first_seqno + 1
    tasks = api.task_instances(*run)
    spans = {step: _span([task for task in tasks if task["task_id"] == step]) for step in _STEPS}
    applied = spans[Kind.APPLY]
    rows = plan.rows
    lanes = ", ".join(f"{counts.total:,}" for counts in plan.lane_rows)
    return [
        ("window", f"{plan.window_id}, {plural(window['segments'], 'segment')}"),
        ("transactions", f"{transactions:,}: seqno {plan.first_seqno:,} to {plan.last_seqno:,}"),
        (
            "row changes",
            f"{facts_of(plan).read:,} read, {rows.total:,} written: {rows.inserts:,} inserted, "
            f"{rows.updates:,} updated, {rows.deletes:,} deleted",
        ),
        ("shards", f"{len(plan.shards):,}, {plural(len(plan.tables), 'table')}"),
        ("lanes", f"{plan.lanes} and the serialized lane; row changes {lanes}"),
        ("barriers", f"{len(plan.barriers)}; transactions by cause: {causes}"),
        ("steps", ", ".join(f"{step} {seconds:.1f} s" for step, seconds in spans.items() if seconds > 0)),
        ("apply", f"{_rate(transactions, applied)}: from the first lane's start to the last one's end"),
        ("replica", f"{_rate(transactions, replica_seconds)}: the server's own, {THREADS} threads, on the same log"),
        ("watermark", _watermark(target)),
    ]


def _rate(transactions: int, seconds: float) -> str:
    return f"{transactions / seconds:,.0f} transactions/s, {seconds:.1f} s" if seconds > 0 else "nothing"


def _span(tasks: list[dict[str, Any]]) -> float:
    """Seconds from the first start to the last end."""
    starts = [datetime.fromisoformat(task["start_date"]) for task in tasks if task["start_date"] and task["end_date"]]
    ends = [datetime.fromisoformat(task["end_date"]) for task in tasks if task["start_date"] and task["end_date"]]
    return (max(ends) - min(starts)).total_seconds() if starts else 0.0


def _watermark(target: PrivateServer) -> str:
    query = "SELECT watermark_seqno, source_file, source_offset, gtid_set FROM binlane.channels WHERE channel = 'demo'"
    ((seqno, file, offset, gtids),) = target.query(query)
    return f"seqno {seqno:,} at {file}:{offset:,}, GTID {gtids}"


def _lanes(target: PrivateServer) -> dict[int, tuple[int, int, int]]:
    """By lane: its position, the seqno before the window, and the window's last seqno."""
    query = """SELECT p.lane, p.seqno, w.first_seqno - 1, w.last_seqno FROM binlane.positions p
        JOIN binlane.windows w USING (channel, window_id) WHERE channel = 'demo'"""
    return {lane: (seqno, first, last) for lane, seqno, first, last in target.query(query)}


def _task_table(tasks: list[dict[str, Any]], lanes: Mapping[int, tuple[int, int, int]]) -> Table:
    table = Table(box=None, padding=(0, 2))
    for title in ("task", "state", "seconds", "position"):
        table.add_column(title)
    for task in tasks:
        state = task["state"] or "waiting"
        bar: ProgressBar | Text = Text("")
        reached = lanes.get(task["map_index"]) if task["task_id"] == "apply_lane" and task["map_index"] >= 0 else None
        if reached is not None:
            seqno, before, last = reached
            bar = ProgressBar(total=max(1, last - before), completed=seqno - before, width=40)
        table.add_row(_name(task), Text(state, _COLORS.get(state, "")), _seconds(task), bar)
    return table


def _name(task: dict[str, Any]) -> str:
    if task["map_index"] < 0:
        return str(task["task_id"])
    return f"{task['task_id']} {task['rendered_map_index'] or task['map_index']}"


def _seconds(task: dict[str, Any]) -> str:
    return "" if task["duration"] is None else f"{task['duration']:.1f}"
