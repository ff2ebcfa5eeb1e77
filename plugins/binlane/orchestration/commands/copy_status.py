"""How far a first copy has come, for ``binlane status``."""

from __future__ import annotations

import json

from binlane.health.first_copy import FirstCopy, standing_text
from binlane.model import plural
from binlane.orchestration.terminal import Grid, View


def copy_view(name: str, found: FirstCopy) -> View:
    """An unfinished first copy."""
    copy, connection, standing = found.record, found.connection, found.standing
    head = Grid.of_facts(f"channel {name}: first copy")
    if connection is None:
        head.row(
            "attempt", f"{copy.attempts:,}, interrupted; `binlane bootstrap {name}` with the same options continues"
        )
    else:
        head.row("attempt", f"{copy.attempts:,}, running: connection {connection} of the target")
    head.row("snapshot", f"{copy.snapshot.source}")
    head.row("copied", standing_text(standing))
    head.row("rows", f"{standing.rows:,}")
    for number, (obj, each) in enumerate(copy.open_tables):
        label = "" if number else "open tables"
        head.row(label, f"{obj.database}.{obj.name}: {each.rows:,} of about {plural(each.size.rows, 'row')}")
    return [head]


def copy_json(name: str, found: FirstCopy) -> View:
    """The same as one JSON object."""
    copy, running, standing = found.record, found.connection is not None, found.standing
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
