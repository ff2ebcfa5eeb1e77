"""One window behind another, each with its own plan, precheck and watermark: ``binlane follow``, continuous DAGs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from binlane.activity import resting
from binlane.errors import BinlaneError, ConfigError, StopRequestedError
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.orchestration import steps
from binlane.orchestration.commands.run import apply_window
from binlane.orchestration.extraction.window_reading import source_of
from binlane.orchestration.lane_processes import LaneProcesses
from binlane.orchestration.terminal import Terminal
from binlane.source.log_watch import LogWatch

if TYPE_CHECKING:
    from binlane.config import ChannelConfig
    from binlane.connections import Endpoints
    from binlane.orchestration.request import WindowRequest
    from binlane.source.protocol import EventSource

LONGEST_PAUSE: Final = 60.0
"""Seconds between two attempts while the source, the target or the work folder cannot be used."""
_PROOF_SECONDS: Final = 10.0
"""While the source writes nothing, a window without transactions records this often that nothing is missing."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When windows are taken, and when no more are."""

    pause: float
    """Seconds between the end of a window and the next look at the source."""
    seconds: int | None = None
    """No window begins so many seconds after the first one; None: windows are taken until the event is set."""


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """What is followed, and who is told."""

    load: Callable[[], tuple[ChannelConfig, Endpoints]]
    """Read for each window: a changed channel file applies from the next one on, as in Airflow."""
    request: Callable[[], WindowRequest]
    engine: str
    say: Callable[[str], None]
    applied: Callable[[ChannelConfig, steps.Answer], None]
    """Called with the answer of ``steps.advance`` for each watermark. Raises ConfigError if somebody was not told."""
    missed: Callable[[ChannelConfig, Endpoints], None]
    """Called once, if the first window has nothing to apply: an earlier run may have ended before it could tell. Raises
    ConfigError if somebody was not told."""
    resume: str
    """How a person resumes the channel, for a message."""


@dataclass(slots=True)
class FollowResult:
    """What came of it."""

    windows: int = 0
    """Windows that were applied to their ends."""
    last: steps.Answer | None = None
    """The answer of the last one."""
    is_stopped: bool = False
    """The channel is stopped."""
    error: BinlaneError | None = None
    """What the last attempt ended with; None: it took a window, or there was nothing to take."""


def windows_in_turn(following: FollowRequest, pace: Pace, ended: threading.Event) -> FollowResult:
    """Apply windows until ``ended`` is set, or until the time is up.

    After an error that another try may not meet, and after the end of a lane's process, it tries again, with growing
    pauses. While the channel is stopped, it waits until somebody resumes it. Raises all other errors, and at the end
    the one that the last attempt has ended with: nothing has gone well since.
    """
    with LaneProcesses() as lanes:
        loop = _Loop(following, pace, lanes)
        began = time.monotonic()
        try:
            while not ended.is_set() and (pace.seconds is None or time.monotonic() - began < pace.seconds):
                pause = loop.step()
                with resting():
                    ended.wait(pause)
        finally:
            loop.forget()
    if loop.found.error is not None:
        raise loop.found.error
    return loop.found


class _Loop:
    def __init__(self, following: FollowRequest, pace: Pace, lanes: LaneProcesses) -> None:
        self._following, self._pace, self._lanes = following, pace, lanes
        self.found = FollowResult()
        self._retry = pace.pause
        """Seconds of the last pause."""
        self._said = ""
        self._has_told = False
        self._watch: LogWatch | None = None
        """Of the source since before the last empty window."""
        self._watched_since = 0.0

    def forget(self) -> None:
        """Look at the whole source again, at the next window or never."""
        if self._watch is not None:
            self._watch.close()
        self._watch = None

    def step(self) -> float:
        """One window, or none; the seconds to wait before the next. Raises the errors that end the loop."""
        try:
            self._window()
        except StopRequestedError as exc:
            self.found.is_stopped, self.found.error = True, None
            self._say_once(f"{exc}; waiting for {self._following.resume}")
            return max(self._pace.pause, _PROOF_SECONDS / 2)
        except BinlaneError as exc:
            if not exc.retryable:
                raise
            self.found.error = exc
            self.forget()
            self._retry = min(2 * self._retry, LONGEST_PAUSE)
            self._say_once(f"{type(exc).__name__}: {exc}; trying again")
            return self._retry
        self._retry, self._said = self._pace.pause, ""
        self.found.is_stopped, self.found.error = False, None
        return self._pace.pause

    def _window(self) -> None:
        channel, endpoints = self._following.load()
        source, began = source_of(channel, endpoints), time.monotonic()
        if self._is_idle(source, began):
            return
        state = source.state()
        with Path(os.devnull).open("w") as nowhere:
            quiet, request = Terminal(file=nowhere), self._following.request()
            done = apply_window(channel, endpoints, request, self._following.engine, quiet, {}, self._lanes)
        if "note" not in done:
            self._tell(lambda: self._following.missed(channel, endpoints), again=False)
            if self._watch is None or self._watch.source != source:
                self.forget()
                self._watch = LogWatch(source, state)
            self._watch.state, self._watched_since = state, began
            return
        self.forget()
        if done.get("is_open"):
            self._say_once(done["note"])
        else:
            self.found.windows += 1
            self.found.last = done
            seconds, behind = time.monotonic() - began, max(0.0, time.time() - done["time"])
            self._following.say(
                f"{plural(done['transactions'], 'transaction')}, {plural(done['rows'], 'row change')} in "
                f"{seconds:.1f} s; seqno {done['seqno']:,}, committed on the source {behind:.0f} s ago"
            )
        self._tell(lambda: self._following.applied(channel, done), again=True)

    def _tell(self, somebody: Callable[[], None], *, again: bool) -> None:
        """``again``: also if somebody was told before."""
        if self._has_told and not again:
            return
        self._has_told = True
        try:
            somebody()
        except ConfigError as exc:
            # the watermark has moved, and the next window announces its own
            self._following.say(f"ConfigError: {exc}")

    def _is_idle(self, source: EventSource, now: float) -> bool:
        """Whether the last window had no transactions, and the next one would have none and prove nothing new."""
        watch = self._watch
        if watch is None or watch.source != source or now - self._watched_since >= _PROOF_SECONDS:
            return False
        return not watch.has_grown()

    def _say_once(self, text: str) -> None:
        """Not again while nothing else has happened."""
        if text != self._said:
            self._following.say(text)
        self._said = text
