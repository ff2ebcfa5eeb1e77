"""Shortens a failing history: leaves out sessions, parts and single statements as long as it fails in the same way."""

from __future__ import annotations

import time
from collections.abc import Callable

from lab.histories.history import History


def shrunk(history: History, fails: Callable[[History], bool], seconds: float) -> History:
    """The shortest history found within ``seconds`` for which ``fails`` is true; ``history`` itself fails."""
    end = time.monotonic() + seconds
    history = _begun(history, fails, end)
    size = max(1, len(history.events) // 2)
    while time.monotonic() < end:
        at = len(history.events)
        without_sessions = sorted({event.session for event in history.events}) if size > 1 else []
        for session in without_sessions:
            candidate = history.with_events(event for event in history.events if event.session != session)
            if time.monotonic() < end and candidate.events and fails(candidate):
                history = candidate
        while at > 0 and time.monotonic() < end:
            at = max(0, min(at, len(history.events)) - size)
            candidate = history.with_events([*history.events[:at], *history.events[at + size :]])
            if candidate.events and fails(candidate):
                history = candidate
        if size == 1 and len(history.events) < 40:
            break
        size = max(1, size // 2)
    return history


def _begun(history: History, fails: Callable[[History], bool], end: float) -> History:
    """The shortest failing prefix of a history, by bisection."""
    low, high = 0, len(history.events)
    while low < high and time.monotonic() < end:
        middle = (low + high) // 2
        if fails(history.with_events(history.events[:middle])):
            high = middle
        else:
            low = middle + 1
    return history.with_events(history.events[:high])
