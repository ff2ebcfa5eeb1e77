"""The audit: which command changed data or decisions on the target, when, by whom, and with which result.

A row is committed before the command's first write, and gets its result when the command ends. One that was killed
stays ``begun``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sqlalchemy import Connection, delete, func, insert, select, text, update

from binlane.lazy_dataclass import dataclass
from binlane.state.json_columns import text_of, value_of
from binlane.state.tables import NOW, UTC_NOW, audit

BEGUN: Final = "begun"
DONE: Final = "done"
FAILED: Final = "failed"
KEPT: Final = 10_000
"""Rows of each channel that are kept; with a newer one the oldest goes, if it is older than ``KEPT_DAYS``."""
KEPT_DAYS: Final = 400
"""Days for which a row is kept, however many others there are: nobody pushes out his own orders by cheap ones."""

_AUTHOR: Final = 255
"""Characters of an author that are recorded."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """A command's arguments, as names and values."""

    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A row; fields as in ``tables.audit``."""

    number: int
    channel: str
    at: str
    """UTC, by the target's clock, as ``ended_at``."""
    ended_at: str | None
    by: str
    account: str
    command: str
    arguments: tuple[tuple[str, str], ...]
    digest: str
    result: str
    error: str


def begin_entry(
    connection: Connection, channel: str, command: str, arguments: Mapping[str, str], *, by: str, digest: str = ""
) -> int:
    """Add a row; its number. Deletes the channel's rows before the newest ``KEPT``, up to the first one that is not
    older than ``KEPT_DAYS``."""
    values = Arguments(tuple(arguments.items()))
    added = connection.execute(
        insert(audit).values(
            channel=channel, at=NOW, by_whom=by[:_AUTHOR], account=func.current_user(),
            command=command, arguments=text_of(values), digest=digest, result=BEGUN, error="",
        )
    )  # fmt: skip
    [number] = added.inserted_primary_key or (0,)
    # by its own statement: a server deletes from no table that a subquery of the same statement reads
    oldest = select(audit.c.id).where(audit.c.channel == channel).order_by(audit.c.id.desc()).offset(KEPT - 1).limit(1)
    if (kept := connection.execute(oldest).scalar_one_or_none()) is not None:
        # the search ends at the first young row, and the deletion, by ids, meets no other rows than it deletes
        old = text(f"{UTC_NOW} - INTERVAL {KEPT_DAYS} DAY")
        young = select(audit.c.id).where(audit.c.channel == channel, audit.c.at >= old).order_by(audit.c.id).limit(1)
        first = connection.execute(young).scalar_one_or_none()
        last = kept if first is None else min(kept, first)
        connection.execute(delete(audit).where(audit.c.channel == channel, audit.c.id < last))
    return int(number)


def end_entry(connection: Connection, number: int, error: str = "") -> None:
    """Record the result of a command. ``error``: the kind of its error; empty: it is done."""
    result = FAILED if error else DONE
    connection.execute(update(audit).where(audit.c.id == number).values(ended_at=NOW, result=result, error=error))


def author_of(connection: Connection, channel: str, command: str) -> str:
    """Who gave the newest command of this name; empty if the audit has none."""
    query = select(audit.c.by_whom).where(audit.c.channel == channel, audit.c.command == command)
    return str(connection.execute(query.order_by(audit.c.id.desc()).limit(1)).scalar_one_or_none() or "")


def read_entries(connection: Connection, channel: str | None, *, limit: int | None) -> tuple[AuditEntry, ...]:
    """The newest rows of a channel, or of all, newest first."""
    query = select(audit).order_by(audit.c.id.desc()).limit(limit)
    if channel is not None:
        query = query.where(audit.c.channel == channel)
    return tuple(
        AuditEntry(
            row.id, row.channel, str(row.at), None if row.ended_at is None else str(row.ended_at), row.by_whom,
            row.account, row.command, value_of(Arguments, row.arguments, audit.c.arguments).values, row.digest,
            row.result, row.error,
        )
        for row in connection.execute(query)
    )  # fmt: skip
