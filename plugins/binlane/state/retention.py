"""Work folders of finished windows: which may go, and which are gone."""

from __future__ import annotations

from sqlalchemy import Connection, ScalarSelect, select, update

from binlane.state.tables import channels, windows
from binlane.state.windows import FINISHED


def finished_work(connection: Connection, channel: str, *, keep: int) -> tuple[str, ...]:
    """Work folders of the finished windows before the newest ``keep``, as far as they have not been removed."""
    rows = connection.execute(
        select(windows.c.work)
        .where(
            windows.c.channel == channel, windows.c.state == FINISHED, windows.c.number <= _windows_of(channel) - keep
        )
        .where(windows.c.work != "")
        .order_by(windows.c.number)
    )
    return tuple(row.work for row in rows)


def forget_work(connection: Connection, channel: str, work: str) -> None:
    """Note that a finished window's folder was removed."""
    connection.execute(
        update(windows)
        .where(windows.c.channel == channel, windows.c.state == FINISHED, windows.c.work == work)
        .values(work="")
    )


def _windows_of(channel: str) -> ScalarSelect[int]:
    return select(channels.c.windows).where(channels.c.channel == channel).scalar_subquery()


def windows_with_work(connection: Connection, channel: str) -> frozenset[str]:
    """The ids of the channel's windows whose folders have not been removed, unfinished ones included."""
    rows = connection.execute(select(windows.c.window_id).where(windows.c.channel == channel, windows.c.work != ""))
    return frozenset(row.window_id for row in rows)
