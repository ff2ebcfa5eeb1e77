"""First copies that are not finished: their snapshot, and everything that they make on the target."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from binlane.model import LogPosition
from binlane.state.channels import Watermark
from binlane.state.tables import NOW, bootstrap_objects, bootstraps

PLANNED, DONE = "planned", "done"
TABLE, VIEW = "table", "view"


class Thing(NamedTuple):
    """A table, a view, a routine, a trigger or an event of the target."""

    kind: str
    database: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.database}.{self.name}"


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """An unfinished copy."""

    databases: tuple[str, ...]
    source_identity: str
    snapshot: Watermark
    attempts: int
    made: dict[Thing, str]
    """What it may have made, with its state."""
    replaced_for: str
    """The order that has dropped what was there before; empty if nothing was."""

    @property
    def done(self) -> frozenset[Thing]:
        """Tables that hold every row of ``snapshot``."""
        return frozenset(thing for thing, state in self.made.items() if state == DONE)


def read_bootstrap(connection: Connection, channel: str) -> Bootstrap | None:
    """The channel's unfinished copy, if there is one."""
    row = connection.execute(select(bootstraps).where(bootstraps.c.channel == channel)).one_or_none()
    if row is None:
        return None
    things = connection.execute(select(bootstrap_objects).where(bootstrap_objects.c.channel == channel))
    return Bootstrap(
        tuple(json.loads(row.database_names)),
        row.source_identity,
        Watermark(0, LogPosition(row.source_file, row.source_offset), row.gtid_set, row.source_time, row.fingerprint),
        row.attempts,
        {Thing(one.kind, one.object_schema, one.object_name): one.state for one in things},
        row.replaced_for,
    )


def save_snapshot(
    connection: Connection,
    channel: str,
    databases: Collection[str],
    identity: str,
    snapshot: Watermark,
    kept: Collection[Thing],
    replaced_for: str = "",
) -> int:
    """The copy goes on at this snapshot, at which only ``kept`` are done; the attempt's number. ``replaced_for``: of a
    first attempt; a later one keeps it."""
    before = read_bootstrap(connection, channel)
    values = {
        "database_names": json.dumps(sorted(databases)),
        "source_identity": identity,
        "source_file": snapshot.source.file,
        "source_offset": snapshot.source.offset,
        "gtid_set": snapshot.gtid_set,
        "source_time": snapshot.source_time,
        "fingerprint": snapshot.fingerprint,
        "attempts": 1 if before is None else before.attempts + 1,
        "updated_at": NOW,
    }
    if before is None:
        connection.execute(insert(bootstraps).values(channel=channel, replaced_for=replaced_for, **values))
        return 1
    connection.execute(update(bootstraps).where(bootstraps.c.channel == channel).values(**values))
    for thing in before.done - set(kept):
        set_state(connection, channel, thing, PLANNED, 0)
    return before.attempts + 1


def plan_things(connection: Connection, channel: str, things: Iterable[Thing], gone: Iterable[Thing]) -> None:
    """``gone`` are dropped, and ``things`` are about to be made."""
    for thing in gone:
        connection.execute(delete(bootstrap_objects).where(*_is(channel, thing)))
    rows = [
        {
            "channel": channel,
            "kind": thing.kind,
            "object_schema": thing.database,
            "object_name": thing.name,
            "state": PLANNED,
            "copied_rows": 0,
        }
        for thing in things
    ]
    if rows:
        connection.execute(insert(bootstrap_objects), rows)


def set_state(connection: Connection, channel: str, thing: Thing, state: str, rows: int) -> None:
    """Of something that is planned already."""
    connection.execute(update(bootstrap_objects).where(*_is(channel, thing)).values(state=state, copied_rows=rows))


def forget_bootstrap(connection: Connection, channel: str) -> None:
    """It is finished, or begun anew."""
    for table in (bootstrap_objects, bootstraps):
        connection.execute(delete(table).where(table.c.channel == channel))


def _is(channel: str, thing: Thing) -> tuple[ColumnElement[bool], ...]:
    c = bootstrap_objects.c
    return c.channel == channel, c.kind == thing.kind, c.object_schema == thing.database, c.object_name == thing.name
