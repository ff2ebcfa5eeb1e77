"""``binlane audit``: the commands that have changed data or decisions on a target."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from binlane.apply.target_state import target_state
from binlane.orchestration.commands.channel import load
from binlane.orchestration.terminal import Grid, View
from binlane.state.records.audit import AuditEntry, read_entries

_SHOWN: Final = 100
"""Rows in the table; --json has all."""


def view(name: str, folder: Path, *, of_all: bool) -> View:
    """The newest rows of a channel. ``of_all``: of everything that its target has."""
    found = _read(name, folder, _SHOWN, of_all=of_all)
    if not found:
        return f"channel {name}: no command has changed anything"
    caption = f"the newest {_SHOWN:,}; --json lists all" if len(found) == _SHOWN else ""
    what = "all channels and restores of its target" if of_all else name
    grid = Grid(f"audit of {what}, newest first", caption=caption).columns("at (UTC)", no_wrap=True)
    if of_all:
        grid.columns("channel")
    grid.columns("command", "arguments", "by, account", "result", "digest")
    for each in found:
        given = ", ".join(f"{name}={value}" for name, value in each.arguments)
        channel = (each.channel,) if of_all else ()
        result = f"{each.result}: {each.error}" if each.error else each.result
        author = f"{each.by}, {each.account}"
        grid.row(each.at[:19], *channel, each.command, given or "-", author, result, each.digest[:8] or "-")
    return grid


def as_json(name: str, folder: Path, *, of_all: bool) -> Iterator[str]:
    """All rows, each a JSON object. Times: UTC, by the target's clock."""
    for each in _read(name, folder, None, of_all=of_all):
        yield json.dumps(
            {
                "number": each.number,
                "channel": each.channel,
                "at": each.at,
                "ended_at": each.ended_at,
                "by": each.by,
                "account": each.account,
                "command": each.command,
                "arguments": dict(each.arguments),
                "digest": each.digest or None,
                "result": each.result,
                "error": each.error or None,
            }
        )


def _read(name: str, folder: Path, limit: int | None, *, of_all: bool) -> tuple[AuditEntry, ...]:
    _, endpoints = load(name, folder)
    with target_state(endpoints.target) as engine, engine.connect() as connection:
        return read_entries(connection, None if of_all else name, limit=limit)
