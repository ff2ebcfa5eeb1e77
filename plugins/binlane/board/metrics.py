"""The health of channels for Prometheus, in its text format: one answer for all channels that the user may read.

A channel whose facts cannot be read has ``binlane_up`` 0 and no figures: an old value would look like health.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Gauge, generate_latest

from binlane.health.channel_facts import Facts
from binlane.health.health import Health, State

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
FIGURES: Final[Mapping[str, tuple[str, Callable[[Facts], float | None]]]] = {
    "lag_seconds": (
        "Seconds since the source committed the last applied transaction, or since the end of a later empty window",
        lambda facts: facts.age,
    ),
    "unverified_seconds": (
        "Seconds for which an applied change has not been verified; 0 if all have been",
        lambda facts: facts.unverified if facts.is_comparable else None,
    ),
    "full_verification_age_seconds": (
        "Seconds since all rows were compared; before the first time since the channel was created",
        lambda facts: facts.full_age if facts.is_comparable else None,
    ),
    "verified_seqno": (
        "The seqno through which every change was compared by verifications",
        lambda facts: facts.verified if facts.is_comparable else None,
    ),
    "drill_age_seconds": (
        "Seconds since a drill found restores equal to the live copy; before the first since the channel was created",
        lambda facts: facts.drill_age if facts.is_drilled else None,
    ),
    "drifted": ("Rows and definitions known to differ", lambda facts: facts.drifted),
    "pending": ("Rows that differed and that the source has changed since", lambda facts: facts.pending),
    "watermark_seqno": ("The watermark", lambda facts: facts.seqno),
    "open_window": ("1 while a window is open", lambda facts: facts.window is not None),
}
"""By name: help, and the value; None: the channel has none."""


def exposition(channels: Iterable[Health]) -> bytes:
    """All metrics of the channels."""
    registry = CollectorRegistry()
    up = _gauge(registry, "up", "1 if the channel's facts could be read")
    severity = _gauge(registry, "health_severity", "0 ok, 1 warning, 2 critical, 3 unknown")
    state = _gauge(registry, "health_state", "1 for each state that holds of the channel, 0 for all others", "state")
    figures = {name: _gauge(registry, name, told) for name, (told, _) in FIGURES.items()}
    for health in channels:
        up.labels(health.channel).set(health.facts is not None)
        severity.labels(health.channel).set(health.severity)
        held = {finding.state for finding in health.findings}
        for each in State:
            state.labels(health.channel, each.value).set(each in held)
        for name, (_, value_of) in FIGURES.items():
            value = None if health.facts is None else value_of(health.facts)
            if value is not None:
                figures[name].labels(health.channel).set(value)
    return bytes(generate_latest(registry))


def _gauge(registry: CollectorRegistry, name: str, told: str, *labels: str) -> Gauge:
    return Gauge(f"binlane_{name}", told, ("channel", *labels), registry=registry)
