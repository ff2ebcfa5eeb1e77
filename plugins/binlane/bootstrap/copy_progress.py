"""How far a first copy has come, in rows and in bytes of the source's tables."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from dataclasses import field
from typing import Protocol

from binlane.lazy_dataclass import dataclass
from binlane.model import TableKey
from binlane.state.records.bootstraps import CopySums, Size, copied_bytes


@dataclass(frozen=True, slots=True)
class CopyState:
    """The state of a copy. Bytes are those of the source's tables without secondary indexes, by its own estimate."""

    tables: int
    finished: int
    rows: int
    """Copied rows, of earlier attempts too, as ``bytes``."""
    bytes: int
    all_bytes: int
    bytes_per_second: float
    """The attempt's mean rate."""
    waits: str = ""
    """Why the copy waits; empty: it does not."""

    @property
    def seconds_left(self) -> float | None:
        """By the mean rate; None as long as there is none."""
        rate = self.bytes_per_second
        return max(self.all_bytes - self.bytes, 0) / rate if rate > 0 else None


def standing_of(copy: CopySums) -> CopyState:
    """The state of an unfinished copy, from its record on the target."""
    seconds = copy.attempt_seconds
    return CopyState(
        tables=copy.tables,
        finished=copy.finished,
        rows=copy.rows,
        bytes=copy.bytes,
        all_bytes=copy.all_bytes,
        bytes_per_second=max(copy.bytes - copy.attempt_bytes, 0) / seconds if seconds else 0.0,
    )


class Progress(Protocol):
    """Receives the progress of the copy, from any thread."""

    def phase(self, name: str) -> None:
        """The copy begins a step whose rows are not counted."""

    def show(self, standing: CopyState) -> None:
        """Rows were copied, or a table was finished, or the copy waits."""


@dataclass(slots=True)
class Meter:
    """Counts what one attempt copies; begins at its creation. ``rows``: rows that earlier attempts have copied."""

    sizes: Mapping[TableKey, Size]
    rows: Mapping[TableKey, int]
    finished: Collection[TableKey]
    told: Progress
    _copied: dict[TableKey, int] = field(init=False)
    _done: set[TableKey] = field(init=False)
    _new_rows: int = 0
    _bytes: int = field(init=False)
    _first_bytes: int = field(init=False)
    _began: float = field(default_factory=time.monotonic)
    _waits: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._copied, self._done = dict(self.rows), set(self.finished)
        self._bytes = self._first_bytes = sum(map(self._of, self.sizes))
        self.told.show(self.standing)

    def copied(self, table: TableKey, rows: int) -> None:
        """Rows were committed on the target."""
        with self._lock:
            self._new_rows += rows
            self._bytes -= self._of(table)
            self._copied[table] = self._copied.get(table, 0) + rows
            self._bytes += self._of(table)
            self.told.show(self.standing)

    def empty(self, table: TableKey) -> None:
        """The rows of the table are copied once more."""
        self.copied(table, -self._copied.get(table, 0))

    def finish(self, table: TableKey) -> None:
        """All rows of the table were committed."""
        with self._lock:
            self._bytes -= self._of(table)
            self._done.add(table)
            self._bytes += self._of(table)
            self.told.show(self.standing)

    def wait(self, reason: str) -> None:
        """The copy waits, or with an empty reason continues."""
        with self._lock:
            self._waits = reason
            self.told.show(self.standing)

    def bytes_left(self, table: TableKey) -> int:
        """The bytes of the table that are not copied."""
        return self.sizes[table].bytes - self._of(table)

    @property
    def new_rows(self) -> int:
        """Rows copied by this attempt."""
        return self._new_rows

    @property
    def standing(self) -> CopyState:
        """The present state."""
        seconds = time.monotonic() - self._began
        rate = (self._bytes - self._first_bytes) / seconds if seconds > 0 else 0.0
        total = sum(size.bytes for size in self.sizes.values())
        rows = self._new_rows + sum(self.rows.values())
        return CopyState(len(self.sizes), len(self._done), rows, self._bytes, total, rate, self._waits)

    def _of(self, table: TableKey) -> int:
        return copied_bytes(self.sizes[table], self._copied.get(table, 0), is_done=table in self._done)
