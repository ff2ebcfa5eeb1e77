"""``binlane follow``: one window behind another, each with its own plan, precheck and watermark, until it is ended."""

from __future__ import annotations

import datetime as dt
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlane.errors import BinlaneError, ConfigError, StopRequestedError
from binlane.model import plural
from binlane.orchestration import steps
from binlane.orchestration.announcing.announce import announce
from binlane.orchestration.commands.run import Call, apply_window, load
from binlane.orchestration.lane_processes import LaneProcesses
from binlane.orchestration.terminal import Terminal

if TYPE_CHECKING:
    from binlane.source.protocol import LogState

_LONGEST_PAUSE: Final = 60.0
"""Seconds between two attempts while the source, the target or the work folder cannot be used."""
_PROOF_SECONDS: Final = 10.0
"""While the source writes nothing, a window without transactions records this often that nothing is missing."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When ``follow`` looks for new transactions, and when it ends."""

    pause: float
    """Seconds between the end of a window and the next look at the source."""
    seconds: int | None = None
    """It ends with the first window that is finished so many seconds after its start; None: only a signal ends it."""


def follow(call: Call, pace: Pace, console: Terminal) -> str:
    """Apply windows until SIGINT or SIGTERM, or until the time is up. Returns how many there were.

    After an error that another try may not meet, and after the end of a lane's process, it tries again, with growing
    pauses. While the channel is stopped, it waits for `binlane resume`. All other errors end it.
    """
    with _ended_by_signals() as ended, LaneProcesses() as lanes:
        following = _Following(call, pace, console, lanes)
        began = time.monotonic()
        while not ended.is_set() and (pace.seconds is None or time.monotonic() - began < pace.seconds):
            ended.wait(following.step())
    return f"channel {call.channel}: {plural(following.windows, 'window')} applied, the last one is finished"


class _Following:
    def __init__(self, call: Call, pace: Pace, console: Terminal, lanes: LaneProcesses) -> None:
        self._call, self._pace, self._console, self._lanes = call, pace, console, lanes
        self.windows = 0
        self._failures = 0
        self._said = ""
        self._idle: tuple[LogState, float] | None = None
        """The source's state before the last empty window, and when that was."""

    def step(self) -> float:
        """One window, or none; the seconds to wait before the next. Raises the errors that end ``follow``."""
        try:
            self._window()
        except StopRequestedError as exc:
            self._say_once(f"{exc}; waiting for `binlane resume {self._call.channel}`")
            return max(self._pace.pause, _PROOF_SECONDS / 2)
        except BinlaneError as exc:
            if not exc.retryable:
                raise
            self._failures += 1
            self._idle = None
            pause = min(self._pace.pause * 2.0**self._failures, _LONGEST_PAUSE)
            self._say_once(f"{type(exc).__name__}: {exc}; trying again")
            return pause
        self._failures, self._said = 0, ""
        return self._pace.pause

    def _window(self) -> None:
        # read for each window: a changed channel file applies from the next one on, as in Airflow
        channel, endpoints = load(self._call.channel, self._call.folder)
        state = steps.source_of(channel, endpoints).state()
        began = time.monotonic()
        if self._idle is not None and self._idle[0] == _timeless(state) and began - self._idle[1] < _PROOF_SECONDS:
            return
        with Path(os.devnull).open("w") as nowhere:
            quiet = Terminal(file=nowhere)
            done = apply_window(channel, endpoints, self._call.request(), self._call.engine, quiet, {}, self._lanes)
        if "note" not in done:
            self._idle = (_timeless(state), began)
            return
        self._idle = None
        if done.get("is_open"):
            self._say_once(done["note"])
        else:
            self.windows += 1
            seconds, behind = time.monotonic() - began, max(0.0, time.time() - done["time"])
            self._say(
                f"{plural(done['transactions'], 'transaction')}, {plural(done['rows'], 'row change')} in "
                f"{seconds:.1f} s; seqno {done['seqno']:,}, committed on the source {behind:.0f} s ago"
            )
        try:
            announce(channel, done)
        except ConfigError as exc:
            # the watermark has moved, and the next window announces its own
            self._say(f"ConfigError: {exc}")

    def _say_once(self, text: str) -> None:
        """Not again while nothing else has happened."""
        if text != self._said:
            self._say(text)
        self._said = text

    def _say(self, text: str) -> None:
        self._console.print(f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M:%S}Z {text}")


def _timeless(state: LogState) -> LogState:
    """The same for as long as the source writes nothing."""
    return replace(state, clock=0)


@contextmanager
def _ended_by_signals() -> Iterator[threading.Event]:
    """An event that the first SIGINT or SIGTERM sets; a second one interrupts at once."""
    ended = threading.Event()

    def end(number: int, _frame: object) -> None:
        if ended.is_set():
            raise KeyboardInterrupt
        ended.set()

    before = {number: signal.signal(number, end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ended
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
