"""How far a run has come before its lanes work, and since when the current step runs: one row a channel."""

from __future__ import annotations

import contextlib
from enum import StrEnum

from sqlalchemy import Connection, Engine, delete, select
from sqlalchemy.dialects.mysql import insert
from sqlalchemy.exc import SQLAlchemyError

from binlane.lazy_dataclass import dataclass
from binlane.state.tables import NOW, progress


class RunStep(StrEnum):
    """The steps of a window that take time."""

    EXTRACT = "extract"
    """Bytes of log are read."""
    PLAN = "plan"
    """Segments are mapped; their number is counted in the window's folder."""
    APPLY = "apply"
    """Lanes apply transactions; ``done`` is the number that was applied when they began."""
    LOAD = "load"
    """A restore loads its dump, before it has a channel and windows: bytes of statements. The row's window is LOAD."""


@dataclass(frozen=True, slots=True)
class StepRow:
    """The current step of a channel's window. Times are UTC, by the target's clock."""

    step: RunStep
    window_id: str
    done: int
    total: int
    """0: not known."""
    begun_at: str
    updated_at: str


def begin_step(engine: Engine, channel: str, step: RunStep, window_id: str, *, done: int = 0, total: int = 0) -> None:
    """The channel's window is in this step from now on."""
    values = {
        "step": step.value, "window_id": window_id, "done": done, "total": total, "begun_at": NOW, "updated_at": NOW,
    }  # fmt: skip
    with engine.begin() as connection:
        connection.execute(insert(progress).values(channel=channel, **values).on_duplicate_key_update(**values))


def save_step(engine: Engine, channel: str, window_id: str, done: int, total: int) -> None:
    """How far the step has come; nothing if the channel is in another window's step by now. A target that does not
    answer is left to the steps that need it: no run fails because of a figure."""
    with contextlib.suppress(SQLAlchemyError), engine.begin() as connection:
        connection.execute(
            progress.update()
            .where(progress.c.channel == channel, progress.c.window_id == window_id)
            .values(done=done, total=total, updated_at=NOW)
        )


def end_step(engine: Engine, channel: str, window_id: str) -> None:
    """The window is in no step any more; as ``save_step`` does, this leaves errors to others."""
    with contextlib.suppress(SQLAlchemyError), engine.begin() as connection:
        connection.execute(delete(progress).where(progress.c.channel == channel, progress.c.window_id == window_id))


def read_step(connection: Connection, channel: str) -> StepRow | None:
    """The channel's step; None if it is in none, or has never been."""
    row = connection.execute(select(progress).where(progress.c.channel == channel)).one_or_none()
    if row is None:
        return None
    times = str(row.begun_at), str(row.updated_at)
    return StepRow(RunStep(row.step), row.window_id, row.done, row.total, *times)
