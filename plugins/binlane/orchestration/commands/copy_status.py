"""How far a first copy has come: for ``binlane status``, a terminal and a task's log."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from binlane.bootstrap.progress import Standing, standing_of
from binlane.health.durations import span
from binlane.model import plural, size_text
from binlane.orchestration.terminal import Grid, View
from binlane.state.records.bootstraps import DONE, TABLE, Bootstrap

_SHOWN: Final = 10
"""Tables that are named."""


def standing_text(standing: Standing) -> str:
    """How far the copy is: tables, bytes, rate, time left."""
    left = standing.seconds_left
    parts = [
        f"{standing.finished:,} of {plural(standing.tables, 'table')}",
        f"{size_text(standing.bytes)} of {size_text(standing.all_bytes)}",
        f"{size_text(standing.bytes_per_second)}/s" if standing.bytes_per_second else "",
        "" if left is None else f"{span(left)} left",
        standing.waits,
    ]
    return ", ".join(part for part in parts if part)


def copy_view(name: str, copy: Bootstrap, connection: int | None) -> View:
    """An unfinished first copy. ``connection``: the connection that holds its lease; None: no attempt is running."""
    standing = standing_of(copy)
    head = Grid.of_facts(f"channel {name}: first copy")
    if connection is None:
        head.row(
            "attempt", f"{copy.attempts:,}, interrupted; `binlane bootstrap {name}` with the same options continues"
        )
    else:
        head.row("attempt", f"{copy.attempts:,}, running: connection {connection} of the target")
    head.row("snapshot", f"{copy.snapshot.source}")
    head.row("copied", standing_text(standing if connection is not None else _at_rest(standing)))
    head.row("rows", f"{standing.rows:,}")
    open_tables = sorted(
        ((obj, each) for obj, each in copy.made.items() if obj.kind == TABLE and each.state != DONE and each.rows),
        key=lambda found: -found[1].size.bytes,
    )
    for number, (obj, each) in enumerate(open_tables[:_SHOWN]):
        label = "" if number else "open tables"
        head.row(label, f"{obj.database}.{obj.name}: {each.rows:,} of about {each.size.rows:,} rows")
    return [head]


def _at_rest(standing: Standing) -> Standing:
    """Without a rate, which an interrupted attempt does not have."""
    return replace(standing, bytes_per_second=0.0)


def copy_json(name: str, copy: Bootstrap, connection: int | None) -> View:
    """The same as one JSON object."""
    standing = standing_of(copy)
    running = connection is not None
    return json.dumps(
        {
            "channel": name,
            "first_copy": {
                "attempt": copy.attempts,
                "running": running,
                "file": copy.snapshot.source.file,
                "offset": copy.snapshot.source.offset,
                "tables": standing.tables,
                "finished_tables": standing.finished,
                "rows": standing.rows,
                "bytes": standing.bytes,
                "all_bytes": standing.all_bytes,
                "bytes_per_second": standing.bytes_per_second if running else None,
                "seconds_left": standing.seconds_left if running else None,
            },
        },
        indent=1,
    )
