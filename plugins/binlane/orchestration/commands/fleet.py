"""Several channels at once: chosen by tag, and the state of all of them, the most serious first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from binlane.config import DeclaredChannel, declared_channels, find_channel, load_channel
from binlane.connections import Resolver, environment_resolver
from binlane.errors import ConfigError
from binlane.health.durations import span
from binlane.health.health import Health, State
from binlane.health.look import Look, look_at_all
from binlane.model import plural
from binlane.orchestration.commands.status import health_object, state_object
from binlane.orchestration.terminal import Grid, View

_ORDER = {state: number for number, state in enumerate(State)}


def chosen(channel: str | None, tag: str | None, folder: Path) -> tuple[DeclaredChannel, ...]:
    """The channels that a command was asked for: one by name, or all with a tag.

    Raises ConfigError for neither or both, a name that no channel has, and a tag that no channel has.
    """
    if (channel is None) == (tag is None):
        raise ConfigError(f"expected a channel or --tag, got {'neither' if channel is None else 'both'}")
    return (
        (find_channel(channel, folder),) if channel is not None else _with_tag(tag, folder, declared_channels(folder))
    )


def _with_tag(tag: str | None, folder: Path, declared: Sequence[DeclaredChannel]) -> tuple[DeclaredChannel, ...]:
    """The channels with a tag. The tags of a channel whose file is wrong are not known: it is among them, and the
    command will name its error. Raises ConfigError for a tag that no channel has."""
    tags = {each: _tags(each) for each in declared}
    if any(tag in its for its in tags.values() if its is not None):
        return tuple(each for each, its in tags.items() if its is None or tag in its)
    known = ", ".join(sorted({each for its in tags.values() for each in its or ()}))
    raise ConfigError(f"{folder}: --tag: expected the tag of a channel, got {tag!r}; known: {known or 'none'}")


def _tags(declared: DeclaredChannel) -> tuple[str, ...] | None:
    try:
        return load_channel(declared).tags
    except ConfigError:
        return None


def status_all(folder: Path, tag: str | None, *, as_json: bool, resolve: Resolver | None = None) -> View:
    """Every channel, or those with a tag, the most serious health first. A channel whose target cannot be read, or
    whose file is wrong, is in the list with the reason, whatever its tags are. Raises ConfigError for a tag that no
    channel has."""
    declared = declared_channels(folder)
    asked = declared if tag is None else _with_tag(tag, folder, declared)
    shown = look_at_all(asked, environment_resolver() if resolve is None else resolve)
    shown.sort(key=lambda look: (-look.health.severity, _ORDER[look.health.state], look.health.channel))
    return json.dumps([_object(look) for look in shown], indent=1) if as_json else _table(shown, declared, tag)


def _object(look: Look) -> dict[str, object]:
    """As ``binlane status --json`` of the channel, with its tags."""
    named = {**health_object(look.health), "tags": [] if look.channel is None else list(look.channel.tags)}
    return named if look.snapshot is None else {**named, **state_object(look.snapshot)}


def _table(looks: Sequence[Look], declared: Sequence[DeclaredChannel], tag: str | None) -> Grid:
    counts: dict[str, int] = {}
    for look in looks:
        counts[look.health.state] = counts.get(look.health.state, 0) + 1
    told = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    of = f" of {len(declared):,}, tag {tag}" if tag is not None else ""
    grid = Grid(f"{plural(len(looks), 'channel')}{of}: {told or 'none'}")
    grid.columns("channel", "state", no_wrap=True).columns("behind", "unverified", "watermark", justify="right")
    grid.columns("what was found")
    for look in looks:
        facts = look.health.facts
        age, unverified = ("-", "-") if facts is None else (span(facts.age), span(facts.unverified))
        seqno = "-" if facts is None else f"{facts.seqno:,}"
        if facts is not None and not facts.is_comparable:
            unverified = "-"
        grid.row(look.health.channel, look.health.state, age, unverified, seqno, _found(look.health))
    return grid


def _found(health: Health) -> str:
    """What was found beside the main state's name; nothing where all is applied."""
    told = [each for each in health.findings if each.state is not State.IDLE]
    lines = [(each.state, (each.text.splitlines() or [""])[0]) for each in told]
    return "; ".join(text if state is health.state else f"{state}: {text}" for state, text in lines)
