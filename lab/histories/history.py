"""A history: what sessions do on a source, where windows are cut, and how the channel is set; kept as text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from binlane.model import Flavor

BOTH: Final = "*"
"""The session of what is on source and target before the channel begins."""
WINDOW: Final = "-"
"""The session of a window that binlane runs here."""
DISCONNECT: Final = "disconnect"
"""Of a session: its connection ends, and its next statement has a new one."""


@dataclass(frozen=True, slots=True)
class Event:
    """A statement of a session, or a window."""

    session: str
    sql: str

    def __str__(self) -> str:
        return f"{self.session}: {self.sql}"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the channel's file says, by the names that it has there, and how windows are run."""

    lanes: int = 3
    fold_gap: int | None = None
    """None: the product's default."""
    block: int = 20
    reduce: str = "off"
    segment_bytes: int = 4096
    writer: str = "binlog"
    spark: bool = False
    """The first window's filter job goes through spark-submit."""

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in dataclasses.asdict(self).items() if value is not None)


@dataclass(frozen=True, slots=True)
class History:
    """Everything that is needed to try it again."""

    flavor: Flavor
    seed: int
    settings: Settings
    events: tuple[Event, ...]

    def with_events(self, events: Iterable[Event]) -> History:
        """The same with other events."""
        return dataclasses.replace(self, events=tuple(events))

    def to_text(self) -> str:
        """A line of settings, then a line an event: statements have no line breaks."""
        head = {"flavor": self.flavor.value, "seed": self.seed, **dataclasses.asdict(self.settings)}
        return "\n".join([f"# {json.dumps(head)}", *map(str, self.events)]) + "\n"

    @classmethod
    def from_text(cls, text: str) -> History:
        """What ``to_text`` has made. Further lines that begin with ``#`` are comments."""
        lines = text.splitlines()
        head = json.loads(lines[0].removeprefix("# "))
        flavor, seed = Flavor(head.pop("flavor")), head.pop("seed")
        parts = (line.partition(": ") for line in lines[1:] if line and not line.startswith("#"))
        return cls(flavor, seed, Settings(**head), tuple(Event(session, sql) for session, _, sql in parts))
