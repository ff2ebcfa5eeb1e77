"""``binlane check``: a channel's health as a monitoring plugin gives it, in one line and an exit code.

The line and its performance data follow the guidelines of the Monitoring Plugins project. Whatever goes wrong is
UNKNOWN, because a plugin that ends by itself must not look like a channel in good health.
"""

from __future__ import annotations

from pathlib import Path

from binlane.config import find_channel, load_channel
from binlane.connections import Resolver, environment_resolver
from binlane.health.channel_facts import Facts, Limits
from binlane.health.durations import seconds_of
from binlane.health.health import Health, Severity, unknown
from binlane.health.look import look_at
from binlane.safe_text import one_line


def check(
    name: str, folder: Path, max_lag: str | None, max_unverified: str | None, resolve: Resolver | None = None
) -> tuple[str, Severity]:
    """The line, and the severity, whose value is the exit code. ``max_lag`` and ``max_unverified``: durations such as
    2h and 7d, instead of the channel's ``alert.max_age`` and ``alert.max_unverified``; 0: no limit."""
    limits = Limits(0, 0)
    try:
        channel = load_channel(find_channel(name, folder))
        own = Limits.of(channel)
        limits = Limits(
            own.max_age if max_lag is None else seconds_of("--max-lag", max_lag),
            own.max_unverified if max_unverified is None else seconds_of("--max-unverified", max_unverified),
            own.max_full_age,
            own.max_pending,
            own.max_drill_age,
        )
        health = look_at(channel, environment_resolver() if resolve is None else resolve, limits=limits).health
    except Exception as exc:
        health = unknown(name, error=exc)
    return line_of(health, limits), health.severity


def wrong_arguments(message: str) -> str:
    """The line for a command that cannot be understood."""
    return one_line(f"BINLANE UNKNOWN: {message} `binlane check --help` shows the arguments").replace("|", "/")


def line_of(health: Health, limits: Limits) -> str:
    """Status, channel, what was found, and the performance data behind the only ``|``."""
    text = one_line(f"BINLANE {health.severity.name}: {health.channel}: {health.summary}").replace("|", "/")
    return text if health.facts is None else f"{text} | {_performance(health.facts, limits)}"


def _performance(facts: Facts, limits: Limits) -> str:
    """``label=value[unit];warning;critical;minimum``, a limit that is exceeded by greater values."""
    age, unverified = (f"{limit:.0f}" if limit else "" for limit in (limits.max_age, limits.max_unverified))
    values = [f"lag={facts.age:.0f}s;;{age};0"]
    if facts.is_comparable:
        values.append(f"unverified={facts.unverified:.0f}s;{unverified};;0")
    if facts.is_drilled:
        limit = f"{limits.max_drill_age:.0f}" if limits.max_drill_age else ""
        values.append(f"drill={facts.drill_age:.0f}s;{limit};;0")
    return " ".join((*values, f"drifted={facts.drifted};;0;0", f"pending={facts.pending};;;0", *_seqnos(facts)))


def _seqnos(facts: Facts) -> tuple[str, ...]:
    return (f"seqno={facts.seqno}", *((f"verified={facts.verified}",) if facts.is_comparable else ()))
