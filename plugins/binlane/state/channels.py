"""Channels: a source, a target, and the watermark, which says how far the target can be trusted."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, Row, Table, delete, insert, select

from binlane.errors import PositionError, SourceIdentityError
from binlane.model import LogPosition
from binlane.state.tables import NOW, channels, metadata


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far the target can be trusted: everything up to ``seqno`` is there, nothing of it is missing."""

    seqno: int
    source: LogPosition
    """Where the next transaction begins."""
    gtid_set: str
    source_time: float
    fingerprint: str
    """Of the last transaction; tells a rewritten log from the one that was read."""


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel's row."""

    name: str
    uuid: str
    source_identity: str
    watermark: Watermark
    windows: int
    """How many windows it has had."""
    stopped: str | None = None
    """Who has asked it to stop, when and where; None: it may run."""


def create_channel(
    engine: Engine, name: str, source_identity: str, start: Watermark, keep: Collection[Table] = ()
) -> Channel:
    """Create the channel's row; the one that is there is returned if it is of the same source, whatever its watermark.

    A new channel begins with nothing of an earlier one of its name: seqnos are counted anew, so an order to skip one
    or an open XA transaction of old would be taken for its own. What is in the tables ``keep`` is its own.

    Raises SourceIdentityError if the channel exists and belongs to another source.
    """
    with engine.begin() as connection:
        row = connection.execute(select(channels).where(channels.c.channel == name).with_for_update()).one_or_none()
        if row is None:
            for table in metadata.sorted_tables:
                if table not in keep and "channel" in table.c:
                    connection.execute(delete(table).where(table.c.channel == name))
            connection.execute(
                insert(channels).values(
                    channel=name,
                    uuid=str(uuid.uuid4()),
                    source_identity=source_identity,
                    **watermark_values(start),
                    windows=0,
                    created_at=NOW,
                    updated_at=NOW,
                )
            )
        elif row.source_identity != source_identity:
            raise SourceIdentityError(
                f"channel {name}: belongs to source {row.source_identity}, got {source_identity}; a new source "
                "needs a new channel"
            )
        return read_channel(connection, name)


def read_channel(connection: Connection, name: str, *, for_update: bool = False) -> Channel:
    """Raises PositionError if there is no such channel on this target."""
    query = select(channels).where(channels.c.channel == name)
    row = connection.execute(query.with_for_update() if for_update else query).one_or_none()
    if row is None:
        raise PositionError(f"channel {name}: unknown on this target; run `binlane init` first")
    return Channel(row.channel, row.uuid, row.source_identity, watermark_of(row), row.windows, row.stopped)


def watermark_of(row: Row[Any]) -> Watermark:
    """Of a channel's row."""
    return Watermark(
        seqno=row.watermark_seqno,
        source=LogPosition(row.source_file, row.source_offset),
        gtid_set=row.gtid_set,
        source_time=row.source_time,
        fingerprint=row.fingerprint,
    )


def watermark_values(mark: Watermark) -> dict[str, object]:
    """The columns of a channel's row."""
    return {
        "watermark_seqno": mark.seqno,
        "source_file": mark.source.file,
        "source_offset": mark.source.offset,
        "gtid_set": mark.gtid_set,
        "source_time": mark.source_time,
        "fingerprint": mark.fingerprint,
    }
