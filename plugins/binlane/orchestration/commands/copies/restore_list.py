"""``binlane restore --list``: the restores of this machine, and how far each is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from binlane.apply.refusals import target_errors
from binlane.connections import Resolver
from binlane.errors import BinlaneError, ConfigError
from binlane.health.restores import RestoreStanding, restore_standing
from binlane.lazy_dataclass import dataclass
from binlane.model import plural
from binlane.orchestration.commands.channel import load
from binlane.orchestration.commands.copies.restore_plan import folder_of
from binlane.orchestration.commands.copies.restore_record import recorded
from binlane.orchestration.terminal import Grid, View
from binlane.safe_text import one_line
from binlane.servers.engines import engine_of
from binlane.state.records.restores import COMPLETE
from binlane.state.window_folders import WindowFolders


@dataclass(frozen=True, slots=True)
class _Listed:
    name: str
    standing: RestoreStanding | None
    problem: str = ""
    """Why its target could not be asked."""


def restores(channels: Path, *, as_json: bool, resolve: Resolver | None = None) -> View:
    """All restores that have a file, with their progress."""
    rows = [_listed(file.stem, channels, resolve) for file in sorted(folder_of(channels).glob("*.toml"))]
    if as_json:
        return json.dumps([_object(each) for each in rows], indent=1)
    grid = Grid(plural(len(rows), "restore")).columns("restore", "databases")
    grid.columns("stage", "progress", "reached", "end")
    for each in rows:
        standing = each.standing
        if standing is None:
            grid.row(each.name, each.problem, "not begun", "-", "-", "-")
            continue
        definition = standing.found.definition
        databases = ", ".join(f"{old} as {final}" for old, final in definition.databases)
        reached = "-" if standing.reached is None else str(standing.reached)
        grid.row(each.name, databases, standing.found.stage, one_line(_told(standing)), reached, str(definition.end))
    return grid


def _told(standing: RestoreStanding) -> str:
    """The progress, for people."""
    if standing.state == COMPLETE:
        return "-"
    more = standing.error if not standing.is_running else "" if standing.step is None else standing.step.told
    return f"{standing.state}: {more}" if more else standing.state


def _listed(name: str, channels: Path, resolve: Resolver | None) -> _Listed:
    try:
        folder = folder_of(channels)
        if not (folder / f"{name}.toml").exists():
            raise ConfigError(f"{folder}: expected the file of a restore {name}, found none; `binlane restore --list`")
        channel, endpoints = load(name, folder, resolve)
        with target_errors(str(endpoints.target)):
            found = recorded(endpoints.target, channel)
            if found is None:
                return _Listed(name, None)
            folders = WindowFolders(channel.work.uri, name)
            return _Listed(name, restore_standing(engine_of(endpoints.target), found, folders))
    except BinlaneError as exc:
        # one target that does not answer hides no other restore
        return _Listed(name, None, f"{type(exc).__name__}: {exc}")


def _object(each: _Listed) -> Mapping[str, Any]:
    standing = each.standing
    if standing is None:
        steps = [] if each.problem else [f"binlane restore --drop {each.name}"]
        return {"name": each.name, "stage": None, "problem": each.problem, "next_steps": steps}
    found, step = standing.found, standing.step
    to_do = "drop" if found.stage == COMPLETE else "continue"
    return {
        "name": each.name,
        "stage": found.stage,
        "databases": dict(found.definition.databases),
        "end": str(found.definition.end),
        "reached": None if standing.reached is None else str(standing.reached),
        "running": standing.is_running,
        "progress": None if step is None else step.text,
        "share": None if step is None else step.share,
        "seconds_left": None if step is None else step.left,
        "error": standing.error or None,
        "by": standing.by,
        "next_steps": [f"binlane restore --{to_do} {each.name}"],
    }
