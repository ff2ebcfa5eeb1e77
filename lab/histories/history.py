"""A history as text: the sessions' statements on a source, the ends of windows, and the channel's settings."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from binlane.model import Flavor

BOTH: Final = "*"
"""The session of the statements before the channel's beginning, on source and target."""
WINDOW: Final = "-"
"""The session name of an event that stands for a window."""
DISCONNECT: Final = "disconnect"
"""The event of a session whose connection ends; its next statement uses a new connection."""


@dataclass(frozen=True, slots=True)
class Event:
    """A statement of a session, or a window."""

    session: str
    sql: str

    def __str__(self) -> str:
        return f"{self.session}: {self.sql}"


@dataclass(frozen=True, slots=True)
class Settings:
    """Keys of the channel's file by their names, and how windows are run."""

    lanes: int = 3
    fold_gap: int | None = None
    """None: the product's default."""
    block: int = 20
    reduce: str = "off"
    segment_bytes: int = 4096
    writer: str = "binlog"
    consistency: str | None = None
    divide: str = ""
    """How the lanes share all databases; empty: each database has one lane."""
    commit: str = "alone"
    on_conflict: str = "stop"
    row_images: str = "auto"
    spark: bool = False
    """The first window's plan job goes through spark-submit."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in dataclasses.asdict(self).items() if value is not None)


@dataclass(frozen=True, slots=True)
class History:
    """Everything that is needed to repeat the history."""

    flavor: Flavor
    seed: int
    settings: Settings
    events: tuple[Event, ...]

    def with_events(self, events: Iterable[Event]) -> History:
        """The history with other events."""
        return dataclasses.replace(self, events=tuple(events))

    def to_text(self) -> str:
        """One line of settings, then one line for each event: statements have no line breaks."""
        head = {"flavor": self.flavor.value, "seed": self.seed, **dataclasses.asdict(self.settings)}
        return "\n".join([f"# {json.dumps(head)}", *map(str, self.events)]) + "\n"

    @classmethod
    def from_text(cls, text: str) -> History:
        """The inverse of ``to_text``. Further lines that begin with ``#`` are comments."""
        lines = text.splitlines()
        head = json.loads(lines[0].removeprefix("# "))
        flavor, seed = Flavor(head.pop("flavor")), head.pop("seed")
        parts = (line.partition(": ") for line in lines[1:] if line and not line.startswith("#"))
        return cls(flavor, seed, Settings(**head), tuple(Event(session, sql) for session, _, sql in parts))
