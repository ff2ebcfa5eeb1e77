"""What a process runs: a window with a fault in it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from binlane.apply.lane.options import ApplyOptions
from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import BinlaneError
from binlane.orchestration import steps
from binlane.orchestration.request import WindowRequest
from binlane.precheck.situation import situation
from binlane.servers.engines import engine_of
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from tests.chaos.faults import Fault, Faults, killer
from tests.chaos.scene import Scene, run_all
from tests.forked import process
from tests.one_runner import apply_alone


def was_killed(target: Callable[..., None], *arguments: Any) -> bool:
    """Run it to its end; whether it ended by SIGKILL. Any end but that and success is an error."""
    with process(target, *arguments) as running:
        running.join(timeout=120)
        assert running.exitcode in (0, -signal.SIGKILL), f"the worker ended with {running.exitcode}"
        return running.exitcode != 0


def apply_window(url: str, scene: Scene, options: ApplyOptions, fault: Fault) -> None:
    """All lanes, one after another, and the watermark. An error of the product is not a failure of the worker."""
    with contextlib.suppress(BinlaneError):
        run_all(Faults(fault, kill=killer(url)).engine(url), scene, options)


def run_steps(config: ChannelConfig, endpoints: Endpoints, fault: Fault, in_files: bool, seen: Path | None) -> None:
    """A whole window with a fault around its lanes: at a statement of the other steps, or at a change of a folder.

    ``seen``: where to leave what was counted, if nothing struck.
    """
    faults = Faults(fault)
    if in_files:
        faults.watch_files()
    else:
        _inject(faults)
    window = steps.extract(config, endpoints, WindowRequest("now"))
    run_plan_job(WorkFolder(window["work"]), InProcess())
    adopted = steps.adopt_plan(config, endpoints, window["work"])
    # the lanes have faults of their own elsewhere
    setattr(steps, "engine_of", engine_of)  # noqa: B010
    for each in adopted["lanes"]:
        apply_alone(config, endpoints, adopted["plan"], each["lane"])
    if not in_files:
        _inject(faults)
    steps.advance(config, endpoints, adopted["plan"])
    if seen is not None:
        seen.write_text("\n".join(line.replace("\n", " ") for line in faults.seen))


def _inject(faults: Faults) -> None:
    # the steps make an engine of their own wherever they need one
    for module in (steps, situation):
        setattr(module, "engine_of", lambda endpoint, **_: faults.engine(endpoint.sqlalchemy_url()))  # noqa: B010


def run_window(config: ChannelConfig, endpoints: Endpoints, fault: Fault) -> None:
    """A whole window by its steps, from extraction to the watermark, lanes one after another."""
    _inject(Faults(fault, kill=killer(endpoints.target.sqlalchemy_url())))
    with contextlib.suppress(BinlaneError):
        window = steps.extract(config, endpoints, WindowRequest("now"))
        if window["work"] is None:
            return
        if window["plan"] is None:
            run_plan_job(WorkFolder(window["work"]), InProcess())
        adopted = steps.adopt_plan(config, endpoints, window["work"])
        for each in adopted["lanes"]:
            apply_alone(config, endpoints, adopted["plan"], each["lane"])
        steps.advance(config, endpoints, adopted["plan"])


def apply_lanes(config: ChannelConfig, endpoints: Endpoints, plan: str, lanes: Sequence[int], fault: Fault) -> None:
    """The lanes of an adopted plan, one after another, with a fault at one of their statements."""
    _inject(Faults(fault, kill=killer(endpoints.target.sqlalchemy_url())))
    for lane in lanes:
        apply_alone(config, endpoints, plan, lane)
