"""How far a channel's first copy is: tables, bytes, rate, time left; and whether anybody works on it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from binlane.bootstrap.copy_progress import CopyState, standing_of
from binlane.health.durations import span
from binlane.lazy_dataclass import dataclass
from binlane.model import plural, size_text
from binlane.state.leases import bootstrap_lease, holder
from binlane.state.records.bootstraps import CopySums, read_sums


@dataclass(frozen=True, slots=True)
class FirstCopy:
    """An unfinished first copy."""

    record: CopySums
    connection: int | None
    """The connection of the target that holds its lease; None: no attempt is running."""

    @property
    def standing(self) -> CopyState:
        """An interrupted attempt has no rate."""
        found = standing_of(self.record)
        return found if self.connection is not None else replace(found, bytes_per_second=0.0)

    @property
    def told(self) -> str:
        """As text."""
        state = "interrupted" if self.connection is None else "running"
        return f"first copy, attempt {self.record.attempts:,}, {state}: {standing_text(self.standing)}"


def read_first_copy(connection: Any, channel: str) -> FirstCopy | None:
    """The channel's unfinished first copy; None if there is none."""
    record = read_sums(connection, channel)
    return None if record is None else FirstCopy(record, holder(connection, bootstrap_lease(channel)))


def beginning_copy(connection: Any, channel: str) -> str | None:
    """A first copy that runs and has not yet recorded its snapshot, as text; None if there is none."""
    number = holder(connection, bootstrap_lease(channel))
    return None if number is None else f"first copy, running: connection {number} of the target; it takes its snapshot"


def standing_text(standing: CopyState) -> str:
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
