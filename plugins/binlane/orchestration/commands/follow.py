"""``binlane follow``: one window behind another, until a signal or a time ends it."""

from __future__ import annotations

import datetime as dt
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from binlane.model import plural
from binlane.orchestration.announcing.announce import announce, announce_missed
from binlane.orchestration.commands.channel import load
from binlane.orchestration.commands.run import Call
from binlane.orchestration.commands.windows_in_turn import FollowRequest, Pace, windows_in_turn
from binlane.orchestration.terminal import Terminal


def follow(call: Call, pace: Pace, console: Terminal) -> str:
    """Apply windows until SIGINT or SIGTERM, or until the time is up. Returns how many there were.

    Raises the errors of ``windows_in_turn``.
    """

    def say(text: str) -> None:
        console.print(f"{dt.datetime.now(dt.UTC):%Y-%m-%d %H:%M:%S}Z {text}")

    following = FollowRequest(
        load=partial(load, call.channel, call.folder),
        request=call.request,
        engine=call.engine,
        say=say,
        applied=announce,
        missed=announce_missed,
        resume=f"`binlane resume {call.channel}`",
    )
    with _ended_by_signals() as ended:
        found = windows_in_turn(following, pace, ended)
    return f"channel {call.channel}: {plural(found.windows, 'window')} applied, the last one is finished"


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
