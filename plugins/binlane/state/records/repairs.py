"""Records of repairs: the plan, the operator, the progress."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from sqlalchemy import Connection, delete, insert, or_, select, update

from binlane.lazy_dataclass import dataclass
from binlane.model import SchemaObject, TableKey
from binlane.state.json_columns import text_of
from binlane.state.tables import NOW, repairs, suspects

MADE, RUNNING, DONE = "made", "running", "done"
_BATCH: Final = 500
"""Keys in one DELETE statement."""


@dataclass(frozen=True, slots=True)
class PastRepair:
    """A repair; fields as in ``tables.repairs``."""

    id: int
    digest: str
    plan: str
    seqno: int
    by: str
    state: str
    inserted: int
    updated: int
    deleted: int
    equal: int
    changed: int
    started_at: str
    """UTC, by the target's clock, as ``ended_at``."""
    ended_at: str | None


def read_repairs(
    connection: Connection, channel: str, *, before: int | None = None, limit: int
) -> tuple[PastRepair, ...]:
    """The channel's repairs, newest first, without plans that nobody has applied; ``before``: only those with a smaller
    number."""
    query = select(repairs).where(repairs.c.channel == channel, repairs.c.state != MADE)
    query = query.order_by(repairs.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(repairs.c.id < before)
    return tuple(
        PastRepair(
            row.id, row.digest, row.plan, row.seqno, row.requested_by, row.state, row.inserted, row.updated,
            row.deleted, row.equal_rows, row.changed_rows, str(row.started_at),
            None if row.ended_at is None else str(row.ended_at),
        )
        for row in connection.execute(query)
    )  # fmt: skip


def note_plan(connection: Connection, channel: str, digest: str, plan: str, seqno: int, by: str) -> None:
    """Record that a plan was made, for those who read its file: another program may have written that."""
    if not is_made(connection, channel, digest):
        _add(connection, channel, digest, plan, seqno, by, MADE)


def is_made(connection: Connection, channel: str, digest: str) -> bool:
    """Whether the plan with this digest was made for the channel, applied or not."""
    query = select(repairs.c.id).where(repairs.c.channel == channel, repairs.c.digest == digest).limit(1)
    return connection.execute(query).first() is not None


def begin_repair(connection: Connection, channel: str, digest: str, plan: str, seqno: int, by: str) -> int:
    """Record a new repair, in the place of its plan's record; its number."""
    # a row of its own: repairs are listed by their numbers, and a plan may have waited for weeks
    noted = (repairs.c.channel == channel, repairs.c.digest == digest, repairs.c.state == MADE)
    connection.execute(delete(repairs).where(*noted))
    return _add(connection, channel, digest, plan, seqno, by, RUNNING)


def _add(connection: Connection, channel: str, digest: str, plan: str, seqno: int, by: str, state: str) -> int:
    added = connection.execute(
        insert(repairs).values(
            channel=channel,
            digest=digest,
            plan=plan,
            seqno=seqno,
            requested_by=by,
            state=state,
            inserted=0,
            updated=0,
            deleted=0,
            equal_rows=0,
            changed_rows=0,
            started_at=NOW,
        )
    )
    [number] = added.inserted_primary_key or (0,)
    return int(number)


def save_repair(connection: Connection, number: int, counts: Mapping[str, int], *, done: bool = False) -> None:
    """Store progress. ``counts``: totals so far, by column of ``tables.repairs``."""
    end = {"state": DONE, "ended_at": NOW} if done else {}
    connection.execute(update(repairs).where(repairs.c.id == number).values(**counts, **end))


def forget_suspects(connection: Connection, channel: str, table: TableKey, keys: Collection[tuple[str, ...]]) -> None:
    """Delete the suspects of a table's rows that are equal now."""
    texts = [text_of(key) for key in keys]
    for at in range(0, len(texts), _BATCH):
        connection.execute(
            delete(suspects).where(
                suspects.c.channel == channel,
                suspects.c.table_schema == table.database,
                suspects.c.table_name == table.table,
                suspects.c.row_key.in_(texts[at : at + _BATCH]),
            )
        )


def forget_table(connection: Connection, channel: str, table: TableKey) -> None:
    """Delete all suspects of a table's rows; its definition's stay."""
    of_rows = or_(suspects.c.note == "", suspects.c.row_key == text_of(()), suspects.c.key_shape.is_not(None))
    connection.execute(
        delete(suspects).where(
            suspects.c.channel == channel,
            suspects.c.table_schema == table.database,
            suspects.c.table_name == table.table,
            of_rows,
        )
    )


def forget_definition(connection: Connection, channel: str, obj: SchemaObject, parts: Collection[str]) -> None:
    """Delete the suspects of parts of a definition that are equal now."""
    connection.execute(
        delete(suspects).where(
            suspects.c.channel == channel,
            suspects.c.table_schema == obj.database,
            suspects.c.table_name == obj.name,
            suspects.c.row_key == text_of((obj.kind,)),
            suspects.c.column_names.in_([text_of((part,)) for part in parts]),
        )
    )
