"""Lanes as processes of this machine, kept from one window to the next."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import active_children
from types import TracebackType
from typing import Final

from binlane.apply.refusals import target_errors
from binlane.apply.target_state import target_state
from binlane.config import ChannelConfig
from binlane.connections import Endpoint, Endpoints
from binlane.errors import LaneEndedError, StopRequestedError
from binlane.orchestration import steps
from binlane.orchestration.plan_file import read_plan
from binlane.orchestration.terminal import Terminal
from binlane.plan.window_facts import lane_name
from binlane.servers.engines import engine_of, kept_connections
from binlane.state.channels import read_channel
from binlane.state.positions import lane_positions
from binlane.state.windows import read_window
from binlane.work.plan_job.fork_server import begin_fork_server
from binlane.work.plan_job.processes import ForkedProcesses, end_with_parent

_MOST_PROCESSES: Final = 16
_POLL_SECONDS: Final = 0.5


class LaneProcesses:
    """Applies the lanes of windows. With fewer processes than lanes a waiting lane moves the others, because lanes are
    leases."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._context = ForkedProcesses()
        self._workers = 0

    def __enter__(self) -> LaneProcesses:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None and issubclass(kind, KeyboardInterrupt):
            # otherwise the pool would wait until the lanes have applied the whole window
            for child in active_children():
                child.terminate()
        self._end()

    def begin(self, channel: str, target: Endpoint, lanes: int, at_work: int | None) -> None:
        """Start processes for the lanes that have work, if none are there, and let each look at the target: while a
        plan is checked, not behind it. ``lanes``: all parallel ones, which later windows may need. ``at_work``: None if
        that is not known yet."""
        if self._pool is None:
            pool = self._started(min(lanes + 1, _MOST_PROCESSES))
            for _ in range(min(lanes if at_work is None else at_work, self._workers)):
                # a pool starts a process when it has a task and no process without one
                pool.submit(look_at_target, channel, target)

    def apply(
        self, channel: ChannelConfig, endpoints: Endpoints, plan_uri: str, lanes: Sequence[int], console: Terminal
    ) -> None:
        """Apply the lanes of a plan to its end, or to a requested stop, with a progress bar each.

        Raises LaneEndedError if a process is gone, and the errors of ``steps.apply_lane``.
        """
        pool = self._started(min(len(lanes), _MOST_PROCESSES))
        try:
            running = [pool.submit(apply_lane, channel, endpoints, plan_uri, lane) for lane in lanes]
            self._context.watch(pool)
            _show(running, plan_uri, endpoints, console)
            raise_cause(running)
        except BrokenProcessPool as exc:
            self._end()
            raise LaneEndedError(
                f"channel {channel.name}: the process of a lane {self._context.how_ended}, and the other lanes were "
                f"ended; their open blocks are rolled back: `binlane run {channel.name}` continues from each lane's "
                "position"
            ) from exc

    def _started(self, workers: int) -> ProcessPoolExecutor:
        if self._pool is None or self._workers < workers:
            self._end()
            self._context = ForkedProcesses()
            begin_fork_server()
            self._pool = ProcessPoolExecutor(workers, mp_context=self._context, initializer=begin_lane_process)
            self._workers = workers
        return self._pool

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        self._pool = None


def begin_lane_process() -> None:
    """Prepare a lane's process: ignore SIGINT, which a terminal sends to all processes of a command; the command itself
    ends its lanes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def look_at_target(channel: str, target: Endpoint) -> None:
    """The first task of a lane's process: asks the target what a lane asks first. Writes nothing.

    In a new process this takes 17 ms of CPU, and 5 ms when the lane asks again. The lanes of a plan begin at once, on
    few cores: with five lanes that is 0.06 s while the plan's check waits for its servers, instead of behind it.
    """
    # an error that lasts is the lane's own to raise
    with suppress(Exception), kept_connections(), target_state(target) as engine, engine.connect() as connection:
        read_channel(connection, channel)
        read_window(connection, channel, "")
        lane_positions(connection, channel)


def apply_lane(channel: ChannelConfig, endpoints: Endpoints, plan_uri: str, lane: int) -> None:
    """Apply one lane in a process of its own, with the configuration and endpoints that the command has read."""
    steps.apply_lane(channel, endpoints, plan_uri, lane)


def raise_cause(ended: Iterable[Future[None]]) -> None:
    """Wait for lanes, and raise the error of one that failed, if one did: those beside it stop, and only say where."""
    failed = [error for future in ended if (error := future.exception()) is not None]
    if failed:
        raise min(failed, key=lambda error: isinstance(error, StopRequestedError))


def _show(running: list[Future[None]], plan_uri: str, endpoints: Endpoints, console: Terminal) -> None:
    """Show a progress bar for each lane until all have ended."""
    if not console.is_terminal:
        return
    planned = read_plan(plan_uri)
    totals = {lane: sum(file.transactions for file in planned.files[lane]) for lane in planned.lanes_with_work}
    with console.bars(seconds_left=True) as shown:
        bars = {lane: shown.add(lane_name(planned, lane), total, f"0/{total}") for lane, total in totals.items()}
        while not all(future.done() for future in running):
            with target_errors(str(endpoints.target)), engine_of(endpoints.target).connect() as connection:
                positions = lane_positions(connection, planned.channel)
            for position in positions:
                if position.lane in bars:  # another run may have opened the next window, with more lanes
                    done, total = position.transactions, totals[position.lane]
                    shown.show(bars[position.lane], done, said=f"{done}/{total}")
            time.sleep(_POLL_SECONDS)
