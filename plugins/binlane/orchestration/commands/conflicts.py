"""``binlane conflicts``: the drifted rows that windows have corrected (``apply.on_conflict = "overwrite"``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from binlane.apply.target_state import target_state
from binlane.orchestration.commands.channel import load
from binlane.orchestration.terminal import Grid, View
from binlane.state.records.conflicts import ConflictRow, Values, read_conflicts

_SHOWN: Final = 1000
"""Conflicts in the table; --json has all."""


def view(name: str, folder: Path) -> View:
    """The newest conflicts of a channel."""
    found = _read(name, folder, _SHOWN)
    if not found:
        return f"channel {name}: no row had to be corrected"
    caption = f"the newest {_SHOWN:,}; --json lists all" if len(found) == _SHOWN else ""
    grid = Grid(f"corrected rows of {name}, newest first", caption=caption)
    grid.columns("seqno", justify="right", no_wrap=True).columns("change", "met", no_wrap=True)
    grid.columns("table", "key", "the target had", "at (UTC)")
    for each in found:
        one = each.conflict
        row = (f"{one.seqno:,}", one.change, one.kind.value, str(one.table), _text(one.key), _text(one.found))
        grid.row(*row, each.at[:19])
    return grid


def as_json(name: str, folder: Path) -> Iterator[str]:
    """All conflicts of a channel, each a JSON object. Values: text as the target prints it, bytes as 0x..., or null."""
    for each in _read(name, folder, None):
        one = each.conflict
        yield json.dumps(
            {
                "window": each.window_id,
                "lane": each.lane,
                "seqno": one.seqno,
                "database": one.table.database,
                "table": one.table.table,
                "change": one.change,
                "met": one.kind.value,
                "key": dict(one.key),
                "found": None if one.found is None else dict(one.found),
                "at": each.at,
            }
        )


def _read(name: str, folder: Path, limit: int | None) -> tuple[ConflictRow, ...]:
    _, endpoints = load(name, folder)
    with target_state(endpoints.target) as engine, engine.connect() as connection:
        return read_conflicts(connection, name, limit=limit)


def _text(values: Values | None) -> str:
    if values is None:
        return "-"
    return ", ".join(f"{name}={'NULL' if value is None else value[:100]}" for name, value in values.items())
