"""Applies the complete log of a suite's source by binlane, with the steps of windows in this process."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from binlane.config import ChannelConfig
from binlane.connections import Endpoints
from binlane.errors import BarrierTimeoutError, BinlaneError, StopRequestedError
from binlane.orchestration import steps
from binlane.orchestration.commands import run
from binlane.orchestration.commands.channel import load
from binlane.orchestration.request import NOW, WindowRequest
from binlane.work.files import WorkFolder
from binlane.work.plan_job.job import InProcess, run_plan_job
from lab.suites.verdict import Run

if TYPE_CHECKING:
    from lab.servers import PrivateServer

_CHANNEL: Final = "suite"
_MOST_WINDOWS: Final = 10
_FILE: Final = """
[source]
connection = "suite_source"
[target]
connection = "suite_target"
[lanes]
count = 3
fold_gap = 4
[blocks]
transactions = 20
[segments]
bytes = 65536
[apply]
barrier_timeout = 60
retries = 2
lock_wait_timeout = 10
allow_nontransactional = true
allow_unsafe = {unsafe}
[work]
uri = "{work}"
"""


def bring(source: PrivateServer, target: PrivateServer, folder: Path, *, allow_unsafe: bool) -> Run:
    """Apply the source's whole log to the target; how far the run came, without a comparison."""
    channels = folder / "channels"
    channels.mkdir(parents=True)
    text = _FILE.format(unsafe=str(allow_unsafe).lower(), work=folder / "work")
    (channels / f"{_CHANNEL}.toml").write_text(text)
    for name, server in (("SOURCE", source), ("TARGET", target)):
        place = f"{server.user}:{server.password}@{server.host}:{server.port}"
        os.environ[f"AIRFLOW_CONN_SUITE_{name}"] = f"mysql://{place}/?ssl_mode=disabled&get_server_public_key=true"
    refused = True
    try:
        run.init(_CHANNEL, channels, "oldest")
        channel, endpoints = load(_CHANNEL, channels)
        for _ in range(_MOST_WINDOWS):
            refused = True
            adopted = _adopted(channel, endpoints)
            if adopted is None:
                return Run()
            refused = False
            _apply(channel, endpoints, adopted)
    except Exception as exc:
        return Run(_said(exc), refused=refused and isinstance(exc, BinlaneError))
    return Run(f"the log's end is not reached after {_MOST_WINDOWS} windows")


def _adopted(channel: ChannelConfig, endpoints: Endpoints) -> dict[str, Any] | None:
    """Run the steps before a window's first write; None at the log's end."""
    window = steps.extract(channel, endpoints, WindowRequest(NOW))
    if window["work"] is None:
        return None
    if window["plan"] is None:
        run_plan_job(WorkFolder(window["work"]), InProcess())
    return steps.adopt_plan(channel, endpoints, window["work"])


def _apply(channel: ChannelConfig, endpoints: Endpoints, adopted: dict[str, Any]) -> None:
    lanes = [each["lane"] for each in adopted["lanes"]]
    with ThreadPoolExecutor(max(1, len(lanes))) as pool:
        tasks = [pool.submit(steps.apply_lane, channel, endpoints, adopted["plan"], lane) for lane in lanes]
    errors = [error for task in tasks if (error := task.exception()) is not None]
    # lanes that wait for the failed lane fail as well; the first error is the cause
    for error in sorted(errors, key=lambda each: isinstance(each, (BarrierTimeoutError, StopRequestedError))):
        raise error
    steps.advance(channel, endpoints, adopted["plan"])


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
