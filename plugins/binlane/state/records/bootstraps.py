"""First copies: their snapshot, the objects that they create on the target, and their results."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Table, delete, insert, select, update

from binlane.model import LogPosition, SchemaObject
from binlane.state.channels import Watermark, is_named_in
from binlane.state.json_columns import text_of, value_of
from binlane.state.tables import NOW, bootstrap_objects, bootstraps

PLANNED, DONE = "planned", "done"
TABLE, VIEW = "table", "view"
TABLES: Final[tuple[Table, ...]] = (bootstrap_objects, bootstraps)
"""Tables whose rows stay when the channel's row is created: the copy's own record is updated after that."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A first copy that is complete, with or without the channel's row."""

    databases: tuple[str, ...]
    snapshot: Watermark
    outcome: dict[str, Any]
    """The result, as passed to ``save_outcome``."""
    finished_for: str | None
    """The order whose attempt reported the result (empty: the command line); None: not reported yet."""


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """An unfinished first copy."""

    databases: tuple[str, ...]
    source_identity: str
    snapshot: Watermark
    attempts: int
    made: dict[SchemaObject, str]
    """The objects that the copy may have created, with their states."""
    replaced_for: str
    """The order that dropped the databases before the copy; empty if they were not dropped."""

    @property
    def done(self) -> frozenset[SchemaObject]:
        """The tables with all rows of ``snapshot``."""
        return frozenset(obj for obj, state in self.made.items() if state == DONE)


def read_bootstrap(connection: Connection, channel: str) -> Bootstrap | None:
    """The channel's unfinished first copy; None if there is none."""
    row = connection.execute(select(bootstraps).where(bootstraps.c.channel == channel)).one_or_none()
    if row is None or row.finished_for is not None:
        return None
    objects = connection.execute(select(bootstrap_objects).where(bootstrap_objects.c.channel == channel))
    return Bootstrap(
        _databases(row),
        row.source_identity,
        _snapshot(row),
        row.attempts,
        {SchemaObject(one.kind, one.object_schema, one.object_name): one.state for one in objects},
        row.replaced_for,
    )


def has_bootstrap(connection: Connection, channel: str) -> bool:
    """Whether a first copy of the channel has begun on this target; it need not have the schema."""
    return is_named_in(bootstraps, connection, channel)


def _databases(row: Row[Any]) -> tuple[str, ...]:
    return value_of(tuple[str, ...], row.database_names, bootstraps.c.database_names)


def _snapshot(row: Row[Any]) -> Watermark:
    place = LogPosition(row.source_file, row.source_offset)
    return Watermark(0, place, row.gtid_set, row.source_time, row.fingerprint)


def read_copied(connection: Connection, channel: str) -> Copied | None:
    """The channel's complete first copy; None if there is none."""
    row = connection.execute(select(bootstraps).where(bootstraps.c.channel == channel)).one_or_none()
    if row is None or row.outcome is None:
        return None
    return Copied(_databases(row), _snapshot(row), json.loads(row.outcome), row.finished_for)


def save_snapshot(
    connection: Connection,
    channel: str,
    databases: Collection[str],
    identity: str,
    snapshot: Watermark,
    kept: Collection[SchemaObject],
    replaced_for: str = "",
) -> int:
    """Store a new snapshot, of which only the tables ``kept`` are done; the attempt's number. ``replaced_for``: stored
    by the first attempt only."""
    before = read_bootstrap(connection, channel)
    values = {
        "database_names": text_of(sorted(databases)),
        "source_identity": identity,
        "source_file": snapshot.source.file,
        "source_offset": snapshot.source.offset,
        "gtid_set": snapshot.gtid_set,
        "source_time": snapshot.source_time,
        "fingerprint": snapshot.fingerprint,
        "outcome": None,
        "attempts": 1 if before is None else before.attempts + 1,
        "updated_at": NOW,
    }
    if before is None:
        forget_bootstrap(connection, channel)  # the finished copy of an earlier channel of this name
        connection.execute(insert(bootstraps).values(channel=channel, replaced_for=replaced_for, **values))
        return 1
    connection.execute(update(bootstraps).where(bootstraps.c.channel == channel).values(**values))
    for obj in before.done - set(kept):
        set_state(connection, channel, obj, PLANNED, 0)
    return before.attempts + 1


def plan_objects(
    connection: Connection, channel: str, objects: Iterable[SchemaObject], gone: Iterable[SchemaObject]
) -> None:
    """Record that ``gone`` are dropped and ``objects`` are about to be created."""
    for obj in gone:
        connection.execute(delete(bootstrap_objects).where(*_is(channel, obj)))
    rows = [
        {
            "channel": channel,
            "kind": obj.kind,
            "object_schema": obj.database,
            "object_name": obj.name,
            "state": PLANNED,
            "copied_rows": 0,
        }
        for obj in objects
    ]
    if rows:
        connection.execute(insert(bootstrap_objects), rows)


def set_state(connection: Connection, channel: str, obj: SchemaObject, state: str, rows: int) -> None:
    """Update the state of an object that is recorded."""
    connection.execute(update(bootstrap_objects).where(*_is(channel, obj)).values(state=state, copied_rows=rows))


def save_outcome(connection: Connection, channel: str, outcome: Mapping[str, object]) -> None:
    """Record that only the channel's row is left to create. ``outcome``: JSON values."""
    ours = bootstraps.c.channel == channel
    connection.execute(update(bootstraps).where(ours).values(outcome=json.dumps(dict(outcome)), updated_at=NOW))


def finish_bootstrap(connection: Connection, channel: str, order: str) -> None:
    """Record that the channel's row exists and that ``order`` got the result."""
    connection.execute(delete(bootstrap_objects).where(bootstrap_objects.c.channel == channel))
    connection.execute(
        update(bootstraps).where(bootstraps.c.channel == channel).values(finished_for=order, updated_at=NOW)
    )


def forget_bootstrap(connection: Connection, channel: str) -> None:
    """Delete the record of a first copy."""
    for table in TABLES:
        connection.execute(delete(table).where(table.c.channel == channel))


def _is(channel: str, obj: SchemaObject) -> tuple[ColumnElement[bool], ...]:
    c = bootstrap_objects.c
    return (
        c.channel == channel,
        c.kind == obj.kind,
        c.object_schema == obj.database,
        c.object_name == obj.name,
    )
