"""The order of a table's row changes when many of them share a statement.

Changes of different rows may change places, changes of one row may not. Each change gets a position; changes with the
same position have the same kind and are of different rows, so one statement may write them. Within four positions the
order is: deletes, updates, inserts, updates that stand alone.

Keys can meet in two ways that the bytes of the primary key do not show: by another unique key, and by a collation that
takes different bytes for the same key. A value becomes free by a delete, or by an update that changes a unique key. So
for such a table an insert comes after all earlier deletes, and an update that changes a unique key stands alone: after
all changes before it, and before all changes after it.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field
from enum import IntEnum

from binlane.lazy_dataclass import dataclass


class Step(IntEnum):
    """The kinds of changes, in the order of their positions."""

    DELETE = 0
    UPDATE = 1
    """An update that changes no unique key."""
    INSERT = 2
    ALONE = 3
    """An update that changes a unique key, or the primary key."""


_STEPS = len(Step)


@dataclass(slots=True)
class ChangeOrder:
    """Positions for the changes of one table, which come in the log's order."""

    keys_meet: bool
    """Keys may be equal although the bytes of the primary key differ."""
    _next: dict[Hashable, int] = field(default_factory=dict)
    """By primary key: the first position behind the row's last change."""
    _freed: int = 0
    """The first position behind the last delete."""
    _end: int = 0
    """The first position behind all changes."""
    _floor: int = 0
    """The first position behind the last change that stands alone."""

    def place(self, key: Hashable, step: Step) -> int:
        """The position of a change of the row with this primary key."""
        at = self._next.get(key, self._floor)
        if step == Step.ALONE:
            at = self._end
        elif at < self._floor:
            at = self._floor
        if self.keys_meet and step == Step.INSERT and at < self._freed:
            at = self._freed
        at += (step - at) % _STEPS
        after = at + 1
        self._next[key] = after
        if step == Step.DELETE and after > self._freed:
            self._freed = after
        if after > self._end:
            self._end = after
        if step == Step.ALONE:
            self._floor = after
        return at
