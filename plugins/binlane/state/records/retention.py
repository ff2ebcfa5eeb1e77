"""Retention: work folders of finished windows and old rows of the state that may be removed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    ScalarSelect,
    Select,
    Table,
    and_,
    delete,
    func,
    or_,
    select,
    update,
)

from binlane.model import FolderRecord
from binlane.state.records.coverage import note_uncovered
from binlane.state.records.drills import EQUAL, HAS_RESULT
from binlane.state.records.repairs import MADE
from binlane.state.records.verifications import CLEAN, RUNNING
from binlane.state.tables import (
    channels,
    conflicts,
    drills,
    epochs,
    errors,
    repairs,
    skips,
    splits,
    verifications,
    windows,
)  # fmt: skip
from binlane.state.windows import FINISHED, folder_record

_BATCH: Final = 1_000
"""Rows deleted in one transaction."""


def finished_work(connection: Connection, channel: str, *, keep: int) -> tuple[tuple[str, FolderRecord], ...]:
    """The finished windows before the newest ``keep`` whose folders have not been removed."""
    rows = connection.execute(
        select(windows.c.window_id, windows.c.work)
        .where(
            windows.c.channel == channel, windows.c.state == FINISHED, windows.c.number <= _windows_of(channel) - keep
        )
        .where(windows.c.work != "")
        .order_by(windows.c.number)
    )
    return tuple((row.window_id, FolderRecord(row.work)) for row in rows)


def newest_finished_work(connection: Connection, channel: str) -> tuple[str, FolderRecord] | None:
    """The newest finished window whose folder has not been removed; None if there is none."""
    found = connection.execute(
        select(windows.c.window_id, windows.c.work, windows.c.files)
        .where(windows.c.channel == channel, windows.c.state == FINISHED, windows.c.work != "")
        .order_by(windows.c.number.desc())
        .limit(1)
    ).first()
    return None if found is None else (found.window_id, folder_record(found.work, found.files))


def forget_work(connection: Connection, channel: str, window: str) -> None:
    """Record that a finished window's folder was removed."""
    connection.execute(
        update(windows)
        .where(windows.c.channel == channel, windows.c.state == FINISHED, windows.c.window_id == window)
        .values(work="", files=None)
    )


def forget_history(engine: Engine, channel: str, *, keep: int) -> int:
    """Delete windows, errors, verifications, drills and plans of repairs that nobody has applied, older than the
    newest ``keep`` of each; the number of deleted windows.

    Always kept: windows that are unfinished, that have a folder, or that a kept verification, skip or conflict names;
    and the newest drill, and of each kind the newest verification, that found everything equal.
    """
    clauses = (
        (verifications, _old_verifications(channel, keep)),
        (errors, _older(errors, channel, keep)),
        (drills, _old_drills(channel, keep)),
        (repairs, and_(_older(repairs, channel, keep), repairs.c.state == MADE)),
    )
    with engine.connect() as connection:
        rows = [(table, [*connection.scalars(select(table.c.id).where(clause))]) for table, clause in clauses]
    for table, numbers in rows:
        _forget(engine, table, numbers)
    gone = 0
    with engine.connect() as connection:
        found = [row.window_id for row in connection.execute(_old_windows(channel, keep))]
    for at in range(0, len(found), _BATCH):
        batch = found[at : at + _BATCH]
        with engine.begin() as connection:
            note_uncovered(connection, channel)
            for table in (splits, epochs, windows):
                connection.execute(delete(table).where(table.c.channel == channel, table.c.window_id.in_(batch)))
        gone += len(batch)
    return gone


def _forget(engine: Engine, table: Table, numbers: Sequence[int]) -> None:
    for at in range(0, len(numbers), _BATCH):
        with engine.begin() as connection:
            connection.execute(delete(table).where(table.c.id.in_(numbers[at : at + _BATCH])))


def _older(table: Table, channel: str, keep: int) -> ColumnElement[bool]:
    """Rows of the channel before its newest ``keep``."""
    newest = select(table.c.id).where(table.c.channel == channel).order_by(table.c.id.desc()).limit(1).offset(keep - 1)
    return and_(table.c.channel == channel, table.c.id < newest.scalar_subquery())


def _old_drills(channel: str, keep: int) -> ColumnElement[bool]:
    newest = select(func.max(drills.c.id)).where(drills.c.channel == channel)
    kept = [newest.where(which).scalar_subquery() for which in (drills.c.state == EQUAL, HAS_RESULT)]
    return and_(
        _older(drills, channel, keep),
        drills.c.ended_at.is_not(None),
        *(or_(each.is_(None), drills.c.id != each) for each in kept),
    )


def _old_verifications(channel: str, keep: int) -> ColumnElement[bool]:
    mine = verifications.c.channel == channel
    equal = (
        select(func.max(verifications.c.id)).where(mine, verifications.c.state == CLEAN).group_by(verifications.c.kind)
    )
    return and_(
        _older(verifications, channel, keep),
        verifications.c.state != RUNNING,
        verifications.c.id.not_in(equal),
    )


def _old_windows(channel: str, keep: int) -> Select[tuple[str]]:
    named = [
        select(table.c.window_id).where(table.c.channel == channel, table.c.window_id == windows.c.window_id).exists()
        for table in (verifications, skips, conflicts)
    ]
    return (
        select(windows.c.window_id)
        .where(windows.c.channel == channel, windows.c.state == FINISHED, windows.c.work == "")
        .where(windows.c.number <= _windows_of(channel) - keep, *(~each for each in named))
        .order_by(windows.c.number)
    )


def _windows_of(channel: str) -> ScalarSelect[int]:
    return select(channels.c.windows).where(channels.c.channel == channel).scalar_subquery()


def windows_with_work(connection: Connection, channel: str) -> frozenset[str]:
    """The ids of the channel's windows whose folders have not been removed, unfinished ones included."""
    rows = connection.execute(select(windows.c.window_id).where(windows.c.channel == channel, windows.c.work != ""))
    return frozenset(row.window_id for row in rows)
